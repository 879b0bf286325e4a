"""Study: a strategy whose events are kept in a file or a database."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NoReturn, overload

from torch import Tensor

from botorch_ext.checks import flag, is_text
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.exceptions import NoStudyError, StudyError, TableWarning
from botorch_ext.parameters import Parameter
from botorch_ext.strategies import (
    Event,
    Strategy,
    Trial,
)
from botorch_ext.strategies.action_sets import Actions
from botorch_ext.strategies.answers.expected_gain import ExpectedGain
from botorch_ext.strategies.answers.importance import Importance
from botorch_ext.strategies.answers.predictions import LEVELS, Predictions
from botorch_ext.strategies.answers.recommendation import Recommendation
from botorch_ext.strategies.named_points import Points
from botorch_ext.strategies.noted_warnings import level_of_the_caller
from botorch_ext.studies.column_heads import ColumnHeads
from botorch_ext.studies.description import described_strategy
from botorch_ext.studies.kept_strategy import KeptStrategy
from botorch_ext.studies.opening import opened
from botorch_ext.studies.result_tables import (
    attach_all,
    is_table,
    outside_rows,
    points_of,
    results_of,
    trials_of_points,
)
from botorch_ext.studies.trial_frames import trials_frame

if TYPE_CHECKING:
    import pandas as pd

    from botorch_ext.studies.journal import Journal
    from botorch_ext.studies.sheets import Sheet


class Study:
    """A study saves a strategy in a file or a database. What is asked and told is on disk before
    the call returns, and any number of processes may ask and tell at once.

    Each call is one transaction under the lock of the study. It first reads what other processes
    did, so that each process knows the pending trials of the others. Opening a study replays its
    events, which runs no optimisation. A process that is killed loses at most the call it was in.

    On SQLite all processes are on one machine, on PostgreSQL they may be anywhere. Threads may
    share a `Study`. A forked process opens its own.

    Example:
        >>> import tempfile
        >>> import botorch_ext as bx
        >>> strategy = bx.algorithms.integrated_ei(bx.Box([(0, 20), (1, 80)]))
        >>> place = tempfile.mkdtemp() + "/yield.db"
        >>> study = bx.Study(place, strategy, objective="yield", unit="%")
        >>> first, second = study.ask(2)
        >>> study.tell(first, 71.3)
        >>> bx.Study(place, strategy).pending
        [1]

    Args:
        place: A path, where an SQLite file is made if there is none. Or a URL, such as
            ``postgresql://user@host/database``; the driver takes the password from ``~/.pgpass`` or
            from ``PGPASSWORD``.
        strategy: The strategy, without trials; the study copies it. To continue a study, pass a
            strategy made with the same arguments as at first, or None: the study then makes the
            strategy again from its description, if it is a method of the library whose arguments
            are kept in full.
        name: The name of the study; there may be several studies in one place.
        minimize: Whether small values are good, as for `Strategy`. A strategy that was made with
            values (``initial``, a prior mean, a least value, a range of rewards) must have been
            told so itself. None: as the strategy says, or as the study was begun.
        objective: The name of the values in tables. None keeps the name that the study was begun
            with; in a new study it is ``"value"``.
        unit: The unit of the values, for people, as in ``"%"``. None keeps the unit that the study
            was begun with.

    Raises:
        ImportError: SQLAlchemy is not installed.
        ValueError: The strategy has trials, the name is empty, or ``minimize`` is not that of the
            strategy.
        AnotherStrategyError: The study was begun with other arguments; the message names them.
        StudyError: The place holds no study, or the study is broken, was written by a newer
            version, cannot be written or cannot be reached. Each case has its own class.

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
        if not name or not is_text(name):
            raise ValueError(f"name must be a text that is not empty, got {name!r}")
        if minimize is not None and not isinstance(minimize, bool):
            raise ValueError(f"minimize must be True, False or None, got {minimize!r}")
        texts = {"objective": objective, "unit": unit}
        for key, text in texts.items():
            if text is not None and not (is_text(text) and text.strip()):
                raise ValueError(f"{key} must be a text that is not empty, got {text!r}")
        self._look_at(*opened(place, name, minimize, strategy, texts), texts)

    @classmethod
    def only_read(cls, place: str | os.PathLike[str], name: str = "study") -> Study:
        """Opens a study for reading. Its strategy is made again from its description, its file is
        not written, and asking and telling fail.

        Args:
            place: A path or a URL, as for the class.
            name: The name of the study.

        Returns:
            The study.

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
            journal: The journal of the study.
            strategy: The strategy, without events.
            texts: The ``objective`` and its ``unit``, or None where the caller gave none.
        """
        self._journal = journal
        # Studies of earlier versions have neither.
        self._texts = {key: self._journal.description.get(key) or texts[key] for key in texts}
        self._kept = KeptStrategy(strategy, self._journal)
        self._kept.read(self._heads_of)  # an event that does not fit is an error now

    def __repr__(self) -> str:
        """The study as this process knew it after its last call, in a few lines; the file is not
        read."""
        head = f"Study {self.name!r} in {self._journal.database.name!r}"
        return "\n  ".join([head, *self._kept.known.history.lines])

    def __reduce__(self) -> NoReturn:
        """A StudyError: two copies would share one state without its lock."""
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
        """Asks what to evaluate next. The trials are on disk before they are returned, all of a
        list or none.

        The arguments are those of `Strategy.ask`, and so are the errors.

        Returns:
            A `Trial`, or a list of trials if ``num_trials`` is given. Means and bounds in ``info``
            are in the sign of the values.
        """
        return self._kept.change(
            lambda strategy: strategy.ask(num_trials, context=context, actions=actions)
        )

    def tell(
        self,
        id: int | Trial,
        value: float | Sequence[float],
        outcomes: Mapping[str, float] | None = None,
        *,
        std: float | None = None,
    ) -> None:
        """Answers a trial, in any order, from any process.

        Args:
            id: The id of the trial; or the trial, which must then be the one of this study.
            value: The observation, as it was measured; or those of repeats, whose average counts.
            outcomes: The other measured numbers by name, as for `Strategy.tell`.
            std: The standard error of the value, as for `Strategy.tell`.

        Raises:
            UnknownTrialError: The trial is not pending, or one of another study.
            ValueError: `Strategy.tell` would refuse an argument.
        """
        self._kept.change(lambda strategy: strategy.tell(id, value, outcomes, std=std))

    def abandon(self, id: int | Trial, failed: bool = False) -> None:
        """Gives up on a trial.

        The arguments are those of `Strategy.abandon`, and so are the errors.
        """
        self._kept.change(lambda strategy: strategy.abandon(id, failed))

    def tell_all(
        self,
        values: Mapping[int, float | Sequence[float]],
        *,
        outcomes: Mapping[int, Mapping[str, float]] | None = None,
        stds: Mapping[int, float] | None = None,
        failed: Iterable[int] = (),
        notes: Mapping[int, str] | None = None,
        correct: bool = False,
    ) -> None:
        """Answers several trials: all of them, or none if one cannot be answered.

        Args:
            values: From the ids of pending trials to observations, as for `tell`.
            outcomes: From these ids to the outcomes of each trial, as for `tell`.
            stds: From these ids to the standard errors of the trials that have one.
            failed: The ids of pending trials whose evaluation failed.
            notes: From ids of trials to notes, as for `note`.
            correct: Whether trials may have a value already, which the new one then replaces.

        Raises:
            UnknownTrialError: A trial is not pending, or one with a note does not exist.
            ValueError: `tell` would refuse a value or outcomes, or a note is no text.
        """
        others, errors = outcomes or {}, stds or {}
        for name, given in (("outcomes", others), ("stds", errors)):
            if unknown := [id for id in given if id not in values]:
                raise ValueError(f"{name} must be of trials in values, got those of {unknown}")

        def act(strategy: Strategy) -> None:
            for id in failed:
                strategy.abandon(id, failed=True)
            for id, value in values.items():
                is_told = correct and id in strategy.history.values
                answer = strategy.correct if is_told else strategy.tell
                answer(id, value, others.get(id), std=errors.get(id))
            for id, text in (notes or {}).items():
                strategy.note(id, text)

        self._kept.change(act)

    @overload
    def attach(
        self,
        x: Any,
        value: float | Sequence[float],
        context: ContextLike | None = None,
        *,
        outside: bool = False,
        outcomes: Mapping[str, float] | None = None,
        std: float | None = None,
    ) -> Trial: ...

    @overload
    def attach(
        self,
        x: Any,
        *,
        context: ContextLike | None = None,
        outside: bool = False,
        failed: Literal[True],
    ) -> Trial: ...

    @overload
    def attach(self, x: Any, *, repeat: bool = False, outside: bool = False) -> list[Trial]: ...

    def attach(
        self,
        x: Any,
        value: float | Sequence[float] | None = None,
        context: ContextLike | None = None,
        *,
        outside: bool = False,
        repeat: bool = False,
        outcomes: Mapping[str, float] | None = None,
        std: float | None = None,
        failed: bool = False,
    ) -> Trial | list[Trial]:
        """Adds a result that was not asked for, or an evaluation that failed, as `Strategy.attach`
        does, or a table of such results: all of its rows or none.

        Rows of a table that lie outside the space are kept as data where the method
        ``takes_outside``: its model learns from them, and they are never asked. They are named in
        a warning. A table whose rows all lie outside is refused, since it may be in other units.
        `correct` changes an attached result, and `withdraw` takes it back.

        Args:
            x: A point, or without a value a table: a pandas data frame, or a list of dicts, with
                columns by name: the parameters, with or without their units as in ``"time [s]"``,
                those of contexts, the objective, and the outcomes that the strategy needs. It may
                have a column of standard errors, called ``"yield std"`` for the objective
                ``"yield"``, and a column ``note``. An experiment that failed has ``"failed"`` in
                place of the value, or as its ``state``. Rows whose cells are all empty are left
                out, as in CSV sheets.
            value: The observation, as it was measured; or those of repeats, whose average counts.
            context: As for `Strategy.attach`.
            outside: As for `Strategy.attach`. For a table: whether all of its rows may lie outside
                the space, without a warning.
            repeat: Whether a row of the table may be a result that there is already, in the study
                or in the table: it is then another measurement.
            outcomes: The outcomes of a point, as for `tell`. Those of a table have a column each.
            std: The standard error of the value of a point, as for `tell`.
            failed: Whether the evaluation of a point failed, as for `Strategy.attach`.

        Returns:
            The trial, or those of all rows.

        Raises:
            TableError: Columns or rows that are wrong; the message names them.
            ValueError: What `Strategy.attach` raises.

        Warns:
            TableWarning: Columns of the table are not used, rows that have an id and no value are
                left out, or rows lie outside the space.
        """
        if value is None and not flag(failed, "failed"):
            if context is not None or outcomes is not None or std is not None:
                raise ValueError("value must be given for a point, got None")
            return self._attached(x, repeat, outside)
        if flag(repeat, "repeat"):
            raise ValueError(
                "repeat must be False for a point, which may be attached again as it is"
            )
        options: Any = {"outside": outside, "outcomes": outcomes, "std": std, "failed": failed}
        return self._kept.change(lambda strategy: strategy.attach(x, value, context, **options))

    def attach_sheet(
        self, sheet: Sheet, *, repeat: bool = False, outside: bool = False
    ) -> list[Trial]:
        """Adds the results of a sheet, as `attach` adds those of a table.

        Args:
            sheet: The sheet, with the columns that `attach` takes.
            repeat: As for `attach`.
            outside: As for `attach`.

        Returns:
            The trials of the rows.

        Raises:
            TableError: As `attach`, and for texts that are no values.

        Warns:
            TableWarning: As `attach`.
        """
        return self._attached(sheet, repeat, outside)

    def _attached(self, table: Any, repeat: bool, outside: bool) -> list[Trial]:
        heads = self.heads
        results = results_of(table, heads)
        options = flag(repeat, "repeat"), flag(outside, "outside")
        trials = self._kept.change(lambda strategy: attach_all(strategy, results, heads, *options))
        if not outside and (rows := outside_rows(trials, results, heads)):
            message = (
                "all rows were attached; rows that lie outside the space are kept as data and "
                f"never asked: {rows}"
            )
            warnings.warn(
                results[0].origin.message_of_rows(message),
                TableWarning,
                stacklevel=level_of_the_caller(),
            )
        return trials

    def correct(
        self,
        id: int | Trial,
        value: float | Sequence[float] | None = None,
        outcomes: Mapping[str, float] | None = None,
        *,
        std: float | None = None,
    ) -> None:
        """Replaces what was wrong of a result.

        The arguments are those of `Strategy.correct`, and so are the errors.
        """
        self._kept.change(lambda strategy: strategy.correct(id, value, outcomes, std=std))

    def withdraw(self, id: int | Trial) -> None:
        """Takes back an attached result or a failure.

        The arguments are those of `Strategy.withdraw`, and so are the errors.
        """
        self._kept.change(lambda strategy: strategy.withdraw(id))

    def note(self, id: int | Trial, text: str) -> None:
        """Keeps a note with a trial, which tables show.

        The arguments are those of `Strategy.note`, and so are the errors.
        """
        self._kept.change(lambda strategy: strategy.note(id, text))

    def widen(self, parameters: Mapping[str, Parameter] | None = None, **named: Parameter) -> None:
        """Widens parameters of the space. Other processes know of it from their next call on. The
        study is still opened with the strategy that it was begun with.

        The arguments are those of `Strategy.widen`, and so are the errors. A choice whose values a
        file cannot keep is also a ValueError.
        """
        self._kept.change(lambda strategy: strategy.widen(parameters, **named))

    # --- what is known ----------------------------------------------------------------------------

    @property
    def heads(self) -> ColumnHeads:
        """The columns of tables, in the present space."""
        return self._kept.read(self._heads_of)

    def _heads_of(self, strategy: Strategy) -> ColumnHeads:
        return ColumnHeads.of(strategy, self.objective, self.unit)

    @property
    def name(self) -> str:
        """The name of the study."""
        return self._journal.name

    @property
    def minimize(self) -> bool:
        """Whether small values are good."""
        return self._journal.minimize

    @property
    def objective(self) -> str:
        """The name of the values."""
        return self._texts["objective"] or "value"

    @property
    def unit(self) -> str | None:
        """The unit of the values, or None if nobody gave one."""
        return self._texts["unit"]

    @property
    def strategy(self) -> Strategy:
        """A copy of the strategy, up to date with the file. Read it only: what it is asked and told
        is not saved."""
        return self._kept.read(Strategy.clone)

    @property
    def pending(self) -> list[int]:
        """The ids of pending trials, those that any process asked and none told or abandoned."""
        return self._kept.read(lambda strategy: strategy.pending)

    @property
    def events(self) -> tuple[Event, ...]:
        """All events in order, with values as they were told."""
        return self._kept.read(lambda strategy: strategy.events)

    def to_pandas(self) -> pd.DataFrame:
        """All trials as a data frame.

        Returns:
            A row for each trial, with the columns ``trial``, the id; ``state``, one of told,
            attached, withdrawn, pending, abandoned and failed; the parameters and contexts by name;
            the value under the name of the objective; the outcomes by name; ``asked_at`` and
            ``ended_at`` in UTC; if a trial recorded them, ``predicted mean`` and ``predicted std``
            at the time of asking; and ``note`` if a trial has one. A column of the library whose
            name a parameter, a context or the objective has is called ``state_``, ``asked_at_`` and
            so on.

        Raises:
            ImportError: pandas is not installed.
        """
        strategy, entries = self.strategy, self._journal.entries()
        # Another process may have added events in between.
        entries = entries[: len(strategy.history.events)]
        return trials_frame(strategy, entries, self._heads_of(strategy))

    def best(self, context: ContextLike | None = None) -> tuple[Tensor, float]:
        """The ``d``-dim evaluated point with the best posterior mean, and that mean in the sign
        of the values.

        The arguments are those of `Strategy.best`, and so are the errors.
        """
        return self._kept.read(lambda strategy: strategy.best(context))

    def best_params(self, context: ContextLike | None = None) -> dict[str, Any]:
        """The point that `best` gives, by name. The arguments are those of `best`."""
        return self._kept.read(lambda strategy: strategy.best_params(context))

    def predict(
        self,
        points: Points,
        *,
        context: ContextLike | None = None,
        levels: Sequence[float] = LEVELS,
    ) -> Predictions:
        """Predicts the objective at points, as `Strategy.predict` does, in the sign of the values.

        Args:
            points: Trials, ``n x d`` points, or one of either. Or a table: a pandas data frame, a
                list of dicts or a dict, with the columns that `attach` takes. What `to_pandas`
                gives is such a table; its values are not read.
            context: ``d_z``, where the strategy takes contexts. None: trials and rows of a table
                are in their own.
            levels: The probabilities of the quantiles, between 0 and 1.

        Returns:
            `Predictions`, in the sign and units of the values.

        Raises:
            TableError: Columns or rows of a table are wrong; the message names them.
            NoModelError: The method has no model.
            NoObservationsError: The model has no scale before it knows an observation.
            OutsideDomainError: A point lies outside the domain, and no prediction can be made
                there.
            ValueError: A context is one that `ask` would refuse, or levels are not between 0 and 1.

        Warns:
            OutsideDomainWarning: Points lie outside the domain; the message has their rows.
        """

        def predicted(strategy: Strategy) -> Predictions:
            if not is_table(points):
                return strategy.predict(points, context=context, levels=levels)
            rows = [points] if isinstance(points, Mapping) else points
            found = points_of(rows, self._heads_of(strategy), with_contexts=context is None)
            trials = trials_of_points(found, strategy, context)
            return strategy.predict(trials, levels=levels)

        return self._kept.read(predicted)

    def recommended(self, context: ContextLike | None = None) -> Recommendation:
        """The point to settle for now, in the sign and units of the values.

        The arguments are those of `Strategy.recommended`, and so are the errors.
        """
        return self._kept.read(lambda strategy: strategy.recommended(context))

    def expected_gain(
        self,
        num: int = 1,
        *,
        context: ContextLike | None = None,
        actions: Actions | None = None,
    ) -> ExpectedGain:
        """The expected gain of the next batch, which is positive also if the study minimises.
        Nothing is asked.

        The arguments are those of `Strategy.expected_gain`, and so are the errors.
        """
        return self._kept.read(
            lambda strategy: strategy.expected_gain(num, context=context, actions=actions)
        )

    def importance(
        self, context: ContextLike | None = None, *, num_samples: int = 2048
    ) -> Importance:
        """The importance of each parameter, in the units of the values.

        The arguments are those of `Strategy.importance`, and so are the errors.
        """
        return self._kept.read(
            lambda strategy: strategy.importance(context, num_samples=num_samples)
        )

    def report(self) -> dict[str, Any]:
        """What the strategy did and knows, as plain numbers, strings and lists.

        Returns:
            The entries of `Strategy.report`; and ``name``, that of the study.
        """
        return {"name": self.name} | self._kept.read(lambda strategy: strategy.report())
