"""The best worst case over small perturbations, with models eliminated by their prediction errors
(StableOpt and HE-StableOpt)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Unpack

import torch
from torch import Tensor

from botorch_ext.checks import flag
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.domains.ranks import first_highest
from botorch_ext.exceptions import NoObservationsError
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.search.box_balls import Norm
from botorch_ext.search.perturbations import Perturbations
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.elimination import PredictionTests, tested_width
from botorch_ext.strategies.adaptive.prediction_tests import RunningTest
from botorch_ext.strategies.adaptive.predictions import PlayedWorstCase
from botorch_ext.strategies.adaptive.searches import WorstCase
from botorch_ext.strategies.events import Trial
from botorch_ext.widths import Width
from botorch_ext.widths.composed import EnlargementForm


class StableStrategy(BoundsStrategy):
    """Asks for the point whose worst case over small perturbations is best, by StableOpt.

    A step chooses the centre and the model x_t, u_t in argmax over x and u of min over delta of the
    upper bound of u at x + delta; then the perturbation and the model delta_t, v_t in argmin over
    delta and v of the lower bound of v at x_t + delta. The trial is x_t + delta_t. The predictions
    of u_t and v_t are tested separately, as `HyperparameterElimination` tests u_t, and a model that
    fails is eliminated.

    ``info`` of a trial has the keys of `BoundsStrategy`, for the prediction of u_t at the trial,
    and

    - ``center``: the coordinates of the centre x_t; on a finite set also its row, ``center_index``;
    - ``pessimistic``: a dict with the same keys for the prediction of v_t.

    In the report, the dict of a tested model has the numbers of `HyperparameterElimination` for
    u_t, and under ``pessimistic`` those for v_t.

    Source: Ziomek et al. 2024, algorithm 2 (HE-StableOpt); with one model Bogunovic et al. 2018,
    algorithm 1 (StableOpt).

    The other arguments are those of `HyperparameterElimination`; ``alarm`` needs ``noise_std``.

    Args:
        models: The candidate models, or `Fitted`. On a finite set the first of several equally good
            points, and of equally good models, is chosen.
        width: The confidence width of a single well-specified model, or a number, for all models;
            or a sequence with one for each. If models are tested, it is changed as
            `HyperparameterElimination` says.
        radius: The radius of the ball of perturbations, in the units of the coordinates; or d
            radii, one for each coordinate.
        norm: The norm of the ball: "l2" or "linf".
        noise_std: R, the sub-Gaussian constant of the noise, for the tests. None, for a single
            model: the model is not tested.
        options: The keyword arguments of `BoundsStrategy`; ``context_domain`` must be None.

    Raises:
        ValueError: If `BoundsStrategy` raises it, if a number, the radius or the norm is
            impossible, if contexts are given, if several models or ``alarm=True`` come without
            ``noise_std``, or if ``alarm`` is True and a width has no RKHS bound.

    Warns:
        AllModelsRejectedWarning: Every model is refuted. The last model stays.
    """

    search: WorstCase
    record = PlayedWorstCase

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
        enlargement: EnlargementForm = "published",
        alarm: bool = False,
        **options: Unpack[BoundsOptions],
    ) -> None:
        self.perturbations = Perturbations(radius, norm)
        self.perturbations.radii(domain.like)
        judge = None
        if noise_std is not None:
            sides = ("optimistic", "pessimistic")
            judge = PredictionTests(noise_std, delta, misspecification, sides)
        tested = None if judge is None else delta
        width = tested_width(width, misspecification, tested, enlargement)
        if flag(alarm, "alarm"):
            if judge is None:
                raise ValueError("alarm must be False without noise_std, got True")
            judge.test_norms(width)
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
        """The tests so far, in the order of telling, for each trial that of u_t first; a copy."""
        judge = self.judge
        return list(judge.running.log) if isinstance(judge, PredictionTests) else []

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The centre of a told trial, or the initial point, whose worst case of the posterior mean
        is best, and that worst case.

        The mean is that of the alive model with the highest marginal likelihood.

        Args:
            context: Must be None, since there are no contexts.

        Returns:
            The ``d``-dim centre, and the worst case of the mean, in units of the observations.

        Raises:
            NoObservationsError: If no point was evaluated yet.
            ValueError: If a context is given.
        """
        self.checked_context(context)
        like = self.domain.like
        centers = [self._center_of(self.history.trials[id]) for id in self.history.values]
        X = torch.stack(centers) if centers else like[:0]
        if self._initial is not None:
            X = torch.cat([self._initial[0], X])
        if not len(X):
            raise NoObservationsError("best needs at least one evaluated point, got none")
        rows = self._rows.for_means()
        at = self.domain.index(X) if isinstance(self.domain, FiniteSet) else X
        values = self.search.worst_of_means(rows.posterior, self._likeliest(rows), at)
        top = int(first_highest(values))
        return X[top].clone(), self.history.sign * float(values[top])

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `BoundsStrategy.report`, the ``radius`` and the ``norm``. Under
            ``best``, the ``mean`` is the worst case that `best` gives.
        """
        radius, norm = self.perturbations.radius, self.perturbations.norm
        return super().report() | {
            "radius": list(radius) if isinstance(radius, tuple) else radius,
            "norm": norm,
        }

    def _incumbents(self) -> Tensor:
        """The evaluated points with the largest observations, and the centres of the last
        trials."""
        latest = []
        if self.search.moves:
            plays = (trial for trial in reversed(self.history.trials) if self._is_play(trial.id))
            latest = [self._center_of(trial).unsqueeze(0) for trial in islice(plays, 4)]
        return torch.cat([super()._incumbents(), *reversed(latest)])

    def _center_of(self, trial: Trial) -> Tensor:
        center = trial.info.get("center")
        return trial.x if center is None else self.domain.like.new_tensor(center)

    def _recall(self, trial: Trial) -> Any:
        record = super()._recall(trial)
        name = f"center in the info of trial {trial.id}"
        self.domain.require_contains(self.domain.like.new_tensor([record.center]), name)
        return record
