"""Planned batches: each point maximises the conditional standard deviation, by dense algebra."""

import warnings

import pytest
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import LinearKernel, PeriodicKernel
from torch.testing import assert_close

from benchmarks.common.pretend_cuda import PretendCUDA, following_memory
from botorch_ext import Box, FiniteSet, KernelGP, Region, plan
from botorch_ext.exceptions import JitterWarning
from botorch_ext.search import planning
from botorch_ext.search.region_constraints import Constraint
from tests.helpers import drawn, matern, pairwise, rbf, tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior

NOISE = 0.01
TOL = tolerance(torch.float64)


def kernel(kind="rbf"):
    if kind == "periodic":  # no closed-form gradient
        k = PeriodicKernel().double()
        k.period_length = torch.tensor(2.7, dtype=torch.float64)
        k.lengthscale = torch.tensor(1.3, dtype=torch.float64)
        return k
    return (rbf if kind == "rbf" else matern)(0.9, 0.4)


def box(**kind):
    return Box([[2.0, -3.0], [5.0, -1.5]], **kind)


def finite(num_points=150, **kind):
    return FiniteSet(box().sample(num_points, seed=8), **kind)


def grid():
    """35 points whose prior variances, and many later ones, tie."""
    x, y = (torch.linspace(*side, dtype=torch.float64) for side in ((2, 5, 7), (-3, -1.5, 5)))
    return FiniteSet(torch.cartesian_prod(x, y))


def data(num_points=12, seed=3):
    X = box().sample(num_points, seed)
    return X, torch.sin(3 * X[:, 0]) + X[:, 1]


def model_with(num_points=12, kind="rbf", **options):
    model = KernelGP(kernel(kind), NOISE, **options)
    if num_points:
        model.add(*(part.to(model.noise_variance) for part in data(num_points)))
    return model


def dense_std(k, seen, Z, noise=NOISE):
    """The posterior standard deviation at Z given points seen, by a dense solve."""
    if not len(seen):
        return k(Z, diag=True).detach().sqrt()
    return dense_posterior(k, seen, Z.new_zeros(len(seen)), Z, noise)[1].diagonal().clamp(0).sqrt()


def excess_over_picks(k, seen, batch, candidates, noise=NOISE):
    """How much the largest conditional standard deviation exceeds that of each pick, and the
    conditional standard deviations of the picks."""
    excess, std = [], []
    for x in batch.X.double():
        scores = dense_std(k, seen, torch.cat([x[None], candidates.double()]), noise)
        excess.append((scores.max() - scores[0]).item())
        std.append(scores[0])
        seen = torch.cat([seen, x[None]])
    return max(excess), torch.stack(std)


def rows_of(batch):
    assert batch.indices is not None
    return batch.indices.tolist()


def gain_of(k, seen, X, noise=NOISE):
    """What X adds to the information gain of the points seen, by log-determinants."""
    before = dense_information_gain(k, seen, noise) if len(seen) else 0.0
    return dense_information_gain(k, torch.cat([seen, X]), noise) - before


# --- finite sets ----------------------------------------------------------------------------------


@pairwise(
    kind=["rbf", "matern", "periodic"],
    num_data=[0, 12],
    num_pending=[0, 5],
    dtype=[torch.float64, torch.float32],
)
def test_every_point_of_a_set_is_a_maximiser(kind, num_data, num_pending, dtype):
    domain, k = finite(dtype=dtype), kernel(kind)
    pending = box().sample(num_pending, seed=21)
    seen = torch.cat([data(num_data)[0], pending])
    model = model_with(num_data, kind, dtype=dtype)
    given = pending.to(dtype) if num_pending else None
    batch = plan(domain, model, 25, X_pending=given, seed=1)
    assert batch.std.dtype == dtype
    assert torch.equal(domain.points[rows_of(batch)], batch.X)
    excess, std = excess_over_picks(k, seen, batch, domain.points)
    assert excess <= (1e-7 if dtype == torch.float64 else 1e-3)
    assert_close(batch.std.double(), std, **tolerance(dtype))
    # The chain rule of the log-determinant.
    gain = gain_of(k, seen, batch.X.double())
    assert_close(batch.gains.double(), 0.5 * (1 + std.square() / NOISE).log(), **tolerance(dtype))
    assert batch.information_gain == pytest.approx(gain, rel=10 * tolerance(dtype)["rtol"])
    assert model.num_observations == num_data  # the model stays as it is


