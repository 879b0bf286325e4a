"""Moves of particles: systematic resampling, and Hamiltonian trajectories that keep a density."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_ext.hyperparameters.density import Density

# Of a trajectory, in standard deviations of the particles: its length, a quarter of a turn, and
# the step in one dimension, of which p^-1/4 keeps the acceptance in p dimensions (Beskos et al.
# 2013).
_LENGTH, _STEP = 1.6, 0.65
_STEP_JITTER = 0.3
# Particles of one place would otherwise never leave it.
_LEAST_SCALE = 0.05


def effective_size(log_weights: Tensor) -> Tensor:
    """How many particles of equal weights are worth as much, 0-dim."""
    weights = log_weights.softmax(dim=0)
    return 1 / weights.square().sum()


def resampled(log_weights: Tensor, num: int, generator: torch.Generator) -> Tensor:
    """The rows of ``num`` particles drawn by their weights, systematically: a particle of weight w
    is drawn ``num`` w times, rounded up or down.

    Args:
        log_weights: ``m``, up to a constant.
        num: How many.
        generator: On the CPU.
    """
    weights = log_weights.softmax(dim=0)
    # As a product: cumulative sums on CUDA differ from run to run.
    ends = weights.new_ones(len(weights), len(weights)).tril() @ weights
    first = torch.rand((), generator=generator, dtype=torch.float64)
    places = torch.arange(num, dtype=ends.dtype, device=ends.device).add(float(first)).div(num)
    return (ends[:-1].unsqueeze(-1) < places).sum(dim=0)


def swept(
    density: Density,
    parameters: Tensor,
    values: Tensor,
    num_halves: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """Particles moved by Hamiltonian trajectories, each half scaled by the spread of the other, so
    that their density stays what it is.

    Args:
        density: The density that is kept.
        parameters: ``m x p``, an even number of particles.
        values: ``m``, its logarithm there.
        num_halves: How many halves move; two are a sweep, a trajectory of each particle.
        generator: On the CPU.

    Returns:
        The ``m x p`` particles and the log density there, ``m``.
    """
    m, p = parameters.shape
    half = m // 2
    step = _STEP * p**-0.25
    num_steps = math.ceil(_LENGTH / step)
    num_sweeps = -(-num_halves // 2)
    drawn = [
        torch.randn(num_sweeps, m, p + 1, generator=generator, dtype=torch.float64),
        torch.rand(num_sweeps, m, 1, generator=generator, dtype=torch.float64),
        torch.stack([torch.randperm(m, generator=generator) for _ in range(num_sweeps)])[..., None],
    ]
    for sweep, of_sweep in enumerate(torch.cat(drawn, dim=-1).to(parameters)):  # uploaded once
        order = of_sweep[:, -1].long()
        shuffled, heights = parameters[order], values[order]
        halves, of_halves = [shuffled[:half], shuffled[half:]], [heights[:half], heights[half:]]
        for i in range(min(2, num_halves - 2 * sweep)):
            scale = halves[1 - i].std(dim=0).clamp_min(_LEAST_SCALE)
            of_half = of_sweep[i * half : (i + 1) * half]
            momenta, jitter, uniform, _ = of_half.split([p, 1, 1, 1], dim=-1)
            lengths = step * (_STEP_JITTER * jitter).exp() * scale
            halves[i], of_halves[i] = _trajectory(
                density, halves[i], of_halves[i], momenta, lengths, num_steps, uniform[:, 0].log()
            )
        parameters, values = torch.cat(halves), torch.cat(of_halves)
    return parameters, values


def _trajectory(
    density: Density,
    start: Tensor,
    height: Tensor,
    momenta: Tensor,
    lengths: Tensor,
    num_steps: int,
    threshold: Tensor,
) -> tuple[Tensor, Tensor]:
    """Ends of leapfrog trajectories where they are accepted, else their starts.

    Args:
        density: Whose logarithm is minus the potential.
        start: ``m x p``.
        height: ``m``, the log density there.
        momenta: ``m x p``, standard normal.
        lengths: ``m x p`` steps of each parameter.
        num_steps: How many.
        threshold: ``m``: the log of uniform numbers.
    """
    x, v = start, momenta
    value, gradient = density.value_and_gradient(x)
    for _ in range(num_steps):
        v = torch.addcmul(v, lengths, gradient, value=0.5)
        x = torch.addcmul(x, lengths, v)
        # The density ends at its limits: trajectories are reflected there.
        beyond = (x < density.lower) | (x > density.upper)
        x = torch.where(x < density.lower, 2 * density.lower - x, x)
        x = torch.where(x > density.upper, 2 * density.upper - x, x)
        v = torch.where(beyond, -v, v)
        value, gradient = density.value_and_gradient(x)
        v = torch.addcmul(v, lengths, gradient, value=0.5)
    gain = value - height - 0.5 * (v.square() - momenta.square()).sum(dim=-1)
    accepted = threshold < gain  # never where the gain is NaN
    return torch.where(accepted.unsqueeze(-1), x, start), torch.where(accepted, value, height)
