"""Boxes of every kind of column against their definition, and trees of their cells."""

import copy
import itertools
import math
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import botorch_ext as bx
from botorch_ext import Box
from botorch_ext.domains.cells import CellTree
from botorch_ext.exceptions import OutsideDomainError
from tests.domains.drawn_boxes import boxes, of_decimals, unconstrained
from tests.helpers import drawn

BOUNDS = [(20.0, 120.0), (1e-4, 2.0), (0.6, 6.9), (-1.0, 5.0)]


@given(boxes)
def test_samples_are_points_of_the_box_and_the_same_for_a_seed(given_box):
    box = given_box.box()
    X = box.sample(60, seed=3)
    assert X.shape == (60, len(given_box.columns)) and X.dtype == torch.float64
    assert all(given_box.has(x) for x in X.tolist())
    assert bool(box.contains(X).all())
    assert_close(X, X.new_tensor([given_box.settled(x) for x in X.tolist()]), rtol=1e-12, atol=0)
    assert torch.equal(X, box.sample(60, seed=3))
    assert box.sample(0, seed=3).shape == (0, box.dim)
    active = [[given_box.counts(x, j) for j in range(box.dim)] for x in X.tolist()]
    assert box.active(X).tolist() == active


@given(unconstrained, st.integers(0, 10**6))
def test_the_unit_cube_is_mapped_column_by_column_and_back(given_box, seed):
    box, columns = given_box.box(), given_box.columns
    U = drawn(30, box.dim, seed=seed)
    U[:2] = torch.tensor([[0.0], [1.0]])
    pairs = [list(zip(columns, u, strict=True)) for u in U.tolist()]
    expected = [given_box.settled([column.from_unit(u) for column, u in row]) for row in pairs]
    X = box.from_unit(U)
    assert_close(X, X.new_tensor(expected), rtol=1e-11, atol=1e-11)
    rows = [list(zip(columns, x, strict=True)) for x in X.tolist()]
    units = [[column.to_unit(x) for column, x in row] for row in rows]
    assert_close(box.to_unit(X), U.new_tensor(units), rtol=1e-9, atol=1e-9)
    assert torch.equal(box.from_unit(box.to_unit(X))[:, list(box.stepped)], X[:, list(box.stepped)])
    speed = [
        [column.stretch(x) if given_box.counts(xs, j) else 0.0 for j, (column, x) in enumerate(row)]
        for xs, row in zip(X.tolist(), rows, strict=True)
    ]
    assert_close(box.stretch(X).expand_as(X), X.new_tensor(speed), rtol=1e-9, atol=1e-9)
    ends = X.new_tensor([(c.values or [c.low])[0] for c in columns])
    assert_close(box.ends[0], ends, rtol=1e-15, atol=0)


@given(boxes, st.integers(0, 10**6))
def test_what_belongs_to_a_box_is_its_definition(given_box, seed):
    box = given_box.box()
    X = box.sample(12, seed % 1000)
    for j in range(box.dim):  # one number of most points is another one
        X[j :: box.dim + 1, j] += drawn(12, seed=seed)[j :: box.dim + 1] - 0.5
    expected = [given_box.has(x) for x in X.tolist()]
    assert box.contains(X).tolist() == expected
    for x, inside in zip(X.tolist(), expected, strict=True):
        if inside:
            settled = X.new_tensor([given_box.settled(x)])
            assert_close(box.require_contains(x), settled, rtol=1e-12, atol=0)
        else:
            with pytest.raises(OutsideDomainError, match=r"^mine must "):
                box.require_contains([x], "mine")


@given(boxes)
def test_copies_are_the_same_box(given_box):
    box = given_box.box()
    again = eval(repr(box), {"Box": bx.Box, "torch": torch})
    for other in (again, copy.deepcopy(box), pickle.loads(pickle.dumps(box)), box.to()):
        assert repr(other) == repr(box)
        for name in ("bounds", "integer", "steps", "log", "categories", "conditions"):
            assert str(getattr(other, name)) == str(getattr(box, name))
        assert torch.equal(other.sample(8, 5), box.sample(8, 5))
    single = box.to(torch.float32)
    assert single.dtype == single.sample(5, 0).dtype == torch.float32
    assert bool(single.contains(single.sample(20, 0)).all())


