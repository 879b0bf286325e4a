"""Records of the first trial of a round or a level, checked where they come from elsewhere."""

from __future__ import annotations

import math
import reprlib
from typing import Any

from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.strategies.fixed_design.arenas import Choice


def check_opening(
    record: Any, name: str, domain: Domain, least: int, most: int, arrived: bool | None
) -> None:
    """A ValueError unless a record has all that a round needs.

    Args:
        record: What was recorded.
        name: What it is called in messages.
        domain: Where the method asks.
        least: The fewest points the round may plan.
        most: The most.
        arrived: Whether the round before had observations; None for the first round.
    """
    required = set(Choice.__annotations__)
    if arrived is not None:
        required |= {"threshold", "argmax"}
    if not isinstance(record, dict) or not required <= record.keys():
        got = list(record) if isinstance(record, dict) else record
        raise ValueError(f"{name} must be a dict with {sorted(required)}, got {got}")
    _check_plan(record["plan"], name, domain, least, most)
    std, length = record["std"], len(record["plan"])
    if not _are_numbers(std, length) or min(std, default=0) < 0:
        got = reprlib.repr(std)
        raise ValueError(f"std in the {name} must be {length} numbers, at least 0, got {got}")
    for key in ("volume", "volume_error"):
        if not _are_numbers([record[key]], 1):
            raise ValueError(f"{key} in the {name} must be a number, got {record[key]!r}")
    if arrived is not None:
        _check_closing(record["threshold"], record["argmax"], name, domain, arrived)


def check_cut(record: Any, name: str, domain: Domain) -> None:
    """A ValueError unless a record has a threshold, its argmax, a certificate and a volume."""
    numbers = ("threshold", "certificate", "volume", "volume_error")
    if not isinstance(record, dict) or not {"argmax", *numbers} <= record.keys():
        got = list(record) if isinstance(record, dict) else record
        raise ValueError(f"{name} must be a dict with {sorted(('argmax', *numbers))}, got {got}")
    for key in numbers[1:]:
        if not _are_numbers([record[key]], 1) or record[key] < 0:
            raise ValueError(f"{key} in the {name} must be at least 0, got {record[key]!r}")
    _check_closing(record["threshold"], record["argmax"], name, domain, True)


def check_kept(record: Any, name: str) -> None:
    """A ValueError unless a record has the cells that were kept at each of some levels (None for
    all of them, or their ascending rows), and how many children were too many after those."""
    kept = record.get("kept") if isinstance(record, dict) else None
    crowded = record.get("crowded") if isinstance(record, dict) else None
    if not isinstance(kept, list) or type(crowded) not in (int, type(None)):
        raise ValueError(f"{name} must be a dict with a list of what was kept, got {record!r}")
    if not kept and crowded is None:
        raise ValueError(f"{name} must have a level of which cells were kept, got {record!r}")
    for rows in kept:
        if rows is None:
            continue
        whole = isinstance(rows, list) and all(type(row) is int and row >= 0 for row in rows)
        if not whole or not rows or rows != sorted(set(rows)):
            raise ValueError(
                f"kept in the {name} must be None or ascending rows, got {reprlib.repr(rows)}"
            )


def _check_plan(planned: Any, name: str, domain: Domain, least: int, most: int) -> None:
    if not isinstance(planned, list) or not least <= len(planned) <= most:
        got = len(planned) if isinstance(planned, list) else repr(planned)
        count = most if least == most else f"{least} to {most}"
        raise ValueError(f"{name} must plan {count} points, got {got}")
    if isinstance(domain, FiniteSet):
        N = domain.num_points
        wrong = [row for row in planned if type(row) is not int or not 0 <= row < N]
        if wrong:
            raise ValueError(f"plan in the {name} must be rows of {N} points, got {wrong[0]!r}")
    elif planned:
        domain.require_contains(planned, f"plan in the {name}")


def _check_closing(threshold: Any, argmax: Any, name: str, domain: Domain, arrived: bool) -> None:
    if not arrived:
        if threshold is not None or argmax is not None:
            raise ValueError(
                f"threshold and argmax in the {name} must be None, as nothing has arrived, "
                f"got {threshold!r} and {argmax!r}"
            )
        return
    if not _are_numbers([threshold], 1):
        raise ValueError(f"threshold in the {name} must be a number, got {threshold!r}")
    if not _are_numbers(argmax, domain.dim):
        raise ValueError(f"argmax in the {name} must be {domain.dim} numbers, got {argmax!r}")
    domain.require_contains(argmax, f"argmax in the {name}")


def _are_numbers(values: Any, count: int) -> bool:
    """Whether this is a list of so many finite numbers."""
    return (
        isinstance(values, list)
        and len(values) == count
        and all(type(value) in (int, float) and math.isfinite(value) for value in values)
    )
