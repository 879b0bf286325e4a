"""The pictures of exponents hold those of the formulas, written out here, and of the runs."""

import math

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from botorch_ext.plotting import (
    plot_consistency,
    plot_instance_exponents,
    plot_regret_slopes,
)


def lines(ax):
    return {line.get_label(): line for line in ax.lines}


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_what_methods_promise_and_must_pay():
    nu, b = 2.5, 4.0
    ax = plot_consistency(nu, b, dims=range(1, 7))
    worst = {
        "SupKernelUCB": lambda d: (nu + d) / (2 * nu + d),
        "GP-UCB": lambda d: min(1.0, (nu + 1.5 * d) / (2 * nu + d)),
        "pi-GP-UCB": lambda d: (d * (2 * d + 3) + 2 * nu) / (d * (2 * d + 4) + 4 * nu),
    }
    for name, power in worst.items():
        promise, price = (
            line for line in ax.lines if line.get_color() == lines(ax)[name].get_color()
        )
        assert (promise.get_linestyle(), price.get_linestyle()) == ("--", "-")
        for line in (promise, price):
            assert line.get_xdata().tolist() == [1, 2, 3, 4, 5, 6]
        np.testing.assert_allclose(promise.get_ydata(), [power(d) for d in range(1, 7)])
        least = [(1 - power(d)) * (1 + d / nu * (1 - nu / b)) for d in range(1, 7)]
        np.testing.assert_allclose(price.get_ydata(), least)
    assert ax.get_title() == "nu = 2.5, b = 4"
    assert legend(ax) == [*worst, "on every function at most", "on this instance at least"]


def test_without_a_lower_bound_there_is_no_line_of_it():
    ax = plot_consistency(1.5, 1.5, methods=["breadthwise_exploration", "bpe"])
    assert legend(ax) == ["breadthwise exploration", "BPE", "on every function at most"]
    assert {line.get_linestyle() for line in ax.lines} == {"--"}


def test_an_instance_lies_between_its_exponents():
    nus, b, d = [0.25, 0.5, 1.0, 1.5, 1.9, 2.5], 2.0, 3
    ax = plot_instance_exponents(b, d, nus=nus)
    shown = lines(ax)
    worst = np.array([(nu + d) / (2 * nu + d) for nu in nus])
    np.testing.assert_allclose(shown["minimax rate"].get_ydata(), worst)
    upper = []
    for nu, most in zip(nus, worst, strict=True):
        xi = min(nu, 1.0)
        crowd = d * (1 - xi / b)
        upper.append(min(most, (crowd + xi) / (crowd + 2 * xi)))
    np.testing.assert_allclose(shown["breadthwise exploration, at most"].get_ydata(), upper)
    least = [nu / (2 * nu + d) * (1 + d / nu * (1 - nu / b)) if nu < b else math.nan for nu in nus]
    np.testing.assert_allclose(shown["of minimax order, at least (b > nu)"].get_ydata(), least)
    for line in shown.values():
        assert line.get_xdata().tolist() == nus
    assert ax.get_title() == "b = 2, d = 3"


def test_slopes_of_regret_stand_in_the_legend_with_lines_through_the_runs():
    t = np.array([64, 128, 256, 512])
    generator = np.random.default_rng(0)
    scales = np.exp(0.1 * generator.standard_normal((5, 1)))
    quick = scales * 3.0 * t**0.6 * np.exp(0.02 * generator.standard_normal((5, 4)))
    slow = torch.tensor(2.0 * t**0.9)
    ax = plot_regret_slopes(
        {"quick": (t, quick), "slow": (t, slow)}, exponents={"upper": 0.7, "lower": 0.5}
    )
    slopes = [np.polyfit(np.log(t), np.log(run), 1)[0] for run in quick]
    center, error = np.mean(slopes), np.std(slopes, ddof=1) / np.sqrt(5)
    reach = 2.776445 * error  # Student's, 4 degrees of freedom
    words = f"quick: {center:.2f} [{center - reach:.2f}, {center + reach:.2f}]"
    assert legend(ax) == [words, "slow", "upper: 0.70", "lower: 0.50"]
    points = {bars.get_label(): bars.lines[0] for bars in ax.containers}
    np.testing.assert_allclose(points[words].get_ydata(), quick.mean(axis=0))
    np.testing.assert_allclose(points["slow"].get_xydata(), np.column_stack([t, 2.0 * t**0.9]))
    (fitted,) = (line for line in ax.lines if line.get_linestyle() == "-")
    assert fitted.get_color() == points[words].get_color()
    expected = np.polyfit(np.log(t), np.log(quick).mean(axis=0), 1)
    np.testing.assert_allclose(fitted.get_ydata(), np.exp(np.polyval(expected, np.log(t))))
    for label, power in (("upper: 0.70", 0.7), ("lower: 0.50", 0.5)):
        drawn = lines(ax)[label].get_ydata()
        np.testing.assert_allclose(drawn, quick[:, 0].mean() * (t / 64) ** power)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")


def test_the_slope_is_fitted_from_where_one_wants():
    t = np.array([10.0, 100.0, 1000.0, 10000.0])
    kinked = np.array([[1.0], [2.0]]) * np.where(t < 200, t, 100 * (t / 100) ** 0.5)
    ax = plot_regret_slopes({"late": (t, kinked)}, fit_from=100)
    assert legend(ax) == ["late: 0.50 [0.50, 0.50]"]
    (fitted,) = (line for line in ax.lines if line.get_linestyle() == "-")
    assert fitted.get_xdata().tolist() == [100.0, 1000.0, 10000.0]


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="method must be one of"):
        plot_consistency(1.5, 2.0, methods=["simplex"])
    with pytest.raises(ValueError, match="growth must be positive and finite, got 0"):
        plot_instance_exponents(0.0, 1)
    with pytest.raises(ValueError, match="curves must hold at least one method"):
        plot_regret_slopes({})
    for t, regret in (([1, 2], [1.0]), ([[1, 2]], [1.0, 2.0]), ([1, 2], [[[1.0, 2.0]]])):
        with pytest.raises(ValueError, match=r"curves\['a'\] must have t of shape"):
            plot_regret_slopes({"a": (t, regret)})
    with pytest.raises(ValueError, match=r"curves\['a'\] must be positive"):
        plot_regret_slopes({"a": ([1, 2], [0.0, 2.0])})
    assert not plt.get_fignums()
