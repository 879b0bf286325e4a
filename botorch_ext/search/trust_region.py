"""The trust region: a smaller box around the best point, whose size follows from the results."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import pstdev

import torch
from torch import Tensor

from botorch_ext.domains import Box

# Above this number of dimensions a box counts as high-dimensional: first points lie near its
# middle, searches are brief, and the improvement is maximised in a trust region.
MANY_DIMENSIONS = 20
# Lengths in sides of the box (Eriksson et al. 2019). _GAINS gains in a row double the length, and
# dim // _OF_DIMENSION failures, but at least _FEWEST_FAILURES, halve it.
_FIRST, _SHORTEST, _LONGEST = 0.8, 0.5**7, 1.6
_GAINS, _FEWEST_FAILURES, _OF_DIMENSION = 3, 5, 4
# The least gain, as a share of the standard deviation of the values.
_LEAST_GAIN = 1e-3


def side_length(values: Sequence[float], num_given: int, dim: int) -> float:
    """The side of the region, in sides of the box.

    Args:
        values: The observations, in the order in which they came.
        num_given: The number of first observations that were not asked for in the region.
        dim: The dimension d.
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
    """The part of a filled box within half a length of a point in every column.

    All sides are equal. Sides in proportion to lengthscales, as in the paper, would be tiny for the
    columns that matter if most columns do not matter.

    Args:
        center: The ``d``-dim point, in the box.
        length: The length, in sides of the box.
        box: The whole box.
    """
    u = box.to_unit(center)
    lower, upper = box.from_unit(torch.stack([u - length / 2, u + length / 2]).clamp(0, 1))
    return Box(lower=lower, upper=upper, log=box.log)
