"""Slopes are those that numpy fits; certificates and insurance are what the strategy recorded."""

import math

import numpy as np
import pytest
import torch

from botorch_ext import algorithms, delays, domains, plotting, problems, simulate
from botorch_ext.strategies import Terms
from tests.helpers import drawn, rbf
from tests.plotting.reading import legend, lines, near


def test_slopes_of_regret_stand_in_the_legend_with_lines_through_the_runs():
    t = np.array([64, 128, 256, 512])
    generator = np.random.default_rng(0)
    scales = np.exp(0.1 * generator.standard_normal((5, 1)))
    quick = scales * 3.0 * t**0.6 * np.exp(0.02 * generator.standard_normal((5, 4)))
    curves = {"quick": (t, quick), "slow": (t, torch.tensor(2.0 * t**0.9))}
    ax = plotting.plot_regret_slopes(curves, exponents={"upper": 0.7, "lower": 0.5})
    slopes = [np.polyfit(np.log(t), np.log(run), 1)[0] for run in quick]
    center, error = np.mean(slopes), np.std(slopes, ddof=1) / np.sqrt(5)
    reach = 2.776445 * error  # Student's, 4 degrees of freedom
    quick_label = f"quick: {center:.2f} [{center - reach:.2f}, {center + reach:.2f}]"
    assert legend(ax) == [quick_label, "slow", "upper: 0.70", "lower: 0.50"]
    points = {bars.get_label(): bars.lines[0] for bars in ax.containers}
    near(points[quick_label].get_ydata(), quick.mean(axis=0))
    near(points["slow"].get_xydata(), np.column_stack([t, 2.0 * t**0.9]))
    (fitted,) = (line for line in ax.lines if line.get_linestyle() == "-")
    assert fitted.get_color() == points[quick_label].get_color()
    expected = np.polyfit(np.log(t), np.log(quick).mean(axis=0), 1)
    near(fitted.get_ydata(), np.exp(np.polyval(expected, np.log(t))))
    for label, power in (("upper: 0.70", 0.7), ("lower: 0.50", 0.5)):
        near(lines(ax)[label].get_ydata(), quick[:, 0].mean() * (t / 64) ** power)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_the_slope_is_fitted_from_where_one_wants():
    t = np.array([10.0, 100.0, 1000.0, 10000.0])
    kinked = np.array([[1.0], [2.0]]) * np.where(t < 200, t, 100 * (t / 100) ** 0.5)
    ax = plotting.plot_regret_slopes({"late": (t, kinked)}, fit_from=100)
    assert legend(ax) == ["late: 0.50 [0.50, 0.50]"]
    (fitted,) = (line for line in ax.lines if line.get_linestyle() == "-")
    assert fitted.get_xdata().tolist() == [100.0, 1000.0, 10000.0]


def test_the_line_is_the_certificate_and_the_shades_are_the_phases():
    candidates = domains.FiniteSet(drawn(54, 2, low=2.0, high=5.0))
    problem = problems.RKHSFunction.random(candidates, rbf(0.9, 0.5), 1.5, noise_std=0.1)
    numbers = {"noise_variance": 0.02, "width": 1.0, "horizon": 80}
    options = {"buy": "always", "share": 0.25, "num_initial": 4}
    strategy = algorithms.certified_bucb(candidates, rbf(0.9, 0.5), **numbers, **options)
    trace = simulate(strategy, problem, 70, delay=delays.Poisson(3.0), seed=1)
    with pytest.raises(ValueError, match="regret"):
        plotting.plot_certificate(trace.strategy, regret=[0.1, 0.2, 0.3])
    assert len(plotting.plot_certificate(trace.strategy).collections) == 0
    infos, regret = [trial.info for trial in trace.strategy.history.trials], trace.regret.numpy()
    ax = plotting.plot_certificate(trace.strategy, regret=regret)
    known = [info.get("certificate") for info in infos]
    near(lines(ax)["certified regret"].get_ydata(), known)
    assert None in known and known[-1] is not None
    paid = np.flatnonzero(regret > 0)
    near(ax.collections[0].get_offsets(), np.column_stack([paid + 1, regret[paid]]))
    # The first patch of each colour has its label.
    names = {patch.get_facecolor()[:3]: patch.get_label() for patch in reversed(ax.patches)}
    shaded = {"block": 0.0, "wait": 0.0}
    for patch in ax.patches:
        shaded[names[patch.get_facecolor()[:3]]] += patch.get_width()
    phases = [info.get("phase") for info in infos]
    assert shaded == {name: pytest.approx(phases.count(name)) for name in shaded}
    assert min(shaded.values()) > 0
    borders = [line.get_xdata()[0] for line in ax.lines if line.get_linestyle() == ":"]
    rounds = [info.get("round") for info in infos]
    assert borders == [i + 0.5 for i in range(1, 70) if rounds[i] != rounds[i - 1]]


def test_insurance_shows_budget_charges_probes_and_the_level_that_went():
    problem = problems.lock_out()
    strategy = algorithms.insured_ucb(
        problem.domain,
        problem.kernel,
        rkhs_bound=problem.rkhs_bound,
        noise_variance=problem.noise_variance,
        noise_std=problem.noise_std,
        terms=Terms(alpha=0.1, beta=0.01),
    )
    f = problem(problem.domain.points)
    for _ in range(30):
        trial = strategy.ask()
        strategy.tell(trial.id, float(f[trial.info["index"]]))
    ax = plotting.plot_insurance(strategy)
    (probe,) = (trial for trial in strategy.history.trials if trial.info["kind"] == "probe")
    assert lines(ax)["charged"].get_ydata()[-1] == pytest.approx(probe.info["cost"])
    assert lines(ax)["probe"].get_xdata().tolist() == [probe.id + 1]
    lost, budget = 0.0, []
    for step, trial in enumerate(strategy.history.trials, 1):
        budget.append(max(0.1 * lost, 0.01 * problem.rkhs_bound * math.sqrt(step)))
        lost += trial.info["cost"] if trial.info["kind"] == "exploit" else 0.0
    assert lines(ax)["budget"].get_ydata().tolist() == pytest.approx(budget)
    assert [text.get_text() for text in ax.texts] == ["eps = 0.25"]
