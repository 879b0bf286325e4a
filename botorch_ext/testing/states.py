"""The observable state of a strategy, how near two of them are, and how to spoil what was read."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.strategies import Strategy, Trial
from botorch_ext.strategies.event_lines import as_text


def reading(strategy: Strategy) -> dict[str, Any]:
    """The observable state besides the events, with exact numbers."""
    return {"report": strategy.report(), "pending": strategy.pending}


def state(strategy: Strategy) -> dict[str, Any]:
    """The whole observable state, also of bases, with predictions at some points."""
    shown = {"events": [as_text(event) for event in strategy.events]} | reading(strategy)
    shown["beliefs"] = beliefs(strategy)
    if hasattr(strategy, "bases"):
        bases: Any = strategy
        shown["bases"] = [state(base) for base in bases.bases]
    return shown


@torch.no_grad()
def beliefs(strategy: Any) -> list[Any]:
    """The predictions of models, with pending trials as the policy says, and the state of tests."""
    shown: list[Any] = [list(getattr(strategy, name, [])) for name in ("alive", "names")]
    shown.append([vars(test) for test in getattr(strategy, "tests", [])])
    space = strategy.context_space
    posterior = getattr(strategy, "posterior", None)
    if posterior is not None:
        shown.append(posterior.num_observations)
        if hasattr(posterior, "std"):
            shown += [posterior.mean.tolist(), posterior.std.tolist()]
        else:
            X = strategy.domain.sample(4, seed=1)
            if space is not None:
                X = torch.cat([X, _some_context(strategy).expand(len(X), -1)], dim=-1)
            shown += [value.tolist() for value in posterior.mean_and_std(X)]
    if hasattr(strategy, "bands"):
        context = None if space is None else _some_context(strategy)
        bands = strategy.bands(strategy.domain.sample(4, seed=1), context)
        shown += [value.tolist() for value in bands]
    return shown


def question(strategy: Strategy, offer: dict[str, Any]) -> Any:
    """Ask for the next trial; the trial in plain numbers, or why there is none."""
    try:
        trial = strategy.ask(**offer)
    except WaitingForObservations as waits:
        return {"waits_for": waits.ids}
    except HorizonReached as reached:
        return {"horizon": reached.horizon}
    return {"x": trial.x.tolist(), "info": trial.info}


def _some_context(strategy: Any) -> Tensor:
    return strategy.context_space.domain.sample(1, seed=3)[0]


def spoil(record: Any) -> None:
    """Empties all that a plain dict or list holds."""
    for value in record.values() if isinstance(record, dict) else record:
        if isinstance(value, dict | list):
            spoil(value)
    record.clear()


def spoil_trial(trial: Trial) -> None:
    """Changes all that a trial holds."""
    trial.x.fill_(99.0)
    if trial.context is not None:
        trial.context.fill_(99.0)
    spoil(trial.info)


def assert_near(
    now: Any, then: Any, name: str = "", *, rel: float = 1e-9, more: bool = False
) -> None:
    """Floats within rounding of each other, in dicts and lists too; all else equal.

    Args:
        now: What is looked at.
        then: What it should be.
        name: Where in it we are, for messages.
        rel: The relative difference there may be; a tenth of it, at least 1e-9, is the absolute.
        more: Whether dicts may have keys that they should not.
    """
    if isinstance(then, dict):
        assert now.keys() >= then.keys() if more else now.keys() == then.keys(), name
        for key in then:
            assert_near(now[key], then[key], f"{name} {key}", rel=rel, more=more)
    elif isinstance(then, list | tuple):
        assert len(now) == len(then), name
        for place, (a, b) in enumerate(zip(now, then, strict=True)):
            assert_near(a, b, f"{name} {place}", rel=rel, more=more)
    elif isinstance(then, float) and isinstance(now, float):
        near = math.isclose(now, then, rel_tol=rel, abs_tol=max(rel / 10, 1e-9))
        assert near, f"{name}: {now}, {then}"
    else:
        assert now == then, f"{name}: {now}, {then}"
