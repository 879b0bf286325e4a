"""GP-BUCB and GP-UCB-SDF for late feedback, which differ in how pending trials count."""

from __future__ import annotations

from typing import Literal, Unpack

from gpytorch.kernels import Kernel

from botorch_ext.algorithms.argument_checks import (
    algorithm,
    model_or_fitted,
    options_of,
    published_width,
)
from botorch_ext.algorithms.signatures import Model, Published
from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.strategies.adaptive.bounds_strategy import Start
from botorch_ext.strategies.adaptive.optimistic import OptimisticStrategy
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.widths import SelfNormalized


class _LateFeedback(Model, Published, Start, total=False):
    """What both methods take."""


@algorithm
def gp_bucb(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    pending: Literal["hallucinate"] = "hallucinate",
    inflate: bool = False,
    **given: Unpack[_LateFeedback],
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
        pending: The treatment of pending trials that defines the method. No other value is allowed.
        inflate: Whether the width is multiplied by exp(information gain of the pending points given
            the told ones). This makes the confidence bound valid; it is rarely used in practice.
    """
    _require_policy("gp_bucb", pending, "hallucinate")
    width = published_width("gp_bucb", SelfNormalized, given)
    model = model_or_fitted("gp_bucb", domain, kernel, given)
    return OptimisticStrategy(
        domain, model, width, pending=pending, inflate=inflate, **options_of(given)
    )


@algorithm
def gp_ucb_sdf(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    minimum: float,
    pending: Literal["censor"] = "censor",
    timeout: int | None = None,
    **given: Unpack[_LateFeedback],
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
        minimum: A lower bound on the values of f, in units of f. Pending trials count as
            observations of it.
        pending: The treatment of pending trials that defines the method. No other value is allowed.
        timeout: m, in steps: a trial that was asked at step s and is not told before the ask of
            step s + m + 1 stays censored for ever. None: a result counts however late it is told.
    """
    _require_policy("gp_ucb_sdf", pending, "censor")
    width = published_width("gp_ucb_sdf", SelfNormalized, given)
    model = model_or_fitted("gp_ucb_sdf", domain, kernel, given)
    return OptimisticStrategy(
        domain,
        model,
        width,
        pending=pending,
        minimum=minimum,
        timeout=timeout,
        **options_of(given),
    )


def _require_policy(name: str, given: Pending, policy: Pending) -> None:
    if given != policy:
        raise ValueError(f"pending must be {policy!r} for {name}, got {given!r}")
