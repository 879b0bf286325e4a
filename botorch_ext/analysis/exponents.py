"""Exponents of the growth of regret with the horizon, in the worst case and on easy instances.

They hold for Matern kernels of smoothness nu, and for functions that fall off around their
maximiser like a power b of the distance, the growth: f(x*) - f(x) ~ |x - x*|^b. Source: Shekhar and
Javidi 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from botorch_ext.checks import one_number, whole_number
from botorch_ext.widths.base import require


def minimax_exponent(nu: float, dim: int) -> float:
    """The least exponent of T that bounds some method's regret on every function of the RKHS: (nu +
    d) / (2 nu + d).

    Example:
        >>> from botorch_ext.analysis import minimax_exponent
        >>> minimax_exponent(nu=2.5, dim=2)
        0.6428571428571429

    Source: Scarlett et al. 2017; Vakili et al. 2021. The introduction of Shekhar and Javidi prints
    (nu + d) / (nu + 2 d) once.

    Args:
        nu: The smoothness of the Matern kernel; infinite for RBF.
        dim: d, the number of columns.

    Returns:
        The exponent, between 0 and 1.

    Raises:
        ValueError: If ``nu`` is not positive or ``dim`` is less than 1.
    """
    nu, dim = _checked(nu, dim)
    return 0.5 if nu == math.inf else (nu + dim) / (2 * nu + dim)


def upper_exponent(nu: float, growth: float, dim: int) -> float:
    """The exponent of T in the regret of breadthwise exploration on an easy instance, up to
    logarithms.

    min((d + nu) / (d + 2 nu), (d' + xi) / (d' + 2 xi)), d' = d (1 - xi/b)^+, xi = min(nu, 1).
    Source: Shekhar and Javidi 2022, proposition 2.

    Args:
        nu: The smoothness of the Matern kernel; infinite for RBF.
        growth: b, the power with which f falls off around its maximiser.
        dim: d, the number of columns.

    Returns:
        The exponent, between 0 and 1.

    Raises:
        ValueError: If ``nu`` or ``growth`` is not positive, or ``dim`` is less than 1.
    """
    growth = _checked_growth(growth)
    worst, xi = minimax_exponent(nu, dim), min(nu, 1.0)
    crowd = dim * max(1 - xi / growth, 0.0)
    return min(worst, (crowd + xi) / (crowd + 2 * xi))


def lower_exponent(nu: float, growth: float, dim: int, consistency: float) -> float | None:
    """The least exponent of T in the regret on an easy instance, for methods whose regret is of
    order T^a on every function of the RKHS.

    (1 - a) (1 + (d / nu) (1 - nu / b)). So the better a method is in the worst case, the larger its
    regret must be on an easy instance. Source: Shekhar and Javidi 2022, proposition 1. Corollaries
    2 to 4 are its cases for the exponents of `consistency_exponent` (2 and 3 are swapped in print).

    Args:
        nu: The smoothness of the Matern kernel; infinite for RBF.
        growth: b, the power with which f falls off around its maximiser.
        dim: d, the number of columns.
        consistency: a, in [0, 1].

    Returns:
        The exponent; None if b <= nu, which the proposition does not cover.

    Raises:
        ValueError: If ``nu`` or ``growth`` is not positive, ``dim`` is less than 1, or
            ``consistency`` is not in [0, 1].
    """
    nu, dim = _checked(nu, dim)
    growth, consistency = _checked_growth(growth), one_number(consistency, "consistency")
    if not 0 <= consistency <= 1:
        raise ValueError(f"consistency must lie in [0, 1], got {consistency:g}")
    if growth <= nu:
        return None
    return (1 - consistency) * (1 + dim / nu * (1 - nu / growth))


def consistency_exponent(method: str, nu: float, dim: int) -> float:
    """The exponent of T in the best known bound on a method's regret on every function of the RKHS,
    up to logarithms.

    Source: Shekhar and Javidi 2022, remark 1, for "sup_kernel_ucb", "gp_ucb" (also GP-TS) and
    "pi_gp_ucb", and lemma 5 for "breadthwise_exploration"; Chowdhury and Gopalan 2017 for
    "igp_ucb"; Li and Scarlett 2022 for "bpe".

    Args:
        method: The name of a method, one of these.
        nu: The smoothness of the Matern kernel; infinite for RBF.
        dim: d, the number of columns.

    Returns:
        The exponent, between 0 and 1.

    Raises:
        ValueError: If it is another method, ``nu`` is not positive, or ``dim`` is less than 1.
    """
    if method not in _CONSISTENCY:
        raise ValueError(f"method must be one of {list(_CONSISTENCY)}, got {method!r}")
    nu, dim = _checked(nu, dim)
    return 0.5 if nu == math.inf else _CONSISTENCY[method](nu, dim)


def _sqrt_gain_exponent(nu: float, dim: int) -> float:
    """The exponent of sqrt(T gamma_T), with gamma_T ~ T^(d / (2 nu + d))."""
    return minimax_exponent(nu, dim)


def _gain_exponent(nu: float, dim: int) -> float:
    """The exponent of sqrt(T) gamma_T, at most 1."""
    return min(1.0, (nu + 1.5 * dim) / (2 * nu + dim))


def _partitions_exponent(nu: float, dim: int) -> float:
    return (dim * (2 * dim + 3) + 2 * nu) / (dim * (2 * dim + 4) + 4 * nu)


_CONSISTENCY: dict[str, Callable[[float, int], float]] = {
    "sup_kernel_ucb": _sqrt_gain_exponent,
    "gp_ucb": _gain_exponent,
    "pi_gp_ucb": _partitions_exponent,
    "igp_ucb": _gain_exponent,
    "bpe": _sqrt_gain_exponent,
    "breadthwise_exploration": _sqrt_gain_exponent,
}


def _checked(nu: float, dim: int) -> tuple[float, int]:
    nu = one_number(nu, "nu")
    require(nu > 0, "nu", nu, "positive")
    return nu, whole_number(dim, "dim", 1)


def _checked_growth(growth: float) -> float:
    growth = one_number(growth, "growth")
    require(0 < growth < math.inf, "growth", growth, "positive and finite")
    return growth
