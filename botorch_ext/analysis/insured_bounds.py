"""Upper bounds from theory on the cumulative regret of the insured methods.

They hold under the conditions of `botorch_ext.analysis.regret_bounds`, on finite sets. The page
"Proofs for the insured methods" has the proofs.
"""

from __future__ import annotations

import math

import numpy as np
from torch import Tensor

from botorch_ext.analysis.regret_bounds import AtEnd, ec_gp_ucb_bound
from botorch_ext.checks import amount, one_number, short, whole_number
from botorch_ext.delays.rounds import SquareRoot
from botorch_ext.strategies.adaptive.ledger import Terms
from botorch_ext.widths import FixedDesign
from botorch_ext.widths.base import check_delta, require


def insured_ucb_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    delta: float = 0.1,
    *,
    alpha: float = 0.03,
    beta: float = 0.1,
    purse: float = 0.3,
    max_follow_ups: int = 20,
) -> float:
    """An upper bound on the regret of insured_ucb if the model is right (eps = 0), with probability
    1 - 2 delta.

    S + (1 + 20 purse) max(alpha S, beta B sqrt(T)) + 40 B, with S the `ec_gp_ucb_bound`.

    S bounds the regret of GP-UCB. The second term bounds the regret of probes, together with the
    follow-ups that the large purse does not pay. The bound assumes no pending trials and the
    published width of the index.

    Args:
        horizon: T, the number of evaluations.
        information_gain: gamma_T, the largest information gain of T points.
        rkhs_bound: B, the bound on the RKHS norm of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        noise_variance: lambda, the ridge of the model.
        delta: The failure probability of each of the two kinds of bounds.
        alpha: The budget for probes as a share of S.
        beta: The least budget for probes as a share of B sqrt(T).
        purse: The small purse as a share of the budget.
        max_follow_ups: The largest number of follow-ups of a probe, 20 in the formula.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    exploited = ec_gp_ucb_bound(
        horizon, information_gain, rkhs_bound, noise_std, noise_variance, delta
    )
    terms = Terms(alpha, beta, purse, max_follow_ups=max_follow_ups)
    budget = terms.budget(exploited, rkhs_bound, horizon)
    most = terms.max_follow_ups
    return exploited + (1 + most * terms.purse) * budget + most * 2 * rkhs_bound


def certified_bucb_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    num_points: int,
    delta: float = 0.1,
    *,
    delay: int = 0,
    share: float = 1 / 8,
    kappa: float = 1.0,
) -> float:
    """An upper bound on the regret of certified_bucb with any free rule, on N points.

    2 B (q_1 + 1 + (1 + a)(u + 1)) + sum_{r >= 2} (q_r + (2 + a)(u + 1)) min(2 B, W_{r-1}), W_r =
    4 kappa w sqrt(c gamma_T / n_r), c = 2 / ln(1 + 1/lambda).

    n_r = ceil(rho q_r), w is the width of `FixedDesign` with delta / 2, and a = rho if u >= q_1,
    otherwise 0. The last q_r is cut to the horizon. The bound assumes that all delays are at most u
    steps and do not depend on the noise, which is independent from trial to trial.

    The other arguments are those of `ec_gp_ucb_bound`.

    Args:
        num_points: N, the number of points.
        delay: u, the largest delay in steps.
        share: rho, the share of a round that is spent on certificates.
        kappa: The factor, at least 1, by which standard deviations may exceed the planned ones.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    check_delta(delta)
    delay = whole_number(delay, "delay", least=0)
    share, kappa = one_number(share, "share"), one_number(kappa, "kappa")
    require(0 < share <= 1, "share", share, "in (0, 1]")
    require(1 <= kappa < math.inf, "kappa", kappa, "at least 1 and finite")
    rounds = SquareRoot(horizon)
    lengths = rounds.lengths(horizon, delta)
    width = at_end.width(FixedDesign(rkhs_bound, noise_std, delta / 2, num_points, len(lengths)))
    worst = 2 * rkhs_bound
    planned_again = share if delay >= lengths[0] else 0.0
    total = worst * (lengths[0] + 1 + (1 + planned_again) * (delay + 1))
    for r in range(2, len(lengths) + 1):
        bought = max(math.ceil(round(share * rounds.design_length(r - 1), 9)), 1)
        certified = 4 * kappa * width * math.sqrt(at_end.variance_sum / bought)
        steps = lengths[r - 1] + (2 + planned_again) * (delay + 1)
        total += steps * min(worst, certified)
    return total


def information_gain_bound(gram: Tensor, horizon: int, noise_variance: float) -> float:
    """An upper bound on the information gain gamma_T of N points, for any T.

    min_D D/2 ln(1 + T k / (lambda D)) + T r_D / (2 lambda) >= gamma_T, where k is the largest
    k(x, x) and r_D the largest variance that is left after D pivots of a Cholesky factorisation
    without noise. The proof writes K as a matrix of rank D and trace at most T k plus a positive
    semidefinite rest whose diagonal is at most r_D, and uses that ln det(I + .) is subadditive.

    The bound grows with ln T, and its cost does not depend on T, while the greedy value takes T
    steps. Source: Vakili et al. 2021, theorem 3, on finitely many points.

    Args:
        gram: The kernel matrix of the points, ``N x N``.
        horizon: T, the number of evaluations.
        noise_variance: lambda, the ridge of the model.

    Returns:
        The bound, in nats.

    Raises:
        ValueError: If the horizon is below 1, the noise variance is not positive, or ``gram`` is
            not a symmetric matrix (a kernel, for example).
    """
    if not isinstance(gram, Tensor):
        raise ValueError(
            f"gram must be an N x N tensor, the kernel matrix of the points, got {short(gram)}"
        )
    horizon = whole_number(horizon, "horizon", least=1)
    noise_variance = amount(noise_variance, "noise_variance", "positive and finite")
    K = gram.detach().cpu().numpy().astype(float)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or not np.allclose(K, K.T):
        raise ValueError(f"gram must be a symmetric matrix, got shape {K.shape}")
    largest = K.diagonal().max()
    left = K.diagonal().copy()
    factor = np.zeros((0, len(K)))
    best = horizon * left.max() / (2 * noise_variance)
    for rank in range(1, len(K) + 1):
        pivot = int(left.argmax())
        if left[pivot] <= 1e-14:
            break
        row = (K[pivot] - factor[:, pivot] @ factor) / math.sqrt(left[pivot])
        factor = np.vstack([factor, row])
        left = np.maximum(left - row**2, 0)
        rest = horizon * left.max() / noise_variance
        spectral = rank * math.log1p(largest * horizon / (noise_variance * rank))
        best = min(best, 0.5 * (spectral + rest))
    return float(best)
