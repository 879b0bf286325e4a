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

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1. With contexts it is a kernel of joint rows: the
            d columns of the action, then those of the context. Or `Fitted`, which fits the
            hyperparameters to the data; no guarantee holds then.
        noise_variance: lambda > 0, the noise variance (the ridge) of the model, in squared units of
            f. Needed unless the kernel is `Fitted`, which estimates it from the data.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, in place of the published width. ``rkhs_bound``, ``noise_std``
            and ``delta`` are then unused. None: the published width.
        mean: The prior mean, in units of f: a GPyTorch `Mean`, a callable from ``... x n x d`` to
            ``... x n``, or a number. None: zero.
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
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask
            then needs a context, and ``initial`` has joint rows (the action, then the context).
            None: no contexts.

    Returns:
        An `OptimisticStrategy` to ask and to tell; see `BoundsStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1. With contexts it is a kernel of joint rows: the
            d columns of the action, then those of the context. Or `Fitted`, which fits the
            hyperparameters to the data; no guarantee holds then.
        noise_variance: lambda > 0, the noise variance (the ridge) of the model, in squared units of
            f. Needed unless the kernel is `Fitted`, which estimates it from the data.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, in place of the published width. ``rkhs_bound``, ``noise_std``
            and ``delta`` are then unused. None: the published width.
        mean: The prior mean, in units of f: a GPyTorch `Mean`, a callable from ``... x n x d`` to
            ``... x n``, or a number. None: zero.
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
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask
            then needs a context, and ``initial`` has joint rows (the action, then the context).
            None: no contexts.

    Returns:
        An `OptimisticStrategy` to ask and to tell; see `BoundsStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1. With contexts it is a kernel of joint rows: the
            d columns of the action, then those of the context. Or `Fitted`, which fits the
            hyperparameters to the data; no guarantee holds then.
        noise_variance: lambda > 0, the noise variance (the ridge) of the model, in squared units of
            f. Needed unless the kernel is `Fitted`, which estimates it from the data.
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in units of f.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, to enlarge in place of the published width. ``rkhs_bound``,
            ``noise_std`` and ``delta`` are then unused. None: the published width.
        mean: The prior mean, in units of f: a GPyTorch `Mean`, a callable from ``... x n x d`` to
            ``... x n``, or a number. None: zero.
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
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. Every ask
            then needs a context, and ``initial`` has joint rows (the action, then the context).
            None: no contexts.

    Returns:
        An `OptimisticStrategy` to ask and to tell; see `BoundsStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value, or if ``width`` is None and an argument
            that the published width needs is missing. The message names the argument.
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
