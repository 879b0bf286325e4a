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

# A module imports only from those before it. A new module goes where its imports allow.
ORDER = (
    "exceptions",
    "checks",
    "domains",
    "kernels.columns",
    "kernels.members",
    "kernels.additive",
    "kernels.tasks",
    "kernels.action_context",
    "kernels",
    "contexts",
    "kernel_functions.base",
    "kernel_functions.stationary",
    "kernel_functions.periodic",
    "kernel_functions.combined",
    "kernel_functions.grouped",
    "kernel_functions.columns",
    "kernel_functions.tasks",
    "kernel_functions.freezing",
    "kernel_functions",
    "smoothness",
    "cells",
    "spectra",
    "hallucination",
    "factors",
    "models.arguments",
    "models.stacking",
    "models.kernel_gp",
    "models.finite",
    "models.repeats",
    "models.left_out",
    "models.decompositions",
    "models.entries",
    "models.families",
    "models.posterior_samples",
    "models.named_sets",
    "models.parts",
    "models.finite_candidates",
    "models.candidates",
    "models",
    "widths.base",
    "widths.adaptive",
    "widths.bayesian",
    "widths.fixed_design",
    "widths.composed",
    "widths",
    "estimates",
    "ascent",
    "optimize",
    "optimize_models",
    "box_balls",
    "perturbations",
    "optimize_stable",
    "acquisition.pending",
    "acquisition.confidence_bound",
    "acquisition.alternatives",
    "acquisition.optimistic",
    "acquisition.variance",
    "acquisition.stable",
    "acquisition.input_constructors",
    "acquisition",
    "level_sets",
    "constraints",
    "regions",
    "planning",
    "information_gain",
    "delays.distributions",
    "delays.allowances",
    "delays",
    "rounds",
    "strategies.choices",
    "strategies.events",
    "strategies.initial_data",
    "strategies.probes",
    "strategies.base",
    "strategies.optimism",
    "strategies.pending_rows",
    "strategies.optimistic",
    "strategies.survivors",
    "strategies.openings",
    "strategies.played_rounds",
    "strategies.from_prior",
    "strategies.phased",
    "strategies.running_tests",
    "strategies.predictions",
    "strategies.multi_model",
    "strategies.hyperparameters",
    "strategies.selection",
    "strategies.stable",
    "strategies.master",
    "strategies.candidate_bounds",
    "strategies.balancing",
    "strategies.contextwise",
    "strategies.played_levels",
    "strategies.refining",
    "strategies.breadthwise",
    "strategies.reference",
    "strategies",
    "algorithms.arguments",
    "algorithms.optimistic",
    "algorithms.contextual",
    "algorithms.balancing",
    "algorithms.phased",
    "algorithms.breadthwise",
    "algorithms.hyperparameters",
    "algorithms.stable",
    "algorithms",
    "problems.base",
    "problems.rkhs",
    "problems.growth",
    "problems.contextual",
    "problems.perturbed",
    "problems.lockout",
    "problems.hyperparameters",
    "problems.hills",
    "problems.robust",
    "problems.synthetic",
    "problems.svc",
    "problems.temperatures",
    "problems.peptides",
    "problems.binding",
    "problems.scaling",
    "problems.sensors",
    "problems.binders",
    "problems.fitted",
    "problems.fitted_data",
    "problems",
    "streams",
    "study",
    "runner",
    "simulation",
    "journal",
    "analysis.exponents",
    "analysis.packing",
    "analysis.slopes",
    "analysis.regret_bounds",
    "analysis.phased_bounds",
    "analysis.elimination_bounds",
    "analysis.grids",
    "analysis.complexity",
    "analysis.costs",
    "analysis",
    "plotting.style",
    "plotting.slices",
    "plotting.curves",
    "plotting.exponents",
    "plotting.trees",
    "plotting.maps",
    "plotting.posteriors",
    "plotting.studies",
    "plotting.models",
    "plotting.contexts",
    "plotting",
    "integrations.ax",
    "integrations.optuna",
    "integrations",
    PACKAGE,
)

