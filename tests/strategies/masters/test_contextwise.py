"""One instance per context."""

import pytest
import torch

from botorch_ext import Box
from botorch_ext.exceptions import NoObservationsError, WaitingForObservations
from botorch_ext.strategies import Asked, ContextwiseStrategy, RandomSearch, Trial
from tests.strategies.masters.master_sessions import contextual, snapshot
from tests.strategies.sessions import InRounds, f, finite, make


def by_hour(context):
    return int(context[0] // 6)


def by_quarter(bases=4, **options):
    strategies = [RandomSearch(finite(), seed=seed) for seed in range(bases)]
    options = {"context_domain": Box([[0.0], [30.0]]), **options}
    return ContextwiseStrategy(strategies, by_hour, **options)


def test_each_context_has_its_own_instance():
    bases = [make(finite(), seed=seed) for seed in range(4)]
    together = ContextwiseStrategy(bases, by_hour, context_domain=Box([[0.0], [24.0]]))
    alone = [make(finite(), seed=seed) for seed in range(4)]
    hours = [1.0, 13.5, 7.0, 2.0, 8.0, 23.0, 1.5, 14.0, 3.0]
    for hour in hours:
        trial = together.ask(context=[hour])
        twin = alone[int(hour // 6)].ask()
        assert trial.info["base"] == int(hour // 6)
        assert torch.equal(trial.x, twin.x)
        value = f(trial.x) + 0.01 * hour
        together.tell(trial.id, value)
        alone[int(hour // 6)].tell(twin.id, value)
    for own, twin in zip(together.bases, alone, strict=True):
        assert snapshot(own) == snapshot(twin)
    for hour in (2.0, 9.0, 15.0, 20.0):
        assert together.best(context=[hour])[0].tolist() == alone[int(hour // 6)].best()[0].tolist()
    assert together.best()[1] == max(base.best()[1] for base in alone)
    replayed = ContextwiseStrategy(bases, by_hour, context_domain=Box([[0.0], [24.0]]))
    replayed.replay(together.events)
    assert snapshot(replayed) == snapshot(together)


def test_best_of_a_context_without_observations():
    together = by_quarter()
    together.tell(together.ask(context=[1.0]).id, 0.3)
    assert together.best(context=[2.0])[1] == 0.3
    with pytest.raises(NoObservationsError, match="at least one evaluated point"):
        together.best(context=[8.0])


def test_a_batch_goes_to_the_base_of_its_context():
    bases = [RandomSearch(finite()), InRounds(finite(), size=2)]
    together = ContextwiseStrategy(bases, by_hour, context_domain=1)
    assert [trial.info["base"] for trial in together.ask(4, context=[0.0])] == [0] * 4
    with pytest.raises(WaitingForObservations, match="at most 2, got 3: it is the turn of base 1"):
        together.ask(3, context=[7.0])
    assert [trial.info["base"] for trial in together.ask(2, context=[7.0])] == [1, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: s.ask(), "context must be given"),
        (lambda s: s.ask(context=[1.0, 2.0]), "context must have"),
        (lambda s: s.ask(context=[31.0]), "context must lie in the box"),
        (
            lambda s: s.ask(context=[29.0]),
            r"key of the context must be one of 4 positions, got 4 for \[29.0\]",
        ),
        (lambda s: s.best(context=[29.0]), "key of the context must be one of 4 positions, got 4"),
        (lambda s: s.replay([recorded(s, None, 0)]), "context of trial 1 must be given"),
    ],
)
def test_an_impossible_context_changes_nothing(call, message):
    strategy = by_quarter()
    strategy.ask(context=[3.0])
    before = snapshot(strategy)
    with pytest.raises(ValueError, match=message):
        call(strategy)
    assert snapshot(strategy) == before


def recorded(strategy, context, base):
    context = None if context is None else torch.tensor(context, dtype=torch.float64)
    info = {"base": base, "decision": {"index": 1}, "index": 1}
    return Asked(Trial(1, strategy.domain.points[1], context, info))


def test_one_instance_per_context_needs_contexts_and_a_key():
    with pytest.raises(ValueError, match=r"context_domain must be given .*got None"):
        by_quarter(context_domain=None)
    with pytest.raises(ValueError, match="key must be a function of the context, got 3"):
        ContextwiseStrategy([RandomSearch(finite())], 3, context_domain=1)
    half = ContextwiseStrategy([RandomSearch(finite())], lambda z: 0.5, context_domain=1)
    with pytest.raises(ValueError, match=r"key of the context must be a whole number, got 0.5"):
        half.ask(context=[1.0])
    inherited = ContextwiseStrategy([contextual(finite(), context_domain=1)], lambda z: 0)
    assert inherited.ask(context=[0.2]).context.tolist() == [0.2]
