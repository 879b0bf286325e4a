"""Stable: the best worst case over small perturbations, with models refuted by their own
predictions (StableOpt and HE-StableOpt)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Unpack

import torch
from torch import Tensor

from botorch_ext.domains import Domain, FiniteSet, as_points
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import NoObservationsError
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.robust.box_balls import Norm
from botorch_ext.robust.perturbations import Perturbations
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.elimination import PredictionTests, tested_width
from botorch_ext.strategies.adaptive.prediction_tests import RunningTest
from botorch_ext.strategies.adaptive.predictions import Prediction
from botorch_ext.strategies.adaptive.searches import WorstCase
from botorch_ext.strategies.events import Trial
from botorch_ext.widths import Width


class StableStrategy(BoundsStrategy):
    """x_t, u_t in argmax over x and u of min over delta of the upper bound of u at x + delta; then
    delta_t, v_t in argmin over delta and v of the lower bound of v at x_t + delta. The trial is
    x_t + delta_t.

    ``info`` of a trial has the centre x_t (``center``, on a finite set also ``center_index``), the
    prediction of u_t at the trial and, under ``pessimistic``, that of v_t. u_t and v_t are tested
    apart, as `HyperparameterElimination` tests u_t; one that fails is eliminated. Source: Ziomek et
    al. 2024, algorithm 2 (HE-StableOpt); with one model Bogunovic et al. 2018, algorithm 1
    (StableOpt).

    Args:
        domain: A `Box` or a `FiniteSet`; perturbed points stay inside.
        models: The candidates, or `Fitted`. On a finite set ties go to the first point and the
            first model.
        width: The confidence width, or a number, for all models, or one for each, as it is for a
            single well-specified model; changed as `HyperparameterElimination` says where models
            are tested.
        radius: Of the ball of perturbations, in the units of the coordinates; or one radius for
            each coordinate.
        norm: "l2" or "linf".
        noise_std: R, the sub-Gaussian constant of the noise, for the tests. None for a single
            model, which is then not tested.
        delta: The probability that the true model is eliminated or a bound fails.
        misspecification: eps, how far f may be from what the true model can express: enlarges the
            width and the bounds of the tests.
        options: See `BoundsStrategy`; ``context_domain`` must be None.

    Raises:
        ValueError: What `BoundsStrategy` raises, an impossible number, radius or norm, contexts, or
            several models without ``noise_std``.

    Warns:
        AllModelsRejectedWarning: Every model is refuted. The last one stays.
    """

    search: WorstCase

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels | Fitted,
        width: Width | float | Sequence[Width | float],
        *,
        radius: float | Sequence[float] | Tensor,
        norm: Norm = "l2",
        noise_std: float | None = None,
        delta: float = 0.1,
        misspecification: float = 0.0,
        **options: Unpack[BoundsOptions],
    ) -> None:
        self.perturbations = Perturbations(radius, norm)
        self.perturbations.radii(domain.like)
        judge = None
        if noise_std is not None:
            sides = ("optimistic", "pessimistic")
            judge = PredictionTests(noise_std, delta, misspecification, sides)
        width = tested_width(width, misspecification, None if judge is None else delta)
        if options.get("context_domain") is not None:
            raise ValueError("context_domain must be None: StableStrategy takes no contexts")
        super().__init__(
            domain,
            models,
            width,
            search=WorstCase(self.perturbations.on(domain)),
            judge=judge,
            **options,
        )
        if noise_std is None and len(self.names) > 1:
            raise ValueError("noise_std must be given for several models, got None")

    @property
    def tests(self) -> list[RunningTest]:
        """The tests so far, in the order of telling, of one trial u_t's first; a copy."""
        judge = self.judge
        return list(judge.running.log) if isinstance(judge, PredictionTests) else []

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The centre of a told trial, or the initial point, with the highest worst case of the
        posterior mean under the alive model with most evidence, and that worst case.

        Raises:
            NoObservationsError: Nothing was evaluated yet.
            ValueError: A context: there are none.
        """
        self.checked_context(context)
        like = self.domain.like
        centers = [self._center_of(self.history.trials[id]) for id in self.history.values]
        X = torch.stack(centers) if centers else like[:0]
        if self.initial is not None:
            X = torch.cat([self.initial[0], X])
        if not len(X):
            raise NoObservationsError("best needs at least one evaluated point, got none")
        rows = self._rows.for_means()
        at = self.domain.index(X) if isinstance(self.domain, FiniteSet) else X
        values = self.search.worst_of_means(rows.posterior, self._likeliest(rows), at)
        top = int(values.argmax())
        return X[top].clone(), float(values[top])

    def report(self) -> dict[str, Any]:
        radius, norm = self.perturbations.radius, self.perturbations.norm
        return super().report() | {
            "radius": list(radius) if isinstance(radius, tuple) else radius,
            "norm": norm,
        }

    def _incumbents(self) -> Tensor:
        """The evaluated points with the largest observations, and the latest centres."""
        latest = []
        if self.search.moves:
            plays = (trial for trial in reversed(self.history.trials) if self._is_play(trial.id))
            latest = [self._center_of(trial).unsqueeze(0) for trial in islice(plays, 4)]
        return torch.cat([super()._incumbents(), *reversed(latest)])

    def _center_of(self, trial: Trial) -> Tensor:
        center = trial.info.get("center")
        return trial.x if center is None else self.domain.like.new_tensor(center)

    def _recall(self, trial: Trial) -> Any:
        name = f"info of trial {trial.id}"
        told = self.judge.needs_predictions
        Prediction.check_record(trial.info["pessimistic"], f"pessimistic {name}", told)
        X = as_points(trial.info["center"], self.domain.dim, trial.x, f"center in the {name}")
        self.domain.require_contains(X, f"center in the {name}")
        return super()._recall(trial)