@given(boxes, st.integers(0, 10**6))
def test_nearby_points_are_the_nearest_values_or_feasible(given_box, seed):
    box = given_box.box()
    inside = box.sample(30, 1)
    targets = box.lower + (box.upper - box.lower) * drawn(30, box.dim, seed=seed)
    X = box.nearby(targets, inside)
    assert all(given_box.has(x) for x in X.tolist())
    assert_close(box.nearby(inside, inside.flip(0)), inside, rtol=1e-12, atol=0)
    if not given_box.constraints:
        for found, target in zip(X.tolist(), targets.tolist(), strict=True):
            nearest = [
                t if c.values is None else c.nearest(t)
                for c, t in zip(given_box.columns, target, strict=True)
            ]
            assert found == pytest.approx(given_box.settled(nearest), rel=1e-12)


@given(boxes)
def test_listed_points_and_corners_are_those_of_the_definition(given_box):
    box, columns = given_box.box(), given_box.columns
    ends = [(c.low, c.high) if c.values is None else (c.values[0], c.values[-1]) for c in columns]
    corners = {tuple(given_box.settled(x)) for x in itertools.product(*ends) if given_box.has(x)}
    found = sorted(box.corners.unique(dim=0).tolist())
    assert found == [pytest.approx(x, rel=1e-12) for x in sorted(map(list, corners))]
    assert box.is_filled == (not given_box.constraints and all(c.values is None for c in columns))
    sizes = [len(c.values) if c.values is not None else 10**9 for c in columns]
    if math.prod(sizes) > 4096:
        assert box.listed is None
        return
    grid = itertools.product(*(c.values for c in columns))
    expected = sorted({tuple(given_box.settled(x)) for x in grid if given_box.has(x)})
    assert box.listed is not None and [tuple(x) for x in box.listed.tolist()] == expected


def test_with_many_columns_there_are_two_corners():
    assert {dim: len(bx.Box([(0, 1)] * dim).corners) for dim in (1, 8, 9)} == {1: 2, 8: 256, 9: 2}


@given(boxes)
def test_without_steps_the_ends_are_half_a_step_further(given_box):
    free, parents = given_box.box().without_steps(), {i for i, _ in given_box.conditions.values()}
    for j, column in enumerate(given_box.columns):
        if j in parents and column.step is not None:
            assert j in free.stepped
        elif not column.has_codes:
            assert free.bounds[:, j].tolist() == pytest.approx(column.cell, rel=1e-12)
            assert j not in free.stepped
    assert free.log == given_box.box().log
    assert free.conditions == given_box.box().conditions


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_what_misses_a_step_by_rounding_is_that_step_and_nothing_else_is(dtype):
    for low, step in ((0.0, 0.1), (1.0, 0.01), (40.0, 0.5), (-3.0, 0.7)):
        box = bx.Box([(low, low + 20 * step), (5.0, 6.0)], steps={0: step}, dtype=dtype)
        values = torch.tensor(of_decimals(low, low + 20 * step, step), dtype=dtype)[1:-1]
        rest = torch.full_like(values, 5.5)
        assert bool(box.contains(torch.stack([values, rest], dim=-1)).all())
        eps = torch.finfo(dtype).eps
        near = values + 2 * eps * values
        found = box.require_contains(torch.stack([near, rest], dim=-1))
        assert torch.equal(found[:, 0], values)
        for off in (1e-3 * step, 0.2 * step, -0.3 * step):
            beside = torch.stack([values + off, rest], dim=-1)
            assert not bool(box.contains(beside).any())


def test_whole_numbers_and_codes_have_equal_shares(device):
    box = bx.Box(BOUNDS, integer=[2], log=[1], categories={3: [3, -1, 0.5]}, device=device)
    X = box.sample(2048, seed=5).cpu()
    for j, values in ((2, [1, 2, 3, 4, 5, 6]), (3, [-1, 0.5, 3])):
        found, counts = X[:, j].unique(return_counts=True)
        assert found.tolist() == values
        assert float((counts / 2048 - 1 / len(values)).abs().max()) < 0.004
    # Each of 16 parts of the logarithm has its share.
    low, high = torch.tensor(BOUNDS[1], dtype=torch.float64).log().tolist()
    counts = torch.histc(X[:, 1].log(), bins=16, min=low, max=high)
    assert float((counts - 128).abs().max()) <= 2


# --- plain boxes ----------------------------------------------------------------------------------


def test_a_box_contains_its_faces_and_nothing_beyond(device):
    box = Box([[2.0, -3.0, 100.0], [5.0, -1.0, 100.5]], device=device)
    centre = (box.lower + box.upper) / 2
    assert box.contains(box.bounds).tolist() == [True, True]
    for j in range(box.dim):
        for face, away in ((box.lower, -math.inf), (box.upper, math.inf)):
            x = centre.clone()
            x[j] = face[j]
            beyond = x.clone()
            beyond[j] = torch.nextafter(face[j], torch.full_like(face[j], away))
            assert box.contains(torch.stack([x, beyond])).tolist() == [True, False]


