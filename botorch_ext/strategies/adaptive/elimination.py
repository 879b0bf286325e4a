"""Optimism over models, with models eliminated by their prediction errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from botorch_ext.checks import flag
from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.judges import Judge, Standing
from botorch_ext.strategies.adaptive.prediction_tests import RunningTest, RunningTests, Side
from botorch_ext.strategies.adaptive.predictions import Interval
from botorch_ext.strategies.events import Trial
from botorch_ext.strategies.refutation import Looks
from botorch_ext.strategies.replicas import NotReplicatedError
from botorch_ext.widths import Width, enlarged, with_delta
from botorch_ext.widths.base import as_widths
from botorch_ext.widths.composed import Assumptions, EnlargementForm, assumptions_of


class PredictionTests(Judge):
    """A judge that refutes a model by the sum of its own prediction errors.

    Args:
        noise_std: R, the sub-Gaussian constant of the noise.
        delta: The failure probability, half of which is spent here.
        misspecification: eps, the largest distance of f to what the true model can express.
        sides: The bounds, upper or lower, for which models are played.
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
        self.noise_std = self.running.noise_std
        self._looks = Looks()
        self._assumed: list[Assumptions] = []

    def test_norms(self, widths: Width | Sequence[Width]) -> None:
        """Also refutes models by the lower bounds of their RKHS norms from now on.

        Raises:
            ValueError: If a width has no RKHS bound.
        """
        for width in [widths] if isinstance(widths, Width) else widths:
            assumed = assumptions_of(width)
            if assumed is None:
                raise ValueError(
                    "alarm must be False unless every width has rkhs_bound, noise_std and delta, "
                    f"got True with {width!r}"
                )
            self._assumed.append(assumed)

    def learn(self, trial: Trial, value: float, standing: Standing) -> list[int]:
        refuted: list[int] = []
        gone: set[int] = set()
        for side in self.running.sides:
            record = trial.info if side == "optimistic" else trial.info["pessimistic"]
            model, told = record["model"], Interval(**record["told"])
            if model not in standing.alive or model in gone:
                continue  # the model was eliminated after it asked this trial
            test = self.running.observe(
                standing.num_data,
                len(standing.names),
                trial.id,
                model,
                told.half_width,
                value - told.center,
                side,
                standing.relative_noise_of(trial.id),
            )
            if test.fails:
                refuted.append(model)
                if len(standing.alive) > len(gone) + 1:  # the last model stays
                    gone.add(model)
        by_norm = self._refuted_by_norm(standing)
        return refuted + [model for model in by_norm if model not in refuted]

    def _refuted_by_norm(self, standing: Standing) -> list[int]:
        """The models whose RKHS norm must be larger than their widths assume."""
        assumed = self._assumed
        if not assumed or not self._looks.begin(standing.num_data):
            return []
        told = zip(standing.alive, standing.told_data(), strict=True)
        return [id for id, data in told if data.refute(assumed[id if len(assumed) > 1 else 0])]

    def tests_of_runs(self) -> RunningTests | None:
        if self._assumed or self.running.sides != ("optimistic",):
            raise NotReplicatedError("tests of lower bounds or of norms")
        return self.running

    def complete(self, report: dict[str, Any]) -> dict[str, Any]:
        first, *others = self.running.sides
        for model, line in enumerate(report["models"]):
            line |= self.running.summary(model, first)
            line |= {side: self.running.summary(model, side) for side in others}
        return report


class HyperparameterElimination(BoundsStrategy):
    """Asks x_t, u_t in argmax over points and alive models of mean + w std, and eliminates a model
    when the sum of its prediction errors exceeds what noise and confidence widths allow.

    Every trial records the prediction of its model from told data alone, at the time of asking. So
    neither delays nor pending trials invalidate the test, which uses told trials only. ``info`` of
    a trial is that of `BoundsStrategy`, with ``told``. In the report, the dict of each model also
    has the numbers of its test: ``times_told``, its told plays; ``running_error``, the sum of its
    prediction errors; ``bound``, the largest size allowed; and ``margin``, the rest of the bound.

    With ``alarm=True`` a model is also eliminated when the lower bound of the RKHS norm of f, as
    `rkhs_norm_lower_bound` computes it for the kernel of the model, exceeds the RKHS bound of its
    width. The event in which the width holds excludes this for the true model, so no further
    failure probability is spent.

    Source: Ziomek et al. 2024, algorithm 1, corrected as `RunningTests` says.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        models: The candidate models. On a finite set the first of several equally good points, and
            of equally good models, is chosen.
        width: The confidence width of a single well-specified model, or a number, for all models;
            or a sequence with one for each. Here its failure probability is set to delta/2, and it
            is `Enlarged` by the misspecification.
        noise_std: R, the sub-Gaussian constant of the noise, for the test.
        delta: The probability that the true model is eliminated or that a bound fails.
        misspecification: eps, the largest distance of f to what the true model can express. It
            enlarges the width, and the bound of the test by eps for each observation.
        enlargement: How the width is enlarged, "published" or "pointwise": see `Enlarged` and
            `PointwiseEnlarged`.
        alarm: Whether the lower bound of the RKHS norm eliminates models too.
        options: The keyword arguments of `BoundsStrategy`.

    Raises:
        ValueError: If `BoundsStrategy` raises it, if a number is impossible, or if ``alarm`` is
            True and a width has no RKHS bound.

    Warns:
        AllModelsRejectedWarning: Every model is refuted. The last model stays.
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
        enlargement: EnlargementForm = "published",
        alarm: bool = False,
        **options: Unpack[BoundsOptions],
    ) -> None:
        judge = PredictionTests(noise_std, delta, misspecification)
        width = tested_width(width, misspecification, delta, enlargement)
        if flag(alarm, "alarm"):
            judge.test_norms(width)
        super().__init__(domain, models, width, judge=judge, **options)

    @property
    def tests(self) -> list[RunningTest]:
        """The tests after each observation so far, in the order of telling; a copy."""
        return list(self.judge.running.log)


def tested_width(
    width: Width | float | Sequence[Width | float],
    misspecification: float,
    delta: float | None,
    enlargement: EnlargementForm,
) -> Width | list[Width]:
    """The width that goes with tests which spend delta/2: enlarged, and valid with probability
    1 - delta/2. If ``delta`` is None there are no tests, and the width is only enlarged.

    Raises:
        ValueError: If the width is already enlarged by another misspecification.
    """
    widths = as_widths(width)
    if isinstance(widths, Width):
        return _tested(widths, misspecification, delta, enlargement)
    return [_tested(own, misspecification, delta, enlargement) for own in widths]


def _tested(
    width: Width, misspecification: float, delta: float | None, enlargement: EnlargementForm
) -> Width:
    width = width if delta is None else with_delta(width, delta / 2)
    return enlarged(width, misspecification, enlargement)
