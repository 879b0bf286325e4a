"""The models of a strategy whose hyperparameters are fitted to its data."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from gpytorch.kernels import MaternKernel, ScaleKernel
from torch import Tensor

from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.hyperparameters.feature_kernel import FeatureKernel
from botorch_ext.hyperparameters.fitted import (
    Fitted,
    Hyperparameters,
    most_probable,
    prior_mode,
)
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.records import plain
from botorch_ext.state import State
from botorch_ext.strategies.adaptive.bounds import Models


class Refits(State):
    """The hyperparameters that a strategy plays with, and when they are fitted again.

    Raises:
        ValueError: If the dimension of the contexts is unknown.
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
        #: The number of fits so far, and the number of observations of the latest fit.
        self.num_fits = self.num_data = 0

    def is_due(self, num_data: int) -> bool:
        """Whether the next ask fits."""
        return self.fitted.num_due(num_data) > self.fitted.num_due(self.num_data)

    def before_any(self, Y: Tensor) -> Hyperparameters:
        """The hyperparameters before the first fit: the mode of the prior, scaled to ``Y``."""
        return prior_mode(self.fitted.prior, self._num_columns, Y)

    def fit(self, X: Tensor, Y: Tensor) -> Hyperparameters:
        """The hyperparameters fitted to ``n x d`` joint rows and their ``n`` values."""
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

    def models(self, X: Tensor) -> Models:
        """The model of `model` as a set of one candidate, ready to play on the domain."""
        return on_domain(CandidateModels.of(self.model(X)), self._domain, self._space)

    def model(self, X: Tensor) -> KernelGP:
        """The model with the current hyperparameters, without data.

        Args:
            X: ``n x d`` joint rows that are told, which give the range of contexts whose domain is
                unknown.
        """
        like, numbers = self._domain.like, self.current
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

    def check(self, numbers: Hyperparameters, name: str) -> None:
        """Raises a ValueError unless a recorded fit has one lengthscale for each column."""
        if len(numbers.lengthscales) != self._num_columns:
            raise ValueError(
                f"lengthscales in the {name} must be a list of {self._num_columns} numbers, got "
                f"{list(numbers.lengthscales)}"
            )

    def adopt(self, numbers: Hyperparameters, num_data: int | None) -> None:
        """Plays with other hyperparameters from now on: those of a fit to ``num_data``
        observations, or with None those of the prior."""
        self.current = numbers
        if num_data is not None:
            self.num_data, self.num_fits = num_data, self.num_fits + 1

    def forget(self) -> None:
        """Plays with the mode of the prior until the next fit, which starts from scratch."""
        self.num_fits = self.num_data = 0

    def summary(self) -> dict[str, Any]:
        """The entry ``fit`` of the report."""
        return plain(self.current) | {"num_fits": self.num_fits, "num_data": self.num_data}

    def _inputs(self, X: Tensor) -> Inputs:
        return Inputs.of(self._domain, self._space, X)


def on_domain(models: CandidateModels, domain: Domain, space: ContextSpace | None) -> Models:
    """A copy of models that a strategy may change; on a finite set without contexts, models of the
    candidates."""
    if isinstance(domain, FiniteSet) and space is None:
        return models.on(domain.points, domain.shard)
    return deepcopy(models)