def test_float32_rounding_never_carries_a_sample_past_a_face():
    # A box of 3 float32 numbers: most samples round to a face.
    low = torch.tensor(7.0)
    up = torch.nextafter(torch.nextafter(low, 2 * low), 2 * low)
    box = Box(torch.stack([low, up])[:, None])
    X = box.sample(4096, seed=0)
    assert bool(box.contains(X).all())
    assert len(X.unique()) == 3
    # Here the sum lower + (upper - lower) is above the upper face.
    box = Box(torch.tensor([[-0.7], [0.1]]))
    assert torch.equal(box.from_unit(torch.ones(1, 1)), box.upper[None])


# --- constraints that leave little ----------------------------------------------------------------


def test_a_corner_of_a_box_is_sampled_evenly():
    # Six shares of at most .25 in all: one in three millions of the cube.
    box = bx.Box([[0.0] * 6, [1.0] * 6], constraints=([[1.0] * 6], [0.25]))
    assert not box.is_filled
    X = torch.cat([box.sample(256, seed) for seed in range(8)])
    assert bool(box.contains(X).all())
    # Uniform on a simplex with 7 parts: each has mean 1/7 and standard deviation .124; a walk of
    # 256 correlated steps has a mean that is uncertain by some .02.
    assert_close(X.mean(dim=0) / 0.25, torch.full((6,), 1 / 7).double(), rtol=0, atol=0.025)
    assert_close(X.std(dim=0) / 0.25, torch.full((6,), 0.124).double(), rtol=0, atol=0.025)
    assert len(box.sample(1000, seed=0).unique(dim=0)) == 1000


def test_all_points_of_a_small_space_come_once_before_any_comes_twice():
    rows = ([[1, 1, 1], [-1, -1, -1]], [7, -7])
    box = bx.Box([(0, 30)] * 3, integer=range(3), constraints=rows)
    expected = [x for x in itertools.product(range(31), repeat=3) if sum(x) == 7]
    assert box.listed.tolist() == [list(map(float, x)) for x in expected]
    X = box.sample(len(expected), seed=0)
    assert sorted(X.tolist()) == box.listed.tolist() != X.tolist()
    assert bool(box.contains(box.sample(100, seed=1)).all())


@pytest.mark.parametrize(
    "row", [[1.0] * 4, pytest.param([1701.0, 2203.0, 3301.0, 4409.0], marks=pytest.mark.slow)]
)
def test_a_sum_of_whole_numbers_that_must_be_exact(row):
    # The second sum hardly ever fits: its points are found by mixed-integer programming.
    total = float(sum(a * x for a, x in zip(row, [11, 3, 17, 5], strict=True)))
    rows = ([[*row, 0.0], [*(-a for a in row), 0.0]], [total, -total])
    box = bx.Box([(0, 40)] * 4 + [(2.0, 3.0)], integer=range(4), constraints=rows)
    X = box.sample(20, seed=0)
    assert bool(box.contains(X).all())
    assert torch.equal(X[:, :4] @ torch.tensor(row).double(), torch.full((20,), total).double())
    assert float(X[:, 4].max() - X[:, 4].min()) > 0.5


# --- bounds as people write them, and what is refused ---------------------------------------------

ROWS = [[0.0, 1.0], [20.0, 80.0]]


def test_two_rows_pairs_and_corners_are_the_same_box():
    tensor = torch.tensor(ROWS).double()
    for bounds in (tensor, list(tensor), [(0, 20), (1, 80)], ((0, 20), (1, 80))):
        box = bx.Box(bounds)
        assert box.bounds.tolist() == ROWS and box.dtype == torch.float64
        assert box.is_plain and box.is_filled
    corners = bx.Box(lower=ROWS[0], upper=tensor[1], dtype=torch.float64, log=[1])
    assert corners.bounds.tolist() == ROWS and not corners.is_plain and corners.is_filled
    for rows in ([[0, 0], [1, 1]], [[2, -3], [5, -1.5]], [[0, 1, 2], [3, 4, 5]]):
        assert bx.Box(rows).bounds.tolist() == rows  # they can be no pairs
    assert bx.Box([(2, 5)]).bounds.tolist() == [[2.0], [5.0]]
    assert bx.Box([(2, 5), (-3, -1), (7, 8)]).bounds.tolist() == [[2, -3, 7], [5, -1, 8]]
    box = bx.Box(tensor)
    tensor += 1
    assert box.bounds.tolist() == ROWS  # a copy


