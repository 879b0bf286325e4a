"""Stable optimisation: StableOpt, and its form for unknown hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import checked_names, model_or_fitted, published_width
from botorch_ext.algorithms.unknown_hyperparameters import Setting, elimination_width
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.checks import PriorMean
from botorch_ext.robust.box_balls import Norm
from botorch_ext.strategies.adaptive.pending import Pending
from botorch_ext.strategies.adaptive.stable import StableStrategy
from botorch_ext.widths import SelfNormalized, Width

Radius = float | Sequence[float] | Tensor


@checked_names
def stable_opt(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    noise_variance: float | None = None,
    radius: Radius,
    norm: Norm = "l2",
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
) -> StableStrategy:
    """StableOpt: the point whose worst case within reach is best. The width is `SelfNormalized`.

    Source: Bogunovic et al. 2018, algorithm 1.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions; perturbed
            points stay inside.
        kernel: A GPyTorch kernel with k(x, x) <= 1. Or `Fitted`: hyperparameters from the data, and
            no guarantee.
        noise_variance: lambda > 0, the ridge of the model, in squared units of f. Needed unless the
            kernel is `Fitted`, which finds it from the data.
        radius: Of the ball of perturbations, at least 0, in the units of the coordinates; or one
            radius for each coordinate.
        norm: Of the ball: "l2" or "linf".
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

    Returns:
        A strategy to ask and to tell.

    Raises:
        TypeError: An argument that is missing, or one that the function does not take.
        ValueError: An impossible argument, or no width and not what the published one needs; the
            message names it.
    """
    width = published_width("stable_opt", SelfNormalized, width, rkhs_bound, noise_std, delta)
    return StableStrategy(
        domain,
        model_or_fitted("stable_opt", domain, kernel, noise_variance, mean, _one_candidate),
        width,
        radius=radius,
        norm=norm,
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
    )


@checked_names
def he_stable_opt(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    radius: Radius,
    norm: Norm = "l2",
    setting: Setting = "frequentist",
    misspecification: float = 0.0,
    a: float | None = None,
    b: float | None = None,
    rkhs_bound: float | None = None,
    delta: float = 0.1,
    width: Width | float | Sequence[Width | float] | None = None,
    pending: Pending = "hallucinate",
    inflate: bool = False,
    minimum: float | None = None,
    timeout: int | None = None,
    seed: int = 0,
    initial: tuple[Tensor, Tensor] | None = None,
    num_initial: int = 0,
) -> StableStrategy:
    """HE-StableOpt: StableOpt over points and models; a model goes when its own predictions are
    refuted, optimistic or pessimistic ones.

    The width is that of `he_gp_ucb`. Source: Ziomek et al. 2024, algorithm 2.

    Args:
        domain: Where to maximise: a `Box`, its bounds or a `FiniteSet`, of d dimensions; perturbed
            points stay inside.
        models: The candidates.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f; the tests need it,
            whatever the width.
        radius: Of the ball of perturbations, at least 0, in the units of the coordinates; or one
            radius for each coordinate.
        norm: Of the ball: "l2" or "linf".
        setting: "frequentist": f lies in the RKHS of the true model with norm at most
            ``rkhs_bound``. "bayesian": f is drawn from the true model, prior mean included.
        misspecification: eps >= 0, how far f may be from what the true model can express, in units
            of f: enlarges the width and the tests (beyond the paper).
        a: Tail constant of the derivatives of f, for "bayesian" on a box, which needs it unless
            ``width`` is given.
        b: Tail scale of the derivatives of f, likewise.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed where ``setting`` is
            "frequentist" and no ``width`` is given.
        delta: The probability that the true model is eliminated or a bound fails, in (0, 1).
        width: A width, or a number, in place of the published one, or one for each model. Its
            failure probability becomes delta/2.
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
    width = elimination_width(
        "he_stable_opt", domain, width, rkhs_bound, noise_std, delta, setting, a, b
    )
    return StableStrategy(
        domain,
        models,
        width,
        radius=radius,
        norm=norm,
        noise_std=noise_std,
        delta=delta,
        misspecification=one_number(misspecification, "misspecification"),
        pending=pending,
        inflate=inflate,
        minimum=minimum,
        timeout=timeout,
        seed=seed,
        initial=initial,
        num_initial=num_initial,
    )


def _one_candidate(
    domain: Domain, kernel: Kernel, noise_variance: float, mean: PriorMean | float | None
) -> CandidateModels:
    return CandidateModels(
        kernel, noise_variance, means=mean, dtype=domain.dtype, device=domain.device
    )
