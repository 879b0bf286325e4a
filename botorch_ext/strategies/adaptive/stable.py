"""StableOpt and HE-StableOpt: the best worst case over small perturbations, with models refuted by
their own predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

import torch
from torch import Tensor

from botorch_ext.domains import Domain, FiniteSet, as_points
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import NoObservationsError
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.robust.box_balls import BoxBalls, Norm
from botorch_ext.robust.perturbations import FiniteBalls, Perturbations
from botorch_ext.robust.worst_case import OwnBounds, lowest_bound, maximize_worst_case
from botorch_ext.search.best_pair import best_pair
from botorch_ext.search.models import UpperBounds
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.multi_model import MultiModelOptions, MultiModelStrategy
from botorch_ext.strategies.adaptive.prediction_tests import RunningTest, RunningTests, Side
from botorch_ext.strategies.adaptive.predictions import Prediction
from botorch_ext.strategies.events import Trial
from botorch_ext.widths import Width


class StableStrategy(MultiModelStrategy):
    """x_t, u_t in argmax over x and u of min over delta of the upper bound of u at x + delta; then
    delta_t, v_t in argmin over delta and v of the lower bound of v at x_t + delta. The trial is
    x_t + delta_t.

    ``info`` of a trial has the centre x_t (``center``, on a finite set also ``center_index``), the
    prediction of u_t at the trial and, under ``pessimistic``, that of v_t, each from told data
    alone. u_t and v_t are tested apart, as `HyperparameterElimination` tests u_t; one that fails is
    eliminated. Source: Ziomek et al. 2024, algorithm 2 (HE-StableOpt); with one model Bogunovic et
    al. 2018, algorithm 1 (StableOpt).

    Args:
        domain: A `Box` or a `FiniteSet`; perturbed points stay inside.
        models: The candidates. On a finite set ties go to the first point and the first model.
        width: The confidence width, or a number, for all models, or one for each; valid for the
            true model with probability 1 - delta/2.
        radius: Of the ball of perturbations, in the units of the coordinates; or one radius for
            each coordinate.
        norm: "l2" or "linf".
        noise_std: R, the sub-Gaussian constant of the noise, for the tests. None for a single
            model, which is then not tested.
        delta: The probability that the true model is eliminated or a bound fails.
        misspecification: eps, how far f may be from what the true model can express: enlarges the
            bounds of the tests. The width must be `Enlarged` by itself.
        options: See `MultiModelStrategy`.

    Raises:
        ValueError: What `MultiModelStrategy` raises, an impossible number, radius or norm, or
            several models without ``noise_std``.

    Warns:
        AllModelsRejectedWarning: Every model is refuted. The last one stays.
    """

    _fixed: ClassVar[frozenset[str]] = MultiModelStrategy._fixed | {"perturbations", "_balls"}
    _takes_actions = False

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float | Sequence[Width | float],
        *,
        radius: float | Sequence[float] | Tensor,
        norm: Norm = "l2",
        noise_std: float | None = None,
        delta: float = 0.1,
        misspecification: float = 0.0,
        **options: Unpack[MultiModelOptions],
    ) -> None:
        self.perturbations = Perturbations(radius, norm)
        self.perturbations.radii(domain.like)
        self._tests = None
        if noise_std is not None:
            sides: tuple[Side, ...] = ("optimistic", "pessimistic")
            self._tests = RunningTests(noise_std, delta, misspecification, sides)
        if options.get("context_domain") is not None:
            raise ValueError("context_domain must be None: StableStrategy takes no contexts")
        super().__init__(domain, models, width, **options)
        if noise_std is None and len(self.names) > 1:
            raise ValueError("noise_std must be given for several models, got None")
        self._balls = self.perturbations.on(domain)

    @property
    def tests(self) -> list[RunningTest]:
        """The tests so far, in the order of telling, of one trial u_t's first; a copy."""
        return [] if self._tests is None else list(self._tests.log)

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The centre of a told trial, or the initial point, with the highest worst case of the
        posterior mean under the alive model with most evidence, and that worst case.

        Raises:
            NoObservationsError: Nothing was evaluated yet.
            ValueError: A context: there are none.
        """
        self._checked_context(context)
        like = self._initial_points
        centers = [self._center_of(self.history.trials[id]) for id in self.history.values]
        X = torch.stack(centers) if centers else like[:0]
        if self.initial is not None:
            X = torch.cat([self.initial[0], X])
        if not len(X):
            raise NoObservationsError("best needs at least one evaluated point, got none")
        rows = self._rows.for_means()
        posterior, position = rows.posterior, int(self._evidence(rows).argmax())
        if isinstance(posterior, FiniteCandidates):
            values = self._finite_balls.worst_case(posterior.mean[position])[0][self._indices(X)]
        else:
            none = like.new_zeros(1)
            bounds = UpperBounds(posterior.select([position]), none, none)
            values, _ = self._box_balls.worst_case(OwnBounds(bounds), X.unsqueeze(1))
            values = values.squeeze(1)
        top = int(values.argmax())
        return X[top].clone(), float(values[top])

    def report(self) -> dict[str, Any]:
        summary = super().report()
        radius, norm = self.perturbations.radius, self.perturbations.norm
        summary |= {"radius": list(radius) if isinstance(radius, tuple) else radius, "norm": norm}
        if self._tests is not None:
            for id, row in enumerate(summary["models"]):
                row |= self._tests.summary(id, "optimistic")
                row["pessimistic"] = self._tests.summary(id, "pessimistic")
        return summary

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        # Brings the models up to date with the events: `posterior` is the same before and after.
        self._rows.enter_newest()
        posterior = self._rows.posterior
        widths, offsets = self._widths(posterior, posterior.num_observations + 1)
        if isinstance(posterior, FiniteCandidates):
            center, u, index, v = self._in_set(posterior, widths, offsets)
            x, at = posterior.candidates[index].clone(), index
            places = {"index": index, "center_index": center}
            center = posterior.candidates[center]
        else:
            center, u, x, v = self._in_box(posterior, widths, offsets)
            places, at = {}, x
        optimistic = self._predicted(u, at, widths, offsets)
        pessimistic = self._predicted(v, at, widths, offsets)
        info = {**places, "center": center.tolist(), **vars(optimistic)}
        return x, info | {"pessimistic": vars(pessimistic)}

    def _in_set(
        self, posterior: FiniteCandidates, widths: Tensor, offsets: Tensor
    ) -> tuple[int, int, int, int]:
        mean, half = posterior.mean, widths[:, None] * posterior.std + offsets[:, None]  # (m, N)
        worst, _ = self._finite_balls.worst_case(mean + half)
        center, u = best_pair(worst)
        near = self._finite_balls.neighbours(center)
        place, v = best_pair((half - mean)[:, near])
        return center, u, int(near[place]), v

    def _in_box(
        self, posterior: CandidateModels, widths: Tensor, offsets: Tensor
    ) -> tuple[Tensor, int, Tensor, int]:
        bounds, balls = UpperBounds(posterior, widths, offsets), self._box_balls
        if not bool((balls.radii > 0).any()):
            center, u = self._best_in_box(bounds, None, None)  # what HE-GP-UCB and GP-UCB do
        else:
            seed = self._seed_of(len(self.history.trials))
            center, u = maximize_worst_case(bounds, balls, seed, self._best_centers())
        x, v = lowest_bound(UpperBounds(posterior, -widths, -offsets), balls, center)
        return center, u, x, v

    def _best_centers(self) -> Tensor:
        """The evaluated points with the largest observations, and the latest centres."""
        trials = self.history.trials[len(self._initial_points) :]
        latest = [self._center_of(trial) for trial in trials[-4:]]
        return torch.cat(
            [self._incumbents(), torch.stack(latest)] if latest else [self._incumbents()]
        )

    def _center_of(self, trial: Trial) -> Tensor:
        center = trial.info.get("center")
        return trial.x if center is None else self._initial_points.new_tensor(center)

    def _indices(self, X: Tensor) -> Tensor:
        if not isinstance(self.domain, FiniteSet):
            raise TypeError(f"domain must be a FiniteSet, got {type(self.domain).__name__}")
        return self.domain.index(X)

    @property
    def _finite_balls(self) -> FiniteBalls:
        if not isinstance(self._balls, FiniteBalls):
            raise TypeError("there are no lists of neighbours on a Box")
        return self._balls

    @property
    def _box_balls(self) -> BoxBalls:
        if not isinstance(self._balls, BoxBalls):
            raise TypeError("there are no continuous balls on a FiniteSet")
        return self._balls

    # --- the fold ---------------------------------------------------------------------------------

    def _check_played(self, trial: Trial) -> None:
        super()._check_played(trial)
        name = f"info of trial {trial.id}"
        if "pessimistic" not in trial.info:
            raise ValueError(f"{name} must have 'pessimistic', got {sorted(trial.info)}")
        self._check_prediction(trial.info["pessimistic"], f"pessimistic {name}")
        center = trial.info.get("center")
        if not isinstance(center, list):
            raise ValueError(f"center in the {name} must be a list of numbers, got {center!r}")
        name = f"center in the {name}"
        X = self.domain.require_contains(as_points(center, self.domain.dim, trial.x, name), name)
        if isinstance(self.domain, FiniteSet):
            place = trial.info.get("center_index")
            if place != int(self.domain.index(X)):
                raise ValueError(f"{name} must be the point of center_index, got {place!r}")
        if not bool(self.perturbations.reach(X, trial.x.unsqueeze(0)).all()):
            raise ValueError(f"x of trial {trial.id} must be within reach of its center {center}")

    def _judge(self, trial: Trial, value: float) -> None:
        if self._tests is None:
            return
        t, num_models = self._rows.num_data, len(self.names)
        records: dict[Side, Any] = {
            "optimistic": trial.info,
            "pessimistic": trial.info["pessimistic"],
        }
        for side, record in records.items():
            played = Prediction.from_record(record)
            if played.model not in self.alive:
                continue  # it was eliminated since
            test = self._tests.observe(
                t, num_models, trial.id, played.model, played.half_width, value - played.mean, side
            )
            if test.fails:
                self._reject(played.model, t)
