"""GPs of the same data, each with the hyperparameters of one particle."""

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
from botorch_ext.kernels.batching import members_of
from botorch_ext.kernels.frozen.smoothed_matern import SmoothedMatern
from botorch_ext.models.ensemble_gp import EnsembleGP
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.state import Immutable


@dataclass(frozen=True, eq=False)
class Ensemble(Immutable):
    """The m GPs of all particles given the same data, each with its likeliest constant mean.

    `ParticleStrategy.posterior` gives it; users do not make one.

    Args:
        parameters: The parameters of the particles, ``m x dim``.
        model: A batch of m models of the residuals, as functions of features.
        constants: The constant means, ``m``, which are added to the means of ``model``.
        inputs: The map from joint rows to features.
        outcomes: The transformed observations, and their units.
        joint: The joint rows of the observations, ``n x (d + d_z)``.
        pending: The pending joint rows, without observations.
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
        """The ensemble of ``m x p`` particles, given observations at ``n x (d + d_z)`` joint
        rows."""
        F, noise = inputs.features(joint), split(parameters)[1].exp()
        model = KernelGP(kernel_of(parameters, inputs), noise, dtype=F.dtype, device=F.device)
        constants = F.new_zeros(len(parameters))
        if len(joint):
            model.add(F, outcomes.values, outcomes.relative_noise(noise))
            constants = model.factor.subtract_constant()
        return cls(parameters, model, constants, inputs, outcomes, joint, joint[:0])

    @property
    def num_observations(self) -> int:
        """The number of observations."""
        return len(self.joint)

    def fork(self) -> Ensemble:
        """An independent copy."""
        return replace(
            self,
            parameters=self.parameters.clone(),
            model=self.model.fork(),
            constants=self.constants.clone(),
            outcomes=replace(self.outcomes, values=self.outcomes.values.clone()),
            joint=self.joint.clone(),
            pending=self.pending.clone(),
        )

    @torch.no_grad()
    def to_botorch(self) -> EnsembleGP:
        """The models as one BoTorch ensemble model of joint rows, in units of the observations; low
        observations that were compressed stay compressed."""
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
        Y = self.outcomes.center + self.outcomes.scale * self.outcomes.values
        model.add(self.joint.to(like), Y, self.outcomes.relative_noise(model.noise_variance))
        if len(self.pending):
            model.add(self.pending.to(like), None)
        return model

    @torch.no_grad()
    def extended(self, inputs: Inputs, joint: Tensor, outcomes: Outcomes) -> Ensemble:
        """The ensemble of the same particles with more observations, in O(n^2) for each.

        Args:
            inputs: The map from joint rows to features. If it changes the features of old rows, the
                models are built again.
            joint: All joint rows, ``n x (d + d_z)``, the old ones first.
            outcomes: The transformed observations at all rows.
        """
        F, num = inputs.features(joint), len(self.joint)
        noise = outcomes.relative_noise(self.model.noise_variance)
        # Variances that are known have other units when the observations are standardised again.
        is_new = outcomes.noise is not None and (
            self.outcomes.noise is None or bool(outcomes.noise.known.any())
        )
        if is_new or not torch.equal(F[:num], self.model.train_inputs[0]):
            return Ensemble.of(self.parameters, inputs, joint, outcomes)
        model = self.model.fork()
        model.add(F[num:], outcomes.values[num:], None if noise is None else noise[:, num:])
        model.set_targets(range(len(joint)), outcomes.values)
        constants = model.factor.subtract_constant()
        return Ensemble(self.parameters, model, constants, inputs, outcomes, joint, joint[:0])

    def with_pending(self, joint: Tensor) -> Ensemble:
        """The ensemble with pending rows, ``n x (d + d_z)``, which count in the standard
        deviations."""
        if not len(joint):
            return self
        model = self.model.fork()
        model.add(self.inputs.features(joint), None)
        return replace(self, model=model, pending=torch.cat([self.pending, joint]))

    def thinned(self, num: int) -> Ensemble:
        """The ensemble of evenly spaced particles, at least ``num`` of them if there are as many;
        without pending rows unless all particles stay."""
        every = max(len(self.parameters) // num, 1)
        return self.some(list(range(0, len(self.parameters), every)))

    def some(self, positions: list[int]) -> Ensemble:
        """The ensemble of some of the particles, without pending rows unless all particles stay."""
        if len(positions) == len(self.parameters):
            return self
        parameters = members_of(self.parameters, positions)
        return Ensemble.of(parameters, self.inputs, self.joint, self.outcomes)

    def of_rows(self, rows: Tensor) -> Ensemble:
        """The ensemble given only some of the observations, without pending rows."""
        outcomes = self.outcomes.some(rows)
        return Ensemble.of(self.parameters, self.inputs, self.joint[rows], outcomes)

    def mean(self, joint: Tensor) -> Tensor:
        """The posterior mean, averaged over the models, in units of the observations: ``n``.

        Args:
            joint: The joint rows, ``n x (d + d_z)``.
        """
        means = self.model.mean_at(self.inputs.features(joint)).mean(dim=0)
        return self.outcomes.untransformed(means + self.constants.mean()).to(joint)

    @torch.no_grad()
    def mean_at_rows(self) -> Tensor:
        """The `mean` at the rows of the observations, ``n``, in O(n^2); without pending rows."""
        factor, n = self.model.factor, len(self.joint)
        means = (factor.y[:, :n] - factor.noise * factor.mean_weights).mean(dim=0)
        return self.outcomes.untransformed(means + self.constants.mean()).to(self.joint)

    @torch.no_grad()
    def mean_and_std(self, joint: Tensor) -> tuple[Tensor, Tensor]:
        """The mean and the standard deviation of the mixture of all models.

        Args:
            joint: The joint rows, ``n x (d + d_z)``.

        Returns:
            The ``n`` means and the ``n`` standard deviations, in units of the observations, in
            float64. If low observations were compressed, the standard deviations are those of the
            compressed ones, times the slope of the inverse transform at the mean.
        """
        means, stds = self.model.mean_and_std(self.inputs.features(joint))
        means = means + self.constants.unsqueeze(-1)
        variance = stds.square().mean(dim=0) + means.var(dim=0, correction=0)
        mean = means.mean(dim=0)
        return self.outcomes.untransformed(mean), variance.sqrt() * self.outcomes.slope(mean)


class UnitFeatures(InputTransform, nn.Module):
    """The map of `Inputs` as a BoTorch input transform."""

    transform_on_train = transform_on_eval = transform_on_fantasize = True

    def __init__(self, inputs: Inputs) -> None:
        super().__init__()
        self.inputs = inputs

    def transform(self, X: Tensor) -> Tensor:
        """The features ``... x p`` of joint rows ``... x (d + d_z)``."""
        return self.inputs.features(X)


def kernel_of(parameters: Tensor, inputs: Inputs) -> SmoothedMatern:
    """The kernels of ``m x dim`` particles, as functions of features."""
    lengthscales, _, odds = split(parameters)
    return SmoothedMatern(inputs.of_features(lengthscales.exp()).unsqueeze(-2), odds.sigmoid())


def _botorch_kernel(parameters: Tensor, inputs: Inputs) -> Kernel:
    """The same kernels as one GPyTorch kernel."""
    frozen = kernel_of(parameters, inputs)
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
