"""What all problems have in common: their maximum, their seed, their device, and their copies."""

import pickle

import pytest
import torch
from botorch.test_functions import Branin
from gpytorch.kernels import ScaleKernel

from botorch_ext import problems
from botorch_ext.domains import Box, FiniteSet
from tests.helpers import matern, rbf

BOX = Box([[2.0, -7.0], [5.0, -6.2]])
CONTEXTS = Box([[10.0], [24.0]])
UNIT = Box([[0.0], [1.0]])


def smooth(seed=3, box=BOX, kernel=None):
    kernel = rbf(0.7, 0.3) if kernel is None else kernel
    return problems.RKHSFunction.random(box, kernel, 2.0, noise_std=0.05, seed=seed)


def of_contexts(seed=3, box=BOX):
    contexts = CONTEXTS.to(device=box.device)
    return problems.ContextualRKHSFunction.random(box, contexts, rbf(0.7, 0.3, 4.0), 2.0, seed=seed)


def perturbed(seed=0, kind="rough"):
    f = problems.RKHSFunction.random(BOX, rbf(0.5), 2.0, noise_std=0.05, seed=seed)
    return problems.Perturbed(
        f, problems.rough(2, 0.2, seed) if kind == "rough" else problems.adversarial(f, 0.2), 0.2
    )


ON_BOXES = {
    **{f"rbf {seed}": lambda seed=seed: smooth(seed) for seed in range(3)},
    "matern12": lambda: smooth(1, kernel=matern(0.7, 0.3, nu=0.5)),
    "matern32": lambda: smooth(2, kernel=matern(0.7, 0.3, nu=1.5)),
    "matern52": lambda: smooth(0, kernel=ScaleKernel(matern(0.7, 0.3)).double()),
    "rough": perturbed,
    "adversarial": lambda: perturbed(1, "adversarial"),
    "growth": lambda: problems.GrowthFunction(matern(0.7, nu=1.5), Box([[3.0], [5.5]]), 3.5, 1.0),
    "narrow peak": lambda: problems.LengthscalePeak(UNIT),
    "wide peak": lambda: problems.LengthscalePeak(UNIT, peak_std=0.08**0.5),
    "signal": lambda: problems.RepeatedSignal(Box([[0.0], [2.0]])),
    "decomposition": lambda: problems.CorrelatedMode(Box([[0.0] * 3, [1.0] * 3])),
    "two peaks": lambda: problems.TwoPeaks(Box([[0.0] * 2, [1.0] * 2])),
    "branin": lambda: problems.SyntheticProblem(Branin()),
}
ON_SETS = {
    "rbf": lambda seed=3: smooth(seed, FiniteSet(BOX.sample(300, seed=9))),
    "peak": problems.LengthscalePeak,
    "signal": problems.RepeatedSignal,
    "decomposition": problems.CorrelatedMode,
    "hills": lambda seed=3: problems.HighestHill(seed),
    "two peaks": problems.TwoPeaks,
    "lock-out": problems.LockOut,
    "noisy lock-out": lambda: problems.NoisyLockOut(1.0),
    "linear": lambda seed=3: problems.random_linear(seed),
}


def by_finer_grids(f, box):
    """The largest value on ever finer grids around the best points of a coarse one."""
    num = {1: 2000, 2: 200, 3: 30}[box.dim]
    axes = [torch.linspace(*side, num).double() for side in box.bounds.T.tolist()]
    grid = torch.cartesian_prod(*axes).reshape(-1, box.dim)
    best = grid[f(grid).topk(20).indices]
    steps = [torch.linspace(-1, 1, 7).double()] * box.dim
    offsets = torch.cartesian_prod(*steps).reshape(-1, box.dim)
    reach = (box.upper - box.lower) / (num / 2)
    for _ in range(25):
        fine = (best.unsqueeze(1) + offsets * reach).clamp(box.lower, box.upper)
        rows = f(fine.flatten(0, 1)).view(20, -1).argmax(dim=1)
        best, reach = fine[torch.arange(20), rows], reach / 2
    return float(f(best).max())


