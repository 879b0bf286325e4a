"""Checks of events and trials that users pass or stores contain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from botorch_ext.checks import flag, is_text, one_number, short, whole_number
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.space import checked_parameters
from botorch_ext.exceptions import UnknownTrialError
from botorch_ext.strategies.events import (
    Abandoned,
    Asked,
    Event,
    FromElsewhere,
    Measured,
    Noted,
    Trial,
    Widened,
    is_outside_domain,
)

# The largest standard error and the largest of several observations, whose sum must be finite.
_LARGEST = 1e100
E = TypeVar("E", bound=Event)


def checked_event(event: E) -> E:
    """The event in plain form; raises an error if an argument is impossible."""
    if not isinstance(event, Asked | FromElsewhere):
        event = replace(event, id=_plain_id(event.id))
    match event:
        case Measured(value, outcomes, std, repeats):
            return replace(event, **measured(event.id, repeats or value, outcomes, std))
        case Abandoned(_, failed):
            return replace(event, failed=flag(failed, "failed"))
        case Noted(id, text) if not is_text(text):
            raise ValueError(f"text must be a text, got {short(text)} for trial {id}")
        case Widened(_, parameters, inside):
            if not isinstance(inside, tuple | list):
                raise ValueError(f"inside must be ids of trials, got {short(inside)}")
            ids = tuple(map(_plain_id, inside))
            return replace(event, parameters=checked_parameters(parameters, {}), inside=ids)
    return event


def measured(id: int, value: Any, outcomes: Any, std: Any) -> dict[str, Any]:
    """What was measured in a trial as plain numbers, by the names of the arguments of events. The
    value may be a list of repeats, of which the average counts, and the outcomes may be None."""
    whose = f" for trial {id}"
    if isinstance(value, list | tuple) and len(value) == 1:
        (value,) = value
    repeats = _repeats(value, whose)
    number = fmean(repeats) if repeats else one_number(value, "value", whose)
    if std is not None:
        std = one_number(std, "std", whose)
        if not 0 < std < math.inf:
            raise ValueError(f"std must be positive and finite, got {std}{whose}")
        if not 1 / _LARGEST < std < _LARGEST:  # its square has a limit
            limits = f"{1 / _LARGEST:g} and {_LARGEST:g}"
            raise ValueError(f"std must be between {limits}, got {std}{whose}")
    if outcomes is not None and not isinstance(outcomes, Mapping):
        raise ValueError(
            f"outcomes must be a dict of numbers by name, got {short(outcomes)}{whose}"
        )
    numbers = {}
    for name, given in (outcomes or {}).items():
        if not isinstance(name, str):
            raise ValueError(f"outcomes must have names that are texts, got {short(name)}{whose}")
        numbers[name] = one_number(given, f"outcomes[{name!r}]", whose)
        if not math.isfinite(numbers[name]):
            raise ValueError(f"outcomes[{name!r}] must be finite, got {numbers[name]}{whose}")
    return {"value": number, "outcomes": numbers, "std": std, "repeats": repeats}


def _repeats(value: Any, whose: str) -> tuple[float, ...]:
    """Several observations as plain numbers; none for a single one."""
    if isinstance(value, Tensor | np.ndarray) and value.ndim == 1 and len(value) > 1:
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return ()
    if not value:
        raise ValueError(f"value must be at least one number, got none{whose}")
    repeats = tuple(one_number(each, f"value[{i}]", whose) for i, each in enumerate(value))
    if not all(abs(each) < _LARGEST for each in repeats):  # False for NaN
        raise ValueError(
            f"value must be finite, and under {_LARGEST:g}, got {short(repeats)}{whose}"
        )
    return repeats


def require_outcomes(outcomes: Mapping[str, float], names: Sequence[str], who: str) -> None:
    """Raises a ValueError unless outcomes have exactly the names that a strategy needs."""
    if outcomes.keys() == set(names):
        return
    if not names:
        raise ValueError(f"outcomes must be None for {who}, which takes none, got {outcomes}")
    wanted, got = ", ".join(map(repr, names)), ", ".join(map(repr, outcomes)) or "none"
    raise ValueError(f"outcomes must have the names {wanted} for {who}, got {got}")


def require_plain_noise(event: Measured, reason: str | None, who: str) -> None:
    """Raises a ValueError if a result has a standard error or repeats, and a strategy takes none.

    Args:
        event: The event with the result.
        reason: Why the strategy takes none; None if it takes them.
        who: The name of the strategy, for the message.
    """
    if reason is None:
        return
    if event.std is not None:
        raise ValueError(f"std must be None for {who}, got {event.std}: {reason}")
    if event.repeats:
        raise ValueError(
            f"value must be one number for {who}, got {short(event.repeats)}: {reason}; their "
            "average is one observation"
        )


def id_of(given: Any, trials: Sequence[Trial]) -> int:
    """The id of a trial that is given as itself or as its id.

    Raises:
        UnknownTrialError: If it is neither one of the trials nor a possible id.
    """
    if not isinstance(given, Trial):
        with suppress(UnknownTrialError):
            return _plain_id(given)
        raise UnknownTrialError(
            f"id must be one trial, or its id, which is a whole number, got {short(given)}"
        )
    id = _plain_id(given.id)
    if 0 <= id < len(trials) and given.is_copy_of(trials[id]):
        return id
    if not (0 <= id < len(trials) and _coordinates(trials[id]) == _coordinates(given)):
        raise UnknownTrialError(
            f"id must be a trial that was asked here, or its id, got {short(given)}, which is none "
            "of this strategy or study"
        )
    return id


def _coordinates(trial: Trial) -> Any:
    """The point and the context as plain numbers, by which trials with the same id are compared;
    dtypes and devices may differ."""
    given = (trial.x, trial.context)
    return [each.tolist() if isinstance(each, Tensor) else each for each in given]


def require_point(trial: Trial, domain: Domain) -> None:
    """Raises a ValueError unless the point of a trial is in the domain and, on a finite set, is the
    point of its ``index``."""
    name = f"x of trial {trial.id}"
    if not isinstance(trial.x, Tensor):
        raise ValueError(f"{name} must be a tensor, got a {type(trial.x).__name__}")
    X = domain.require_contains(trial.x, name)
    if trial.x.ndim != 1:
        shape = f"({domain.dim},)"
        raise ValueError(f"{name} must have shape {shape}, got {tuple(trial.x.shape)}")
    if not isinstance(domain, FiniteSet):
        return
    row = trial.info.get("index")
    if (
        not isinstance(row, int)
        or not 0 <= row < domain.num_points
        or not torch.equal(domain.points[row : row + 1], X)
    ):
        raise ValueError(f"{name} must be the point of its index, got index {row}")


def are_members(events: Sequence[Event], domain: Domain) -> bool:
    """Whether all points of events are in the domain and, on a finite set, are the points of their
    ``index``. Checking all points at once takes as long as checking one."""
    trials = [
        event.trial
        for event in events
        if isinstance(event, Asked)
        or (isinstance(event, FromElsewhere) and not is_outside_domain(event.trial))
    ]
    like, dim = domain.like, domain.dim
    for trial in trials:
        x = getattr(trial, "x", None)
        if not isinstance(x, Tensor) or x.shape != (dim,):
            return False
        if x.dtype != like.dtype or x.device != like.device:
            return False
    if not trials:
        return True
    X = torch.stack([trial.x for trial in trials])
    if not isinstance(domain, FiniteSet):
        return bool(X.isfinite().all()) and bool(domain.contains(X).all())
    rows = [isinstance(trial.info, dict) and trial.info.get("index") for trial in trials]
    if not all(type(row) is int and 0 <= row < domain.num_points for row in rows):
        return False
    return torch.equal(domain.points[rows], X)


def _plain_id(id: Any) -> int:
    return whole_number(id, "id", error=UnknownTrialError)