# Problems know nothing of the methods that solve them: besides each other, nothing after this.
LAST_BEFORE_PROBLEMS = "perturbations"

OPTIONAL = {"ax", "dask", "distributed", "matplotlib", "optuna", "pandas"}


def _modules() -> dict[str, Path]:
    """The files of the package under their names in `ORDER`."""
    modules = {}
    for path in sorted((ROOT / PACKAGE).rglob("*.py")):
        parts = path.relative_to(ROOT / PACKAGE).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        modules[".".join(parts) or PACKAGE] = path
    return modules


def _imports(source: str, package: str, modules: set[str]) -> Iterator[tuple[int, str]]:
    """Each import of a module of ours anywhere in ``source``, as line and name in `ORDER`.

    Args:
        source: The text of a module.
        package: The full name of the package it is in, to resolve relative imports.
        modules: The names of `ORDER` that exist.
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
            while rest and ".".join(rest) not in modules:
                rest.pop()
            yield node.lineno, ".".join(rest) or PACKAGE


def _violations(module: str, source: str, package: str, modules: set[str]) -> list[str]:
    allowed = set(ORDER[: ORDER.index(module)])
    if module.startswith("problems"):
        after = ORDER[ORDER.index(LAST_BEFORE_PROBLEMS) + 1 :]
        allowed -= {name for name in after if not name.startswith("problems")}
    return [
        f"{module}, line {line}, imports {target}"
        for line, target in _imports(source, package, modules)
        if target not in allowed
    ]


MODULES = _modules()


def test_every_module_has_a_place_in_the_order() -> None:
    missing = MODULES.keys() - set(ORDER)
    assert not missing, (
        f"{sorted(missing)} not in ORDER of tests/test_layering.py: "
        "insert each after everything it imports and before everything that imports it"
    )


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_one_way(module: str) -> None:
    if module not in ORDER:
        pytest.fail(f"{module} is not in ORDER of tests/test_layering.py")
    path = MODULES[module]
    package = ".".join(path.relative_to(ROOT).parent.parts)
    violations = _violations(module, path.read_text(), package, set(MODULES))
    assert not violations, "a module imports only from those before it in ORDER:\n" + "\n".join(
        violations
    )


@pytest.mark.parametrize(
    ("module", "source", "target"),
    [
        ("domains", "import botorch_ext", PACKAGE),
        ("domains", "import botorch_ext.runner as r", "runner"),
        ("domains", "from botorch_ext import runner", "runner"),
        ("domains", "from . import runner", "runner"),
        ("domains", "from botorch_ext.domains import Box", "domains"),
        (
            "domains",
            "def f():\n    from botorch_ext.strategies.base import Trial",
            "strategies.base",
        ),
        ("models.finite", "from ..strategies.base import Trial", "strategies.base"),
        ("models.finite", "from . import KernelGP", "models"),
        ("models", "if TYPE_CHECKING:\n    from botorch_ext.runner import run", "runner"),
        ("problems.base", "from botorch_ext.strategies.base import Trial", "strategies.base"),
        ("problems.base", "from botorch_ext.rounds import Doubling", "rounds"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str, target: str) -> None:
    package = PACKAGE if module == "domains" else f"{PACKAGE}.{module.split('.')[0]}"
    line = len(source.splitlines())
    assert _violations(module, source, package, set(ORDER)) == [
        f"{module}, line {line}, imports {target}"
    ]


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("runner", "import torch, botorch\nfrom botorch_extras import runner"),
        ("runner", "from botorch_ext import algorithms\nfrom botorch_ext.strategies import base"),
        ("models", "from .kernel_gp import KernelGP"),
        ("problems", "from botorch_ext.problems.base import Problem"),
        ("problems.rkhs", "from botorch_ext.optimize import maximize"),
        (PACKAGE, "from botorch_ext.runner import run"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    package = PACKAGE if module in ("runner", PACKAGE) else f"{PACKAGE}.{module.split('.')[0]}"
    assert _violations(module, source, package, set(ORDER)) == []


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