@pytest.mark.parametrize("name", ON_BOXES)
def test_the_maximum_on_a_box_is_that_of_ever_finer_grids(name):
    f = ON_BOXES[name]()
    assert bool(f.domain.contains(f.optimizer))
    assert f.optimal_value == float(f(f.optimizer))
    found = by_finer_grids(f, f.domain)
    # GPyTorch's distances carry rounding errors that a cusp magnifies to 1e-8.
    assert f.optimal_value >= found - (1e-8 if name == "matern12" else 1e-9)
    assert f.optimal_value == pytest.approx(found, abs=1e-6)


@pytest.mark.parametrize("nu", [0.5, 2.5])
def test_the_maximum_in_a_context_is_that_of_ever_finer_grids(nu):
    kernel = matern(0.7, 0.3, 4.0, nu=nu)
    f = problems.ContextualRKHSFunction.random(BOX, CONTEXTS, kernel, norm=2.0, seed=3)
    for z in (11.0, 16.5):

        def at(X, z=z):
            return f(torch.cat([X, torch.full_like(X[:, :1], z)], dim=-1))

        best, x = f.optimal_value_at([z]), f.optimizer_at([z])
        assert bool(BOX.contains(x)) and float(at(x[None])) == pytest.approx(best, abs=1e-9)
        assert by_finer_grids(at, BOX) == pytest.approx(best, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_the_highest_of_thousands_of_bumps_in_four_dimensions_is_found(seed):
    box = Box([[2.0, -7.0, 1.0, 5.0], [5.0, -6.2, 3.0, 6.0]])
    f = problems.RKHSFunction.random(box, rbf(0.8), 2.0, seed=seed)
    p = problems.Perturbed(f, problems.rough(4, 0.2, seed), 0.2)
    # A search of its own: many starts in the part of the box where f is high enough.
    X = f.optimizer + 0.3 * (box.sample(2**14, seed=5) - f.optimizer)
    X = X[f(X) > f.optimal_value - 0.4]
    _, value = problems.global_maximum(p, box, seed=3, num_raw=0, num_starts=300, extra=X)
    assert p.optimal_value == pytest.approx(value, abs=1e-9)


@pytest.mark.parametrize("name", ON_SETS)
def test_the_maximum_on_a_set_is_that_of_its_points(name):
    f = ON_SETS[name]()
    values = f(f.domain.like)
    assert f.optimal_value == float(values.max())
    assert torch.equal(f.optimizer, f.domain.like[values.argmax()])


def points_of(problem):
    domain = problem.domain
    X = domain.points if isinstance(domain, FiniteSet) else domain.sample(9, seed=2)
    dim = getattr(problem, "context_dim", 0)
    return torch.cat([X, 12.0 + torch.zeros(len(X), dim).to(X)], dim=-1)


@pytest.mark.parametrize("make", [*ON_BOXES.values(), *ON_SETS.values(), of_contexts])
def test_a_copy_for_another_process_is_the_same_function(make):
    problem = make()
    X = points_of(problem)
    assert torch.equal(pickle.loads(pickle.dumps(problem))(X), problem(X))


SEEDED = smooth, of_contexts, perturbed, ON_SETS["hills"], ON_SETS["linear"], ON_SETS["rbf"]


@pytest.mark.parametrize("make", SEEDED)
def test_the_seed_alone_decides(make):
    state = torch.get_rng_state()
    first, again, other = (make(seed) for seed in (1, 1, 2))
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
    double = problems.RKHSFunction(rbf(0.7, 0.3), f.centers.double(), f.weights.double(), BOX)
    assert f(f.optimizer).dtype == torch.float32
    assert f.optimal_value == pytest.approx(double.optimal_value, rel=1e-3, abs=1e-3)
