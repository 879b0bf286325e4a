"""Hyperparameter samples of BoTorch models."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.transforms.input import AffineInputTransform
from botorch.models.transforms.outcome import Standardize
from gpytorch.constraints import Positive
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    PiecewisePolynomialKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.means import ConstantMean, ZeroMean
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import host
from botorch_ext.kernels.batching import selected_kernel
from botorch_ext.kernels.structure import composition, plain_kernel, set_lengthscale

# Exact types, since a subclass may combine its parts in another way.
_COMPOSED = (AdditiveKernel, ProductKernel, ScaleKernel)

# A kernel, a noise variance (0-dim) and a constant prior mean (0-dim).
Draw = tuple[Kernel, Tensor, Tensor]


@torch.no_grad()
def hyperparameter_draws(model: GPyTorchModel, num_models: int | None) -> list[Draw]:
    """Hyperparameter samples in the units of the untransformed inputs and observations.

    Args:
        model: As for `CandidateModels.from_posterior_samples`.
        num_models: The number of samples, as there.

    Returns:
        Triples of a kernel, a noise variance and a constant prior mean.

    Raises:
        ValueError: As there.
    """
    if num_models is not None:
        num_models = whole_number(num_models, "num_models", least=1)
    kernel: Any = getattr(model, "covar_module", None)
    if not isinstance(kernel, Kernel):
        raise ValueError(
            "model must be a fully Bayesian GP that is fitted, got a "
            f"{type(model).__name__} without a kernel"
        )
    if not kernel.batch_shape:
        raise ValueError(
            "model must hold samples of its hyperparameters, as a fully Bayesian GP fitted by MCMC "
            f"does, got a {type(model).__name__}: credible_ucb and integrated_ei draw their own "
            "(see Particles)"
        )
    if model.num_outputs != 1:
        raise ValueError(f"model must have one output, got {model.num_outputs}")
    targets: Any = model.train_targets
    like: Tensor = next(kernel.parameters()) if targets is None else targets
    to_units = _units(model, like)
    return [to_units(*draw) for draw in _mcmc_draws(model, kernel, like, num_models)]


def _mcmc_draws(model: Any, kernel: Kernel, like: Tensor, num_models: int | None) -> list[Draw]:
    if len(kernel.batch_shape) != 1:
        raise ValueError(
            f"model must have one batch dimension of draws, got {tuple(kernel.batch_shape)}"
        )
    (count,) = kernel.batch_shape
    wanted = count if num_models is None else num_models
    if wanted > count:
        raise ValueError(f"num_models must be at most {count}, the number of draws, got {wanted}")
    noise = model.likelihood.noise.reshape(count, -1)
    if not bool((noise == noise[:, :1]).all()):
        raise ValueError("model must have the same noise variance at every point")
    constants = _constant(model.mean_module, like).reshape(-1).expand(count)
    plain = plain_kernel(kernel, like)
    kept = host.linspace(0, count - 1, wanted, dtype=torch.float64).round().long().tolist()
    return [
        (deepcopy(selected_kernel(plain, i)), noise[i, 0].clone().to(like), constants[i].clone())
        for i in kept
    ]


def _constant(mean: Any, like: Tensor) -> Tensor:
    if type(mean) is ZeroMean:
        return like.new_zeros(())
    if type(mean) is ConstantMean:
        return mean.constant.detach().to(like)
    raise ValueError(f"model must have a constant prior mean, got a {type(mean).__name__}")


# --- units ------------------------------------------------------------------------------------


def _units(model: Any, like: Tensor) -> Any:
    """What takes a draw from the transformed space of a model to that of its data."""
    inputs = getattr(model, "input_transform", None)
    outcome = getattr(model, "outcome_transform", None)
    if inputs is not None and not (isinstance(inputs, AffineInputTransform) and not inputs.reverse):
        raise ValueError(
            "model must have no input transform, or Normalize or InputStandardize, got a "
            f"{type(inputs).__name__}"
        )
    if outcome is not None and type(outcome) is not Standardize:
        raise ValueError(
            f"model must have no outcome transform, or Standardize, got a {type(outcome).__name__}"
        )

    def to_units(kernel: Kernel, noise: Tensor, constant: Tensor) -> Draw:
        if inputs is not None:
            _stretch(kernel, _coefficients(inputs, like))
        if outcome is None:
            return kernel, noise, constant
        shift, scale = (v.detach().to(like).reshape(()) for v in (outcome.means, outcome.stdvs))
        return _scaled(kernel, scale.square()), noise * scale.square(), shift + scale * constant

    return to_units


def _coefficients(transform: AffineInputTransform, like: Tensor) -> Tensor:
    given = transform.coefficient.detach().to(like).reshape(-1)
    coefficients = like.new_ones(transform._d)
    coefficients[getattr(transform, "indices", slice(None))] = given
    return coefficients


def _stretch(kernel: Kernel, coefficients: Tensor) -> None:
    """k(x / c) as the kernel of x, in place: stationary kernels do not see the offset."""
    made = composition(kernel)
    if made and type(kernel) in _COMPOSED and kernel.active_dims is None:
        for part in made.parts:
            _stretch(part, coefficients)
        return
    if type(kernel) not in (RBFKernel, MaternKernel, PiecewisePolynomialKernel):
        raise ValueError(
            "model must have RBF or Matern kernels where its inputs are transformed, got a "
            f"{type(kernel).__name__}"
        )
    seen = coefficients if kernel.active_dims is None else coefficients[kernel.active_dims]
    lengthscale = kernel.lengthscale.reshape(-1) * seen
    kernel.register_constraint("raw_lengthscale", Positive())
    kernel.to(coefficients)
    set_lengthscale(kernel, lengthscale)


def _scaled(kernel: Kernel, factor: Tensor) -> Kernel:
    if type(kernel) is ScaleKernel and kernel.active_dims is None:
        outputscale = kernel.outputscale * factor
        kernel.register_constraint("raw_outputscale", Positive())
    else:
        kernel, outputscale = ScaleKernel(kernel), factor
    kernel = kernel.to(factor).requires_grad_(False)
    kernel.outputscale = outputscale
    return kernel
