"""The task column in the inputs of multi-task models."""

from __future__ import annotations

from typing import Any

import torch
from botorch.models.gpytorch import MultiTaskGPyTorchModel
from torch import Tensor

from botorch_ext.acquisition.input_checks import inputs_of


def without_task(model: Any, X: Tensor) -> Tensor:
    """The points without their task column.

    Args:
        model: Any model.
        X: The points ``... x d``, as its training inputs.

    Returns:
        ``... x (d - 1)`` for a multi-task model, else ``X``.
    """
    if not isinstance(model, MultiTaskGPyTorchModel):
        return X
    column: Any = model._task_feature
    return torch.cat([X[..., :column], X[..., column + 1 :]], dim=-1)


def with_task(model: Any, X: Tensor) -> Tensor:
    """The points with a task column, once for each output task of a model.

    Args:
        model: Any model.
        X: The points ``n x d``, with or without the task column.

    Returns:
        ``X`` if it has the task column, or if the model is not a multi-task model; else
        ``(m n) x (d + 1)`` for m output tasks.
    """
    if not isinstance(model, MultiTaskGPyTorchModel) or X.shape[-1] != model.num_non_task_features:
        return X
    column: Any = model._task_feature
    tasks: Any = model._output_tasks
    before, after = X[:, :column], X[:, column:]
    rows = [torch.cat([before, X.new_full((len(X), 1), task), after], dim=-1) for task in tasks]
    return torch.cat(rows)


def mean_noise(model: Any, X: Tensor) -> Tensor:
    """The mean noise variance of the training data of a model with fixed noise; of a multi-task
    model that of the same task.

    Args:
        model: A model with a fixed-noise likelihood.
        X: The points ``n x d``, with the task column.

    Returns:
        ``... x 1 x m`` for m outputs, or ``... x n x 1`` for a multi-task model.
    """
    noise = model.likelihood.noise_covar.noise
    inputs = inputs_of(model)
    if isinstance(model, MultiTaskGPyTorchModel) and inputs is not None:
        column: Any = model._task_feature
        same = X[..., column, None] == inputs[..., None, :, column]
        same = same | ~same.any(dim=-1, keepdim=True)  # the mean of all for a task without data
        mean = (same * noise.unsqueeze(-2)).sum(dim=-1) / same.sum(dim=-1)
        return mean.unsqueeze(-1)
    mean = noise.mean(dim=-1)
    mean = mean.unsqueeze(-1) if model.num_outputs == 1 else mean
    return mean.unsqueeze(-2)
