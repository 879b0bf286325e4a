"""Phased elimination: rounds of points of largest variance, after which points are eliminated."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from torch import Tensor

from botorch_ext.checks import flag
from botorch_ext.delays import SeenDelays
from botorch_ext.delays.rounds import Rounds
from botorch_ext.domains import Domain, FiniteSet
from botorch_ext.exceptions import HorizonWarning
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.records import in_sign, plain
from botorch_ext.state import parts_of
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.answers.mixture import GPMixture
from botorch_ext.strategies.events import Asked, Event, Told, Trial
from botorch_ext.strategies.fixed_design.horizon import ObservedMeans, require_prior, waiting
from botorch_ext.strategies.fixed_design.progress import Progress
from botorch_ext.strategies.fixed_design.replicas import RoundReplicas
from botorch_ext.strategies.fixed_design.round import Closing, Round
from botorch_ext.strategies.fixed_design.round_records import Opening, PlayedInRound
from botorch_ext.strategies.fixed_design.round_strategy import RoundStrategy
from botorch_ext.strategies.fixed_design.survivors import (
    Bounds,
    at_ridges,
    evaluated_at,
    survivors_of,
)
from botorch_ext.strategies.initial_checks import probes_of
from botorch_ext.strategies.refutation import Alarm
from botorch_ext.strategies.replicas import NotReplicatedError, Replicas, Runs
from botorch_ext.widths import Width, as_width
from botorch_ext.widths.base import check_delta
from botorch_ext.widths.composed import require_plain
from botorch_ext.widths.told_data import ToldData


class PhasedElimination(RoundStrategy):
    """Plays rounds of points of largest variance, and eliminates between rounds every point whose
    upper confidence bound is below the largest lower one.

    Each round starts from the prior and is judged by its own observations alone. So no point
    depends on an observation that it is judged with, and widths for fixed designs apply. A round
    closes at the first ask after its last point was asked; results that are told later are recorded
    but not used.

    ``info`` of a trial has the keys

    - ``round``: the number of the round, from 1;
    - ``std``: the standard deviation at the point, given the points of the round before it;
    - ``index``: on a finite set, the row of the point;
    - ``opening``: for the first trial of a round, a dict with the ``plan`` of the round (rows or
      coordinates), their ``std``, the share of the domain that survives, ``volume``, with its
      standard error ``volume_error``, and the ``threshold`` and ``argmax`` of the elimination.

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
        delta: The failure probability of the delay allowance of ``rounds``.
        seed: The seed of every random choice.
        minimize: As for `Strategy`.

    Raises:
        ValueError: If the horizon is less than 1, differs from that of ``rounds`` or is missing; if
            delta is not in (0, 1); if ``rounds`` or ``waits`` has a wrong type; if ``width`` is a
            `FixedDesignLadder` on a box; or if the model has data, batch dimensions, transforms, or
            another dtype or device than the domain.

    Warns:
        HorizonWarning: The first round is longer than the horizon.
    """

    record = PlayedInRound
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
        delta: float = 0.1,
        seed: int = 0,
        minimize: bool | None = None,
    ) -> None:
        super().__init__(domain, seed, minimize=minimize)
        delta = check_delta(delta)
        if not isinstance(rounds, Rounds):
            raise ValueError(f"rounds must be Rounds, such as Doubling(), got {rounds!r}")
        horizon = rounds.agreed_horizon(horizon)
        waits = flag(waits, "waits")
        require_prior(model, domain)
        self._note_large_kernel(float(model.largest_variance(probes_of(domain, None, self.seed))))
        self._raise_warnings()
        self._means = ObservedMeans(model.negated() if minimize else model)
        self.width = as_width(width)
        require_plain(self.width)
        self.round_lengths = rounds
        self.horizon = horizon
        self.waits = waits
        self.delta = delta
        self.rounds: list[Round] = []
        self._space = survivors_of(domain, self.width)
        self._progress = Progress(self._space.whole)
        self._delays: dict[int, int] = {}
        self._alarm = Alarm.of(self.width)
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

            - ``horizon``, ``waits``: the arguments;
            - ``width``, ``round_lengths``: the width and the rounds as they were given;
            - ``rounds``: a list with a dict for each round, see below.

            The dict of a round has its number, ``round``; the number of planned and of asked
            points, ``length`` and ``asked``; the ``information_gain`` of its plan; the share of the
            domain that it chose from, ``volume``, with its ``volume_standard_error``, and on a
            finite set the number of points, ``num_candidates``; and whether it is ``closed``. A
            closed round also has the number of observations that had ``arrived``; the ids of trials
            that were ``told_too_late``; the ``current_width`` and the ``offset`` of its bounds,
            where the width is a list of numbers if there are several ridges; and the ``threshold``,
            the largest lower bound.
        """
        noise = self.model.noise_variance
        rounds = [round.describe(self.history, noise) for round in self.rounds]
        return super().report() | {
            "horizon": self.horizon,
            "width": parts_of(self.width),
            "round_lengths": parts_of(self.round_lengths),
            "waits": self.waits,
            "rounds": in_sign(rounds, self.history.sign),
        }

    # --- decisions --------------------------------------------------------------------------------

    def require_askable(self, num_trials: int, choices: Choices) -> None:
        super().require_askable(num_trials, choices)
        if not self.waits:
            return
        asked = len(self.history.trials)
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

    def _planner(self) -> KernelGP:
        return self.model

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        opening = self._begin(None)
        x, info = self._planned()
        return x, opening | info

    def _begin(self, recorded: PlayedInRound | None) -> dict[str, Any]:
        """Starts a round if the last one is over, and returns what ``info`` says about it; for a
        recorded step nothing is chosen again."""
        if self._progress.phase == "block":
            return {}
        record = self._taken(recorded, "opening")
        closing = self._close(record) if self.rounds else Closing([])
        number, step = self._progress.round, self.history.num_asked
        length = min(self._length_of(number), self.horizon - step)
        choice = self._plan_block(length, record)
        survivors, points = self._progress.survivors, self._space.points(choice)
        argmax = None if closing.argmax is None else tuple(closing.argmax)
        end = {"threshold": closing.threshold, "argmax": argmax}
        opening = Opening(**(vars(choice) | end))
        self.rounds.append(Round(number, step, survivors, opening, points))
        return {"opening": plain(opening)}

    def _close(self, record: Opening | None) -> Closing:
        """Ends the last round; the threshold is that of the record, if there is one."""
        round, survivors = self.rounds[-1], self._progress.survivors
        arrived = [id for id in round.ids if id in self.history.values]
        closing = Closing(arrived)
        if arrived:
            X = round.points[[id - round.first for id in arrived]]
            posterior = self._space.posterior(at_ridges(self.model, self.width), survivors)
            posterior.add(X, X.new_tensor([self.history.values[id] for id in arrived]))
            numbers = evaluated_at(self.width, posterior)
            bounds = Bounds(self._space.belief(posterior, survivors), *numbers)
            known = self._known_threshold(record)
            seed = self._seed_of(round.first)
            left = self._space.eliminate(survivors, bounds, X, seed, known)
            closing = Closing(arrived, *numbers, left.threshold, left.argmax)
            survivors = left.survivors
        self.rounds[-1] = round.ended(closing)
        self._progress = replace(self._progress, survivors=survivors).next_round()
        return closing

    def replicas(self, runs: Runs) -> Replicas:
        allowance = getattr(self.round_lengths, "allowance", None)
        if getattr(allowance, "learns", False):
            raise NotReplicatedError("rounds whose lengths depend on seen delays")
        if runs.initial[0].shape[1]:
            raise ValueError("initial must be None for rounds, which start from the prior")
        if self.waits and runs.has_delays:
            raise NotReplicatedError("rounds that wait for late results")
        if runs.horizon > self.horizon:
            raise ValueError(f"horizon must be at most {self.horizon}, got {runs.horizon}")
        models = CandidateModels.of(self.model).on(cast(FiniteSet, self.domain).points)
        lengths = self.round_lengths.lengths(self.horizon, self.delta)
        return RoundReplicas(runs, models, self.width, lengths)

    # --- the next state ---------------------------------------------------------------------------

    def _recall(self, trial: Trial) -> None:
        record = super()._recall(trial)
        self._begin(record)
        self._require_agreement(record)

    def _absorb(self, event: Event) -> None:
        match event:
            case Asked(trial):
                self._progress = self._progress.asked(trial.id)
            case Told(id):
                self._delays[id] = len(self.history.trials) - id - 1

    def _told_data(self) -> ToldData:
        model = self.model.fork()
        X, Y = self._maximised()
        if len(X):
            model.add(X, Y)
        return ToldData.of(model)

    def _mixture(self, context: Tensor | None) -> GPMixture:
        return self._means.mixture(*self._maximised())

    def evaluated_means(self) -> Tensor:
        """The posterior mean at the ``n`` evaluated points given all observations, late ones
        included: ``n``."""
        return self._means.at(*self._maximised())
