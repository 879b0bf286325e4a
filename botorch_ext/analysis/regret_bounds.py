"""Upper bounds from theory on the regret of optimistic methods, and what all bounds share.

A bound holds with probability 1 - delta for any ridge lambda, if k(x, x) <= 1, f lies in the RKHS
with norm at most B and the noise is sigma-sub-Gaussian. A bound for f drawn from the Gaussian
process ("bayes") assumes Gaussian noise of variance lambda. The papers state orders of growth; the
constants here are those of their proofs, corrected where a docstring says so. gamma_T must be the
maximum or an upper bound on it, such as ``max_information_gain(..., upper=True)``: the greedy value
alone lies below the maximum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.checks import amount, whole_number
from botorch_ext.domains import host
from botorch_ext.widths import (
    BayesContinuous,
    BayesFinite,
    Enlarged,
    SelfNormalized,
    SrinivasRKHS,
    Width,
)

# The sum over t of 1/t^2, the distance of the maximum from its neighbour in the grid of step t.
OFF_GRID = math.pi**2 / 6


@dataclass(frozen=True)
class AtEnd:
    """The numbers that widths read from a model, at the end of the horizon and with the largest
    information gain.

    Args:
        num_observations: T.
        gain: gamma_T.
        noise_variance: lambda, a 0-dim tensor.
        dim: d, for widths that need it.
    """

    num_observations: int
    gain: float
    noise_variance: Tensor
    dim: int = 1

    @classmethod
    def of(cls, horizon: int, information_gain: float, noise_variance: float) -> AtEnd:
        """The three numbers that every bound takes, checked.

        Raises:
            ValueError: If a number is out of its range.
        """
        horizon = whole_number(horizon, "horizon", least=1)
        gain = amount(information_gain, "information_gain", "non-negative and finite")
        ridge = amount(noise_variance, "noise_variance", "positive and finite")
        return cls(horizon, gain, host.tensor(ridge, dtype=torch.float64))

    def information_gain(self) -> Tensor:
        return host.tensor(self.gain, dtype=torch.float64)

    @property
    def variance_sum(self) -> float:
        """The upper bound 2 gamma_T / ln(1 + 1/lambda) on sum_t s_{t-1}(x_t)^2."""
        return 2 * self.gain / math.log1p(1 / float(self.noise_variance))

    @property
    def sum_of_stds(self) -> float:
        """The upper bound on sum_t s_{t-1}(x_t) by Cauchy and Schwarz."""
        return math.sqrt(self.num_observations * self.variance_sum)

    def width(self, width: Width, t: int | None = None) -> float:
        """The value of a width with the largest information gain.

        Returns:
            The multiplier of the standard deviation.
        """
        return float(width(self.num_observations if t is None else t, self))


def ec_gp_ucb_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_std: float,
    noise_variance: float,
    delta: float = 0.1,
    misspecification: float = 0.0,
) -> float:
    """An upper bound on the regret of EC-GP-UCB, GP-UCB (eps = 0) and CGP-UCB with the width w of
    `SelfNormalized`.

    2 (w_T + eps sqrt(T / lambda)) sqrt(2 T gamma_T / ln(1 + 1/lambda)) + 2 eps T.

    Example:
        >>> from botorch_ext.analysis import ec_gp_ucb_bound
        >>> round(ec_gp_ucb_bound(1000, 20.0, rkhs_bound=1.0, noise_std=0.1, noise_variance=0.01))
        1430

    Source: Bogunovic and Krause 2021, theorem 1 and eq. 39, whose 2 lambda + 1 is the larger of two
    bounds. The last term accounts for the difference between the function in the RKHS and the
    function that is evaluated.

    Args:
        horizon: T, the number of evaluations.
        information_gain: gamma_T; with contexts, that of the joint kernel.
        rkhs_bound: B, the bound on the RKHS norm of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        noise_variance: lambda, the ridge of the model.
        delta: The failure probability.
        misspecification: eps, the max-norm distance of the function to the RKHS ball.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    width = Enlarged(SelfNormalized(rkhs_bound, noise_std, delta), misspecification)
    return 2 * at_end.width(width) * at_end.sum_of_stds + 2 * misspecification * horizon


def cgp_ucb_bound(
    horizon: int,
    information_gain: float,
    rkhs_bound: float,
    noise_variance: float,
    delta: float = 0.1,
) -> float:
    """An upper bound on the contextual regret of CGP-UCB with the width w of `SrinivasRKHS`, for
    noise bounded by sqrt(lambda).

    sqrt(8 T w_T^2 gamma_T / ln(1 + 1/lambda)).

    With its default width CGP-UCB has the far smaller `ec_gp_ucb_bound`. Source: Krause and Ong
    2011, theorem 1 (3); the printed + 2 belongs only to (2).

    Args:
        horizon: T, the number of evaluations.
        information_gain: gamma_T of the joint kernel on actions and contexts.
        rkhs_bound: B, the bound on the RKHS norm of f.
        noise_variance: lambda, the ridge of the model.
        delta: The failure probability.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    width = SrinivasRKHS(rkhs_bound, delta, max_information_gain=lambda t: information_gain)
    return 2 * at_end.width(width) * at_end.sum_of_stds


def cgp_ucb_bayes_bound(
    horizon: int,
    information_gain: float,
    noise_variance: float,
    num_points: int,
    delta: float = 0.1,
) -> float:
    """An upper bound on the regret of GP-UCB and CGP-UCB with the width w of `BayesFinite` on
    finitely many points.

    sqrt(8 T w_T^2 gamma_T / ln(1 + 1/lambda)).

    Source: Krause and Ong 2011, theorem 1 (1); the printed + 2 belongs only to (2).

    Args:
        horizon: T, the number of evaluations.
        information_gain: gamma_T; with contexts, that of the joint kernel.
        noise_variance: lambda, the ridge of the model.
        num_points: N, the number of actions, or of pairs of an action and a context.
        delta: The failure probability.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    return 2 * at_end.width(BayesFinite(num_points, delta)) * at_end.sum_of_stds


def cgp_ucb_bayes_continuous_bound(
    horizon: int,
    information_gain: float,
    noise_variance: float,
    dim: int,
    a: float,
    b: float,
    r: float,
    delta: float = 0.1,
) -> float:
    """An upper bound on the regret of GP-UCB and CGP-UCB with the width w of `BayesContinuous` on
    actions in [0, r]^d.

    sqrt(8 T w_T^2 gamma_T / ln(1 + 1/lambda)) + pi^2/6.

    Source: Krause and Ong 2011, theorem 1 (2), with the width of the theorem: lemmas 5.3 and 5.4
    print 4 d ln(t d b r ...) for 2 d ln(t^2 d b r ...).

    Args:
        horizon: T, the number of evaluations.
        information_gain: gamma_T; with contexts, that of the joint kernel.
        noise_variance: lambda, the ridge of the model.
        dim: d, the number of columns of the actions.
        a: The tail constant of the derivatives, as in `BayesContinuous`.
        b: The tail scale of the derivatives.
        r: The side of the cube.
        delta: The failure probability.

    Returns:
        The bound, in units of f.

    Raises:
        ValueError: If an argument is out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    width = at_end.width(BayesContinuous(dim, a, b, r, delta))
    return 2 * width * at_end.sum_of_stds + OFF_GRID
