"""Upper bounds from theory on the cumulative regret of hyperparameter elimination.

They hold under the conditions of `botorch_ext.analysis.regret_bounds`, without delays, and count no
initial points.
"""

from __future__ import annotations

import math

from botorch_ext.analysis.regret_bounds import OFF_GRID, AtEnd
from botorch_ext.checks import amount, whole_number
from botorch_ext.strategies.adaptive.prediction_tests import noise_scale
from botorch_ext.widths import BayesContinuous, BayesFinite, ChowdhuryGopalan, Width
from botorch_ext.widths.base import check_delta


def he_gp_ucb_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    num_models: int,
    delta: float = 0.1,
) -> float:
    """An upper bound on the regret of HE-GP-UCB without initial points and delays.

    2 (|U| - 1) B + 2 sqrt(|U| xi_T T) + 2 w_T sqrt(2 |U| T gamma_T / ln(1 + 1/lambda)).

    w_T is the width of `ChowdhuryGopalan` with delta / 2, which is above the default
    `SelfNormalized`. Source: Ziomek et al. 2024, theorem 4.1 and eq. 10, with the xi_T that the
    tests of the method use. The true model is not rejected, so at most |U| - 1 models are.

    Args:
        horizon: T, the number of evaluations.
        information_gain: gamma_T, the largest one among all models.
        rkhs_bound: B, the bound on the norm of f in the RKHS of the true model.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f.
        noise_variance: lambda, the ridge of the model.
        num_models: |U|, the number of candidate models.
        delta: The failure probability.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    num_models = _checked(num_models, delta)
    width = ChowdhuryGopalan(rkhs_bound, noise_std, delta / 2)
    return _of_elimination(at_end, width, noise_std, num_models, delta, 2 * rkhs_bound)


def he_stable_opt_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    num_models: int,
    delta: float = 0.1,
) -> float:
    """An upper bound on the stable regret of HE-StableOpt without initial points and delays.

    (|U| - 1) (4 B + sqrt(xi_T)) + 2 sqrt(|U| xi_T T) + 4 w_T sqrt(2 |U| T gamma_T / ln(1 +
    1/lambda)), with w_T as in `he_gp_ucb_bound`.

    Source: Ziomek et al. 2024, theorem 6.1. The printed proof leaves out that a step that rejects
    the model of one bound stays in the sum of the model of the other bound. Such a step adds at
    most 2 B and its noise, which is at most sqrt(xi_T) within the same delta.

    The arguments are those of `he_gp_ucb_bound`.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    num_models = _checked(num_models, delta)
    width = ChowdhuryGopalan(rkhs_bound, noise_std, delta / 2)
    worst = 4 * rkhs_bound + math.sqrt(noise_scale(noise_std, delta, horizon, num_models, 2))
    return _of_elimination(at_end, width, noise_std, num_models, delta, worst, num_sides=2)


def he_gp_ucb_bayes_bound(
    horizon: int,
    information_gain: float,
    noise_variance: float,
    num_models: int,
    num_points: int,
    delta: float = 0.1,
    largest_mean: float = 0.0,
) -> float:
    """An upper bound on the regret of HE-GP-UCB with the setting "bayesian" on a finite set,
    without initial points and delays.

    2 (|U| - 1) F + 2 sqrt(|U| xi_T T) + 2 w_T sqrt(2 |U| T gamma_T / ln(1 + 1/lambda)) with F =
    w_1 + max |prior mean|, where w is the width of `BayesFinite` with delta / 2.

    Source: Ziomek et al. 2024, theorem 4.2 (A) with lemma 5.4, with the xi_T that the tests of the
    method use.

    Args:
        horizon: T, the number of evaluations.
        information_gain: gamma_T, the largest one among all models.
        noise_variance: lambda, the variance of the noise.
        num_models: |U|, the number of candidate models.
        num_points: N, the number of points.
        delta: The failure probability.
        largest_mean: The largest absolute prior mean of any model.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    num_models = _checked(num_models, delta)
    width = BayesFinite(num_points, delta / 2)
    worst = 2 * (at_end.width(width, t=1) + _checked_mean(largest_mean))
    return _of_elimination(at_end, width, math.sqrt(noise_variance), num_models, delta, worst)


def he_gp_ucb_bayes_continuous_bound(
    horizon: int,
    information_gain: float,
    noise_variance: float,
    num_models: int,
    dim: int,
    a: float,
    b: float,
    r: float,
    delta: float = 0.1,
    largest_mean: float = 0.0,
) -> float:
    """An upper bound on the regret of HE-GP-UCB with the setting "bayesian" on [0, r]^d, without
    initial points and delays.

    2 (|U| - 1) F + 2 sqrt(|U| xi_T T) + 2 w_T sqrt(2 |U| T gamma_T / ln(1 + 1/lambda)) + pi^2/6
    with F = w_1 + 1 + max |prior mean|, where w is the width of `BayesContinuous` with delta / 2.

    Source: Ziomek et al. 2024, theorem 4.2 (B) with lemma 5.4. The paper prints pi/6 for pi^2/6,
    and a width that covers only one of the two events that the proof needs: at the grid and at the
    chosen point.

    The other arguments are those of `he_gp_ucb_bayes_bound`.

    Args:
        dim: d, the number of columns.
        a: The tail constant of the derivatives, as in `BayesContinuous`.
        b: The tail scale of the derivatives.
        r: The side of the cube.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    num_models = _checked(num_models, delta)
    width = BayesContinuous(dim, a, b, r, delta / 2)
    worst = 2 * (at_end.width(width, t=1) + 1 + _checked_mean(largest_mean))
    total = _of_elimination(at_end, width, math.sqrt(noise_variance), num_models, delta, worst)
    return total + OFF_GRID


def _of_elimination(
    at_end: AtEnd,
    width: Width,
    noise_std: float,
    num_models: int,
    delta: float,
    worst: float,
    num_sides: int = 1,
) -> float:
    """(|U| - 1) worst + 2 sqrt(|U| xi_T T) + 2 sides w_T sqrt(|U|) sum_t s, where a step that
    rejects a model costs ``worst`` and models are chosen for ``num_sides`` bounds."""
    xi = noise_scale(noise_std, delta, at_end.num_observations, num_models, num_sides)
    tests = 2 * math.sqrt(num_models * xi * at_end.num_observations)
    stds = math.sqrt(num_models) * at_end.sum_of_stds
    return (num_models - 1) * worst + tests + 2 * num_sides * at_end.width(width) * stds


def _checked(num_models: int, delta: float) -> int:
    check_delta(delta)
    return whole_number(num_models, "num_models", least=1)


def _checked_mean(largest_mean: float) -> float:
    return amount(largest_mean, "largest_mean", "non-negative and finite")
