"""ExpectedGain: by how much the next batch is expected to improve the best value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Domain, host
from botorch_ext.state import Immutable
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.answers.recommendation import are_among, most_promising
from botorch_ext.strategies.answers.tables import columns_of, lines_of


@dataclass(frozen=True, eq=False)
class ExpectedGain(Immutable):
    """The expected gain of evaluating the next batch.

    The gain of a batch B over the points so far P, evaluated or pending, is the noisy expected
    improvement of the batch, E max(max over x in B of f(x) - max over x in P of f(x), 0). It is the
    expected growth of the best value of f among all points that were tried. The expectation is over
    the joint posterior of f at P and B, of all models, by 8,192 joint draws. It is positive whether
    the user maximises or minimises.

    With limits on outcomes, or once a trial has failed, P has the evaluated points within the
    limits, and the pending ones that are feasible with probability 0.5 or more. In each draw a
    point of B counts with its probability of being feasible, independently of the others.

    Args:
        gain: The expected gain, in units of the observations.
        noise_std: The standard deviation of the noise of one observation near the best point. A
            gain that is much less cannot be seen in one observation.
        probability: The posterior probability that the batch has a point better than all points so
            far.
        x: ``q x d``, the points of the batch.
        contexts: ``q x d_z``, the contexts of the batch, or None.
        domain: The domain of the points, which names their columns.
        context_domain: The domain of the contexts, likewise, or None.
    """

    gain: float
    noise_std: float
    probability: float
    x: Tensor
    contexts: Tensor | None
    domain: Domain
    context_domain: Domain | None = None

    def __repr__(self) -> str:
        """The gain, the noise and the points of the batch, in a few lines."""
        num, domains = len(self.x), (self.domain, self.context_domain)
        lines = [
            f"ExpectedGain of {num} point{'' if num == 1 else 's'}",
            f"gain of the best value: {self.gain:.3g}",
            f"probability of a better point: {self.probability:.3g}",
            f"standard deviation of the noise: {self.noise_std:.3g}",
            *lines_of(columns_of(self.x, self.contexts, *domains), *domains),
        ]
        return "\n  ".join(lines)

    @property
    def params(self) -> list[dict[str, Any]]:
        """The points of the batch by name, as ``params`` of trials."""
        return [self.domain.params_of(x) for x in self.x]


def gain_of(
    mixture: GPMixture,
    before: Tensor,
    batch: Tensor,
    domain: Domain,
    seed: int,
    context_domain: Domain | None = None,
    feasibility: Tensor | None = None,
) -> ExpectedGain:
    """The expected gain of a batch, by joint draws.

    Args:
        mixture: The model of f.
        before: ``n x (d + d_z)``, the points so far. The 512 points with the highest mean plus two
            standard deviations count.
        batch: ``q x (d + d_z)``. Points that are among the points so far gain nothing.
        domain: The domain of the points.
        seed: The seed of the draws.
        context_domain: The domain of the contexts, or None.
        feasibility: The ``q`` probabilities that the points of the batch are feasible, as for
            `Recommendation`, or None.
    """
    is_new = ~are_among(batch, before)
    new = batch[is_new]
    before = most_promising(mixture, before)
    draws = mixture.draws(torch.cat([before, new]), seed)
    best = draws[..., : len(before)].amax(dim=-1)
    if feasibility is not None:
        of_new, generator = draws[..., len(before) :], torch.Generator().manual_seed(seed)
        shares = host.rand(*of_new.shape, generator=generator, dtype=torch.float64).to(of_new)
        of_new.masked_fill_(shares >= feasibility[is_new].to(of_new), -math.inf)
    gains = (draws.amax(dim=-1) - best).clamp_min(0)
    return ExpectedGain(
        mixture.average(gains),
        noise_std(mixture, before),
        mixture.average((gains > 0).to(gains)),
        batch[:, : domain.dim].clone(),
        batch[:, domain.dim :].clone() if batch.shape[-1] > domain.dim else None,
        domain,
        context_domain,
    )


def noise_std(mixture: GPMixture, rows: Tensor) -> float:
    """The standard deviation of the noise of one observation, to first order, at the best of
    ``n x (d + d_z)`` rows."""
    means = (mixture.weights[:, None] * mixture.moments(rows)[0]).sum(dim=0)
    slope = mixture.restored(means.max())[1]
    return float(slope * (mixture.weights * mixture.noise_variance).sum().sqrt())
