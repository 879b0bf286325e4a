"""The pictures of trees of cells hold the cells of the strategy."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba

import botorch_ext as bx
from botorch_ext.plotting import PALETTE, plot_tree
from botorch_ext.problems import GrowthFunction
from tests.helpers import matern
from tests.plotting.reading import beside, dots, legend, lines, near, polygons, words

LINE = bx.Box([[2.0], [3.1]])
PLANE = bx.Box([[2.0, -7.0], [3.0, -6.4]])
KEPT, DROPPED, CURRENT = (to_rgba(PALETTE[i]) for i in (2, 1, 5))


def played(box, horizon, steps=None, **options):
    kernel = matern(*(0.4, 0.3)[: box.dim], nu=1.5)
    problem = GrowthFunction(kernel, box, 2.0, 1.0, noise_std=0.02)
    numbers = {"noise_variance": 4e-4, "noise_std": 0.02, "rkhs_bound": 1.0, "horizon": horizon}
    strategy = bx.algorithms.breadthwise_exploration(box, kernel, **numbers | options)
    if steps != 0:
        bx.simulate(strategy, problem, horizon)
    return strategy, problem


@pytest.fixture(scope="module")
def line():
    return played(LINE, 150)


def cells(collection):
    """Left, bottom, right and top of the rectangles of a collection."""
    corners = np.array([path.vertices[:4] for path in collection.get_paths()])
    return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)


def require_a_color_for_each(values, faces):
    """Equal values have one colour, and different ones have different colours."""
    pairs = {(value, tuple(face)) for value, face in zip(values, faces, strict=True)}
    distinct = len(set(values))
    assert len(pairs) == distinct == len({face for _, face in pairs}) > 1


def test_a_row_for_each_level(line):
    strategy, _ = line
    levels, ax = strategy.levels, plot_tree(strategy)
    assert sum(level.kept is not None and not bool(level.kept.all()) for level in levels) > 1
    shown, counts, faces = polygons(ax), [], []
    for level, counted, fates in zip(levels, shown[::2], shown[1::2], strict=True):
        for strip in (counted, fates):
            sides = cells(strip)
            near(sides[:, [0, 2]], torch.cat([level.lower, level.upper], dim=1))
            assert (np.abs(sides[:, [1, 3]] - level.depth) < 0.5).all()
        expected = [CURRENT] * level.num_cells
        if level.kept is not None:
            expected = [KEPT if kept else DROPPED for kept in level.kept]
        near(fates.get_facecolor(), expected)
        counts += level.counts.tolist()
        faces += counted.get_facecolor().tolist()
    require_a_color_for_each(counts, faces)
    assert {tuple(face) for count, face in zip(counts, faces, strict=True) if not count} <= {
        to_rgba("0.9")
    }
    assert ax.yaxis_inverted()
    assert legend(ax) == ["kept", "dropped", "current"]
    for level, text in zip(levels, beside(ax), strict=True):
        num, kept = level.num_evaluations, ""
        if level.kept is not None:
            kept = f", {int(level.kept.sum())} kept"
        cells_of_it = "1 cell" if level.num_cells == 1 else f"{level.num_cells} cells"
        assert text == f"{cells_of_it}{kept}, {num} evaluation{'s' * (num != 1)}"


def test_the_function_is_drawn_above_the_rows(line):
    strategy, problem = line
    ax = plot_tree(strategy, problem=problem)
    X, heights = lines(ax)["true function"].get_data()
    values = problem(torch.tensor(X).unsqueeze(-1)).numpy()
    places = [label.get_position()[1] for label in ax.get_yticklabels()]
    ticks = dict(zip(words(ax.get_yticklabels()), places, strict=True))
    low, high = ticks[f"{values.min():.3g}"], ticks[f"{problem.optimal_value:.3g}"]
    assert ax.get_ylim()[1] < high < low < -0.6  # the axis points down
    share = (values - values.min()) / (problem.optimal_value - values.min())
    near(heights, low + share * (high - low))
    (star,) = (each for each in ax.lines if each.get_marker() == "*")
    near(star.get_xydata(), [[float(problem.center[0]), high]])


@pytest.mark.parametrize("color", ["level", "evaluations"])
def test_the_partition_of_the_plane(color):
    strategy, problem = played(PLANE, 250)
    ax = plot_tree(strategy, problem=problem, color=color)
    expected, values = [], []
    for level in strategy.levels:
        for row in range(level.num_cells):
            if level.kept is None or not level.kept[row]:
                expected.append([*level.lower[row].tolist(), *level.upper[row].tolist()])
                values.append(level.depth if color == "level" else int(level.counts[row]))
    (partition,) = polygons(ax)
    sides = cells(partition)
    near(sides, expected)
    assert (sides[:, 2:] - sides[:, :2]).prod(axis=1).sum() == pytest.approx(1.0 * 0.6)
    require_a_color_for_each(values, partition.get_facecolor())
    evaluated = [level.centers[level.counts > 0] for level in strategy.levels]
    near(dots(ax)[0].get_offsets(), torch.cat(evaluated))
    near(dots(ax)[-1].get_offsets(), problem.center[None])
    assert legend(ax) == ["evaluated centers", "maximiser"]
    assert (*ax.get_xlim(), *ax.get_ylim()) == (2.0, 3.0, -7.0, -6.4)


def test_thousands_of_cells_are_not_hidden_by_their_edges():
    strategy, _ = played(PLANE, 2, width=1e-3)
    # As if all of level 12 were current.
    level = strategy.levels[-1]
    tree, codes = level.tree, torch.arange(2**12)
    strategy.levels = [type(level)(tree, level.model, 12, codes, 0.1, 0)]
    (partition,) = polygons(plot_tree(strategy))
    assert len(partition.get_paths()) == 2**12
    assert partition.get_linewidth()[0] < 0.05


def test_before_anything_is_told_there_is_one_cell():
    for box in (LINE, PLANE):
        shown = polygons(plot_tree(played(box, 10, steps=0)[0]))
        assert all(len(each.get_paths()) == 1 for each in shown)
