"""Numbers of a sheet that were rounded: how far from the asked ones they may be."""

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.strategies import RandomSearch

LOG, SMALL = bx.Box([(1e-4, 1e-1)], log=[0]), bx.Box([(0.0, 0.1)])
NEGATIVE, SET = bx.Box([(-1.0, -0.003)]), bx.FiniteSet([[1e-4], [5.46e-4], [7.2e-3], [1e-1]])
CASES = [
    # Below the range, and elsewhere on the scale.
    (LOG, 0.000546, "0.00", False),
    (LOG, 0.0072, "0.01", False),
    (LOG, 0.0072, "0.007", True),
    (LOG, 0.0972, "0.10", True),
    (LOG, 0.0999, "0.11", False),
    (LOG, 0.000546, "5.5E-04", True),
    (SMALL, 0.0432, "0.04", False),
    (SMALL, 0.0432, "0.043", True),
    (SMALL, 0.0432, "0.042", False),
    (NEGATIVE, -0.0031, "0.00", False),
    (NEGATIVE, -0.0031, "-0.003", True),
    (SET, 5.46e-4, "0.00", False),
    (SET, 7.2e-3, "0.007", True),
]


def is_taken(domain, asked, text, tmp_path, capsys, **contexts):
    """Whether a sheet with this text in place of the asked number is told."""
    study = bx.Study(tmp_path / "study.db", RandomSearch(domain, **contexts))
    study.ask(actions=[[asked]], **({"context": [asked]} if contexts else {}))
    cells = {"trial": "0", "x0": text, "value": "5"}
    if contexts:
        cells = {"trial": "0", "x0": repr(asked), "context0": text, "value": "5"}
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n", encoding="utf-8")
    status = main(["tell", str(tmp_path / "study.db"), str(sheet)])
    assert (status == 0) == (study.strategy.history.values == {0: 5.0})
    assert (f"asked was {asked}" in capsys.readouterr().err) == (status == 2)
    return status == 0


@pytest.mark.parametrize(("domain", "asked", "text", "expected"), CASES)
def test_a_rounded_setting_is_near_on_the_scale_of_its_parameter(
    domain, asked, text, expected, tmp_path, capsys
):
    assert is_taken(domain, asked, text, tmp_path, capsys) == expected


@pytest.mark.parametrize(
    ("contexts", "text", "expected"),
    [
        (LOG, "0.007", True),
        (LOG, "0.01", False),
        (bx.FiniteSet([[0.0072], [0.9]]), "0.01", True),
        # Nobody knows the range: contexts are compared with the largest one.
        (1, "0.00720", True),
        (1, "0.007", False),
    ],
)
def test_a_rounded_context_too(contexts, text, expected, tmp_path, capsys):
    domain = bx.Box([(0.0, 1.0)])
    assert is_taken(domain, 0.0072, text, tmp_path, capsys, context_domain=contexts) == expected
