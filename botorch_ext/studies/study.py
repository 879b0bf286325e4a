"""Study: a strategy whose events are kept in a file or a database."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, overload

from torch import Tensor

from botorch_ext.checks import flag, one_number
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import (
    AnotherStrategyError,
    NoStudyError,
    StudyError,
    TableWarning,
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
from botorch_ext.studies.column_heads import ColumnHeads
from botorch_ext.studies.described_strategies import described_strategy
from botorch_ext.studies.description import describe, require_same
from botorch_ext.studies.kept_strategy import KeptStrategy, require_no_values
from botorch_ext.studies.plain_events import in_sign
from botorch_ext.studies.result_tables import (
    Result,
    attach_all,
    outside_rows,
    results_of,
    results_of_sheet,
)
from botorch_ext.studies.trial_frames import trials_frame

if TYPE_CHECKING:
    import pandas as pd

    from botorch_ext.studies.csv_sheets import Sheet
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
            arguments as at first, or None: it is then made again from the study's description, if
            it is a method of the library whose arguments are kept in full.
        name: Of the study; there may be several in one place.
        minimize: Whether small values are good; then values are told and shown as they are, and the
            strategy sees their negative. What it is made with must have no values (``initial``, a
            prior mean, a least value, a range of rewards): `attach` results of before. None: as
            the study was begun; a new one maximises.
        objective: What the values are called in tables. None: as the study was begun; in a new one
            ``"value"``.
        unit: What the values are in, for people, as in ``"%"``. None: as the study was begun.

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
        strategy: Strategy | None = None,
        *,
        name: str = "study",
        minimize: bool | None = None,
        objective: str | None = None,
        unit: str | None = None,
    ) -> None:
        if strategy is not None and not isinstance(strategy, Strategy):
            raise ValueError(f"strategy must be a Strategy, got a {type(strategy).__name__}")
        if strategy is not None and strategy.history.events:
            raise ValueError(
                "strategy must have no trials, which come from the file of a study, got one with "
                f"{len(strategy.history.trials)}"
            )
        if not isinstance(name, str) or not name or not _is_text(name):
            raise ValueError(f"name must be a text that is not empty, got {name!r}")
        if minimize is not None and not isinstance(minimize, bool):
            raise ValueError(f"minimize must be True, False or None, got {minimize!r}")
        texts = {"objective": objective, "unit": unit}
        for key, text in texts.items():
            if text is not None and not (isinstance(text, str) and text.strip() and _is_text(text)):
                raise ValueError(f"{key} must be a text that is not empty, got {text!r}")
        self._look_at(*_opened(place, name, minimize, strategy, texts), texts)

    @classmethod
    def only_read(cls, place: str | os.PathLike[str], name: str = "study") -> Study:
        """A study to look at, whose strategy is made again from its description: its file is not
        written, and asking and telling fail.

        Args:
            place: As for the class.
            name: Of the study.

        Raises:
            ImportError: SQLAlchemy is not installed.
            StudyError: The place holds no such study, one that cannot be read, or one whose
                strategy cannot be made again.
        """
        from botorch_ext.studies.databases import Database
        from botorch_ext.studies.journal import Journal

        database = Database(place, read_only=True)
        journal = database.alone(lambda: Journal.open(database, name))
        if journal is None:
            raise NoStudyError(f"{database.name} holds no study {name!r}")
        whose = f"study {name!r} in {database.name}"
        study = cls.__new__(cls)
        strategy = described_strategy(journal.description, whose)
        study._look_at(journal, strategy, dict.fromkeys(("objective", "unit")))
        return study

    def _look_at(self, journal: Journal, strategy: Strategy, texts: dict[str, str | None]) -> None:
        """Reads the events of a journal.

        Args:
            journal: Of the study.
            strategy: What follows them.
            texts: The objective and its unit, where somebody gave them.
        """
        self._journal = journal
        # Studies of earlier versions have neither.
        self._texts = {key: self._journal.description.get(key) or texts[key] for key in texts}
        self.heads = ColumnHeads.of(strategy, self.objective, self.unit)
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
        if inside := [id for id in told if id not in history.outside]:
            top = max(inside, key=history.values.__getitem__)
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

    def tell_all(self, values: Mapping[int, float]) -> None:
        """Answers several trials, all of them or, where one cannot be, none.

        Args:
            values: From the ids of pending trials to observations, as they were measured.

        Raises:
            UnknownTrialError: A trial is not pending.
            ValueError: A value is no number, NaN or infinite.
        """

        def act(strategy: Strategy) -> None:
            for id, value in values.items():
                strategy.tell(*self._seen(strategy, id, value))

        self._kept.change(act)

    @overload
    def attach(
        self,
        x: Any,
        value: float,
        context: ContextLike | None = None,
        *,
        outside: bool = False,
    ) -> Trial: ...

    @overload
    def attach(self, x: Any, *, repeat: bool = False, outside: bool = False) -> list[Trial]: ...

    def attach(
        self,
        x: Any,
        value: float | None = None,
        context: ContextLike | None = None,
        *,
        outside: bool = False,
        repeat: bool = False,
    ) -> Trial | list[Trial]:
        """Adds a result that was not asked for, as `Strategy.attach` does, or a table of such
        results: all of its rows or none.

        Rows of a table that lie outside the space are kept as data where the method
        ``takes_outside``: its model learns from them, and they are never asked. They are named in
        a warning. A table whose rows all lie outside is refused, since it may be in other units.
        An attached result cannot be taken back; `correct` changes its value.

        Args:
            x: A point, or without a value a table: a pandas data frame, or a list of dicts, with
                columns by name: the parameters, with or without their units as in ``"time [s]"``,
                those of contexts, and the objective.
            value: The observation, as it was measured.
            context: As for `Strategy.attach`.
            outside: As for `Strategy.attach`. For a table: whether all of its rows may lie outside
                the space, without a warning.
            repeat: Whether a row of the table may be a result that there is already, in the study
                or in the table: it is then another measurement.

        Returns:
            The trial, or those of all rows.

        Raises:
            TableError: Columns or rows that are wrong; the message names them.
            ValueError: What `Strategy.attach` raises.

        Warns:
            TableWarning: Columns of the table are not used, rows with an id and without a value are
                left out, or rows lie outside the space.
        """
        if value is None:
            if context is not None:
                raise ValueError("value must be given for a point, got None")
            return self._attached(results_of(x, self.heads), repeat, outside)
        if flag(repeat, "repeat"):
            raise ValueError(
                "repeat must be False for a point with its value, which may be another"
            )
        seen = self._sign * one_number(value, "value")
        return self._kept.change(
            lambda strategy: strategy.attach(x, seen, context, outside=outside)
        )

    def attach_sheet(
        self, sheet: Sheet, *, repeat: bool = False, outside: bool = False
    ) -> list[Trial]:
        """Adds the results of a CSV sheet, as `attach` adds those of a table.

        Raises:
            TableError: As `attach`, and for texts that are no values.

        Warns:
            TableWarning: As `attach`.
        """
        return self._attached(results_of_sheet(sheet, self.heads), repeat, outside)

    def _attached(self, results: Sequence[Result], repeat: bool, outside: bool) -> list[Trial]:
        options = flag(repeat, "repeat"), flag(outside, "outside")
        trials = self._kept.change(
            lambda strategy: attach_all(strategy, results, self.heads, self._sign, *options)
        )
        if not outside and (rows := outside_rows(trials, results, self.heads)):
            message = f"rows that lie outside the space are kept as data and never asked: {rows}"
            warnings.warn(message, TableWarning, stacklevel=3)
        return trials

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
    def objective(self) -> str:
        """What the values are called."""
        return self._texts["objective"] or "value"

    @property
    def unit(self) -> str | None:
        """What the values are in, if that is said."""
        return self._texts["unit"]

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

    def to_pandas(self) -> pd.DataFrame:
        """All trials, a row each: ``trial``, the id; ``state``: told, attached, pending, abandoned
        or failed; the parameters and contexts by name; the value under the name of the objective;
        ``asked_at`` and ``ended_at`` in UTC; and, where they were recorded, ``predicted mean`` and
        ``predicted std`` at the time of asking.

        Raises:
            ImportError: pandas is not installed.
        """
        strategy, entries = self.strategy, self._journal.entries()
        # Somebody may have gone on in between.
        entries = entries[: len(strategy.history.events)]
        shown = [self._as_shown(trial) for trial in strategy.history.trials]
        return trials_frame(strategy, entries, self.heads, shown, self._sign)

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
    place: str | os.PathLike[str],
    name: str,
    minimize: bool | None,
    strategy: Strategy | None,
    texts: dict[str, str | None],
) -> tuple[Journal, Strategy]:
    """The journal of a study of this strategy, begun where there is none; and the strategy, that of
    the study where none is given."""
    from botorch_ext.studies.databases import Database
    from botorch_ext.studies.journal import Journal

    database = Database(place)
    whose = f"study {name!r} in {database.name}"
    if strategy is None:
        there = database.alone(lambda: Journal.open(database, name))
        if there is None:
            raise NoStudyError(f"{database.name} holds no study {name!r}: give its strategy")
        strategy = described_strategy(there.description, whose)
    description = describe(strategy)
    described = description | {key: text for key, text in texts.items() if text is not None}

    def found() -> Journal:
        journal = Journal.open(database, name)
        if journal is None:
            if minimize:
                require_no_values(strategy)
            ColumnHeads.of(strategy, texts["objective"] or "value", texts["unit"])
            journal = Journal.begin(database, name, bool(minimize), described)
        return journal

    journal = database.alone(found)
    require_same(journal.description, description, whose)
    for key, text in texts.items():
        kept = journal.description.get(key)
        if kept is not None and text not in (None, kept):
            raise AnotherStrategyError(
                f"{whose} was begun with other arguments: {key} is {kept!r} in the study, got "
                f"{text!r}"
            )
    if minimize is not None and minimize != journal.minimize:
        raise AnotherStrategyError(
            f"study {name!r} in {database.name} was begun with other arguments: minimize is "
            f"{journal.minimize} in the study, got {minimize}"
        )
    return journal, strategy
