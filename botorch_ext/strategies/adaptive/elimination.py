"""Hyperparameter elimination: optimism over models, and models refuted by their own predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.multi_model import MultiModelOptions, MultiModelStrategy
from botorch_ext.strategies.adaptive.prediction_tests import RunningTest, RunningTests
from botorch_ext.strategies.adaptive.predictions import Prediction
from botorch_ext.strategies.events import Trial
from botorch_ext.widths import Width


class HyperparameterElimination(MultiModelStrategy):
    """x_t, u_t in argmax over points and alive models of mean + w std; u is eliminated when the sum
    of its prediction errors exceeds what noise and confidence widths allow.

    Every trial records what its model predicted from told data alone, at the time it was asked, so
    neither delays nor pending trials invalidate the test; it uses told trials only. Source: Ziomek
    et al. 2024, algorithm 1, corrected as `RunningTests` says.

    Args:
        domain: A `Box` or a `FiniteSet`.
        models: The candidates. On a finite set ties go to the first point and the first model.
        width: The confidence width, or a number, for all models, or one for each; valid for the
            true model with probability 1 - delta/2.
        noise_std: R, the sub-Gaussian constant of the noise, for the test.
        delta: The probability that the true model is eliminated or a bound fails.
        misspecification: eps, how far f may be from what the true model can express: enlarges the
            bound of the test by eps for each observation. The width must be `Enlarged` by itself.
        options: See `MultiModelStrategy`.

    Raises:
        ValueError: What `MultiModelStrategy` raises, or an impossible number.

    Warns:
        AllModelsRejectedWarning: Every model is refuted. The last one stays.
    """

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float | Sequence[Width | float],
        *,
        noise_std: float,
        delta: float = 0.1,
        misspecification: float = 0.0,
        **options: Unpack[MultiModelOptions],
    ) -> None:
        self._tests = RunningTests(noise_std, delta, misspecification)
        super().__init__(domain, models, width, **options)

    @property
    def tests(self) -> list[RunningTest]:
        """The tests so far, in the order of telling; a copy."""
        return list(self._tests.log)

    def report(self) -> dict[str, Any]:
        summary = super().report()
        for id, row in enumerate(summary["models"]):
            row |= self._tests.summary(id)
        return summary

    def _judge(self, trial: Trial, value: float) -> None:
        played = Prediction.from_record(trial.info)
        if played.model not in self.alive:
            return  # it asked before it was eliminated
        error = value - played.mean
        t, num_models = self._rows.num_data, len(self.names)
        test = self._tests.observe(t, num_models, trial.id, played.model, played.half_width, error)
        if test.fails:
            self._reject(played.model, t)
