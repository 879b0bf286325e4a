"""Ensemble: GPs of the same data, each with the hyperparameters of a particle."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean
from torch import Tensor, nn

from botorch_ext.hyperparameters.density import split
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.hyperparameters.outcomes import Outcomes
from botorch_ext.kernel_functions.smoothed_matern import SmoothedMatern
from botorch_ext.kernels.batching import members_of
from botorch_ext.models.ensemble_gp import EnsembleGP
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import Immutable


@dataclass(frozen=True, eq=False)
class Ensemble(Immutable):
    """m GPs of the same data, each around the constant that is likeliest for it.

    Args:
        parameters: ``m x dim``, of the particles.
        model: A batch of m models of the residuals, on features.
        constants: ``m``, what to add to their means.
        inputs: From joint rows to features.
        outcomes: The observations, and the units of the means.
        joint: ``n x (d + d_z)``, where they were made.
        pending: Rows without observations, likewise.
    """

    parameters: Tensor
    model: KernelGP
    constants: Tensor
    inputs: Inputs
    outcomes: Outcomes
    joint: Tensor
    pending: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, parameters: Tensor, inputs: Inputs, joint: Tensor, outcomes: Outcomes) -> Ensemble:
        """The ensemble of ``m x p`` particles, given ``n x (d + d_z)`` joint rows."""
        F, noise = inputs.features(joint), split(parameters)[1].exp()
        model = KernelGP(_kernel(parameters, inputs), noise, dtype=F.dtype, device=F.device)
        constants = F.new_zeros(len(parameters))
        if len(joint):
            model.add(F, outcomes.values)
            constants = model.factor.subtract_constant()
        return cls(parameters, model, constants, inputs, outcomes, joint, joint[:0])

    @property
    def num_observations(self) -> int:
        """How many observations the models are given."""
        return len(self.joint)

    @torch.no_grad()
    def to_botorch(self) -> EnsembleGP:
        """The same models as one ensemble model of BoTorch, of joint rows and in units of the
        observations; those that were squeezed or bent are as low there as they are here."""
        like = self.constants
        scale = Standardize(m=1, min_stdv=0.0).to(like)
        scale.means.fill_(self.outcomes.center)
        scale.stdvs.fill_(self.outcomes.scale)
        scale._stdvs_sq.fill_(self.outcomes.scale**2)
        scale._is_trained.fill_(True)
        mean = ConstantMean(batch_shape=like.shape).to(like)
        mean.constant = self.constants.clone()
        model = EnsembleGP(
            _botorch_kernel(self.parameters, self.inputs),
            self.model.noise_variance,
            mean,
            UnitFeatures(self.inputs),
            scale.eval(),
            dtype=like.dtype,
            device=like.device,
        )
        model.add(
            self.joint.to(like), self.outcomes.center + self.outcomes.scale * self.outcomes.values
        )
        if len(self.pending):
            model.add(self.pending.to(like), None)
        return model

    @torch.no_grad()
    def extended(self, inputs: Inputs, joint: Tensor, outcomes: Outcomes) -> Ensemble:
        """The ensemble of the same particles with more observations, O(n^2) for each.

        Args:
            inputs: From joint rows to features; where they now say something else of the rows that
                the models have, these are built anew.
            joint: ``n x (d + d_z)``, of which the first are those that it has.
            outcomes: Of all of them.
        """
        F, num = inputs.features(joint), len(self.joint)
        if not torch.equal(F[:num], self.model.train_inputs[0]):
            return Ensemble.of(self.parameters, inputs, joint, outcomes)
        model = self.model.fork()
        model.add(F[num:], outcomes.values[num:])
        model.set_targets(range(len(joint)), outcomes.values)
        constants = model.factor.subtract_constant()
        return Ensemble(self.parameters, model, constants, inputs, outcomes, joint, joint[:0])

    def with_pending(self, joint: Tensor) -> Ensemble:
        """The ensemble in which more rows, ``n x (d + d_z)``, count in the standard deviations."""
        if not len(joint):
            return self
        model = self.model.fork()
        model.add(self.inputs.features(joint), None)
        return replace(self, model=model, pending=torch.cat([self.pending, joint]))

    def thinned(self, num: int) -> Ensemble:
        """The ensemble of every so many particles, at least ``num`` of them, or of all, without
        pending rows."""
        every = max(len(self.parameters) // num, 1)
        return self.some(list(range(0, len(self.parameters), every)))

    def some(self, places: list[int]) -> Ensemble:
        """The ensemble of some of the particles, without pending rows unless it is all of them."""
        if len(places) == len(self.parameters):
            return self
        parameters = members_of(self.parameters, places)
        return Ensemble.of(parameters, self.inputs, self.joint, self.outcomes)

    def of_rows(self, rows: Tensor) -> Ensemble:
        """The ensemble given some of the observations alone, without pending rows."""
        outcomes = replace(self.outcomes, values=self.outcomes.values[rows])
        return Ensemble.of(self.parameters, self.inputs, self.joint[rows], outcomes)

    def mean(self, joint: Tensor) -> Tensor:
        """The posterior mean averaged over the models, in units of the observations: ``n``."""
        means = self.model.mean_at(self.inputs.features(joint)).mean(dim=0)
        return self.outcomes.untransformed(means + self.constants.mean()).to(joint)

    @torch.no_grad()
    def mean_at_rows(self) -> Tensor:
        """`mean` at the n rows that have observations, in O(n^2); without pending rows."""
        factor, n = self.model.factor, len(self.joint)
        noise = self.model.noise_variance.unsqueeze(-1) + factor.jitter[:, :n]
        means = (factor.y[:, :n] - noise * factor.mean_weights).mean(dim=0)
        return self.outcomes.untransformed(means + self.constants.mean()).to(self.joint)

    @torch.no_grad()
    def mean_and_std(self, joint: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the mixture of all models, ``n`` each, in units of the
        observations, in float64; of bent observations to first order around the mean."""
        means, stds = self.model.mean_and_std(self.inputs.features(joint))
        means = means + self.constants.unsqueeze(-1)
        variance = stds.square().mean(dim=0) + means.var(dim=0, correction=0)
        mean = means.mean(dim=0)
        return self.outcomes.untransformed(mean), variance.sqrt() * self.outcomes.slope(mean)


