"""CGP-UCB: the best action in a context that is observed, not chosen."""

from __future__ import annotations

from dataclasses import replace
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
from botorch_ext.domains.contexts import ContextSpace, as_context_space
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.kernels.action_context import ActionContextKernel, Combination
from botorch_ext.kernels.context_columns import context_space_of
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.widths import SelfNormalized, enlarging
from botorch_ext.widths.composed import EnlargementForm


@algorithm
def cgp_ucb(
    domain: Domain,
    kernel: Kernel | Fitted | None = None,
    *,
    action_kernel: Kernel | None = None,
    context_kernel: Kernel | None = None,
    combination: Combination = "product",
    misspecification: float = 0.0,
    enlargement: EnlargementForm = "published",
    **given: Unpack[Optimistic],
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
        action_kernel: The kernel of the columns of the action. None: ``kernel`` is given.
        context_kernel: The kernel of the columns of the context, numbered from 0. `TaskKernel` and
            GPyTorch's `IndexKernel` are kernels of tasks. None: ``kernel`` is given.
        combination: How the pair of kernels is combined: "product", or "sum", which is halved (see
            `ActionContextKernel`).
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in units of f. If
            it is positive, the width is enlarged as in `ec_gp_ucb`.
        initial: Observations from before the study: a pair ``(X, Y)`` of joint rows ``n x (d +
            d_z)`` (the action, then the context) and values ``n`` (or ``n x 1``). They count as
            steps. None: no observations.
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. None: read
            from the kernel by `context_space_of`; if the kernel does not say, the first context
            sets the dimension. Tasks that the kernel knows are checked in any case.

    Raises:
        TypeError: If a required argument is missing, or if an argument is unknown.
        ValueError: If an argument has an impossible value; if ``width`` is None and an argument
            that the published width needs is missing; if both ``kernel`` and the pair of kernels
            are given, or neither; or if ``combination`` is given without a pair. The message names
            the argument.
    """
    kernel = _joint_kernel(domain, kernel, action_kernel, context_kernel, combination)
    options = options_of(given)
    options["context_domain"] = _context_space(kernel, domain, options.get("context_domain"))
    width = published_width("cgp_ucb", SelfNormalized, given)
    misspecification = one_number(misspecification, "misspecification")
    kind = enlarging(enlargement)
    if misspecification:
        width = kind(width, misspecification)
    model = model_or_fitted("cgp_ucb", domain, kernel, given)
    return OptimisticStrategy(domain, model, width, **options)


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