def test_ties_are_random_and_seeded():
    domain, model = grid(), KernelGP(kernel(), NOISE)
    first = [rows_of(plan(domain, model, 1, seed=seed))[0] for seed in range(120)]
    # All 35 tie: 120 draws miss few of them, and none of them takes more than its share.
    assert len(set(first)) >= 28
    assert max(first.count(row) for row in first) <= 12
    one, again = plan(domain, model, 20, seed=5), plan(domain, model, 20, seed=5)
    assert rows_of(one) == rows_of(again)
    assert torch.equal(one.std, again.std)
    # Candidates with the same coordinates are one point each.
    twins = FiniteSet(domain.points[[3]].repeat(6, 1))
    assert len({rows_of(plan(twins, model, 1, seed=seed))[0] for seed in range(60)}) == 6


def test_duplicates_at_tiny_noise():
    # After 12 different points every further one is a repetition whose variance is nearly zero.
    noise, k = 1e-10, kernel("matern")
    points = box().sample(12, seed=2).repeat(3, 1)
    batch = plan(FiniteSet(points), KernelGP(k, noise), 40, seed=0)
    # The variance is known to about eps / noise^(1/2), its root to less.
    assert excess_over_picks(k, points[:0], batch, points, noise)[0] <= 2e-5
    assert sorted(row % 12 for row in rows_of(batch)[:12]) == list(range(12))
    assert bool((batch.std >= 0).all()) and bool((batch.std[12:] <= 2e-5).all())
    assert batch.information_gain == pytest.approx(gain_of(k, points[:0], batch.X, noise), rel=1e-4)


