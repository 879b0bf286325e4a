"""What strategies over several models of the same data share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypedDict

import torch
from torch import Tensor

from botorch_ext.domains import Box, Domain, FiniteSet
from botorch_ext.domains.contexts import ContextLike, ContextSpace, with_context
from botorch_ext.exceptions import AllModelsRejectedWarning
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.search.best_pair import best_in_box, best_pair
from botorch_ext.search.models import UpperBounds
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.pending import Pending, PendingPolicy, PendingRows
from botorch_ext.strategies.adaptive.predictions import Play, Prediction, ToldOnly
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Event, Told, Trial
from botorch_ext.strategies.probes import probes_of
from botorch_ext.widths import Width, as_width


class MultiModelOptions(TypedDict, total=False):
    """The keyword arguments that every `MultiModelStrategy` takes."""

    pending: Pending
    inflate: bool
    minimum: float | None
    timeout: int | None
    seed: int
    initial: tuple[Tensor, Tensor] | None
    num_initial: int
    context_domain: Domain | int | ContextSpace | None


class MultiModelStrategy(Strategy):
    """A strategy that keeps several models of the same data.

    A subclass says which of them may play (`_contenders`), or how they are averaged
    (`_probabilities`), and what an observation teaches it about them (`_judge`). It may eliminate
    models, whose posteriors are then dropped.

    Args:
        domain: A `Box` or a `FiniteSet`.
        models: The candidates; they are copied, and data they hold count as steps.
        width: The confidence width, or a number, for all models; or one for each.
        pending: What pending trials do, see `OptimisticStrategy`.
        inflate: Whether "hallucinate" inflates the widths.
        minimum: The least value f can take ("censor" only).
        timeout: Steps after which a pending trial stays censored ("censor" only).
        seed: Seeds the optimiser and the first points.
        initial: ``(X, Y)`` the user already has.
        num_initial: Sobol points asked first.
        context_domain: The contexts that every ask then needs, see `OptimisticStrategy`.

    Raises:
        ValueError: Models that do not take the points of the domain, a prior mean that is not
            finite there, as many widths as there are models not, or options that do not belong to
            the pending policy.

    Warns:
        KernelBoundWarning: k(x, x) of a model exceeds 1 somewhere on the domain; with contexts of
            which no domain is known, at an asked point.
    """

    _takes_actions = True

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float | Sequence[Width | float],
        *,
        pending: Pending = "hallucinate",
        inflate: bool = False,
        minimum: float | None = None,
        timeout: int | None = None,
        seed: int = 0,
        initial: tuple[Tensor, Tensor] | None = None,
        num_initial: int = 0,
        context_domain: Domain | int | ContextSpace | None = None,
    ) -> None:
        super().__init__(domain, seed, initial, num_initial, context_domain)
        policy = PendingPolicy(pending, inflate, minimum, timeout)
        if not isinstance(models, CandidateModels):
            raise ValueError(f"models must be CandidateModels, got a {type(models).__name__}")
        probes = probes_of(domain, self.context_space, self.seed)
        if len(probes):
            models.require_takes(probes)
        self.width = _checked_widths(width, models)
        if isinstance(domain, FiniteSet) and self.context_space is None:
            posterior = models.on(domain.points)
            self._initial_data_rows = (
                [] if self.initial is None else domain.index(self.initial[0]).tolist()
            )
        else:
            posterior = models.select(range(models.num_models))
        if len(probes):
            self._note_large_kernels(models.names, models.largest_variances(probes))
            self._raise_warnings(stacklevel=4)
        if self.initial is not None:
            posterior.add(*self.initial)
        self.names = list(models.names)
        # The places among the candidates of the models that the posterior still has.
        self.alive = list(range(models.num_models))
        # From the place of a model to the number of observations that refuted it.
        self.rejected: dict[int, int] = {}
        self.all_rejected_at: int | None = None
        self._num_data_before = posterior.num_observations
        self._rows: PendingRows[CandidateModels | FiniteCandidates] = PendingRows(posterior, policy)
        self._grow(self._next_step)

    @property
    def posterior(self) -> CandidateModels | FiniteCandidates:
        """What the models know that are not eliminated, in the order of `alive`: the told data, and
        the pending trials as the policy says. Reading it changes nothing."""
        return self._rows.current().posterior

    @property
    def plays(self) -> list[Play]:
        """The observations that models asked for, in the order of telling."""
        plays, t = [], self._num_data_before
        for event in self.history.events:
            if isinstance(event, Told) and event.id not in self._rows.told_too_late:
                t += 1
                if event.id >= len(self._initial_points):
                    model = self.history.trials[event.id].info["model"]
                    plays.append(Play(t, event.id, model))
        return plays

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
        checked = self._checked_context(context)
        X = self.domain.require_contains(X)
        posterior = self._rows.current().posterior
        if isinstance(posterior, FiniteCandidates) and isinstance(self.domain, FiniteSet):
            index = self.domain.index(X)
            mean, std = posterior.mean[:, index], posterior.std[:, index]
        else:
            mean, std = posterior.mean_and_std(with_context(X, checked))  # pyright: ignore
        widths, offsets = self._widths(posterior, posterior.num_observations + 1)
        return mean, widths[:, None] * std + offsets[:, None]

    def report(self) -> dict[str, Any]:
        rows = self._rows
        summary = super().report()
        evidence = self._evidence(rows).tolist()
        played = [0] * len(self.names)
        for trial in self.history.trials[len(self._initial_points) :]:
            played[trial.info["model"]] += 1
        models: list[dict[str, Any]] = [
            {
                "name": name,
                "status": "rejected" if id in self.rejected else "alive",
                "rejected_at": self.rejected.get(id),
                "times_played": played[id],
                "log_marginal_likelihood": None,
            }
            for id, name in enumerate(self.names)
        ]
        for id, value in zip(self.alive, evidence, strict=True):
            models[id]["log_marginal_likelihood"] = value
        summary |= {
            "t": rows.num_rows + 1,
            "width": repr(self.width),
            "models": models,
            "alive": [self.names[id] for id in self.alive],
            "all_rejected_at": self.all_rejected_at,
            "pending_policy": rows.policy.pending,
            "inflated": rows.policy.inflate,
            "told_too_late": list(rows.told_too_late),
        }
        return summary

    @property
    def _next_step(self) -> int:
        """t of the next ask: one more than the steps so far, initial ones included."""
        return self._num_data_before + len(self.history.trials) + 1

    # --- for subclasses ---------------------------------------------------------------------------

    def _current_width(self) -> Width | list[Width]:
        """The width at this step: one for all models, or one for each candidate."""
        return self.width

    def _contenders(self, posterior: CandidateModels | FiniteCandidates) -> list[int] | None:
        """The positions in the posterior of the models that may play; None for all of them."""
        return None

    def _probabilities(self, posterior: CandidateModels | FiniteCandidates) -> Tensor | None:
        """The weights with which upper confidence bounds are averaged; None where the highest
        counts."""
        return None

    @abstractmethod
    def _judge(self, trial: Trial, value: float) -> None:
        """Learns about the model that asked a trial from its observation, a datum by now."""

    def _evidence(self, rows: PendingRows[Any]) -> Tensor:
        """The log marginal likelihood of the told data under the models of the posterior."""
        return rows.posterior.log_marginal_likelihood(rows.untold(self.history))

    def _reject(self, id: int, t: int) -> None:
        """Eliminates a model and drops its posterior; the last one stays, with a warning."""
        if len(self.alive) == 1:
            self._warn_that_all_are_rejected(id, t)
            return
        kept = [position for position, other in enumerate(self.alive) if other != id]
        self._rows.posterior = self._rows.posterior.select(kept)
        self.alive.remove(id)
        self.rejected[id] = t

    def _warn_that_all_are_rejected(self, id: int, t: int) -> None:
        if self.all_rejected_at is not None:
            return
        self.all_rejected_at = t
        message = (
            f"every model is rejected after {t} observations: the assumptions are broken, and "
            f"{self.names[id]}, the last one, stays"
        )
        self._note(message, AllModelsRejectedWarning)

    def _note_large_kernels(self, names: Sequence[str], largest: Tensor) -> None:
        """Where nothing was noted so far."""
        if not self.warnings:
            for name, value in zip(names, largest.tolist(), strict=True):
                self._note_large_kernel(value, f" ({name})")

    # --- decisions --------------------------------------------------------------------------------

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        # Brings the models up to date with the events: `posterior` is the same before and after.
        self._rows.enter_newest()
        posterior = self._rows.posterior
        t = posterior.num_observations + 1
        widths, offsets = self._widths(posterior, t)
        contenders, probabilities = self._contenders(posterior), self._probabilities(posterior)
        points = choices.points(self.domain)
        if points is None:
            bounds = UpperBounds(posterior, widths, offsets, choices.context)  # pyright: ignore
            x, position = self._best_in_box(bounds, contenders, probabilities)
            places = {}
        else:
            if isinstance(posterior, FiniteCandidates):
                values = posterior.mean + widths[:, None] * posterior.std + offsets[:, None]
                values = values if choices.rows is None else values[:, choices.rows]  # (m, N)
            else:
                values = UpperBounds(posterior, widths, offsets, choices.context).values(points)
            row, position = best_pair(values, contenders, probabilities)
            x, places = points[row].clone(), choices.places(row)
        on_set = isinstance(posterior, FiniteCandidates)
        at = places["index"] if on_set else with_context(x, choices.context)
        prediction = self._predicted(position, at, widths, offsets)
        return x, places | vars(prediction)

    def _widths(
        self, posterior: CandidateModels | FiniteCandidates, t: int
    ) -> tuple[Tensor, Tensor]:
        of_alive = self._current_width()
        if not isinstance(of_alive, Width):
            of_alive = [of_alive[id] for id in self.alive]
        widths = posterior.width(of_alive, t)
        if self._rows.policy.inflate:
            widths = widths * posterior.pending_information_gain().exp()
        return widths, posterior.offset(of_alive, t)

    def _predicted(
        self, position: int, at: int | Tensor, widths: Tensor, offsets: Tensor
    ) -> Prediction:
        """What a model predicts at a candidate (its row) or a point, from told data alone."""
        posterior = self._rows.posterior
        untold = self._rows.untold(self.history)
        mean, std, gain = posterior.moments_without(position, untold, at)  # pyright: ignore
        width, offset = widths[position], offsets[position]
        id = self.alive[position]
        if untold:
            told = ToldOnly(
                posterior.noise_variance[position],
                posterior.num_observations - len(untold),
                posterior.dim,
                gain,
            )
            width = self._current_width()
            own = width if isinstance(width, Width) else width[id]
            t = told.num_observations + 1
            width, offset = (
                torch.as_tensor(value, dtype=mean.dtype, device=mean.device)
                for value in (own(t, told), own.offset(t, told))
            )
        return Prediction(id, *torch.stack([mean, std, width, offset]).tolist())

    def _best_in_box(
        self, bounds: UpperBounds, contenders: list[int] | None, probabilities: Tensor | None
    ) -> tuple[Tensor, int]:
        if not isinstance(self.domain, Box):
            raise TypeError(f"domain must be a Box, got {type(self.domain).__name__}")
        seed = self._seed_of(len(self.history.trials))
        return best_in_box(bounds, self.domain, seed, self._incumbents(), contenders, probabilities)

    # --- the fold ---------------------------------------------------------------------------------

    def _absorb(self, event: Event) -> None:
        if isinstance(event, Asked):
            if event.trial.id >= len(self._initial_points):
                self._check_played(event.trial)
            # All that can fail comes before the event has a row.
            names, largest = [self.names[id] for id in self.alive], None
            if self._looks_at_kernel_later:
                models: Any = self._rows.posterior
                largest = models.largest_variances(event.trial.point.unsqueeze(0))
            self._rows.enter_newest()
            self._grow(self._next_step + 1)  # this one is not yet in the history
            if largest is not None:
                self._note_large_kernels(names, largest)
        is_datum = self._rows.absorb(event, self.history)
        if is_datum and isinstance(event, Told):
            trial = self.history.trials[event.id]
            if trial.id >= len(self._initial_points):
                self._judge(trial, event.value)

    def _check_played(self, trial: Trial) -> None:
        """A ValueError where a recorded trial is none that the method asks now."""
        self._check_prediction(trial.info, f"info of trial {trial.id}")

    def _check_prediction(self, record: Any, name: str) -> None:
        Prediction.check_record(record, name)
        if record["model"] not in self.alive:
            raise ValueError(
                f"model in the {name} must be alive, one of {self.alive}, got {record['model']}"
            )

    def _grow(self, t: int) -> None:
        added = self._rows.posterior.grow(t)
        self.alive += range(len(self.names), len(self.names) + len(added))
        self.names += added

    def _evaluated_means(self) -> Tensor:
        rows = self._rows.for_means()
        posterior = rows.posterior
        position = int(self._evidence(rows).argmax())
        if isinstance(posterior, FiniteCandidates):
            told = [self.history.trials[id].info["index"] for id in self.history.values]
            return posterior.mean[position, self._initial_data_rows + told]
        return self._means_at(self._evaluated()[0])

    @torch.no_grad()
    def _means_at(self, X: Tensor) -> Tensor:
        rows = self._rows.for_means()
        models: Any = rows.posterior
        return models.single(int(self._evidence(rows).argmax())).mean_and_std(X)[0]

    def _check_joint(self, X: Tensor) -> None:
        models: Any = self._rows.posterior
        models.require_takes(X)


def _checked_widths(
    width: Width | float | Sequence[Width | float], models: CandidateModels
) -> Width | list[Width]:
    if not isinstance(width, Sequence):
        return as_width(width)
    if models.grows:
        raise ValueError(f"width must be one for all models of a set that grows, got {len(width)}")
    num_models = models.num_models
    if len(width) != num_models:
        raise ValueError(f"width must be one, or one for each of {num_models}, got {len(width)}")
    return [as_width(own) for own in width]
