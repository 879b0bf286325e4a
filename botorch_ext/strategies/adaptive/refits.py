"""Refits: the models of a strategy whose hyperparameters come from its data."""

from __future__ import annotations

from typing import Any

from gpytorch.kernels import MaternKernel, ScaleKernel
from torch import Tensor

from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.feature_kernel import FeatureKernel
from botorch_ext.hyperparameters.fitted import (
    Fitted,
    Hyperparameters,
    most_probable,
    prior_mode,
)
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import State


class Refits(State):
    """The hyperparameters a strategy plays by, and when they are fitted again.

    Args:
        fitted: The prior and the schedule.
        domain: Of the actions.
        space: Of the contexts, or None.

    Raises:
        ValueError: Contexts of unknown size.
    """

    def __init__(self, fitted: Fitted, domain: Domain, space: ContextSpace | None) -> None:
        if space is not None and space.dim is None:
            raise ValueError(
                "context_domain must be a domain or the dimension of the contexts with a Fitted "
                "kernel, got None"
            )
        self.fitted, self._domain, self._space = fitted, domain, space
        nothing = domain.like.new_zeros(0, domain.dim)
        self._num_columns = self._inputs(nothing).num_columns
        self.current = self.before_any(domain.like.new_zeros(0))
        #: Fits so far, and how many observations the latest was to.
        self.num_fits = self.num_data = 0

    def is_due(self, num_data: int) -> bool:
        """Whether the next ask fits."""
        return self.fitted.num_due(num_data) > self.fitted.num_due(self.num_data)

    def before_any(self, Y: Tensor) -> Hyperparameters:
        """What is played by before the first fit."""
        return prior_mode(self.fitted.prior, self._num_columns, Y)

    def fit(self, X: Tensor, Y: Tensor) -> Hyperparameters:
        """The fit to ``n x d`` joint rows and their ``n`` values."""
        if bool((Y == Y[0]).all()):
            return self.before_any(Y)
        inputs, now = self._inputs(X), self.current
        near = (*now.lengthscales, now.noise_variance / now.outputscale)
        return most_probable(
            self.fitted.prior,
            inputs.features(X),
            Y,
            inputs.groups,
            near if self.num_fits else None,
        )

    def model(self, numbers: Hyperparameters, X: Tensor) -> KernelGP:
        """The model with these hyperparameters, without data.

        Args:
            numbers: The hyperparameters.
            X: ``n x d`` joint rows that are told: contexts of which no domain is known range as far
                as these.
        """
        like = self._domain.like
        inputs, lengthscales = self._inputs(X), like.new_tensor(numbers.lengthscales)
        if inputs.sides is None:
            lengthscales = inputs.of_features(lengthscales)
        else:
            lengthscales = lengthscales * inputs.sides
        matern = MaternKernel(nu=2.5, ard_num_dims=len(lengthscales)).to(like)
        matern.lengthscale = lengthscales
        kernel = ScaleKernel(FeatureKernel(matern, inputs) if inputs.sides is None else matern)
        kernel = kernel.to(like)
        kernel.outputscale = like.new_tensor(numbers.outputscale)  # a float would pass by float32
        return KernelGP(
            kernel,
            numbers.noise_variance,
            mean=numbers.mean,
            dtype=like.dtype,
            device=like.device,
        )

    def recorded(self, info: dict[str, Any], name: str) -> Hyperparameters:
        """The fit that a trial records, or a ValueError."""
        return Hyperparameters.from_record(info["fit"], self._num_columns, name)

    def adopt(self, numbers: Hyperparameters, num_data: int) -> None:
        """Plays by a fit to so many observations from here on."""
        self.current, self.num_data = numbers, num_data
        self.num_fits += 1

    def forget(self) -> None:
        """Plays by the mode of the prior until the next fit, which starts anew."""
        self.num_fits = self.num_data = 0

    def summary(self) -> dict[str, Any]:
        """What the report says."""
        return self.current.record() | {"num_fits": self.num_fits, "num_data": self.num_data}

    def _inputs(self, X: Tensor) -> Inputs:
        return Inputs.of(self._domain, self._space, X)
