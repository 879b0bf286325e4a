import subprocess
import sys
import warnings

import numpy as np
import pytest
import torch
from botorch.models import SingleTaskGP
from gpytorch.kernels import RBFKernel
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, PathCollection, QuadMesh
from torch import Tensor

import botorch_ext as bx
from botorch_ext.domains import Box
from botorch_ext.plotting import (
    PALETTE,
    plot_best_value,
    plot_posterior_1d,
    plot_posterior_2d,
    plot_regret,
)
from tests.helpers import tolerance

LINE = Box([[2.0], [5.0]])
PLANE = Box([[2.0, -7.0], [5.0, -6.2]])
CLOSE = tolerance(torch.float64)


def gp(box: Box, num: int, lengthscale: list[float]) -> tuple[SingleTaskGP, Tensor, Tensor]:
    X = box.sample(num, seed=3)
    Y = (3.0 * X).sin().sum(dim=-1, keepdim=True)
    kernel = RBFKernel(ard_num_dims=box.dim).to(torch.float64)
    kernel.lengthscale = torch.tensor(lengthscale, dtype=torch.float64)
    with warnings.catch_warnings():
        # BoTorch asks for data in the unit cube; a grid away from the origin is the point here.
        warnings.simplefilter("ignore")
        model = SingleTaskGP(X, Y, torch.full_like(Y, 1e-2), covar_module=kernel)
    return model.eval(), X, Y


def mean_and_std(model: SingleTaskGP, X: Tensor) -> tuple[np.ndarray, np.ndarray]:
    with torch.no_grad():
        posterior = model.posterior(X)  # jointly, unlike the plots
        return posterior.mean.squeeze(-1).numpy(), posterior.variance.sqrt().squeeze(-1).numpy()


