"""Cell values: what the texts of a sheet mean."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from botorch_ext.checks import short
from botorch_ext.domains.choices import Choice, Fixed
from botorch_ext.domains.parameters import Parameter
from botorch_ext.studies.csv_sheets import Sheet, harmless

_SIGN, _POWER = r"[+-]?", r"(?:[eE][+-]?\d+)?"
_WITH_POINT = re.compile(rf"{_SIGN}(?:\d+\.?\d*|\.\d+){_POWER}")
_WITH_COMMA = re.compile(rf"{_SIGN}(?:\d+,\d*|,\d+){_POWER}")
# What may be a thousand or three decimals.
_THOUSANDS = re.compile(rf"{_SIGN}[1-9]\d{{0,2}}[.,]\d{{3}}")


@dataclass(frozen=True)
class CellValues:
    """How the numbers of a sheet are written.

    Args:
        takes_commas: Whether a number may have a decimal comma: cells are not separated by commas.
        has_commas: Whether a number has one.
        has_points: Whether a number has a decimal point.
    """

    takes_commas: bool
    has_commas: bool
    has_points: bool

    @classmethod
    def of(cls, sheet: Sheet) -> CellValues:
        """As the numbers of a sheet are written."""
        texts = [cell for row in sheet.rows for cell in row.cells]
        return cls(
            sheet.delimiter != ",",
            _some(_WITH_COMMA, texts),
            _some(_WITH_POINT, (text for text in texts if "." in text)),
        )

    def number(self, text: str) -> float:
        """The number of a text.

        Raises:
            ValueError: No number, or one that can be read in two ways; the message follows the name
                of what it is.
        """
        plain = text.replace("\u2212", "-")
        if _WITH_COMMA.fullmatch(plain) and not self.takes_commas:
            raise ValueError(
                f"must have a decimal point where commas separate cells, got {text}: write a "
                "point, or save the file with semicolons"
            )
        others = self.has_points if "," in plain else self.has_commas
        if others and _THOUSANDS.fullmatch(plain):
            raise ValueError(
                f"must be written without a sign for thousands, got {text}, where other numbers "
                f"have decimal {'points' if ',' in plain else 'commas'}"
            )
        if _WITH_COMMA.fullmatch(plain):
            plain = plain.replace(",", ".")
        if not _WITH_POINT.fullmatch(plain):
            raise ValueError(f"must be a number, got {short(text)}")
        return float(plain)

    def value(self, text: str, parameter: Parameter | None) -> Any:
        """The value of a parameter, None of a number without one.

        Raises:
            ValueError: As `number`, or no value that there is.
        """
        if isinstance(parameter, Choice | Fixed):
            values = parameter.values if isinstance(parameter, Choice) else [parameter.value]
            for value in values:
                if self._is_meant(text, value):
                    return value
            return text  # which is refused where it is no value
        return self.number(text)

    def _is_meant(self, text: str, value: Any) -> bool:
        if text in (str(value), harmless(str(value))):
            return True
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        try:
            return self.number(text) == value
        except ValueError:
            return False


def _some(pattern: re.Pattern[str], texts: Iterable[str]) -> bool:
    """Whether one of some texts is a number that is surely written like that."""
    return any(pattern.fullmatch(text) and not _THOUSANDS.fullmatch(text) for text in texts)
