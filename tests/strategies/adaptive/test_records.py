"""Recorded trials that a method cannot have asked: refused as a whole, and nothing has changed."""

import math
from functools import cache, partial

import pytest
import torch

from botorch_ext.strategies import Asked, Trial
from tests.strategies.adaptive.sessions import SETTINGS
from tests.strategies.adaptive.test_candidate_models import asks, make
from tests.strategies.adaptive.test_stable import make as make_stable
from tests.strategies.sessions import finite

NAN, INF = math.nan, math.inf


def check_refused(strategy, changes, named=None, context=None):
    """The next trial with another info, of which None takes a key away, or in another context."""
    given = None
    if strategy.context_space is not None:
        given = SETTINGS["reals"].draw(1, torch.Generator().manual_seed(1))[0]
    trial = strategy.clone().ask(**({} if given is None else {"context": given}))
    info = {key: value for key, value in {**trial.info, **changes}.items() if value is not None}
    before, num_events = strategy.report(), len(strategy.events)
    recorded = trial.context if named != "context" else context
    with pytest.raises(ValueError, match=named):
        strategy.replay([Asked(Trial(trial.id, trial.x, recorded, info))])
    assert strategy.report() == before
    assert len(strategy.events) == num_events
    strategy.replay([Asked(trial)])
    assert strategy.history.trials[-1].info == trial.info


@cache
def _played(method):
    maker = make_stable if method == "he_stable_opt" else partial(make, method)
    strategy = maker(finite(), name="high means")
    asks(strategy, 3)
    return strategy


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("model", value) for value in (4, -1, None, "RBF", 0.0, True)),
        *(("mean", value) for value in (NAN, INF, None, "0.5")),
        *(("std", value) for value in (NAN, -0.1, None)),
        *(("width", value) for value in (-1.0, INF, None)),
        *(("offset", value) for value in (NAN, "none")),
        *(("index", value) for value in (54, None)),
        *(("told", value) for value in (None, {"mean": 0.0})),
    ],
)
def test_predictions_that_can_not_be(key, value):
    check_refused(_played("he_gp_ucb").clone(), {key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("pessimistic", None),
        ("pessimistic", {"model": 0}),
        ("pessimistic", {"model": 77, "mean": 0.0, "std": 0.1, "width": 1.0, "offset": 0.0}),
        ("center", None),
        ("center", [3.0]),
        ("center", [3.0, NAN]),
        ("center", [30.0, -2.0]),
    ],
)
def test_centers_and_fears_that_can_not_be(key, value):
    check_refused(_played("he_stable_opt").clone(), {key: value})


@pytest.mark.parametrize(
    "context",
    [
        None,
        [0.1, 5.0],
        torch.tensor([0.1, 5.0]),  # in float32
        torch.tensor([0.1]).double(),
        torch.tensor([[0.1, 5.0], [0.2, 5.0]]).double(),
        torch.tensor([0.1, NAN]).double(),
        torch.tensor([0.1, 3.9]).double(),  # outside
    ],
)
def test_contexts_that_can_not_be(context):
    check_refused(make("he_gp_ucb", finite(), name="reals"), {}, "context", context)


def test_trials_with_contexts_are_none_of_a_strategy_without_them():
    played = make("he_gp_ucb", finite(), name="reals")
    played.ask(context=[0.1, 5.0])
    strategy = make("he_gp_ucb", finite())
    with pytest.raises(ValueError, match="context"):
        strategy.replay(played.events)
    assert strategy.events == ()
