"""Pictures of predictions: what is drawn is what the study predicts."""

import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.plotting import plot_contours, plot_importance, plot_regret, plot_slices
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies.answers import Importance
from tests.helpers import rbf
from tests.plotting.reading import (
    bands,
    color_label,
    heights,
    legend,
    lines,
    mesh,
    near,
    words,
)

BOX = bx.Box(
    [(2.0, 5.0), (1e-3, 1e1), (1, 4), (0, 7)],
    integer=[2],
    log=[1],
    categories={3: [0, 3, 7]},
    constraints=([[1.0, 0.0, 0.5, 0.0]], [5.0]),
)


def cost(x):
    return float((x[0] - 3) ** 2 + x[1].log() + 0.1 * x[2] + 0.2 * (x[3] == 3))


@pytest.fixture(params=[False, True], ids=["maximise", "minimise"])
def study(request, tmp_path):
    strategy = bx.algorithms.gp_bucb(BOX, rbf(2.0), noise_variance=0.04, width=2.0)
    strategy.expect(bx.exceptions.PriorScaleWarning)
    study = bx.Study(tmp_path / "lab.db", strategy, name="lab", minimize=request.param)
    for x in BOX.sample(7, seed=2):
        study.attach(x, cost(x))
    return study


def require_slice(ax, study, base, dim):
    """The curve and its band are the prediction along a column through a point."""
    line = lines(ax)["posterior mean"]
    points = base.repeat(len(line.get_xdata()), 1)
    points[:, dim] = torch.as_tensor(line.get_xdata())
    found = study.predict(points)
    near(line.get_ydata(), found.mean)
    (band,) = bands(ax)
    near([band[1].min(), band[2].max()], [found.quantiles.min(), found.quantiles.max()])


def test_slices_are_predictions_along_each_column(study):
    axes, base = plot_slices(study), study.recommended().x
    assert [ax.get_xlabel() for ax in axes] == ["x0", "x1", "x2", "x3"]
    assert [ax.get_xscale() for ax in axes] == ["linear", "log", "linear", "linear"]
    for dim in (0, 1):
        require_slice(axes[dim], study, base, dim)
    first = lines(axes[0])["posterior mean"].get_xdata()
    assert first.max() <= 5 - 0.5 * float(base[2]) + 1e-9  # the constraint
    whole = [v for v in (1.0, 2.0, 3.0, 4.0) if float(base[0]) + 0.5 * v <= 5 + 1e-9]
    for dim, allowed in ((2, whole), (3, [0.0, 3.0, 7.0])):
        near(lines(axes[dim])["posterior mean"].get_xdata(), allowed)
        points = base.repeat(len(allowed), 1)
        points[:, dim] = torch.tensor(allowed)
        (bars,) = axes[dim].collections
        found = np.array(bars.get_segments())[..., 1]
        near(found, study.predict(points).quantiles)
    (told,) = (line for line in axes[0].lines if "evaluations" in line.get_label())
    apart = [BOX.to_distances(event.trial.x) - BOX.to_distances(base) for event in study.events]
    nearby = [
        event.value
        for event, away in zip(study.events, apart, strict=True)
        if away[1:].square().mean() <= 1 / 16
    ]
    assert nearby
    assert told.get_ydata().tolist() == pytest.approx(nearby)
    assert len({ax.get_ylim() for ax in axes}) == 1
    other = BOX.sample(1, seed=5)[0]
    (ax,) = plot_slices(study, [0], axes[1:2], slice_at=other)
    assert ax is axes[1]
    require_slice(plot_slices(study, [0], slice_at=other)[0], study, other, 0)
    with pytest.raises(ValueError, match="axes"):
        plot_slices(study, [0], axes)


def test_bands_lie_between_the_quantiles_of_each_pair_of_levels(study):
    (ax,) = plot_slices(study, [0], levels=(0.025, 0.25, 0.75, 0.975))
    points = study.recommended().x.repeat(100, 1)
    across = bands(ax)[0][0]
    points = points[: len(across)]
    points[:, 0] = torch.as_tensor(across)
    found = study.predict(points, levels=(0.025, 0.25, 0.75, 0.975)).quantiles
    for (_, low, high), (first, last) in zip(bands(ax), ((0, 3), (1, 2)), strict=True):
        near(low, found[:, first])
        near(high, found[:, last])
    assert {"2.5 % to 97.5 % of f", "25 % to 75 % of f"} <= set(legend(ax))


def test_contours_are_the_means_in_the_plane_of_two_columns(study):
    base = torch.tensor([3.0, 1e-1, 2.0, 3.0], dtype=torch.float64)
    ax = plot_contours(study, [1, 0], slice_at=base, num_points=7)
    edges, means = mesh(ax).get_coordinates(), np.ma.filled(heights(ax).astype(float), np.nan)
    across = np.sqrt(edges[0, 1:, 0] * edges[0, :-1, 0]).clip(1e-3, 1e1)  # a log scale
    up = ((edges[1:, 0, 1] + edges[:-1, 0, 1]) / 2).clip(2, 5)
    near(across[[0, -1]], [1e-3, 1e1])
    for row, x0 in enumerate(up):
        for column, x1 in enumerate(across):
            point = torch.tensor([x0, x1, 2.0, 3.0], dtype=torch.float64)
            mean = float(study.predict(point).mean) if x0 <= 4 + 1e-9 else np.nan
            np.testing.assert_allclose(means.reshape(7, 7)[row, column], mean, rtol=1e-6)
    assert np.isnan(means).any()  # the constraint
    X, _ = study.strategy.evaluated()
    near(lines(ax)["evaluations"].get_xydata(), X[:, [1, 0]])
    near(lines(ax)["point"].get_xydata(), [(1e-1, 3.0)])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_xscale()) == ("x1", "x0", "log")
    assert mesh(ax).get_cmap().name == ("viridis_r" if study.minimize else "viridis")
    assert color_label(ax) == ["posterior mean of value"]
    first, second = study.importance().total.argsort(descending=True)[:2].tolist()
    ax = plot_contours(study, num_points=4)
    assert (ax.get_xlabel(), ax.get_ylabel()) == (f"x{first}", f"x{second}")


