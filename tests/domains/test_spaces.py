"""Boxes with whole numbers, logarithmic scales, codes and linear constraints."""

import copy
import itertools
import pickle

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import OutsideDomainError

BOUNDS = [(20.0, 120.0), (1e-4, 2.0), (0.6, 6.9), (-1.0, 5.0)]
SUM = ([[0.01, 0.0, 0.3, 0.0], [0.0, 1.0, 0.0, -1.0]], [2.5, 1.5])


def mixed(**options):
    """Temperature, logarithm of a concentration, equivalents, solvent; two constraints."""
    given = {"integer": [2], "log": [1], "categories": {3: [3, -1, 0.5]}, "constraints": SUM}
    return bx.Box(BOUNDS, **{**given, **options})


def is_member(x):
    """The definition of the points of `mixed`, but for the bounds."""
    return (
        x[2] == int(x[2])
        and x[3] in (-1.0, 0.5, 3.0)
        and 0.01 * x[0] + 0.3 * x[2] <= 2.5 + 1e-9
        and x[1] - x[3] <= 1.5 + 1e-9
    )


def test_what_a_box_was_made_of_can_be_read():
    box = mixed()
    assert (box.integer, box.log) == ((2,), (1,))
    assert box.categories == {3: (-1.0, 0.5, 3.0)}
    assert [tensor.tolist() for tensor in box.constraints] == [SUM[0], SUM[1]]
    assert not box.is_plain
    assert not box.is_filled
    logs = bx.Box(BOUNDS[:2], log=[1])
    assert not logs.is_plain
    assert logs.is_filled
    plain = bx.Box(BOUNDS, integer=[], log=(), categories={}, constraints=None)
    assert plain.is_plain
    assert plain.is_filled
    assert (plain.integer, plain.log, plain.categories, plain.constraints) == ((), (), {}, None)


@pytest.mark.parametrize("seed", range(3))
def test_samples_are_points_of_the_box(seed, device):
    box = mixed(device=device)
    X = box.sample(500, seed)
    assert X.shape == (500, 4)
    assert bool(box.contains(X).all())
    assert all(is_member(x) for x in X.tolist())
    assert torch.equal(X, box.sample(500, seed))
    assert torch.equal(X[:7], box.sample(7, seed))
    assert box.sample(0, seed).shape == (0, 4)


def test_what_is_no_point_is_said_with_its_column():
    box = mixed()
    for x, reason in [
        ([20.0, 0.5, 2.5, 3.0], r"have a whole number in column 2"),
        ([20.0, 0.5, 2.0, 0.0], r"have one of the codes \[-1.0, 0.5, 3.0\] in column 3"),
        ([119.0, 0.5, 5.0, 3.0], r"satisfy constraint 0, \[0.01, 0.0, 0.3, 0.0\] x <= 2.5"),
        ([20.0, 1.0, 5.0, -1.0], r"satisfy constraint 1, \[0.0, 1.0, 0.0, -1.0\] x <= 1.5"),
        ([19.0, 0.5, 2.5, 3.0], r"lie in the box"),
    ]:
        assert box.contains(x).tolist() == [False]
        with pytest.raises(OutsideDomainError, match=f"start must {reason}.*got"):
            box.require_contains([[20.0, 0.5, 2.0, 3.0], x], "start")
    almost = [20.0, 0.5, 2.0 + 1e-12, 3.0]
    assert box.contains(almost).tolist() == [False]
    assert box.contains([70.0, 2.0, 6.0, 0.5]).tolist() == [True]  # both constraints are tight


def test_whole_numbers_and_codes_have_equal_shares():
    box = mixed(constraints=None)
    X = box.sample(4096, seed=5)
    for j, values in ((2, [1, 2, 3, 4, 5, 6]), (3, [-1, 0.5, 3])):
        found, counts = X[:, j].unique(return_counts=True)
        assert found.tolist() == values
        assert float((counts / 4096 - 1 / len(values)).abs().max()) < 0.002
    # Each of 16 parts of the logarithm has its share.
    low, high = torch.tensor(BOUNDS[1], dtype=torch.float64).log().tolist()
    counts = torch.histc(X[:, 1].log(), bins=16, min=low, max=high)
    assert float((counts - 256).abs().max()) <= 2


