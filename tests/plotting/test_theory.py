"""Exponents are those of the formulas, written out here; certificates and insurance are what the
strategy recorded."""

import math

import numpy as np
import pytest
import torch
from matplotlib import pyplot as plt

from botorch_ext import algorithms, delays, domains, problems, simulate
from botorch_ext.plotting import (
    plot_certificate,
    plot_consistency,
    plot_instance_exponents,
    plot_insurance,
    plot_regret_slopes,
)
from tests.helpers import drawn, rbf
from tests.plotting.reading import legend, lines, near

# --- exponents ------------------------------------------------------------------------------------


def test_what_methods_promise_and_must_pay():
    nu, b = 2.5, 4.0
    ax = plot_consistency(nu, b, dims=range(1, 7))
    worst = {
        "SupKernelUCB": lambda d: (nu + d) / (2 * nu + d),
        "GP-UCB": lambda d: min(1.0, (nu + 1.5 * d) / (2 * nu + d)),
        "pi-GP-UCB": lambda d: (d * (2 * d + 3) + 2 * nu) / (d * (2 * d + 4) + 4 * nu),
    }
    for name, power in worst.items():
        color = lines(ax)[name].get_color()
        promise, price = (line for line in ax.lines if line.get_color() == color)
        assert (promise.get_linestyle(), price.get_linestyle()) == ("--", "-")
        near(promise.get_xydata(), [(d, power(d)) for d in range(1, 7)])
        least = [(1 - power(d)) * (1 + d / nu * (1 - nu / b)) for d in range(1, 7)]
        near(price.get_ydata(), least)
    assert ax.get_title() == "nu = 2.5, b = 4"
    assert legend(ax) == [*worst, "on every function at most", "on this instance at least"]
    # Without a lower bound there is no line of it.
    ax = plot_consistency(1.5, 1.5, methods=["breadthwise_exploration", "bpe"])
    assert legend(ax) == ["breadthwise exploration", "BPE", "on every function at most"]
    assert {line.get_linestyle() for line in ax.lines} == {"--"}


def test_an_instance_lies_between_its_exponents():
    nus, b, d = [0.25, 0.5, 1.0, 1.5, 1.9, 2.5], 2.0, 3
    ax = plot_instance_exponents(b, d, nus=nus)
    shown = lines(ax)
    worst = np.array([(nu + d) / (2 * nu + d) for nu in nus])
    near(shown["minimax rate"].get_ydata(), worst)
    upper = []
    for nu, most in zip(nus, worst, strict=True):
        xi = min(nu, 1.0)
        crowd = d * (1 - xi / b)
        upper.append(min(most, (crowd + xi) / (crowd + 2 * xi)))
    near(shown["breadthwise exploration, at most"].get_ydata(), upper)
    least = [nu / (2 * nu + d) * (1 + d / nu * (1 - nu / b)) if nu < b else math.nan for nu in nus]
    near(shown["of minimax order, at least (b > nu)"].get_ydata(), least)
    assert all(line.get_xdata().tolist() == nus for line in shown.values())
    assert ax.get_title() == "b = 2, d = 3"


def test_slopes_of_regret_stand_in_the_legend_with_lines_through_the_runs():
    t = np.array([64, 128, 256, 512])
    generator = np.random.default_rng(0)
    scales = np.exp(0.1 * generator.standard_normal((5, 1)))
    quick = scales * 3.0 * t**0.6 * np.exp(0.02 * generator.standard_normal((5, 4)))
    curves = {"quick": (t, quick), "slow": (t, torch.tensor(2.0 * t**0.9))}
    ax = plot_regret_slopes(curves, exponents={"upper": 0.7, "lower": 0.5})
    slopes = [np.polyfit(np.log(t), np.log(run), 1)[0] for run in quick]
    center, error = np.mean(slopes), np.std(slopes, ddof=1) / np.sqrt(5)
    reach = 2.776445 * error  # Student's, 4 degrees of freedom
    words = f"quick: {center:.2f} [{center - reach:.2f}, {center + reach:.2f}]"
    assert legend(ax) == [words, "slow", "upper: 0.70", "lower: 0.50"]
    points = {bars.get_label(): bars.lines[0] for bars in ax.containers}
    near(points[words].get_ydata(), quick.mean(axis=0))
    near(points["slow"].get_xydata(), np.column_stack([t, 2.0 * t**0.9]))
    (fitted,) = (line for line in ax.lines if line.get_linestyle() == "-")
    assert fitted.get_color() == points[words].get_color()
    expected = np.polyfit(np.log(t), np.log(quick).mean(axis=0), 1)
    near(fitted.get_ydata(), np.exp(np.polyval(expected, np.log(t))))
    for label, power in (("upper: 0.70", 0.7), ("lower: 0.50", 0.5)):
        near(lines(ax)[label].get_ydata(), quick[:, 0].mean() * (t / 64) ** power)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_the_slope_is_fitted_from_where_one_wants():
    t = np.array([10.0, 100.0, 1000.0, 10000.0])
    kinked = np.array([[1.0], [2.0]]) * np.where(t < 200, t, 100 * (t / 100) ** 0.5)
    ax = plot_regret_slopes({"late": (t, kinked)}, fit_from=100)
    assert legend(ax) == ["late: 0.50 [0.50, 0.50]"]
    (fitted,) = (line for line in ax.lines if line.get_linestyle() == "-")
    assert fitted.get_xdata().tolist() == [100.0, 1000.0, 10000.0]


