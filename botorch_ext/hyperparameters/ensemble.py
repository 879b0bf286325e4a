"""Ensemble: GPs of the same data, each with the hyperparameters of a particle."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from gpytorch.kernels import MaternKernel
from torch import Tensor

from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.hyperparameters.outcomes import Outcomes
from botorch_ext.immutable import Immutable
from botorch_ext.models.kernel_gp import KernelGP


@dataclass(frozen=True, eq=False)
class Ensemble(Immutable):
    """m GPs of the same data, each around the constant that is likeliest for it.

    Args:
        model: A batch of m models of the residuals, on features.
        constants: ``m``, what to add to their means.
        inputs: From joint rows to features.
        outcomes: The units of the means.
    """

    model: KernelGP
    constants: Tensor
    inputs: Inputs
    outcomes: Outcomes

    @classmethod
    @torch.no_grad()
    def of(cls, parameters: Tensor, inputs: Inputs, joint: Tensor, outcomes: Outcomes) -> Ensemble:
        """The ensemble of ``m x p`` particles, given ``n x (d + d_z)`` joint rows."""
        F, y, n = inputs.features(joint), outcomes.values.double(), len(joint)
        lengthscales = inputs.of_features(parameters[:, :-1].exp())
        m, p = lengthscales.shape
        kernel = MaternKernel(nu=2.5, ard_num_dims=p, batch_shape=torch.Size([m])).to(F)
        kernel.lengthscale = lengthscales.unsqueeze(-2)
        model = KernelGP(kernel, parameters[:, -1].exp(), dtype=F.dtype, device=F.device)
        constants = F.new_zeros(m)
        if n:
            model.add(F, y)
            factor = model.factor
            ones = factor.solve(F.new_ones(m, n, 1)).squeeze(-1)
            constants = (ones * factor.z[:, :n]).sum(dim=-1) / ones.square().sum(dim=-1)
            factor.set_targets(list(range(n)), y - constants.unsqueeze(-1))
        return cls(model, constants, inputs, outcomes)

    def with_pending(self, joint: Tensor) -> Ensemble:
        """The ensemble in which more rows, ``n x (d + d_z)``, count in the standard deviations."""
        if not len(joint):
            return self
        model = self.model.fork()
        for row in self.inputs.features(joint).split(1):
            model.add(row, None)
        return Ensemble(model, self.constants, self.inputs, self.outcomes)

    def means(self, joint: Tensor) -> Tensor:
        """The means of all models, each less its constant, in standard units: ``m x n``."""
        return self.model.mean_at(self.inputs.features(joint))

    def mean(self, joint: Tensor) -> Tensor:
        """The posterior mean averaged over the models, in units of the observations: ``n``."""
        means = self.means(joint).mean(dim=0) + self.constants.mean()
        return self.outcomes.untransformed(means).to(joint)

    @property
    def num_observations(self) -> int:
        """Rows, pending ones included."""
        return self.model.num_observations

    @torch.no_grad()
    def mean_and_std(self, joint: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the mixture of all models, ``n`` each, in units of the
        observations."""
        means, stds = self.model.mean_and_std(self.inputs.features(joint))
        means = means + self.constants.unsqueeze(-1)
        variance = stds.square().mean(dim=0) + means.var(dim=0, correction=0)
        mean = self.outcomes.untransformed(means.mean(dim=0))
        return mean.to(joint), (variance.sqrt() * self.outcomes.scale).to(joint)
