"""Cell values: what the texts of a sheet mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from botorch_ext.checks import short
from botorch_ext.domains.choices import Choice, Fixed
from botorch_ext.domains.parameters import Parameter
from botorch_ext.studies.csv_sheets import Sheet, harmless

_SIGN, _POWER = r"[+-]?", r"(?:[eE][+-]?\d+)?"
_WITH_POINT = re.compile(rf"{_SIGN}(?:\d+\.?\d*|\.\d+){_POWER}")
_WITH_COMMA = re.compile(rf"{_SIGN}(?:\d+,\d*|,\d+){_POWER}")
# The sign in such a number separates thousands or decimals.
_AMBIGUOUS = re.compile(rf"{_SIGN}[1-9]\d{{0,2}}[.,]\d{{3}}")
_SWAPPED = str.maketrans(".,", ",.")


@dataclass(frozen=True)
class CellValues:
    """How the numbers of a sheet are written.

    A number such as ``1.234`` is 1.234 or 1234. Where commas separate cells, its point is a decimal
    point. Elsewhere decimal commas are expected: ``1,234`` is then 1.234, and ``1.234`` is refused.
    A number that can be read in one way alone, such as ``61.5``, shows that a sheet has decimal
    points: ``1.234`` is then 1.234, and ``1,234`` is refused.

    Args:
        takes_commas: Whether numbers may have decimal commas, because commas do not separate cells.
        has_commas: Whether a number certainly has a decimal comma.
        has_points: Whether a number certainly has a decimal point.
    """

    takes_commas: bool
    has_commas: bool
    has_points: bool

    @classmethod
    def of(
        cls, sheet: Sheet, places: Mapping[str, int], parameters: Mapping[str, Parameter]
    ) -> CellValues:
        """Finds out how the numbers of a sheet are written.

        Args:
            sheet: The sheet.
            places: From the names of columns to their places in the sheet.
            parameters: The parameters by name. Columns of choices are not looked at.
        """
        numeric = [
            place
            for name, place in places.items()
            if not isinstance(parameters.get(name), Choice | Fixed)
        ]
        texts = [_plain_sign(row.cells[place]) for row in sheet.rows for place in numeric]
        return cls(
            sheet.delimiter != ",",
            _some(_WITH_COMMA, texts),
            _some(_WITH_POINT, (text for text in texts if "." in text)),
        )

    def number(self, text: str) -> float:
        """The number of a text.

        Raises:
            ValueError: The text is no number, or can be read as two numbers. The message continues
                a sentence that begins with the name of the column.
        """
        plain = _plain_sign(text)
        has_comma = _WITH_COMMA.fullmatch(plain) is not None
        if has_comma and not self.takes_commas:
            raise ValueError(
                f"must have a decimal point where commas separate cells, got {text}: write a "
                "point, or save the file with semicolons"
            )
        expects_points = (self.has_points and not self.has_commas) or not self.takes_commas
        is_expected = not self.has_points if has_comma else expects_points
        if not is_expected and _AMBIGUOUS.fullmatch(plain):
            digits = plain.replace(".", "").replace(",", "")
            raise ValueError(
                f"must not be ambiguous, got {text}, which is either {plain.replace(',', '.')} or "
                f"{digits}: write {digits} or {plain.translate(_SWAPPED)}"
            )
        if has_comma:
            plain = plain.replace(",", ".")
        if not _WITH_POINT.fullmatch(plain):
            raise ValueError(f"must be a number, got {short(text)}")
        return float(plain)

    def value(self, text: str, parameter: Parameter | None) -> Any:
        """The value of a parameter: one of the values of a choice, or a number. A text that is no
        value of its choice is returned as it is.

        Raises:
            ValueError: As `number`.
        """
        if not isinstance(parameter, Choice | Fixed):
            return self.number(text)
        values = parameter.values if isinstance(parameter, Choice) else [parameter.value]
        # Blanks around the text of a cell are not kept.
        same = [
            value
            for value in values
            if text in [each.strip() for each in (str(value), harmless(str(value)))]
        ]
        return next(iter(same or [each for each in values if self._is_meant(text, each)]), text)

    def _is_meant(self, text: str, value: Any) -> bool:
        if isinstance(value, bool):  # spreadsheets write TRUE and FALSE
            return text.casefold() == str(value).casefold()
        try:
            return isinstance(value, int | float) and self.number(text) == value
        except ValueError:
            return False


#: How one number is written that somebody types: with a decimal point or a decimal comma.
TYPED = CellValues(takes_commas=True, has_commas=False, has_points=True)


def trial_id(cell: Any, read: CellValues = TYPED) -> int | None:
    """The id of a trial that a cell has, such as 4 in ``4.0`` or ``"4.0"``; None where the cell is
    no whole number.

    Args:
        cell: A number or a text.
        read: How numbers are written.
    """
    try:
        number = read.number(str(cell))
    except ValueError:
        return None
    return int(number) if number.is_integer() else None


def last_place(text: str) -> float:
    """The size of the last place that a number shows: 0.01 for ``3.25``, 0.001 for ``2.5e-2``, and
    1 for ``40``."""
    mantissa, _, power = _plain_sign(text).lower().partition("e")
    decimals = len(mantissa.replace(",", ".").partition(".")[2])
    return 10.0 ** (int(power or 0) - decimals)


def _plain_sign(text: str) -> str:
    """A text with hyphens in place of the minus signs of word processors."""
    return text.replace("\u2212", "-")


def _some(pattern: re.Pattern[str], texts: Iterable[str]) -> bool:
    """Whether one of some texts is a number that certainly is written like that."""
    return any(pattern.fullmatch(text) and not _AMBIGUOUS.fullmatch(text) for text in texts)
