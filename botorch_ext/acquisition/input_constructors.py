"""Input constructors, by which Ax makes the acquisition functions of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from torch import Tensor

from botorch_ext.acquisition.confidence_bound import (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
)
from botorch_ext.acquisition.improvement import IntegratedLogEI
from botorch_ext.acquisition.optimistic import ExpectedUCB, OptimisticModelUCB
from botorch_ext.acquisition.stable import StableUCB
from botorch_ext.acquisition.variance import MaxVariance
from botorch_ext.robust.box_balls import Norm


@acqf_input_constructor(EnlargedUpperConfidenceBound)
def construct_inputs_enlarged_ucb(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
    width: float | Tensor = 2.0,
    misspecification: float = 0.0,
    noise_variance: float | Tensor | None = None,
    num_observations: int | None = None,
    maximize: bool = True,
) -> dict[str, Any]:
    """Keyword arguments of `EnlargedUpperConfidenceBound`.

    ``misspecification`` and ``noise_variance`` are in the units of the data the model sees; Ax
    standardises observations before the model, so there they are in standard deviations of the
    observations.
    """
    return {
        "model": model,
        "posterior_transform": posterior_transform,
        "X_pending": X_pending,
        "width": width,
        "misspecification": misspecification,
        "noise_variance": noise_variance,
        "num_observations": num_observations,
        "maximize": maximize,
    }


@acqf_input_constructor(LowerConfidenceBound)
def construct_inputs_lower_confidence_bound(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
    width: float | Tensor = 2.0,
    maximize: bool = True,
) -> dict[str, Any]:
    """Keyword arguments of `LowerConfidenceBound`."""
    return {
        "model": model,
        "posterior_transform": posterior_transform,
        "X_pending": X_pending,
        "width": width,
        "maximize": maximize,
    }


@acqf_input_constructor(MaxVariance)
def construct_inputs_max_variance(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
) -> dict[str, Any]:
    """Keyword arguments of `MaxVariance`."""
    return {"model": model, "posterior_transform": posterior_transform, "X_pending": X_pending}


@acqf_input_constructor(OptimisticModelUCB)
def construct_inputs_optimistic_model_ucb(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
    width: float | Tensor = 2.0,
    maximize: bool = True,
) -> dict[str, Any]:
    """Keyword arguments of `OptimisticModelUCB` over the draws of an ensemble."""
    return {
        "models": model,
        "posterior_transform": posterior_transform,
        "X_pending": X_pending,
        "width": width,
        "maximize": maximize,
    }


@acqf_input_constructor(ExpectedUCB)
def construct_inputs_expected_ucb(
    model: Model,
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
    width: float | Tensor = 2.0,
    probabilities: Tensor | list[float] | None = None,
    maximize: bool = True,
) -> dict[str, Any]:
    """Keyword arguments of `ExpectedUCB` over the draws of an ensemble."""
    return {
        "models": model,
        "posterior_transform": posterior_transform,
        "X_pending": X_pending,
        "width": width,
        "probabilities": probabilities,
        "maximize": maximize,
    }


@acqf_input_constructor(IntegratedLogEI)
def construct_inputs_integrated_log_ei(
    model: Model,
    training_data: Any,
    posterior_transform: PosteriorTransform | None = None,
    X_baseline: Tensor | None = None,
    best_f: float | Tensor | None = None,
    X_pending: Tensor | None = None,
    maximize: bool = True,
) -> dict[str, Any]:
    """Keyword arguments of `IntegratedLogEI` over the draws of an ensemble."""
    if X_baseline is None and best_f is None:
        # As for BoTorch's noisy improvement: one dataset, or one for each outcome.
        datasets = training_data.values() if isinstance(training_data, dict) else [training_data]
        X_baseline = next(iter(datasets)).X
    return {
        "models": model,
        "X_baseline": X_baseline,
        "best_f": best_f,
        "posterior_transform": posterior_transform,
        "X_pending": X_pending,
        "maximize": maximize,
    }


@acqf_input_constructor(StableUCB)
def construct_inputs_stable_ucb(
    model: Model,
    bounds: Sequence[tuple[float, float]],
    radius: float | Sequence[float],
    norm: Norm = "l2",
    posterior_transform: PosteriorTransform | None = None,
    X_pending: Tensor | None = None,
    width: float | Tensor = 2.0,
    maximize: bool = True,
) -> dict[str, Any]:
    """Keyword arguments of `StableUCB`.

    ``bounds`` are pairs, one for each coordinate, as BoTorch's input constructors take them.
    ``radius`` is in the units of what the model sees: Ax scales its parameters to the unit cube, so
    there it is in shares of their ranges.
    """
    return {
        "model": model,
        "width": width,
        "radius": radius,
        "norm": norm,
        "bounds": [tuple(pair) for pair in bounds],
        "posterior_transform": posterior_transform,
        "X_pending": X_pending,
        "maximize": maximize,
    }
