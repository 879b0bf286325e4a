"""Curves are means with their bands, and posteriors are those of the model."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from matplotlib import pyplot as plt

import botorch_ext as bx
from botorch_ext.plotting import (
    PALETTE,
    plot_best_value,
    plot_posterior_1d,
    plot_posterior_2d,
    plot_regret,
)
from tests.helpers import rbf
from tests.plotting.reading import bands, color_label, dots, heights, legend, mesh, near

LINE = bx.Box([[2.0], [5.0]])
PLANE = bx.Box([[2.0, -7.0], [5.0, -6.2]])

# BoTorch asks for data in the unit cube; a grid away from the origin is the point here.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning"
)


def gp(box, num, *lengthscales):
    X = box.sample(num, seed=3)
    Y = (3.0 * X).sin().sum(dim=-1, keepdim=True)
    model = SingleTaskGP(X, Y, torch.full_like(Y, 1e-2), covar_module=rbf(*lengthscales))
    return model.eval(), X, Y


def mean_and_std(model, X):
    with torch.no_grad():
        posterior = model.posterior(torch.as_tensor(X))  # jointly, unlike the plots
        return posterior.mean.squeeze(-1).numpy(), posterior.variance.sqrt().squeeze(-1).numpy()


def test_regret_is_the_cumulative_mean_with_its_standard_error():
    curves = {
        "GP-UCB": np.random.default_rng(0).gamma(2.0, size=(10, 30)),
        "EC-GP-UCB": torch.rand(10, 30, generator=torch.Generator().manual_seed(0)),
    }
    ax = plot_regret(curves)
    for i, values in enumerate(curves.values()):
        sums = np.cumsum(np.asarray(values, dtype=float), axis=1)
        mean = sums.sum(axis=0) / 10
        error = np.sqrt(((sums - mean) ** 2).sum(axis=0) / 9 / 10)
        near(ax.lines[i].get_xydata(), np.column_stack([np.arange(1, 31), mean]))
        near(bands(ax)[i][1:], [mean - error, mean + error])
        assert ax.lines[i].get_color() == PALETTE[i]
    assert len(ax.lines) == 2 and legend(ax) == list(curves)
    label = "cumulative regret\n(mean ± standard error, 10 seeds)"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("evaluations", label)


def test_regret_per_step_with_median_and_quartiles():
    values = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 9.0], [4.0, 7.0], [5.0, 8.0]])
    ax = plot_regret({"one": values}, cumulative=False, center="median")
    near(ax.lines[0].get_ydata(), [3.0, 7.0])
    near(bands(ax)[0][1:], [[2.0, 6.0], [4.0, 8.0]])
    assert ax.get_ylabel() == "regret per step\n(median and quartiles, 5 seeds)"


@pytest.mark.parametrize("minimize", [False, True])
def test_best_value_runs_and_skips_failed_evaluations(minimize):
    values = np.array([[1.0, 0.5, np.nan, 3.0, 2.0]])
    expected = [1.0, 0.5, 0.5, 0.5, 0.5] if minimize else [1.0, 1.0, 1.0, 3.0, 3.0]
    ax = plot_best_value({"one": values}, minimize=minimize)
    near(ax.lines[0].get_ydata(), expected)
    assert ax.get_ylabel() == "best value so far\n(1 seed)" and not ax.collections


def test_curves_of_different_lengths_and_seeds_on_axes_given():
    _, ax = plt.subplots()
    curves = {f"method {i}": np.ones((2 + i, 10 + i)) for i in range(9)}
    assert plot_best_value(curves, ax) is ax
    assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 9
    assert ax.get_xlim() == (1, 18)
    assert ax.get_ylabel().endswith("(mean ± standard error, 2 to 10 seeds)")


@pytest.mark.parametrize("width", [2.0, 3.5])
def test_a_posterior_on_a_line_and_on_a_slice_through_a_point(width):
    at = {"dim": 1, "slice_at": [3.25, -6.5]}
    for box, lengthscales, column, more in ((LINE, (0.3,), 0, {}), (PLANE, (0.5, 0.2), 1, at)):
        model, X, Y = gp(box, 9, *lengthscales)
        truth = lambda x: (3.0 * x).sin().sum(dim=-1)  # noqa: E731
        ax = plot_posterior_1d(model, box, width, X, Y, truth=truth, num_points=51, **more)
        across = np.linspace(*box.bounds[:, column].tolist(), 51)
        grid = across[:, None] if box is LINE else np.column_stack([np.full(51, 3.25), across])
        mean, std = mean_and_std(model, grid)
        curve, true, evaluations = ax.lines
        near(curve.get_xydata(), np.column_stack([across, mean]))
        near(bands(ax)[0], [across, mean - width * std, mean + width * std])
        near(true.get_ydata(), np.sin(3.0 * grid).sum(axis=1))
        near(evaluations.get_xydata(), torch.cat([X[:, [column]], Y], dim=-1))
        told = "evaluations" + (", projected on the slice" if box is PLANE else "")
        assert legend(ax) == [f"mean ± {width:g} std", "posterior mean", "true function", told]
    assert evaluations.get_markerfacecolor() == "none"
    assert ax.get_xlabel() == "x[1]  (x[0] = 3.25)"
    assert legend(plot_posterior_1d(gp(LINE, 6, 0.3)[0], LINE.bounds))[0] == "mean ± 2 std"


def test_posterior_of_an_ensemble_is_that_of_the_mixture():
    X = PLANE.sample(8, seed=0)
    posterior = bx.algorithms.integrated_ei(PLANE, initial=(X, X.sum(dim=1))).posterior
    ax = plot_posterior_1d(posterior.to_botorch(), PLANE, dim=1, slice_at=X[0], num_points=7)
    grid = X[0].repeat(7, 1)
    grid[:, 1] = torch.linspace(-7.0, -6.2, 7, dtype=torch.float64)
    mean, std = posterior.mean_and_std(grid)
    near(ax.lines[0].get_ydata(), mean)
    near(bands(ax)[0][1], mean - 2 * std)
    near(bands(ax)[0][2], mean + 2 * std)


@pytest.mark.parametrize(
    ("quantity", "factors", "label"),
    [
        ("mean", (1, 0), "posterior mean"),
        ("std", (0, 1), "posterior standard deviation"),
        ("upper", (1, 1.5), "upper confidence bound, mean + 1.5 std"),
    ],
)
def test_heat_map_shows_the_quantity_and_the_points_in_order(quantity, factors, label):
    model, X, _ = gp(PLANE, 15, 0.5, 0.2)
    ax = plot_posterior_2d(model, PLANE, X, quantity=quantity, width=1.5, num_points=21)
    grid = mesh(ax).get_coordinates().reshape(-1, 2)
    mean, std = mean_and_std(model, grid)
    near(heights(ax).reshape(-1), factors[0] * mean + factors[1] * std)
    near([grid.min(axis=0), grid.max(axis=0)], PLANE.bounds)
    (scatter,) = dots(ax)
    near(scatter.get_offsets(), X)
    assert (np.diff(scatter.get_sizes()) > 0).all()
    assert (np.diff(np.asarray(scatter.get_array())) > 0).all()
    assert legend(ax) == ["first asked point", "last asked point"]
    assert (ax.get_xlabel(), ax.get_ylabel(), color_label(ax)) == ("x[0]", "x[1]", [label])
    for num in (0, 1):
        assert len(dots(plot_posterior_2d(model, PLANE.bounds, X[:num], num_points=8))) == num


@pytest.mark.slow
def test_the_module_imports_without_matplotlib_and_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import botorch_ext.plotting as plotting\n"
        "try: plotting.plot_regret({'a': [[1.0]]})\n"
        "except ImportError as error: assert 'botorch-ext[plot]' in str(error)\n"
        "else: raise SystemExit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
