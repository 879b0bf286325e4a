import pytest
import torch
from torch.nn.functional import max_pool3d
from torch.testing import assert_close

from botorch_ext import Box, CandidateModels
from botorch_ext.robust.box_balls import BoxBalls
from botorch_ext.robust.own_bounds import OwnBounds
from botorch_ext.robust.perturbations import Perturbations
from botorch_ext.robust.worst_case import WorstCase, lowest_bound, maximize_worst_case
from botorch_ext.search.models import UpperBounds
from botorch_ext.search.objectives import FunctionObjective
from tests.helpers import matern, rbf, tolerance


def upper_bounds(dim, num_models, seed=0, num_data=20, device="cpu"):
    """Models of two forms, not in the order of the parts they make."""
    box = Box([[2.0] * dim, [4.0] * dim])
    kernels = [(rbf if i % 2 else matern)(0.4 + 0.2 * i) for i in range(num_models)]
    models = CandidateModels(kernels, 0.01, device=device)
    X = box.sample(num_data, seed)
    models.add(X.to(device), torch.sin(3 * X.sum(dim=-1) + seed).to(device))
    widths = torch.linspace(1.5, 2.5, num_models, dtype=torch.float64).to(device)
    box = box.to(device=device)
    return UpperBounds(models, widths, 0.1 * widths), box


def test_own_bounds_by_loops():
    bounds, box = upper_bounds(2, 5)
    X = box.sample(30, 1).view(6, 5, 2)
    expected = torch.stack([bounds.values(X[:, i])[i] for i in range(5)], dim=-1)
    own = OwnBounds.of(bounds)
    exact = tolerance(torch.float64)
    values, gradients = own.value_and_gradient(X)
    assert_close(own.value(X), expected, **exact)
    assert_close(values, expected, **exact)

    def one(Z):
        mean, std = (
            torch.stack([m.mean_and_std(Z[:, i])[k] for i, m in enumerate(singles)], dim=-1)
            for k in range(2)
        )
        return mean + bounds.widths * std

    singles = [bounds.models.single(i) for i in range(5)]
    assert_close(gradients, FunctionObjective(one).value_and_gradient(X)[1], **exact)


@pytest.mark.parametrize(
    ("dim", "num_models", "norm"), [(1, 1, "l2"), (2, 1, "linf"), (2, 2, "l2")]
)
def test_at_least_as_good_as_a_fine_search(dim, num_models, norm):
    seed = dim
    bounds, box = upper_bounds(dim, num_models, seed)
    balls = Perturbations(0.25, norm).on(box)
    x, position = maximize_worst_case(bounds, balls, seed)
    assert bool(box.contains(x))
    value = WorstCase(bounds.select([position]), balls).value(x.unsqueeze(0))
    g, own = torch.Generator().manual_seed(seed), OwnBounds.of(bounds)
    clouds = [box.sample(300, seed + 99)]
    for spread in (0.1, 1e-3):  # and closer and closer to the pick
        near = x + spread * (2 * torch.rand(80, dim, generator=g, dtype=torch.float64) - 1)
        clouds.append(torch.minimum(torch.maximum(near, box.lower), box.upper))
    X = torch.cat(clouds).unsqueeze(1).expand(-1, num_models, -1)
    assert value >= balls.worst_case(own, X)[0].max() - 1e-7


def hills(box, data, lengthscale, width):
    """A bound of a model of data in hundredths: points of the unit cube, and values."""
    data = torch.tensor(data, dtype=torch.float64) / 100
    side = box.upper - box.lower
    models = CandidateModels([matern(*(lengthscale * side).tolist())], 1e-4)
    models.add(box.from_unit(data[:, :-1]), data[:, -1])
    widths = torch.tensor([width], dtype=torch.float64)
    best = data[data[:, -1].topk(5).indices, :-1]
    return UpperBounds(models, widths, 0 * widths), box.from_unit(best)


