"""Phased elimination: rounds of largest variance, after which what cannot be best is dropped."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.delays import SeenDelays
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.exceptions import HorizonReached, HorizonWarning, WaitingForObservations
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.regions import Region
from botorch_ext.rounds import Rounds
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Event, History, Told
from botorch_ext.strategies.survivors import Choice, arena_of
from botorch_ext.widths import Width, as_width
from botorch_ext.widths.base import check_delta


@dataclass(frozen=True, eq=False)
class Closing:
    """What a round ended with.

    Args:
        arrived: The trials whose observations were in.
        width: The multiplier of the standard deviation; None, like the others, where nothing had
            arrived, so that nothing was eliminated.
        offset: What the bounds add besides.
        threshold: The largest lower bound, which the upper bounds of survivors reach.
        argmax: The ``d`` coordinates where the lower bound is largest.
    """

    arrived: list[int]
    width: float | None = None
    offset: float | None = None
    threshold: float | None = None
    argmax: list[float] | None = None


@dataclass(eq=False)
class Round:
    """One round, as far as it has come.

    Args:
        number: 1, 2, ...
        first: The id of its first trial; the others follow.
        survivors: Where its points were chosen: ascending rows of the finite set, or the region.
        choice: Its plan.
        points: ``t_r x d``, the planned points.
        closing: What it ended with; None while it is open.
    """

    number: int
    first: int
    survivors: Tensor | Region
    choice: Choice
    points: Tensor
    closing: Closing | None = None

    @property
    def ids(self) -> range:
        """The ids of its trials, those still to be asked included."""
        return range(self.first, self.first + len(self.points))

    def told_too_late(self, history: History) -> list[int]:
        """The trials that were told after the round had closed."""
        if self.closing is None:
            return []
        arrived = set(self.closing.arrived)
        return [id for id in self.ids if id in history.values and id not in arrived]


@dataclass(frozen=True, eq=False)
class _Opening:
    """The end of a round and the start of the next, decided when the next is first asked for."""

    closing: Closing | None
    round: Round
    # What the event must hold so that replaying it chooses nothing.
    record: dict[str, Any]


class PhasedElimination(Strategy):
    """Rounds of max-variance points; between rounds, whatever has an upper confidence bound below
    the largest lower one is eliminated.

    Each round starts from the prior and is judged by its own observations alone. So no point
    depends on an observation it is judged with, and widths for fixed designs apply. A round closes
    at the first ask after its last point was asked; what is told later is recorded and not used.
    The first trial of a round has the plan of the whole round in its ``info["opening"]``.

    Source: Bogunovic and Krause 2021, algorithm 2; Li and Scarlett 2022 (BPE); Vakili et al. 2023,
    algorithm 1 (BPE-Delay).

    Args:
        domain: Where to maximise. On a box the survivors are a `Region`, never a grid.
        model: A `KernelGP` without data: kernel, noise variance and prior mean.
        width: The confidence width, called with the observations of one round; a float is a
            constant.
        rounds: The round lengths.
        horizon: T, the number of trials; the last round is cut to it.
        waits: Whether a round closes only when all its trials are told or abandoned. Otherwise it
            closes with what has arrived.
        delta: Failure probability, for the delay allowance of ``rounds``.
        seed: Seeds every random choice.

    Raises:
        ValueError: A horizon less than 1, delta not in (0, 1), or a model that has data, batch
            dimensions or transforms, or another dtype or device than the domain.

    Warns:
        HorizonWarning: The first round is longer than the horizon.
    """

    def __init__(
        self,
        domain: Domain,
        model: KernelGP,
        width: Width | float,
        rounds: Rounds,
        horizon: int,
        *,
        waits: bool = True,
        delta: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(domain, seed)
        horizon = whole_number(horizon, "horizon", least=1)
        check_delta(delta)
        model.require_takes(domain.like)
        if model.num_observations:
            raise ValueError(
                "model must have no data, since rounds start from the prior, got "
                f"{model.num_observations} observations"
            )
        if model.has_transforms:
            raise ValueError("model must not have input or outcome transforms")
        self._warn_of_large_kernel(model)
        self.model = model
        self.width = as_width(width)
        self.round_lengths = rounds
        self.horizon = horizon
        self.waits = waits
        self.delta = delta
        self.rounds: list[Round] = []
        self._arena = arena_of(domain)
        self._delays: dict[int, int] = {}
        self._opening: _Opening | None = None
        first = self._length_of(1)
        if first > horizon:
            message = (
                f"horizon must be at least the first round of {first}, got {horizon}; it is cut"
            )
            self.warnings.append(message)
            warnings.warn(message, HorizonWarning, stacklevel=4)

    def report(self) -> dict[str, Any]:
        return super().report() | {
            "horizon": self.horizon,
            "width": repr(self.width),
            "round_lengths": repr(self.round_lengths),
            "waits": self.waits,
            "rounds": [self._describe(round) for round in self.rounds],
        }

    def _describe(self, round: Round) -> dict[str, Any]:
        std = self.model.noise_variance.new_tensor(round.choice.std)
        summary: dict[str, Any] = {
            "round": round.number,
            "length": len(round.points),
            "asked": min(len(self.history.trials) - round.first, len(round.points)),
            "information_gain": float((std.square() / self.model.noise_variance).log1p().sum() / 2),
            "volume": round.choice.volume,
            "volume_standard_error": round.choice.volume_error,
            "closed": round.closing is not None,
        }
        if isinstance(round.survivors, Tensor):
            summary["num_candidates"] = len(round.survivors)
        if round.closing is not None:
            summary |= {
                "arrived": len(round.closing.arrived),
                "told_too_late": round.told_too_late(self.history),
                "current_width": round.closing.width,
                "offset": round.closing.offset,
                "threshold": round.closing.threshold,
            }
        return summary

    # --- decisions --------------------------------------------------------------------------------

    def _require_askable(self, num_trials: int) -> None:
        asked = len(self.history.trials)
        if asked + num_trials > self.horizon:
            raise HorizonReached(
                f"num_trials must be at most {self.horizon - asked}, what the horizon of "
                f"{self.horizon} has left, got {num_trials}",
                self.horizon,
            )
        if not self.waits:
            return
        missing, available = [], 0
        if self.rounds:
            ids = self.rounds[-1].ids
            missing, available = [id for id in self.pending if id in ids], ids.stop - asked
        if not missing and not available:
            available = self._length_of(len(self.rounds) + 1)
        if num_trials > available:
            raise WaitingForObservations(
                f"num_trials must be at most {available} before the round closes, got "
                f"{num_trials}: it waits until all its trials are told or abandoned, and of those "
                f"asked these are not: {missing}",
                missing,
                available,
            )

    def _length_of(self, number: int) -> int:
        """The length of a round that opens now, not cut to the horizon."""
        asked = len(self.history.trials)
        ages = tuple(asked - id - 1 for id in self.pending)
        seen = SeenDelays(tuple(self._delays.values()), ages)
        return self.round_lengths.length(number, self.horizon, self.delta, seen)

    def _decide(self) -> tuple[Tensor, dict[str, Any]]:
        step = len(self.history.trials)
        if not self.rounds or step == self.rounds[-1].ids.stop:
            self._opening = self._open(step)
            round = self._opening.round
            info: dict[str, Any] = {"opening": self._opening.record}
        else:
            round, info = self.rounds[-1], {}
        k = step - round.first
        info |= {"round": round.number, "std": round.choice.std[k]}
        if isinstance(self.domain, FiniteSet):
            info["index"] = round.choice.plan[k]
        return round.points[k].clone(), info

    def _open(self, step: int) -> _Opening:
        number = len(self.rounds) + 1
        length = min(self._length_of(number), self.horizon - step)
        closing, survivors = self._close(None)
        choice = self._arena.choose(survivors, self.model, length, self._seed_of(step))
        record: dict[str, Any] = vars(choice).copy()
        if closing is not None:
            record |= {"threshold": closing.threshold, "argmax": closing.argmax}
        return _Opening(closing, self._make_round(step, survivors, choice), record)

    def _recorded_opening(self, step: int, record: dict[str, Any]) -> _Opening:
        """What `_open` returned when the event was recorded, without choosing anything."""
        closing, survivors = self._close(record)
        choice = Choice(**{name: record[name] for name in Choice.__annotations__})
        return _Opening(closing, self._make_round(step, survivors, choice), record)

    def _make_round(self, first: int, survivors: Tensor | Region, choice: Choice) -> Round:
        points = self._arena.points(choice)
        return Round(len(self.rounds) + 1, first, survivors, choice, points)

    def _close(self, record: dict[str, Any] | None) -> tuple[Closing | None, Tensor | Region]:
        """The end of the last round, with the threshold of the record where there is one, and what
        survives it."""
        if not self.rounds:
            return None, self._arena.whole
        round = self.rounds[-1]
        arrived = [id for id in round.ids if id in self.history.values]
        if not arrived:
            return Closing(arrived), round.survivors
        X = round.points[[id - round.first for id in arrived]]
        Y = X.new_tensor([self.history.values[id] for id in arrived])
        known = None if record is None else (record["threshold"], record["argmax"])
        bounds, survivors = self._arena.eliminate(
            round.survivors, self.model, self.width, X, Y, known, self._seed_of(round.first)
        )
        return Closing(arrived, *bounds), survivors

    # --- the fold ---------------------------------------------------------------------------------

    def _absorb(self, event: Event) -> None:
        match event:
            case Asked(trial) if "opening" in trial.info:
                record, opening = trial.info["opening"], self._opening
                if opening is None or opening.record is not record:
                    opening = self._recorded_opening(trial.id, record)
                if self.rounds:
                    self.rounds[-1].closing = opening.closing
                self.rounds.append(opening.round)
                self._opening = None
            case Told(id):
                self._delays[id] = len(self.history.trials) - id - 1

    def _evaluated_means(self) -> Tensor:
        """Of all observations, those that came too late for their round included."""
        model = deepcopy(self.model)
        model.add(*self._evaluated())
        return model.fitted_means()
