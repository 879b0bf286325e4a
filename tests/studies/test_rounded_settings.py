"""Numbers of a sheet that were rounded: how far from the asked ones they may be."""

import pytest

import botorch_ext as bx
from botorch_ext.exceptions import TableError
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.answer_sheets import answers_of
from botorch_ext.studies.csv_sheets import Sheet

DOMAINS = {
    "logarithmic": lambda: bx.Space(p=bx.Real(1e-4, 1e-1, log=True)),
    "logarithmic box": lambda: bx.Box([(1e-4, 1e-1)], log=[0]),
    "small": lambda: bx.Box([(0.0, 0.1)]),
    "large": lambda: bx.Space(p=bx.Real(0, 1000)),
    "beside zero": lambda: bx.Space(p=bx.Real(-1.0, -0.003)),
    "set": lambda: bx.FiniteSet([[1e-4], [5.46e-4], [7.2e-3], [1e-1]]),
}
CASES = [
    # Below the range, and elsewhere on the scale.
    ("logarithmic", 0.000546, "0.00", False),
    ("logarithmic", 0.0072, "0.01", False),
    ("logarithmic", 0.0072, "0.007", True),
    ("logarithmic", 0.0972, "0.10", True),
    ("logarithmic", 0.0999, "0.11", False),
    ("logarithmic", 0.000546, "5.5E-04", True),
    ("logarithmic", 0.000546, "0.000546", True),
    ("logarithmic box", 0.000546, "0.00", False),
    ("logarithmic box", 0.0072, "0.01", False),
    ("logarithmic box", 0.0072, "0.0072", True),
    ("small", 0.0432, "0.04", False),
    ("small", 0.0432, "0.043", True),
    ("small", 0.0432, "0.042", False),
    ("large", 413.4, "413", True),
    ("large", 413.4, "4.1E+02", True),
    ("large", 413.4, "4E+02", False),
    ("large", 413.4, "412.9", False),
    ("beside zero", -0.0031, "0.00", False),
    ("beside zero", -0.0031, "-0.003", True),
    ("beside zero", -0.9999, "-1.00", True),
    ("set", 5.46e-4, "0.00", False),
    ("set", 7.2e-3, "0.01", False),
    ("set", 7.2e-3, "0.007", True),
]


def is_taken(domain, asked, text, tmp_path, **contexts):
    """Whether a sheet with this text in place of the asked number is told."""
    study = bx.Study(tmp_path / "study.db", RandomSearch(domain, **contexts), objective="y")
    study.ask(actions=[[asked]], **({"context": [asked]} if contexts else {}))
    head = ["trial", "p" if isinstance(domain, bx.Space) else "x0", "y"]
    row = ["0", text, "5"]
    if contexts:
        head.insert(2, "context0")
        row = ["0", repr(asked), text, "5"]
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(f"{','.join(head)}\n{','.join(row)}\n", encoding="utf-8")
    try:
        return answers_of(study, Sheet.read(str(sheet))).values == {0: 5.0}
    except TableError as error:
        return False if f"asked was {asked}" in str(error) else None


@pytest.mark.parametrize(("kind", "asked", "text", "expected"), CASES)
def test_a_rounded_setting_is_near_on_the_scale_of_its_parameter(
    kind, asked, text, expected, tmp_path
):
    assert is_taken(DOMAINS[kind](), asked, text, tmp_path) == expected


@pytest.mark.parametrize(
    ("contexts", "text", "expected"),
    [
        (bx.Box([(1e-4, 1e-1)], log=[0]), "0.007", True),
        (bx.Box([(1e-4, 1e-1)], log=[0]), "0.01", False),
        (bx.FiniteSet([[0.0072], [0.9]]), "0.01", True),
        # Nobody knows the range: contexts are compared with the largest one.
        (1, "0.00720", True),
        (1, "0.007", False),
        (1, "0.01", False),
    ],
)
def test_a_rounded_context_too(contexts, text, expected, tmp_path):
    domain = bx.Box([(0.0, 1.0)])
    assert is_taken(domain, 0.0072, text, tmp_path, context_domain=contexts) == expected
