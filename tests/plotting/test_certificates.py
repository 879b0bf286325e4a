"""The picture of certificates holds what the strategy recorded."""

import numpy as np
import pytest

from botorch_ext import algorithms, delays, domains, problems, simulate
from botorch_ext.plotting import plot_certificate
from tests.helpers import drawn, rbf

CANDIDATES = domains.FiniteSet(drawn(54, 2, low=2.0, high=5.0))


def make(**options):
    return algorithms.certified_bucb(
        CANDIDATES, rbf(0.9, 0.5), noise_variance=0.02, width=1.0, horizon=80, **options
    )


def study():
    problem = problems.RKHSFunction.random(CANDIDATES, rbf(0.9, 0.5), 1.5, noise_std=0.1)
    strategy = make(buy="always", share=0.25, num_initial=4)
    return simulate(strategy, problem, 70, delay=delays.Poisson(3.0), seed=1)


def test_the_line_is_the_certificate_and_the_shades_are_the_phases():
    trace = study()
    assert len(plot_certificate(trace.strategy).collections) == 0
    infos = [trial.info for trial in trace.strategy.history.trials]
    ax = plot_certificate(trace.strategy, regret=trace.regret)
    lines = {line.get_label(): line for line in ax.get_lines()}
    shown = np.asarray(lines["certified regret"].get_ydata(), dtype=float)
    known = [info.get("certificate") for info in infos]
    assert [None if np.isnan(value) else value for value in shown] == known
    assert None in known
    assert known[-1] is not None
    points = ax.collections[0].get_offsets()
    regret = trace.regret.numpy()
    assert np.array_equal(points[:, 0], np.flatnonzero(regret > 0) + 1)
    assert np.array_equal(points[:, 1], regret[regret > 0])
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


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="strategy must have asked something, got no trial"):
        plot_certificate(make())
    with pytest.raises(ValueError, match=r"regret must have 70 entries, got \(3,\)"):
        plot_certificate(study().strategy, regret=[0.1, 0.2, 0.3])
