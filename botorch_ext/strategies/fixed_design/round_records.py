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


@dataclass(frozen=True, eq=False)
class Cut:
    """The certificate of the points that an elimination leaves.

    Args:
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
        certificate: The largest upper bound of the survivors minus their smallest lower bound: no
            survivor has more regret.
        volume: The share of the domain that survives.
        volume_error: The standard error of ``volume``, which is an estimate on a box.
    """

    threshold: float
    argmax: list[float]
    certificate: float
    volume: float
    volume_error: float

    @classmethod
    def recorded(cls, record: dict[str, Any], name: str, domain: Domain) -> Self:
        """The cut in the ``info`` of a trial, under this name.

        Raises:
            KeyError: If an entry is missing.
            ValueError: If ``argmax`` is not in the domain, or if a number is impossible.
        """
        recorded_threshold(record, name, domain)
        for key in ("certificate", "volume", "volume_error"):
            amount(record[key], f"{key} of the {name}", "non-negative and finite")
        return cls(**{name: record[name] for name in cls.__annotations__})


def recorded_threshold(
    record: dict[str, Any], name: str, domain: Domain
) -> tuple[float, list[float]]:
    """The largest lower bound and its place in a record with this name.

    Raises:
        KeyError: If an entry is missing.
        ValueError: If the place is not in the domain, or if the number is impossible.
    """
    threshold = amount(record["threshold"], f"threshold of the {name}", "finite")
    domain.require_contains(record["argmax"], f"argmax of the {name}")
    return threshold, record["argmax"]


def recorded_phase(record: dict[str, Any]) -> str:
    """The phase in the ``info`` of a trial; raises a ValueError if it is none."""
    phase = record["phase"]
    if phase not in PHASES:
        raise ValueError(f"phase must be one of {PHASES}, got {phase!r}")
    return phase


def recorded_promise(record: dict[str, Any]) -> float:
    """The largest standard deviation that a recorded plan leaves; raises a ValueError if the number
    is impossible."""
    return amount(record["promise"], "promise", "non-negative and finite")
