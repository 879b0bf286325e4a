"""Pictures of predictions: what is drawn is what the study predicts."""

import numpy as np
import pytest
import torch
from matplotlib.collections import FillBetweenPolyCollection

import botorch_ext as bx
from botorch_ext.plotting import plot_importance, plot_regret, plot_slices
from botorch_ext.predictions import Importance
from botorch_ext.problems import RKHSFunction
from tests.helpers import rbf

BOX = bx.Box(
    [(2.0, 5.0), (1e-3, 1e1), (1, 4), (0, 7)],
    integer=[2],
    log=[1],
    categories={3: [0, 3, 7]},
    constraints=([[1.0, 0.0, 0.5, 0.0]], [5.0]),
)


def _cost(x):
    return float((x[0] - 3) ** 2 + x[1].log() + 0.1 * x[2] + 0.2 * (x[3] == 3))


@pytest.fixture(params=[False, True], ids=["maximise", "minimise"])
def study(request, tmp_path):
    strategy = bx.algorithms.gp_bucb(BOX, rbf(2.0), noise_variance=0.04, width=2.0)
    strategy.expect(bx.exceptions.PriorScaleWarning)
    study = bx.Study(tmp_path / "lab.db", strategy, name="lab", minimize=request.param)
    for x in BOX.sample(7, seed=2):
        study.attach(x, _cost(x))
    return study


def test_slices_are_predictions_along_each_column(study):
    axes = plot_slices(study)
    base = study.recommended().x
    assert [ax.get_xlabel() for ax in axes] == ["x0", "x1", "x2", "x3"]
    assert [ax.get_xscale() for ax in axes] == ["linear", "log", "linear", "linear"]
    for dim in (0, 1):
        (line,) = [one for one in axes[dim].lines if one.get_label() == "posterior mean"]
        points = base.repeat(len(line.get_xdata()), 1)
        points[:, dim] = torch.as_tensor(line.get_xdata())
        found = study.predict(points)
        assert np.allclose(line.get_ydata(), found.mean)
        (band,) = [c for c in axes[dim].collections if isinstance(c, FillBetweenPolyCollection)]
        reach = band.get_datalim(axes[dim].transData)
        assert np.isclose(reach.ymin, float(found.quantiles.min()))
        assert np.isclose(reach.ymax, float(found.quantiles.max()))
    (line,) = [one for one in axes[0].lines if one.get_label() == "posterior mean"]
    assert line.get_xdata().max() <= 5 - 0.5 * float(base[2]) + 1e-9  # the constraint
    for dim, values in ((2, BOX), (3, None)):
        (drawn,) = axes[dim].containers
        allowed = [1.0, 2.0, 3.0, 4.0] if values else [0.0, 3.0, 7.0]
        allowed = [v for v in allowed if dim == 3 or float(base[0]) + 0.5 * v <= 5 + 1e-9]
        assert drawn[0].get_xdata().tolist() == allowed
    told = [one for one in axes[0].lines if "evaluations" in one.get_label()]
    near = [
        event.value
        for event in study.events
        if (BOX.to_distances(event.trial.x) - BOX.to_distances(base))[1:].square().mean() <= 1 / 16
    ]
    assert near
    assert told[0].get_ydata().tolist() == pytest.approx(near)


def test_slices_through_another_point_and_what_is_refused(study):
    base = BOX.sample(1, seed=5)[0]
    (ax,) = plot_slices(study, [0], slice_at=base)
    (line,) = [one for one in ax.lines if one.get_label() == "posterior mean"]
    points = base.repeat(len(line.get_xdata()), 1)
    points[:, 0] = torch.as_tensor(line.get_xdata())
    assert np.allclose(line.get_ydata(), study.predict(points).mean)
    with pytest.raises(ValueError, match="dims must be columns from 0 to 3"):
        plot_slices(study, [4])
    with pytest.raises(ValueError, match="slice_at must"):
        plot_slices(study, slice_at=[0.0, 1.0, 1.0, 0.0])


