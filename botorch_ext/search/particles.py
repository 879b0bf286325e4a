"""The highest upper bound and the average mean of GPs with different hyperparameters."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.models.kernel_gp import KernelGP


class HighestOfParticles:
    """The maximum over m models of mean + width * std, with gradients in closed form.

    Args:
        model: A `KernelGP` of features with one batch dimension of m models, zero mean and a kernel
            that has gradients in closed form.
        constants: The ``m`` constants that are added to the means.
        width: The multiplier of the standard deviation.
        features: The map from ``n x d`` points to features, such as an
            `botorch_ext.hyperparameters.inputs.ActionFeatures`.
    """

    def __init__(self, model: KernelGP, constants: Tensor, width: float, features: Any) -> None:
        self._model, self._constants, self._width = model, constants.unsqueeze(-1), width
        self._features = features

    def value(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` points."""
        chunks = in_chunks(X, len(self._constants) * self._model.num_observations)
        return torch.cat([self._value(chunk) for chunk in chunks])

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``n`` values and the ``n x d`` gradients at ``n x d`` points."""
        F = self._features.at(X)
        mean, std, by_mean, by_std = self._model.mean_std_and_gradients(F)
        value, which = (mean + self._constants + self._width * std).max(dim=0)
        gradient = torch.add(by_mean, by_std, alpha=self._width)
        rows = torch.arange(len(X), device=X.device)
        return value, self._features.pullback(X, gradient[which, rows])

    @torch.no_grad()
    def best_at(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The position of the first model with the highest bound at ``n x d`` points, and its mean
        and standard deviation, ``n`` each."""
        mean, std = self._moments(X)
        which = (mean + self._width * std).argmax(dim=0, keepdim=True)
        return which[0], mean.gather(0, which)[0], std.gather(0, which)[0]

    def _value(self, X: Tensor) -> Tensor:
        mean, std = self._moments(X)
        return (mean + self._width * std).amax(dim=0)

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        mean, std = self._model.mean_and_std(self._features.at(X))
        return mean + self._constants, std


class AverageMean:
    """The posterior mean averaged over m models, with its gradient in closed form.

    Args:
        model: A `KernelGP` of features with one batch dimension of m models.
        features: As for `HighestOfParticles`.
    """

    def __init__(self, model: Any, features: Any) -> None:
        self._model, self._features = model, features

    def value(self, X: Tensor) -> Tensor:
        """The ``n`` values at ``n x d`` points."""
        return self._model.mean_at(self._features.at(X)).mean(dim=0)

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The ``n`` values and the ``n x d`` gradients at ``n x d`` points."""
        F = self._features.at(X)
        mean, _, gradient, _ = self._model.mean_std_and_gradients(F)
        return mean.mean(dim=0), self._features.pullback(X, gradient.mean(dim=0))
