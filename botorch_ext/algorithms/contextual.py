"""CGP-UCB: the best action in a context that is observed, not chosen."""

from __future__ import annotations

from dataclasses import replace

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, model_or_fitted, published_width
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace, as_context_space
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.kernels.action_context import ActionContextKernel, Combination
from botorch_ext.kernels.context_columns import context_space_of
from botorch_ext.models.checks import PriorMean
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import Enlarged, SelfNormalized, Width


@checked_names
def cgp_ucb(
    domain: Domain,
    kernel: Kernel | Fitted | None = None,
    *,
    noise_variance: float | None = None,
    action_kernel: Kernel | None = None,
    context_kernel: Kernel | None = None,
    combination: Combination = "product",
    misspecification: float = 0.0,
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
    """CGP-UCB: contextual GP-UCB, where every ask is given a context and only the action is chosen.

    The model is one of actions and contexts together. The published width is `SelfNormalized`.

    Source: Krause and Ong 2011, eq. 2.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> actions = bx.FiniteSet([[0.0], [0.5], [1.0]])
        >>> strategy = bx.algorithms.cgp_ucb(
        ...     actions,
        ...     action_kernel=RBFKernel(),
        ...     context_kernel=RBFKernel(),
        ...     noise_variance=0.01,
        ...     width=2.0,
        ...     context_domain=bx.Box([[0.0], [1.0]]),
        ... )
        >>> trial = strategy.ask(context=[0.2])
        >>> strategy.tell(trial, 0.3)
        >>> strategy.ask(context=[0.3]).x.tolist()
        [1.0]

    Args:
        domain: The actions to choose from: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1 of joint rows: the d columns of the action, then
            those of the context. Or `Fitted`, which fits the hyperparameters to the data; no
            guarantee holds then. None: ``action_kernel`` and ``context_kernel`` are given.
        noise_variance: lambda > 0, the noise variance (the ridge) of the model, in squared units of
            f. Needed unless the kernel is `Fitted`, which estimates it from the data.
        action_kernel: The kernel of the columns of the action. None: ``kernel`` is given.
        context_kernel: The kernel of the columns of the context, numbered from 0. `TaskKernel` and
            GPyTorch's `IndexKernel` are kernels of tasks. None: ``kernel`` is given.
        combination: How the pair of kernels is combined: "product", or "sum", which is halved (see
            `ActionContextKernel`).
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in units of f. If
            it is positive, the width is enlarged as in `ec_gp_ucb`.
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
        initial: Observations from before the study: a pair ``(X, Y)`` of joint rows ``n x (d +
            d_z)`` (the action, then the context) and values ``n`` (or ``n x 1``). They count as
            steps. None: no observations.
        num_initial: The number of Sobol points that are asked first. They count as steps.
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. None: read
            from the kernel by `context_space_of`; if the kernel does not say, the first context
            sets the dimension. Tasks that the kernel knows are checked in any case.

    Returns:
        An `OptimisticStrategy` to ask and to tell; see `BoundsStrategy` for the keys of
        ``trial.info`` and of the report.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value; if ``width`` is None and an argument
            that the published width needs is missing; if both ``kernel`` and the pair of kernels
            are given, or neither; or if ``combination`` is given without a pair. The message names
            the argument.
    """
    kernel = _joint_kernel(domain, kernel, action_kernel, context_kernel, combination)
    space = _context_space(kernel, domain, context_domain)
    width = published_width("cgp_ucb", SelfNormalized, width, rkhs_bound, noise_std, delta)
    misspecification = one_number(misspecification, "misspecification")
    if misspecification:
        width = Enlarged(width, misspecification)
    return OptimisticStrategy(
        domain,
        model_or_fitted("cgp_ucb", domain, kernel, noise_variance, mean),
        width,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
        context_domain=space,
    )


def _context_space(
    kernel: Kernel | Fitted, domain: Domain, given: Domain | int | ContextSpace | None
) -> ContextSpace:
    if isinstance(kernel, Fitted):
        return as_context_space(given) or ContextSpace()
    inferred, space = context_space_of(kernel, domain.dim), as_context_space(given)
    if space is None:
        return inferred
    known, tasks = dict(inferred.tasks), dict(space.tasks)
    least = {column: min(number, known.get(column, number)) for column, number in tasks.items()}
    return replace(space, tasks=tuple(sorted((known | least).items())))


def _joint_kernel(
    domain: Domain,
    kernel: Kernel | Fitted | None,
    action_kernel: Kernel | None,
    context_kernel: Kernel | None,
    combination: Combination,
) -> Kernel | Fitted:
    pair = {"action_kernel": action_kernel, "context_kernel": context_kernel}
    given = [name for name, part in pair.items() if part is not None]
    if kernel is not None:
        if given:
            raise ValueError(f"kernel must be None with a pair of kernels, got it and {given}")
        if combination != "product":
            raise ValueError(
                f"combination must not be given with a joint kernel, got {combination!r}"
            )
        return kernel
    if action_kernel is None or context_kernel is None:
        raise ValueError(
            f"kernel, or action_kernel and context_kernel, must be given, got {given or None}"
        )
    return ActionContextKernel(action_kernel, context_kernel, domain.dim, combination=combination)