def test_slices_of_a_space_have_its_units_and_the_values_of_its_choices():
    space = bx.Space(dose=bx.Real(0, 20, unit="mg"), solvent=bx.Choice(["water", None, 2.5]))
    X = space.sample(6, seed=0)
    strategy = bx.algorithms.gp_bucb(
        space, rbf(8.0, 1.0), noise_variance=0.04, width=2.0, initial=(X, X[:, 0])
    )
    dose, solvent = plot_slices(strategy)
    assert (dose.get_xlabel(), solvent.get_xlabel()) == ("dose (mg)", "solvent")
    labels = [label.get_text() for label in solvent.get_xticklabels()]
    values = [
        space.params_of(torch.tensor([0.0, code]))["solvent"] for code in solvent.get_xticks()
    ]
    assert labels == [str(value) for value in values] == ["water", "None", "2.5"]


def test_importance_is_drawn_with_the_most_important_on_top(study):
    found = study.importance(num_samples=64)
    for drawn in (found, Importance(found.names, found.first_order, found.total, found.std)):
        ax = plot_importance(drawn)
        labels = [label.get_text() for label in ax.get_yticklabels()]
        order = found.total.argsort().tolist()
        assert labels == [f"x{j}" for j in order]
        widths = [bar.get_width() for bar in ax.containers[0]]
        assert widths == pytest.approx(sorted(found.total.tolist()))
    assert plot_importance(study).get_xlabel().startswith("share of the variance")


@pytest.mark.parametrize("minimize", [False, True])
def test_regret_of_a_study_is_what_its_own_trials_lack_of_the_best_value_inside(minimize, tmp_path):
    strategy = bx.strategies.RandomSearch(BOX, seed=2)
    study = bx.Study(tmp_path / "lab.db", strategy, name="lab", minimize=minimize)
    with pytest.raises(ValueError, match=r"curves\['lab'\] must have a trial that was asked"):
        plot_regret(study)
    sign = -1.0 if minimize else 1.0
    study.attach([9.0, 1.0, 2.0, 3.0], sign * 1e6, outside=True)
    trials = study.ask(3)
    for trial in trials[::-1]:
        study.tell(trial, _cost(trial.x))
    values = np.array([_cost(trial.x) for trial in trials[::-1]])
    study.attach(BOX.sample(1, seed=8)[0], sign * 100.0)
    (line,) = plot_regret(study, cumulative=False).lines
    lack = 100.0 - sign * values
    assert line.get_label() == "lab"
    assert line.get_ydata().tolist() == pytest.approx(lack.tolist())
    named = plot_regret({"a": study, "b": lack}, cumulative=False).lines
    assert np.allclose(named[0].get_ydata(), named[1].get_ydata())


def test_regret_of_a_trace_and_of_a_result():
    box = bx.Box([(2.0, 5.0)])
    result = bx.run(bx.strategies.RandomSearch(box), lambda x: float(x[0]), num_trials=4)
    (line,) = plot_regret(result, cumulative=False).lines
    line_of_result = line.get_ydata()
    assert np.allclose(line_of_result, result.Y.max() - result.Y)
    assert line.get_label() == "RandomSearch"
    domain = bx.FiniteSet(box.sample(9, seed=0))
    problem = RKHSFunction.random(domain, rbf(0.7), norm=1.5, num_centers=3)
    trace = bx.simulate(bx.strategies.RandomSearch(domain), problem, 6)
    (line,) = plot_regret(trace, cumulative=False).lines
    assert np.allclose(line.get_ydata(), trace.regret)
    assert float(trace.regret.min()) >= 0
    # A list of them is one method: the mean with the band of its seeds.
    again = bx.simulate(bx.strategies.RandomSearch(domain, seed=1), problem, 6)
    ax = plot_regret({"EI": [trace, again], "one": trace})
    sums = np.cumsum([trace.regret.numpy(), again.regret.numpy()], axis=1)
    assert np.allclose(ax.lines[0].get_ydata(), sums.mean(axis=0))
    assert np.allclose(ax.lines[1].get_ydata(), sums[0])
    (band,) = ax.collections  # of two seeds; one seed has none
    error = np.abs(sums[0] - sums[1])[-1] / 2
    assert np.isclose(band.get_datalim(ax.transData).ymax, sums.mean(axis=0)[-1] + error)
    mixed = plot_regret(
        {"a": [result, result.strategy], "b": [list(range(4))] * 2}, cumulative=False
    )
    assert np.allclose(mixed.lines[0].get_ydata(), line_of_result)
    with pytest.raises(ValueError, match=r"curves\['EI'\] must have equally many evaluations"):
        plot_regret({"EI": [trace, result]})
