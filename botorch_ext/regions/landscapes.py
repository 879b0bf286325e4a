"""Landscapes: what the points of a batch climb, a conditional variance, and where they may go."""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.kernels.batching import same_kernel
from botorch_ext.regions.conditional_variance import ConditionalVariance
from botorch_ext.regions.constraints import inverse_factor
from botorch_ext.regions.region import Region


class Apart:
    """The variance and each constraint for themselves, whatever they are made of.

    Args:
        region: Where the points lie.
        variances: What they climb.
    """

    def __init__(self, region: Region, variances: ConditionalVariance) -> None:
        self.region, self.variances = region, variances
        self.slacks = [constraint.slack_and_gradient for constraint in region.constraints]
        # Whether all that is done is known.
        self.is_recordable = variances.is_closed_form and all(
            constraint.is_closed_form for constraint in region.constraints
        )
        for slack in self.slacks:  # what they work out once
            slack(region.like[:1])

    def models(self, X: Tensor) -> tuple[Tensor | None, Tensor]:
        """``m x d`` to ``J x m`` slacks, or None without constraints, and ``(1 + J) x m x d``
        gradients of the variance and of them."""
        gradient = self.variances.gradient(X)
        if not self.slacks:
            return None, gradient[None]
        slacks, slopes = zip(*(slack(X) for slack in self.slacks), strict=True)
        return torch.stack(slacks), torch.stack([gradient, *slopes])

    def look(self, X: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """``m x d`` to ``m`` variances, whether the constraints are met, or None without any, and
        the ``n x m`` columns of the variances."""
        inside = self.region.meets(X) if self.slacks else None
        variance, columns = self.variances.value_and_columns(X)
        return variance, inside, columns


class Together:
    """The variance and the constraints as one batch: they have one kernel, and its gradients are
    known in closed form. The rows of each are filled up with such as change nothing.

    Args:
        region: Where the points lie; it has constraints.
        variances: What they climb; it goes on in the memory of the batch.
    """

    is_recordable = True

    def __init__(self, region: Region, variances: ConditionalVariance) -> None:
        constraints = region.constraints
        self.variances, self.kernel = variances, variances.model.kernel_function
        sizes = [constraint.model.num_observations for constraint in constraints]
        self.most, num = max(sizes), 1 + len(constraints)
        capacity, like = len(variances.Z), region.like
        rows = max(capacity, self.most)
        self.Z = variances.Z[:1].repeat(num, rows, 1)
        self.inverse = like.new_zeros(num, rows, rows)
        self.weights = like.new_zeros(num, rows)
        self.Z[0, :capacity], self.inverse[0, :capacity, :capacity] = variances.Z, variances.inverse
        variances.Z, variances.inverse = self.Z[0], self.inverse[0]
        for j, (constraint, n) in enumerate(zip(constraints, sizes, strict=True), start=1):
            model = constraint.model
            self.Z[j, :n] = model.train_inputs[0]
            self.inverse[j, :n, :n] = inverse_factor(model)
            self.weights[j, :n] = model.factor.mean_weights[:n]
        pairs = [(1.0, 0.0), *((c.width, c.threshold - c.offset) for c in constraints)]
        self.width, self.level = like.new_tensor(pairs).T[..., None]  # (1 + J) x 1

    def models(self, X: Tensor) -> tuple[Tensor | None, Tensor]:
        """See `Apart.models`."""
        Z, inverse, weights = self._rows()
        k, pullback = self.kernel.value_and_pullback(Z, X)
        v, _, std, slacks = self._evaluated(X, k)
        share = (self.width / std).unsqueeze(-2)
        share[0].fill_(2)  # of the variance, not of its root
        shares = torch.addcmul(weights[..., None], share, inverse.mT @ v, value=-1)
        return slacks[1:], pullback(shares)

    def look(self, X: Tensor) -> tuple[Tensor, Tensor | None, Tensor]:
        """See `Apart.look`."""
        v, variance, _, slacks = self._evaluated(X, self.kernel(self._rows()[0], X))
        return variance[0], (slacks[1:] >= 0).all(dim=0), v[0, : self.variances.num_points]

    def _rows(self) -> tuple[Tensor, Tensor, Tensor]:
        """Those in use, of `Z`, `inverse` and `weights`."""
        n = max(self.variances.num_points, self.most)
        return self.Z[:, :n], self.inverse[:, :n, :n], self.weights[:, :n]

    def _evaluated(self, X: Tensor, k: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """``(1 + J) x n x m`` products of inverses and K(data, X), and ``(1 + J) x m`` variances,
        standard deviations and slacks; that of the variance is none."""
        _, inverse, weights = self._rows()
        v = inverse @ k
        variance = self.kernel.diagonal(X) - v.square().sum(dim=-2)
        std = variance.clamp_min(torch.finfo(k.dtype).eps ** 2).sqrt()
        mean = (weights[:, None] @ k)[:, 0]
        return v, variance, std, torch.addcmul(mean, self.width, std) - self.level


def landscape(region: Region, variances: ConditionalVariance) -> Apart | Together:
    """The landscape of a batch. Where variance and constraints go together the former goes on in
    the memory of the landscape.

    Args:
        region: Where the points lie.
        variances: What they climb.
    """
    models = [constraint.model for constraint in region.constraints]
    known = all(constraint.is_closed_form for constraint in region.constraints)
    if not models or not known or not variances.is_closed_form:
        return Apart(region, variances)
    kernel = variances.model.kernel
    is_one = all(same_kernel(kernel, model.kernel) for model in models)
    return (Together if is_one else Apart)(region, variances)
