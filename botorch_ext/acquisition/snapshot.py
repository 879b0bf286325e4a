"""Snapshots: whether a model is still what it was, its data and its hyperparameters."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.model import Model, ModelList
from torch import Tensor

from botorch_ext.models.kernel_gp import KernelGP


class Snapshot:
    """What a model was when the snapshot was made.

    Args:
        model: Of one or several outputs, or a list of models.
    """

    def __init__(self, model: Model) -> None:
        self._data = _data_of(model)
        # Values, for GPyTorch sets hyperparameters in ways that count no version.
        self._hyperparameters = [tensor.clone() for tensor in _hyperparameters_of(model)]

    def is_of(self, model: Model) -> bool:
        """Whether a model is as it was."""
        data, hyperparameters = _data_of(model), _hyperparameters_of(model)
        return (
            len(data) == len(self._data)
            and len(hyperparameters) == len(self._hyperparameters)
            and all(
                new[0] is old[0] and new[1:] == old[1:]
                for new, old in zip(data, self._data, strict=True)
            )
            and all(
                new.dtype == old.dtype and new.device == old.device and torch.equal(new, old)
                for new, old in zip(hyperparameters, self._hyperparameters, strict=True)
            )
        )


def _data_of(model: Any) -> list[tuple[Any, int, int]]:
    """The tensors of the data of a model, how many rows of them are in use, and how often they were
    written."""
    if isinstance(model, ModelList):
        return [entry for part in model.models for entry in _data_of(part)]
    if isinstance(model, KernelGP):
        tensors, count = [model.factor.y], model.num_observations
    else:
        inputs, targets = (getattr(model, name, None) for name in ("train_inputs", "train_targets"))
        tensors, count = [*(inputs or ()), targets], 0
    tensors = [tensor for tensor in tensors if isinstance(tensor, Tensor)]
    return [(t, count, 0 if t.is_inference() else t._version) for t in tensors]


def _hyperparameters_of(model: Any) -> list[Tensor]:
    """The hyperparameters of a model; those of a `KernelGP` stay as they are."""
    if isinstance(model, ModelList):
        return [tensor for part in model.models for tensor in _hyperparameters_of(part)]
    if isinstance(model, KernelGP):
        return []
    return [parameter.detach() for parameter in model.parameters()]