class UnitFeatures(InputTransform, nn.Module):
    """`Inputs` as BoTorch's models take them.

    Args:
        inputs: From joint rows to features.
    """

    transform_on_train = transform_on_eval = transform_on_fantasize = True

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.inputs = inputs

    def transform(self, X: Tensor) -> Tensor:
        """``... x (d + d_z)`` to ``... x p``."""
        return self.inputs.features(X)


def _kernel(parameters: Tensor, inputs: Inputs) -> SmoothedMatern:
    """The kernels of ``m x dim`` particles, on features."""
    lengthscales, _, odds = split(parameters)
    return SmoothedMatern(inputs.of_features(lengthscales.exp()).unsqueeze(-2), odds.sigmoid())


def _botorch_kernel(parameters: Tensor, inputs: Inputs) -> Kernel:
    """The same as a GPyTorch kernel."""
    frozen = _kernel(parameters, inputs)
    m, _, p = frozen.inverse_lengthscale.shape
    options: dict[str, Any] = {"ard_num_dims": p, "batch_shape": torch.Size([m])}
    kernels = []
    for base, share in (
        (RBFKernel(**options), frozen.share),
        (MaternKernel(nu=2.5, **options), 1 - frozen.share),
    ):
        scaled = ScaleKernel(base, batch_shape=torch.Size([m])).to(parameters)
        base.lengthscale, scaled.outputscale = 1 / frozen.inverse_lengthscale, share
        kernels.append(scaled)
    return kernels[0] + kernels[1]
