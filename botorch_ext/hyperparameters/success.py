"""The probability that a trial succeeds, learnt from the trials that did and those that failed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import torch
from torch import Tensor

from botorch_ext.domains.chunks import in_chunks
from botorch_ext.hyperparameters.density import split
from botorch_ext.hyperparameters.ensemble import kernel_of
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.models.downdate import log_evidence
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import Immutable

# The noise variance of labels.
_NOISE = 0.1
# The largest lengthscale, in sides of the domain. Success may depend on a column on which the
# values hardly depend. Of caps from 0.3 to 100, 0.5 and 0.3 predicted success best.
_LONGEST = 0.5


@dataclass(frozen=True, eq=False)
class SuccessModel(Immutable):
    """The probability of success, averaged over hyperparameter samples.

    The GP of each sample has its kernel, with lengthscales of at most half a side, and as
    observations labels with noise: 1 for a trial that succeeded, -1 for one that failed. The
    probability is Phi((c + mean) / sqrt(std^2 + noise variance)), that of a positive label. The
    constant c makes it (s + 1) / (n + 2) far from all of n trials of which s succeeded, so that one
    early failure closes little of the domain. A sample weighs as much as the labels are likely
    under it.

    Source: Rasmussen and Williams 2006, section 6.5 (least-squares classification).

    Args:
        model: The batch of m models of labels less c, as functions of features.
        constant: The constant c.
        log_weights: The logarithms of the weights of the samples, ``m``.
    """

    model: KernelGP
    constant: float
    log_weights: Tensor

    @classmethod
    @torch.no_grad()
    def of(
        cls, parameters: Tensor, inputs: Inputs, features: Tensor, succeeded: Tensor
    ) -> SuccessModel:
        """The model given trials.

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
        return cls(model, constant, log_evidence(model.factor).log_softmax(dim=0))

    @torch.no_grad()
    def log_probability(self, F: Tensor) -> Tensor:
        """The log probabilities at ``n x p`` features, ``n``."""
        values = []
        for chunk in in_chunks(F, len(self.log_weights) * self.model.num_observations):
            mean, std = self.model.mean_and_std(chunk)
            values.append(self._averaged((self.constant + mean) / (std.square() + _NOISE).sqrt()))
        return torch.cat(values)

    @torch.no_grad()
    def log_probability_and_gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """The log probabilities at ``n x p`` features, ``n``, and their gradients, ``n x p``."""
        mean, std, by_mean, by_std = self.model.mean_std_and_gradients(F)
        spread = (std.square() + _NOISE).sqrt()
        z = (self.constant + mean) / spread
        value = self._averaged(z)
        slope = (by_mean - (z * std / spread).unsqueeze(-1) * by_std) / spread.unsqueeze(-1)
        # The weights times the normal densities at z, over the probability.
        shares = (self.log_weights.unsqueeze(-1) - 0.5 * z.square() - value).exp()
        return value, (shares.unsqueeze(-1) * slope).sum(dim=0) / math.sqrt(2 * math.pi)

    def _averaged(self, z: Tensor) -> Tensor:
        """The logarithms of the averages of Phi at ``m x n`` numbers."""
        return (torch.special.log_ndtr(z) + self.log_weights.unsqueeze(-1)).logsumexp(dim=0)
