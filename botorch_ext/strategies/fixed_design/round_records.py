"""What ``info`` records about rounds, and how it is read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from botorch_ext.checks import amount
from botorch_ext.domains import Domain, FiniteSet

# The phases of a round: free steps, then either a block of planned points and a wait for their
# observations, or a rest if the block would not have been useful.
PHASES = ("free", "block", "wait", "rest")


@dataclass(frozen=True, eq=False)
class Choice:
    """The plan of a round.

    Args:
        plan: The ``t_r`` points in the order of asking: rows of the finite set, or coordinates.
        std: The ``t_r`` standard deviations, each given the points before it.
        volume: The share of the domain that the points were chosen from.
        volume_error: The standard error of ``volume``, which is an estimate on a box.
    """

    plan: list[Any]
    std: list[float]
    volume: float
    volume_error: float

    @classmethod
    def recorded(cls, record: dict[str, Any], domain: Domain) -> Self:
        """The plan in the ``info`` of a trial.

        Raises:
            KeyError: If an entry is missing.
            ValueError: If a point is not in the domain, if the numbers of points and of standard
                deviations differ, or if a number is impossible.
        """
        choice = cls(**{name: record[name] for name in cls.__annotations__})
        if len(choice.std) != len(choice.plan):
            raise ValueError(f"std must be {len(choice.plan)} numbers, got {len(choice.std)}")
        for name in ("std", "volume", "volume_error"):
            for number in choice.std if name == "std" else [record[name]]:
                amount(number, f"{name} of the plan", "non-negative and finite")
        if isinstance(domain, FiniteSet):
            for row in choice.plan:
                if type(row) is not int or not 0 <= row < domain.num_points:
                    raise ValueError(f"plan must be rows of {domain.num_points} points, got {row}")
        elif choice.plan:
            domain.require_contains(choice.plan, "plan")
        return choice


def recorded_phase(record: dict[str, Any]) -> str:
    """The phase in the ``info`` of a trial; raises a ValueError if it is none."""
    phase = record["phase"]
    if phase not in PHASES:
        raise ValueError(f"phase must be one of {PHASES}, got {phase!r}")
    return phase
