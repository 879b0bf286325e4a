"""Sessions of an earlier version go on: their events are replayed, and what is asked next is the
same, or on a box no worse."""

from __future__ import annotations

import json
import math
from dataclasses import astuple, dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from botorch_ext import widths
from botorch_ext.strategies import Strategy
from botorch_ext.testing.nearness import assert_near
from botorch_ext.testing.sessions import best, question
from tests.laws import recorded_names
from tests.laws.record import BY_NAME, read
from tests.laws.registry import POLICIES, Entry

# The last model left warns when it would be rejected.
pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")

SESSIONS = read()["sessions"]
# The others are gone through by ``python -m tests.laws.record --check``.
CHOSEN = SESSIONS[::3]


def resumed(session: dict[str, Any]) -> tuple[Entry, Strategy, dict[str, Any]]:
    """A strategy with the recorded events, and what the next ask is given."""
    entry, seed = BY_NAME[session["entry"]], session["seed"]
    strategy = entry.make(seed)
    strategy.replay([recorded_names.event(entry.method, record) for record in session["events"]])
    num_asked = sum(record[0] == "asked" for record in session["events"])
    return entry, strategy, entry.scenario.offer(num_asked, seed)


@pytest.mark.parametrize("session", CHOSEN, ids=lambda s: f"{s['entry']} | {s['seed']}")
def test_a_recorded_session_goes_on(session):
    entry, strategy, offer = resumed(session)
    report = through_json(strategy.report())
    then = recorded_names.report(session["report"])
    assert_near({name: report[name] for name in then}, then, rel=1e-6, more=True)
    assert_near(best(strategy), session["best"], rel=1e-6, more=True)
    expected, asked = translated(entry, session["next"]), question(strategy, offer)
    if "info" not in expected:  # it waits, or is over
        assert asked == expected
    elif "fit" in expected["info"]:  # where rounding ends an ascent, not the question that follows
        assert_fits_alike(asked["info"]["fit"], expected["info"]["fit"])
    elif not entry.scenario.is_box or "actions" in offer:
        assert asked["x"] == expected["x"]
        now, then = (recorded_names.comparable(entry.method, q["info"]) for q in (asked, expected))
        assert now.keys() == then.keys()
        assert_near(now, then, rel=1e-6)
    elif strategy.is_random:  # rounding moves the maximiser of a draw a little
        assert max(abs(a - b) for a, b in zip(asked["x"], expected["x"], strict=True)) < 0.02
    elif max(abs(a - b) for a, b in zip(asked["x"], expected["x"], strict=True)) > 1e-6:
        before = resumed(session)[1]
        assert shortfall(entry.method, before, offer.get("context"), expected, asked) <= 1e-6


def test_recorded_reports_stand_when_a_width_has_one_more_field():
    [session] = [s for s in SESSIONS if s["entry"] == "gp_ucb | set | ignore" and not s["seed"]]
    _, strategy, _ = resumed(session)

    @dataclass(frozen=True)
    class SelfNormalized(widths.SelfNormalized):
        factor: float = 1.0

    strategy.width = SelfNormalized(*astuple(strategy.width))
    report, then = through_json(strategy.report()), recorded_names.report(session["report"])
    assert report["width"].items() > then["width"].items()
    assert_near({name: report[name] for name in then}, then, rel=1e-6, more=True)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def translated(entry: Entry, recorded: dict[str, Any]) -> dict[str, Any]:
    if "info" not in recorded:
        return recorded
    return recorded | {"info": recorded_names.info(entry.method, dict(recorded["info"]))}


def assert_fits_alike(now: dict[str, Any], then: dict[str, Any]) -> None:
    """Numbers of equal posterior density, nearly: long lengthscales matter little."""
    for name in ("noise_variance", "outputscale", "mean"):
        assert math.isclose(now[name], then[name], rel_tol=0.02), name
    for one, other in zip(now["lengthscales"], then["lengthscales"], strict=True):
        assert abs(math.log(one / other)) < 0.05 * max(other, 1.0)