def test_whole_numbers_on_a_logarithmic_scale():
    box = bx.Box([(1, 1000), (0.0, 1.0)], integer=[0], log=[0])
    X = box.sample(8192, seed=1)[:, 0]
    assert bool((X == X.round()).all())
    assert (float(X.min()), float(X.max())) == (1.0, 1000.0)
    low, high = torch.tensor([0.5, 1000.5]).log()
    for k in (1, 2, 10, 100):
        share = torch.tensor([k - 0.5, k + 0.5]).log().diff() / (high - low)
        assert float((X == k).double().mean()) == pytest.approx(float(share), abs=0.001)


def test_the_unit_cube_and_back():
    box = mixed()
    X = box.sample(300, seed=2)
    U = box.to_unit(X)
    assert bool(((U >= 0) & (U <= 1)).all())
    back = box.from_unit(U)
    assert torch.equal(back[:, 2:], X[:, 2:])
    assert torch.allclose(back, X, rtol=1e-12)
    assert torch.allclose(U[:, 2], (X[:, 2] - 0.5) / 6)
    corners = torch.tensor([[0.0] * 4, [1.0] * 4], dtype=torch.float64)
    assert box.from_unit(corners).tolist() == [[20.0, 1e-4, 1.0, -1.0], [120.0, 2.0, 6.0, 3.0]]
    middle = box.from_unit(torch.full((1, 4), 0.5, dtype=torch.float64))
    assert float(middle[0, 1]) == pytest.approx((1e-4 * 2.0) ** 0.5)


def test_stretch_is_the_derivative():
    box = mixed()
    U = torch.rand(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X, h = box.from_unit(U), 1e-6
    for j in (0, 1):
        step = torch.zeros(4, dtype=torch.float64)
        step[j] = h
        slope = (box.from_unit(U + step) - box.from_unit(U - step))[:, j] / (2 * h)
        assert torch.allclose(box.stretch(X)[:, j], slope, rtol=1e-6)
    assert not bool(box.stretch(X)[:, 2:].any())


def test_a_plain_box_is_what_it_was():
    box = bx.Box([[2.0, -3.0], [5.0, -1.5]])
    engine = torch.quasirandom.SobolEngine(2, scramble=True, seed=3)
    U = engine.draw(64, dtype=torch.float64)
    assert torch.equal(
        box.sample(64, 3), torch.minimum(box.lower + (box.upper - box.lower) * U, box.upper)
    )
    X = box.sample(64, 3)
    assert torch.equal(box.to_unit(X), (X - box.lower) / (box.upper - box.lower))
    assert repr(box) == "Box([(2.0, 5.0), (-3.0, -1.5)], dtype=torch.float64, device='cpu')"


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy, None])
def test_copies_keep_everything(copied):
    box = mixed()
    if copied is None:
        there = box.to(torch.float32)
        assert there.dtype == there.constraints[0].dtype == torch.float32
        assert bool(there.contains(there.sample(50, 0)).all())
    else:
        there = copied(box)
        there = pickle.loads(there) if isinstance(there, bytes) else there
        assert torch.equal(there.sample(50, 3), box.sample(50, 3))
    assert (there.integer, there.log, there.categories) == ((2,), (1,), {3: (-1.0, 0.5, 3.0)})
    assert "integer=[2], log=[1], categories={3: [-1.0, 0.5, 3.0]}, constraints=" in repr(there)


# --- where few points are feasible ----------------------------------------------------------------


