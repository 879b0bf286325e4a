"""The probability that a trial succeeds, and that its outcomes are within their limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import torch
from torch import Tensor

from botorch_ext.domains import host
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
# The most models of limits that are evaluated, and the fewest samples of each limit.
_MOST_MODELS, _FEWEST_SAMPLES = 64, 4


@dataclass(frozen=True, eq=False)
class Feasibility(Immutable):
    """The probability that k quantities are positive, each averaged over m hyperparameter samples
    of its own: Phi((c + mean) / sqrt(std^2 + noise variance)) for each of them.

    Args:
        model: A batch of k m models of the quantities less c, as functions of features, those of
            one quantity after those of another.
        constants: The constant c of each model, ``k m x 1``.
        noise_variance: The noise variance, if the noise may change the sign.
        log_weights: The logarithms of the weights of the samples, ``k x m``.
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
        constants = torch.full_like(weights, constant).unsqueeze(-1)
        return cls(model, constants, _NOISE, weights.unsqueeze(0))

    @classmethod
    @torch.no_grad()
    def within_limits(cls, ensembles: Sequence[Ensemble]) -> Feasibility:
        """The probability that quantities, without their noise, are within their limits.

        Args:
            ensembles: The models of the transformed margin of each quantity at the same joint rows,
                see `Outcomes.of_margins`. Some of the samples count, so that 64 models or fewer are
                evaluated unless there are more than 16 quantities.
        """
        first, k = ensembles[0], len(ensembles)
        every = math.ceil(len(first.parameters) / max(_MOST_MODELS // k, _FEWEST_SAMPLES))
        parameters = torch.cat([_of_margins(each)[::every] for each in ensembles])
        m = len(parameters) // k
        F, noise = first.model.train_inputs[0], split(parameters)[1].exp()
        model = KernelGP(kernel_of(parameters, first.inputs), noise, dtype=F.dtype, device=F.device)
        model.add(F, first.outcomes.values)
        margins = torch.stack([each.outcomes.values for each in ensembles])
        model.factor.set_targets([*range(len(F))], margins.repeat_interleave(m, dim=0))
        zeros = [-each.outcomes.center / each.outcomes.scale for each in ensembles]
        of_models = host.tensor(zeros, dtype=torch.float64).to(F).repeat_interleave(m)
        constants = model.factor.subtract_constant() - of_models
        weights = constants.new_full((k, m), -math.log(m))
        return cls(model, constants.unsqueeze(-1), 0.0, weights)

    def with_pending(self, F: Tensor) -> Feasibility:
        """The same with pending points, at ``n x p`` features, whose quantities count as known."""
        if not len(F):
            return self
        model = self.model.fork()
        model.add(F, None)
        return replace(self, model=model)

    @torch.no_grad()
    def log_probabilities(self, F: Tensor) -> Tensor:
        """The log probability of each quantity at ``n x p`` features, ``k x n``."""
        values = []
        for chunk in in_chunks(F, self.log_weights.numel() * self.model.num_observations):
            mean, std = self.model.mean_and_std(chunk)
            spread = (std.square() + self.noise_variance).sqrt()
            values.append(self._averaged((self.constants + mean) / spread))
        return torch.cat(values, dim=-1)

    def log_probability(self, F: Tensor) -> Tensor:
        """The log probability that all are positive, at ``n x p`` features: ``n``."""
        return self.log_probabilities(F).sum(dim=0)

    @torch.no_grad()
    def log_probability_and_gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        """The same log probabilities, and their gradients, ``n x p``."""
        mean, std, by_mean, by_std = self.model.mean_std_and_gradients(F)
        spread = (std.square() + self.noise_variance).sqrt()
        z = (self.constants + mean) / spread
        values = self._averaged(z)
        slope = (by_mean - (z * std / spread).unsqueeze(-1) * by_std) / spread.unsqueeze(-1)
        # The weights times the normal densities at z, over the probabilities.
        log_densities = self._of_quantities(-0.5 * z.square()) - values.unsqueeze(1)
        shares = (self.log_weights.unsqueeze(-1) + log_densities).exp().flatten(0, 1)
        gradient = (shares.unsqueeze(-1) * slope).sum(dim=0) / math.sqrt(2 * math.pi)
        return values.sum(dim=0), gradient

    def _averaged(self, z: Tensor) -> Tensor:
        """The logarithms of the averages of Phi at ``k m x n`` numbers, ``k x n``."""
        logs = self._of_quantities(torch.special.log_ndtr(z)) + self.log_weights.unsqueeze(-1)
        return logs.logsumexp(dim=1)

    def _of_quantities(self, numbers: Tensor) -> Tensor:
        """Numbers of all models, ``k m x n``, as ``k x m x n``."""
        return numbers.unflatten(0, self.log_weights.shape)


def _of_margins(ensemble: Ensemble) -> Tensor:
    """The hyperparameter samples of a margin. If all margins are the same and below 0, many
    lengthscales are so long that no point could keep the limit, and are shortened."""
    parameters, outcomes = ensemble.parameters, ensemble.outcomes
    if outcomes.is_constant and outcomes.center < 0:
        parameters = parameters.clone()
        split(parameters)[0].clamp_(max=math.log(_LONGEST))
    return parameters


@dataclass(frozen=True)
class AllOf(Immutable):
    """The probability that independent events happen together, as a `Feasibility` gives it.

    Args:
        parts: The probabilities of the events, at least one.
    """

    parts: Sequence[Feasibility]

    def log_probability(self, F: Tensor) -> Tensor:
        return torch.stack([part.log_probability(F) for part in self.parts]).sum(dim=0)

    def log_probability_and_gradient(self, F: Tensor) -> tuple[Tensor, Tensor]:
        both = [part.log_probability_and_gradient(F) for part in self.parts]
        values, gradients = (torch.stack(each).sum(dim=0) for each in zip(*both, strict=True))
        return values, gradients
