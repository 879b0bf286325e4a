"""The tests that eliminate a model by the sum of its prediction errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from botorch_ext.state import State
from botorch_ext.widths import check_delta, check_misspecification, check_noise_std

Side = Literal["optimistic", "pessimistic"]


def noise_scale(
    noise_std: float, delta: float, t: int, num_models: int, num_sides: int = 1
) -> float:
    """The number xi_t = 2 R^2 ln(2 |U| pi^2 t^2 / (3 delta)).

    With probability 1 - delta/2, for all models and steps, the noise of the n observations that a
    model was played for sums to at most sqrt(xi_t n).

    Args:
        noise_std: R, the sub-Gaussian constant of the noise.
        delta: Twice the probability that this fails.
        t: The number of observations.
        num_models: |U|, the number of models.
        num_sides: The number of sums of each model; with two, 4 |U| takes the place of 2 |U|.
    """
    union = 2 * num_sides * num_models * math.pi**2 * t**2 / (3 * delta)
    return 2 * noise_std**2 * math.log(union)


def noise_bound(xi: Any, count: Any) -> Any:
    """sqrt(xi n), which the noise of n observations sums to at most; numbers or tensors."""
    return (xi * count) ** 0.5


@dataclass(frozen=True)
class RunningTest:
    """The test of one model after one more of the observations it was played for.

    Args:
        t: The number of observations so far, initial ones included.
        trial: The id of the told trial.
        model: The position of the model among the candidates.
        side: Whether the model was played for its upper or for its lower bound.
        count: |S_u|, the number of observations of the model so far.
        error: The sum of observations minus predicted means.
        noise_bound: sqrt(xi_t |S_u|), the largest contribution of the noise.
        width_bound: The sum of the half-widths of its confidence bounds, and of eps.
    """

    t: int
    trial: int
    model: int
    side: Side
    count: int
    error: float
    noise_bound: float
    width_bound: float

    @property
    def bound(self) -> float:
        """The largest size of the error that is allowed."""
        return self.noise_bound + self.width_bound

    @property
    def margin(self) -> float:
        """The bound minus the size of the error."""
        return self.bound - abs(self.error)

    @property
    def fails(self) -> bool:
        """Whether the model is refuted."""
        return self.margin < 0


class RunningTests(State):
    """The running sums of all models.

    A model u is refuted when |sum_{S_u} eta_i| > sqrt(xi_t |S_u|) + sum_{S_u} (w_i s_{i-1}(x_i) +
    eps), with xi_t of `noise_scale`.
    Source: Ziomek et al. 2024, algorithms 1 and 2. The paper prints s_i for s_{i-1}, and leaves out
    the factor 2 of the two tails and, in theorem 4.1, a square of pi. Observations whose noise has
    another constant sqrt(r_i) R count with the weight 1 / sqrt(r_i) in all three sums.

    Args:
        noise_std: R, the sub-Gaussian constant of the noise.
        delta: The failure probability. Half of it is spent here, the other half by the confidence
            widths.
        misspecification: eps, the largest distance of f to what the true model can express.
        sides: The bounds, upper or lower, for which models are played.

    Raises:
        ValueError: If a number is impossible.
    """

    def __init__(
        self,
        noise_std: float,
        delta: float,
        misspecification: float = 0.0,
        sides: Sequence[Side] = ("optimistic",),
    ) -> None:
        self.noise_std = check_noise_std(noise_std)
        self.delta = check_delta(delta)
        misspecification = check_misspecification(misspecification)
        self.misspecification = misspecification
        self.sides = tuple(sides)
        self.log: list[RunningTest] = []
        self._latest: dict[tuple[int, Side], RunningTest] = {}

    def latest(self, model: int, side: Side) -> RunningTest | None:
        """The last test of a model, None before its first observation."""
        return self._latest.get((model, side))

    def summary(self, model: int, side: Side = "optimistic") -> dict[str, float | int]:
        """The numbers of a model for the report: its told plays, running error, bound and
        margin."""
        test = self.latest(model, side)
        if test is None:
            return {"times_told": 0, "running_error": 0.0, "bound": 0.0, "margin": 0.0}
        return {
            "times_told": test.count,
            "running_error": test.error,
            "bound": test.bound,
            "margin": test.margin,
        }

    def observe(
        self,
        t: int,
        num_models: int,
        trial: int,
        model: int,
        half_width: float,
        error: float,
        side: Side = "optimistic",
        relative_noise: float = 1.0,
    ) -> RunningTest:
        """Tests a model once more.

        Args:
            t: The number of observations, with this one.
            num_models: |U|, the number of models.
            trial: The id of the trial.
            model: The position of the model that was played.
            half_width: The half-width of its confidence bounds at the point, at the time of asking.
            error: The observation minus the mean that the model predicted.
            side: The bound that it was played for.
            relative_noise: r, the noise variance of the observation in units of R^2. The error and
                its bound are divided by sqrt(r), so that the noise of each has the constant R.
        """
        scale = relative_noise**0.5
        xi = noise_scale(self.noise_std, self.delta, t, num_models, len(self.sides))
        before = self.latest(model, side)
        count = 1 if before is None else before.count + 1
        test = RunningTest(
            t=t,
            trial=trial,
            model=model,
            side=side,
            count=count,
            error=error / scale + (0.0 if before is None else before.error),
            noise_bound=noise_bound(xi, count),
            width_bound=(
                (half_width + self.misspecification) / scale
                + (0.0 if before is None else before.width_bound)
            ),
        )
        self._latest[model, side] = test
        self.log.append(test)
        return test
