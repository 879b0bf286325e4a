"""Imports point one way, and importing the package stays light."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import botorch_ext

PACKAGE = "botorch_ext"
ROOT = Path(__file__).parents[1]

# A room is a folder, or a module that lies at the top. It imports from itself and from rooms before
# it. The face of a folder, its `__init__`, may be imported by every room after the folder.
ROOMS = (
    "exceptions",
    "checks",
    "aligned",
    "state",
    "palette",
    "chunks",
    "ranks",
    "distances",
    "domains",
    "kernels",
    "kernel_functions",
    "models",
    "widths",
    "estimates",
    "search",
    "hyperparameters",
    "robust",
    "problems",
    "problems.functions",
    "problems.real_data",
    "acquisition",
    "regions",
    "information_gain",
    "delays",
    "rounds",
    "predictions",
    "strategies",
    "strategies.adaptive",
    "strategies.fixed_design",
    "strategies.masters",
    "testing",
    "algorithms",
    "studies",
    "integrations",
    "analysis",
    "plotting",
    "reports",
    "commands",
    "command_line",
    PACKAGE,
    "__main__",
)

OPTIONAL = {
    *(
        "ax",
        "dask",
        "distributed",
        "jinja2",
        "matplotlib",
        "optuna",
        "pandas",
        "psycopg",
        "sqlalchemy",
    ),
}


def _modules() -> dict[str, Path]:
    """The files of the package by their names without its own; a folder's face by the folder's."""
    modules = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        modules[".".join(parts) or PACKAGE] = path
    return modules


MODULES = _modules()
FACES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def _room(module: str) -> str:
    return module if module in FACES or "." not in module else module.rpartition(".")[0]


def _imports(source: str, package: str) -> Iterator[tuple[int, str]]:
    """Each import of a module of ours anywhere in ``source``, as line and name.

    Args:
        source: The text of a module.
        package: The full name of the package it is in, to resolve relative imports.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")
            start = parents[: len(parents) + 1 - node.level] if node.level else []
            base = ".".join([*start, *([node.module] if node.module else [])])
            targets = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            first, *rest = target.split(".")
            if first != PACKAGE:
                continue
            # The longest part of the dotted name that is a module; what follows is a name in it.
            while rest and ".".join(rest) not in MODULES:
                rest.pop()
            yield node.lineno, ".".join(rest) or PACKAGE


def _place(target: str) -> int:
    """Where in ROOMS a target stands: a face after all the rooms of its folder."""
    if target in FACES and target != PACKAGE:
        inside = [room for room in ROOMS if room == target or room.startswith(f"{target}.")]
        return ROOMS.index(inside[-1])
    return ROOMS.index(_room(target))


def _violations(module: str, source: str) -> list[str]:
    """Imports that do not point down: of a later room, or of the face of the own one."""
    folder = module if module in FACES else _room(module) if "." in module else PACKAGE
    package = PACKAGE if folder == PACKAGE else f"{PACKAGE}.{folder}"
    own, wrong = _room(module), []
    for line, target in _imports(source, package):
        if module in FACES:  # which shows what is in the folder, and below
            down = _place(target) <= _place(module) and target != module
        elif target in FACES:
            down = _place(target) < ROOMS.index(own)
        else:
            down = _room(target) == own or _place(target) < ROOMS.index(own)
        if not down:
            wrong.append(f"{module}, line {line}, imports {target}")
    return wrong


def _circle(arrows: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, in order; none where there is no circle."""
    done: set[str] = set()

    def visit(module: str, path: list[str]) -> list[str]:
        if module in path:
            return [*path[path.index(module) :], module]
        if module in done:
            return []
        for target in sorted(arrows.get(module, ())):
            if found := visit(target, [*path, module]):
                return found
        done.add(module)
        return []

    return next((found for module in sorted(arrows) if (found := visit(module, []))), [])


def test_every_folder_and_every_top_module_is_a_room() -> None:
    assert {_room(module) for module in MODULES} == set(ROOMS)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    assert _violations(module, MODULES[module].read_text()) == []


def test_no_modules_import_each_other_in_a_circle() -> None:
    arrows: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        if module not in FACES:
            package = ".".join(path.relative_to(ROOT).parent.parts)
            targets = {target for _, target in _imports(path.read_text(), package)}
            arrows[module] = targets - FACES
    assert sum(map(len, arrows.values())) > len(MODULES)  # imports were found
    assert _circle(arrows) == []


def test_a_circle_is_found() -> None:
    arrows = {"a": {"b", "d"}, "b": {"c"}, "c": {"b"}, "d": set()}
    assert _circle(arrows) == ["b", "c", "b"]
    assert _circle(arrows | {"c": {"d"}}) == []


@pytest.mark.parametrize(
    ("module", "source", "target"),
    [
        ("domains.box", "import botorch_ext", PACKAGE),
        ("domains.box", "import botorch_ext.studies.run as r", "studies.run"),
        ("domains.box", "from botorch_ext.studies import run", "studies.run"),
        ("domains.box", "from ..studies import run", "studies.run"),
        ("domains.box", "from botorch_ext.domains import Box", "domains"),
        ("rounds", "def f():\n    from botorch_ext.strategies.base import T", "strategies.base"),
        ("rounds", "from . import algorithms", "algorithms"),
        ("models.finite", "from ..strategies.base import Trial", "strategies.base"),
        ("models.finite", "from . import KernelGP", "models"),
        ("models", "if TYPE_CHECKING:\n    from botorch_ext.studies.run import run", "studies.run"),
        ("problems.base", "from botorch_ext.strategies.base import Trial", "strategies.base"),
        ("problems.base", "from botorch_ext.rounds import Doubling", "rounds"),
        ("strategies.base", "from botorch_ext.strategies.adaptive import a", "strategies.adaptive"),
        ("strategies.adaptive.stable", "from botorch_ext.strategies import Trial", "strategies"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str, target: str) -> None:
    line = len(source.splitlines())
    assert _violations(module, source) == [f"{module}, line {line}, imports {target}"]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("studies.run", "import torch, botorch\nfrom botorch_extras import runner"),
        ("studies.run", "from botorch_ext import algorithms\nfrom botorch_ext.strategies import x"),
        ("models", "from .kernel_gp import KernelGP"),
        ("problems", "from botorch_ext.problems.real_data.svc import SVCTuning"),
        ("problems.functions.rkhs", "from botorch_ext.search.box import maximize_on_box"),
        ("strategies", "from botorch_ext.strategies.masters.master import MasterStrategy"),
        ("strategies.adaptive.stable", "from botorch_ext.strategies.base import Strategy"),
        (PACKAGE, "from botorch_ext.studies.run import run"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    assert _violations(module, source) == []


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
    assert _third_party("import botorch_ext") <= {PACKAGE}
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
    assert loaded - botorch <= {PACKAGE, "tqdm"}


def test_the_package_offers_what_it_says() -> None:
    assert dir(botorch_ext) == sorted(botorch_ext.__all__)
    for name in botorch_ext.__all__:
        assert getattr(botorch_ext, name) is getattr(botorch_ext, name)
    with pytest.raises(AttributeError, match="module 'botorch_ext' has no attribute 'nothing'"):
        botorch_ext.nothing  # noqa: B018
