"""Strategies that minimise: each asks as the one that maximises the negative values."""

from contextlib import suppress

import pytest
import torch
from gpytorch.constraints import Interval
from gpytorch.kernels import RBFKernel
from gpytorch.means import ConstantMean, LinearMean
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import NoModelError, NoObservationsError, WaitingForObservations
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.records import in_sign
from botorch_ext.strategies import Strategy
from botorch_ext.testing.subjects import others
from tests.laws.registry import ENTRIES

pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")

BOX = bx.Box([(-1.0, 1.0), (0.0, 5.0)])
X = torch.tensor([[0.2, 1.0], [-0.7, 4.0], [0.9, 2.5]], dtype=torch.float64)
Y = torch.tensor([3.0, 5.5, 4.0], dtype=torch.float64)


def of_costs(strategy):
    """The strategy that minimises, made by the same call with the values of costs."""
    call = strategy.arguments.of_function or strategy.arguments
    make = type(strategy) if call.made_by is None else getattr(bx.algorithms, call.made_by)
    return make(**{name: mirrored(name, call.given[name]) for name in call.passed}, minimize=True)


def mirrored(name, value):
    """An argument for costs in place of values."""
    if isinstance(value, Strategy):
        return of_costs(value)
    if name == "bases":
        return [of_costs(base) for base in value]
    if value is None or name not in ("initial", "mean", "minimum", "reward_range"):
        return value.negated() if isinstance(value, KernelGP | bx.CandidateModels) else value
    if name == "initial":
        return value[0], -torch.as_tensor(value[1])
    if name == "reward_range":
        return -value[1], -value[0]
    return -value if isinstance(value, float | int) else lambda X: -value(X)


def observed(strategy, context):
    """What a strategy says, as far as it can say it, with numbers in the sign of gains."""
    sign, said = strategy.history.sign, {}
    with suppress(NoObservationsError):
        x, mean = strategy.best()
        said["best"] = x.tolist(), sign * mean
    if hasattr(strategy, "recommend"):
        with suppress(NoObservationsError):
            x, mean = strategy.recommend(context)
            said["recommend"] = x.tolist(), sign * mean
    with suppress(NoModelError, NoObservationsError, ValueError):
        found = strategy.recommended(context).prediction
        found = found.negated() if sign < 0 else found
        said["recommended"] = found.x.tolist(), found.mean.tolist(), found.quantiles.tolist()
    if hasattr(strategy, "bands"):
        with suppress(NoObservationsError, ValueError):
            mean, half_width = strategy.bands(strategy.domain.sample(4, seed=1), context)
            said["bands"] = (sign * mean).tolist(), half_width.tolist()
    report = in_sign(strategy.report(), sign)
    for own in ("minimize", "reward_range"):
        report.pop(own, None)
    said["report"] = report
    said["evaluated"] = (sign * strategy.evaluated()[1]).tolist()
    return said


