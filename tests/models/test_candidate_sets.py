"""Sets of models by name: what is in them, against kernels made by hand."""

import math
from itertools import combinations

import pytest
import torch
from botorch.models.transforms import Standardize
from gpytorch.constraints import Interval
from gpytorch.kernels import LinearKernel, PeriodicKernel, RBFKernel, ScaleKernel
from torch.testing import assert_close

from botorch_ext import CandidateModels, KernelGP
from botorch_ext.kernels import AdditiveKernel, NuggetKernel, TaskKernel
from botorch_ext.widths import SelfNormalized
from tests.helpers import drawn, matern, rbf, tolerance
from tests.kernel_functions.kernels import periodic, scaled
from tests.kernels.joint import COVARIANCE, action_context, index_kernel, points, sparse_matrices
from tests.models.sessions import constant_mean, values

LOWER, SIDES = torch.tensor([[2.0, -3.0, 4.0], [3.0, 2.0, 0.5]], dtype=torch.float64)
EXACT = tolerance(torch.float64)


def draw(n, seed):
    return LOWER + SIDES * drawn(n, 3, seed=seed)


def ramp(X):
    return X[..., 1]


def alone(kernels, noise=0.05, mean=None):
    return [(kernel, noise, mean) for kernel in kernels]


GRID = [0.3, 0.9, 2.7]
COLUMNS = [[0.3, 1.0, 0.5], [2.0, 0.7, 0.9]]
NAMES = [f"lengthscale {value}" for value in GRID]
OF_COLUMNS = [f"lengthscale {', '.join(f'{value:g}' for value in row)}" for row in COLUMNS]
EACH_COLUMN = [
    (matern(*row, nu=1.5), noise, None) for row, noise in zip(COLUMNS, (0.1, 0.2), strict=True)
]
MEANS = [None, 0.5, ramp, constant_mean(3.0), lambda X: -X[..., 0]]
OF_MEANS = [(rbf(0.7), 0.1, mean) for mean in (None, constant_mean(0.5), *MEANS[2:])]
GROUPS, ALL_OF_TWO = [[[0], [1, 2]], [[2, 0]]], [[[0, 1]], [[0], [1]]]
lengthscales, additive = CandidateModels.lengthscales, CandidateModels.additive
OF_TASKS = {
    "tasks": lambda v: action_context(rbf(v)),
    "learned tasks": lambda v: action_context(rbf(v), index_kernel()),
    "of contexts": lambda v: action_context(TaskKernel(COVARIANCE), rbf(v), (4,), (0, 1, 2), "sum"),
}
# Each: the set, its names, and the kernel, noise and mean of each of its models.
SETS = {
    "lengthscales": (
        lengthscales(scaled(rbf(1.0), 0.7), GRID, 0.05),
        NAMES,
        alone(scaled(rbf(v), 0.7) for v in GRID),
    ),
    "one for an ARD kernel": (
        lengthscales(RBFKernel(ard_num_dims=3), GRID, 0.05),
        NAMES,
        alone(map(rbf, GRID)),
    ),
    "of columns": (lengthscales(matern(1.0, nu=1.5), COLUMNS, [0.1, 0.2]), OF_COLUMNS, EACH_COLUMN),
    "of columns, ARD": (
        lengthscales(matern(1.0, 1.0, 1.0, nu=1.5), COLUMNS, [0.1, 0.2]),
        OF_COLUMNS,
        EACH_COLUMN,
    ),
    "periods": (
        CandidateModels.periods(rbf(1.3) * periodic(1.0, 0.8, (1,)), GRID, 0.05),
        [f"period {value}" for value in GRID],
        alone(rbf(1.3) * periodic(v, 0.8, (1,)) for v in GRID),
    ),
    "noise variances": (
        CandidateModels.noise_variances(rbf(0.7), [0.01, 0.3]),
        ["noise variance 0.01", "noise variance 0.3"],
        [(rbf(0.7), 0.01, None), (rbf(0.7), 0.3, None)],
    ),
    "prior means": (
        CandidateModels.prior_means(rbf(0.7), MEANS, 0.1),
        ["mean 0", "mean 0.5", "mean ramp", "mean 3", "mean 4"],
        OF_MEANS,
    ),
    "given groups": (
        additive(rbf(0.8), GROUPS, 0.05, dim=3),
        ["{0|1,2}", "{0,2}"],
        alone(AdditiveKernel(rbf(0.8), groups, 3) for groups in GROUPS),
    ),
    "all groups": (
        additive(rbf(0.8), "all", 0.05, dim=2),
        ["{0,1}", "{0|1}"],
        alone(AdditiveKernel(rbf(0.8), groups, 2) for groups in ALL_OF_TWO),
    ),
    "twins": (
        lengthscales(RBFKernel(), GRID[:2], 0.05, means=ramp).with_nugget(0.4),
        [*NAMES[:2], *(f"{name}, nugget 0.4" for name in NAMES[:2])],
        [
            *alone(map(rbf, GRID[:2]), mean=ramp),
            *alone((rbf(v) + NuggetKernel(0.16) for v in GRID[:2]), mean=ramp),
        ],
    ),
    **{
        f"joint, {name}": (lengthscales(make(1.0), GRID, 0.05), NAMES, alone(map(make, GRID)))
        for name, make in OF_TASKS.items()
    },
}