NO_BOUNDS = [
    [[-5, 10], [0, 15]],  # two corners, or two pairs
    *([[0, 20], [1, 80], [2, 3]], [(0, 20), [1, 80]], [(0, 1, 2), (20, 80, 90)], [(0, 20), (1,)]),
    *([(0, 20), (80, 1)], [(0, 20), (1, 1)], [(0, math.nan)], [[0.0, -math.inf], [1.0, 1.0]]),
    *([(0, "x")], "unit", [], [()], {0: (0, 1)}, None, torch.zeros(1, 2, 3)),
    [[0.0, -1e308], [1.0, 1e308]],
]


@pytest.mark.parametrize("bounds", NO_BOUNDS)
def test_bounds_of_no_box_are_refused(bounds):
    with pytest.raises(ValueError, match="bounds must "):
        bx.Box(bounds)


def test_a_box_too_thin_for_float32_is_refused_on_the_way_there():
    with pytest.raises(ValueError, match="bounds must have lower < upper"):
        Box([(1.0, 1.0 + 1e-9), (5.0, 6.0)]).to(dtype=torch.float32)


WHOLE = {"integer": [2]}
IMPOSSIBLE = [
    *({"integer": columns} for columns in ([4], [-1], [1, 1], 2, [0.5])),
    *({"categories": codes} for codes in ([3], *({3: c} for c in ([], [1, 1.0], [1, 9], "ab")))),
    *({"steps": steps} for steps in ({4: 0.1}, {0: 0.0}, {0: 1e-30}, [0])),
    *({"log": [3]}, {"log": [0], "categories": {0: [50]}}, {"steps": {1: 0.4}, "log": [1]}),
    *({"integer": [3], "categories": {3: [0]}}, {"steps": {2: 0.5}, **WHOLE}),
    *(
        {"constraints": rows}
        for rows in (
            *([[1.0] * 4], ([1.0] * 4, 1.0), ([[1.0] * 4], [1.0, 2.0])),
            *(([[math.nan] * 4], [1.0]), ([[1.0] * 4], [3.0])),
        )
    ),
    *(
        {"conditions": conditions, **WHOLE}
        for conditions in (
            *([1], {9: (2, [1])}, {1: 2}, {1: (0, [50.0])}, {1: (2, [])}, {1: (2, [1.5])}),
            {2: (2, [1])},
        )
    ),
    {"conditions": {2: (3, [0]), 3: (2, [1])}, "integer": [2, 3]},
    {"constraints": ([[0.0, 1.0, 0.0, 0.0]], [1.0]), "conditions": {1: (2, [1])}, **WHOLE},
]


@pytest.mark.parametrize("options", IMPOSSIBLE)
def test_impossible_columns_are_refused(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=f"{name} |step |parent of "):
        bx.Box(BOUNDS, **options)


def test_no_feasible_whole_numbers_are_refused_though_the_polytope_is_not_empty():
    rows = ([[2.0, 2.0], [-2.0, -2.0]], [5.5, -4.5])  # x + y between 2.25 and 2.75
    bx.Box([(0, 3), (0, 3)], constraints=rows)
    for options in ({"integer": [0, 1]}, {"categories": {0: [0, 1], 1: [0, 3]}}):
        with pytest.raises(ValueError, match="constraints must leave a feasible point"):
            bx.Box([(0, 3), (0, 3)], constraints=rows, **options)
    with pytest.raises(ValueError, match="integer must"):
        bx.Box([(0, 5), (0.2, 0.8)], integer=[0, 1])


def test_what_is_wrong_with_a_point_is_said_with_its_column():
    rows = ([[0.01, 0.0, 0.3, 0.0], [0.0, 1.0, 0.0, -1.0]], [2.5, 1.5])
    box = bx.Box(BOUNDS, integer=[2], log=[1], categories={3: [3, -1, 0.5]}, constraints=rows)
    for x, reason in [
        ([20.0, 0.5, 2.5, 3.0], "column 2"),
        ([20.0, 0.5, 2.0, 0.0], r"codes \[-1.0, 0.5, 3.0\] in column 3"),
        ([119.0, 0.5, 5.0, 3.0], "constraint 0"),
        ([20.0, 1.0, 5.0, -1.0], "constraint 1"),
        ([19.0, 0.5, 2.5, 3.0], "lie in the box"),
    ]:
        with pytest.raises(OutsideDomainError, match=rf"start must .*{reason}.*got \[{x[0]}"):
            box.require_contains([[20.0, 0.5, 2.0, 3.0], x], "start")
    assert box.contains([70.0, 2.0, 6.0, 0.5]).tolist() == [True]  # both constraints are tight


