"""Hottest sensor: choosing a sensor at a given time (Krause and Ong 2011, section 6.2)."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from benchmarks.measured.scaling import Scaling
from benchmarks.measured.temperatures import STEPS_PER_DAY, Temperatures
from botorch_ext.domains import FiniteSet
from botorch_ext.problems.functions.contextual import ContextualFunction


def clock(days: Tensor) -> Tensor:
    """Turn times into contexts: the time, and the time of day as a point on the circle.

    On the circle a quarter to midnight is near midnight, and a stationary kernel of the two columns
    of the circle, such as a Matern kernel, stays positive definite.

    Args:
        days: Times of any shape ``...``, in days from a midnight.

    Returns:
        ``... x 3``: the time, the cosine and the sine of the angle of a 24-hour hand.
    """
    days = days.to(torch.float64)
    angle = 2 * math.pi * (days % 1)
    return torch.stack([days, angle.cos(), angle.sin()], dim=-1)


class HottestSensor(ContextualFunction):
    """The contextual problem of finding the hottest of many sensors at a time.

    An action is the row of a sensor; a context is one of the times of the table, as `clock` returns
    them. The value is the temperature of the table, without noise; no other times have values.

    Args:
        temperatures: The table.
        scaling: The scaling of the temperatures; None leaves them as they are.

    Attributes:
        domain: The rows 0, 1, ... of the sensors, ``S x 1``.
        contexts: The times of the table, in order, ``T x 3``.
    """

    def __init__(self, temperatures: Temperatures, scaling: Scaling | None = None) -> None:
        rows = torch.arange(temperatures.num_sensors, dtype=torch.float64)
        super().__init__(FiniteSet(rows.unsqueeze(-1)), context_dim=3)
        self.temperatures: Temperatures = temperatures
        self.scaling: Scaling = scaling or Scaling()
        steps = torch.arange(temperatures.num_steps, dtype=torch.float64)
        self.contexts: Tensor = clock(temperatures.first_day + steps / STEPS_PER_DAY)
        self._table = self.scaling(temperatures.values.to(torch.float64))

    def _evaluate(self, X: Tensor) -> Tensor:
        rows = self.domain.require_contains(X[:, :1])[:, 0].long()
        return self._table[rows, self._steps(X[:, 1:])]

    def _steps(self, contexts: Tensor) -> Tensor:
        """The columns of the table at contexts, ``n x 3``."""
        first, last = self.contexts[[0, -1], 0].tolist()
        steps = ((contexts[:, 0] - first) * STEPS_PER_DAY).round()
        steps = steps.clamp(0, len(self.contexts) - 1).long()
        # A time of day that was computed in another way may be rounded in another way.
        wrong = ((self.contexts[steps] - contexts).abs() > 1e-6).any(dim=-1)
        if bool(wrong.any()):
            raise ValueError(
                "context must be a time of the table as clock returns it, a half-hour from day "
                f"{first:g} to day {last:g}, got {contexts[wrong][0].tolist()}"
            )
        return steps