@sparse_matrices
@pytest.mark.parametrize("name", SETS)
def test_each_model_of_a_set_is_a_separate_one(name):
    models, names, members = SETS[name]
    draws = points if name.startswith("joint") else draw
    X, Y = draws(8, 0)[[*range(8), 0, 1]], values(10, 2)  # some twice
    Z = torch.cat([draws(5, 1), X[:2]])
    X, Z = (each[:, :2] if name == "all groups" else each for each in (X, Z))
    assert models.names == names
    assert len(models.parts) == (2 if name in ("prior means", "twins") else 1)
    models.add(X, Y)
    mean, std = models.mean_and_std(Z)
    for i, (kernel, noise, prior) in enumerate(members):
        model = KernelGP(kernel, noise, prior)
        model.add(X, Y)
        expected = *model.mean_and_std(Z), model.information_gain()
        got = mean[i], std[i], models.information_gain()[i]
        for one, other in zip(got, expected, strict=True):
            assert_close(one, other.to(one), **EXACT)


def test_sets_of_lengthscales_know_them():
    models = CandidateModels.lengthscales(RBFKernel(), GRID, 0.02)
    assert models.lengthscales_of.tolist() == GRID
    assert models.select([2, 0]).lengthscales_of.tolist() == [2.7, 0.3]
    assert CandidateModels(RBFKernel(), 0.1).lengthscales_of is None
    assert CandidateModels.lengthscales(matern(1.0), COLUMNS, 0.1).lengthscales_of is None
    near = CandidateModels.lengthscales(RBFKernel(), [0.123456, 0.123457], 0.1)
    assert near.names == ["lengthscale 0.123456", "lengthscale 0.123457"]


def groups_of(models):
    return [
        tuple(tuple(map(int, group.split(","))) for group in name[1:-1].split("|"))
        for name in models.names
    ]


@pytest.mark.parametrize(("dim", "bell"), [(1, 1), (3, 5), (5, 52), (7, 877)])
def test_all_decompositions_are_the_partitions(dim, bell):
    partitions = groups_of(CandidateModels.additive(rbf(0.8), "all", 0.05, dim=dim))
    assert len(set(partitions)) == len(partitions) == bell
    assert partitions[0] == (tuple(range(dim)),)
    for groups in partitions:
        assert sorted(column for group in groups for column in group) == list(range(dim))


def test_random_trees_are_all_trees_in_the_end():
    def trees(dim, num, seed):
        return groups_of(CandidateModels.additive(rbf(0.8), "trees", 0.05, dim, num=num, seed=seed))

    # All trees on 4 nodes, found as the acyclic choices of 3 of the 6 edges.
    expected = set()
    for chosen in combinations(combinations(range(4), 2), 3):
        component = list(range(4))
        for a, b in chosen:
            component = [component[a] if c == component[b] else c for c in component]
        if len(set(component)) == 1:
            expected.add(chosen)
    assert set(trees(4, 16, seed=3)) == expected
    assert trees(9, 5, seed=1) == trees(9, 5, seed=1) != trees(9, 5, seed=2)


@pytest.mark.parametrize(
    ("kernel", "rate"), [(RBFKernel(), 3), (ScaleKernel(matern(1.0, nu=1.5)), 6)]
)
def test_a_family_grows_by_all_lengthscales_above_the_growth(kernel, rate):
    models = CandidateModels.growing(kernel, 2.0, 0.1, 3, float)
    finite = models.on(draw(6, 3))
    told = []
    for t in range(1, 12):
        told.append((draw(2, t), values(2, t)))
        for each in (models, finite):
            add_one_of_two(each, *told[-1])
        # All lengthscales above 2 / t, and the first.
        due = [2 * math.exp(-i / rate) for i in range(100)]
        due = [value for i, value in enumerate(due) if i == 0 or value > 2 / t]
        names, before = [f"lengthscale {value:.4g}" for value in due], len(models)
        assert models.grow(t) == finite.grow(t) == names[before:]
        assert models.grow(t) == []
        assert models.names == finite.names == names
        assert_close(models.lengthscales_of, torch.tensor(due, dtype=torch.float64))
    assert models.pending == list(range(1, 22, 2))
    fresh = CandidateModels.lengthscales(kernel, due, 0.1)
    for X, Y in told:
        add_one_of_two(fresh, X, Y)
    expected = fresh.mean_and_std(finite.candidates)
    for got in (models.mean_and_std(finite.candidates), (finite.mean, finite.std)):
        for one, other in zip(got, expected, strict=True):
            assert_close(one, other, **EXACT)
    few = models.select([1, 0])
    added = few.grow(40)
    assert few.names == [models.names[1], models.names[0], *added] and added
    assert CandidateModels(kernel, 0.1).grow(100) == []


