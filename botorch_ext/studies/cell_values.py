"""Cell values: what the texts of a sheet mean."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from botorch_ext.checks import short
from botorch_ext.exceptions import TableError
from botorch_ext.parameters import Choice, Parameter
from botorch_ext.studies.sheets import NumberCell, Sheet, harmless

_NUMBER = re.compile(r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?")
# The sign in such a number separates thousands or decimals.
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")
_SIGNS = {".": "point", ",": "comma"}


def decimal_of(
    sheet: Sheet,
    places: Mapping[str, int],
    parameters: Mapping[str, Parameter],
    note: str | None = None,
) -> str:
    """The decimal sign of the numbers of a sheet that are texts, which is one for the whole sheet.

    Where commas separate cells, it is a point. Elsewhere it is a comma if a number has one.

    Args:
        sheet: The sheet.
        places: From the names of columns to their places in the sheet.
        parameters: The parameters by name. Columns of choices are not looked at.
        note: The name of the column of notes, which is not looked at either.

    Raises:
        TableError: All numbers that have a sign are such as ``1.234``, which may be a thousand.
    """
    if sheet.decimal is not None:
        return sheet.decimal
    numeric = {
        head: place
        for head, place in places.items()
        if head != note and not isinstance(parameters.get(head), Choice)
    }
    numbers = [
        (row.number, head, text)
        for row in sheet.rows
        for head, place in numeric.items()
        if not isinstance(row.cells[place], NumberCell)
        for text in repeats_in(row.cells[place])
        if _NUMBER.fullmatch(_plain(text))
    ]
    if sheet.separator != "," and any("," in text for *_, text in numbers):
        return ","
    pointed = [each for each in numbers if "." in each[-1]]
    is_certain = sheet.separator in (",", "") or not pointed
    if not is_certain and all(_AMBIGUOUS.fullmatch(_plain(text)) for *_, text in pointed):
        number, head, text = pointed[0]
        raise TableError(
            sheet.origin.message(
                f"row {number}: {head} must not be ambiguous, got {text}, which is either {text} "
                f"or {text.replace('.', '')}: write it without a separator of thousands, or say "
                "which it is by decimal='.', or --decimal ."
            )
        )
    return "."


def number(text: str, decimal: str | None = None, unit: str | None = None) -> float:
    """The number of a text.

    Args:
        text: The text, or a `NumberCell`. It may end with ``%`` if that is the unit.
        decimal: The decimal sign of a text. None: either of point and comma.
        unit: The unit of the number.

    Raises:
        ValueError: The text is no number, has another decimal sign, or, where either sign may be
            there, is one such as ``1,234``. The message continues a sentence that begins with the
            name of the column.
    """
    plain = _plain(text)
    if text.endswith("%") and unit != "%":
        raise ValueError(
            f"must be a number without %, got {short(text)}: format the cell as a number"
        )
    if isinstance(text, NumberCell):
        return float(plain)
    if not _NUMBER.fullmatch(plain):
        raise ValueError(f"must be a number, got {short(text)}")
    if decimal is None:
        if "," in plain and _AMBIGUOUS.fullmatch(plain):
            raise ValueError(
                f"must not be ambiguous, got {text}: write {plain.replace(',', '')} or "
                f"{plain.replace(',', '.')}"
            )
    elif (other := "," if decimal == "." else ".") in plain:
        raise ValueError(
            f"must have a decimal {_SIGNS[decimal]} as the whole sheet has, got {text}: write all "
            f"texts alike. If they have a decimal {_SIGNS[other]} in a CSV file, save it with "
            "semicolons between the cells"
        )
    return float(plain.replace(",", "."))


def value(
    text: str, parameter: Parameter | None, decimal: str | None = None, unit: str | None = None
) -> Any:
    """The value of a parameter: one of the values of a choice, or a number. A text that is no value
    of its choice is returned as it is.

    Raises:
        ValueError: As `number`.
    """
    if not isinstance(parameter, Choice):
        return number(text, decimal, unit)
    # Blanks around the text of a cell are not kept.
    same = [
        each
        for each in parameter.values
        if text in [known.strip() for known in (str(each), harmless(str(each)))]
    ]
    return next(iter(same or [each for each in parameter.values if _is_meant(text, each)]), text)


def repeats_in(text: str) -> list[str]:
    """The texts of the results of repeats, which semicolons separate in a cell."""
    return [text] if isinstance(text, NumberCell) else [each.strip() for each in text.split(";")]


def trial_id(cell: Any) -> int | None:
    """The id of a trial that a cell has, such as 4 in ``4.0`` or ``"4,0"``; None where the cell is
    no whole number."""
    try:
        found = number(str(cell))
    except ValueError:
        return None
    return int(found) if found.is_integer() else None


def last_place(text: str) -> float:
    """The size of the last place that a number shows: 0.01 for ``3.25``, 0.001 for ``2.5e-2``, and
    1 for ``40``."""
    mantissa, _, power = _plain(text).lower().partition("e")
    decimals = len(mantissa.replace(",", ".").partition(".")[2])
    return 10.0 ** (int(power or 0) - decimals)


def _is_meant(text: str, known: Any) -> bool:
    """Whether a text stands for a value of a choice that it does not show exactly."""
    if isinstance(known, bool):  # spreadsheets write TRUE and FALSE
        return text.casefold() == str(known).casefold()
    try:
        return isinstance(known, int | float) and number(text.replace(",", ".")) == known
    except ValueError:
        return False


def _plain(text: str) -> str:
    """A text with hyphens in place of the minus signs of word processors, without a percent sign
    at its end."""
    return text.replace("\u2212", "-").removesuffix("%").rstrip()
