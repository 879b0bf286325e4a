"""Formulas in docstrings are found in prose, and typeset for the pages."""

from importlib import import_module
from pathlib import Path

import pytest

from docs._extensions.plain_formulas import typeset


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