def test_a_box_has_the_names_of_its_columns():
    box = bx.Box([(0.0, 1.0), (1, 3), (2.0, 5.0)], integer=[1], conditions={2: (1, [2])})
    assert box.names == ("x0", "x1", "x2")
    assert box.params([0.5, 2, 3.0]) == {"x0": 0.5, "x1": 2.0, "x2": 3.0}
    assert box.params([0.5, 1, 3.0]) == {"x0": 0.5, "x1": 1.0}
    assert box.point({"x0": 0.5, "x1": 1}).tolist() == [0.5, 1.0, 3.5]
    assert box.contains([{"x0": 0.5, "x1": 1}, {"x0": 1.5, "x1": 1}]).tolist() == [True, False]
    for params in ({"x0": 0.5}, {"y": 0.5}):
        with pytest.raises(ValueError, match="params must "):
            box.point(params)
    with pytest.raises(ValueError, match="domain must be a Box with nothing but bounds"):
        box.require_plain("this method")


BOXES = [
    ([[1.0], [3.0]], [0.5]),
    ([[1.0, -2.0], [2.0, 1.0]], [0.5, 0.5]),
    ([[1.0, -2.0], [2.0, 1.0]], [0.2, 1.7]),
    ([[10.0, -1.0, 0.5], [17.0, 0.0, 0.7]], [3.0, 0.3, 0.3]),
    ([[10.0, -1.0], [17.0, 0.0]], [math.inf, 0.3]),
]


def split(lower, upper, scales):
    """The two halves of one cell, as lists of corners."""
    sides = [(b - a) / s for a, b, s in zip(lower, upper, scales, strict=True)]
    j = max(range(len(sides)), key=lambda j: (sides[j], -j))
    middle = (lower[j] + upper[j]) / 2
    left, right = list(upper), list(lower)
    left[j] = right[j] = middle
    return (lower, left), (right, upper)


@pytest.mark.parametrize(("bounds", "scales"), BOXES)
def test_cells_are_what_splitting_gives(bounds, scales):
    tree = CellTree(Box(bounds), scales)
    cells = [tuple(bounds)]
    for level in range(9):
        codes = torch.arange(2**level)
        lower, upper = (torch.tensor(c, dtype=torch.float64) for c in zip(*cells, strict=True))
        assert_close(tree.lower(level, codes), lower)
        assert_close(tree.upper(level, codes), upper)
        assert_close(tree.centers(level, codes), (lower + upper) / 2)
        scaled = (upper - lower) / torch.tensor(scales, dtype=torch.float64)
        assert_close(tree.sides(level), (upper - lower)[-1])
        assert tree.half_diagonal(level) == pytest.approx(float(scaled[-1].norm()) / 2)
        cells = [half for cell in cells for half in split(*cell, scales)]
    depths, d = range(50), sum(scale < math.inf for scale in scales)
    assert tree.rho == pytest.approx(2 ** (-1 / d))
    assert tree.outer == pytest.approx(max(tree.half_diagonal(h) * 2 ** (h / d) for h in depths))
    least = [min(side for side in tree.scaled_sides(h) if side) / 2 for h in depths]
    assert tree.inner == pytest.approx(min(least[h] * 2 ** (h / d) for h in depths))


def test_deep_codes_keep_their_place():
    tree = CellTree(Box([[1.0, -2.0], [2.0, 1.0]]))
    codes, x = torch.zeros(1, dtype=torch.long), torch.tensor([1.3, 0.77], dtype=torch.float64)
    for level in range(1, 60):
        codes = torch.cat([2 * codes, 2 * codes + 1])
        inside = (tree.lower(level, codes) <= x) & (x <= tree.upper(level, codes))
        codes = codes[inside.all(dim=-1)][:1]
    assert_close(tree.centers(59, codes)[0], x, rtol=0, atol=1e-8)


def test_cells_that_are_none_are_refused():
    box = Box([[1.0, -2.0], [2.0, 1.0]])
    for scales in ([1.0], [1.0, 0.0], [1.0, -1.0], [math.inf, math.inf]):
        with pytest.raises(ValueError, match="lengthscales must"):
            CellTree(box, scales)
    tree, none = CellTree(box), torch.tensor([0])
    for codes in (torch.tensor([1, 4]), torch.tensor([-1]), torch.tensor([1.0]), [1, 2]):
        with pytest.raises(ValueError, match="codes must"):
            tree.centers(2, codes)
    for level in (-1, 1.5, 63):
        with pytest.raises(ValueError, match="level must"):
            tree.lower(level, none)
