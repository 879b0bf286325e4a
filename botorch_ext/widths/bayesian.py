"""Confidence widths for functions drawn from the Gaussian process."""

from __future__ import annotations

import math
from dataclasses import dataclass

from botorch_ext.checks import amount, whole_number
from botorch_ext.widths.base import ConfidenceModel, Width, check_delta, require


@dataclass(frozen=True)
class BayesFinite(Width):
    """The width sqrt(2 ln(N pi^2 t^2 / (6 delta))).

    It holds for f drawn from the GP on a finite set. Source: Srinivas et al. 2010, theorem 1;
    Krause and Ong 2011, theorem 1 (1).

    Args:
        num_points: N, the size of the set.
        delta: The failure probability, in (0, 1).

    Raises:
        ValueError: If an argument is out of its range.
    """

    takes_unequal_noise = True

    num_points: int
    delta: float

    def __post_init__(self) -> None:
        self._keep(
            num_points=whole_number(self.num_points, "num_points", least=1),
            delta=check_delta(self.delta),
        )

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        return math.sqrt(2 * math.log(self.num_points * math.pi**2 * t**2 / (6 * self.delta)))


@dataclass(frozen=True)
class BayesContinuous(Width):
    """The width sqrt(2 ln(2 pi^2 t^2 / (3 delta)) + 2 d ln(t^2 d b r sqrt(ln(4 d a / delta)))).

    It is for f drawn from the GP on [0, r]^d, if sup |df/dx_j| > L has probability at most a
    exp(-(L/b)^2). The bound of f(x) has the mean and the standard deviation at the nearest point
    of a grid with t^2 d b r sqrt(ln(4 d a / delta)) points per axis, and adds 1/t^2. Source:
    Srinivas et al. 2010, theorem 2; Krause and Ong 2011, theorem 1 (2).

    Args:
        dim: d, the dimension of the cube.
        a: The tail constant of the derivatives.
        b: The tail scale of the derivatives, in units of f per unit of x.
        r: The side of the cube.
        delta: The failure probability, in (0, 1).

    Raises:
        ValueError: If an argument is out of its range, or ``a`` is at most delta / (4 dim).
    """

    takes_unequal_noise = True

    dim: int
    a: float
    b: float
    r: float
    delta: float

    def __post_init__(self) -> None:
        self._keep(dim=whole_number(self.dim, "dim", least=1), delta=check_delta(self.delta))
        for name in ("a", "b", "r"):
            self._keep(**{name: amount(getattr(self, name), name, "positive and finite")})
        # Otherwise the grid of the proof is empty and the logarithms below have no meaning.
        require(4 * self.dim * self.a > self.delta, "a", self.a, "more than delta / (4 dim)")

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        grid = (
            t**2
            * self.dim
            * self.b
            * self.r
            * math.sqrt(math.log(4 * self.dim * self.a / self.delta))
        )
        union = 2 * math.log(2 * math.pi**2 * t**2 / (3 * self.delta))
        # A grid of less than one point per axis still has one.
        return math.sqrt(union + 2 * self.dim * math.log(max(grid, 1.0)))
