"""Hyperparameter samples of BoTorch models."""

from __future__ import annotations

import warnings
from copy import deepcopy
from typing import Any

import torch
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.transforms.input import AffineInputTransform
from botorch.models.transforms.outcome import Standardize
from gpytorch import Module
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
from gpytorch.priors import Prior
from torch import Tensor

from botorch_ext import host
from botorch_ext.checks import whole_number
from botorch_ext.exceptions import PriorDrawsWarning
from botorch_ext.kernels.batching import selected_kernel
from botorch_ext.kernels.structure import composition, plain_kernel, set_lengthscale
from botorch_ext.models.resampling import effective_size, resampled

_NUM_PRIOR_DRAWS = 16
# The least number of samples from priors that are weighted by the data, and the least effective
# size of the resampled ones, as a share of their number.
_NUM_WEIGHED, _LEAST_SHARE = 512, 0.25
# A prior contradicts the constraint of its parameter if so many samples in a row violate it.
_MOST_TRIES = 1000

# Exact types, since a subclass may combine its parts in another way.
_COMPOSED = (AdditiveKernel, ProductKernel, ScaleKernel)

# A kernel, a noise variance (0-dim) and a constant prior mean (0-dim).
Draw = tuple[Kernel, Tensor, Tensor]


@torch.no_grad()
def hyperparameter_draws(
    model: GPyTorchModel, num_models: int | None, seed: int, conditioned: bool = True
) -> list[Draw]:
    """Hyperparameter samples in the units of the untransformed inputs and observations.

    Args:
        model: As for `CandidateModels.from_posterior_samples`.
        num_models: The number of samples, as there.
        seed: The seed of samples from priors.
        conditioned: Whether samples from priors are resampled by the data of the model.

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
            f"model must be a GP with hyperparameters, fitted if it is fully Bayesian, got a "
            f"{type(model).__name__} without a kernel"
        )
    if model.num_outputs != 1:
        raise ValueError(f"model must have one output, got {model.num_outputs}")
    targets: Any = model.train_targets
    like: Tensor = next(kernel.parameters()) if targets is None else targets
    to_units = _units(model, like)
    if kernel.batch_shape:
        draws = _mcmc_draws(model, kernel, like, num_models)
    else:
        num_models = num_models or _NUM_PRIOR_DRAWS
        if conditioned:
            draws = _conditioned_draws(model, num_models, seed, like)
        else:
            draws = _prior_draws(model, num_models, seed, like)
    return [to_units(*draw) for draw in draws]


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


def _conditioned_draws(model: Any, num_models: int, seed: int, like: Tensor) -> list[Draw]:
    """Samples from the posterior given the data of the model: samples from the prior that are
    resampled by the marginal likelihood."""
    if model.train_targets is None or not len(model.train_targets):
        message = "model has no data, so its hyperparameters are sampled from their priors alone"
        warnings.warn(message, PriorDrawsWarning, stacklevel=5)
        return _prior_draws(model, num_models, seed, like)
    draws = _prior_draws(model, max(_NUM_WEIGHED, 8 * num_models), seed, like)
    was_training = model.training
    model.eval()  # which transforms the inputs
    X, y = model.train_inputs[0], model.train_targets
    model.train(was_training)
    evidence = torch.stack([_evidence(draw, X, y) for draw in draws])
    effective = float(effective_size(evidence.double()).nan_to_num(0.0))
    if effective < max(2.0, num_models * _LEAST_SHARE):
        message = (
            f"almost no sample from the priors of model explains its data: {num_models} samples "
            f"have an effective size of {effective:.3g}; use a fully Bayesian model fitted by MCMC"
        )
        warnings.warn(message, PriorDrawsWarning, stacklevel=5)
    if not effective:
        return draws[:num_models]
    rows = resampled(evidence.double(), num_models, torch.Generator().manual_seed(seed))
    # A sample that comes twice is copied, since later steps change kernels in place.
    return [(deepcopy(draws[row][0]), *draws[row][1:]) for row in rows.tolist()]


def _evidence(draw: Draw, X: Tensor, y: Tensor) -> Tensor:
    """The log marginal likelihood up to a constant; -inf if rounding prevents a factorisation."""
    kernel, noise, constant = draw
    K = kernel(X).to_dense().clone()
    K.diagonal().add_(noise)
    L, failed = torch.linalg.cholesky_ex(K)
    z = torch.linalg.solve_triangular(L, (y - constant).unsqueeze(-1), upper=False)
    value = -0.5 * z.square().sum() - L.diagonal().log().sum()
    return torch.where((failed == 0) & value.isfinite(), value, -torch.inf)


def _prior_draws(model: Any, num_models: int, seed: int, like: Tensor) -> list[Draw]:
    # Copied together: they may share priors.
    holder = torch.nn.ModuleList([model.covar_module, model.likelihood, model.mean_module])
    holder = deepcopy(holder)
    modules: list[Any] = [module for module in holder.modules() if isinstance(module, Module)]
    priors = [(module, name, *rest) for module in modules for name, rest in module._priors.items()]
    if not priors:
        raise ValueError(
            "model must hold draws of its hyperparameters or priors on them, got a "
            f"{type(model).__name__} without either"
        )
    kernel, likelihood, mean = holder
    draws = []
    devices = [like.device] if like.device.type == "cuda" else []
    with torch.random.fork_rng(devices):  # GPyTorch's priors take no generator
        torch.manual_seed(seed)
        for _ in range(num_models):
            for module, name, prior, value_of, set_value in priors:
                if set_value is None:
                    raise ValueError(f"prior {name!r} of model must be able to set its parameter")
                _draw(module, name, prior, value_of(module), set_value)
            noise = likelihood.noise.reshape(-1)  # pyright: ignore
            if not bool((noise == noise[0]).all()):
                raise ValueError("model must have the same noise variance at every point")
            constant = _constant(mean, like).reshape(()).clone()
            draws.append((plain_kernel(kernel, like), noise[0].clone().to(like), constant))  # pyright: ignore
    return draws


def _draw(module: Module, name: str, prior: Prior, value: Tensor, set_value: Any) -> None:
    """Draws until the constraint of the parameter is satisfied: the prior given the constraint."""
    own = len(prior.batch_shape) + len(prior.event_shape)
    shape = value.shape[: value.ndim - own]
    for _ in range(_MOST_TRIES):
        drawn = prior.sample(shape).to(value)
        try:
            set_value(module, drawn)
        except RuntimeError:  # GPyTorch's answer to what a constraint rules out
            continue
        if all(bool(torch.isfinite(p).all()) for p in module.parameters()):
            return
    raise ValueError(
        f"prior {name!r} of model must have mass where its constraint holds, got none in "
        f"{_MOST_TRIES} draws"
    )


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
