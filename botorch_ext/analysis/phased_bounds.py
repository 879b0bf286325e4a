"""Upper bounds from theory on the cumulative regret of phased elimination.

They hold under the conditions of `botorch_ext.analysis.regret_bounds`.
"""

from __future__ import annotations

import math
from typing import Any

from botorch_ext.analysis.regret_bounds import AtEnd
from botorch_ext.checks import whole_number
from botorch_ext.delays import as_allowance
from botorch_ext.delays.rounds import DelayAware, Doubling, SquareRoot
from botorch_ext.widths import FixedDesign, FixedDesignContinuous, SelfNormalized
from botorch_ext.widths.base import check_delta, check_misspecification


def phased_uncertainty_sampling_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    delta: float = 0.1,
    misspecification: float = 0.0,
) -> float:
    """An upper bound on the regret of Phased GP Uncertainty Sampling.

    2 B + sum_{e >= 2} m_e (4 w sqrt(c gamma_T / m_{e-1}) + 2 e eps sqrt(c gamma_T / lambda)) +
    2 eps T, c = 2 / ln(1 + 1/lambda).

    m_e is the length of episode e, the last one cut to the horizon, and w the width of
    `SelfNormalized` with delta / E for the E episodes. Source: Bogunovic and Krause 2021, theorem
    2, from eq. 69 and 79. The paper's eq. 71 bounds the first step by B for 2 B, and the union
    bound over episodes is missing there.

    The arguments are those of `ec_gp_ucb_bound`.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    check_misspecification(misspecification)
    check_delta(delta)
    lengths = Doubling().lengths(horizon, delta)
    width = at_end.width(SelfNormalized(rkhs_bound, noise_std, delta / len(lengths)))
    bias = misspecification * math.sqrt(at_end.variance_sum / noise_variance)
    total = 2 * rkhs_bound * lengths[0] + 2 * misspecification * horizon
    for e in range(2, len(lengths) + 1):
        std = math.sqrt(at_end.variance_sum / lengths[e - 2])
        total += lengths[e - 1] * (4 * width * std + 2 * e * bias)
    return total


def bpe_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    num_points: int,
    delta: float = 0.1,
    delay: Any = None,
) -> float:
    """An upper bound on the regret of BPE-Delay, and of BPE without delays, on N points.

    2 B t_1 + sum_{r >= 2} t_r 4 w sqrt(c gamma_T / q_{r-1}), c = 2 / ln(1 + 1/lambda).

    t_r is the length of round r, the last one cut to the horizon, q_r its design length, and w the
    width of `FixedDesign`. Source: Vakili et al. 2023, theorem 6.1, from eq. 25. The paper counts B
    for 2 B per step of the first round, and loses a factor 4 in the term of the delays.

    The other arguments are those of `ec_gp_ucb_bound`.

    Args:
        num_points: N, the number of points.
        delay: The allowance for delays, as `bpe_delay` takes it; None for BPE without delays.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range, or the allowance depends on delays seen.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    rounds = _delay_aware(horizon, delay)
    check_delta(delta)
    lengths = rounds.lengths(horizon, delta)
    width = FixedDesign(rkhs_bound, noise_std, delta, num_points, len(lengths))
    total, multiplier = 2 * rkhs_bound * lengths[0], at_end.width(width)
    for r in range(2, len(lengths) + 1):
        std = math.sqrt(at_end.variance_sum / rounds.design_length(r - 1))
        total += lengths[r - 1] * 4 * multiplier * std
    return total


def bpe_continuous_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    dim: int,
    delta: float = 0.1,
    delay: Any = None,
    c: float = 1.0,
) -> float:
    """An upper bound on the regret of BPE-Delay on a box with the width w of
    `FixedDesignContinuous`.

    2 B t_1 + sum_{r >= 2} t_r (8/q + 4 w (sqrt(C gamma_T / q) + 2 / sqrt(q))), q = q_{r-1} and C
    = 2 / ln(1 + 1/lambda).

    w is taken at t_{r-1} observations, the largest number that can arrive. Source: Vakili et al.
    2023, theorem 6.2, from eq. 26. The paper counts B for 2 B per step of the first round, and its
    2 sqrt(T) must read 8 w sqrt(T).

    The other arguments are those of `bpe_bound`.

    Args:
        dim: d, the number of columns.
        c: The discretisation constant of the width.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range, or the allowance depends on delays seen.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    dim = whole_number(dim, "dim", least=1)
    rounds = _delay_aware(horizon, delay)
    check_delta(delta)
    lengths = rounds.lengths(horizon, delta)
    width = FixedDesignContinuous(rkhs_bound, noise_std, delta, len(lengths), c)
    total = 2 * rkhs_bound * lengths[0]
    for r in range(2, len(lengths) + 1):
        q = rounds.design_length(r - 1)
        most = AtEnd(lengths[r - 2], information_gain, at_end.noise_variance, dim)
        multiplier = most.width(width)
        std = math.sqrt(at_end.variance_sum / q) + 2 / math.sqrt(q)
        total += lengths[r - 1] * (8 / q + 4 * multiplier * std)
    return total


def _delay_aware(horizon: int, delay: Any) -> DelayAware:
    allowance = as_allowance(delay)
    if allowance.learns:
        raise ValueError(
            f"delay must be an allowance that does not depend on delays seen, got {delay!r}"
        )
    return DelayAware(SquareRoot(horizon), allowance)
