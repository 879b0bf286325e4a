"""Optimistic selection: GP-UCB, IGP-UCB and EC-GP-UCB."""

from __future__ import annotations

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, model_or_fitted, published_width
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.checks import PriorMean
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import ChowdhuryGopalan, Enlarged, SelfNormalized, Width


@checked_names
def gp_ucb(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    noise_variance: float | None = None,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> OptimisticStrategy:
    """GP-UCB with the `SelfNormalized` width.

    Source: Srinivas et al. 2010; the width of Bogunovic and Krause 2021, lemma 1.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1; with contexts on joint rows, the d columns of
            the action first. Or `Fitted`: hyperparameters from the data, and no guarantee.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f. Needed unless the
            kernel is `Fitted`, which finds it from the data.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; ``rkhs_bound``, ``noise_std``
            and ``delta`` then count for nothing.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
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
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    width = published_width("gp_ucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return OptimisticStrategy(
        domain,
        model_or_fitted("gp_ucb", domain, kernel, noise_variance, mean),
        width,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


@checked_names
def igp_ucb(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    noise_variance: float | None = None,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> OptimisticStrategy:
    """IGP-UCB: GP-UCB with the `ChowdhuryGopalan` width at the realised information gain.

    Source: Chowdhury and Gopalan 2017, algorithm 1.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1; with contexts on joint rows, the d columns of
            the action first. Or `Fitted`: hyperparameters from the data, and no guarantee.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f. Needed unless the
            kernel is `Fitted`, which finds it from the data.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, in place of the published one; ``rkhs_bound``, ``noise_std``
            and ``delta`` then count for nothing.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
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
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    width = published_width("igp_ucb", ChowdhuryGopalan, width, rkhs_bound, noise_std, delta)
    return OptimisticStrategy(
        domain,
        model_or_fitted("igp_ucb", domain, kernel, noise_variance, mean),
        width,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


@checked_names
def ec_gp_ucb(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    noise_variance: float | None = None,
    misspecification: float,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> OptimisticStrategy:
    """EC-GP-UCB: GP-UCB with confidence bounds enlarged for a known misspecification. The width
    that is enlarged is `SelfNormalized`.

    Source: Bogunovic and Krause 2021, algorithm 1.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1; with contexts on joint rows, the d columns of
            the action first. Or `Fitted`: hyperparameters from the data, and no guarantee.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f. Needed unless the
            kernel is `Fitted`, which finds it from the data.
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in units of f.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: Failure probability, in (0, 1).
        width: A width, or a number, to enlarge in place of the published one; ``rkhs_bound``,
            ``noise_std`` and ``delta`` then count for nothing.
        mean: The prior mean: a GPyTorch `Mean`, a callable from ``... x n x d`` to ``... x n``, or
            a number. None: zero.
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
        context_domain: The contexts that every ask is then given: a domain, their dimension d_z or
            a `ContextSpace`. ``initial`` then has joint rows. None: no contexts.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    eps = one_number(misspecification, "misspecification")
    width = published_width("ec_gp_ucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return OptimisticStrategy(
        domain,
        model_or_fitted("ec_gp_ucb", domain, kernel, noise_variance, mean),
        Enlarged(width, eps),
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )
