"""The pictures of trees of cells hold the cells of the strategy."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel
from matplotlib.collections import PathCollection, PolyCollection
from matplotlib.colors import to_rgba

import botorch_ext as bx
from botorch_ext.plotting import PALETTE, plot_tree
from botorch_ext.problems import GrowthFunction
from tests.plotting.reading import CLOSE, legend

LINE = bx.Box([[2.0], [3.1]])
PLANE = bx.Box([[2.0, -7.0], [3.0, -6.4]])
KEPT, DROPPED, CURRENT = (to_rgba(PALETTE[i]) for i in (2, 1, 5))


def played(box, horizon, **options):
    kernel = MaternKernel(nu=1.5, ard_num_dims=box.dim).double()
    kernel.lengthscale = torch.tensor([0.4, 0.3][: box.dim], dtype=torch.float64)
    problem = GrowthFunction(kernel, box, 2.0, 1.0, noise_std=0.02)
    strategy = bx.algorithms.breadthwise_exploration(
        box, kernel, noise_variance=4e-4, noise_std=0.02, rkhs_bound=1.0, horizon=horizon, **options
    )
    bx.simulate(strategy, problem, horizon)
    return strategy, problem


@pytest.fixture(scope="module")
def line():
    return played(LINE, 150)


@pytest.fixture(scope="module")
def plane():
    return played(PLANE, 250)


def cells(collection):
    """Left, right, bottom and top of the rectangles of a collection."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])
    low, high = corners.min(axis=1), corners.max(axis=1)
    return low[:, 0], high[:, 0], low[:, 1], high[:, 1]


def polygons(ax):
    return [each for each in ax.collections if isinstance(each, PolyCollection)]


def test_a_row_for_each_level(line):
    strategy, _ = line
    levels = strategy.levels
    assert sum(level.kept is not None and not bool(level.kept.all()) for level in levels) > 1
    ax = plot_tree(strategy)
    shown = polygons(ax)
    assert len(shown) == 2 * len(levels)
    color_of = {}
    for level, counted, fates in zip(levels, shown[::2], shown[1::2], strict=True):
        for strip in (counted, fates):
            left, right, top, bottom = cells(strip)
            np.testing.assert_allclose(left, level.lower[:, 0].numpy(), **CLOSE)
            np.testing.assert_allclose(right, level.upper[:, 0].numpy(), **CLOSE)
            assert (np.abs([top, bottom] - np.array(level.depth)) < 0.5).all()
        expected = [CURRENT] * level.num_cells
        if level.kept is not None:
            expected = [KEPT if kept else DROPPED for kept in level.kept]
        np.testing.assert_allclose(fates.get_facecolor(), expected)
        for count, color in zip(level.counts.tolist(), counted.get_facecolor(), strict=True):
            color_of.setdefault(count, []).append(tuple(color))
    assert len(color_of) > 2
    assert all(len(set(colors)) == 1 for colors in color_of.values())
    assert len({colors[0] for colors in color_of.values()}) == len(color_of)
    assert set(color_of.get(0, [])) <= {to_rgba("0.9")}
    assert ax.yaxis_inverted()
    assert legend(ax) == ["kept", "dropped", "current"]


def test_the_numbers_of_a_level_stand_beside_its_row(line):
    strategy, _ = line
    ax = plot_tree(strategy)
    words = [label.get_text() for label in ax.child_axes[0].get_yticklabels()]
    for level, text in zip(strategy.levels, words, strict=True):
        plural = "s" * (level.num_evaluations != 1)
        kept = "" if level.kept is None else f", {int(level.kept.sum())} kept"
        cells = "1 cell" if level.num_cells == 1 else f"{level.num_cells} cells"
        assert text == f"{cells}{kept}, {level.num_evaluations} evaluation{plural}"


def test_the_function_is_drawn_above_the_rows(line):
    strategy, problem = line
    ax = plot_tree(strategy, problem=problem)
    (curve,) = (each for each in ax.lines if each.get_label() == "true function")
    X, heights = curve.get_data()
    values = problem(torch.tensor(X).unsqueeze(-1)).numpy()
    ticks = {label.get_text(): label.get_position()[1] for label in ax.get_yticklabels()}
    low, high = ticks[f"{values.min():.3g}"], ticks[f"{problem.optimal_value:.3g}"]
    assert high < low < -0.6  # the axis points down
    share = (values - values.min()) / (problem.optimal_value - values.min())
    np.testing.assert_allclose(heights, low + share * (high - low), **CLOSE)
    (star,) = (each for each in ax.lines if each.get_marker() == "*")
    np.testing.assert_allclose(star.get_xydata(), [[float(problem.center[0]), high]], **CLOSE)
    assert ax.get_ylim()[1] < high


