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
# The context is 0.0072: its space or number of columns, the text in the sheet, whether it is taken.
CONTEXTS = [
    (LOG, "0.007", True),
    (LOG, "0.01", False),
    (bx.FiniteSet([[0.0072], [0.9]]), "0.01", True),
    # Nobody knows the range: contexts are compared with the largest one.
    (1, "0.00720", True),
    (1, "0.007", False),
]


@pytest.mark.parametrize("is_context", [False, True])
def test_a_rounded_setting_is_near_on_the_scale_of_its_parameter(is_context, tmp_path, capsys):
    for number, (space, *asked, text, expected) in enumerate(CONTEXTS if is_context else CASES):
        place, sheet = tmp_path / f"{number}.db", tmp_path / "sheet.csv"
        exact = asked[0] if asked else 0.0072
        domain, more = (bx.Box([(0, 1)]), {"context_domain": space}) if is_context else (space, {})
        study = bx.Study(place, RandomSearch(domain, **more))
        study.ask(actions=[[exact]], **({"context": [exact]} if is_context else {}))
        cells = {"trial": "0", "x0": repr(exact) if is_context else text, "value": "5"}
        cells |= {"context0": text} if is_context else {}
        sheet.write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n", encoding="utf-8")
        assert main(["tell", str(place), str(sheet)]) == (0 if expected else 2), (space, text)
        assert study.strategy.history.values == ({0: 5.0} if expected else {})
        assert (f"asked was {exact}" in capsys.readouterr().err) == (not expected)
