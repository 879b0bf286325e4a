"""Which models may play and which ones are refuted, written out; and the check of a session."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from botorch_ext.strategies import Abandoned, Asked, Told
from tests.oracles.models import (
    Candidate,
    RunningTests,
    Session,
    WidthFormula,
    check_record,
    moments,
    predictions,
    upper_bounds,
    xi,
)
from tests.strategies import sessions
from tests.strategies.sessions import Described, Initial, Played

# Rounding of a posterior with condition number 1e4 leaves about nine digits.
CLOSE = 1e-7
# The models that there are at a step.
Growing = Callable[[int], Sequence[Described]]


def log_evidence(models: Sequence[Candidate], session: Session) -> Tensor:
    """log P(told data) of each model."""
    told = session.told
    return torch.tensor([m.log_evidence(told.rows, told.y) for m in models]).double()


@dataclass
class Everyone:
    """All models play, and none is refuted."""

    tests: bool = False  # whether predictions from told data alone are recorded
    rejected: dict[int, int] = field(default_factory=dict)
    num_models: int = 0
    one_plays = False  # whether the bounds of other players count

    @property
    def alive(self) -> list[int]:
        return [u for u in range(self.num_models) if u not in self.rejected]

    def players(self, models: Sequence[Candidate], session: Session) -> list[int]:
        return self.alive

    def weights(self, models: Sequence[Candidate], session: Session) -> Tensor | None:
        return None

    def learn(self, id: int, value: float, info: dict[str, Any], t: int) -> None:
        """Learns the ``t``-th observation, of a trial that a model asked."""


class Likeliest(Everyone):
    """The highest evidence; where nothing is told, any."""

    one_plays = True

    def players(self, models, session):
        evidence = log_evidence(models, session)
        return (evidence >= evidence.max() - CLOSE).nonzero().flatten().tolist()


class Average(Everyone):
    """All, by their evidence."""

    def weights(self, models, session):
        return log_evidence(models, session).softmax(dim=0)


@dataclass
class Credible(Everyone):
    """Evidence at most c below the highest: ln(M / delta), if c is not given."""

    delta: float = 0.1
    c: float | None = None

    def reach(self, num_models: int) -> float:
        return math.log(num_models / self.delta) if self.c is None else self.c

    def players(self, models, session):
        evidence = log_evidence(models, session)
        below = evidence.max() - evidence
        c = self.reach(len(models))
        assert (below - c).abs().min() > CLOSE or c == 0
        return (below <= c).nonzero().flatten().tolist()


@dataclass
class Nearest(Everyone):
    """The lengthscale nearest to l_0 / t^exponent."""

    scales: Sequence[float] = ()
    longest: float = 0.0
    exponent: float = 0.9

    def players(self, models, session):
        wanted = self.longest / (len(session.rows) + len(session.initial[0]) + 1) ** self.exponent
        return [min(range(len(models)), key=lambda u: abs(self.scales[u] - wanted))]


@dataclass
class ByErrors(Everyone):
    """Refutes models by the sums of their own errors."""

    noise_std: float = 0.03
    delta: float = 0.1
    eps: float = 0.0

    def __post_init__(self) -> None:
        self.tests, self.test = True, RunningTests(0, self.noise_std, self.delta, self.eps)
        self.rejected = self.test.rejected_at

    def learn(self, id, value, info, t):
        self.test.num_models = self.num_models
        self.test.tell(t, Told(id, value), info)


@dataclass
class BySuspectedRegret(Everyone):
    """LB-GP-UCB: the least suspected regret plays, and rewards that are too low refute."""

    lengthscale_0: float = 2.0
    noise_std: float = 0.03
    delta: float = 0.1
    rkhs_bound: float = 0.25

    def __post_init__(self) -> None:
        self.tests = True
        self.known: dict[int, int] = {}
        self.played: list[int] = []
        self.told: dict[int, list[tuple[float, float]]] = {}

    def suspected(self, u: int) -> float:
        n = self.played.count(u) + 1
        g = (self.lengthscale_0 * math.exp(-u / 2)) ** -2 * math.log(n) ** 3
        return math.sqrt(n * g) * (math.sqrt(g) + self.rkhs_bound)

    def players(self, models, session):
        return [min(self.alive, key=self.suspected)]

    def learn(self, id, value, info, t):
        told = info["told"]
        own = value, told["width"] * told["std"] + told["offset"]
        self.told.setdefault(info["model"], []).append(own)
        # A model that joined after this trial was asked counts once it was told.
        there = [u for u in self.alive if u < self.known[id] or u in self.told]
        if not all(u in self.told for u in there):
            return
        num_models = max(self.known[id], 1 + max(self.told))
        upper, lower = {}, {}
        for u in there:
            n = len(self.told[u])
            noise = math.sqrt(xi(t, num_models, self.noise_std, self.delta) / n)
            lower[u] = sum(y for y, _ in self.told[u]) / n - noise
            upper[u] = sum(y + ws for y, ws in self.told[u]) / n + noise
        for u in there:
            if upper[u] < max(lower.values()):
                self.rejected = self.rejected | {u: t}


def check(
    played: Played,
    described: Sequence[Described] | Growing,
    width: WidthFormula,
    judge: Any = None,
    offset: Callable[[int], float] = lambda t: 0.0,
    initial: Initial = None,
    fine: Tensor | None = None,
) -> Any:
    """Checks every pick, every recorded prediction, every rejection, the report, the bands and the
    best point of a session."""
    strategy, judge = played.strategy, Everyone() if judge is None else judge
    present: Any = described if callable(described) else lambda t: described
    before = 0 if initial is None else len(initial[0])
    judge.num_models = len(present(before + 1))
    plays: list[tuple[int, int, int]] = []
    times_played: dict[int, int] = {}
    for place, (event, session, question) in enumerate(sessions.questions(played, initial, fine)):
        if question is not None:
            models, info = question.models(present(before + event.trial.id + 1)), event.trial.info
            u, own = info["model"], question.own
            bounds = upper_bounds(models, session, width, offset)
            weights = judge.weights(models, session)
            if weights is None:
                players = judge.players(models, session)
                assert u in players
                rows = [u] if judge.one_plays else players
                assert question.shortfall(bounds[rows], bounds[u]) <= CLOSE
            else:
                average = weights @ bounds
                assert question.shortfall(average, average) <= CLOSE
                assert weights[u] >= weights.max() - CLOSE
            check_record(info, predictions(session, models[u], own, width, offset), judge.tests, 6)
            times_played[u] = times_played.get(u, 0) + 1
        if isinstance(event, Asked):
            if isinstance(judge, BySuspectedRegret):
                judge.known[event.trial.id] = judge.num_models
                judge.played += [event.trial.info[k] for k in ["model"] if k in event.trial.info]
            judge.num_models = len(present(before + event.trial.id + 2))
        if isinstance(event, Told):
            info, t = session.info[event.id], session.told.t
            if "model" in info and session.is_in_time(event.id):
                plays.append((t, event.id, info["model"]))
                judge.learn(event.id, event.value, info, t)
        if not callable(described) or isinstance(event, Told | Abandoned):
            assert played.alive[place] == judge.alive
    _check_standing(played, present, width, judge, offset, initial)
    assert [(play.t, play.trial, play.model) for play in strategy.plays] == plays
    own = [times_played.get(u, 0) for u in range(judge.num_models)]
    assert strategy.times_played() == own
    assert [line["times_played"] for line in strategy.report()["models"]] == own
    return judge


def _check_standing(
    played: Played, present: Any, width: WidthFormula, judge: Any, offset: Any, initial: Initial
) -> None:
    """The report, the bands and the best point after all events."""
    strategy, (session, rows) = played.strategy, sessions.known(played, initial)
    believed, domain = session.believed, strategy.domain
    report, described, X = strategy.report(), present(len(rows) + 1), domain.sample(4, 1)
    context = None if played.setting.draw is None else rows[-1, domain.dim :]
    fresh = range(len(rows), len(rows) + len(X))
    points = torch.cat(
        [rows, sessions.joint(X, context), sessions.joint(rows[:, : domain.dim], context)]
    )
    models = sessions.candidates(described, points)
    alive = [models[u] for u in judge.alive]
    evidence = log_evidence(alive, session)
    gains = [model.gain(believed.seen) for model in alive]
    found = [moments(session, model, believed, width, offset) for model in alive]
    widths = [own["width"] for own in found]
    likeliest = int(evidence.argmax())
    assert report["t"] == believed.t
    assert report["current_width"] == pytest.approx(widths[likeliest], rel=1e-7)
    assert report["information_gain"] == pytest.approx(gains[likeliest], rel=1e-7, abs=1e-9)
    assert report["inflated"] == ("inflate" in sessions.POLICIES[played.policy])
    assert report["told_too_late"] == [id for id in strategy.history.values if id in session.late]
    assert report["alive"] == [strategy.names[u] for u in judge.alive]
    assert strategy.rejected == judge.rejected
    assert_close(strategy.evidence(), evidence, rtol=1e-6, atol=1e-6)
    own = iter(zip(evidence.tolist(), widths, gains, strict=True))
    for u, line in enumerate(report["models"]):
        assert line["status"] == ("rejected" if u in judge.rejected else "alive")
        assert line["rejected_at"] == judge.rejected.get(u)
        numbers = line["log_marginal_likelihood"], line["current_width"], line["information_gain"]
        if u in judge.rejected:
            assert numbers == (None, None, None)
        else:
            assert numbers == pytest.approx(next(own), rel=1e-6, abs=1e-6)

    means = torch.stack([own["mean"] for own in found])
    half_widths = torch.stack([own["width"] * own["std"] + own["offset"] for own in found])
    bands = strategy.bands(X, context)
    for mine, expected in zip(bands, (means, half_widths), strict=True):
        assert_close(mine, expected[:, fresh.start : fresh.stop], rtol=1e-6, atol=1e-6)

    before = 0 if initial is None else len(initial[0])
    evaluated = [*range(before), *(before + id for id in strategy.history.values)]
    assert evaluated
    for at, first in ((None, 0), (context, fresh.stop)):
        own = means[likeliest, [first + row for row in evaluated]]
        x, mean = strategy.best(at)
        assert mean == pytest.approx(float(own.max()), rel=1e-6, abs=1e-6)
        top = rows[evaluated][own >= own.max() - 1e-9, : domain.dim]
        assert bool((top == x).all(dim=-1).any())
