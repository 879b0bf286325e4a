"""What a parameter is: the values it takes, and the column of a point that holds them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any


class Parameter(ABC):
    """A parameter, which checks its values and writes them as numbers of a column."""

    #: Whether the column has a logarithmic scale.
    log: bool = False
    #: The unit of the values, for people; None if they have none.
    unit: str | None = None
    #: (a, b) if the value is a + b times the number of the column; otherwise None.
    line: tuple[float, float] | None = None
    #: What `may_become` lets change, in words.
    growth: str = "no change"

    @property
    @abstractmethod
    def ends(self) -> tuple[float, float]:
        """The least and the largest number of the column; both are equal if there is no column."""

    @property
    def is_whole(self) -> bool:
        """Whether the column takes all whole numbers between the ends."""
        return False

    @property
    def spacing(self) -> float | None:
        """The distance between neighbouring numbers of the column, if they have steps other than
        all whole numbers; otherwise None."""
        return None

    def may_become(self, wider: Parameter) -> bool:
        """Whether a wider parameter can take the place of this one: it has all values of this one,
        as the same numbers of the column, and differs in nothing else."""
        return self == wider

    @property
    @abstractmethod
    def rule(self) -> str:
        """What a value must be, in words that follow the name of the parameter."""

    @abstractmethod
    def encoded(self, value: Any) -> float:
        """The number of a value in a point.

        Args:
            value: A value of the parameter; a number may differ from a step by rounding.

        Returns:
            The number: for a choice the position of the value, and with steps the exact step.

        Raises:
            ValueError: If the parameter cannot take the value; the message is meant to follow the
                name of the parameter.
        """

    @abstractmethod
    def decoded(self, number: float) -> Any:
        """The value that a number in a point stands for.

        Args:
            number: A number of the column; it may have been rounded to fewer digits.
        """