def test_float32_duplicates_below_its_precision():
    # The noise variance is below float32's rounding of k(x, x): the diagonal is floored, so no NaN.
    points = box().sample(5, seed=2).repeat(2, 1).float()
    model = KernelGP(kernel(), 1e-9, dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", JitterWarning)
        for where in (FiniteSet(points), box(dtype=torch.float32)):
            batch = plan(where, model, 10, X_pending=points[:2], seed=0)
            assert bool(torch.isfinite(batch.std).all())
            assert bool(torch.isfinite(batch.X).all())


def test_a_large_set_takes_the_memory_of_its_rows(monkeypatch):
    n, q, N, at_once = 60, 20, 4000, 2**12
    points = drawn(N, 2, low=-3, high=-2)

    def planned(device):
        model = KernelGP(matern(0.7), 0.01, device=device)
        X = points[:n].to(device) + 0.01
        model.add(X, X[:, 0])
        domain = FiniteSet(points.to(device))
        with following_memory() as memory:
            return plan(domain, model, q).indices, memory.growth

    expected, _ = planned("cpu")
    monkeypatch.setattr(planning, "_MOST_SCREENED", at_once)
    assert torch.equal(planned("cpu")[0], expected)
    with PretendCUDA():
        indices, growth = planned("cuda")
    assert torch.equal(indices.cpu(), expected)
    # Distances have a difference in each column for each pair.
    assert growth <= ((n + q) * N + 10 * at_once + 20 * N) * 8


# --- boxes and regions ----------------------------------------------------------------------------


def transformed(kind="rbf"):
    """A BoTorch model whose kernel works on the unit cube and whose outcomes are standardised."""
    X, y = data(9)
    gp = SingleTaskGP(
        X,
        y[:, None] + 40,
        covar_module=kernel(kind),
        input_transform=Normalize(2, bounds=box().bounds),
        outcome_transform=Standardize(1),
    )
    gp.likelihood.noise = torch.tensor(NOISE, dtype=torch.float64)
    return gp.eval()


def unit(X):
    return (X - box().lower) / (box().upper - box().lower)


# name: model, its kernel, its data, and the map to the coordinates of the kernel
MODELS = {
    "closed form": lambda: (model_with(9), kernel(), data(9)[0], lambda X: X),
    "autograd": lambda: (model_with(9, "periodic"), kernel("periodic"), data(9)[0], lambda X: X),
    "transformed": lambda: (KernelGP.from_botorch(transformed()), kernel(), unit(data(9)[0]), unit),
    "BoTorch": lambda: (transformed("matern"), kernel("matern"), unit(data(9)[0]), unit),
}


@pytest.mark.parametrize("name", MODELS)
def test_every_path_agrees_with_dense_variances(name):
    model, k, seen, unit = MODELS[name]()
    pending = box().sample(3, seed=5)
    batch = plan(box(), model, 10, X_pending=pending, seed=6)
    assert bool(box().contains(batch.X).all())
    seen = torch.cat([seen, unit(pending)])
    screen = unit(torch.cat([box().sample(512, seed=1), box().bounds]))
    for x, std in zip(batch.X, batch.std, strict=True):
        scores = dense_std(k, seen, torch.cat([unit(x)[None], screen]))
        assert_close(std, scores[0], **TOL)
        # Not the maximiser to the last digit, but no screened point is much better.
        assert scores.max() <= 1.01 * scores[0]
        seen = torch.cat([seen, unit(x)[None]])


def test_the_first_point_of_a_kernel_that_is_not_stationary():
    # k(x, x) varies: the batch starts where it is largest, a corner.
    k = LinearKernel().double()
    k.variance = torch.tensor(0.03, dtype=torch.float64)
    batch = plan(box(), KernelGP(k, NOISE), 3, seed=0)
    corner = torch.tensor([5.0, -3.0], dtype=torch.float64)
    assert_close(batch.X[0], corner)
    assert_close(batch.std[0], (0.03 * corner.square().sum()).sqrt(), **TOL)


def cut_disc():
    """A disc that a face of the box cuts off, and an oblique line: with three tips."""

    def disc(X):
        return 0.6 - (X - X.new_tensor([2.3, -2.3])).norm(dim=-1)

    def line(X):
        return X[..., 0] + 0.7 * X[..., 1] - 0.5

    constraints = [
        Constraint(KernelGP(kernel(), NOISE, mean=mean), 0.0, 0.0, 0.0) for mean in (disc, line)
    ]
    return Region(box(), tuple(constraints))


def points_of_the_cut_disc():
    """A fine grid of it, and its boundary."""
    x, y = (torch.linspace(*side.tolist(), 80).double() for side in box().bounds.T)
    angle = torch.linspace(0, 2 * torch.pi, 3_000, dtype=torch.float64)
    circle = torch.stack([2.3 + 0.6 * angle.cos(), -2.3 + 0.6 * angle.sin()], dim=-1) - 1e-12
    along = torch.linspace(-3.0, -1.5, 3_000, dtype=torch.float64)
    line = torch.stack([0.5 - 0.7 * along + 1e-12, along], dim=-1)
    face = torch.stack([torch.full_like(along, 2.0), along], dim=-1)
    Z = torch.cat([torch.cartesian_prod(x, y), circle, line, face])
    return Z[cut_disc().contains(Z)]


def test_the_highest_of_many_peaks_is_found():
    # The largest are on faces and constraints, and where those meet; with few starts, far apart,
    # the last point is .9987 of the largest standard deviation.
    batch = plan(cut_disc(), KernelGP(kernel(), NOISE), 20, seed=4)
    assert bool(cut_disc().contains(batch.X).all())
    assert torch.equal(plan(cut_disc(), KernelGP(kernel(), NOISE), 2, seed=4).X, batch.X[:2])
    assert not torch.equal(plan(cut_disc(), KernelGP(kernel(), NOISE), 2, seed=5).X, batch.X[:2])
    screen = points_of_the_cut_disc()
    for place in (1, 4, 9, 19):
        largest = max(dense_std(kernel(), batch.X[:place], Z).max() for Z in screen.split(1000))
        assert batch.std[place] >= (1 - 1e-4) * largest


def test_a_population_of_the_caller_is_screened():
    model, points = model_with(4), box().sample(3, seed=1)
    one = plan(box(), model, 6, population=points, seed=1)
    two = plan(box(), model, 6, population=points, seed=99)  # nothing else is random
    assert torch.equal(one.X, two.X)
    # With no gradient at all the points are those of the population, to the last bit.
    first = plan(box(), KernelGP(kernel(), NOISE), 1, population=points)
    assert torch.equal(first.X, points[:1])
    assert one.std[0] >= dense_std(kernel(), data(4)[0], points).max()


def test_a_box_and_a_region_without_constraints_are_the_same():
    model = model_with(4)
    assert torch.equal(plan(box(), model, 6, seed=1).X, plan(Region(box()), model, 6, seed=1).X)


@pytest.mark.parametrize("num", [1, 65])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_few_points_to_start_from(num, dtype):
    small = box(dtype=dtype)
    points = small.sample(num, seed=1)
    batch = plan(small, model_with(9, dtype=dtype), 6, population=points)
    assert batch.X.dtype == dtype and bool(small.contains(batch.X).all())
    _, std = excess_over_picks(kernel(), data(9)[0], batch, batch.X[:0])
    assert_close(batch.std.double(), std, **tolerance(dtype))
    assert batch.std[0] >= dense_std(kernel(), data(9)[0], points.double()).max() - 1e-4


def test_what_cannot_be_planned_with_is_refused_by_name():
    outside = torch.tensor([[9.0, -2.0]]).double()
    batched = KernelGP(kernel(), torch.tensor([0.1, 0.2]).double())
    X = unit(data(4)[0])
    two = SingleTaskGP(X, (X - X.mean(dim=0)) / X.std(dim=0), outcome_transform=None)
    for where, model, named, given in (
        (finite(), batched, "model", {}),
        (finite(dtype=torch.float32), model_with(), "model", {}),
        (box(), two, "model", {}),
        (cut_disc(), model_with(), "population", {"population": box().bounds}),
        (box(), model_with(), "population", {"population": outside[:0]}),
        (finite(), model_with(), "population", {"population": finite().points}),
    ):
        with pytest.raises(ValueError, match=f"{named} must "):
            plan(where, model, 2, **given)
