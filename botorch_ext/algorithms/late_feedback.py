"""GP-BUCB and GP-UCB-SDF for late feedback, which differ in how pending trials count."""

from __future__ import annotations

from typing import Literal

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, model_or_fitted, published_width
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.checks import PriorMean
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import SelfNormalized, Width


@checked_names
def gp_bucb(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    noise_variance: float | None = None,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    pending: Literal["hallucinate"] = "hallucinate",
    inflate: bool = False,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> OptimisticStrategy:
    """GP-BUCB: GP-UCB for trials in parallel, which hallucinates the pending ones.

    Pending trials count in the standard deviation and in the width, and leave the mean alone. The
    published width is `SelfNormalized`.

    Source: Desautels et al. 2014, algorithm 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.gp_bucb(points, RBFKernel(), noise_variance=0.01, width=2.0)
        >>> [trial.x.tolist() for trial in strategy.ask(3)]
        [[0.0], [1.0], [0.4]]

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
        pending: The treatment of pending trials that defines the method. No other value is allowed.
        inflate: Whether the width is multiplied by exp(information gain of the pending points given
            the told ones). This makes the confidence bound valid; it is rarely used in practice.
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
    _require_policy("gp_bucb", pending, "hallucinate")
    width = published_width("gp_bucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return OptimisticStrategy(
        domain,
        model_or_fitted("gp_bucb", domain, kernel, noise_variance, mean),
        width,
        pending=pending,
        inflate=inflate,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


@checked_names
def gp_ucb_sdf(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    noise_variance: float | None = None,
    minimum: float,
    rkhs_bound: float | None = None,
    noise_std: float | None = None,
    delta: float = 0.1,
    width: Width | float | None = None,
    mean: PriorMean | float | None = None,
    pending: Literal["censor"] = "censor",
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
) -> OptimisticStrategy:
    """GP-UCB-SDF: GP-UCB for late feedback, which censors pending trials.

    Until it is told, a pending trial counts as an observation of ``minimum``. The published width
    is `SelfNormalized`.

    Source: Verma et al. 2022.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.4], [1.0]])
        >>> strategy = bx.algorithms.gp_ucb_sdf(
        ...     points, RBFKernel(), noise_variance=0.01, minimum=-1.0, width=2.0
        ... )
        >>> [trial.x.tolist() for trial in strategy.ask(3)]
        [[0.0], [1.0], [0.4]]
        >>> strategy.tell(0, 0.3)
        >>> round(strategy.ask().info["mean"], 2)
        0.25

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1. With contexts it is a kernel of joint rows: the
            d columns of the action, then those of the context. Or `Fitted`, which fits the
            hyperparameters to the data; no guarantee holds then.
        noise_variance: lambda > 0, the noise variance (the ridge) of the model, in squared units of
            f. Needed unless the kernel is `Fitted`, which estimates it from the data.
        minimum: A lower bound on the values of f, in units of f. Pending trials count as
            observations of it.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed unless ``width`` is given.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f. Needed unless
            ``width`` is given.
        delta: The probability that a confidence bound fails, in (0, 1).
        width: A width, or a number, in place of the published width. ``rkhs_bound``, ``noise_std``
            and ``delta`` are then unused. None: the published width.
        mean: The prior mean, in units of f: a GPyTorch `Mean`, a callable from ``... x n x d`` to
            ``... x n``, or a number. None: zero.
        pending: The treatment of pending trials that defines the method. No other value is allowed.
        timeout: m, in steps: a trial that was asked at step s and is not told before the ask of
            step s + m + 1 stays censored for ever. None: a result counts however late it is told.
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
    _require_policy("gp_ucb_sdf", pending, "censor")
    width = published_width("gp_ucb_sdf", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return OptimisticStrategy(
        domain,
        model_or_fitted("gp_ucb_sdf", domain, kernel, noise_variance, mean),
        width,
        pending=pending,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=context_domain,
    )


def _require_policy(name: str, given: Pending, policy: Pending) -> None:
    if given != policy:
        raise ValueError(f"pending must be {policy!r} for {name}, got {given!r}")
