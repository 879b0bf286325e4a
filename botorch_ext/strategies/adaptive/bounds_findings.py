"""BoundsFindings: what a strategy knows that plays the confidence bounds of its models."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import FiniteSet
from botorch_ext.domains.contexts import ContextLike, with_context
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.strategies.adaptive.bounds import Bounds, Models
from botorch_ext.strategies.adaptive.judges import Judge
from botorch_ext.strategies.adaptive.pending import PendingRows
from botorch_ext.strategies.adaptive.predictions import Play, Prediction, ToldOnly
from botorch_ext.strategies.adaptive.refits import Refits
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Attached, Told, Trial
from botorch_ext.widths import Width, as_tensor_like


class BoundsFindings(Strategy):
    """What is known of the models, the bands they give, and the report."""

    width: Width | list[Width]
    judge: Judge
    refits: Refits | None
    #: Of all models so far.
    names: list[str]
    #: The places among the candidates of the models that the posterior still has.
    alive: list[int]
    #: From the place of a model to the number of observations that refuted it.
    rejected: dict[int, int]
    all_rejected_at: int | None
    _rows: PendingRows[Models]
    _num_data_before: int
    # On a finite set without contexts.
    _initial_data_rows: list[int]

    @property
    def posterior(self) -> Any:
        """What the models know that are not eliminated, in the order of `alive`: the told data, and
        the pending trials as the policy says. `CandidateModels`, or `FiniteCandidates` on a finite
        set without contexts. Reading it changes nothing."""
        return self._rows.current().posterior

    @property
    def models(self) -> Models:
        """As `posterior`, but the latest events may be missing; not to be changed."""
        return self._rows.posterior

    @property
    def num_data(self) -> int:
        """Observations so far, initial ones included."""
        return self._rows.num_data

    @property
    def next_step(self) -> int:
        """t of the next ask: one more than the steps so far, initial ones included."""
        return self._num_data_before + len(self.history.trials) + 1

    @property
    def plays(self) -> list[Play]:
        """The observations that models asked for, in the order of telling."""
        plays, t = [], self._num_data_before
        for event in self.history.events:
            if isinstance(event, Attached):
                t += 1
            elif isinstance(event, Told) and event.id not in self._rows.told_too_late:
                t += 1
                if self._is_play(event.id):
                    plays.append(Play(t, event.id, self.history.trials[event.id].info["model"]))
        return plays

    def times_played(self) -> list[int]:
        """How often each model was played, those that are eliminated included."""
        played = [0] * len(self.names)
        for trial in self.history.trials:
            if self._is_play(trial.id):
                played[trial.info["model"]] += 1
        return played

    def evidence(self) -> Tensor:
        """The log marginal likelihood of the told data under the models of `models`."""
        return self._evidence(self._rows.for_means())

    @torch.no_grad()
    def bands(self, X: Tensor, context: ContextLike | None = None) -> tuple[Tensor, Tensor]:
        """The confidence bands of the models that are not eliminated, pending trials as the policy
        says: what the next ask chooses by.

        Args:
            X: ``n x d`` points of the domain.
            context: ``d_z``, where the strategy takes contexts.

        Returns:
            Two ``m x n``-dim tensors in the order of `alive`, in units of the observations: the
            means, and how far the bands reach to either side.

        Raises:
            ValueError: Points outside the domain, or a context that `ask` would refuse.
        """
        checked = self.checked_context(context)
        X = self.domain.require_contains(X)
        bounds = self._bounds(self._rows.current().posterior, checked)
        if bounds.of_candidates is not None and isinstance(self.domain, FiniteSet):
            index = self.domain.index(X)
            mean, _, half_width = (
                bounds.models.at(values, index)  # pyright: ignore
                for values in bounds.of_candidates
            )
            return mean, half_width
        mean, std = bounds.upper().models.mean_and_std(with_context(X, checked))
        return mean, bounds.widths[:, None] * std + bounds.offsets[:, None]

    def report(self) -> dict[str, Any]:
        rows = self._rows.current()
        posterior, summary = rows.posterior, super().report()
        evidence, played = self._evidence(rows), self.times_played()
        widths = self._bounds(posterior).widths.tolist()
        gains = posterior.information_gain().tolist()
        models: list[dict[str, Any]] = [
            {
                "name": name,
                "status": "rejected" if id in self.rejected else "alive",
                "rejected_at": self.rejected.get(id),
                "times_played": played[id],
                "log_marginal_likelihood": None,
                "current_width": None,
                "information_gain": None,
            }
            | self.judge.summary(id)
            for id, name in enumerate(self.names)
        ]
        for id, likelihood, width, gain in zip(
            self.alive, evidence.tolist(), widths, gains, strict=True
        ):
            models[id] |= {
                "log_marginal_likelihood": likelihood,
                "current_width": width,
                "information_gain": gain,
            }
        likeliest = int(evidence.argmax())
        summary |= {
            "t": rows.num_rows + 1,
            "width": repr(self.width),
            # Of the likeliest model:
            "current_width": widths[likeliest],
            "information_gain": gains[likeliest],
            "jittered_rows": int(posterior.jittered_rows()[likeliest]),
            "models": models,
            "alive": [self.names[id] for id in self.alive],
            "all_rejected_at": self.all_rejected_at,
            "pending_policy": rows.policy.pending,
            "inflated": rows.policy.inflate,
            "told_too_late": list(rows.told_too_late),
        }
        if self.refits is not None:
            summary["fit"] = self.refits.summary()
        return summary

    # --- bounds and means -------------------------------------------------------------------------

    def _current_width(self) -> Width | list[Width]:
        """The width at this step: one for all models, or one for each candidate."""
        return self.width

    def _bounds(self, posterior: Models, context: Tensor | None = None) -> Bounds:
        t, of_alive = posterior.num_observations + 1, self._current_width()
        if not isinstance(of_alive, Width):
            of_alive = [of_alive[id] for id in self.alive]
        widths = posterior.width(of_alive, t)
        if self._rows.policy.inflate:
            widths = widths * posterior.pending_information_gain().exp()
        return Bounds(posterior, widths, posterior.offset(of_alive, t), context)

    def _evidence(self, rows: PendingRows[Models]) -> Tensor:
        return rows.posterior.log_marginal_likelihood(rows.untold(self.history))

    def _likeliest(self, rows: PendingRows[Models]) -> int:
        return 0 if len(self.alive) == 1 else int(self._evidence(rows).argmax())

    def evaluated_means(self) -> Tensor:
        rows = self._rows.for_means()
        if isinstance(rows.posterior, FiniteCandidates):
            told = [self.history.trials[id].info["index"] for id in self.history.values]
            rows_told = self._initial_data_rows + told
            at = torch.tensor(rows_told, dtype=torch.long, device=self.domain.device)
            return rows.posterior.at(rows.posterior.mean[self._likeliest(rows)], at)
        return self.means_at(self.evaluated()[0])

    @torch.no_grad()
    def means_at(self, X: Tensor) -> Tensor:
        rows = self._rows.for_means()
        models: Any = rows.posterior
        return models.means(self._likeliest(rows), X)

    def check_joint(self, X: Tensor) -> None:
        models: Any = self._rows.posterior
        models.require_takes(X)

    # --- what a trial records ---------------------------------------------------------------------

    def _in_units(self, prediction: Prediction) -> Prediction:
        """A prediction in the units of the observations."""
        return prediction

    def _record(
        self, bounds: Bounds, position: int, at: int | Tensor, numbers: list[float] | None = None
    ) -> dict[str, Any]:
        """What a trial records of a model at a candidate (its row) or a joint row; the numbers of
        the model there may be known."""
        models: Any = bounds.models
        untold = self._rows.untold(self.history) if self.judge.needs_predictions else []
        if numbers is None:
            if bounds.of_candidates is not None:
                mean, std = (models.at(values[position], at) for values in bounds.of_candidates[:2])
            else:
                mean, std, _ = models.moments_without(position, [], at)
            own = [mean, std, bounds.widths[position], bounds.offsets[position]]
            numbers = torch.stack(own).tolist()
        now = Prediction(self.alive[position], *numbers)
        told = None
        if self.judge.needs_predictions:
            told = self._in_units(self._told_only(bounds, position, at, untold) if untold else now)
        return self._in_units(now).record(told)

    def _told_only(
        self, bounds: Bounds, position: int, at: int | Tensor, untold: list[int]
    ) -> Prediction:
        models: Any = bounds.models
        mean, std, gain = models.moments_without(position, untold, at)
        plain = models.plain(position)
        if plain != position:
            gain = models.moments_without(plain, untold, at)[2]
        told = ToldOnly(
            models.noise_variance[position],
            models.num_observations - len(untold),
            models.dim,
            gain,
        )
        id, width, t = self.alive[position], self._current_width(), told.num_observations + 1
        own = width if isinstance(width, Width) else width[id]
        numbers = [as_tensor_like(value, mean) for value in (own(t, told), own.offset(t, told))]
        return Prediction(id, *torch.stack([mean, std, *numbers]).tolist())

    def _predict_again(self, trial: Trial) -> None:
        """Replaces what models said of a trial before a value was corrected."""
        if not self._is_play(trial.id):
            return
        bounds = self._bounds(self._rows.posterior, trial.context)
        at = trial.info["index"] if bounds.on_candidates else trial.point
        info = trial.info | self._said_again(bounds, trial.info, at)
        if "pessimistic" in info:
            info["pessimistic"] = self._said_again(bounds, info["pessimistic"], at)
        self.history.trials[trial.id] = replace(trial, info=info)

    def _said_again(
        self, bounds: Bounds, record: dict[str, Any], at: int | Tensor
    ) -> dict[str, Any]:
        """What a model says at a place in place of what was recorded, where it is not refuted."""
        if record["model"] not in self.alive:
            return record
        return self._record(bounds, self.alive.index(record["model"]), at)
