"""Results outside of the domain are data: models learn from them, and they are never asked."""

import pytest
import torch
from gpytorch.kernels import RBFKernel
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import NoObservationsError, OutsideDomainError
from botorch_ext.strategies import RandomSearch
from tests.laws.scenarios import quietly

pytestmark = quietly
SPACE = bx.Space(
    temperature=bx.Real(20, 80, digits=1),
    catalyst=bx.Real(1e-3, 1e-1, log=True),
    equivalents=bx.Integer(1, 5),
    solvent=bx.Choice(["water", "dmso"]),
    constraints=["equivalents + 0.1 * temperature <= 12"],
)
INSIDE = {"temperature": 50.0, "catalyst": 0.01, "equivalents": 2, "solvent": "dmso"}
OUTSIDE = [
    INSIDE | {"temperature": 86.0},
    INSIDE | {"temperature": 61.53},  # between steps
    INSIDE | {"equivalents": 2.5},
    INSIDE | {"temperature": 80.0, "equivalents": 5},  # against the constraint
]


METHODS = {
    "integrated_ei": bx.algorithms.integrated_ei,
    "gp_bucb": lambda d: bx.algorithms.gp_bucb(d, bx.Fitted(), width=2.0, num_initial=2),
    "random": RandomSearch,
}
# A search with constraints and choices costs seconds.
every_method = pytest.mark.parametrize(
    "method", ["random", "gp_bucb", pytest.param("integrated_ei", marks=pytest.mark.slow)]
)


def played(method, outside=True):
    strategy = METHODS[method](SPACE)
    for row, x in enumerate(SPACE.sample(9, seed=3)):
        strategy.attach(x, float(row % 4))
    if outside:
        for row, params in enumerate(OUTSIDE):
            strategy.attach(params, 20.0 + row, outside=True)
    return strategy


@every_method
def test_a_point_outside_is_data_and_never_asked(method):
    strategy = played(method)
    kept = strategy.history.trials[9:]
    assert [trial.params for trial in kept] == OUTSIDE
    assert all(trial.info == {"attached": True, "outside": True} for trial in kept)
    trials = strategy.ask(2)
    assert bool(SPACE.contains(torch.stack([trial.x for trial in trials])).all())
    x, _ = strategy.best()
    assert bool(SPACE.contains(x).all())
    if method != "random":
        assert bool(SPACE.contains(strategy.recommended().x).all())
    assert strategy.report()["best_observation"] == 3.0
    again = METHODS[method](SPACE)
    again.replay(strategy.events)
    assert_close(again.ask().x, strategy.ask().x, rtol=0, atol=0)
    strategy.correct(9, 21.5)
    assert strategy.history.values[9] == 21.5


def test_the_model_learns_from_it():
    method = "integrated_ei"
    near = SPACE.point({"temperature": 80, "catalyst": 0.01, "equivalents": 2, "solvent": "dmso"})
    without, with_it = (
        float(played(method, outside).predict(near).mean) for outside in (False, True)
    )
    assert with_it > without + 1
    strategy = played(method)
    table = strategy.predict(OUTSIDE).to_pandas()
    assert table[[*SPACE.names]].to_dict("records") == OUTSIDE
    for wrong in ({"solvent": "ether"}, {"catalyst": 0.0}):
        with pytest.raises(OutsideDomainError):
            strategy.predict(INSIDE | wrong)


@every_method
def test_all_data_may_lie_outside(method):
    strategy = METHODS[method](SPACE)
    for value in range(9):
        strategy.attach(INSIDE | {"temperature": 81.0 + value}, value, outside=True)
    with pytest.raises(NoObservationsError):
        strategy.best()
    assert strategy.report()["best"] is None
    assert all(SPACE.contains(trial.x) for trial in strategy.ask(2))


def test_what_no_model_can_learn_from_is_refused():
    strategy, params = bx.algorithms.integrated_ei(SPACE), OUTSIDE[0]
    for wrong, message in (
        ({"solvent": "ether"}, "solvent must be one of"),
        ({"catalyst": 0.0}, "catalyst must be above 0"),
        ({"temperature": "hot"}, "temperature must be one number"),
        ({"temperature": float("nan")}, "temperature must be finite"),
    ):
        with pytest.raises(ValueError, match=message):
            strategy.attach(params | wrong, 1.0, outside=True)
    with pytest.raises(OutsideDomainError):
        strategy.attach(params, 1.0)
    assert not strategy.events


def test_methods_that_learn_from_their_domain_alone_say_so():
    box = bx.Box([(0, 1), (2, 3)])
    kernel = RBFKernel().double()
    for domain, make in (
        (box, lambda d: bx.algorithms.thompson_sampling(d, kernel, noise_variance=0.1)),
        (bx.FiniteSet(box.sample(5, seed=0)), bx.algorithms.integrated_ei),
    ):
        with pytest.raises(OutsideDomainError, match="learns from points of its domain"):
            make(domain).attach([1.2, 2.5], 1.0, outside=True)