def same(found, expected, place=""):
    """Asserts that nested values are equal, numbers up to rounding."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), place
        for key in expected:
            same(found[key], expected[key], f"{place}.{key}")
    elif isinstance(expected, list | tuple):
        assert len(found) == len(expected), place
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            same(one, other, f"{place}[{i}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-12), place
    else:
        assert found == expected, place


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_it_is_the_mirror_of_maximising(entry):
    gains = entry.make()
    costs = of_costs(entry.make())
    assert costs.minimize and not gains.minimize
    context = None
    for step in range(5):
        context = entry.scenario.offer(step, 0).get("context")
        offered = {} if context is None else {"context": context}
        try:
            trial = gains.ask(**offered)
        except WaitingForObservations:
            with pytest.raises(WaitingForObservations):
                costs.ask(**offered)
        else:
            asked = costs.ask(**offered)
            assert torch.equal(asked.x, trial.x)
            same(in_sign(asked.info, -1.0), trial.info)
        if step >= 2 and gains.pending:
            first = gains.pending[0]
            known = gains.history.trials[first]
            value = entry.value(known.x, known.context)
            gains.tell(first, value, others(gains, value))
            costs.tell(first, -value, others(gains, value))
    if gains.history.values:
        known = next(iter(gains.history.values))
        value = gains.history.values[known]
        gains.correct(known, value / 2)
        costs.correct(known, -value / 2)
    same(observed(costs, context), observed(gains, context))
    again = of_costs(entry.make())
    again.replay(costs.events)
    same(observed(again, context), observed(costs, context))
    assert [e.value for e in costs.events if hasattr(e, "value")] == [
        -e.value for e in gains.events if hasattr(e, "value")
    ]


def test_all_that_has_the_sign_of_values_is_that_of_costs():
    """Initial data, prior means of every kind, the worst value and the data of a model."""
    slope = LinearMean(2).double()
    slope.weights.data = torch.tensor([[0.5], [-0.2]], dtype=torch.float64)
    means = (4.0, slope, lambda X: X.sum(dim=-1))
    negative = (-4.0, lambda X: -slope(X), lambda X: -X.sum(dim=-1))
    for mean, other in zip(means, negative, strict=True):
        given = {"noise_variance": 0.1, "width": 2.0, "pending": "censor", "seed": 3}
        costs = bx.algorithms.gp_ucb(
            BOX, RBFKernel(), mean=mean, initial=(X, Y), minimum=9.0, minimize=True, **given
        )
        gains = bx.algorithms.gp_ucb(
            BOX, RBFKernel(), mean=other, initial=(X, -Y), minimum=-9.0, **given
        )
        for _ in range(3):
            first, second = costs.ask(), gains.ask()
            assert torch.equal(first.x, second.x)
            assert first.info["mean"] == -second.info["mean"]
        assert_close(costs.predict(X).mean, -gains.predict(X).mean, rtol=0, atol=0)
        assert costs.report()["best_observation"] == 3.0
        assert torch.equal(costs.evaluated()[1], Y)
    bound = ConstantMean(constant_constraint=Interval(0.0, 10.0)).double()
    bound.constant = torch.tensor(4.0, dtype=torch.float64)
    costs = bx.algorithms.gp_ucb(
        BOX, RBFKernel(), noise_variance=0.1, width=2.0, mean=bound, minimize=True
    )
    assert costs.predict(X).mean.tolist() == pytest.approx([4.0] * 3)
    model = KernelGP(RBFKernel(), 0.1, mean=1.0)
    model.add(X, Y)
    costs = bx.strategies.OptimisticStrategy(BOX, model, 2.0, minimize=True)
    assert_close(costs.predict(X).mean, model.mean_and_std(X)[0])
    assert torch.equal(model.train_targets, Y)


def test_the_sign_is_said_once():
    asked = bx.strategies.RandomSearch(BOX)
    asked.set_minimize(None)
    assert not asked.minimize
    asked.set_minimize(True)
    assert asked.minimize and asked.report()["minimize"]
    with pytest.raises(ValueError, match="minimize must be True"):
        asked.set_minimize(False)
    asked.tell(asked.ask(), 4.0)
    assert asked.history.values == {0: -4.0} and asked.evaluated()[1].tolist() == [4.0]
    assert bx.strategies.RandomSearch(BOX, initial=(X, Y), minimize=True).initial[1].equal(Y)
    with pytest.raises(ValueError, match="strategy must maximise"):
        bx.simulate(asked, lambda x: 0.0, 3)
    refused = bx.strategies.RandomSearch(BOX)
    with pytest.raises(ValueError, match="contexts must be None"):
        bx.run(refused, lambda x: 0.0, 2, minimize=True, contexts=[[0.0]], progress=False)
    assert not refused.minimize
    for strategy, other in (
        (asked, False),
        (bx.strategies.RandomSearch(BOX, minimize=True), False),
        (bx.strategies.RandomSearch(BOX, minimize=False), True),
        (bx.strategies.RandomSearch(BOX, initial=(X, Y)), True),
    ):
        with pytest.raises(ValueError, match="minimize must be"):
            strategy.set_minimize(other)
    with pytest.raises(ValueError, match="minimize must be"):
        bx.strategies.RandomSearch(BOX, minimize="yes")


def test_a_master_and_its_bases_have_one_sign():
    bases = [bx.strategies.RandomSearch(BOX, seed) for seed in (0, 1)]
    master = bx.RegretBalancing(bases, [float, float], reward_range=(0.0, 6.0), minimize=True)
    assert all(base.minimize for base in master.bases)
    later = bx.RegretBalancing(bases, [float, float])  # whose range is the default
    later.set_minimize(True)
    assert all(base.minimize for base in later.bases)
    with pytest.raises(ValueError, match=r"from 0.0 to 1.0, got -0.5"):
        later.tell(later.ask(), -0.5)
    later.tell(0, 0.5)
    costs = [bx.strategies.RandomSearch(BOX, seed, minimize=True) for seed in (0, 1)]
    master = bx.RegretBalancing(costs, [float, float], reward_range=(0.0, 6.0))
    assert master.minimize
    for id, value in enumerate((5.0, 2.0, 4.0)):
        master.tell(master.ask(), value)
        assert master.history.as_told[id] == value
    assert master.best()[1] == 2.0 == master.report()["best"]["mean"]
    with pytest.raises(ValueError, match=r"from 0.0 to 6.0, got 7.0"):
        master.tell(master.ask(), 7.0)
    with pytest.raises(ValueError, match="minimize must be"):
        bx.RegretBalancing(
            [costs[0], bx.strategies.RandomSearch(BOX, minimize=False)], [float, float]
        )
