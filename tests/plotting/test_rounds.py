"""The pictures of rounds and of feedback hold what the strategy recorded."""

import numpy as np
import torch

import botorch_ext as bx
from botorch_ext.plotting import plot_feedback, plot_rounds_2d
from tests.helpers import rbf

BOX = bx.Box([[2.0, -1.0], [3.0, 1.0]])
GRID = bx.FiniteSet(BOX.sample(80, seed=0))


def late_study(domain, steps=50):
    strategy = bx.algorithms.bpe_delay(
        domain, rbf(0.4), noise_variance=0.01, width=1.0, horizon=60, delay=5
    )
    problem = bx.problems.RKHSFunction.random(domain, rbf(0.4), norm=2.0, noise_std=0.05)
    return bx.simulate(strategy, problem, steps, delay=bx.delays.Poisson(6), seed=1).strategy


def offsets(ax, label):
    shown = [np.asarray(c.get_offsets()) for c in ax.collections if c.get_label() == label]
    return np.concatenate(shown) if shown else np.zeros((0, 2))


def test_the_panels_show_every_asked_point_once_by_what_became_of_it():
    strategy = late_study(GRID)
    axes, trials = plot_rounds_2d(strategy, maximizer=[2.5, 0.0]), strategy.history.trials
    assert len(axes) == len(strategy.rounds) >= 2
    late = {id for round in strategy.rounds for id in round.told_too_late(strategy.history)}
    expected = {
        "told in time": set(strategy.history.values) - late,
        "told too late": late,
        "pending": set(strategy.pending),
    }
    assert all(expected.values())
    for ax, round in zip(axes, strategy.rounds, strict=True):
        rows = strategy.domain.points[round.survivors].numpy()
        assert np.array_equal(offsets(ax, "surviving candidates"), rows)
        for label, ids in expected.items():
            here = [trials[id].x.tolist() for id in sorted(ids.intersection(round.ids))]
            assert offsets(ax, label).tolist() == here
        assert offsets(ax, "maximiser").tolist() == [[2.5, 0.0]]
        assert f"round {round.number}" in ax.get_title()
    assert axes[0].get_xlabel() == "x[0]"
    labels = [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
    assert len(labels) == len(set(labels)) == 5


def test_a_region_is_shaded_where_it_is():
    strategy = late_study(BOX, steps=30)
    last, region = plot_rounds_2d(strategy, num_points=40)[-1], strategy.rounds[-1].survivors
    axes = [torch.linspace(2, 3, 40).double(), torch.linspace(-1, 1, 40).double()]
    grid = torch.cartesian_prod(*axes)
    # Away from the boundaries of the region and of the box the shading agrees with it.
    inner = ((grid - BOX.bounds.mean(dim=0)).abs() < torch.tensor([0.49, 0.98])).all(dim=1)
    grid = grid[inner & (region.margin(grid).abs() > 0.05)]
    inside = region.contains(grid).tolist()
    assert 0 < sum(inside) < len(grid)
    (shade,) = (c for c in last.collections if hasattr(c, "levels"))
    paths = shade.get_paths()
    assert [any(path.contains_point(p) for path in paths) for p in grid.tolist()] == inside


def test_a_feedback_line_runs_from_the_ask_to_the_tell():
    strategy = bx.strategies.RandomSearch(GRID)
    strategy.ask(3)
    strategy.tell(1, 0.0)
    strategy.ask(2)
    strategy.abandon(0)
    strategy.tell(3, 1.0)
    ax = plot_feedback(strategy)
    segments = {
        c.get_label(): sorted(tuple(map(tuple, s.tolist())) for s in c.get_segments())
        for c in ax.collections
    }
    assert segments == {
        "told": [((1, 1), (3, 1)), ((3, 3), (5, 3))],
        "abandoned": [((0, 0), (5, 0))],
        "pending": [((2, 2), (5, 2)), ((4, 4), (5, 4))],
    }
    assert ax.get_xlabel() == "trials asked so far (steps)"


def test_feedback_of_rounds_marks_their_borders():
    strategy = late_study(GRID)
    ax = plot_feedback(strategy)
    assert [line.get_xdata()[0] for line in ax.lines] == [round.first for round in strategy.rounds]
    assert {"told in time", "told too late", "pending"} <= {c.get_label() for c in ax.collections}
