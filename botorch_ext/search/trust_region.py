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


def region_around(center: Tensor, length: float, box: Box) -> Box:
    """The part of a filled box that is no further from a point than half a length in any column.

    Its sides are equal: in proportion to lengthscales, as in the paper, columns that matter would
    have tiny ones where most do not matter.

    Args:
        center: ``d``, in the box.
        length: In sides of the box.
        box: All of it.
    """
    u = box.to_unit(center)
    lower, upper = box.from_unit(torch.stack([u - length / 2, u + length / 2]).clamp(0, 1))
    return Box(lower=lower, upper=upper, log=box.log)