def test_what_has_no_exponent_is_refused():
    for name, call in {
        "method": lambda: plot_consistency(1.5, 2.0, methods=["simplex"]),
        "growth": lambda: plot_instance_exponents(0.0, 1),
        "curves": lambda: plot_regret_slopes({}),
        r"curves\['a'\] must have t": lambda: plot_regret_slopes({"a": ([1, 2], [1.0])}),
        r"curves\['b'\] must have t": lambda: plot_regret_slopes({"b": ([[1, 2]], [1.0, 2.0])}),
        r"curves\['a'\] must be positive": lambda: plot_regret_slopes({"a": ([1, 2], [0.0, 2.0])}),
    }.items():
        with pytest.raises(ValueError, match=f"^{name}"):
            call()
    assert not plt.get_fignums()


# --- certificates and insurance -------------------------------------------------------------------

CANDIDATES = domains.FiniteSet(drawn(54, 2, low=2.0, high=5.0))


def certified(**options):
    numbers = {"noise_variance": 0.02, "width": 1.0, "horizon": 80}
    return algorithms.certified_bucb(CANDIDATES, rbf(0.9, 0.5), **numbers, **options)


def test_the_line_is_the_certificate_and_the_shades_are_the_phases():
    with pytest.raises(ValueError, match="strategy must have asked something"):
        plot_certificate(certified())
    problem = problems.RKHSFunction.random(CANDIDATES, rbf(0.9, 0.5), 1.5, noise_std=0.1)
    strategy = certified(buy="always", share=0.25, num_initial=4)
    trace = simulate(strategy, problem, 70, delay=delays.Poisson(3.0), seed=1)
    with pytest.raises(ValueError, match="regret must have 70 entries"):
        plot_certificate(trace.strategy, regret=[0.1, 0.2, 0.3])
    assert len(plot_certificate(trace.strategy).collections) == 0
    infos = [trial.info for trial in trace.strategy.history.trials]
    ax = plot_certificate(trace.strategy, regret=trace.regret)
    shown = np.asarray(lines(ax)["certified regret"].get_ydata(), dtype=float)
    known = [info.get("certificate") for info in infos]
    assert [None if np.isnan(value) else value for value in shown] == known
    assert None in known and known[-1] is not None
    points, regret = ax.collections[0].get_offsets(), trace.regret.numpy()
    near(points[:, 0], np.flatnonzero(regret > 0) + 1)
    near(points[:, 1], regret[regret > 0])
    shaded = {"block": 0.0, "wait": 0.0}
    colors = {patch.get_facecolor()[:3]: patch.get_label() for patch in ax.patches[::-1]}
    names = {color: name for color, name in colors.items() if not name.startswith("_")}
    for patch in ax.patches:
        shaded[names[patch.get_facecolor()[:3]]] += patch.get_width()
    phases = [info.get("phase") for info in infos]
    assert shaded == {name: pytest.approx(phases.count(name)) for name in shaded}
    assert min(shaded.values()) > 0
    borders = [line.get_xdata()[0] for line in ax.get_lines() if line.get_linestyle() == ":"]
    rounds = [info.get("round") for info in infos]
    assert borders == [i + 0.5 for i in range(1, 70) if rounds[i] != rounds[i - 1]]


def test_insurance_shows_budget_charges_probes_and_the_level_that_went():
    problem = problems.lock_out()
    model = problem.domain, problem.kernel
    numbers = {"noise_variance": problem.noise_variance, "noise_std": problem.noise_std}
    strategy = algorithms.insured_ucb(*model, rkhs_bound=problem.rkhs_bound, **numbers)
    with pytest.raises(ValueError, match="strategy must have asked more than initial"):
        plot_insurance(strategy)
    with pytest.raises(ValueError, match="strategy must be insured"):
        plot_insurance(algorithms.gp_ucb(*model, noise_variance=1e-3, width=1.0))
    f = problem(problem.domain.points)
    for _ in range(30):
        trial = strategy.ask()
        strategy.tell(trial.id, float(f[trial.info["index"]]))
    ax = plot_insurance(strategy)
    shown, trials = lines(ax), strategy.history.trials
    (probe,) = (trial for trial in trials if trial.info["kind"] == "probe")
    assert shown["charged"].get_ydata()[-1] == pytest.approx(probe.info["cost"])
    assert shown["probe"].get_xdata().tolist() == [probe.id + 1]
    assert shown["budget"].get_ydata()[0] == pytest.approx(0.1)  # beta B sqrt(1)
    assert [text.get_text() for text in ax.texts] == ["eps = 0.25"]
