"""Snapshots of models, to see whether their data or hyperparameters changed."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.model import Model, ModelList
from torch import Tensor

from botorch_ext.models.kernel_gp import KernelGP


class Snapshot:
    """The data and the hyperparameters of a model when the snapshot was made.

    Args:
        model: A model of one or several outputs, or a list of models.
    """

    def __init__(self, model: Model) -> None:
        self._data = _data_of(model)
        # Values, since GPyTorch sets hyperparameters in ways that do not change their version.
        self._hyperparameters = [tensor.clone() for tensor in _hyperparameters_of(model)]

    def is_of(self, model: Model) -> bool:
        """Whether a model has not changed since the snapshot."""
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
    """The tensors of the data of a model, each with the number of rows in use and its version."""
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
    """The hyperparameters of a model, without those of a `KernelGP`, which never change."""
    if isinstance(model, ModelList):
        return [tensor for part in model.models for tensor in _hyperparameters_of(part)]
    if isinstance(model, KernelGP):
        return []
    return [parameter.detach() for parameter in model.parameters()]
