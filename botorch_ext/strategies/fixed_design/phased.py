"""Phased elimination: rounds of points of largest variance, after which points are eliminated."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from botorch_ext.checks import amount, flag, one_number
from botorch_ext.delays import SeenDelays
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.exceptions import HorizonWarning
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.predictions.mixture import GPMixture
from botorch_ext.regions.region import Region
from botorch_ext.rounds import DelayAware, Rounds
from botorch_ext.state import parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Asked, Event, Told, Trial
from botorch_ext.strategies.fixed_design.arrivals import Arrivals, More, ToldData
from botorch_ext.strategies.fixed_design.horizon import (
    ObservedMeans,
    require_before_horizon,
    require_left,
    require_prior,
    waiting,
)
from botorch_ext.strategies.fixed_design.round import Closing, Round
from botorch_ext.strategies.fixed_design.survivors import Choice, survivors_of
from botorch_ext.strategies.initial_checks import probes_of
from botorch_ext.widths import Width, as_width
from botorch_ext.widths.base import check_delta, require

Closes = Literal["allowance", "arrival"]


@dataclass(frozen=True, eq=False)
class _Opening:
    """The end of a round and the start of the next, decided when the next is first asked for."""

    closing: Closing | None
    round: Round
    # The entry of ``info`` from which a replay takes the plan.
    record: dict[str, Any]


class PhasedElimination(Strategy):
    """Plays rounds of points of largest variance, and eliminates between rounds every point whose
    upper confidence bound is below the largest lower one.

    Each round starts from the prior and is judged by its own observations alone. So no point
    depends on an observation that it is judged with, and widths for fixed designs apply. A round
    closes at the first ask after its last point was asked; results that are told later are recorded
    but not used.

    With ``closing="arrival"`` a round needs no delay allowance. It closes at the first ask after
    its plan at which the observations that have arrived leave no survivor a larger standard
    deviation than ``kappa`` times what the whole plan would leave. Until then the round asks its
    next points of largest variance. These count as the planned points do, since they depend on
    which observations have arrived, not on their values. The last round, which the horizon would
    cut, plans nothing: it asks the survivor with the highest posterior mean of all told data.

    ``info`` of a trial has the keys

    - ``round``: the number of the round, from 1;
    - ``std``: the standard deviation at the point, given the points of the round before it; not in
      a last round without a plan;
    - ``index``: on a finite set, the row of the point;
    - ``opening``: for the first trial of a round, a dict with the ``plan`` of the round (rows or
      coordinates), their ``std``, the share of the domain that survives, ``volume``, with its
      standard error ``volume_error``, and the ``threshold`` and ``argmax`` of the elimination;
    - ``more``: with ``closing="arrival"``, points that are added to the plan, likewise.

    Source: Bogunovic and Krause 2021, algorithm 2; Li and Scarlett 2022 (BPE); Vakili et al. 2023,
    algorithm 1 (BPE-Delay).

    Args:
        domain: The domain: a `Box`, its bounds, or a `FiniteSet`. On a box the survivors are a
            `Region`, never a grid.
        model: A `KernelGP` without data: kernel, noise variance and prior mean.
        width: The confidence width, called with the observations of one round; or a number.
        rounds: The lengths of the rounds, such as `Doubling` or `SquareRoot`.
        horizon: T, the number of trials; the last round is cut to it. None: the horizon of
            ``rounds``, if it has one.
        waits: Whether a round closes only when all its trials are told or abandoned. Otherwise it
            closes with the observations that have arrived.
        closing: "allowance": a round closes after as many trials as ``rounds`` says. "arrival": see
            above; not with ``waits``, nor with rounds that are `DelayAware`.
        kappa: At least 1, for ``closing="arrival"``.
        delta: The failure probability of the delay allowance of ``rounds``.
        seed: The seed of every random choice.

    Raises:
        ValueError: If the horizon is less than 1, differs from that of ``rounds`` or is missing; if
            delta is not in (0, 1); if ``rounds`` or ``waits`` has a wrong type; or if the model has
            data, batch dimensions, transforms, or another dtype or device than the domain.

    Warns:
        HorizonWarning: The first round is longer than the horizon.
    """

    refuses_attached = "a round is judged by the points of its own plan alone"

    def __init__(
        self,
        domain: Domain,
        model: KernelGP,
        width: Width | float,
        rounds: Rounds,
        horizon: int | None = None,
        *,
        waits: bool = True,
        closing: Closes = "allowance",
        kappa: float = 1.0,
        delta: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(domain, seed)
        delta = check_delta(delta)
        if not isinstance(rounds, Rounds):
            raise ValueError(f"rounds must be Rounds, such as Doubling(), got {rounds!r}")
        horizon = rounds.agreed_horizon(horizon)
        waits = flag(waits, "waits")
        if closing not in ("allowance", "arrival"):
            raise ValueError(f'closing must be "allowance" or "arrival", got {closing!r}')
        if closing == "arrival" and (waits or isinstance(rounds, DelayAware)):
            raise ValueError(
                'closing must be "allowance" with rounds that wait, or that have an allowance, got '
                f"{closing!r} with waits={waits} and {rounds!r}"
            )
        kappa = one_number(kappa, "kappa")
        require(1 <= kappa < math.inf, "kappa", kappa, "at least 1 and finite")
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
        self.closing, self.kappa = closing, kappa
        self._arrivals = Arrivals(domain, model, kappa) if closing == "arrival" else None
        self._space = self._arrivals.space if self._arrivals else survivors_of(domain)
        self._delays: dict[int, int] = {}
        # The posterior of all told data, once a round plays its mean.
        self._told: ToldData | None = None
        first = self._length_of(1)
        if first > horizon:
            message = (
                f"horizon must be at least the first round of {first}, got {horizon}; it is cut"
            )
            self._note(message, HorizonWarning)
            self._raise_warnings()

    @property
    def model(self) -> KernelGP:
        """The prior, a `KernelGP`. It is never copied, as its mean may be a function that cannot
        be."""
        return self._means.model

    def report(self) -> dict[str, Any]:
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `Strategy.report` and

            - ``horizon``, ``waits``, ``closing``: the arguments;
            - ``width``, ``round_lengths``: the width and the rounds as they were given;
            - ``rounds``: a list with a dict for each round, see below.

            The dict of a round has its number, ``round``; the number of planned and of asked
            points, ``length`` and ``asked``; the ``information_gain`` of its plan; the share of the
            domain that it chose from, ``volume``, with its ``volume_standard_error``, and on a
            finite set the number of points, ``num_candidates``; and whether it is ``closed``. A
            closed round also has the number of observations that had ``arrived``; the ids of trials
            that were ``told_too_late``; the ``current_width`` and the ``offset`` of its bounds; and
            the ``threshold``, the largest lower bound.
        """
        noise = self.model.noise_variance
        return super().report() | {
            "horizon": self.horizon,
            "width": parts_of(self.width),
            "round_lengths": parts_of(self.round_lengths),
            "waits": self.waits,
            "closing": self.closing,
            "rounds": [round.describe(self.history, noise) for round in self.rounds],
        }

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
        """The ids of the pending trials of the last round."""
        ids = self.rounds[-1].ids if self.rounds else ()
        return [id for id in self.pending if id in ids]

    def _length_of(self, number: int) -> int:
        """The length of a round that opens now, not cut to the horizon."""
        asked = len(self.history.trials)
        ages = tuple(asked - id - 1 for id in self.pending)
        seen = SeenDelays(tuple(self._delays.values()), ages)
        return self.round_lengths.length(number, self.horizon, self.delta, seen)

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        step, opening, more = len(self.history.trials), None, None
        info: dict[str, Any] = {}
        if self._opens(step):
            opening = self._open(step)
            round = opening.round
            info["opening"] = opening.record
        else:
            round = self.rounds[-1]
        if not round.plays_mean and step == round.ids.stop:
            left, seed = self.horizon - step, self._seed_of(step)
            more = self._arrivals.more(round, left, seed)  # pyright: ignore
            info["more"] = more.record
            round = more.added_to(round)
        self._ahead = opening, more
        if round.plays_mean:
            return self._play_mean(round, step, info)
        return round.points[step - round.first].clone(), info | self._info(round, step)

    def _opens(self, step: int) -> bool:
        """Whether a round starts with this trial."""
        if not self.rounds:
            return True
        round = self.rounds[-1]
        if self._arrivals is None:
            return step == round.ids.stop
        if round.plays_mean or step < round.first + round.length:
            return False
        arrived = [id - round.first for id in round.ids if id in self.history.values]
        seed = self._seed_of(round.first)
        return self._arrivals.suffice(round, arrived, round.num_asked(self.history), seed)

    def _info(self, round: Round, step: int) -> dict[str, Any]:
        k = step - round.first
        info: dict[str, Any] = {"round": round.number, "std": round.choice.std[k]}
        if isinstance(self.domain, FiniteSet):
            info["index"] = round.choice.plan[k]
        return info

    def _open(self, step: int) -> _Opening:
        closing, survivors = self._close(None)
        length, seed = self._length_at(step), self._seed_of(step)
        if length:
            choice = self._space.choose(survivors, self.model, length, seed)
        else:
            choice = self._space.nothing(survivors, seed)
        record: dict[str, Any] = vars(choice).copy()
        if closing is not None:
            record |= {"threshold": closing.threshold, "argmax": closing.argmax}
        round = self._make_round(step, survivors, choice)
        if self._arrivals is not None and length:
            round.promise = self._arrivals.promise(survivors, round.points, seed)
            record["promise"] = round.promise
        return _Opening(closing, round, record)

    def _length_at(self, step: int) -> int:
        """The length of a round that opens with this trial; 0 for one that plays the mean."""
        number, left = len(self.rounds) + 1, self.horizon - step
        length = self._length_of(number)
        if self._arrivals is not None and number > 1 and left <= length:
            return 0
        return min(length, left)

    @torch.no_grad()
    def _play_mean(
        self, round: Round, step: int, info: dict[str, Any]
    ) -> tuple[Tensor, dict[str, Any]]:
        arrivals: Any = self._arrivals
        self._told = told = arrivals.told(*self.evaluated(), self._told)
        seeds = self._seed_of(step), self._seed_of(round.first)
        x, place = arrivals.highest_mean(round.survivors, told.posterior, self._incumbents, seeds)
        return x, info | {"round": round.number} | place

    def _recall(self, trial: Trial) -> tuple[_Opening | None, More | None]:
        require_before_horizon(trial.id, self.history, self.horizon)
        last, opening = self.rounds[-1] if self.rounds else None, None
        if last is None or "opening" in trial.info:
            opening = self._recorded_opening(trial.id, trial.info["opening"])
            last = opening.round
        if last.plays_mean:  # it grows with the same events as when the trial was asked
            arrivals: Any = self._arrivals
            self._told = arrivals.told(*self.evaluated(), self._told)
        if opening is not None or last.plays_mean or trial.id in last.ids:
            return opening, None
        choice = Choice.recorded(trial.info["more"], self.domain)
        return None, More(choice, self._space.points(choice))

    def _recorded_opening(self, step: int, record: dict[str, Any]) -> _Opening:
        """The result of `_open` for a recorded trial; nothing is chosen again."""
        closing, survivors = self._close(None if self._is_corrected else record)
        if isinstance(survivors, Tensor) and not len(survivors):
            raise ValueError(f"threshold of trial {step} must leave points, got {record}")
        round = self._make_round(step, survivors, Choice.recorded(record, self.domain))
        if self._arrivals is not None and round.length:
            round.promise = amount(record["promise"], "promise", "non-negative and finite")
        return _Opening(closing, round, record)

    def _make_round(self, first: int, survivors: Tensor | Region, choice: Choice) -> Round:
        points = self._space.points(choice)
        return Round(len(self.rounds) + 1, first, survivors, choice, points)

    def _close(self, record: dict[str, Any] | None) -> tuple[Closing | None, Tensor | Region]:
        """The end of the last round, and its survivors; the threshold is that of the record, if
        there is one."""
        if not self.rounds:
            return None, self._space.whole
        round = self.rounds[-1]
        arrived = [id for id in round.ids if id in self.history.values]
        if not arrived:
            return Closing(arrived), round.survivors
        X = round.points[[id - round.first for id in arrived]]
        Y = X.new_tensor([self.history.values[id] for id in arrived])
        known = None
        if record is not None:
            threshold = amount(record["threshold"], "threshold", "finite")
            self.domain.require_contains(record["argmax"], "argmax")
            known = threshold, record["argmax"]
        bounds, survivors = self._space.eliminate(
            round.survivors, self.model, self.width, X, Y, known, self._seed_of(round.first)
        )
        return Closing(arrived, *bounds), survivors

    # --- the next state ---------------------------------------------------------------------------

    def _absorb(self, event: Event) -> None:
        match event:
            case Asked(trial):
                opening, more = self._ahead
                if opening is not None:
                    if self.rounds:
                        self.rounds[-1] = self.rounds[-1].ended(opening.closing, trial.id)
                    self.rounds.append(opening.round)
                if more is not None:
                    self.rounds[-1] = more.added_to(self.rounds[-1])
                if self.rounds[-1].plays_mean:
                    self.rounds[-1] = self.rounds[-1].with_point(trial.x)
            case Told(id):
                self._delays[id] = len(self.history.trials) - id - 1

    def _mixture(self, context: Tensor | None) -> GPMixture:
        return self._means.mixture(*self.evaluated())

    def evaluated_means(self) -> Tensor:
        """The posterior mean at the ``n`` evaluated points given all observations, late ones
        included: ``n``."""
        return self._means.at(*self.evaluated())
