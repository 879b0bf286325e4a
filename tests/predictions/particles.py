"""Strategies that know a few results, and what the models of `integrated_ei` say by dense
algebra."""

import torch

import botorch_ext as bx
from botorch_ext.strategies import Strategy
from tests.oracles.particles import model_of

BOX = bx.Box([(2.0, 5.0), (-3.0, -1.0)])


def height(x):
    """A smooth hill with a cliff: its low values are squeezed or bent."""
    a, b = (x - torch.tensor([3.0, -2.0], dtype=x.dtype)).unbind(-1)
    return 2 - a.square() - 2 * b.square() + 0.3 * a * b - 40 * (a - 1.2).clamp_min(0)


def played(strategy: Strategy, num: int = 14, f=height) -> Strategy:
    """The strategy after some results with noise, and one trial that pends."""
    strategy.expect(bx.exceptions.PriorScaleWarning)
    generator = torch.Generator().manual_seed(7)
    for x in strategy.domain.sample(num, seed=11):
        noise = 0.2 * float(torch.randn((), generator=generator))
        strategy.attach(x, float(f(x)) + noise)
    strategy.ask()
    return strategy


def dense_parts(strategy, X):
    """Means, covariances and noise variances of the GPs of all particles at ``q x d`` points, in
    standardised values: lists of m."""
    cloud, ensemble = strategy._current()
    U, Z = (strategy.domain.to_unit(points) for points in (strategy.evaluated()[0], X))
    y, parts = ensemble.outcomes.values, []
    for particle in cloud.parameters:
        kernel, noise = model_of(particle)
        K = kernel(U, U) + noise * torch.eye(len(U), dtype=U.dtype)
        one = torch.ones_like(y)
        constant = (one @ torch.linalg.solve(K, y)) / (one @ torch.linalg.solve(K, one))
        k = kernel(U, Z)
        weights = torch.linalg.solve(K, k)
        mean = constant + weights.mT @ (y - constant)
        parts.append((mean, kernel(Z, Z) - k.mT @ weights, float(noise)))
    return parts


def standardised(outcomes, y):
    """What is done to observations, written out."""
    if outcomes.bend:
        far = outcomes.rate * (outcomes.top - y).clamp_min(0)
        moved = torch.where(far > 0, outcomes.top - far.log1p() / outcomes.rate, y)
    else:
        lowest = outcomes.top - 4 * outcomes.unit
        excess = ((lowest - y) / outcomes.unit).clamp_min(0)
        moved = torch.where(excess > 0, lowest - 0.3 * outcomes.unit * excess.log1p(), y)
    return (moved - outcomes.center) / outcomes.scale
