"""Input constructors, by which Ax makes the acquisition functions of this package.

They take the arguments of an acquisition function by name, ``models`` as ``model``, with a width of
2 unless another is given. Ax standardises observations and scales parameters to the unit cube
before the model sees them. So there a misspecification, a noise variance and a width are in
standard deviations of the observations, and a radius is in shares of the ranges.
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

from botorch.acquisition.input_constructors import acqf_input_constructor

from botorch_ext.acquisition.confidence_bound import (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
)
from botorch_ext.acquisition.improvement import IntegratedLogEI
from botorch_ext.acquisition.optimistic import ExpectedUCB, OptimisticModelUCB
from botorch_ext.acquisition.stable import StableUCB
from botorch_ext.acquisition.variance import MaxVariance

_WIDTH = 2.0


def _register(kind: type, more: Iterable[str] = ()) -> None:
    """Registers the input constructor of an acquisition function, which also takes ``more``
    arguments that the function does not have."""
    own = signature(kind.__init__)
    names = [name for name in own.parameters if name != "self"]

    @acqf_input_constructor(kind)
    def construct_inputs(model: Any, **given: Any) -> dict[str, Any]:
        given = {"width": _WIDTH} | given if "width" in names else given
        if "bounds" in names and "bounds" in given:
            # BoTorch's input constructors take pairs, one for each coordinate.
            given["bounds"] = [tuple(pair) for pair in given["bounds"]]
        if kind is IntegratedLogEI:
            given = _with_baseline(**given)
        return {"models" if "models" in names else "model": model} | given

    construct_inputs.__name__ = f"construct_inputs of {kind.__name__}"
    accepted = ["model", *(name for name in names if name not in ("model", "models")), *more]
    parameter = signature(construct_inputs).parameters["model"]
    construct_inputs.__signature__ = signature(construct_inputs).replace(  # pyright: ignore
        parameters=[parameter.replace(name=name) for name in accepted]
    )


def _with_baseline(training_data: Any = None, **given: Any) -> dict[str, Any]:
    """The arguments with the training inputs as ``X_baseline``, unless it or ``best_f`` is
    given."""
    is_missing = given.get("X_baseline") is None and given.get("best_f") is None
    if is_missing and training_data is not None:
        # As for BoTorch's noisy improvement: one dataset, or one for each outcome.
        datasets = training_data.values() if isinstance(training_data, dict) else [training_data]
        given["X_baseline"] = next(iter(datasets)).X
    return given


for _kind in (
    EnlargedUpperConfidenceBound,
    LowerConfidenceBound,
    MaxVariance,
    OptimisticModelUCB,
    ExpectedUCB,
    StableUCB,
):
    _register(_kind)
_register(IntegratedLogEI, ("training_data",))
