"""Histories with contexts and action sets, replayed in plain loops and dense algebra."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from botorch_ext.domains import FiniteSet
from botorch_ext.strategies import Asked, Event, Told, Trial
from tests.oracles.models import (
    Candidate,
    EliminationTest,
    Session,
    WidthFormula,
    check_record,
    predictions,
    upper_bounds,
)
from tests.strategies.adaptive.contextual_sessions import Gram, Offer, candidates, joint
from tests.strategies.sessions import POLICIES

Initial = tuple[Tensor, Tensor] | None


@dataclass(frozen=True, eq=False)
class Question:
    """One ask that was no initial point.

    Args:
        trial: What was asked.
        points: All joint points so far, the asked one, then all that could be chosen.
        own: The row of the asked one.
    """

    trial: Trial
    points: Tensor
    own: int

    def model(self, gram: Gram, noise_variance: float, mean: Any = None, u: int = 0) -> Candidate:
        return Candidate.at(self.points, gram, noise_variance, mean, u)

    def shortfall(self, scores: Tensor) -> float:
        """How much more the best of what could be chosen scores."""
        return float(scores[..., self.own + 1 :].max() - scores[..., self.own].max())


def replay(
    strategy: Any,
    policy: str,
    chosen_from: dict[int, Offer],
    initial: Initial = None,
    fine: Tensor | None = None,
) -> Iterator[tuple[Event, Session, Question | None]]:
    """Every event with what was known before it, and the question where it is one. Whoever iterates
    applies the event to the session.

    Args:
        strategy: Has a history.
        policy: One of `POLICIES`.
        chosen_from: What each trial was chosen from.
        initial: Data from before the study.
        fine: What stands for a box.
    """
    domain = strategy.domain
    rows = [] if initial is None else list(initial[0])
    n = len(rows)
    before = (list(range(n)), [] if initial is None else initial[1].tolist())
    session = Session(policy, lambda trial: n + trial.id, before)
    for event in strategy.events:
        question = None
        if isinstance(event, Asked):
            trial = event.trial
            offer = chosen_from[trial.id]
            _check_offered(domain, trial, offer)
            own = joint(trial.x[None], offer.context)
            if not trial.info.get("initial"):
                pool = candidates(domain, offer, fine)
                question = Question(
                    trial, torch.cat([*(r[None] for r in rows), own, pool]), len(rows)
                )
            rows.append(own[0])
        yield event, session, question


def _check_offered(domain: Any, trial: Trial, offer: Offer) -> None:
    """The trial is one of what was offered, and says which."""
    if offer.context is None:
        assert trial.context is None
    else:
        assert torch.equal(trial.context, offer.context)
    assert bool(domain.contains(trial.x).all())
    if isinstance(domain, FiniteSet):
        assert torch.equal(domain.points[trial.info["index"]], trial.x)
    if offer.actions is None:
        assert "action" not in trial.info
    else:
        assert torch.equal(offer.actions[trial.info["action"]], trial.x)


def check_optimistic(
    strategy: Any,
    policy: str,
    chosen_from: dict[int, Offer],
    gram: Gram,
    noise_variance: float,
    width: WidthFormula,
    initial: Initial = None,
    fine: Tensor | None = None,
    mean: Any = None,
) -> int:
    """Every pick is a maximiser, and stores what was known of it; returns how many there are."""
    num_picks = 0
    for event, session, question in replay(strategy, policy, chosen_from, initial, fine):
        if question is not None:
            model = question.model(gram, noise_variance, mean)
            believed, told = session.believed, session.told
            gain = model.gain(believed.seen)
            w = width(model, believed.t, gain)
            if POLICIES[policy].get("inflate"):
                w *= math.exp(gain - model.gain(told.seen))
            mu, s = model.mean(believed.rows, believed.y), model.std(believed.seen)
            # Rounding of a posterior with condition number 1e4 leaves about nine digits.
            assert question.shortfall(mu + w * s) <= 1e-7
            info = question.trial.info
            assert info["width"] == pytest.approx(w, rel=1e-7)
            assert info["mean"] == pytest.approx(mu[question.own].item(), rel=1e-6, abs=1e-7)
            assert info["std"] == pytest.approx(s[question.own].item(), rel=1e-6, abs=1e-7)
            num_picks += 1
        session.apply(event)
    return num_picks


def check_elimination(
    strategy: Any,
    alive_after: list[list[int]],
    policy: str,
    chosen_from: dict[int, Offer],
    models: list[Any],
    width: WidthFormula,
    test: EliminationTest,
    offset: Callable[[int], float] = lambda t: 0.0,
    initial: Initial = None,
    fine: Tensor | None = None,
) -> None:
    """Every pick, prediction and rejection is that of the definition.

    Args:
        strategy: `HyperparameterElimination` with a history.
        alive_after: The models alive after each event.
        policy: One of `POLICIES`.
        chosen_from: What each trial was chosen from.
        models: ``(gram, noise variance, prior mean)`` of each.
        width: Of a model, the step and the information gain.
        test: Before any observation.
        offset: What the bounds have besides, by the step.
        initial: Data from before the study.
        fine: What stands for a box.
    """
    judged = 0
    records = {record.trial: record for record in strategy.tests}
    for place, (event, session, question) in enumerate(
        replay(strategy, policy, chosen_from, initial, fine)
    ):
        if question is not None:
            candidates = [question.model(*model, u) for u, model in enumerate(models)]
            info, own = question.trial.info, question.own
            u = info["model"]
            bounds = upper_bounds(candidates, session, width, offset)
            assert u in test.alive
            best = bounds[test.alive, own + 1 :].max()
            assert float(best - bounds[u, own]) <= 1e-7
            expected = predictions(session, candidates[u], own, width, offset)
            check_record(info, expected, digits=6)
        session.apply(event)
        if isinstance(event, Told) and event.id in session.values:
            info = session.info[event.id]
            if not info.get("initial"):
                u, t = info["model"], session.told.t - 1
                was_alive = u in test.alive
                promised = info["told"]
                half_width = promised["width"] * promised["std"] + promised["offset"]
                test.tell(u, event.value - promised["mean"], half_width, t)
                if was_alive:
                    record = records.pop(event.id)
                    judged += 1
                    assert (record.model, record.t) == (u, t)
                    assert record.error == pytest.approx(test.error(u), rel=1e-9, abs=1e-9)
                    assert record.bound == pytest.approx(test.allowance(u, t), rel=1e-9, abs=1e-9)
        assert alive_after[place] == test.alive
    assert not records
    assert judged > 5


def log_evidence(models: list[Candidate], session: Session) -> Tensor:
    """log P(told data) of each model."""
    told = session.told
    values = [model.log_evidence(told.rows, told.y) for model in models]
    return torch.tensor(values, dtype=torch.float64)
