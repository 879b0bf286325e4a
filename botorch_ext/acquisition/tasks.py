"""Tasks: the column of the inputs that says which task of a multi-task model a point is of."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.gpytorch import MultiTaskGPyTorchModel
from torch import Tensor


def without_task(model: Any, X: Tensor) -> Tensor:
    """Points that stand for the output tasks of a model.

    Args:
        model: Any model.
        X: ``... x d``, as its training inputs.

    Returns:
        ``... x (d - 1)`` where the model is one of several tasks, else ``X``.
    """
    if not isinstance(model, MultiTaskGPyTorchModel):
        return X
    column: Any = model._task_feature
    return torch.cat([X[..., :column], X[..., column + 1 :]], dim=-1)
