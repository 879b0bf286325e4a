"""The pictures of rounds and of feedback hold what the strategy recorded."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.plotting import plot_feedback, plot_rounds_2d
from tests.helpers import rbf


def late_study(domain, horizon=60, steps=50):
    strategy = bx.algorithms.bpe_delay(
        domain, rbf(0.4), noise_variance=0.01, width=1.0, horizon=horizon, delay=5
    )
    problem = bx.problems.RKHSFunction.random(domain, rbf(0.4), norm=2.0, noise_std=0.05)
    return bx.simulate(strategy, problem, steps, delay=bx.delays.Poisson(6), seed=1).strategy


BOX = bx.Box([[2.0, -1.0], [3.0, 1.0]])
GRID = bx.FiniteSet(BOX.sample(80, seed=0))


def offsets(ax, label):
    return [np.asarray(c.get_offsets()) for c in ax.collections if c.get_label() == label]


def test_the_panels_show_every_asked_point_once_by_what_became_of_it():
    strategy = late_study(GRID)
    axes = plot_rounds_2d(strategy, maximizer=[2.5, 0.0])
    assert len(axes) == len(strategy.rounds) >= 2
    told, late, pending = set(strategy.history.values), set(), set(strategy.pending)
    for round in strategy.rounds:
        late |= set(round.told_too_late(strategy.history))
    assert late
    assert pending
    expected = {"told in time": told - late, "told too late": late, "pending": pending}
    for ax, round in zip(axes, strategy.rounds, strict=True):
        rows = strategy.domain.points[round.survivors].numpy()
        assert np.array_equal(np.concatenate(offsets(ax, "surviving candidates")), rows)
        for label, ids in expected.items():
            here = sorted(ids.intersection(round.ids))
            shown = offsets(ax, label)
            assert bool(shown) == bool(here)
            if here:
                points = torch.stack([strategy.history.trials[id].x for id in here]).numpy()
                assert np.array_equal(np.concatenate(shown), points)
        assert np.array_equal(offsets(ax, "maximiser")[0], [[2.5, 0.0]])
        assert f"round {round.number}" in ax.get_title()
        assert ax.get_xlabel() == "x[0]"
    labels = [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
    assert len(labels) == len(set(labels)) == 5


def test_a_region_is_shaded_where_it_is():
    strategy = late_study(BOX, steps=30)
    axes = plot_rounds_2d(strategy, num_points=40)
    x, y = np.meshgrid(np.linspace(2, 3, 40), np.linspace(-1, 1, 40), indexing="ij")
    grid = torch.tensor(np.stack([x.ravel(), y.ravel()], axis=1))
    last, region = axes[-1], strategy.rounds[-1].survivors
    inside = region.contains(grid).numpy()
    assert 0 < inside.mean() < 1
    (shade,) = (c for c in last.collections if hasattr(c, "levels"))
    paths = shade.get_paths()
    # Away from the boundary of the region the shading agrees with it.
    clear = (region.margin(grid).abs() > 0.05).numpy()
    shaded = np.array([any(path.contains_point(p) for path in paths) for p in grid.numpy()])
    inner = clear & (np.abs(grid.numpy() - [2.5, 0.0]) < [0.49, 0.98]).all(axis=1)
    assert np.array_equal(shaded[inner], inside[inner])


def test_a_feedback_line_runs_from_the_ask_to_the_tell():
    strategy = bx.strategies.RandomSearch(GRID)
    strategy.ask(3)
    strategy.tell(1, 0.0)
    strategy.ask(2)
    strategy.abandon(0)
    strategy.tell(3, 1.0)
    ax = plot_feedback(strategy)
    lines = {
        c.get_label(): sorted(tuple(map(tuple, s.tolist())) for s in c.get_segments())
        for c in ax.collections
    }
    assert lines == {
        "told": [((1, 1), (3, 1)), ((3, 3), (5, 3))],
        "abandoned": [((0, 0), (5, 0))],
        "pending": [((2, 2), (5, 2)), ((4, 4), (5, 4))],
    }
    assert ax.get_xlabel() == "trials asked so far (steps)"


def test_feedback_of_rounds_marks_their_borders():
    strategy = late_study(GRID)
    ax = plot_feedback(strategy)
    borders = [line.get_xdata()[0] for line in ax.lines]
    assert borders == [round.first for round in strategy.rounds]
    assert {"told in time", "told too late", "pending"} <= {c.get_label() for c in ax.collections}


def test_what_cannot_be_drawn_is_refused():
    line = bx.algorithms.bpe(
        bx.Box([[0.0], [1.0]]), rbf(0.4), noise_variance=0.1, width=1.0, horizon=9
    )
    fresh = bx.algorithms.bpe(GRID, rbf(0.4), noise_variance=0.1, width=1.0, horizon=9)
    with pytest.raises(ValueError, match="strategy must have two coordinates, got 1"):
        plot_rounds_2d(line)
    with pytest.raises(ValueError, match="strategy must have asked something"):
        plot_rounds_2d(fresh)
    with pytest.raises(ValueError, match="strategy must have asked something"):
        plot_feedback(fresh)
    fresh.ask()
    with pytest.raises(ValueError, match="axes must be one for each of the 1 rounds, got 2"):
        plot_rounds_2d(fresh, plt.subplots(1, 2)[1])
