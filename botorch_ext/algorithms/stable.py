"""StableOpt, and HE-StableOpt for unknown hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.argument_checks import (
    algorithm,
    model_or_fitted,
    options_of,
    published_width,
)
from botorch_ext.algorithms.signatures import Model, Published, WithoutContexts
from botorch_ext.algorithms.unknown_hyperparameters import Setting, elimination_width
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.search.box_balls import Norm
from botorch_ext.strategies.adaptive.stable import StableStrategy
from botorch_ext.widths import SelfNormalized, Width
from botorch_ext.widths.composed import EnlargementForm

Radius = float | Sequence[float] | Tensor


class _Stable(Model, Published, WithoutContexts, total=False):
    """What `stable_opt` shares with other methods."""


@algorithm
def stable_opt(
    domain: Domain,
    kernel: Kernel | Fitted,
    *,
    radius: Radius,
    norm: Norm = "l2",
    **given: Unpack[_Stable],
) -> StableStrategy:
    """StableOpt: searches for the point whose worst case over small perturbations is best.

    A step finds the centre with the highest upper confidence bound at its worst perturbation, and
    asks the perturbed point with the lowest lower bound. The published width is `SelfNormalized`.

    Source: Bogunovic et al. 2018, algorithm 1.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> line = bx.FiniteSet([[0.0], [0.25], [0.5], [0.75], [1.0]])
        >>> data = [[0.0], [0.5], [1.0]], [1.0, 0.5, 0.0]
        >>> strategy = bx.algorithms.stable_opt(
        ...     line, RBFKernel(), noise_variance=0.01, radius=0.25, width=0.5, initial=data
        ... )
        >>> trial = strategy.ask()
        >>> trial.info["center"], trial.x.tolist()
        ([0.0], [0.25])

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions. Perturbed points stay inside it.
        radius: The radius of the ball of perturbations, at least 0, in the units of the
            coordinates; or d radii, one for each coordinate.
        norm: The norm of the ball of perturbations: "l2" or "linf".
    """
    width = published_width("stable_opt", SelfNormalized, given)
    model = model_or_fitted("stable_opt", domain, kernel, given, _one_candidate)
    return StableStrategy(domain, model, width, radius=radius, norm=norm, **options_of(given))


@algorithm
def he_stable_opt(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    radius: Radius,
    norm: Norm = "l2",
    setting: Setting = "frequentist",
    misspecification: float = 0.0,
    enlargement: EnlargementForm = "published",
    a: float | None = None,
    b: float | None = None,
    rkhs_bound: float | None = None,
    delta: float = 0.1,
    width: Width | float | Sequence[Width | float] | None = None,
    alarm: bool = False,
    **given: Unpack[WithoutContexts],
) -> StableStrategy:
    """HE-StableOpt: StableOpt over points and candidate models, with models eliminated by their
    prediction errors.

    The model that chose the centre (optimistic) and the model that chose the perturbation
    (pessimistic) are tested separately. The published width is that of `he_gp_ucb`.

    Source: Ziomek et al. 2024, algorithm 2.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> points = bx.FiniteSet([[0.0], [0.25], [0.5], [0.75], [1.0]])
        >>> models = bx.CandidateModels.lengthscales(RBFKernel(), [0.2, 0.8], noise_variance=0.01)
        >>> strategy = bx.algorithms.he_stable_opt(
        ...     points, models, noise_std=0.1, radius=0.25, rkhs_bound=1.0
        ... )
        >>> for _ in range(5):
        ...     trial = strategy.ask()
        ...     strategy.tell(trial, 1.0 - trial.x.item())
        >>> trial.info["center"], trial.x.tolist(), strategy.report()["alive"]
        ([0.0], [0.25], ['lengthscale 0.2', 'lengthscale 0.8'])

    Args:
        domain: The domain to maximise over: a `Box`, its bounds, or a `FiniteSet`, with d
            dimensions. Perturbed points stay inside it.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f. The tests need it even
            if ``width`` is given.
        radius: The radius of the ball of perturbations, at least 0, in the units of the
            coordinates; or d radii, one for each coordinate.
        norm: The norm of the ball of perturbations: "l2" or "linf".
        setting: The assumption on f. "frequentist": f lies in the RKHS of the true model with norm
            at most ``rkhs_bound``. "bayesian": f is drawn from the true model, with its prior mean.
        misspecification: eps >= 0, the largest distance of f to a function that the true model can
            express, in units of f. It enlarges the width and the tests, which the paper does not
            do. 0: the model is well specified.
        a: The constant a of the tail bound on the derivatives of f. Needed with
            ``setting="bayesian"`` on a box unless ``width`` is given.
        b: The scale b of the tail bound on the derivatives of f. Needed where ``a`` is.
        rkhs_bound: B, at least the RKHS norm of f, in units of f. Needed with
            ``setting="frequentist"`` unless ``width`` is given.
        delta: The probability that the true model is eliminated or that a confidence bound fails,
            in (0, 1).
        width: A width, or a number, in place of the published width; or a sequence with one for
            each model. Its failure probability is set to delta/2. None: the published width.
        alarm: Whether a model is also eliminated when the certified lower bound of the RKHS norm of
            f for its kernel exceeds ``rkhs_bound``. This spends no further part of delta. Needs
            widths with an RKHS bound, as those of the frequentist setting.
    """
    numbers = {"rkhs_bound": rkhs_bound, "noise_std": noise_std, "delta": delta, "width": width}
    return StableStrategy(
        domain,
        models,
        elimination_width("he_stable_opt", domain, numbers, setting, a, b),
        radius=radius,
        norm=norm,
        noise_std=noise_std,
        delta=delta,
        misspecification=one_number(misspecification, "misspecification"),
        enlargement=enlargement,
        alarm=alarm,
        **options_of(given),
    )


def _one_candidate(domain: Domain, kernel: Kernel, given: Mapping[str, Any]) -> CandidateModels:
    return CandidateModels(
        kernel,
        given["noise_variance"],
        means=given["mean"],
        dtype=domain.dtype,
        device=domain.device,
    )
