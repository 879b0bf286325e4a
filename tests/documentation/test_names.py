"""Names that docstrings and pages speak of exist: `names` in single backticks, and bx.names."""

import ast
import builtins
import inspect
import pkgutil
import pydoc
import re
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

import botorch.acquisition
import botorch.models
import botorch.models.fully_bayesian
import botorch.models.transforms.input
import pytest

import botorch_ext as bx

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
MODULES = sorted(module.name for module in pkgutil.walk_packages(bx.__path__, "botorch_ext."))


def _tree(module: str) -> ast.Module:
    return ast.parse(Path(import_module(module).__file__).read_text())


@cache
def _known() -> set[str]:
    """What modules, classes and instances have, those of BoTorch that are spoken of included."""
    known = {name for module in MODULES for name in (module, module.rpartition(".")[2])}
    for module in MODULES:
        members = vars(import_module(module))
        classes = [value for value in members.values() if inspect.isclass(value)]
        known |= members.keys() | {name for cls in classes for name in dir(cls)}
        for node in ast.walk(_tree(module)):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                known.add(node.attr)
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                known.add(node.target.id)
    for module in (botorch.acquisition, botorch.models):
        known |= set(module.__all__)
    for module in (botorch.models.fully_bayesian, botorch.models.transforms.input, builtins):
        known |= vars(module).keys()
    return known


def _unknown(docstring: str) -> list[str]:
    text = re.sub(r"``.+?``", "", docstring, flags=re.DOTALL)
    names = re.findall(r"`([A-Za-z_][\w.]*)(?:\(\))?`", text)
    parts = [(name, name.rpartition(".")[2]) for name in names]
    return [name for name, last in parts if last not in _known() and not pydoc.locate(name)]


@pytest.mark.slow
def test_names_in_docstrings_exist():
    assert _unknown("A `Strategy` and a `Strategie`, ``anything``.") == ["Strategie"]
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef)
    unknown = [
        (module, name)
        for module in MODULES
        for node in ast.walk(_tree(module))
        if isinstance(node, nodes)
        for name in _unknown(ast.get_docstring(node) or "")
    ]
    assert unknown == []


def test_names_on_pages_exist():
    for page in PAGES:
        for name in set(re.findall(r"\bbx\.([A-Za-z_][\w.]*\w)", page.read_text())):
            reduce(getattr, name.split("."), bx)