def test_no_centre_of_a_grid_is_above_the_best_of_several_hills():
    # The three highest ends of the first climbs were on one hill, which is not the best.
    box = Box([[2.0, -3.0, 0.5], [5.0, -2.5, 2.5]])
    data = [
        *((90, 65, 9, -109), (13, 9, 96, -83), (0, 99, 35, 17), (2, 37, 4, 35), (25, 4, 20, 63)),
        *((62, 0, 32, 27), (6, 43, 40, 105), (28, 68, 46, 313), (33, 61, 63, 234)),
        *((50, 74, 56, 174), (26, 79, 28, 126), (22, 67, 38, 296), (26, 44, 41, 151)),
        *((4, 69, 48, 70), (20, 64, 51, 282), (20, 64, 51, 282)),
    ]
    bounds, _ = hills(box, data, 0.25, 2.0)
    balls = BoxBalls(box, 0.1 * (box.upper - box.lower), "linf")
    axis = torch.linspace(0, 1, 41, dtype=torch.float64)
    grid = box.from_unit(torch.cartesian_prod(axis, axis, axis))
    values = bounds.values(grid).view(1, 41, 41, 41)
    # Four steps of the grid to either side are within reach, as far as there are any.
    lowest = -max_pool3d(-values, kernel_size=9, stride=1, padding=4)
    x, _ = maximize_worst_case(bounds, balls, 5)
    assert WorstCase(bounds, balls).value(x.unsqueeze(0)) >= lowest.max()


@pytest.mark.slow
def test_a_plateau_is_left():
    # The worst point of many centres is the same: no slope leads from there to the best. 17 of 20
    # searches find it, 8 without a second screening, 10 where each centre counts what its own
    # offsets see alone; the others end on another hill.
    box = Box([[2.0, -3.0], [5.0, -2.5]])
    data = [
        *((0, 40, 43), (29, 76, -114), (100, 83, 97), (94, 26, -123), (40, 8, -125)),
        *((57, 66, -187), (18, 5, -85), (65, 19, -8), (68, 80, 51), (23, 98, -30), (75, 48, 76)),
        *((100, 44, 119), (42, 55, -77), (85, 98, 2), (98, 7, 125), (6, 75, -128)),
        *((50, 80, -102), (32, 27, 87), (69, 1, -66), (89, 34, -78), (79, 68, 98), (99, 60, 146)),
        *((87, 46, 96), (86, 85, 177)),
    ]
    bounds, extra = hills(box, data, 0.15, 4.0)
    balls = BoxBalls(box, 0.2 * (box.upper - box.lower), "l2")
    found = [maximize_worst_case(bounds, balls, seed, extra)[0] for seed in range(6)]
    many = BoxBalls(box, balls.radii, "l2", num_screened=4096, num_starts=32)
    better = box.from_unit(torch.tensor([1.0, 0.6225], dtype=torch.float64))
    *values, known = WorstCase(bounds, many).value(torch.stack([*found, better]))
    assert sum(bool(value >= known - 1e-7) for value in values) >= 4


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_lowest_bound_by_a_fine_search(norm):
    bounds, box = upper_bounds(2, 3)
    lower = UpperBounds(bounds.models, -bounds.widths, -bounds.offsets)
    balls = Perturbations((0.3, 0.2), norm).on(box)
    axis = torch.linspace(-1, 1, 41, dtype=torch.float64)
    U = torch.cartesian_prod(axis, axis)
    U = U[U.norm(dim=-1) <= 1] if norm == "l2" else U
    for x in torch.cat([box.sample(6, 3), box.bounds]):
        z, position = lowest_bound(lower, balls, x)
        Z = balls.points(x, U)
        assert lower.values(z.unsqueeze(0))[position] <= lower.values(Z).min() + 1e-9
        assert bool(Perturbations((0.3, 0.2), norm).reach(x.unsqueeze(0), z.unsqueeze(0)))
