"""Safe exploration: maximisation within limits of measured outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from botorch_ext.algorithms.argument_checks import algorithm
from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.limits import Limit
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.box_balls import Norm
from botorch_ext.strategies.adaptive.safe_exploration import Rule, SafeExploration


@algorithm
def safe_exploration(
    domain: Domain,
    model: KernelGP,
    *,
    outcome_models: Mapping[str, KernelGP],
    thresholds: Mapping[str, str | Limit],
    safe_seed: Any,
    rkhs_bound: float | Sequence[float],
    noise_std: float | Sequence[float],
    delta: float = 0.1,
    misspecification: float | Sequence[float] = 0.0,
    radius: float = 0.0,
    norm: Norm = "l2",
    bounds: Literal["mixture", "ladder"] = "mixture",
    rule: Literal["goal", "widest"] | Rule = "goal",
    on_refuted: Literal["seed", "stop"] = "seed",
    pending: Literal["hallucinate", "ignore"] = "hallucinate",
    seed: int = 0,
    context_domain: Domain | int | ContextSpace | None = None,
    minimize: bool | None = None,
) -> SafeExploration:
    """Safe exploration: a point is certified only as far as the RKHS bounds, the kernels, the noise
    and the misspecification are right; a wrong kernel can pass unnoticed and make certificates
    false; nothing here may stand between a machine and a person.

    The method maximises f among points of a finite set or a box, and asks only points where the
    confidence bounds of every measured outcome are within its limit. Until the first result is
    told, it asks only seeds. If all models are right, then every trial is within all limits, with
    probability at least 1 - delta, whatever is pending or late. Every result is told with all
    outcomes. It is not promised that all safe points are found: a safe part of the domain that is
    far from the seeds is never entered.

    Source: no paper; the bounds are those of `Mixture` and `Ladder`.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.1], [1.0]])
        >>> model = bx.KernelGP(RBFKernel(), noise_variance=0.01)
        >>> strategy = bx.algorithms.safe_exploration(
        ...     points, model, outcome_models={"pressure": model},
        ...     thresholds={"pressure": "<= 1.0"}, safe_seed=[[0.0]], rkhs_bound=1.5, noise_std=0.1,
        ... )
        >>> trial = strategy.ask()
        >>> strategy.tell(trial, 0.3, outcomes={"pressure": -0.5})
        >>> trial.info["kind"], strategy.report()["certified"]
        ('seed', 2)

    Args:
        domain: A `FiniteSet`, or a `Box` with nothing but bounds, in float64.
        model: The model of f, a `KernelGP` without data and transforms.
        outcome_models: The models of the outcomes by name, likewise.
        thresholds: The limit of each outcome by name, in its units: `AtMost`, `AtLeast`, or a text
            such as ``"<= 5.0"`` or ``">= 0.3"``. If f itself has a limit, measure it as an outcome
            as well.
        safe_seed: Points that are known to be safe, at least one: ``n x d``, or dicts of values by
            name. They are certified whatever the data say. With contexts these are actions, safe in
            every context; or they are joint rows, ``n x (d + d_z)``, each safe in its context.
        rkhs_bound: B, at least the RKHS norm of each quantity, in its units: one number, or a list
            with one for f and then one for each outcome.
        noise_std: sigma, the sub-Gaussian constant of the noise of each quantity, likewise.
        delta: The failure probability, in (0, 1), of all bounds together.
        misspecification: eps, the largest distance of each quantity to what its model can express,
            likewise.
        radius: The radius of a ball around each point, in the units of the coordinates, in which
            all points must be within the limits; 0 in a box.
        norm: The norm of the ball: "l2" or "linf".
        bounds: "mixture", the bounds of `Mixture`; or "ladder", those of `Ladder`, which are
            narrower and leave less slack for a wrong kernel.
        rule: "goal": ask the certified points that tell most about the best point that may be safe.
            "widest": ask those with the widest bounds instead, to map what is safe. Or a function
            from the rows of the certified points, the strategy and a seed to one of these rows; in
            a box from some certified points, ``n x d``, the strategy and a seed to any certified
            point.
        on_refuted: "seed": once the results refute the model of a quantity, only the seed with the
            best mean of its own results is asked. "stop": `ask` raises `ModelRefutedError`.
        pending: How pending trials count in the choice of points to learn from: "hallucinate", in
            the standard deviation; or "ignore", not at all. They never count in what is certified.
        seed: The seed of the searches in a box, and of what a function as ``rule`` is given.
        context_domain: The contexts: a domain, their dimension d_z, or a `ContextSpace`. The models
            are then those of joint rows, the action first, and every ask needs a context. None: no
            contexts.
    """
    return SafeExploration(
        domain,
        model,
        outcome_models=outcome_models,
        thresholds=thresholds,
        safe_seed=safe_seed,
        rkhs_bound=rkhs_bound,
        noise_std=noise_std,
        delta=delta,
        misspecification=misspecification,
        radius=radius,
        norm=norm,
        bounds=bounds,
        rule=rule,
        on_refuted=on_refuted,
        pending=pending,
        seed=seed,
        context_domain=context_domain,
        minimize=minimize,
    )
