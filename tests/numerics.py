"""The tests as other processors would compute: `python -m tests.numerics [SETTING ...] [-- ...]`.

Torch, MKL and OpenBLAS choose their instructions by the processor, and each choice rounds the last
digits in another way. Environment variables make this processor choose as another one would. The
settings are those that are named, or all; what comes after ``--`` goes to pytest. A setting whose
instructions this processor lacks is skipped, and the last lines say so.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ONE_THREAD = {"OMP_NUM_THREADS": "1"}
#: For each setting the flag that the processor must have, and the environment variables. MKL obeys
#: MKL_CBWR on processors of all makes, and MKL_ENABLE_INSTRUCTIONS on those of Intel alone.
SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    name: (flag, {"ATEN_CPU_CAPABILITY": torch, "OPENBLAS_CORETYPE": core, **more})
    for name, flag, torch, core, more in (
        ("plain", "sse4_2", "default", "Nehalem", {"MKL_CBWR": "COMPATIBLE", **ONE_THREAD}),
        ("avx2", "avx2", "avx2", "Haswell", {"MKL_CBWR": "AVX2", **ONE_THREAD}),
        ("two-threads", "avx2", "avx2", "Haswell", {"OMP_NUM_THREADS": "2"}),
        ("avx512", "avx512f", "avx512", "SkylakeX", ONE_THREAD),
    )
}


def processor_flags() -> set[str]:
    """The instruction sets of this processor; empty where the system does not list them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return set()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def main(arguments: list[str]) -> int:
    """Run the tests in some settings; without any that can run here, as this processor does."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    names, options = arguments[:end] or list(SETTINGS), arguments[end + 1 :]
    unknown = sorted(set(names) - set(SETTINGS))
    if unknown:
        sys.exit(f"settings must be among {', '.join(SETTINGS)}, got {', '.join(unknown)}")
    flags, outcomes = processor_flags(), {}
    for name in names:
        flag, variables = SETTINGS[name]
        if flag not in flags:
            outcomes[name] = f"skipped, since this processor has no {flag}"
            continue
        own = " ".join(f"{key}={value}" for key, value in variables.items())
        print(f"== {name}: {own}", flush=True)
        command = [sys.executable, "-m", "pytest", *options]
        code = subprocess.run(command, env=os.environ | variables).returncode
        outcomes[name] = "passed" if code == 0 else "FAILED"
    if all(outcome.startswith("skipped") for outcome in outcomes.values()):
        print("== no setting can run here: as this processor computes", flush=True)
        own = os.environ | {"OMP_NUM_THREADS": "1"}
        code = subprocess.run([sys.executable, "-m", "pytest", *options], env=own).returncode
        outcomes["own"] = "passed" if code == 0 else "FAILED"
    for name, outcome in outcomes.items():
        print(f"numerics {name}: {outcome}")
    return int("FAILED" in outcomes.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
