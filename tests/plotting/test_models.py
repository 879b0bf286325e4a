"""The pictures of candidate models hold the numbers of the strategy."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from matplotlib.colors import same_color

import botorch_ext as bx
from botorch_ext.models import CandidateModels
from botorch_ext.plotting import PALETTE, plot_model_bands, plot_models
from botorch_ext.strategies import HyperparameterElimination
from tests.plotting.reading import CLOSE, bands, legend

LINE = bx.FiniteSet(torch.linspace(5.0, 2.0, 70, dtype=torch.float64).unsqueeze(-1))
PLANE = bx.Box([[2.0, -7.0], [5.0, -6.2]])


def f(X):
    return (4.0 * X).sin().sum(dim=-1) + 1.0


def models(num=4):
    scales = torch.linspace(0.2, 3.0, num).tolist()
    return CandidateModels.lengthscales(RBFKernel(), scales, noise_variance=0.01)


def told(strategy, num=15, value=f):
    generator = np.random.default_rng(0)
    for _ in range(num):
        trial = strategy.ask()
        strategy.tell(trial.id, float(value(trial.x)) + 0.1 * generator.standard_normal())
    strategy.ask()  # pends
    return strategy


def elimination(domain=LINE, num=4, noise_std=0.05, **options):
    return bx.algorithms.he_gp_ucb(
        domain, models(num), noise_std=noise_std, width=1.0, num_initial=2, **options
    )


def marks(ax, marker="o"):
    """The points of the marks of each line that has some."""
    lines = [line for line in ax.lines if line.get_marker() == marker]
    return [line.get_xydata() for line in lines if len(line.get_xydata())]


def beside(ax):
    """The words to the right of the rows."""
    return [label.get_text() for label in ax.child_axes[0].get_yticklabels()]


def test_a_row_shows_the_share_of_the_bound_at_every_test():
    strategy = told(elimination())
    ax = plot_models(strategy)
    assert [label.get_text() for label in ax.get_yticklabels()] == strategy.names
    shown = {round(points[0, 1]): points for points in marks(ax)}
    tested = {test.model for test in strategy.tests}
    assert set(shown) == tested
    assert len(tested) > 1
    for id in tested:
        own = [test for test in strategy.tests if test.model == id]
        heights = (id + 0.36 - shown[id][:, 1]) / 0.72
        shares = [min(abs(test.error) / test.bound, 1.0) for test in own]
        np.testing.assert_allclose(shown[id][:, 0], [test.t for test in own])
        np.testing.assert_allclose(heights, shares, **CLOSE)
    assert ax.get_xlabel() == "observations (the first 2 initial)"


def test_a_cross_ends_the_line_of_a_rejected_model_at_its_bound():
    strategy = told(elimination())
    assert strategy.rejected
    assert len(strategy.alive) > 0
    ax = plot_models(strategy)
    crosses = {round(point[1] + 0.36): point for (point,) in marks(ax, "X")}
    assert {id: int(point[0]) for id, point in crosses.items()} == strategy.rejected
    for id, point in crosses.items():
        assert point[1] == pytest.approx(id - 0.36)
    ends = {}
    for line in ax.lines:
        if line.get_drawstyle() == "steps-post":
            ends[round(line.get_ydata()[0])] = line.get_xdata()[-1], line.get_color()
    for id, words in enumerate(beside(ax)):
        num = sum(test.model == id for test in strategy.tests)
        played = f"{num} play" if num == 1 else f"{num} plays"
        if id in strategy.rejected:
            assert ends[id] == (strategy.rejected[id], PALETTE[1])
            assert words == f"{played}, rejected at {strategy.rejected[id]}"
        else:
            assert ends[id] == (strategy.plays[-1].t, PALETTE[0])
            assert words == played


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.AllModelsRejectedWarning")
def test_the_last_model_is_marked_where_it_is_refuted():
    strategy = elimination(noise_std=1e-3)
    told(strategy, value=lambda x: 50.0 + len(strategy.history.values) ** 2)
    (last,) = strategy.alive
    ax = plot_models(strategy)
    black = [
        line for line in ax.lines if line.get_marker() == "X" and line.get_color() == PALETTE[6]
    ]
    assert black[0].get_xydata().tolist() == [
        [strategy.all_rejected_at, pytest.approx(last - 0.36)]
    ]
    assert beside(ax)[last].endswith(f"refuted at {strategy.all_rejected_at}")


def test_without_tests_the_marks_are_the_plays():
    common = {"width": 2.0, "num_initial": 2}
    for strategy in (
        bx.algorithms.mle_ucb(LINE, models(), **common),
        bx.algorithms.expected_ucb(LINE, models(), **common),
        bx.algorithms.a_gp_ucb(LINE, models(), **common),
        bx.algorithms.lb_gp_ucb(LINE, models(), noise_std=0.1, num_initial=2),
    ):
        told(strategy)
        ax = plot_models(strategy)
        points = np.concatenate(marks(ax))
        expected = sorted((play.t, play.model) for play in strategy.plays)
        assert sorted(map(tuple, points.tolist())) == expected
        crosses = {int(y): int(x) for ((x, y),) in marks(ax, "X")}
        assert crosses == strategy.rejected


class _TwoSides(HyperparameterElimination):
    """Every test once more, for the lower bounds, with half the error."""

    @property
    def tests(self):
        own = super().tests
        return own + [replace(test, side="pessimistic", error=test.error / 2) for test in own]


def test_two_sides_run_up_and_down():
    strategy = told(_TwoSides(LINE, models(), 2.0, noise_std=0.1, num_initial=2))
    ax = plot_models(strategy)
    tests = HyperparameterElimination.tests.fget(strategy)
    expected = []
    for test in tests:
        share = abs(test.error) / test.bound
        expected.append((test.t, test.model - 0.4 * min(share, 1.0)))
        expected.append((test.t, test.model + 0.2 * share))
    points = np.concatenate(marks(ax))
    np.testing.assert_allclose(sorted(map(tuple, points.tolist())), sorted(expected), **CLOSE)


def assert_band(shown, across, lower, upper):
    np.testing.assert_allclose(shown[0], across)
    np.testing.assert_allclose(shown[1], lower, **CLOSE)
    np.testing.assert_allclose(shown[2], upper, **CLOSE)


def test_bands_of_the_models_alive_on_a_finite_set():
    strategy = told(elimination())
    assert strategy.rejected
    ax = plot_model_bands(strategy, truth=f)
    points = LINE.points.flip(0)  # in order
    means, half_widths = (values.numpy() for values in strategy.bands(points))
    across = points[:, 0].numpy()
    evidence = [strategy.report()["models"][id]["log_marginal_likelihood"] for id in strategy.alive]
    order = np.argsort(evidence)[::-1]
    shown = bands(ax)
    assert len(shown) == len(strategy.alive)
    for position, band in zip(order, shown, strict=True):
        lower, upper = (means[position] + sign * half_widths[position] for sign in (-1, 1))
        assert_band(band, across, lower, upper)
    labels = [strategy.names[strategy.alive[position]] for position in order]
    assert legend(ax) == [*labels, "true function", "evaluations"]
    by_label = {line.get_label(): line for line in ax.lines}
    np.testing.assert_allclose(by_label["true function"].get_ydata(), f(points).numpy())
    for position in order:
        id = strategy.alive[position]
        line = by_label[strategy.names[id]]
        np.testing.assert_allclose(line.get_ydata(), means[position], **CLOSE)
        assert same_color(line.get_color(), PALETTE[id])
    told_points = [
        (float(strategy.history.trials[id].x), value)
        for id, value in strategy.history.values.items()
    ]
    assert sorted(map(tuple, by_label["evaluations"].get_xydata())) == sorted(told_points)


def test_bands_along_a_line_through_a_box_with_initial_data():
    X = PLANE.sample(3, seed=0)
    strategy = elimination(PLANE, initial=(X, f(X)))
    ax = plot_model_bands(strategy, dim=1, slice_at=[3.5, -6.5], num_points=30)
    across = np.linspace(-7.0, -6.2, 30)
    grid = torch.from_numpy(np.column_stack([np.full(30, 3.5), across]))
    means, half_widths = (values.numpy() for values in strategy.bands(grid))
    assert len(bands(ax)) == 4
    expected = {round(float(value), 9) for value in (means - half_widths)[:, 0]}
    assert {round(float(band[1][0]), 9) for band in bands(ax)} == expected
    assert ax.get_xlabel() == "x[1]  (x[0] = 3.5)"
    (line,) = (line for line in ax.lines if line.get_marker() == "o")
    np.testing.assert_allclose(line.get_xydata(), np.column_stack([X[:, 1], f(X)]))


def test_many_models_share_an_envelope():
    strategy = elimination(num=12)
    strategy.tell(strategy.ask().id, 1.0)
    ax = plot_model_bands(strategy, num_shown=3)
    envelope, *own = bands(ax)
    points = LINE.points.flip(0)
    means, half_widths = (values.numpy() for values in strategy.bands(points))
    lower, upper = (means - half_widths).min(axis=0), (means + half_widths).max(axis=0)
    assert_band(envelope, points[:, 0].numpy(), lower, upper)
    assert len(own) == 3
    models = strategy.report()["models"]
    models.sort(key=lambda model: -model["log_marginal_likelihood"])
    best = [model["name"] for model in models[:3]]
    assert legend(ax) == ["all bands of 12 models", *best, "evaluations"]
    looks = {
        (line.get_color(), line.get_linestyle()) for line in ax.lines if line.get_label() in best
    }
    assert len(looks) == 3


@pytest.mark.slow
def test_panels_share_a_figure_without_overlap():
    strategy = told(elimination())
    figure, axes = plt.subplots(3, 2, figsize=(15, 10), layout="constrained")
    for left, right in axes:
        plot_models(strategy, left)
        plot_model_bands(strategy, right)
    figure.canvas.draw()  # a layout that fails warns
    boxes = [ax.get_tightbbox() for ax in axes.flat]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


def test_what_cannot_be_drawn_is_refused():
    other, fresh = bx.strategies.RandomSearch(LINE), elimination()
    for plot in (plot_models, plot_model_bands):
        with pytest.raises(
            ValueError, match="strategy must be one that plays confidence bounds, got a Random"
        ):
            plot(other)
    with pytest.raises(ValueError, match="strategy must have been told something it asked"):
        plot_models(fresh)
    with pytest.raises(ValueError, match="dim must be at least 0 and below 1, got 1"):
        plot_model_bands(fresh, dim=1)
    with pytest.raises(ValueError, match="num_shown must be"):
        plot_model_bands(fresh, num_shown=0)
    with pytest.raises(ValueError, match="slice_at must be given in 2 dimensions"):
        plot_model_bands(elimination(PLANE))
    plane = elimination(bx.FiniteSet(PLANE.sample(9, seed=0)))
    with pytest.raises(
        ValueError, match="a finite set must have one coordinate to be drawn, got 2"
    ):
        plot_model_bands(plane)
    assert not plt.get_fignums()
