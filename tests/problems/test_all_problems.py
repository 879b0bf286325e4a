"""What all problems have in common: they follow the seed and the device, and travel."""

import pickle

import pytest
import torch

from botorch_ext.domains import Box, FiniteSet
from botorch_ext.problems import (
    ContextualRKHSFunction,
    GrowthFunction,
    HighestHill,
    NoisyLockOut,
    Perturbed,
    RKHSFunction,
    TwoPeaks,
    adversarial,
    lock_out,
    random_linear,
    rough,
)
from tests.helpers import matern, rbf

BOX = Box([[2.0, -7.0], [5.0, -6.2]])
CONTEXTS = Box([[10.0], [24.0]])


def smooth(seed: int = 3, box: Box = BOX) -> RKHSFunction:
    return RKHSFunction.random(box, rbf(0.7, 0.3), 2.0, noise_std=0.05, seed=seed)


def of_contexts(seed: int = 3, box: Box = BOX) -> ContextualRKHSFunction:
    contexts = CONTEXTS.to(device=box.device)
    return ContextualRKHSFunction.random(box, contexts, rbf(0.7, 0.3, 4.0), 2.0, seed=seed)


MADE = {
    "smooth": smooth,
    "contextual": of_contexts,
    "rough": lambda seed=3: Perturbed(smooth(), rough(2, 0.2, seed), 0.2),
    "adversarial": lambda: Perturbed(smooth(), adversarial(smooth(), 0.2), 0.2),
    "growth": lambda: GrowthFunction(matern(0.7, nu=1.5), Box([[3.0], [5.5]]), 3.5, 1.0),
    "hills": lambda seed=3: HighestHill(seed),
    "peaks": TwoPeaks,
    "lock-out": lock_out,
    "noisy lock-out": lambda: NoisyLockOut(1.0),
    "linear": random_linear,
}


def points_of(problem):
    domain = problem.domain
    X = domain.points if isinstance(domain, FiniteSet) else domain.sample(9, seed=2)
    dim = getattr(problem, "context_dim", 0)
    return torch.cat([X, 12.0 + torch.zeros(len(X), dim).to(X)], dim=-1)


@pytest.mark.parametrize("name", MADE)
def test_a_copy_for_another_process_is_the_same_function(name):
    problem = MADE[name](3) if name == "linear" else MADE[name]()
    X = points_of(problem)
    assert torch.equal(pickle.loads(pickle.dumps(problem))(X), problem(X))


@pytest.mark.parametrize("name", ["smooth", "contextual", "rough", "hills", "linear"])
def test_the_seed_alone_decides(name):
    state = torch.get_rng_state()
    first, again, other = (MADE[name](seed) for seed in (1, 1, 2))
    assert torch.equal(state, torch.get_rng_state())
    X = points_of(first)
    assert torch.equal(first(X), again(X))
    assert not torch.allclose(first(X), other(points_of(other)))


@pytest.mark.parametrize("make", [smooth, of_contexts])
def test_values_are_those_of_the_cpu_on_the_device_of_the_domain(make, device):
    here, there = make(), make(box=BOX.to(device=device))
    X = points_of(here)
    assert there(X.to(device)).device.type == device.type
    torch.testing.assert_close(there(X.to(device)).cpu(), here(X))
    if make is of_contexts:
        assert there.optimal_value_at([12.0]) == pytest.approx(here.optimal_value_at([12.0]))
    else:
        assert there.optimal_value == pytest.approx(here.optimal_value, abs=1e-9)


def test_float32_stays_float32():
    f = smooth(box=Box(BOX.bounds, dtype=torch.float32))
    double = RKHSFunction(rbf(0.7, 0.3), f.centers.double(), f.weights.double(), BOX)
    assert f(f.optimizer).dtype == torch.float32
    assert f.optimal_value == pytest.approx(double.optimal_value, rel=1e-3, abs=1e-3)
