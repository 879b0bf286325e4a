"""One machine for all hosts: trials are asked, told, failed, attached and corrected in any order,
in the host and by hand, and now and then the host stops and goes on from what it saved."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

import botorch_ext as bx
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.integrations.host_trials import HostTrial
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.integrations.recipes import Recipe
from botorch_ext.parameters import Integer, Real
from botorch_ext.strategies import Asked, Attached, Event, Strategy
from botorch_ext.strategies.events import Measured

SPACE = bx.Space(
    depth=Integer(2, 9), kind=bx.Choice(("rbf", "linear", "poly")), rate=Real(1e-3, 0.5, log=True)
)
PLAIN = bx.Space(a=Real(2.0, 5.0), b=Real(-1.0, 3.0))
KINDS = ("ask", "ask", "ask", "tell", "tell", "fail", "give up", "attach", "correct", "late")
#: A few actions: what happens, and to which of the trials that it can happen to.
ACTIONS = st.lists(
    st.tuples(st.sampled_from((*KINDS, "resume")), st.integers(0, 5)), min_size=8, max_size=16
)
Action = tuple[str, int]
Values = Mapping[str, Any]


def objective(values: Values, key: int = 0) -> float:
    """A value in few decimals, which every host keeps."""
    total = 0.01 * key
    for place, value in enumerate(values.values()):
        number = float(len(value)) if isinstance(value, str) else float(value)
        total += math.sin(number + place) - 0.01 * number
    return round(total, 6)


class Memory:
    """The least that a host must keep: trials in a list, saved as plain data."""

    cannot: Sequence[str] = ()
    is_immediate = False

    def __init__(self, recipe: Recipe, space: bx.Space = SPACE, minimizes: bool = False) -> None:
        self.recipe, self.space, self.minimizes = recipe, space, minimizes
        self.trials: list[HostTrial] = []
        self.contexts: Callable[[int], list[float]] | None = None
        self.resume()

    def resume(self) -> None:
        domain = 1 if self.recipe.name == "cgp_ucb" else None
        made = self.recipe.make(self.space, domain, self.minimizes)
        self.hosted = HostedStrategy(made, self.space, self.minimizes)

    def ask(self) -> Values | None:
        key = len(self.trials)
        context = None if self.contexts is None else self.contexts(key)
        self.hosted.follow(self.trials)
        before = self.hosted.state()
        try:
            values, record = self.hosted.ask(context)
        except (WaitingForObservations, HorizonReached):
            return None
        # A question that was not kept is asked again.
        self.hosted.return_to(before)
        assert self.hosted.ask(context) == (values, record)
        self.trials.append(HostTrial(key, values, context=context, record=record))
        return values

    def _set(self, key: int, **more: Any) -> None:
        self.trials[key] = replace(self.trials[key], **more)

    def tell(self, key: int, value: float) -> None:
        self._set(key, status="told", value=value)

    correct = late = tell

    def fail(self, key: int, value: float) -> None:
        # A value that is no number is a failure too.
        more = {"status": "failed"} if key % 2 else {"status": "told", "value": math.nan}
        self._set(key, **more)

    def give_up(self, key: int) -> bool:
        self._set(key, status="abandoned")
        return False

    def attach(self, values: Values, value: float) -> None:
        context = None if self.contexts is None else self.contexts(len(self.trials))
        self.trials.append(HostTrial(len(self.trials), values, "told", value, context))

    def strategy(self) -> Strategy:
        self.hosted.follow(self.trials)
        return self.hosted.strategy


class InStudy:
    """A study of the library in a file of a folder, or at a URL."""

    cannot = ("late",)
    is_immediate = True

    def __init__(self, recipe: Recipe, place: Path | str, minimizes: bool = True) -> None:
        self.recipe, self.minimizes = recipe, minimizes
        self.place = place / "study.db" if isinstance(place, Path) else place
        self.resume()

    def resume(self) -> None:
        # The strategy knows names only if its domain is the space itself.
        made = self.recipe.make(SPACE)
        self.study = bx.Study(self.place, made, minimize=self.minimizes)

    def ask(self) -> Values | None:
        try:
            return SPACE.params(self.study.ask().x)
        except (WaitingForObservations, HorizonReached):
            return None

    def tell(self, key: int, value: float) -> None:
        self.study.tell(key, value)

    def fail(self, key: int, value: float) -> None:
        self.study.abandon(key, failed=True)

    def give_up(self, key: int) -> bool:
        self.study.abandon(key)
        return False

    def attach(self, values: Values, value: float) -> None:
        self.study.attach(SPACE.point(values), value)

    def correct(self, key: int, value: float) -> None:
        self.study.correct(key, value)

    def strategy(self) -> Strategy:
        self.resume()  # all that is known is in the file
        return self.study.strategy


class Machine:
    """A host and the bare strategy, to which the same happens.

    A trial of a host is known by its key, 0, 1, 2, ... A host says what it cannot do, and whether
    its strategy learns at once, not when it is asked again.
    """

    def __init__(self, host: Any, recipe: Recipe, space: bx.Space = SPACE) -> None:
        self.host, self.space = host, space
        self.contexts = getattr(host, "contexts", None)
        domain = None if self.contexts is None else 1
        self.hand = recipe.make(space, domain, host.minimizes)
        self.values: dict[int, Values] = {}  # of each trial, by its key
        self.states: dict[int, str] = {}
        self.ids: dict[int, int] = {}  # of the trial of the bare strategy that a key stands for
        self._news: dict[int, tuple[str, float]] = {}  # what came since the last question
        self.num_asked = 0

    def run(self, actions: Sequence[Action]) -> None:
        """Plays the actions, asks twice more, and compares what both strategies know."""
        for step, (kind, which) in enumerate(actions):
            self.act(kind, which, step)
        for _ in range(2):
            self.act("ask", 0, 0)
        self._learn()
        assert self.host.ask() == self._asked_by_hand()
        found = self.host.strategy().events
        assert [said(event) for event in found] == [said(event) for event in self.hand.events]

    def act(self, kind: str, which: int, step: int) -> None:
        if kind == "ask":
            self._ask()
        elif kind == "resume":
            self.host.resume()
        elif kind == "attach":
            self._attach(which)
        elif kind not in self.host.cannot:
            states = {"correct": ("told",), "late": ("gone",)}.get(kind, ("running",))
            keys = [key for key, state in self.states.items() if state in states]
            if keys:
                self._change(kind, keys[which % len(keys)], step)

    def _ask(self) -> None:
        self._learn()
        key = len(self.values)
        expected = self._asked_by_hand()
        assert self.host.ask() == expected
        if expected is not None:
            self.values[key], self.states[key] = expected, "running"
            self.ids[key] = len(self.hand.history.trials) - 1
            self.num_asked += 1

    def _asked_by_hand(self) -> Values | None:
        context = None if self.contexts is None else self.contexts(len(self.values))
        try:
            return self.space.params(self.hand.ask(context=context).x)
        except (WaitingForObservations, HorizonReached):
            return None

    def _attach(self, which: int) -> None:
        values = self.space.params(self.hand.domain.sample(which + 1, seed=which)[-1])
        key, value = len(self.values), objective(values, len(self.values))
        self.host.attach(values, value)
        self.values[key], self.states[key] = values, "told"
        self._happens(key, "attach", value)

    def _change(self, kind: str, key: int, step: int) -> None:
        value = objective(self.values[key], key + 10 * step)
        if kind == "late" and (key in self._news or self.hand.refuses_attached is not None):
            return
        if kind == "give up":
            kind = "fail" if self.host.give_up(key) else kind
        else:
            getattr(self.host, kind)(key, value)
        self.states[key] = "gone" if kind in ("fail", "give up") else "told"
        # A host shows only the last state of each trial since the last question.
        news = self._news[key][0] if key in self._news else kind
        self._happens(key, "attach" if news == "late" else news, value)

    def _happens(self, key: int, kind: str, value: float) -> None:
        kept = getattr(self.host, "kept", float)  # by some with fewer digits
        self._news[key] = kind, kept(value)
        if self.host.is_immediate:
            self._learn()

    def _learn(self) -> None:
        """The bare strategy learns what is new, in the order of the trials."""
        for key in sorted(self._news):
            kind, value = self._news[key]
            if kind == "attach":
                self._attach_by_hand(key, value)
            elif key not in self.ids:  # the method took no value of others
                continue
            elif kind in ("tell", "correct"):
                getattr(self.hand, kind)(self.ids[key], value)
            else:
                self.hand.abandon(self.ids[key], failed=kind == "fail")
        self._news = {}

    def _attach_by_hand(self, key: int, value: float) -> None:
        context = None if self.contexts is None else self.contexts(key)
        if self.hand.refuses_attached is None:
            x = self.space.point(self.values[key])
            self.ids[key] = self.hand.attach(x, value, context).id


def said(event: Event) -> Any:
    """An event as plain data."""
    if isinstance(event, Asked | Attached):
        trial = event.trial
        value = event.value if isinstance(event, Attached) else None
        context = None if trial.context is None else trial.context.tolist()
        return type(event).__name__, trial.id, trial.x.tolist(), context, trial.info, value
    if isinstance(event, Measured):
        return type(event).__name__, event.id, event.value
    return repr(event)


quietly = pytest.mark.filterwarnings(
    "ignore::botorch_ext.exceptions.BotorchExtWarning", "ignore::UserWarning"
)
