"""Fitted slopes: exact on power laws, the definition in loops, and the coverage of the interval."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from botorch_ext.analysis import fitted_slope

T = [100, 180, 330, 600, 1100, 2000]


def test_a_power_law_has_its_exponent() -> None:
    regret = [[3 * t**0.7 for t in T], [11 * t**0.5 for t in T]]
    found = fitted_slope(T, regret)
    assert math.isclose(found.slope, 0.6, rel_tol=1e-12)
    assert found.low < 0.5 and 0.7 < found.high


def test_the_fit_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(3)
    regret = np.exp(rng.normal(size=(5, len(T))))
    logs = [math.log(t) for t in T]
    slopes = []
    for run in regret:
        a = sum(logs) / len(logs)
        b = sum(math.log(value) for value in run) / len(run)
        top = sum((x - a) * (math.log(y) - b) for x, y in zip(logs, run, strict=True))
        slopes.append(top / sum((x - a) ** 2 for x in logs))
    interval = stats.t.interval(0.8, 4, loc=np.mean(slopes), scale=stats.sem(slopes))
    for given in (regret, torch.as_tensor(regret), regret.tolist()):
        found = fitted_slope(torch.tensor(T), given, confidence=0.8)
        assert np.allclose([found.slope, found.low, found.high], [np.mean(slopes), *interval])


def test_the_interval_covers_the_slope_as_often_as_it_says() -> None:
    # Regret of each run: a power law of random exponent and height, times random noise along it.
    rng = np.random.default_rng(0)
    logs, trials, hits = np.log(T), 1500, 0
    for _ in range(trials):
        exponents, heights = 0.6 + 0.05 * rng.normal(size=(4, 1)), rng.normal(size=(4, 1))
        noise = 0.1 * rng.normal(size=(4, len(T))).cumsum(axis=1)
        found = fitted_slope(T, np.exp(heights + exponents * logs + noise), confidence=0.9)
        hits += found.low <= 0.6 <= found.high
    # Each tail of the binomial: 5e-5.
    low, high = stats.binom.ppf([5e-5, 1 - 5e-5], trials, 0.9)
    assert low <= hits <= high


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([10, 20], [[1.0, 2.0]]), r"regret must have 2 runs at least.*got shape \(1, 2\)"),
        (([10, 20], [1.0, 2.0]), r"regret must have shape \(runs, 2\), got \(2,\)"),
        (([10, 20], [[1.0, 2.0, 3.0]] * 2), r"regret must have shape \(runs, 2\), got \(2, 3\)"),
        (([10, 20], [[1.0, 0.0]] * 2), "regret must be positive and finite, got 0.0"),
        (([10, 20], [[1.0, math.nan]] * 2), "regret must be positive and finite, got nan"),
        (([10, 20], [[1.0], [1.0, 2.0]]), "regret must be a tensor or nested numbers"),
        (([0, 20], [[1.0, 2.0]] * 2), "t must be positive and finite, got 0"),
        (([10, 10], [[1.0, 2.0]] * 2), "t must hold two different numbers at least"),
        (([10], [[1.0], [2.0]]), "t must hold two different numbers at least"),
        (([[10, 20]], [[1.0, 2.0]] * 2), r"t must have one dimension, got shape \(1, 2\)"),
    ],
)
def test_bad_input(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fitted_slope(*arguments)


@pytest.mark.parametrize("confidence", [0.0, 1.0, math.nan])
def test_bad_confidence(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence must lie strictly between 0 and 1"):
        fitted_slope([10, 20], [[1.0, 2.0]] * 2, confidence=confidence)
