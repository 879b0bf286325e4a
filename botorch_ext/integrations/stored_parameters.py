"""Parameters of other tools as version 0.2.0 of the library had them, so its studies resume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from botorch_ext.domains.choices import Choice, Fixed, Ordered
from botorch_ext.domains.parameters import Integer, Parameter, Real

# The names of the classes in version 0.2.0, and their arguments.
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
    """A range with steps whose column holds the number of the step, from 0, as in stored trials.

    Args:
        range: The range, with steps.
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
        """What a value must be, in words that follow the name of the parameter."""
        return self.range.rule

    def encoded(self, value: Any) -> float:
        """The number of a value in a point.

        Args:
            value: A value of the range.

        Returns:
            The number of its step.

        Raises:
            ValueError: If the range does not have the value; the message is meant to follow the
                name of the parameter.
        """
        return float(round(self._steps.place(self.range.encoded(value))))

    def decoded(self, number: float) -> Any:
        """The value that a number in a point stands for.

        Args:
            number: The number of a step.

        Returns:
            The value.
        """
        return self.range.decoded(self._steps.value(round(number)))

    @property
    def _steps(self) -> Any:
        return self.range.steps


def counted(parameter: Real | Integer) -> Parameter:
    """A range whose column holds the number of the step, if it has steps.

    Args:
        parameter: The range.

    Returns:
        A `Counted` range; the range itself if it has no steps.
    """
    return parameter if parameter.spacing is None else Counted(parameter)


def form_of(parameter: Parameter) -> dict[str, Any]:
    """The description of a parameter in the terms of version 0.2.0.

    Args:
        parameter: The parameter.

    Returns:
        The class, and the arguments by name.
    """
    given = parameter.range if isinstance(parameter, Counted) else parameter
    kind, names = _FORMS[type(given)]
    return {"class": kind} | {name: getattr(given, name) for name in names}
