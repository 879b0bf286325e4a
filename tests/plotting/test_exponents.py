"""Exponents that are drawn are those of the formulas, written out here."""

import math

import numpy as np

from benchmarks.easy_instances.exponents import plot_consistency, plot_instance_exponents
from botorch_ext.plotting.style import axes_or_new
from tests.plotting.reading import legend, lines, near


def least_exponent(nu, b, d, worst):
    return (1 - worst) * (1 + d / nu * (1 - nu / b)) if nu < b else math.nan


def test_what_methods_promise_and_must_pay():
    nu, b, dims = 2.5, 4.0, range(1, 11)
    plot_consistency(nu, b, ax := axes_or_new(None))
    worst = {
        "SupKernelUCB": lambda d: (nu + d) / (2 * nu + d),
        "GP-UCB": lambda d: min(1.0, (nu + 1.5 * d) / (2 * nu + d)),
        "pi-GP-UCB": lambda d: (d * (2 * d + 3) + 2 * nu) / (d * (2 * d + 4) + 4 * nu),
    }
    for name, power in worst.items():
        color = lines(ax)[name].get_color()
        promise, price = (line for line in ax.lines if line.get_color() == color)
        assert (promise.get_linestyle(), price.get_linestyle()) == ("--", "-")
        near(promise.get_xydata(), [(d, power(d)) for d in dims])
        near(price.get_ydata(), [least_exponent(nu, b, d, power(d)) for d in dims])
    assert ax.get_title() == "nu = 2.5, b = 4"
    assert legend(ax) == [*worst, "on every function at most", "on this instance at least"]
    # Without a lower bound there is no line of it.
    plot_consistency(1.5, 1.5, ax := axes_or_new(None))
    assert legend(ax) == [*worst, "on every function at most"]
    assert {line.get_linestyle() for line in ax.lines} == {"--"}


def test_an_instance_lies_between_its_exponents():
    nus, b, d = np.linspace(0.1, 4.0, 157), 2.0, 3
    plot_instance_exponents(b, d, ax := axes_or_new(None))
    worst = [(nu + d) / (2 * nu + d) for nu in nus]
    upper = []
    for nu, most in zip(nus, worst, strict=True):
        xi = min(nu, 1.0)
        crowd = d * (1 - xi / b)
        upper.append(min(most, (crowd + xi) / (crowd + 2 * xi)))
    expected = {
        "minimax rate": worst,
        "breadthwise exploration, at most": upper,
        "of minimax order, at least (b > nu)": [
            least_exponent(nu, b, d, most) for nu, most in zip(nus, worst, strict=True)
        ],
    }
    for label, values in expected.items():
        near(lines(ax)[label].get_xydata(), np.column_stack([nus, values]))
    assert ax.get_title() == "b = 2, d = 3"
