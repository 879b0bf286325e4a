"""The pictures of candidate models hold the numbers of the strategy."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from matplotlib.colors import same_color

import botorch_ext as bx
from botorch_ext.plotting import PALETTE, plot_model_bands, plot_models
from tests.plotting.reading import bands, beside, legend, lines, near, words

LINE = bx.FiniteSet(torch.linspace(5.0, 2.0, 70, dtype=torch.float64).unsqueeze(-1))
PLANE = bx.Box([[2.0, -7.0], [5.0, -6.2]])


def f(X):
    return (4.0 * X).sin().sum(dim=-1) + 1.0


def models(num=4):
    scales = torch.linspace(0.2, 3.0, num).tolist()
    return bx.CandidateModels.lengthscales(RBFKernel(), scales, noise_variance=0.01)


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
    """The points of all marks of a kind."""
    points = [line.get_xydata() for line in ax.lines if line.get_marker() == marker]
    return np.concatenate(points) if points else np.zeros((0, 2))


def in_order(points):
    return sorted(map(tuple, np.array(list(points), dtype=float).tolist()))


def shares(strategy):
    """Each test with the share of its bound."""
    return [(test, min(abs(test.error) / test.bound, 1.0)) for test in strategy.tests]


def test_a_row_shows_the_share_of_the_bound_at_every_test_and_how_it_ended():
    strategy = told(elimination())
    assert strategy.rejected and len(strategy.alive) > 0
    ax = plot_models(strategy)
    assert words(ax.get_yticklabels()) == strategy.names
    expected = [(test.t, test.model + 0.36 - 0.72 * share) for test, share in shares(strategy)]
    near(in_order(marks(ax)), in_order(expected))
    assert ax.get_xlabel() == "observations (the first 2 initial)"
    # A cross ends the line of a rejected model at its bound.
    near(in_order(marks(ax, "X")), in_order((t, i - 0.36) for i, t in strategy.rejected.items()))
    steps = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    ends = {round(line.get_ydata()[0]): (line.get_xdata()[-1], line.get_color()) for line in steps}
    for id, beside_it in enumerate(beside(ax)):
        num = sum(test.model == id for test in strategy.tests)
        played = f"{num} play" if num == 1 else f"{num} plays"
        if id in strategy.rejected:
            assert ends[id] == (strategy.rejected[id], PALETTE[1])
            assert beside_it == f"{played}, rejected at {strategy.rejected[id]}"
        else:
            assert (ends[id], beside_it) == ((strategy.plays[-1].t, PALETTE[0]), played)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.AllModelsRejectedWarning")
def test_the_last_model_is_marked_where_it_is_refuted():
    strategy = elimination(noise_std=1e-3)
    told(strategy, value=lambda x: 50.0 + len(strategy.history.values) ** 2)
    (last,) = strategy.alive
    ax = plot_models(strategy)
    black, *_ = (
        line.get_xydata()
        for line in ax.lines
        if line.get_marker() == "X" and line.get_color() == PALETTE[6]
    )
    near(black, [(strategy.all_rejected_at, last - 0.36)])
    assert beside(ax)[last].endswith(f"refuted at {strategy.all_rejected_at}")


def test_without_tests_the_marks_are_the_plays():
    common = {"width": 2.0, "num_initial": 2}
    for strategy in (
        bx.algorithms.mle_ucb(LINE, models(), **common),
        bx.algorithms.expected_ucb(LINE, models(), **common),
        bx.algorithms.a_gp_ucb(LINE, models(), **common),
        bx.algorithms.lb_gp_ucb(LINE, models(), noise_std=0.1, num_initial=2),
    ):
        ax = plot_models(told(strategy))
        near(in_order(marks(ax)), in_order((play.t, play.model) for play in strategy.plays))
        crosses = {int(y): int(x) for x, y in marks(ax, "X")}
        assert crosses == strategy.rejected


def test_two_sides_run_up_and_down():
    options = {"noise_std": 0.05, "width": 1.0, "radius": 0.1, "num_initial": 2}
    strategy = told(bx.algorithms.he_stable_opt(LINE, models(), **options))
    assert {test.side for test in strategy.tests} == {"optimistic", "pessimistic"}
    expected = []
    for test, share in shares(strategy):
        up = test.side == "pessimistic"
        expected.append((test.t, test.model + (0.4 * share if up else -0.4 * share)))
    near(in_order(marks(plot_models(strategy))), in_order(expected))


def test_bands_of_the_models_alive_on_a_finite_set():
    strategy = told(elimination())
    assert strategy.rejected
    ax = plot_model_bands(strategy, truth=f)
    points = LINE.points.flip(0)  # in order
    means, half_widths = strategy.bands(points)
    evidence = [strategy.report()["models"][id]["log_marginal_likelihood"] for id in strategy.alive]
    order = np.argsort(evidence)[::-1]
    for position, band in zip(order, bands(ax), strict=True):
        mean, half = means[position], half_widths[position]
        near(band, torch.stack([points[:, 0], mean - half, mean + half]))
        id = strategy.alive[position]
        line = lines(ax)[strategy.names[id]]
        near(line.get_ydata(), mean)
        assert same_color(line.get_color(), PALETTE[id])
    labels = [strategy.names[strategy.alive[position]] for position in order]
    assert legend(ax) == [*labels, "true function", "evaluations"]
    near(lines(ax)["true function"].get_ydata(), f(points))
    trials, values = strategy.history.trials, strategy.history.values
    evaluated = [(float(trials[id].x), value) for id, value in values.items()]
    assert in_order(lines(ax)["evaluations"].get_xydata()) == in_order(evaluated)


def test_bands_along_a_line_through_a_box_with_initial_data():
    X = PLANE.sample(3, seed=0)
    strategy = elimination(PLANE, initial=(X, f(X)))
    ax = plot_model_bands(strategy, dim=1, slice_at=[3.5, -6.5], num_points=30)
    grid = np.column_stack([np.full(30, 3.5), np.linspace(-7.0, -6.2, 30)])
    means, half_widths = strategy.bands(torch.from_numpy(grid))
    lowest = [band[1] for band in bands(ax)]
    near(in_order(lowest), in_order(means - half_widths))
    assert ax.get_xlabel() == "x[1]  (x[0] = 3.5)"
    near(marks(ax), np.column_stack([X[:, 1], f(X)]))


def test_many_models_share_an_envelope():
    strategy = elimination(num=12)
    strategy.tell(strategy.ask().id, 1.0)
    ax = plot_model_bands(strategy, num_shown=3)
    envelope, *own = bands(ax)
    points = LINE.points.flip(0)
    means, half = strategy.bands(points)
    near(envelope, torch.stack([points[:, 0], (means - half).amin(0), (means + half).amax(0)]))
    assert len(own) == 3
    likeliest = sorted(
        strategy.report()["models"], key=lambda model: -model["log_marginal_likelihood"]
    )
    best = [model["name"] for model in likeliest[:3]]
    assert legend(ax) == ["all bands of 12 models", *best, "evaluations"]
    looks = {(lines(ax)[name].get_color(), lines(ax)[name].get_linestyle()) for name in best}
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
