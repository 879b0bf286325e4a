"""Proposing a space from earlier results."""

from __future__ import annotations

import argparse
import json
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botorch_ext.checks import did_you_mean
from botorch_ext.exceptions import StudyError, TableError
from botorch_ext.page.words import counted
from botorch_ext.studies.cell_values import decimal_of, last_place, number
from botorch_ext.studies.column_heads import TRIAL, is_written, name_and_unit
from botorch_ext.studies.sheets import Sheet

# Numbers above 0 whose ends are this far apart are proposed on a logarithmic scale.
_WIDE = 100.0
# Numbers with more digits after the point are proposed without steps.
_MOST_DIGITS = 6


def propose(given: argparse.Namespace) -> str:
    """Writes the file of a space whose parameters have the values of earlier results. The last
    column has the results unless an objective is named. No study is begun: the file is to be
    checked before."""
    if Path(given.place).exists():
        raise StudyError(f"{given.place} is there already: a new study needs a file of its own")
    sheet = Sheet.read(given.from_results)
    parameters, objective, unit = _columns(sheet, given.objective)
    text = f"# Proposed from {given.from_results}: check the ranges, and widen them where needed.\n"
    for name, entries in parameters.items():
        lines = "".join(f"{key} = {_as_toml(value)}\n" for key, value in entries.items())
        text += f"\n[parameters.{_as_toml(name)}]\n{lines}"
    with Path(given.space).open("x", encoding="utf-8", newline="") as file:
        file.write(text)
    command = ["new", given.place, given.space, "--objective", objective]
    command += ["--unit", unit] if unit else []
    command += ["--minimize"] if given.minimize else []
    return (
        f"wrote {given.space} with {counted(len(parameters), 'parameter')}. Check it, and begin "
        f"the study:\nbotorch-ext {shlex.join(command)}\n"
    )


def _columns(
    sheet: Sheet, objective: str | None
) -> tuple[dict[str, dict[str, Any]], str, str | None]:
    """The entries of each parameter, the name of the objective, and its unit."""
    places = {
        head: place
        for place, head in enumerate(sheet.heads)
        if head and head.casefold() != TRIAL and not is_written(head)
    }
    names = {head: name_and_unit(head) for head in places}
    wanted = [*names.values()][-1][0] if objective is None and names else objective
    found = [head for head, (name, _) in names.items() if wanted in (name, head)]
    if len(found) != 1:
        hint = did_you_mean(wanted, [name for name, _ in names.values()]) if wanted else ""
        raise TableError(
            sheet.origin.message(f"one column must be the objective, got {wanted!r}{hint}")
        )
    decimal = decimal_of(sheet, places, {})
    parameters = {}
    for head, place in places.items():
        name, unit = names[head]
        texts = [row.cells[place] for row in sheet.rows if row.cells[place]]
        if head in found or not texts:
            continue
        if name in parameters:
            raise TableError(sheet.origin.message(f"column {name} is there twice"))
        parameters[name] = _entries(texts, decimal) | ({"unit": unit} if unit else {})
    if not parameters:
        raise TableError(sheet.origin.message("there is no column of a parameter with values"))
    name, unit = names[found[0]]
    return parameters, name, unit


def _entries(texts: Sequence[str], decimal: str) -> dict[str, Any]:
    """The entries of a parameter that has some values."""
    try:
        values = [number(text, decimal) for text in texts]
    except ValueError:
        return {"type": "choice", "values": list(dict.fromkeys(texts))}
    low, high = min(values), max(values)
    is_wide = 0 < low and high / low >= _WIDE
    digits = max(-round(math.log10(last_place(text))) for text in texts)
    if all(value.is_integer() for value in values) and digits <= 0:
        found = {"type": "integer", "low": int(low), "high": int(high)}
    else:
        found = {"type": "real", "low": low, "high": high}
        if not is_wide and 0 <= digits <= _MOST_DIGITS:
            found["digits"] = digits
    return found | ({"log": True} if is_wide else {})


def _as_toml(value: Any) -> str:
    """A value as TOML, which writes texts, lists and truth values as JSON does."""
    return json.dumps(value, ensure_ascii=False)