def test_a_corner_of_a_box_is_sampled_evenly():
    # Six shares of at most .25 in all: one in three millions of the cube.
    box = bx.Box([[0.0] * 6, [1.0] * 6], constraints=([[1.0] * 6], [0.25]))
    draws = [box.sample(256, seed) for seed in range(8)]
    X = torch.cat(draws)
    assert bool(box.contains(X).all())
    # Uniform on a simplex with 7 parts: each has mean 1/7 and standard deviation .124; a walk of
    # 256 correlated steps has a mean that is uncertain by some .02.
    assert torch.allclose(X.mean(dim=0) / 0.25, torch.full((6,), 1 / 7).double(), atol=0.025)
    assert torch.allclose(X.std(dim=0) / 0.25, torch.full((6,), 0.124).double(), atol=0.025)
    assert len(box.sample(1000, seed=0).unique(dim=0)) == 1000


def test_parts_of_a_mixture_sum_to_one():
    rows = [[1.0, 1.0, 1.0, 0.0], [-1.0, -1.0, -1.0, 0.0]]
    box = bx.Box([(0, 1), (0, 1), (0.1, 1), (10, 90)], constraints=(rows, [1.0, -1.0]))
    X = box.sample(200, seed=0)
    assert bool(box.contains(X).all())
    assert torch.allclose(X[:, :3].sum(dim=1), torch.ones(200).double(), atol=1e-7)
    assert float(X[:, 0].std()) > 0.1
    assert float(X[:, 3].max() - X[:, 3].min()) > 70


def test_all_points_of_a_small_space_are_listed_and_sampled():
    rows = ([[1, 1, 1], [-1, -1, -1]], [7, -7])
    box = bx.Box([(0, 30)] * 3, integer=range(3), constraints=rows)
    expected = [x for x in itertools.product(range(31), repeat=3) if sum(x) == 7]
    assert box.listed.tolist() == [list(map(float, x)) for x in expected]
    X = box.sample(len(expected), seed=0)
    assert sorted(X.tolist()) == box.listed.tolist()
    assert bool(box.contains(box.sample(100, seed=1)).all())
    assert bx.Box([(0, 9), (0.0, 1.0)], integer=[0]).listed is None
    assert bx.Box([(0, 9)] * 6, integer=range(6)).listed is None


def test_a_sum_of_whole_numbers_that_must_be_exact_beside_a_continuous_column():
    rows = ([[1, 1, 1, 1, 0], [-1, -1, -1, -1, 0]], [23, -23])
    box = bx.Box([(0, 40)] * 4 + [(0.0, 1.0)], integer=range(4), constraints=rows)
    X = box.sample(64, seed=0)
    assert bool(box.contains(X).all())
    assert len(X.unique(dim=0)) > 10


def test_whole_numbers_that_hardly_ever_fit_are_found_by_programming():
    row = [1701.0, 2203.0, 3301.0, 4409.0, 0.0]
    total = sum(a * x for a, x in zip(row, [11, 3, 17, 5, 0], strict=True))
    rows = ([row, [-a for a in row]], [total, -total])
    box = bx.Box([(0, 40)] * 4 + [(2.0, 3.0)], integer=range(4), constraints=rows)
    X = box.sample(20, seed=0)
    assert bool(box.contains(X).all())
    assert torch.equal(X[:, :4] @ torch.tensor(row[:4]).double(), torch.full((20,), total).double())
    assert float(X[:, 4].max() - X[:, 4].min()) > 0.5