def shortfall(
    method: str, strategy: Any, context: Tensor | None, expected: Any, asked: Any
) -> float:
    """By how much what a method maximises is lower at a question than at the expected one, as a
    share of the spread of upper bounds on the domain.

    Args:
        method: By its name in the registry.
        strategy: In the state in which it chooses.
        context: In which it chooses, or None.
        expected: A question of `sessions.question`.
        asked: Another one.
    """
    one, other = asked["info"], expected["info"]
    if "base" in other:
        assert one["base"] == other["base"]
        base = strategy.bases[other["base"]]
        inner = [{"x": q["x"], "info": q["info"]["decision"]} for q in (expected, asked)]
        return shortfall(method, base, None if base.context_space is None else context, *inner)
    if "round" in other:
        assert one["round"] == other["round"]
        if "std" in other:  # planned by the largest standard deviation, at most 1
            return other["std"] - one["std"]
        return shortfall_in_region(strategy, expected, asked)
    # Methods that choose at random, or the centers of cells, have no other choice.
    assert hasattr(strategy, "posterior")
    bound = Bound(method, strategy, context)
    return (bound(expected) - bound(asked)) / bound.spread()


def shortfall_in_region(strategy: Any, expected: Any, asked: Any) -> float:
    """`shortfall` where a method that plans the rest of its points plays the highest bound of all
    told data, or their highest mean."""
    model, X = strategy.model.fork(), strategy.evaluated()[0]
    if len(X):
        model.add(*strategy.evaluated())
    if strategy.pending:
        trials = strategy.history.trials
        model.add(torch.stack([trials[id].x for id in strategy.pending]), None)
    width = getattr(strategy, "free_width", None)
    width = 0.0 if width is None else float(width(model.num_observations + 1, model))
    points = strategy.domain.like.new_tensor([expected["x"], asked["x"]])
    mean, std = model.mean_and_std(torch.cat([points, strategy.domain.sample(64, seed=1)]))
    bound = mean + width * std
    return float((bound[0] - bound[1]) / (bound.max() - bound.min()))


class Bound:
    """What a method maximises on a box. The arguments are those of `shortfall`."""

    def __init__(self, method: str, strategy: Any, context: Tensor | None) -> None:
        self.method, self.strategy, self.context = method, strategy, context

    def __call__(self, asked: dict[str, Any]) -> float:
        """At the point of a question, for the models that its info names."""
        info = asked["info"]
        if "center" in info:
            return float(self._worst_case(torch.tensor(info["center"], dtype=torch.float64)))
        return float(self._values(torch.tensor([asked["x"]], dtype=torch.float64), info)[0])

    def spread(self) -> float:
        """The largest less the smallest of upper bounds on the domain."""
        upper = self._upper(self.strategy.domain.sample(64, seed=0))
        return float(upper.max() - upper.min())

    @torch.no_grad()
    def _upper(self, X: Tensor) -> Tensor:
        """``m x n`` upper bounds, of every model that is left."""
        strategy = self.strategy
        if hasattr(strategy, "bands"):
            mean, half_width = strategy.bands(X, self.context)
            return mean + half_width
        if self.context is not None:
            X = torch.cat([X, self.context.expand(len(X), -1)], dim=-1)
        mean, std = strategy.posterior.mean_and_std(X)
        return (mean + strategy.report()["current_width"] * std).unsqueeze(0)

    def _values(self, X: Tensor, info: dict[str, Any]) -> Tensor:
        strategy, upper = self.strategy, self._upper(X)
        judge = getattr(strategy, "judge", None)
        if judge is None:
            return upper.amax(dim=0)
        weights, contenders = judge.weights(strategy), judge.contenders(strategy)
        if weights is not None:
            return weights @ upper
        if contenders is not None:
            upper = upper[contenders]
        return upper.amax(dim=0)

    def _worst_case(self, center: Tensor) -> Tensor:
        """The best model's lowest upper bound on a fine grid of the ball."""
        domain, report = self.strategy.domain, self.strategy.report()
        radius, number = report["radius"], 121 if domain.dim == 1 else 41
        axes = [
            torch.linspace(max(low, x - radius), min(high, x + radius), number)
            for x, (low, high) in zip(center.tolist(), domain.bounds.T.tolist(), strict=True)
        ]
        ball = torch.cartesian_prod(*axes).reshape(-1, domain.dim).to(center)
        if report["norm"] == "l2":
            ball = ball[(ball - center).norm(dim=-1) <= radius]
        return self._upper(torch.cat([center[None], ball])).amin(dim=-1).max()


def test_every_recorded_session_is_of_an_entry():
    """A method or an entry that is not recorded yet leaves this test green."""
    recorded = {session["entry"] for session in SESSIONS}
    assert recorded <= BY_NAME.keys()
    assert len({BY_NAME[name].method for name in recorded}) > 25
    assert len({BY_NAME[name].scenario_name for name in recorded}) > 12
    assert set(POLICIES) < {session["entry"].split(" | ")[2] for session in SESSIONS}
