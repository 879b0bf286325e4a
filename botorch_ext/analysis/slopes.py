"""Slopes of measured regret on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from scipy.special import stdtrit
from torch import Tensor

from botorch_ext.checks import one_number, some_of
from botorch_ext.domains import checked_tensor


class Slope(NamedTuple):
    """A slope with its confidence interval.

    Args:
        slope: The mean slope of the runs.
        low: The lower end of the interval.
        high: The upper end of the interval.
    """

    slope: float
    low: float
    high: float


def fitted_slope(
    t: Tensor | Sequence[float],
    regret: Tensor | Sequence[Sequence[float]],
    *,
    confidence: float = 0.95,
) -> Slope:
    """The slope of log regret against log t by least squares, with a Student interval over runs.

    Each run has its own line. The interval covers the mean slope over the random runs of this
    experiment between these t, if runs are independent and their slopes about normal. It says
    nothing about the exponent as t grows, since it does not contain the bias of a finite horizon.
    More points of the same curves do not narrow it.

    Example:
        >>> from botorch_ext.analysis import fitted_slope
        >>> slope = fitted_slope([10, 100, 1000], [[1.0, 3.2, 10.0], [1.0, 3.1, 9.0]])
        >>> round(slope.slope, 3)
        0.489

    Args:
        t: The numbers of steps, or the horizons, ``n``.
        regret: The regret of each run at each t, ``runs x n``, positive.
        confidence: The confidence level of the interval.

    Returns:
        The mean slope and its interval.

    Raises:
        ValueError: If there are fewer than two runs, shapes do not match, ``t`` or ``regret`` is
            not positive and finite, all ``t`` are the same, or ``confidence`` is outside (0, 1).
    """
    confidence = one_number(confidence, "confidence")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie strictly between 0 and 1, got {confidence:g}")
    x, y = _positive(t, "t"), _positive(regret, "regret")
    if x.ndim != 1:
        raise ValueError(f"t must have one dimension, got shape {tuple(x.shape)}")
    if x.unique().numel() < 2:
        raise ValueError(f"t must hold two different numbers at least, got {some_of(x)}")
    if y.ndim != 2 or y.shape[1] != len(x):
        raise ValueError(f"regret must have shape (runs, {len(x)}), got {tuple(y.shape)}")
    runs = len(y)
    if runs < 2:
        raise ValueError(
            f"regret must have 2 runs at least, for an interval, got shape {tuple(y.shape)}"
        )
    centred = x.log() - x.log().mean()
    slopes = y.log() @ centred / centred.square().sum()
    error = float(slopes.std()) / math.sqrt(runs)
    reach = float(stdtrit(runs - 1, (1 + confidence) / 2)) * error
    mean = float(slopes.mean())
    return Slope(mean, mean - reach, mean + reach)


def _positive(values: Any, name: str) -> Tensor:
    tensor = checked_tensor(values, torch.float64, "cpu", name)
    wrong = ~((tensor > 0) & (tensor < math.inf))
    if bool(wrong.any()):
        raise ValueError(f"{name} must be positive and finite, got {float(tensor[wrong][0])}")
    return tensor