def test_points_are_moved_into_the_box():
    box = mixed()
    inside = box.sample(400, seed=0)
    low, high = box.bounds
    targets = low + (high - low) * torch.rand(
        400, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64
    )
    X = box.nearby(targets, inside)
    assert bool(box.contains(X).all())
    # Most find a point of their own, and members stay where they are.
    assert int((X == inside).all(dim=1).sum()) < 100
    assert torch.equal(box.nearby(inside, inside.flip(0)), inside)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"integer": [4]}, r"integer must name columns from 0 to 3, got \[4\]"),
        ({"integer": [-1]}, r"integer must name columns from 0 to 3, got \[-1\]"),
        ({"integer": [1, 1]}, r"integer must name each column only once, got \[1, 1\]"),
        ({"integer": 2}, "integer must be a list of columns, as in .*got 2"),
        ({"integer": "2"}, "integer must be a list of columns"),
        ({"integer": [0.5]}, "each column of integer must be a whole number, got 0.5"),
        ({"integer": [True]}, "each column of integer must be a whole number, got True"),
        ({"log": [3]}, r"log must name columns whose lower bound is above 0, got -1.0 in column 3"),
        ({"log": [0, 9]}, r"log must name columns from 0 to 3"),
        ({"categories": [3]}, r"categories must map columns to their codes, .*got \[3\]"),
        ({"categories": {5: [0]}}, "categories must name columns from 0 to 3"),
        ({"categories": {"a": [0]}}, "each column of categories must be a whole number, got 'a'"),
        ({"categories": {3: []}}, "categories of column 3 must be one or more different codes"),
        (
            {"categories": {3: [1, 1.0]}},
            r"categories of column 3 must .*different codes, got \[1.0, 1.0\]",
        ),
        ({"categories": {3: [1, 9]}}, r"categories of column 3 must lie within .*got \[1.0, 9.0\]"),
        ({"categories": {3: [0, float("nan")]}}, "categories of column 3 must lie within"),
        ({"categories": {3: "ab"}}, "categories of column 3 must be a list of codes, got 'ab'"),
        ({"categories": {3: 1}}, "categories of column 3 must be a list of codes, got 1"),
        ({"categories": {3: ["a"]}}, "each of the categories of column 3 must be one number"),
        (
            {"categories": {3: [0]}, "integer": [3]},
            "integer must not name a column that categories name",
        ),
        (
            {"categories": {0: [50]}, "log": [0]},
            "log must not name a column that categories name, .*0",
        ),
        ({"constraints": [[1.0] * 4]}, "constraints must be a pair .*got a list"),
        ({"constraints": ([1.0] * 4, 1.0)}, r"constraints must have A of shape \(m, 4\) .*\(4,\)"),
        ({"constraints": ([[1.0] * 3], [1.0])}, r"constraints must have A of shape \(m, 4\)"),
        ({"constraints": ([[1.0] * 4], [1.0, 2.0])}, r"constraints must .* \(1, 4\) and \(2,\)"),
        ({"constraints": ([["x"] * 4], [1.0])}, "constraints A must be .* numbers"),
        ({"constraints": ([[float("nan")] * 4], [1.0])}, "constraints must be finite"),
        ({"constraints": ([[1.0] * 4], [3.0])}, "constraints must leave a feasible point .*none"),
    ],
)
def test_impossible_columns_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        bx.Box(BOUNDS, **options)


def test_no_whole_number_within_the_bounds_is_refused():
    with pytest.raises(ValueError, match=r"integer must .*whole number .*\[0.2, 0.8\] in column 1"):
        bx.Box([(0, 5), (0.2, 0.8)], integer=[0, 1])
    assert bx.Box([(0, 5), (0.2, 1.8)], integer=[1]).sample(5, 0)[:, 1].tolist() == [1.0] * 5


def test_no_feasible_whole_numbers_are_refused_though_the_polytope_is_not_empty():
    rows = ([[2.0, 2.0], [-2.0, -2.0]], [5.5, -4.5])  # x + y between 2.25 and 2.75
    bx.Box([(0, 3), (0, 3)], constraints=rows)
    with pytest.raises(ValueError, match="constraints must leave a feasible point"):
        bx.Box([(0, 3), (0, 3)], integer=[0, 1], constraints=rows)
    with pytest.raises(ValueError, match="constraints must leave a feasible point"):
        bx.Box([(0, 3), (0, 3)], categories={0: [0, 1], 1: [0, 3]}, constraints=rows)
