"""Powers of the horizon between which regret grows, in the worst case and on easy instances.

For Matern kernels of smoothness nu, and functions that fall off around their maximiser like a power
b of the distance: f(x*) - f(x) ~ |x - x*|^b, the growth. Source: Shekhar and Javidi 2022.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from botorch_ext.checks import one_number, whole_number
from botorch_ext.widths.base import require


def minimax_exponent(nu: float, dim: int) -> float:
    """(nu + d) / (2 nu + d): the least power of T that holds for every function of the RKHS.

    Source: Scarlett et al. 2017; Vakili et al. 2021. The introduction of Shekhar and Javidi prints
    (nu + d) / (nu + 2 d) once.

    Args:
        nu: The smoothness of the kernel; infinite for RBF.
        dim: d.

    Raises:
        ValueError: ``nu`` is not positive or ``dim`` is less than 1.
    """
    nu, dim = _checked(nu, dim)
    return 0.5 if nu == math.inf else (nu + dim) / (2 * nu + dim)


def upper_exponent(nu: float, growth: float, dim: int) -> float:
    """The power of T, up to logarithms, that breadthwise exploration needs on an easy instance.

    min((d + nu) / (d + 2 nu), (d' + xi) / (d' + 2 xi)), d' = d (1 - xi/b)^+, xi = min(nu, 1).
    Source: Shekhar and Javidi 2022, proposition 2.

    Args:
        nu: The smoothness of the kernel; infinite for RBF.
        growth: b.
        dim: d.

    Raises:
        ValueError: ``nu`` or ``growth`` is not positive, or ``dim`` is less than 1.
    """
    growth = _checked_growth(growth)
    worst, xi = minimax_exponent(nu, dim), min(nu, 1.0)
    crowd = dim * max(1 - xi / growth, 0.0)
    return min(worst, (crowd + xi) / (crowd + 2 * xi))


def lower_exponent(nu: float, growth: float, dim: int, consistency: float) -> float | None:
    """(1 - a) (1 + (d / nu) (1 - nu / b)): no smaller power of T is possible on the instance.

    Possible for a method with regret of order T^a on every function of the RKHS. So the better a
    method does in the worst case, the more it must pay on an easy instance. Source: Shekhar and
    Javidi 2022, proposition 1; corollaries 2 to 4 are its cases for the exponents of
    `consistency_exponent` (2 and 3 are swapped in print).

    Args:
        nu: The smoothness of the kernel; infinite for RBF.
        growth: b.
        dim: d.
        consistency: a, in [0, 1].

    Returns:
        The exponent, or None where b <= nu, of which the proposition says nothing.

    Raises:
        ValueError: ``nu`` or ``growth`` is not positive, ``dim`` is less than 1, or
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
    """The power of T, up to logarithms, known to bound a method's regret on all of the RKHS.

    Source: Shekhar and Javidi 2022, remark 1, for "sup_kernel_ucb", "gp_ucb" (also GP-TS) and
    "pi_gp_ucb", and lemma 5 for "breadthwise_exploration"; Chowdhury and Gopalan 2017 for
    "igp_ucb"; Li and Scarlett 2022 for "bpe".

    Args:
        method: One of these names.
        nu: The smoothness of the kernel; infinite for RBF.
        dim: d.

    Raises:
        ValueError: Another method, ``nu`` is not positive, or ``dim`` is less than 1.
    """
    if method not in _CONSISTENCY:
        raise ValueError(f"method must be one of {list(_CONSISTENCY)}, got {method!r}")
    nu, dim = _checked(nu, dim)
    return 0.5 if nu == math.inf else _CONSISTENCY[method](nu, dim)


def _of_sqrt_gain(nu: float, dim: int) -> float:
    """Of sqrt(T gamma_T), gamma_T ~ T^(d / (2 nu + d))."""
    return minimax_exponent(nu, dim)


def _of_gain(nu: float, dim: int) -> float:
    """Of sqrt(T) gamma_T, where that is less than T."""
    return min(1.0, (nu + 1.5 * dim) / (2 * nu + dim))


def _of_partitions(nu: float, dim: int) -> float:
    return (dim * (2 * dim + 3) + 2 * nu) / (dim * (2 * dim + 4) + 4 * nu)


_CONSISTENCY: dict[str, Callable[[float, int], float]] = {
    "sup_kernel_ucb": _of_sqrt_gain,
    "gp_ucb": _of_gain,
    "pi_gp_ucb": _of_partitions,
    "igp_ucb": _of_gain,
    "bpe": _of_sqrt_gain,
    "breadthwise_exploration": _of_sqrt_gain,
}


def _checked(nu: float, dim: int) -> tuple[float, int]:
    nu = one_number(nu, "nu")
    require(nu > 0, "nu", nu, "positive")
    return nu, whole_number(dim, "dim", 1)


def _checked_growth(growth: float) -> float:
    growth = one_number(growth, "growth")
    require(0 < growth < math.inf, "growth", growth, "positive and finite")
    return growth
