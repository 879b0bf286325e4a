"""Proposing a space from earlier results."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botorch_ext.aligned import printable
from botorch_ext.commands.result_columns import ResultColumns, result_columns
from botorch_ext.exceptions import StudyError
from botorch_ext.page.words import counted
from botorch_ext.studies.cell_values import last_place, number
from botorch_ext.studies.sheets import Sheet

# Numbers above 0 whose ends are this far apart are proposed on a logarithmic scale.
_WIDE = 100.0
# A range has this many steps at least.
_FEWEST_STEPS = 10
# Numbers with more digits after the point are proposed without steps.
_MOST_DIGITS = 6
# So many different whole numbers without a unit count something.
_LEAST_COUNTS = 5
# A real whose ends are larger is written with a point.
_LARGEST_WHOLE = 1e15
_ADVICE = """\
Ranges and choices are those of the results. Check them before you begin the study:
low and high are the smallest and largest value that is ever asked: widen them.
digits = 1 asks one decimal place; step = 0.5 in its place asks halves.
type = "integer", without digits and step, asks whole numbers; "real" asks others.
values may have more choices than those of the results.
constraints = ["a + b <= 60"] may stand here, above the first line in [brackets].
"""


def propose(given: argparse.Namespace) -> str:
    """Writes the file of a space whose parameters have the values of earlier results. The last
    column of numbers has the results unless an objective is named. No study is begun: the file is
    to be checked before."""
    if Path(given.place).exists():
        raise StudyError(f"{given.place} is there already: a new study needs a file of its own")
    if Path(given.space).exists():
        raise StudyError(
            f"{given.space} is there already, and --from would replace it: name another file, or "
            "leave out --from to begin the study with this one"
        )
    sheet = Sheet.read(given.from_results, given.separator, given.decimal)
    found = result_columns(sheet, given.objective, given.outcome)
    notes = _notes(found)
    text = "".join(
        f"# {printable(line)}\n"
        for line in (f"Proposed from {given.from_results}.", *_ADVICE.splitlines(), *notes)
    )
    for column in found.parameters:
        texts = [text for _, text in column.cells(found.rows)]
        entries = _entries(texts, found.decimal, column.unit)
        # Choices have no unit: what looks like one belongs to the name.
        name = column.head if entries["type"] == "choice" else column.name
        lines = "".join(f"{key} = {_as_toml(value)}\n" for key, value in entries.items())
        text += f"\n[parameters.{_as_toml(name)}]\n{lines}"
    for column in found.outcomes:
        text += f"\n[outcomes.{_as_toml(column.name)}]\n# at_most = 5.0, or at_least\n"
        text += f"unit = {_as_toml(column.unit)}\n" if column.unit else ""
    with Path(given.space).open("x", encoding="utf-8", newline="") as file:
        file.write(text)
    objective = found.objective
    how = "" if given.objective else ", the last column of numbers; --objective names another one"
    said = [
        f"wrote {given.space} with {counted(len(found.parameters), 'parameter')}",
        f"result: {objective.name}{how}",
        *notes,
        "Check the file, and begin the study:",
    ]
    command = ["new", given.place, given.space, "--objective", objective.name]
    command += ["--unit", objective.unit] if objective.unit else []
    command += ["--minimize"] if given.minimize else []
    lines = "".join(f"{printable(line)}\n" for line in said)
    return f"{lines}botorch-ext {shlex.join(command)}\n"


def _notes(found: ResultColumns) -> list[str]:
    """What of a table is not used."""
    columns = ", ".join(f"{name} ({what})" for name, what in found.left_out.items())
    rows = ", ".join(map(str, found.without_result))
    return [
        *([f"left out: {columns}"] if columns else []),
        *([f"rows without a result: {rows}"] if rows else []),
    ]


def _entries(texts: Sequence[str], decimal: str, unit: str | None) -> dict[str, Any]:
    """The entries of a parameter that has some values, which it contains."""
    try:
        values = [number(text, decimal, unit) for text in texts]
    except ValueError:
        return {"type": "choice", "values": list(dict.fromkeys(texts))}
    low, high = min(values), max(values)
    digits = max(0, *(-round(math.log10(last_place(text))) for text in texts))
    is_counted = low == high or (not unit and len(set(values)) >= _LEAST_COUNTS)
    is_whole = is_counted and digits == 0 and all(value.is_integer() for value in values)
    found = {"type": "integer" if is_whole else "real", "low": _plain(low), "high": _plain(high)}
    if 0 < low and high / low >= _WIDE:
        found["log"] = True
    elif not is_whole:
        if low < high:
            digits = max(
                digits, math.ceil(round(math.log10(_FEWEST_STEPS) - math.log10(high - low), 9))
            )
        if digits <= _MOST_DIGITS:
            found["digits"] = digits
    return found | ({"unit": unit} if unit else {})


def _plain(value: float) -> float | int:
    """A number, without a point where it is whole."""
    return int(value) if value.is_integer() and abs(value) < _LARGEST_WHOLE else value


def _as_toml(value: Any) -> str:
    """A value as TOML, which writes texts, lists and truth values as JSON does."""
    return json.dumps(value, ensure_ascii=False)
