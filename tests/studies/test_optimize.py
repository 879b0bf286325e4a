"""`optimize`: what it returns, in the units and the sign of the objective."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext.exceptions import TrialFailedWarning
from tests.strategies.sessions import finite, make

PEAK = torch.tensor([12.0, 60.0], dtype=torch.float64)
BOUNDS = [(0.0, 20.0), (20.0, 80.0)]


def hill(x):
    return 5 - float(((x - PEAK) / torch.tensor([20.0, 60.0])).square().sum())


def cost(x):
    return -hill(x)


@pytest.mark.parametrize(
    "bounds",
    [
        BOUNDS,
        torch.tensor([[0.0, 20.0], [20.0, 80.0]]),
        bx.Box(lower=[0.0, 20.0], upper=[20.0, 80.0]),
    ],
)
def test_it_finds_the_top_from_bounds_alone(bounds):
    result = bx.optimize(hill, bounds, 14, progress=False)
    assert_close(result.recommended_x.double(), PEAK, rtol=0, atol=0.5)
    assert hill(result.recommended_x) > 5 - 1e-3
    assert result.recommended_mean == pytest.approx(5, abs=0.02)
    assert result.best_value == max(result.Y.tolist()) == pytest.approx(hill(result.best_x))
    assert len(result.X) == 14


def test_a_cost_is_the_mirrored_study():
    X = bx.Box(BOUNDS).sample(3, 1)
    up = torch.tensor([hill(x) for x in X], dtype=torch.float64)
    ours = bx.optimize(hill, BOUNDS, 11, initial=(X, up), progress=False, seed=3)
    mirrored = bx.optimize(
        cost, BOUNDS, 11, initial=(X, -up), minimize=True, progress=False, seed=3
    )
    assert torch.equal(ours.X, mirrored.X)
    assert torch.equal(ours.Y, -mirrored.Y)
    assert torch.equal(ours.recommended_x, mirrored.recommended_x)
    assert ours.recommended_mean == -mirrored.recommended_mean
    assert ours.best_value == -mirrored.best_value


@pytest.mark.parametrize("minimize", [False, True])
def test_the_best_may_be_among_the_initial_data(minimize):
    X = bx.Box(BOUNDS).sample(8, 1)
    X[5], f = PEAK, cost if minimize else hill
    Y = torch.tensor([f(x) for x in X], dtype=torch.float64)
    numbers = {"minimize": minimize, "initial": (X, Y), "num_initial": 3, "progress": False}
    result = bx.optimize(f, BOUNDS, 3, **numbers)
    assert_close(result.best_x, PEAK)
    assert result.best_value == f(PEAK)
    assert len(result.X) == 3


def test_several_workers_and_failures():
    def fails_on_the_left(x):
        if x[0] < 6:
            raise RuntimeError("no signal")
        return hill(x)

    with pytest.warns(TrialFailedWarning), ThreadPoolExecutor(3) as pool:
        result = bx.optimize(
            fails_on_the_left,
            BOUNDS,
            16,
            executor=pool,
            max_pending=3,
            max_retries=0,
            progress=False,
        )
    assert result.failures
    assert hill(result.recommended_x) > 4.9


def test_a_finite_set_is_recommended_from():
    points = bx.Box(BOUNDS).sample(200, 0)
    result = bx.optimize(hill, bx.FiniteSet(points), 12, progress=False)
    best = max(hill(x) for x in points)
    assert (points == result.recommended_x).all(dim=-1).any()
    assert hill(result.recommended_x) > best - 0.01


def test_nothing_is_recommended_without_a_result():
    def fails(x):
        raise RuntimeError("no signal")

    with pytest.warns(TrialFailedWarning):
        result = bx.optimize(fails, BOUNDS, 2, max_retries=0, progress=False)
    assert result.recommended_x is result.recommended_mean is result.best_x is None


@pytest.mark.parametrize(
    ("bounds", "named"),
    [
        ([[0.0, 20.0], [20.0, 20.0]], "domain"),
        ("unit cube", "domain"),
        ([(0, 1, 2)], "domain"),
        ([[0.0, float("nan")], [1.0, 2.0]], "domain"),
    ],
)
def test_wrong_bounds_are_named(bounds, named):
    with pytest.raises(ValueError, match=named):
        bx.optimize(hill, bounds, 3)


# --- going on -------------------------------------------------------------------------------------


@pytest.mark.parametrize("minimize", [False, True])
def test_it_goes_on_from_the_strategy_of_a_result(minimize):
    f, numbers = cost if minimize else hill, {"progress": False, "seed": 3, "minimize": minimize}
    domain = bx.FiniteSet(bx.Box(BOUNDS).sample(60, 0))
    whole = bx.optimize(f, domain, 10, **numbers)
    begun = bx.optimize(f, domain, 9, **numbers)
    result = bx.optimize(f, begun.strategy, 10, progress=False)
    assert torch.equal(result.X, whole.X)
    assert torch.equal(result.recommended_x, whole.recommended_x)
    assert result.recommended_mean == whole.recommended_mean
    assert result.best_value == whole.best_value


@pytest.mark.parametrize("minimize", [False, True])
def test_it_goes_on_from_a_study(minimize, tmp_path):
    f = cost if minimize else hill
    domain = bx.FiniteSet(bx.Box(BOUNDS).sample(60, 0))
    whole = bx.optimize(f, domain, 10, progress=False, minimize=minimize)
    made = bx.algorithms.integrated_ei(domain)
    study = bx.Study(tmp_path / "lab.db", made, minimize=minimize)
    for num_trials in (9, 10):
        result = bx.optimize(f, study, num_trials, progress=False)
    assert torch.equal(result.X, whole.X)
    assert torch.equal(result.recommended_x, whole.recommended_x)
    assert result.recommended_mean == whole.recommended_mean


def test_a_strategy_that_recommends_nothing_itself():
    strategy = make(finite())
    result = bx.optimize(cost, strategy, 5, minimize=True, progress=False)
    x, mean = strategy.best()
    assert torch.equal(result.recommended_x, x)
    assert result.recommended_mean == -mean
