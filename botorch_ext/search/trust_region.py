"""Trust region: a smaller box around the best point, whose size follows from what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev

import torch
from torch import Tensor

from botorch_ext.domains import Box

# Lengths in sides of the box (Eriksson et al. 2019). So many gains in a row double it, and as many
# failures as a share of the dimension, but not fewer than so many, halve it.
_FIRST, _SHORTEST, _LONGEST = 0.8, 0.5**7, 1.6
_GAINS, _FEWEST_FAILURES, _OF_DIMENSION = 3, 5, 4
# Less than this share of the standard deviation of the values is no gain.
_LEAST_GAIN = 1e-3


def side_length(values: Sequence[float], num_given: int, dim: int) -> float:
    """The side of the region, in sides of the box.

    Args:
        values: The observations, in the order in which they came.
        num_given: How many of them, the first, were not asked for in the region.
        dim: d.
    """
    most = max(_FEWEST_FAILURES, dim // _OF_DIMENSION)
    least = _LEAST_GAIN * pstdev(values)
    best, length, gains, failures = max(values[:num_given]), _FIRST, 0, 0
    for value in values[num_given:]:
        if value > best + least:
            best, gains, failures = value, gains + 1, 0
        else:
            gains, failures = 0, failures + 1
        if gains == _GAINS:
            length, gains = min(2 * length, _LONGEST), 0
        elif failures == most:
            length, failures = length / 2, 0
        if length < _SHORTEST:
            length = _FIRST
    return length


def region_around(center: Tensor, lengthscales: Tensor, length: float, box: Box) -> Box:
    """The part of a filled box around a point, longer along columns with longer lengthscales.

    Args:
        center: ``d``, in the box.
        lengthscales: ``d``.
        length: The geometric mean of its sides where nothing is cut off, in sides of the box.
        box: All of it.
    """
    logarithms = lengthscales.log()
    half = 0.5 * length * (logarithms - logarithms.mean()).exp().to(center)
    u = box.to_unit(center)
    ends = torch.stack([u - half, u + half]).clamp(0, 1)
    lower, upper = box.from_unit(ends)
    return Box(lower=lower, upper=upper, log=box.log)
