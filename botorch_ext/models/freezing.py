"""Freezing of fitted BoTorch models: what a `KernelGP` takes over from one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from botorch.models.gpytorch import GPyTorchModel, MultiTaskGPyTorchModel
from gpytorch.models import ExactGP
from torch import Tensor


def frozen_parts(model: GPyTorchModel) -> tuple[dict[str, Any], Tensor, Tensor]:
    """The arguments of a `KernelGP` with the kernel, noise variance, prior mean and transforms of a
    fitted model, and its transformed data, ``n x d`` and ``n``; arguments and errors as for
    `KernelGP.from_botorch`."""
    if not isinstance(model, ExactGP) or isinstance(model, MultiTaskGPyTorchModel):
        raise ValueError(
            f"model must be an exact GP of a single task, got a {type(model).__name__}"
        )
    if model.num_outputs != 1:
        raise ValueError(f"model must have one output, got {model.num_outputs}")
    was_training = model.training
    model.eval()  # which transforms the inputs
    X, y = model.train_inputs[0].detach(), model.train_targets.detach()  # pyright: ignore
    model.train(was_training)
    if X.ndim != 2:
        raise ValueError(f"model must have unbatched training data, got shape {tuple(X.shape)}")
    noise = model.likelihood.noise.detach().reshape(-1)  # pyright: ignore
    if not bool((noise == noise[0]).all()):
        raise ValueError("model must have the same noise variance at every point")
    arguments = {
        "kernel": model.covar_module,
        "noise_variance": noise[0].clone(),
        "mean": model.mean_module,
        "input_transform": deepcopy(getattr(model, "input_transform", None)),
        "outcome_transform": deepcopy(getattr(model, "outcome_transform", None)),
        "dtype": X.dtype,
        "device": X.device,
    }
    return arguments, X, y
