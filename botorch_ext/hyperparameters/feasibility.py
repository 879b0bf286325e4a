"""The probability that a trial succeeds, and that its outcomes are within their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.hyperparameters.density import split
from botorch_ext.hyperparameters.ensemble import Ensemble, kernel_of
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.models.downdate import log_evidence
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import Immutable

# The noise variance of labels.
_NOISE = 0.1
# The largest lengthscale of labels, in sides of the domain. Success may depend on a column on which
# the values hardly depend. Of caps from 0.3 to 100, 0.5 and 0.3 predicted success best.
_LONGEST = 0.5


class LogProbability(Protocol):
    """The logarithm of a probability, as a function of features."""

    def log_probability(self, F: Tensor) -> Tensor:
        """The log probabilities at ``n x p`` features, ``n``."""
        ...

    def log_probability_and_gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """The log probabilities at ``n x p`` features, ``n``, and their gradients, ``n x p``."""
        ...


@dataclass(frozen=True, eq=False)
class Feasibility(Immutable):
    """The probability that a quantity is positive, averaged over hyperparameter samples:
    Phi((c + mean) / sqrt(std^2 + noise variance)) for each of them.

    Args:
        model: A batch of m models of the quantity less c, as functions of features.
        constants: The constant c of each model, ``m x 1``.
        noise_variance: The noise variance, if the noise may change the sign.
        log_weights: The logarithms of the weights of the samples, ``m``.
    """

    model: KernelGP
    constants: Tensor
    noise_variance: float
    log_weights: Tensor

    @classmethod
    @torch.no_grad()
    def of_trials(
        cls, parameters: Tensor, inputs: Inputs, features: Tensor, succeeded: Tensor
    ) -> Feasibility:
        """The probability of success, given trials.

        The GP of each sample has its kernel, with lengthscales of at most half a side, and as
        observations labels with noise: 1 for a trial that succeeded, -1 for one that failed. A
        positive label means success. The constant c makes the probability (s + 1) / (n + 2) far
        from all of n trials of which s succeeded, so that one early failure closes little of the
        domain. A sample weighs as much as the labels are likely under it.

        Source: Rasmussen and Williams 2006, section 6.5 (least-squares classification).

        Args:
            parameters: The parameters of the hyperparameter samples, ``m x dim``.
            inputs: The map from joint rows to features.
            features: The features of the trials, ``n x p``.
            succeeded: Which of the trials succeeded, ``n``.
        """
        n, s = len(succeeded), int(succeeded.sum())
        constant = math.sqrt(1 + _NOISE) * NormalDist().inv_cdf((s + 1) / (n + 2))
        parameters = parameters.clone()
        split(parameters)[0].clamp_(max=math.log(_LONGEST))
        kernel = kernel_of(parameters, inputs)
        model = KernelGP(kernel, _NOISE, dtype=features.dtype, device=features.device)
        model.add(features, torch.where(succeeded, 1.0, -1.0).to(features) - constant)
        weights = log_evidence(model.factor).log_softmax(dim=0)
        return cls(model, torch.full_like(weights, constant).unsqueeze(-1), _NOISE, weights)

    @classmethod
    def within_limit(cls, ensemble: Ensemble) -> Feasibility:
        """The probability that a quantity, without its noise, is within its limit.

        Args:
            ensemble: The models of its transformed margin, see `Outcomes.of_margins`.
        """
        zero = -ensemble.outcomes.center / ensemble.outcomes.scale
        m = len(ensemble.constants)
        weights = ensemble.constants.new_full((m,), -math.log(m))
        return cls(ensemble.model, (ensemble.constants - zero).unsqueeze(-1), 0.0, weights)

    @torch.no_grad()
    def log_probability(self, F: Tensor) -> Tensor:
        values = []
        for chunk in in_chunks(F, len(self.log_weights) * self.model.num_observations):
            mean, std = self.model.mean_and_std(chunk)
            spread = (std.square() + self.noise_variance).sqrt()
            values.append(self._averaged((self.constants + mean) / spread))
        return torch.cat(values)

    @torch.no_grad()
    def log_probability_and_gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        mean, std, by_mean, by_std = self.model.mean_std_and_gradients(F)
        spread = (std.square() + self.noise_variance).sqrt()
        z = (self.constants + mean) / spread
        value = self._averaged(z)
        slope = (by_mean - (z * std / spread).unsqueeze(-1) * by_std) / spread.unsqueeze(-1)
        # The weights times the normal densities at z, over the probability.
        shares = (self.log_weights.unsqueeze(-1) - 0.5 * z.square() - value).exp()
        return value, (shares.unsqueeze(-1) * slope).sum(dim=0) / math.sqrt(2 * math.pi)

    def _averaged(self, z: Tensor) -> Tensor:
        """The logarithms of the averages of Phi at ``m x n`` numbers."""
        return (torch.special.log_ndtr(z) + self.log_weights.unsqueeze(-1)).logsumexp(dim=0)


@dataclass(frozen=True)
class AllOf(Immutable):
    """The probability that independent events happen together.

    Args:
        parts: The log probabilities of the events, at least one.
    """

    parts: Sequence[LogProbability]

    def log_probability(self, F: Tensor) -> Tensor:
        return torch.stack([part.log_probability(F) for part in self.parts]).sum(dim=0)

    def log_probability_and_gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        both = [part.log_probability_and_gradient(F) for part in self.parts]
        values, gradients = (torch.stack(each).sum(dim=0) for each in zip(*both, strict=True))
        return values, gradients
