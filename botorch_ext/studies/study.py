"""Study: a strategy whose events are kept in a file or a database."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, overload

from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import (
    AnotherStrategyError,
    StudyError,
)
from botorch_ext.predictions.expected_gain import ExpectedGain
from botorch_ext.predictions.importance import Importance
from botorch_ext.predictions.predictions import LEVELS, Predictions, checked_levels
from botorch_ext.predictions.recommendation import Recommendation
from botorch_ext.strategies import (
    Abandoned,
    Asked,
    Event,
    Strategy,
    Trial,
)
from botorch_ext.strategies.action_sets import Actions
from botorch_ext.strategies.event_checks import id_of
from botorch_ext.strategies.named_points import Points
from botorch_ext.studies.description import describe, require_same
from botorch_ext.studies.kept_strategy import KeptStrategy, require_no_values
from botorch_ext.studies.plain_events import in_sign

if TYPE_CHECKING:
    from botorch_ext.studies.journal import Journal


class Study:
    """A study that lasts: what is asked and told is on disk before the call returns, and any number
    of processes ask and tell at once.

    Each call is one transaction under the lock of the study: what others did is read first, so that
    each process knows what the others have pending. Opening a study replays its events, which
    optimises nothing. A process that is killed loses the call it was in, whole, and no other.

    On SQLite the processes are on one machine, on PostgreSQL anywhere. Threads may share a
    `Study`; a process that is forked opens its own.

    Args:
        place: A path: a file of SQLite, which is made where there is none. Or a URL, such as
            ``postgresql+psycopg://user:password@host/database``.
        strategy: What to ask, without trials; it is copied. To continue, one made with the same
            arguments as at first.
        name: Of the study; there may be several in one place.
        minimize: Whether small values are good; then values are told and shown as they are, and the
            strategy sees their negative. What it is made with must have no values (``initial``, a
            prior mean, a least value, a range of rewards): `attach` results of before. None: as
            the study was begun; a new one maximises.

    Raises:
        ImportError: SQLAlchemy is not installed.
        ValueError: A strategy with trials, no name, a minimize that is neither True nor False, or a
            new study that minimises with a strategy that has values.
        AnotherStrategyError: The study was begun with other arguments; the message says which.
        StudyError: The place holds no study, or one that is broken, newer, not to be written or
            not to be reached; each is a class of its own.

    Warns:
        VersionWarning: The study was begun with another version of a library.
        NetworkFileSystemWarning: The file lies on a network file system.
    """

    def __init__(
        self,
        place: str | os.PathLike[str],
        strategy: Strategy,
        *,
        name: str = "study",
        minimize: bool | None = None,
    ) -> None:
        if not isinstance(strategy, Strategy):
            raise ValueError(f"strategy must be a Strategy, got a {type(strategy).__name__}")
        if strategy.history.events:
            raise ValueError(
                "strategy must have no trials, which come from the file of a study, got one with "
                f"{len(strategy.history.trials)}"
            )
        if not isinstance(name, str) or not name or not _is_text(name):
            raise ValueError(f"name must be a text that is not empty, got {name!r}")
        if minimize is not None and not isinstance(minimize, bool):
            raise ValueError(f"minimize must be True, False or None, got {minimize!r}")
        self._journal = _opened(place, name, minimize, strategy)
        self._sign = -1.0 if self._journal.minimize else 1.0
        self._kept = KeptStrategy(strategy, self._journal)
        self._kept.read(lambda _: None)  # what is wrong with the events is said now

    def __repr__(self) -> str:
        """What this process knew of the study after its last call, in a few lines; the file is not
        read."""
        history = self._kept.history
        told = {id: self._sign * value for id, value in history.values.items()}
        others = {"failed": len(history.failed), "pending": len(history.pending)}
        counts = {"told": len(told)} | {kind: number for kind, number in others.items() if number}
        trials = ", ".join(f"{number} {kind}" for kind, number in counts.items())
        lines = [f"Study {self.name!r} in {self._journal.database.name!r}", f"trials: {trials}"]
        if told:
            top = max(told, key=history.values.__getitem__)
            trial = history.trials[top]
            lines.append(f"best value told: {told[top]:.6g} at {trial.place}")
        return "\n  ".join(lines)

    def __reduce__(self) -> NoReturn:
        """Refuses to be copied and pickled: two would share one state without its lock."""
        who = f"study {self.name!r}"
        raise StudyError(f"{who} cannot be copied or pickled: open it again where it is needed")

    # --- asking and telling -----------------------------------------------------------------------

    @overload
    def ask(
        self,
        num_trials: None = None,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> Trial: ...

    @overload
    def ask(
        self,
        num_trials: int,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> list[Trial]: ...

    def ask(
        self,
        num_trials: int | None = None,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> Trial | list[Trial]:
        """What `Strategy.ask` gives, kept before it is returned: all of a list or nothing. Means
        and bounds in ``info`` are in the sign of the values."""
        asked = self._kept.change(
            lambda strategy: strategy.ask(num_trials, context=context, actions=actions)
        )
        if isinstance(asked, list):
            return [self._as_shown(trial) for trial in asked]
        return self._as_shown(asked)

    def tell(self, id: int | Trial, value: float) -> None:
        """Answers a trial, in any order, from any process.

        Args:
            id: The id of the trial; or the trial, which must then be the one of this study.
            value: The observation, as it was measured.

        Raises:
            UnknownTrialError: The trial is not pending, or one of another study.
            ValueError: The value is no number, NaN or infinite.
        """
        self._kept.change(lambda strategy: strategy.tell(*self._seen(strategy, id, value)))

    def abandon(self, id: int | Trial, failed: bool = False) -> None:
        """Gives up on a trial, as `Strategy.abandon` does.

        Raises:
            UnknownTrialError: The trial is not pending, or one of another study.
        """
        self._kept.change(lambda strategy: strategy.abandon(id, failed))

    def attach(self, x: Any, value: float, context: ContextLike | None = None) -> Trial:
        """Adds a result that was not asked for, as `Strategy.attach` does; ``value`` as it was
        measured."""
        return self._kept.change(
            lambda strategy: strategy.attach(x, self._sign * one_number(value, "value"), context)
        )

    def correct(self, id: int | Trial, value: float) -> None:
        """Replaces a value that was wrong, as `Strategy.correct` does; ``value`` as it was
        measured.

        Raises:
            UnknownTrialError: The trial has no value, or is one of another study.
            ValueError: The value is no number, NaN or infinite.
        """
        self._kept.change(lambda strategy: strategy.correct(*self._seen(strategy, id, value)))

    # --- what is known ----------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._journal.name

    @property
    def minimize(self) -> bool:
        """Whether small values are good."""
        return self._journal.minimize

    @property
    def strategy(self) -> Strategy:
        """A copy of the strategy, up to date with the file, in its own sign: the negative where the
        study minimises. To be read, not to be asked or told: that would not be kept."""
        return self._kept.read(Strategy.clone)

    @property
    def pending(self) -> list[int]:
        """Ids asked and neither told nor abandoned, by whatever process."""
        return self._kept.read(lambda strategy: strategy.pending)

    @property
    def events(self) -> tuple[Event, ...]:
        """Everything that happened, in order; values as they were told."""
        return self._kept.read(lambda strategy: tuple(map(self._as_told, strategy.events)))

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """What `Strategy.best` gives, the mean in the sign of the values."""
        x, mean = self._kept.read(lambda strategy: strategy.best(context))
        return x, self._sign * mean

    def best_params(self, context: ContextLike | None = None) -> dict[str, Any]:
        """What `Strategy.best_params` gives."""
        return self._kept.read(lambda strategy: strategy.best_params(context))

    def predict(
        self,
        points: Points,
        *,
        context: ContextLike | None = None,
        levels: Sequence[float] = LEVELS,
    ) -> Predictions:
        """What `Strategy.predict` gives, in the sign of the values."""
        levels = checked_levels(levels)
        if not self.minimize:
            return self._kept.read(
                lambda strategy: strategy.predict(points, context=context, levels=levels)
            )
        mirrored = [1 - level for level in reversed(levels)]
        return replace(
            self._kept.read(
                lambda strategy: strategy.predict(points, context=context, levels=mirrored)
            ).negated(),
            levels=levels,
        )

    def recommended(self, context: ContextLike | None = None) -> Recommendation:
        """What `Strategy.recommended` gives, in the sign of the values."""
        found = self._kept.read(lambda strategy: strategy.recommended(context))
        return found.negated() if self.minimize else found

    def expected_gain(
        self,
        num: int = 1,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> ExpectedGain:
        """What `Strategy.expected_gain` gives; a gain is positive also where the study
        minimises."""
        return self._kept.read(
            lambda strategy: strategy.expected_gain(num, context=context, actions=actions)
        )

    def importance(
        self, context: ContextLike | None = None, *, num_samples: int = 2048
    ) -> Importance:
        """What `Strategy.importance` gives."""
        return self._kept.read(
            lambda strategy: strategy.importance(context, num_samples=num_samples)
        )

    def report(self) -> dict[str, Any]:
        """What `Strategy.report` gives, with the ``name`` and ``minimize`` of the study; means,
        bounds and observations are in the sign of the values."""
        summary = self._kept.read(lambda strategy: strategy.report())
        return {"name": self.name, "minimize": self.minimize} | in_sign(summary, self._sign)

    def _as_shown(self, trial: Trial) -> Trial:
        return replace(trial, info=in_sign(trial.info, self._sign))

    def _seen(self, strategy: Strategy, id: int | Trial, value: float) -> tuple[int, float]:
        """The id of a trial, and its value as the strategy sees it."""
        known = id_of(id, strategy.history.trials)
        return known, self._sign * one_number(value, "value", f" for trial {known}")

    def _as_told(self, event: Event) -> Event:
        if isinstance(event, Abandoned):
            return event
        if isinstance(event, Asked):
            return Asked(self._as_shown(event.trial))
        return replace(event, value=self._sign * event.value)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:  # half of a pair of surrogates
        return False
    return True


def _opened(
    place: str | os.PathLike[str], name: str, minimize: bool | None, strategy: Strategy
) -> Journal:
    """The journal of a study of this strategy, begun where there is none."""
    from botorch_ext.studies.databases import Database
    from botorch_ext.studies.journal import Journal

    database, description = Database(place), describe(strategy)

    def found() -> Journal:
        journal = Journal.open(database, name)
        if journal is None:
            if minimize:
                require_no_values(strategy)
            journal = Journal.begin(database, name, bool(minimize), description)
        return journal

    journal = database.alone(found)
    require_same(journal.description, description, f"study {name!r} in {database.name}")
    if minimize is not None and minimize != journal.minimize:
        raise AnotherStrategyError(
            f"study {name!r} in {database.name} was begun with other arguments: minimize is "
            f"{journal.minimize} in the study, got {minimize}"
        )
    return journal