@pytest.mark.parametrize("color", ["level", "evaluations"])
def test_the_partition_of_the_plane(plane, color):
    strategy, problem = plane
    ax = plot_tree(strategy, problem=problem, color=color)
    expected = []
    for level in strategy.levels:
        for row in range(level.num_cells):
            if level.kept is None or not level.kept[row]:
                corners = [*level.lower[row].tolist(), *level.upper[row].tolist()]
                value = level.depth if color == "level" else int(level.counts[row])
                expected.append((corners, value))
    (partition,) = polygons(ax)
    left, right, bottom, top = cells(partition)
    corners = np.column_stack([left, bottom, right, top])
    np.testing.assert_allclose(corners, [corners for corners, _ in expected], **CLOSE)
    assert ((right - left) * (top - bottom)).sum() == pytest.approx(1.0 * 0.6)
    colors = {}
    for (_, value), face in zip(expected, partition.get_facecolor(), strict=True):
        colors.setdefault(value, set()).add(tuple(face))
    assert len(colors) > 1
    assert all(len(faces) == 1 for faces in colors.values())
    assert len(set.union(*colors.values())) == len(colors)
    dots = [each for each in ax.collections if isinstance(each, PathCollection)]
    centers = torch.cat([level.centers[level.counts > 0] for level in strategy.levels])
    np.testing.assert_allclose(dots[0].get_offsets(), centers.numpy(), **CLOSE)
    np.testing.assert_allclose(dots[-1].get_offsets(), [problem.center.tolist()])
    assert legend(ax) == ["evaluated centers", "maximiser"]
    assert (*ax.get_xlim(), *ax.get_ylim()) == (2.0, 3.0, -7.0, -6.4)


def test_thousands_of_cells_are_not_hidden_by_their_edges():
    strategy, _ = played(PLANE, 2, width=1e-3)
    # As if all of level 12 were current.
    level = strategy.levels[-1]
    tree, codes = level.tree, torch.arange(2**12)
    strategy.levels = [type(level)(tree, level.model, 12, codes, 0.1, 0)]
    ax = plot_tree(strategy)
    (partition,) = polygons(ax)
    assert len(partition.get_paths()) == 2**12
    assert partition.get_linewidth()[0] < 0.05


def test_before_anything_is_told_there_is_one_cell():
    kernel = MaternKernel(nu=0.5).double()
    for box in (LINE, PLANE):
        strategy = bx.algorithms.breadthwise_exploration(
            box, kernel, noise_variance=0.01, noise_std=0.1, rkhs_bound=1.0, horizon=10
        )
        ax = plot_tree(strategy)
        assert all(len(each.get_paths()) == 1 for each in polygons(ax))


def test_what_cannot_be_drawn_is_refused(line, plane):
    strategy, problem = line
    other = bx.algorithms.gp_ucb(LINE, MaternKernel().double(), noise_variance=0.1, width=1.0)
    with pytest.raises(ValueError, match="strategy must be a BreadthwiseExploration, got a Opt"):
        plot_tree(other)
    with pytest.raises(ValueError, match="color must be 'level' or 'evaluations', got 'red'"):
        plot_tree(strategy, color="red")
    with pytest.raises(ValueError, match="problem must have 1 coordinates, got 2"):
        plot_tree(strategy, problem=plane[1])
    with pytest.raises(ValueError, match="problem must have 2 coordinates, got 1"):
        plot_tree(plane[0], problem=problem)
    space = bx.algorithms.breadthwise_exploration(
        bx.Box([[0.0] * 3, [1.0] * 3]),
        MaternKernel(nu=0.5).double(),
        noise_variance=0.01,
        noise_std=0.1,
        rkhs_bound=1.0,
        horizon=10,
    )
    with pytest.raises(ValueError, match="strategy must have one or two coordinates, got 3"):
        plot_tree(space)
    assert not plt.get_fignums()
