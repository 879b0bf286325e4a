"""A-GP-UCB and LB-GP-UCB for an unknown lengthscale, which shrink and test it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from botorch_ext.algorithms.argument_checks import algorithm, options_of, published_width
from botorch_ext.algorithms.signatures import Confidence, WithoutContexts
from botorch_ext.checks import amount
from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_variants import default_growth
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsStrategy
from botorch_ext.strategies.adaptive.judges import Schedule, require_lengthscales
from botorch_ext.strategies.adaptive.lengthscale_balancing import LengthscaleBalancing
from botorch_ext.widths import SelfNormalized, Width, check_rkhs_bound


class _Shrinking(Confidence, WithoutContexts, total=False):
    """What `a_gp_ucb` shares with other methods."""


@algorithm
def a_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    lengthscale_0: float | None = None,
    growth: Callable[[int], float] = default_growth,
    width: Width | float | Sequence[Width | float] | None = None,
    **given: Unpack[_Shrinking],
) -> BoundsStrategy:
    """A-GP-UCB: GP-UCB with a lengthscale that shrinks and a norm bound that grows with time,
    whatever is observed.

    The published width is `SelfNormalized` with the bound B_0 (lengthscale_0 / l)^d, where l is the
    lengthscale that plays.

    Source: Berkenkamp et al. 2019, eq. 18.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.a_gp_ucb(points, models, width=2.0)
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> [model["times_played"] for model in strategy.report()["models"]]
        [4, 1]

    Args:
        models: The candidate models, which differ in one lengthscale, as
            `CandidateModels.lengthscales` makes them.
        lengthscale_0: The first lengthscale. None: the longest lengthscale of the candidates.
        growth: The function g of the step t in lengthscale_0 / g(t). The default is g(t) = t^0.9.
        rkhs_bound: B_0, at least the RKHS norm of f at the first lengthscale, in units of f. Needed
            unless ``width`` is given.
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. ``rkhs_bound``, ``noise_std`` and ``delta`` are then unused. None: the
            published width.
    """
    scales = require_lengthscales(models).tolist()
    if models.grows:
        raise ValueError("models must all be there from the start for a_gp_ucb, got a growing set")
    longest = max(scales)
    if lengthscale_0 is not None:
        longest = amount(lengthscale_0, "lengthscale_0", "positive and finite")

    def published(rkhs_bound: float, noise_std: float, delta: float) -> list[Width]:
        check_rkhs_bound(rkhs_bound)
        bounds = [rkhs_bound * (longest / scale) ** domain.dim for scale in scales]
        return [SelfNormalized(bound, noise_std, delta) for bound in bounds]

    return BoundsStrategy(
        domain,
        models,
        published_width("a_gp_ucb", published, {**given, "width": width}),
        judge=Schedule(longest, growth),
        **options_of(given),
    )


@algorithm
def lb_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    rkhs_bound: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    **given: Unpack[WithoutContexts],
) -> LengthscaleBalancing:
    """LB-GP-UCB, length-scale balancing: plays the lengthscale with the smallest suspected regret
    bound, and eliminates one whose rewards are too low for its bound.

    The published width is `SelfNormalized`. Without ``rkhs_bound`` and ``width``, B = 1 and outputs
    are standardised as they come: the noise variance of the models is then in squared standard
    deviations of the outputs, while ``noise_std`` stays in units of f. An abandoned trial counts as
    a play.

    Source: Ziomek et al. 2024, arXiv 2410.10384.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.lb_gp_ucb(points, models, noise_std=0.1)
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> [(model["name"], model["times_played"]) for model in strategy.report()["models"]]
        [('lengthscale 0.2', 2), ('lengthscale 0.8', 3)]

    Args:
        models: The candidate models, which differ in one lengthscale, as
            `CandidateModels.lengthscales` and `CandidateModels.growing` make them.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f. The tests need it even
            if ``width`` is given.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. None: 1, and outputs are
            standardised unless ``width`` is given.
        width: A width, or a number, for all models, in place of the published width. None: the
            published width.
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``; this needs ``rkhs_bound`` or ``width``, since outputs are standardised
            without them.
    """
    standardize = rkhs_bound is None and width is None
    rkhs_bound = 1.0 if rkhs_bound is None else rkhs_bound
    numbers = {"rkhs_bound": rkhs_bound, "noise_std": noise_std, "delta": delta, "width": width}
    if isinstance(width, Sequence):
        raise ValueError(f"width must be one for all models of lb_gp_ucb, got {len(width)}")
    return LengthscaleBalancing(
        domain,
        models,
        published_width("lb_gp_ucb", SelfNormalized, numbers),
        noise_std=noise_std,
        delta=delta,
        rkhs_bound=rkhs_bound,
        standardize=standardize,
        **options_of(given),
    )
