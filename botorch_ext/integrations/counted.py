"""Parameters of other tools as version 0.2.0 of the library had them: trials it asked go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botorch_ext.domains.choices import Choice, Fixed, Ordered
from botorch_ext.domains.parameters import Integer, Parameter, Real

# What the classes were called, and their arguments.
_RANGE = ("low", "high", "log", "step")
_FORMS: dict[type, tuple[str, tuple[str, ...]]] = {
    Real: ("Real", _RANGE),
    Integer: ("Whole", _RANGE),
    Choice: ("Choice", ("values",)),
    Ordered: ("Ordered", ("values",)),
    Fixed: ("Fixed", ("value",)),
}


@dataclass(frozen=True)
class Counted:
    """A range with steps whose column counts them from 0 on: the points of trials that are kept
    do so.

    Args:
        range: With steps.
    """

    range: Real | Integer

    is_whole, spacing, log, unit = True, None, False, None

    @property
    def ends(self) -> tuple[float, float]:
        """0 and the number of the last step."""
        return 0.0, float(self._steps.num)

    @property
    def line(self) -> tuple[float, float]:
        """(a, b) where the value is a + b times the number of the column."""
        return self._steps.value(0), float(self.range.spacing or 1)

    @property
    def rule(self) -> str:
        """What a value must be, as words that follow the name."""
        return self.range.rule

    def encoded(self, value: Any) -> float:
        """The number of the step of a value, or a ValueError whose message follows the name."""
        return float(round(self._steps.place(self.range.encoded(value))))

    def decoded(self, number: float) -> Any:
        """The value of the step of a number."""
        return self.range.decoded(self._steps.value(round(number)))

    @property
    def _steps(self) -> Any:
        return self.range.steps


def counted(parameter: Real | Integer) -> Parameter:
    """A range, by its steps where it has them."""
    return parameter if parameter.spacing is None else Counted(parameter)


def form_of(parameter: Parameter) -> dict[str, Any]:
    """The class of a parameter, and its arguments by name, as version 0.2.0 called them."""
    given = parameter.range if isinstance(parameter, Counted) else parameter
    kind, names = _FORMS[type(given)]
    return {"class": kind} | {name: getattr(given, name) for name in names}
