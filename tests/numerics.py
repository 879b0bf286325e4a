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

#: For each kind of processor: the flag it must have, and the values of ATEN_CPU_CAPABILITY,
#: MKL_CBWR (which MKL obeys on all processors, unlike MKL_ENABLE_INSTRUCTIONS) and
#: OPENBLAS_CORETYPE.
PROCESSORS = {
    "plain": ("sse4_2", "default", "COMPATIBLE", "Nehalem"),
    "avx2": ("avx2", "avx2", "AVX2", "Haswell"),
    "avx512": ("avx512f", "avx512", "AVX512", "SkylakeX"),
}
NAMES = ("ATEN_CPU_CAPABILITY", "MKL_CBWR", "OPENBLAS_CORETYPE", "OMP_NUM_THREADS")
#: For each setting the flag that the processor must have, and the environment variables.
SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    name: (flag, dict(zip(NAMES, (*values, "1"), strict=True)))
    for name, (flag, *values) in PROCESSORS.items()
}
# Threads that wait actively stand in the way of those of other processes.
SETTINGS["two-threads"] = (
    "avx2",
    {
        "ATEN_CPU_CAPABILITY": "avx2",
        "OPENBLAS_CORETYPE": "Haswell",
        "OMP_NUM_THREADS": "2",
        "OMP_WAIT_POLICY": "PASSIVE",
    },
)


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
