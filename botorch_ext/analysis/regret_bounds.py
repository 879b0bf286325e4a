"""Regret bounds that theory promises of optimistic methods, and what all of them share.

A bound holds with probability 1 - delta, whatever the ridge lambda, for kernels with k(x, x) <= 1,
f in the RKHS with norm at most B and sigma-sub-Gaussian noise; one for f drawn from the Gaussian
process ("bayes") for Gaussian noise of variance lambda. The papers state orders of growth; the
constants are those of their proofs, corrected where a docstring says so. gamma_T must be the
maximum or an upper bound of it, such as ``max_information_gain(..., upper=True)``: a greedy value
alone lies below.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_ext.checks import amount, whole_number
from botorch_ext.widths import (
    BayesContinuous,
    BayesFinite,
    Enlarged,
    SelfNormalized,
    SrinivasRKHS,
    Width,
)

# Between the maximum and its neighbour in the grid of step t: the sum of 1/t^2.
OFF_GRID = math.pi**2 / 6


@dataclass(frozen=True)
class AtEnd:
    """What widths ask of a model, at the end of the horizon and with the largest gain.

    Args:
        num_observations: T.
        gain: gamma_T.
        noise_variance: lambda, a scalar tensor.
        dim: d, where a width asks for it.
    """

    num_observations: int
    gain: float
    noise_variance: Tensor
    dim: int = 1

    @classmethod
    def of(cls, horizon: int, information_gain: float, noise_variance: float) -> AtEnd:
        """Checks the three numbers that every bound takes."""
        horizon = whole_number(horizon, "horizon", least=1)
        gain = amount(information_gain, "information_gain", "non-negative and finite")
        ridge = amount(noise_variance, "noise_variance", "positive and finite")
        return cls(horizon, gain, torch.tensor(ridge, dtype=torch.float64))

    def information_gain(self) -> Tensor:
        return torch.tensor(self.gain, dtype=torch.float64)

    @property
    def variance_sum(self) -> float:
        """The most that sum_t s_{t-1}(x_t)^2 can be: 2 gamma_T / ln(1 + 1/lambda)."""
        return 2 * self.gain / math.log1p(1 / float(self.noise_variance))

    @property
    def sum_of_stds(self) -> float:
        """The most that sum_t s_{t-1}(x_t) can be, by Cauchy and Schwarz."""
        return math.sqrt(self.num_observations * self.variance_sum)

    def width(self, width: Width, t: int | None = None) -> float:
        """A width with the largest gain at step t; None for the last."""
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
    """2 (w_T + eps sqrt(T / lambda)) sqrt(2 T gamma_T / ln(1 + 1/lambda)) + 2 eps T, with w_T of
    `SelfNormalized`: the regret of EC-GP-UCB, GP-UCB (eps = 0) and CGP-UCB with that width.

    Source: Bogunovic and Krause 2021, theorem 1 and eq. 39, whose 2 lambda + 1 is the larger of two
    bounds; the last term leads from the function of the RKHS to the one that is played.

    Args:
        horizon: T.
        information_gain: gamma_T; with contexts that of the joint kernel.
        rkhs_bound: B.
        noise_std: sigma.
        noise_variance: lambda.
        delta: Failure probability.
        misspecification: eps, the max-norm distance of the function to the RKHS ball.

    Raises:
        ValueError: An argument out of its range.
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
    """sqrt(8 T w_T^2 gamma_T / ln(1 + 1/lambda)), w_T of `SrinivasRKHS`: the contextual regret of
    CGP-UCB with that width, for noise bounded by sqrt(lambda).

    With its default width CGP-UCB has the far smaller `ec_gp_ucb_bound`. Source: Krause and Ong
    2011, theorem 1 (3); the printed + 2 belongs to (2) alone.

    Args:
        horizon: T.
        information_gain: gamma_T of the kernel on actions and contexts.
        rkhs_bound: B.
        noise_variance: lambda.
        delta: Failure probability.

    Raises:
        ValueError: An argument out of its range.
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
    """sqrt(8 T w_T^2 gamma_T / ln(1 + 1/lambda)), w_T of `BayesFinite`: the regret of GP-UCB and
    CGP-UCB with that width on finitely many points.

    Source: Krause and Ong 2011, theorem 1 (1); the printed + 2 belongs to (2) alone.

    Args:
        horizon: T.
        information_gain: gamma_T; with contexts that of the joint kernel.
        noise_variance: lambda.
        num_points: N, of actions, or of pairs of an action and a context.
        delta: Failure probability.

    Raises:
        ValueError: An argument out of its range.
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
    """sqrt(8 T w_T^2 gamma_T / ln(1 + 1/lambda)) + pi^2/6, w_T of `BayesContinuous`: the regret of
    GP-UCB and CGP-UCB with that width on actions in [0, r]^d.

    Source: Krause and Ong 2011, theorem 1 (2), with the width of the theorem: lemmas 5.3 and 5.4
    have 4 d ln(t d b r ...) for 2 d ln(t^2 d b r ...).

    Args:
        horizon: T.
        information_gain: gamma_T; with contexts that of the joint kernel.
        noise_variance: lambda.
        dim: d, of the actions.
        a: Tail constant of the derivatives, as in `BayesContinuous`.
        b: Tail scale of the derivatives.
        r: Side of the cube.
        delta: Failure probability.

    Raises:
        ValueError: An argument out of its range.
    """
    at_end = AtEnd.of(horizon, information_gain, noise_variance)
    width = at_end.width(BayesContinuous(dim, a, b, r, delta))
    return 2 * width * at_end.sum_of_stds + OFF_GRID
