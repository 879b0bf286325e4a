"""Phased elimination: rounds of largest variance, after which what cannot be best is dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from botorch_ext.delays import SeenDelays
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.exceptions import HorizonWarning
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.regions.region import Region
from botorch_ext.rounds import DelayAware, Rounds
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.admission import probes_of
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Event, Told, Trial
from botorch_ext.strategies.fixed_design.arenas import Choice, arena_of
from botorch_ext.strategies.fixed_design.horizon import (
    ObservedMeans,
    require_left,
    require_prior,
    waiting,
)
from botorch_ext.strategies.fixed_design.records import check_opening
from botorch_ext.strategies.fixed_design.round import Closing, Round
from botorch_ext.widths import Width, as_width
from botorch_ext.widths.base import check_delta


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
        horizon: T, the number of trials; the last round is cut to it. None: that of ``rounds``,
            where they are made for one.
        waits: Whether a round closes only when all its trials are told or abandoned. Otherwise it
            closes with what has arrived.
        delta: Failure probability, for the delay allowance of ``rounds``.
        seed: Seeds every random choice.

    Raises:
        ValueError: A horizon less than 1, another than that of ``rounds`` or none, delta not in
            (0, 1), no `Rounds`, ``waits`` that is no bool, or a model that has data, batch
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
        horizon: int | None = None,
        *,
        waits: bool = True,
        delta: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(domain, seed)
        check_delta(delta)
        if not isinstance(rounds, Rounds):
            raise ValueError(f"rounds must be Rounds, such as Doubling(), got {rounds!r}")
        horizon = rounds.agreed_horizon(horizon)
        if not isinstance(waits, bool):
            raise ValueError(f"waits must be True or False, got {waits!r}")
        require_prior(model, domain)
        self._note_large_kernel(float(model.largest_variance(probes_of(domain, None, self.seed))))
        self._raise_warnings()
        self._means = ObservedMeans(model)
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
            self._note(message, HorizonWarning)
            self._raise_warnings()

    @property
    def model(self) -> KernelGP:
        """The prior, which is never copied: its mean may be a function that cannot be."""
        return self._means.model

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

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        asked = len(self.history.trials)
        require_left(num_trials, asked, self.horizon)
        if not self.waits:
            return
        available = self.rounds[-1].ids.stop - asked if self.rounds else 0
        if not available and not self._missing():
            available = self._length_of(len(self.rounds) + 1)
        if num_trials > available:
            raise waiting(num_trials, available, self._missing(), "the round closes")

    def _missing(self) -> list[int]:
        """The trials of the last round that are asked, and neither told nor abandoned."""
        ids = self.rounds[-1].ids if self.rounds else ()
        return [id for id in self.pending if id in ids]

    def _length_of(self, number: int) -> int:
        """The length of a round that opens now, not cut to the horizon."""
        asked = len(self.history.trials)
        ages = tuple(asked - id - 1 for id in self.pending)
        seen = SeenDelays(tuple(self._delays.values()), ages)
        return self.round_lengths.length(number, self.horizon, self.delta, seen)

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        step = len(self.history.trials)
        info: dict[str, Any] = {}
        if self._opens(step):
            self._opening = self._open(step)
            round = self._opening.round
            info["opening"] = self._opening.record
        else:
            round = self.rounds[-1]
        return round.points[step - round.first].clone(), info | self._info(round, step)

    def _opens(self, step: int) -> bool:
        """Whether a round starts with this trial."""
        return not self.rounds or step == self.rounds[-1].ids.stop

    def _info(self, round: Round, step: int) -> dict[str, Any]:
        k = step - round.first
        info: dict[str, Any] = {"round": round.number, "std": round.choice.std[k]}
        if isinstance(self.domain, FiniteSet):
            info["index"] = round.choice.plan[k]
        return info

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
        self._check_opening(step, record)
        try:
            closing, survivors = self._close(record)
            if isinstance(survivors, Tensor) and not len(survivors):
                raise ValueError("nothing survives")
        except ValueError as error:
            known = {name: record[name] for name in ("threshold", "argmax")}
            raise ValueError(
                f"opening of trial {step} must have the threshold and the argmax of the round "
                f"before, got {known}: {error}"
            ) from error
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

    def _check_event(self, event: Event) -> None:
        if isinstance(event, Asked):
            opening = self._opening_of(event.trial)
            round = self.rounds[-1] if opening is None else opening.round
            self._check_planned(event.trial, round)
            self._opening = opening

    def _absorb(self, event: Event) -> None:
        match event:
            case Asked():
                if self._opening is not None:
                    if self.rounds:
                        self.rounds[-1].closing = self._opening.closing
                    self.rounds.append(self._opening.round)
                self._opening = None
            case Told(id):
                self._delays[id] = len(self.history.trials) - id - 1

    def _opening_of(self, trial: Trial) -> _Opening | None:
        """What a trial opens: decided just now, or recorded; None within a round."""
        opens = self._opens(trial.id)
        if opens != ("opening" in trial.info):
            raise ValueError(
                f"info of trial {trial.id} must have "
                + ("an opening: a round starts there" if opens else "no opening within a round")
                + f", got {list(trial.info)}"
            )
        if not opens:
            return None
        record = trial.info["opening"]
        if self._opening is not None and self._opening.record is record:
            return self._opening
        return self._recorded_opening(trial.id, record)

    def _check_planned(self, trial: Trial, round: Round) -> None:
        k = trial.id - round.first
        if not torch.equal(trial.x, round.points[k]):
            raise ValueError(
                f"x of trial {trial.id} must be the planned {round.points[k].tolist()}, got "
                f"{trial.x.tolist()}"
            )
        planned = self._info(round, trial.id)
        recorded = {name: trial.info.get(name) for name in planned}
        if recorded != planned:
            raise ValueError(f"info of trial {trial.id} must have {planned}, got {recorded}")

    def _check_opening(self, step: int, record: Any) -> None:
        """A ValueError unless a round can start with this trial and this record."""
        if step >= self.horizon:
            raise ValueError(f"id must be less than the horizon of {self.horizon}, got {step}")
        if self.waits and (missing := self._missing()):
            raise ValueError(
                f"opening of trial {step} must come after the round before, of which these pend: "
                f"{missing}"
            )
        lengths, most = self.round_lengths, self.horizon - step
        # What was learnt from delays may differ in the last digits elsewhere.
        learns = isinstance(lengths, DelayAware) and lengths.allowance.learns
        if not learns:
            most = min(self._length_of(len(self.rounds) + 1), most)
        arrived = None
        if self.rounds:
            arrived = any(id in self.history.values for id in self.rounds[-1].ids)
        check_opening(
            record, f"opening of trial {step}", self.domain, 1 if learns else most, most, arrived
        )

    def evaluated_means(self) -> Tensor:
        """Of all observations, those that came too late for their round included."""
        return self._means.at(*self.evaluated())
