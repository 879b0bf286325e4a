"""Elimination: optimism over models, and models refuted by their own predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.judges import Judge, Standing
from botorch_ext.strategies.adaptive.prediction_tests import RunningTest, RunningTests, Side
from botorch_ext.strategies.adaptive.predictions import Prediction
from botorch_ext.strategies.events import Trial
from botorch_ext.widths import Width, enlarged, with_delta
from botorch_ext.widths.base import as_widths


class PredictionTests(Judge):
    """A judge that refutes a model by the sum of its own prediction errors.

    Args:
        noise_std: R, the sub-Gaussian constant of the noise.
        delta: The probability that something fails, half of which is spent here.
        misspecification: eps, how far f may be from what the true model can express.
        sides: For which bounds models are played.
    """

    needs_predictions = True

    def __init__(
        self,
        noise_std: float,
        delta: float,
        misspecification: float = 0.0,
        sides: Sequence[Side] = ("optimistic",),
    ) -> None:
        self.running = RunningTests(noise_std, delta, misspecification, sides)

    def learn(self, trial: Trial, value: float, standing: Standing) -> list[int]:
        refuted: list[int] = []
        gone: set[int] = set()
        for side in self.running.sides:
            record = trial.info if side == "optimistic" else trial.info["pessimistic"]
            played = Prediction.from_told(record)
            if played.model not in standing.alive or played.model in gone:
                continue  # it asked before it was eliminated
            test = self.running.observe(
                standing.num_data,
                len(standing.names),
                trial.id,
                played.model,
                played.half_width,
                value - played.mean,
                side,
            )
            if test.fails:
                refuted.append(played.model)
                if len(standing.alive) > len(gone) + 1:  # the last one stays
                    gone.add(played.model)
        return refuted

    def summary(self, model: int) -> dict[str, Any]:
        first, *others = self.running.sides
        return self.running.summary(model, first) | {
            side: self.running.summary(model, side) for side in others
        }


class HyperparameterElimination(BoundsStrategy):
    """x_t, u_t in argmax over points and alive models of mean + w std; u is eliminated when the sum
    of its prediction errors exceeds what noise and confidence widths allow.

    Every trial records what its model predicted from told data alone, at the time it was asked, so
    neither delays nor pending trials invalidate the test; it uses told trials only. Source: Ziomek
    et al. 2024, algorithm 1, corrected as `RunningTests` says.

    Args:
        domain: A `Box` or a `FiniteSet`.
        models: The candidates. On a finite set ties go to the first point and the first model.
        width: The confidence width, or a number, for all models, or one for each, as it is for a
            single well-specified model: its failure probability is set to delta/2 here, and it is
            `Enlarged` by the misspecification.
        noise_std: R, the sub-Gaussian constant of the noise, for the test.
        delta: The probability that the true model is eliminated or a bound fails.
        misspecification: eps, how far f may be from what the true model can express: enlarges the
            width, and the bound of the test by eps for each observation.
        options: See `BoundsStrategy`.

    Raises:
        ValueError: What `BoundsStrategy` raises, or an impossible number.

    Warns:
        AllModelsRejectedWarning: Every model is refuted. The last one stays.
    """

    judge: PredictionTests

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float | Sequence[Width | float],
        *,
        noise_std: float,
        delta: float = 0.1,
        misspecification: float = 0.0,
        **options: Unpack[BoundsOptions],
    ) -> None:
        judge = PredictionTests(noise_std, delta, misspecification)
        width = tested_width(width, misspecification, delta)
        super().__init__(domain, models, width, judge=judge, **options)

    @property
    def tests(self) -> list[RunningTest]:
        """The tests so far, in the order of telling; a copy."""
        return list(self.judge.running.log)


def tested_width(
    width: Width | float | Sequence[Width | float], misspecification: float, delta: float | None
) -> Width | list[Width]:
    """The width beside tests that spend delta/2: enlarged, and valid with probability 1 - delta/2.
    Without tests, delta None, only enlarged.

    Raises:
        ValueError: A width that is enlarged by another misspecification.
    """
    widths = as_widths(width)
    if isinstance(widths, Width):
        return _tested(widths, misspecification, delta)
    return [_tested(own, misspecification, delta) for own in widths]


def _tested(width: Width, misspecification: float, delta: float | None) -> Width:
    width = width if delta is None else with_delta(width, delta / 2)
    return enlarged(width, misspecification)
