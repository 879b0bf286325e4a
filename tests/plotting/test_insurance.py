"""The picture of an insurance shows what the trials say."""

import pytest

from botorch_ext import algorithms, problems
from botorch_ext.plotting import plot_insurance


def studied(steps=30):
    problem = problems.lock_out()
    strategy = algorithms.insured_ucb(
        problem.domain,
        problem.kernel,
        noise_variance=problem.noise_variance,
        noise_std=problem.noise_std,
        rkhs_bound=problem.rkhs_bound,
    )
    f = problem(problem.domain.points)
    for _ in range(steps):
        trial = strategy.ask()
        strategy.tell(trial.id, float(f[trial.info["index"]]))
    return strategy


def test_it_shows_budget_charges_probes_and_the_level_that_went():
    strategy = studied()
    ax = plot_insurance(strategy)
    lines = {line.get_label(): line for line in ax.get_lines()}
    trials = strategy.history.trials
    probes = [trial for trial in trials if trial.info["kind"] == "probe"]
    assert len(probes) == 1
    assert lines["charged"].get_ydata()[-1] == pytest.approx(probes[0].info["cost"])
    assert lines["probe"].get_xdata().tolist() == [probes[0].id + 1]
    assert lines["budget"].get_ydata()[0] == pytest.approx(0.1)  # beta B sqrt(1)
    assert [text.get_text() for text in ax.texts] == ["eps = 0.25"]


def test_others_are_refused():
    problem = problems.lock_out()
    plain = algorithms.gp_ucb(problem.domain, problem.kernel, noise_variance=1e-3, width=1.0)
    with pytest.raises(ValueError, match="insured"):
        plot_insurance(plain)
    with pytest.raises(ValueError, match="initial points"):
        plot_insurance(studied(steps=0))
