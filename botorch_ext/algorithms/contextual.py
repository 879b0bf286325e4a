"""Contextual selection: CGP-UCB, the best action in a context that is seen and not chosen."""

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
    """CGP-UCB: GP-UCB on actions and contexts together, where each ask is given the context and the
    action alone is chosen. The width is `SelfNormalized`.

    Source: Krause and Ong 2011, eq. 2.

    Args:
        domain: The actions: a `Box` or a `FiniteSet`, of d dimensions.
        kernel: A GPyTorch kernel with k(x, x) <= 1 on joint rows, the d columns of the action
            first, then those of the context. Or `Fitted`: hyperparameters from the data, and no
            guarantee. None where there is a pair of kernels.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f. Needed unless the
            kernel is `Fitted`, which finds it from the data.
        action_kernel: On the columns of the action.
        context_kernel: On the columns of the context, numbered from 0; `TaskKernel` and GPyTorch's
            `IndexKernel` are kernels of tasks.
        combination: Of the pair: "product", or "sum", which is halved (see `ActionContextKernel`).
        misspecification: eps >= 0, the max-norm distance of f to the RKHS ball, in units of f: the
            width is then enlarged as in `ec_gp_ucb`.
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
        initial: ``(X, Y)`` the user already has, joint rows ``n x (d + d_z)`` and ``n x 1`` or
            ``n``. They count as steps.
        num_initial: How many Sobol points are asked first. They count as steps.
        context_domain: The contexts: a domain, their dimension d_z or a `ContextSpace`. None leaves
            them to the kernel (see `context_space_of`), and where that does not tell they are of
            the size of the first one. Tasks that the kernel knows of are checked in any case.

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, no width and not what the published one needs, not
            exactly one of a joint kernel and a pair, or a combination without a pair; the message
            names it.
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