def band(ax: Axes, i: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions, lower and upper edge of the i-th band."""
    bands = [c for c in ax.collections if isinstance(c, FillBetweenPolyCollection)]
    vertices = bands[i].get_paths()[0].vertices
    positions = np.unique(vertices[:, 0])
    edges = [np.sort(vertices[vertices[:, 0] == x, 1]) for x in positions]
    return positions, np.array([e[0] for e in edges]), np.array([e[-1] for e in edges])


def assert_near(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, **CLOSE)


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    assert found is not None
    return [text.get_text() for text in found.get_texts()]


CURVES = {
    "GP-UCB": np.random.default_rng(0).gamma(2.0, size=(10, 30)),
    "EC-GP-UCB": torch.rand(10, 30, generator=torch.Generator().manual_seed(0)),
}


def test_regret_is_the_cumulative_mean_with_its_standard_error() -> None:
    ax = plot_regret(CURVES)
    assert len(ax.lines) == 2
    for i, values in enumerate(CURVES.values()):
        sums = np.cumsum(np.asarray(values, dtype=float), axis=1)
        mean = sums.sum(axis=0) / 10
        error = np.sqrt(((sums - mean) ** 2).sum(axis=0) / 9 / 10)
        assert_near(ax.lines[i].get_xdata(), np.arange(1, 31))
        assert_near(ax.lines[i].get_ydata(), mean)
        _, lower, upper = band(ax, i)
        assert_near(lower, mean - error)
        assert_near(upper, mean + error)
        assert ax.lines[i].get_color() == PALETTE[i]
    assert legend(ax) == ["GP-UCB", "EC-GP-UCB"]
    assert ax.get_xlabel() == "evaluations"
    assert ax.get_ylabel() == "cumulative regret\n(mean ± standard error, 10 seeds)"


def test_regret_per_step_with_median_and_quartiles() -> None:
    values = np.array([[1.0, 5.0], [2.0, 6.0], [3.0, 9.0], [4.0, 7.0], [5.0, 8.0]])
    ax = plot_regret({"one": values}, cumulative=False, center="median")
    assert_near(ax.lines[0].get_ydata(), np.array([3.0, 7.0]))
    _, lower, upper = band(ax)
    assert_near(lower, np.array([2.0, 6.0]))
    assert_near(upper, np.array([4.0, 8.0]))
    assert ax.get_ylabel() == "regret per step\n(median and quartiles, 5 seeds)"


@pytest.mark.parametrize("minimize", [False, True])
def test_best_value_runs_and_skips_failed_evaluations(minimize: bool) -> None:
    values = np.array([[1.0, 0.5, np.nan, 3.0, 2.0]])
    expected = [1.0, 0.5, 0.5, 0.5, 0.5] if minimize else [1.0, 1.0, 1.0, 3.0, 3.0]
    ax = plot_best_value({"one": values}, minimize=minimize)
    assert_near(ax.lines[0].get_ydata(), np.array(expected))
    assert ax.get_ylabel() == "best value so far\n(1 seed)"
    assert not ax.collections


def test_curves_of_different_lengths_and_seeds_on_axes_given() -> None:
    _, ax = plt.subplots()
    curves = {f"method {i}": np.ones((2 + i, 10 + i)) for i in range(9)}
    assert plot_best_value(curves, ax) is ax
    looks = {(line.get_color(), line.get_linestyle()) for line in ax.lines}
    assert len(looks) == 9
    assert ax.get_xlim() == (1, 18)
    assert ax.get_ylabel().endswith("(mean ± standard error, 2 to 10 seeds)")


@pytest.mark.parametrize("width", [2.0, 3.5])
def test_posterior_band_is_mean_and_width_standard_deviations(width: float) -> None:
    model, X, Y = gp(LINE, 6, [0.3])
    ax = plot_posterior_1d(
        model, LINE, width, X, Y, truth=lambda x: (3.0 * x).sin(), num_points=301
    )
    across = np.linspace(2.0, 5.0, 301)
    mean, std = mean_and_std(model, torch.from_numpy(across).unsqueeze(-1))
    assert len(ax.lines) == 3
    assert_near(ax.lines[0].get_xdata(), across)
    assert_near(ax.lines[0].get_ydata(), mean)
    positions, lower, upper = band(ax)
    assert_near(positions, across)
    assert_near(lower, mean - width * std)
    assert_near(upper, mean + width * std)
    assert_near(ax.lines[1].get_ydata(), np.sin(3.0 * across))
    assert_near(ax.lines[2].get_xydata(), torch.cat([X, Y], dim=-1).numpy())
    assert legend(ax) == [
        f"mean ± {width:g} std",
        "posterior mean",
        "true function",
        "evaluations",
    ]
    assert ax.get_xlabel() == "x"
    assert ax.get_ylabel() == "objective"


def test_posterior_of_an_ensemble_is_that_of_the_mixture() -> None:
    X = PLANE.sample(8, seed=0)
    posterior = bx.algorithms.integrated_ei(PLANE, initial=(X, X.sum(dim=1))).posterior
    ax = plot_posterior_1d(posterior.to_botorch(), PLANE, dim=1, slice_at=X[0], num_points=7)
    grid = X[0].repeat(7, 1)
    grid[:, 1] = torch.linspace(-7.0, -6.2, 7, dtype=torch.float64)
    mean, std = posterior.mean_and_std(grid)
    assert_near(ax.lines[0].get_ydata(), mean)
    _, lower, upper = band(ax)
    assert_near(lower, mean - 2 * std)
    assert_near(upper, mean + 2 * std)


def test_posterior_alone() -> None:
    model, _, _ = gp(LINE, 6, [0.3])
    ax = plot_posterior_1d(model, LINE.bounds)
    assert len(ax.lines) == 1
    assert legend(ax) == ["mean ± 2 std", "posterior mean"]


def test_a_slice_runs_through_the_given_point() -> None:
    model, X, Y = gp(PLANE, 15, [0.5, 0.2])
    ax = plot_posterior_1d(
        model, PLANE, 2.0, X, Y.squeeze(-1), dim=1, slice_at=[3.25, -6.5], num_points=51
    )
    across = np.linspace(-7.0, -6.2, 51)
    grid = torch.from_numpy(np.column_stack([np.full(51, 3.25), across]))
    mean, std = mean_and_std(model, grid)
    assert_near(ax.lines[0].get_xdata(), across)
    assert_near(ax.lines[0].get_ydata(), mean)
    assert_near(band(ax)[2], mean + 2.0 * std)
    assert_near(ax.lines[1].get_xydata(), torch.cat([X[:, 1:], Y], dim=-1).numpy())
    assert ax.lines[1].get_markerfacecolor() == "none"
    assert ax.get_xlabel() == "x[1]  (x[0] = 3.25)"
    assert legend(ax)[-1] == "evaluations, projected on the slice"


@pytest.mark.parametrize(
    ("quantity", "label"),
    [
        ("mean", "posterior mean"),
        ("std", "posterior standard deviation"),
        ("upper", "upper confidence bound, mean + 1.5 std"),
    ],
)
def test_heat_map_shows_the_quantity_and_the_points_in_order(quantity, label: str) -> None:
    model, X, _ = gp(PLANE, 15, [0.5, 0.2])
    ax = plot_posterior_2d(model, PLANE, X, quantity=quantity, width=1.5, num_points=21)
    (mesh,) = [c for c in ax.collections if isinstance(c, QuadMesh)]
    grid = torch.from_numpy(mesh.get_coordinates().reshape(-1, 2))
    mean, std = mean_and_std(model, grid)
    expected = {"mean": mean, "std": std, "upper": mean + 1.5 * std}[quantity]
    assert_near(np.asarray(mesh.get_array()).reshape(-1), expected)
    assert_near(grid.numpy().min(axis=0), np.array([2.0, -7.0]))
    assert_near(grid.numpy().max(axis=0), np.array([5.0, -6.2]))

    (scatter,) = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert_near(np.asarray(scatter.get_offsets()), X.numpy())
    assert (np.diff(scatter.get_sizes()) > 0).all()
    assert (np.diff(np.asarray(scatter.get_array())) > 0).all()
    assert legend(ax) == ["first asked point", "last asked point"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x[0]", "x[1]")
    figure = ax.get_figure()
    assert figure is not None
    assert [other.get_ylabel() for other in figure.axes if other is not ax] == [label]


@pytest.mark.parametrize("num", [0, 1])
def test_heat_map_with_hardly_any_points(num: int) -> None:
    model, X, _ = gp(PLANE, 15, [0.5, 0.2])
    ax = plot_posterior_2d(model, PLANE.bounds, X[:num], num_points=8)
    scatters = [c for c in ax.collections if isinstance(c, PathCollection)]
    assert len(scatters) == num


@pytest.mark.slow
def test_the_module_imports_without_matplotlib_and_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; import botorch_ext.plotting as plotting\n"
        "try: plotting.plot_regret({'a': [[1.0]]})\n"
        "except ImportError as error: assert 'botorch-ext[plot]' in str(error)\n"
        "else: raise SystemExit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


class _TwoOutputs(torch.nn.Module):
    def posterior(self, X: Tensor):
        class Posterior:
            mean = torch.zeros(*X.shape[:-1], 2)
            variance = torch.ones(*X.shape[:-1], 2)

        return Posterior()


def test_bad_arguments_are_named() -> None:
    model, X, Y = gp(PLANE, 15, [0.5, 0.2])
    with pytest.raises(ValueError, match="curves must hold at least one method"):
        plot_regret({})
    with pytest.raises(ValueError, match=r"curves\['a'\] must have shape .* got \(1, 2, 3\)"):
        plot_best_value({"a": np.ones((1, 2, 3))})
    with pytest.raises(ValueError, match=r"curves must be a dict .*, got .*3"):
        plot_best_value([1.0, 3.0])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"curves\['a'\] must be numbers, such as the regret of"):
        plot_regret({"a": [object()]})
    with pytest.raises(ValueError, match="center must be 'mean' or 'median', got 'mode'"):
        plot_regret({"a": [1.0]}, center="mode")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="slice_at must be given in 2 dimensions"):
        plot_posterior_1d(model, PLANE)
    with pytest.raises(ValueError, match=r"slice_at must have shape \(2,\), got \(1,\)"):
        plot_posterior_1d(model, PLANE, slice_at=[3.0])
    with pytest.raises(ValueError, match="dim must be at least 0 and below 2, got 2"):
        plot_posterior_1d(model, PLANE, slice_at=[3.0, -6.5], dim=2)
    with pytest.raises(ValueError, match="width must be finite and at least 0, got -1"):
        plot_posterior_1d(model, PLANE, -1, slice_at=[3.0, -6.5])
    with pytest.raises(ValueError, match="Y must be given where X is"):
        plot_posterior_1d(model, PLANE, 2.0, X, slice_at=[3.0, -6.5])
    with pytest.raises(ValueError, match="X must be given where Y is"):
        plot_posterior_1d(model, PLANE, 2.0, None, Y, slice_at=[3.0, -6.5])
    with pytest.raises(ValueError, match=r"Y must have shape \(15,\) or \(15, 1\), got \(14, 1\)"):
        plot_posterior_1d(model, PLANE, 2.0, X, Y[1:], slice_at=[3.0, -6.5])
    with pytest.raises(ValueError, match=r"X must have shape \(n, 2\), got \(15, 1\)"):
        plot_posterior_2d(model, PLANE, X[:, :1])
    with pytest.raises(ValueError, match=r"bounds must have two columns, got shape \(2, 1\)"):
        plot_posterior_2d(model, LINE)
    with pytest.raises(ValueError, match=r"quantity must be one of .* got 'lower'"):
        plot_posterior_2d(model, PLANE, quantity="lower")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="model must have one output and no batch dimensions"):
        plot_posterior_2d(_TwoOutputs(), PLANE)  # type: ignore[arg-type]
    assert not plt.get_fignums()
