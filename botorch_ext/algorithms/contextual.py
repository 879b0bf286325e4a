"""Optimistic selection of actions in contexts: CGP-UCB."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.arguments import published_width
from botorch_ext.algorithms.optimistic import Optimistic, optimistic_strategy
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace, as_context_space
from botorch_ext.kernels.action_context import ActionContextKernel, Combination
from botorch_ext.kernels.context_columns import context_space_of
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.widths import Enlarged, SelfNormalized


def cgp_ucb(
    domain: Domain,
    kernel: Kernel | None = None,
    *,
    action_kernel: Kernel | None = None,
    context_kernel: Kernel | None = None,
    combination: Combination = "product",
    noise_variance: float,
    misspecification: float = 0.0,
    **options: Unpack[Optimistic],
) -> OptimisticStrategy:
    """CGP-UCB: GP-UCB on actions and contexts together, where each ask is given the context and the
    action alone is chosen (Krause and Ong 2011, eq. 2). The width is `SelfNormalized`.

    Args:
        domain: The actions.
        kernel: On joint rows, the d columns of the action first, then those of the context. None
            where there is a pair of kernels.
        action_kernel: On the columns of the action.
        context_kernel: On the columns of the context, numbered from 0; `TaskKernel` and GPyTorch's
            `IndexKernel` are kernels of tasks.
        combination: Of the pair: "product", or "sum", which is halved (see `ActionContextKernel`).
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in the units of f:
            the width is then enlarged as in `ec_gp_ucb`.
        options: The arguments all methods share, described with the package. ``context_domain`` may
            be left to the kernel (see `context_space_of`); where that does not tell, contexts are
            of the size of the first one. Tasks that the kernel knows of are checked in any case.

    Raises:
        ValueError: Not exactly one of a joint kernel and a pair, or a combination without a pair.
    """
    kernel = _joint_kernel(domain, kernel, action_kernel, context_kernel, combination)
    space = _context_space(kernel, domain, options.get("context_domain"))
    width = published_width(SelfNormalized, options)
    misspecification = one_number(misspecification, "misspecification")
    if misspecification:
        width = Enlarged(width, misspecification)
    options = {**options, "context_domain": space}
    return optimistic_strategy(domain, kernel, noise_variance, width, options)


def _context_space(
    kernel: Kernel, domain: Domain, given: Domain | int | ContextSpace | None
) -> ContextSpace:
    inferred, space = context_space_of(kernel, domain.dim), as_context_space(given)
    if space is None:
        return inferred
    known, tasks = dict(inferred.tasks), dict(space.tasks)
    least = {column: min(number, known.get(column, number)) for column, number in tasks.items()}
    return replace(space, tasks=tuple(sorted((known | least).items())))


def _joint_kernel(
    domain: Domain,
    kernel: Kernel | None,
    action_kernel: Kernel | None,
    context_kernel: Kernel | None,
    combination: Combination,
) -> Kernel:
    pair = {"action_kernel": action_kernel, "context_kernel": context_kernel}
    given = [name for name, part in pair.items() if part is not None]
    if kernel is not None:
        if given:
            raise ValueError(f"kernel must be None where there are parts, got it and {given}")
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
