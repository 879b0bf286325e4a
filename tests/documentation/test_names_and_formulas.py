"""Names that docstrings and pages speak of exist, and their formulas are found and typeset."""

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
from docs._extensions.plain_formulas import typeset

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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "B + sigma/sqrt(lambda) sqrt(2 ln(1/delta') + 2 I_{t-1}).",
            r":math:`B + \sigma / \sqrt{ \lambda } \sqrt{ 2 \ln ( 1 / \delta' ) + 2 I_{t - 1} }`.",
        ),
        ("B, at least the norm of f", ":math:`B`, at least the norm of :math:`f`"),
        ("mean + w_t std: the bound", r":math:`\mathrm{mean} + w_{t} \mathrm{std}`: the bound"),
        ("16 T^-(1 - a) and T^a", r":math:`16 T ^{ - ( 1 - a )}` and :math:`T ^{ a }`"),
        ("12 x 12 points, k >= 0", r":math:`12 \times 12` points, :math:`k \ge  0`"),
        ("P(model | data)", r":math:`P`\ (model | data)"),
        ("(s + tau) of 2^(1-i)", r"(:math:`s + \tau`) of :math:`2 ^{  1 - i }`"),
    ],
)
def test_formulas_are_typeset(text, expected):
    assert typeset(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a list:\n\n- a table, with commas;\n- another.",
        "the mean of a model, e.g. i.i.d. points",
        "Krause and Ong 2011, theorem 1 (2)",
        "sub-Gaussian noise and the width",
    ],
)
def test_prose_stays_as_it_is(text):
    assert typeset(text) == text


def test_examples_with_their_output_stay_as_they_are(monkeypatch):
    pytest.importorskip("sphinx")
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "docs" / "_extensions")
    example = "\n    >>> [*f(x[0], [1, 2])][:6]\n    ['x0', 'x1']\n"
    prepared = import_module("docstrings").prepare(f"Does x.\n{example}\nA beta.")
    assert prepared == f"Does :math:`x`.\n{example}\nA :math:`\\beta`."
