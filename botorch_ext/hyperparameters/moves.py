"""Hamiltonian Monte Carlo moves of particles."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.hyperparameters.density import Density

# The length of a trajectory, a quarter of a turn, and its step in one dimension, both in standard
# deviations of the particles; the factor p^-1/4 keeps the acceptance rate in p dimensions (Beskos
# et al. 2013).
_LENGTH, _STEP = 1.6, 0.65
_STEP_JITTER = 0.3
# The least scale of a step; equal particles would never move without it.
_LEAST_SCALE = 0.05


def swept(
    density: Density,
    parameters: Tensor,
    values: Tensor,
    num_halves: int,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
    """The particles after Hamiltonian trajectories, which leave a density invariant. The steps of
    each half are scaled by the spread of the other half.

    Args:
        density: The density that is left invariant.
        parameters: The particles, ``m x p``, an even number of them.
        values: The log density at the particles, ``m``.
        num_halves: The number of halves that move; two are a sweep, a trajectory of each particle.
        generator: The generator of the random numbers, on the CPU.

    Returns:
        The ``m x p`` particles, and the log density there, ``m``.
    """
    m, p = parameters.shape
    half = m // 2
    step = _STEP * p**-0.25
    num_steps = math.ceil(_LENGTH / step)
    steps = step * (density.lower < density.upper).to(parameters)  # fixed parameters stay
    num_sweeps = -(-num_halves // 2)
    drawn = [
        host.randn(num_sweeps, m, p + 1, generator=generator, dtype=torch.float64),
        host.rand(num_sweeps, m, 1, generator=generator, dtype=torch.float64),
        torch.stack([host.randperm(m, generator=generator) for _ in range(num_sweeps)])[..., None],
    ]
    for sweep, of_sweep in enumerate(torch.cat(drawn, dim=-1).to(parameters)):  # uploaded once
        order = of_sweep[:, -1].long()
        shuffled, heights = parameters[order], values[order]
        halves, of_halves = [shuffled[:half], shuffled[half:]], [heights[:half], heights[half:]]
        for i in range(min(2, num_halves - 2 * sweep)):
            scale = halves[1 - i].std(dim=0).clamp_min(_LEAST_SCALE)
            of_half = of_sweep[i * half : (i + 1) * half]
            momenta, jitter, uniform, _ = of_half.split([p, 1, 1, 1], dim=-1)
            lengths = steps * (_STEP_JITTER * jitter).exp() * scale
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
    """The ends of leapfrog trajectories, or their starts if they are rejected.

    Args:
        density: The density, whose logarithm is minus the potential.
        start: The starts, ``m x p``.
        height: The log density at the starts, ``m``.
        momenta: Standard normal numbers, ``m x p``.
        lengths: The step of each parameter, ``m x p``.
        num_steps: The number of steps.
        threshold: The logarithms of uniform numbers, ``m``.
    """
    x, v, lost = start, momenta, torch.zeros_like(height, dtype=torch.bool)
    value, gradient = density.value_and_gradient(x)
    for _ in range(num_steps):
        v = torch.addcmul(v, lengths, gradient, value=0.5)
        x = torch.addcmul(x, lengths, v)
        # Trajectories are reflected once at the limits of the density; those that then cross the
        # other limit are rejected.
        low, high = x < density.lower, x > density.upper
        x = torch.where(low, 2 * density.lower - x, torch.where(high, 2 * density.upper - x, x))
        v = torch.where(low | high, -v, v)
        lost = lost | ((x < density.lower) | (x > density.upper)).any(dim=-1)
        value, gradient = density.value_and_gradient(x)
        v = torch.addcmul(v, lengths, gradient, value=0.5)
    gain = value - height - 0.5 * (v.square() - momenta.square()).sum(dim=-1)
    accepted = (threshold < gain) & ~lost  # never where the gain is NaN
    return torch.where(accepted.unsqueeze(-1), x, start), torch.where(accepted, value, height)
