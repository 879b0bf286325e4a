"""Particles written out: what their models are told, and by which kernels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import botorch_ext as bx


def standardised(Y: Tensor) -> tuple[Tensor, float, float]:
    """Observations, those far too low squeezed, less their mean and over their deviation; both."""
    best = Y.topk(math.ceil(len(Y) * 2 / 3)).values
    unit = (Y.max() - best).square().mean().sqrt()
    excess = (Y.max() - Y) / unit - 4
    low = Y.max() - unit * (4 + 0.3 * excess.clamp_min(0).log1p())
    y = torch.where(excess > 0, low, Y)
    center, scale = float(y.mean()), float(y.std(correction=0))
    return (y - center) / scale, center, scale


def model_of(particle: Tensor) -> tuple[Callable[[Tensor, Tensor], Tensor], Tensor]:
    """The kernel on the unit cube and the noise variance of one particle."""
    *lengthscales, noise, odds = particle
    share, scale = odds.sigmoid(), torch.stack(lengthscales).exp()

    def kernel(A: Tensor, B: Tensor) -> Tensor:
        r = torch.cdist(A / scale, B / scale)
        s = math.sqrt(5) * r
        return share * (-0.5 * r**2).exp() + (1 - share) * (1 + s + s**2 / 3) * (-s).exp()

    return kernel, noise.exp()


def hull(domain: bx.Box | bx.FiniteSet) -> bx.Box:
    """The box of a domain, or the one around its points."""
    if isinstance(domain, bx.Box):
        return domain
    return bx.Box(torch.stack([domain.points.amin(dim=0), domain.points.amax(dim=0)]))


def dense_log_improvement(
    strategy: Any, first: Any, points: Tensor, pending: Tensor, baseline: Tensor | None = None
) -> Tensor:
    """The average over the particles of ``first`` and draws of each, those that the strategy makes
    for its last trial, of the expected improvement on the largest value drawn at told and pending
    points, or at those of them that are in ``baseline``."""
    X, Y = strategy.evaluated()
    U, V = (hull(strategy.domain).to_unit(Z) for Z in (torch.cat([X, pending]), points))
    n, r, rows = len(X), len(X) + len(pending), torch.cat([X, pending])
    counts = torch.ones(r, dtype=torch.bool)
    if baseline is not None:
        counts = (rows[:, None] == baseline).all(dim=-1).any(dim=-1)
    y, _, _ = standardised(Y)
    particles = torch.tensor(first.info["particles"]["parameters"], dtype=torch.float64)
    generator = torch.Generator().manual_seed(strategy._seed_of(first.id + len(pending)))
    normals = torch.randn(len(particles), 2, r, 4, generator=generator, dtype=torch.float64)
    normal, total, num = torch.distributions.Normal(0.0, 1.0), torch.zeros(len(points)), 0
    for particle, (own, of_noise) in zip(particles, normals, strict=True):
        kernel, noise = model_of(particle)
        K, cross = kernel(U, U) + 1e-8 * torch.eye(r), kernel(U, V)
        noisy = (kernel(U, U) + noise * torch.eye(r))[:n, :n].inverse()
        y_residual = y - (noisy @ y).sum() / noisy.sum()
        k = torch.linalg.solve(K, cross)
        std = (1 - (k * cross).sum(dim=0)).sqrt()
        for sign in (1, -1):
            for draw in range(own.shape[1]):
                # A draw from the prior, moved to what the data say.
                f = torch.linalg.cholesky(K) @ own[:, draw] * sign
                seen = f[:n] + sign * (noise - 1e-8).sqrt() * of_noise[:n, draw]
                f = f + K[:, :n] @ noisy @ (y_residual - seen)
                z = (k.mT @ f - f[counts].max()) / std
                total = total + std * (normal.log_prob(z).exp() + z * normal.cdf(z))
                num += 1
    return (total / num).log()


def dense_success(strategy: Any, particles: Tensor, points: Tensor) -> Tensor:
    """The average over ``m x p`` particles, weighted by the likelihoods of the labels, of the
    probability that a trial at one of ``n`` points succeeds."""
    failed = [strategy.history.trials[id].x for id in sorted(strategy.history.failed)]
    X = torch.cat([strategy.evaluated()[0], torch.stack(failed)])
    U, V = (hull(strategy.domain).to_unit(Z) for Z in (X, points))
    n, noise, normal = len(X), 0.1, torch.distributions.Normal(0.0, 1.0)
    share = torch.tensor((n - len(failed) + 1) / (n + 2), dtype=torch.float64)
    constant = math.sqrt(1 + noise) * normal.icdf(share)
    y = torch.tensor([1.0] * (n - len(failed)) + [-1.0] * len(failed)).to(X) - constant
    total, weights = torch.zeros(len(points)), 0.0
    for particle in particles:
        short = particle.clone()
        short[:-2] = short[:-2].clamp_max(math.log(0.5))
        kernel, _ = model_of(short)
        K, k = kernel(U, U) + noise * torch.eye(n), kernel(U, V)
        joint = torch.distributions.MultivariateNormal(torch.zeros(n).to(X), K)
        weight = joint.log_prob(y).exp()
        variance = 1 - (k * torch.linalg.solve(K, k)).sum(dim=0) + noise
        mean = constant + k.mT @ torch.linalg.solve(K, y)
        total, weights = total + weight * normal.cdf(mean / variance.sqrt()), weights + weight
    return total / weights


def dense_within_limits(strategy: Any, first: Any, points: Tensor) -> Tensor:
    """The probabilities that each limit holds at ``n`` points, averaged over the particles of each
    outcome that the trial ``first`` recorded: ``k x n``."""
    history, normal = strategy.history, torch.distributions.Normal(0.0, 1.0)
    U, V = (hull(strategy.domain).to_unit(Z) for Z in (strategy.evaluated()[0], points))
    found = []
    records = first.info["outcome_particles"]
    for (name, limit), record in zip(strategy.limits.items(), records, strict=True):
        y = torch.tensor([history.outcomes[id][name] for id in history.values]).double()
        margin = (y - limit.bound) * (1 if isinstance(limit, bx.AtLeast) else -1)
        z = margin.sign() * (1 + margin.abs() / margin.abs().median()).log()
        center, scale = z.mean(), z.std(correction=0)
        total = torch.zeros(len(points))
        for particle in torch.tensor(record["parameters"], dtype=torch.float64):
            kernel, noise = model_of(particle)
            inverse, k = (kernel(U, U) + noise * torch.eye(len(U))).inverse(), kernel(U, V)
            residual = (z - center) / scale
            constant = (inverse @ residual).sum() / inverse.sum()
            mean = constant + k.mT @ inverse @ (residual - constant)
            std = (1 - (k * (inverse @ k)).sum(dim=0)).sqrt()
            total = total + normal.cdf((mean + center / scale) / std)
        found.append(total / len(record["parameters"]))
    return torch.stack(found)