def add_one_of_two(models, X, Y):
    models.add(X[:1], Y[:1])
    models.add(X[1:], None)


def test_the_default_growth_is_a_power():
    models = CandidateModels.growing(RBFKernel(), 1.0, 0.1, 2)
    assert len(models.grow(50)) == sum(math.exp(-i / 2) > 50**-0.9 for i in range(1, 50))


def test_twins_of_twins_take_the_width_of_the_first():
    models = CandidateModels.lengthscales(RBFKernel(), [0.3, 2.7], 0.02)
    four = models.with_nugget(0.1).with_nugget(0.2)
    for each in (models, four):
        each.add(draw(9, 0), values(9, 2))
    width = SelfNormalized(1.0, 0.1, 0.1)
    expected = models.width(width, 10)
    assert_close(four.width(width, 10), expected.repeat(4), **EXACT)
    several = [SelfNormalized(1.0 + i, 0.1, 0.1) for i in range(8)]
    assert_close(four.width(several, 10), expected.repeat(4) + torch.arange(8.0).double(), **EXACT)
    # Without its plain model a twin has its own.
    left = four.select([0, 3])
    own = 1 + 0.1 * ((2 * math.log(10) + 2 * left.information_gain()[1]) / 0.02).sqrt()
    assert_close(left.width(width, 10), torch.stack([expected[0], own]), **EXACT)


def test_what_can_have_no_twins_says_so():
    growing = CandidateModels.growing(RBFKernel(), 2.0, 0.02, dim=2)
    known = CandidateModels(RBFKernel(), 0.02)
    known.add(draw(3, 0), values(3, 1))
    moved = KernelGP(RBFKernel(), 0.02, outcome_transform=Standardize(1))
    for models in (growing, known, CandidateModels.of(moved)):
        with pytest.raises(ValueError, match="with_nugget adds twins only"):
            models.with_nugget(0.1)


RBF, TWO = RBFKernel(), [rbf(1.0), rbf(2.0)]
NARROW = RBFKernel(lengthscale_constraint=Interval(0.1, 1.0))
# Each: what makes a set, its arguments, and what the error names.
BAD_SETS = [
    ("lengthscales", (RBF, [1.0, 1.0], 0.1), "twice"),
    ("lengthscales", (RBF + RBFKernel(), [1.0], 0.1), "got 2"),
    ("lengthscales", (action_context(rbf(1.0), rbf(1.0), 3), [1.0], 0.1), "got 2"),
    ("lengthscales", (LinearKernel(), [1.0], 0.1), "got 0"),
    ("lengthscales", (RBFKernel(ard_num_dims=3), [[1.0, 2.0]], 0.1), "columns"),
    ("lengthscales", (NARROW, [0.5, 2.0], 0.1), "constraint"),
    ("periods", (RBF, [1.0], 0.1), "PeriodicKernel"),
    ("noise_variances", (RBF, [0.0]), "values"),
    ("noise_variances", (RBF, [[0.1, 0.2]]), "values"),
    ("additive", (RBF, "all", 0.1, 8), "dim"),
    ("additive", (RBF, "trees", 0.1, 3), "num"),
    ("additive", (RBF, "trees", 0.1, 3, 4), "num"),
    ("additive", (RBF, "tree", 0.1, 3), "all"),
    ("growing", (PeriodicKernel(), 1.0, 0.1, 2), "RBF or a Matern"),
    ("growing", (RBF, -1.0, 0.1, 2), "lengthscale_0"),
    ("growing", (RBF, 1.0, 0.1, 2, lambda t: 0.0), "growth"),
    ("of", (KernelGP(RBF, torch.tensor([0.1, 0.2]).double()),), "model"),
    ("__call__", ([], 0.1), "kernels"),
    ("__call__", (TWO, [0.1, 0.2, 0.3]), "kernels"),
    ("__call__", (TWO, 0.1, None, ["a", "a"]), "twice"),
    ("__call__", (TWO, 0.1, None, ["a"]), "names"),
]


@pytest.mark.parametrize(("name", "arguments", "said"), BAD_SETS)
def test_bad_sets_are_refused(name, arguments, said):
    make = CandidateModels if name == "__call__" else getattr(CandidateModels, name)
    with pytest.raises(ValueError, match=said):
        make(*arguments)
    with pytest.raises(ValueError, match="std"):
        CandidateModels(RBFKernel(), 0.02).with_nugget(-0.1)