def test_slices_and_contours_show_the_observations_of_their_context():
    box = bx.Box([(0.0, 1.0), (0.0, 1.0)])
    strategy = bx.algorithms.gp_bucb(
        box, rbf(0.5), noise_variance=0.01, width=2.0, context_domain=bx.Box([(0.0, 9.0)])
    )
    for i in range(6):
        strategy.attach([0.5, 0.5 + 0.01 * i], 0.1 * i, [2.0 + i % 2])
    ax, _ = plot_slices(strategy, slice_at=[0.5, 0.5], context=[3.0])
    near(ax.lines[1].get_ydata(), [0.1, 0.3, 0.5])
    ax = plot_contours(strategy, [0, 1], slice_at=[0.5, 0.5], context=[3.0], num_points=3)
    near(lines(ax)["evaluations"].get_ydata(), [0.51, 0.53, 0.55])


def test_slices_of_a_space_have_its_units_and_the_values_of_its_choices():
    space = bx.Space(dose=bx.Real(0, 20, unit="mg"), solvent=bx.Choice(["water", None, 2.5]))
    X = space.sample(6, seed=0)
    strategy = bx.algorithms.gp_bucb(
        space, rbf(8.0, 1.0), noise_variance=0.04, width=2.0, initial=(X, X[:, 0])
    )
    dose, solvent = plot_slices(strategy)
    assert (dose.get_xlabel(), solvent.get_xlabel()) == ("dose (mg)", "solvent")
    assert words(solvent.get_xticklabels()) == ["water", "None", "2.5"]
    codes = [torch.tensor([0.0, code]) for code in solvent.get_xticks()]
    assert [space.params_of(x)["solvent"] for x in codes] == ["water", None, 2.5]


def test_importance_is_drawn_with_the_most_important_on_top(study):
    found = study.importance(num_samples=64)
    for drawn in (found, Importance(found.names, found.first_order, found.total, found.std)):
        ax = plot_importance(drawn)
        assert words(ax.get_yticklabels()) == [f"x{j}" for j in found.total.argsort().tolist()]
        widths = [bar.get_width() for bar in ax.containers[0]]
        assert widths == pytest.approx(sorted(found.total.tolist()))
    assert plot_importance(study).get_xlabel().startswith("share of the variance")


@pytest.mark.parametrize("minimize", [False, True])
def test_regret_of_a_study_is_what_its_own_trials_lack_of_the_best_value_inside(minimize, tmp_path):
    strategy = bx.strategies.RandomSearch(BOX, seed=2)
    study = bx.Study(tmp_path / "lab.db", strategy, name="lab", minimize=minimize)
    with pytest.raises(ValueError, match=r"curves\['lab'\]"):
        plot_regret(study)
    sign = -1.0 if minimize else 1.0
    study.attach([9.0, 1.0, 2.0, 3.0], sign * 1e6, outside=True)
    trials = study.ask(3)[::-1]
    for trial in trials:
        study.tell(trial, cost(trial.x))
    study.attach(BOX.sample(1, seed=8)[0], sign * 100.0)
    lack = [100.0 - sign * cost(trial.x) for trial in trials]
    for shown in (
        plot_regret(study, cumulative=False),
        plot_regret({"lab": lack}, cumulative=False),
    ):
        near(lines(shown)["lab"].get_ydata(), lack)


def test_regret_of_a_result_and_of_traces():
    box = bx.Box([(2.0, 5.0)])
    result = bx.run(bx.strategies.RandomSearch(box), lambda x: float(x[0]), num_trials=4)
    lack = result.Y.max() - result.Y
    near(lines(plot_regret(result, cumulative=False))["RandomSearch"].get_ydata(), lack)
    domain = bx.FiniteSet(box.sample(9, seed=0))
    problem = RKHSFunction.random(domain, rbf(0.7), norm=1.5, num_centers=3)
    one, two = (
        bx.simulate(bx.strategies.RandomSearch(domain, seed=seed), problem, 6) for seed in (0, 1)
    )
    near(plot_regret(one, cumulative=False).lines[0].get_ydata(), one.regret)
    assert float(one.regret.min()) >= 0
    # A list of them is one method: the mean with the band of its seeds.
    shown = plot_regret({"EI": [one, two], "one": one})
    sums = np.cumsum([one.regret.numpy(), two.regret.numpy()], axis=1)
    near([line.get_ydata() for line in shown.lines], [sums.mean(axis=0), sums[0]])
    (band,) = bands(shown)  # of two seeds; one seed has none
    near(band[2] - band[1], np.abs(sums[0] - sums[1]))
    mixed = plot_regret(
        {"a": [result, result.strategy], "b": [list(range(4))] * 2}, cumulative=False
    )
    near(mixed.lines[0].get_ydata(), lack)
    with pytest.raises(ValueError, match=r"curves\['EI'\]"):
        plot_regret({"EI": [one, result]})
