"""A-GP-UCB and LB-GP-UCB for an unknown lengthscale, which shrink and test it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, published_width
from botorch_ext.checks import amount
from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_variants import default_growth
from botorch_ext.strategies.adaptive.baselines import (
    LengthscaleBalancing,
    ShrinkingLengthscale,
    require_lengthscales,
)
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import SelfNormalized, Width, check_rkhs_bound


@checked_names
def a_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    lengthscale_0: float | None = None,
    growth: Callable[[int], float] = default_growth,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | Sequence[Width | float] | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
) -> ShrinkingLengthscale:
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
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        models: The candidate models, which differ in one lengthscale, as
            `CandidateModels.lengthscales` makes them.
        lengthscale_0: The first lengthscale. None: the longest lengthscale of the candidates.
        growth: The function g of the step t in lengthscale_0 / g(t). The default is g(t) = t^0.9.
        rkhs_bound: B_0, at least the RKHS norm of f at the first lengthscale, in units of f. Needed
            unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. ``rkhs_bound``, ``noise_std`` and ``delta`` are then unused. None: the
            published width.
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``.
        inflate: Whether ``pending="hallucinate"`` multiplies the width by exp(information gain of
            the pending points given the told ones). This makes the confidence bound valid; it is
            rarely used in practice.
        minimum: A lower bound on the values of f, in units of f. Needed with ``pending="censor"``,
            and only there.
        timeout: m, in steps, with ``pending="censor"`` only: a trial that was asked at step s and
            is not told before the ask of step s + m + 1 stays censored for ever. None: a result
            counts however late it is told.
        seed: The seed of the search and of the first points. On a finite set the first of several
            equally good points is chosen.
        initial: Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n``
            (or ``n x 1``). They count as steps. None: no observations.
        num_initial: The number of Sobol points that are asked first. They count as steps.

    Returns:
        A `ShrinkingLengthscale` to ask and to tell; see `BoundsStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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

    width = published_width("a_gp_ucb", published, width, rkhs_bound, noise_std, delta)
    return ShrinkingLengthscale(
        domain,
        models,
        width,
        lengthscale_0=longest,
        growth=growth,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
    )


@checked_names
def lb_gp_ucb(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    rkhs_bound: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
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
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        models: The candidate models, which differ in one lengthscale, as
            `CandidateModels.lengthscales` and `CandidateModels.growing` make them.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f. The tests need it even
            if ``width`` is given.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. None: 1, and outputs are
            standardised unless ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, for all models, in place of the published width. None: the
            published width.
        pending: How pending trials (asked, not told) count. "ignore": not at all. "hallucinate": in
            the standard deviation and the width. "censor": in both, and in the mean as observations
            of ``minimum``; this needs ``rkhs_bound`` or ``width``, since outputs are standardised
            without them.
        inflate: Whether ``pending="hallucinate"`` multiplies the width by exp(information gain of
            the pending points given the told ones). This makes the confidence bound valid; it is
            rarely used in practice.
        minimum: A lower bound on the values of f, in units of f. Needed with ``pending="censor"``,
            and only there.
        timeout: m, in steps, with ``pending="censor"`` only: a trial that was asked at step s and
            is not told before the ask of step s + m + 1 stays censored for ever. None: a result
            counts however late it is told.
        seed: The seed of the search and of the first points. On a finite set the first of several
            equally good points is chosen.
        initial: Observations from before the study: a pair ``(X, Y)`` of shapes ``n x d`` and ``n``
            (or ``n x 1``). They count as steps. None: no observations.
        num_initial: The number of Sobol points that are asked first. They count as steps.

    Returns:
        A `LengthscaleBalancing` to ask and to tell; see `BoundsStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
    """
    standardize = rkhs_bound is None and width is None
    rkhs_bound = 1.0 if rkhs_bound is None else rkhs_bound
    width = published_width("lb_gp_ucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    if isinstance(width, Sequence):
        raise ValueError(f"width must be one for all models of lb_gp_ucb, got {len(width)}")
    return LengthscaleBalancing(
        domain,
        models,
        width,
        noise_std=noise_std,
        delta=delta,
        rkhs_bound=rkhs_bound,
        standardize=standardize,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
    )
