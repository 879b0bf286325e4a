"""Environments: what each peer, and the tasks, need installed, and where it is.

    python -m benchmarks.real.environments [NAME ...] [--smoke]

makes them below ``.venv-peers``. Peers without one run in the environment of the library.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the tasks need packages that the environment of a peer may not have
    from benchmarks.real.tasks import Task

_ROOT = Path(__file__).parents[2]
_FOLDER = _ROOT / ".venv-peers"
# By name: what pip installs, and what it installs without the packages that these depend on: of
# Olympus and Summit only files of measurements are read.
REQUIREMENTS = {
    "tasks": (
        ("coco-experiment==2.8.2", "scikit-learn==1.9.1", "statsmodels==0.15.0"),
        ("olymp==0.0.1b0", "summit==0.8.4"),
    ),
    "cma": (("optuna==5.0.0", "cmaes==0.12.0"), ()),
    # GPy 1.9.9 does not compile, and NumPy 2 is newer than both.
    "hebo": (("HEBO==0.3.6", "GPy==1.13.2", "numpy<2"), ()),
    "smac": (("smac==2.4.1",), ()),
    "scikit-optimize": (("scikit-optimize==0.10.2",), ()),
    "baybe": (("baybe==0.15.0",), ()),
    "vizier": (("google-vizier[jax]==0.1.24", "jax==0.4.38"), ()),
}


@dataclass(frozen=True)
class Peer:
    """A package that is compared.

    Args:
        entry: ``module:name`` below `benchmarks.real.peers`: a class, or what makes its objects.
        environment: A key of `REQUIREMENTS`; None for that of the library.
        seeds: How many runs of each task: one where a question takes about eight seconds, none of a
            method for many inputs.
        choices: How many runs of each task with choices, if a question there takes more than two
            seconds. None: as many as of the others.
        package: Whose version decides what it asks, in the environment of the library; of the
            library itself a revision, raised when its method asks something else.
        large: How many runs of each task of many inputs: two where a question takes more than two
            seconds.
        large_package: As ``package``, for the tasks of many inputs. Empty: the same.
    """

    entry: str
    environment: str | None = None
    seeds: int = 5
    choices: int | None = None
    package: str = ""
    large: int = 0
    large_package: str = ""

    def seeds_on(self, task: Task) -> int:
        """How many runs of a task; of a task to confirm at most five."""
        if task.half == "large":
            return self.large
        has_choices = any(parameter.kind == "choice" for parameter in task.parameters)
        seeds = self.choices if has_choices and self.choices is not None else self.seeds
        return min(seeds, 5) if task.half == "confirm" else seeds

    def settings_on(self, task: Task) -> str:
        """What decides its answers to a task. Rows of other settings are stale."""
        adapter = Path(__file__).parent / "peers" / f"{self.entry.split(':')[0]}.py"
        version = (
            self.large_package if self.large_package and task.half == "large" else self.package
        )
        if self.environment is not None:
            version = str(REQUIREMENTS[self.environment])
        elif " " not in version:
            version = metadata.version(version)
        return f"{version} {hashlib.blake2b(adapter.read_bytes(), digest_size=6).hexdigest()}"


OURS = "integrated_ei"
PEERS = {
    OURS: Peer(
        "library:IntegratedEI",
        seeds=10,
        package="revision 1",
        large=5,
        large_package="revision 2",
    ),
    "qLogNEI": Peer("botorch_loop:BoTorchLoop", seeds=10, choices=2, package="botorch", large=3),
    "TuRBO-1": Peer("turbo:Turbo", seeds=0, package="botorch", large=2),
    "GPSampler": Peer("optuna_samplers:gp", seeds=10, package="optuna"),
    "TPE": Peer("optuna_samplers:tpe", seeds=10, package="optuna"),
    "CMA-ES": Peer("optuna_samplers:cma_es", "cma", large=5),
    "random": Peer("optuna_samplers:random", package="optuna"),
    "Ax": Peer("ax_client:AxClient", package="ax-platform"),
    "HEBO": Peer("hebo_optimizer:HeboOptimizer", "hebo", large=2),
    "SMAC": Peer("smac_facade:SmacFacade", "smac"),
    "scikit-optimize": Peer("skopt_optimizer:SkoptOptimizer", "scikit-optimize"),
    "BayBE": Peer("baybe_campaign:BaybeCampaign", "baybe"),
    "Vizier": Peer("vizier_study:VizierStudy", "vizier", seeds=1),
}


def python_of(environment: str | None) -> Path:
    """The interpreter of an environment; of one that is not installed the interpreter of this
    process, which has the packages of the library."""
    path = _FOLDER / str(environment) / "bin" / "python"
    return path if path.exists() else Path(sys.executable)


def is_installed(environment: str | None) -> bool:
    """Whether an environment is there; None always is."""
    if environment is None:
        return True
    mark = _FOLDER / environment / ".installed"
    return mark.exists() and mark.read_text() == str(REQUIREMENTS[environment])


def install(name: str) -> None:
    """Makes an environment and installs what it needs."""
    folder = _FOLDER / name
    needed, alone = REQUIREMENTS[name]
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [folder / "bin" / "python", "-m", "pip", "install", "--disable-pip-version-check", "-q"]
    pinned = [
        line
        for line in (_ROOT / "constraints.txt").read_text().splitlines()
        if line.startswith("torch==")
    ]
    constraints = folder / "constraints.txt"
    constraints.write_text("\n".join(pinned))
    subprocess.run([*pip, "-c", constraints, *needed], check=True)
    if alone:
        subprocess.run([*pip, "--no-deps", *alone], check=True)
    (folder / ".installed").write_text(str(REQUIREMENTS[name]))


def main() -> None:
    """Installs the environments that are named, or all."""
    parser = argparse.ArgumentParser(description="Environments of the peers and of the tasks.")
    parser.add_argument("names", nargs="*", default=list(REQUIREMENTS), help="default: all")
    parser.add_argument("--smoke", action="store_true", help="only say what they need")
    given = parser.parse_args()
    for name in given.names:
        print(f"{name}: {', '.join(REQUIREMENTS[name][0])}", flush=True)
        if not given.smoke and not is_installed(name):
            install(name)


if __name__ == "__main__":
    main()
