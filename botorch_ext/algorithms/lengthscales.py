"""Lengthscales to choose among: A-GP-UCB shrinks them, LB-GP-UCB tests them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, published_width
from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_variants import default_growth
from botorch_ext.strategies.adaptive.baselines import (
    LengthscaleBalancing,
    ShrinkingLengthscale,
    checked_lengthscale_0,
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
    """A-GP-UCB: the lengthscale shrinks and the norm bound grows with time, whatever is observed.

    The width is `SelfNormalized` with the bound B_0 (lengthscale_0 / l)^d of the lengthscale l in
    play. Source: Berkenkamp et al. 2019, eq. 18.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        models: Candidates told apart by one lengthscale each.
        lengthscale_0: The first lengthscale. None: the longest of the candidates.
        growth: g, of the step t, in lengthscale_0 / g(t); t^0.9 unless given.
        rkhs_bound: B_0, at least the RKHS norm of f at the first lengthscale, in units of f. Needed
            unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; or one for each model.
            ``rkhs_bound``, ``noise_std`` and ``delta`` then count for nothing.
        pending: What trials that are asked and not told count for: "ignore", nothing;
            "hallucinate", the standard deviation and the width; "censor", these and, as
            ``minimum``, the mean.
        inflate: Whether "hallucinate" multiplies the width by exp(information gain of the pending
            points given the told ones). The bound is valid with it; practice does without.
        minimum: The least value f can take, in units of f: for "censor", which needs it.
        timeout: m, in steps, for "censor": a trial asked at step s and not told before the ask of
            step s + m + 1 stays censored for ever. None: no trial does.
        seed: Seeds the search and the first points. On a finite set ties go to the first one.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``. They count as
            steps.
        num_initial: How many Sobol points are asked first. They count as steps.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    scales = require_lengthscales(models).tolist()
    if models.grows:
        raise ValueError("models must all be there from the start for a_gp_ucb, got a growing set")
    longest = max(scales) if lengthscale_0 is None else checked_lengthscale_0(lengthscale_0)

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
    """LB-GP-UCB, length-scale balancing: the lengthscale with the smallest suspected regret bound
    plays, and goes when its rewards are too low for it. The width is `SelfNormalized`.

    Without ``rkhs_bound`` and ``width``, B = 1 and outputs are standardised as they come; the noise
    variance of the models is then in squared standard deviations of the outputs, ``noise_std`` in
    their units all the same. A trial that is abandoned counts as a play. Source: Ziomek et al.
    2024, arXiv 2410.10384.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        models: Candidates told apart by one lengthscale each, such as `CandidateModels.growing`.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f; the tests need it,
            whatever the width.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. None: 1, see above.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, for all models, in place of the published one.
        pending: What trials that are asked and not told count for: "ignore", nothing;
            "hallucinate", the standard deviation and the width; "censor", these and, as
            ``minimum``, the mean, which standardised outputs exclude.
        inflate: Whether "hallucinate" multiplies the width by exp(information gain of the pending
            points given the told ones). The bound is valid with it; practice does without.
        minimum: The least value f can take, in units of f: for "censor", which needs it.
        timeout: m, in steps, for "censor": a trial asked at step s and not told before the ask of
            step s + m + 1 stays censored for ever. None: no trial does.
        seed: Seeds the search and the first points. On a finite set ties go to the first one.
        initial: ``(X, Y)`` the user already has, ``n x d`` and ``n x 1`` or ``n``. They count as
            steps.
        num_initial: How many Sobol points are asked first. They count as steps.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
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
