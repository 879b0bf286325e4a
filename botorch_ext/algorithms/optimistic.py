"""Optimistic selection: GP-UCB, IGP-UCB and EC-GP-UCB."""

from __future__ import annotations

from typing import Unpack

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.argument_checks import (
    algorithm,
    model_or_fitted,
    options_of,
    published_width,
)
from botorch_ext.algorithms.signatures import Optimistic
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.widths import ChowdhuryGopalan, SelfNormalized, enlarging
from botorch_ext.widths.composed import EnlargementForm


@algorithm
def gp_ucb(
    domain: Domain, kernel: Kernel | Fitted, **given: Unpack[Optimistic]
) -> OptimisticStrategy:
    """GP-UCB: asks the point with the highest upper confidence bound, mean + width * std.

    The published width is `SelfNormalized`.

    Source: Srinivas et al. 2010; the width of Bogunovic and Krause 2021, lemma 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.gp_ucb(points, RBFKernel(), noise_variance=0.01, width=2.0)
        >>> trial = strategy.ask()
        >>> trial.x.tolist()
        [0.0]
        >>> strategy.tell(trial, 0.3)
        >>> trial = strategy.ask()
        >>> trial.x.tolist(), round(trial.info["mean"], 2), round(trial.info["std"], 2)
        ([1.0], 0.1, 0.94)
    """
    width = published_width("gp_ucb", SelfNormalized, given)
    model = model_or_fitted("gp_ucb", domain, kernel, given)
    return OptimisticStrategy(domain, model, width, **options_of(given))


@algorithm
def igp_ucb(
    domain: Domain, kernel: Kernel | Fitted, **given: Unpack[Optimistic]
) -> OptimisticStrategy:
    """IGP-UCB: GP-UCB with the `ChowdhuryGopalan` width at the realised information gain.

    Source: Chowdhury and Gopalan 2017, algorithm 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.igp_ucb(
        ...     points, RBFKernel(), noise_variance=0.01, rkhs_bound=1.0, noise_std=0.1
        ... )
        >>> strategy.tell(strategy.ask(), 0.3)
        >>> strategy.ask().x.tolist(), round(strategy.report()["current_width"], 2)
        ([1.0], 4.96)
    """
    width = published_width("igp_ucb", ChowdhuryGopalan, given)
    model = model_or_fitted("igp_ucb", domain, kernel, given)
    return OptimisticStrategy(domain, model, width, **options_of(given))


@algorithm
def ec_gp_ucb(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    misspecification: float,
    enlargement: EnlargementForm = "published",
    **given: Unpack[Optimistic],
) -> OptimisticStrategy:
    """EC-GP-UCB: GP-UCB with confidence bounds that are enlarged for a known misspecification.

    The width that is enlarged is `SelfNormalized`.

    Source: Bogunovic and Krause 2021, algorithm 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.ec_gp_ucb(
        ...     points, RBFKernel(), noise_variance=0.01, misspecification=0.05, width=2.0
        ... )
        >>> strategy.tell(strategy.ask(), 0.3)
        >>> trial = strategy.ask()
        >>> trial.x.tolist(), round(trial.info["width"], 2)
        ([1.0], 2.71)

    Args:
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in units of f.
        width: A width, or a number, to enlarge in place of the published width. ``rkhs_bound``,
            ``noise_std`` and ``delta`` are then unused. None: the published width.
    """
    eps = one_number(misspecification, "misspecification")
    width = enlarging(enlargement)(published_width("ec_gp_ucb", SelfNormalized, given), eps)
    model = model_or_fitted("ec_gp_ucb", domain, kernel, given)
    return OptimisticStrategy(domain, model, width, **options_of(given))
