"""The package as a whole: imports stay light, it offers what it says, and its errors travel."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import botorch_ext
from botorch_ext.exceptions import HorizonReached, WaitingForObservations

ROOT = Path(__file__).parents[1]
OPTIONAL = {
    *("ax", "dask", "distributed", "jinja2", "matplotlib", "openpyxl", "optuna", "pandas"),
    *("psycopg", "sqlalchemy"),
}


def _third_party(statements: str) -> set[str]:
    """The top-level packages outside the standard library that a fresh interpreter has loaded."""
    # Compiled helpers of scipy and the like sit in sys.modules under names that are not their own.
    report = """
import json, sys
names = {name.partition(".")[0] for name in sys.modules} - set(sys.stdlib_module_names)
specs = {name: getattr(sys.modules.get(name), "__spec__", None) for name in names}
print(json.dumps([name for name, spec in specs.items() if spec is not None and spec.name == name]))
"""
    done = subprocess.run(
        [sys.executable, "-c", statements + report],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = json.loads(done.stdout.splitlines()[-1])
    return {name for name in names if not name.startswith("_")}


@pytest.mark.slow
def test_importing_the_package_stays_light() -> None:
    assert _third_party("import botorch_ext") <= {"botorch_ext"}
    # Names are loaded when they are first used.
    loaded = _third_party(
        "import botorch_ext\nfor name in botorch_ext.__all__:\n    getattr(botorch_ext, name)\n"
    )
    assert not loaded & OPTIONAL
    # `import botorch` alone loads its subpackages only when they are first used.
    botorch = _third_party(
        "import botorch, scipy\n"
        "from botorch.acquisition import *\n"
        "from botorch.models import *\n"
        "from botorch.optim import *\n"
    )
    assert loaded - botorch <= {"botorch_ext", "filelock", "tqdm"}


def test_the_package_offers_what_it_says() -> None:
    assert dir(botorch_ext) == sorted(botorch_ext.__all__)
    for name in botorch_ext.__all__:
        assert getattr(botorch_ext, name) is getattr(botorch_ext, name)
    with pytest.raises(AttributeError, match="module 'botorch_ext' has no attribute 'nothing'"):
        botorch_ext.nothing  # noqa: B018


@pytest.mark.parametrize(
    "error", [WaitingForObservations("not yet", [3, 5], 2), HorizonReached("no more", 1000)]
)
def test_errors_travel_between_processes(error: ValueError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, ValueError) and type(copy) is type(error)
    assert vars(copy) == vars(error) and str(copy) == str(error)
    assert vars(error) in ({"ids": [3, 5], "available": 2}, {"horizon": 1000})
