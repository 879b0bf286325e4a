"""A machine that puts one strategy through calls of every kind, in any order, and looks after each
of them whether the laws of strategies hold."""

# Wrong types are given on purpose.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from botorch_ext.domains import Space, host
from botorch_ext.domains.contexts import with_context
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.parameters import Choice, Integer, Parameter, Real
from botorch_ext.strategies import (
    Abandoned,
    Asked,
    Corrected,
    Noted,
    Strategy,
    Told,
    Trial,
    Widened,
    Withdrawn,
)
from botorch_ext.strategies.event_lines import as_text, from_text
from botorch_ext.strategies.events import FromElsewhere
from botorch_ext.testing.interrupting import files_of, lines_of
from botorch_ext.testing.refusing import impossible_calls, mangled, refused, tampered
from botorch_ext.testing.states import (
    assert_near,
    beliefs,
    question,
    reading,
    spoil,
    spoil_trial,
    state,
)
from botorch_ext.testing.subjects import Tried, others

# The kind of a call, the pending trial that it is for (as a share of the list), and the noise of
# the value.
Action = tuple[str, float, float]
#: What the machine can do, and the law that each of it is about. It is the order of the simplest
#: session.
LAWS: dict[str, str] = {
    "ask": "trials are some of what there is",
    "ask three": "a list is asked one after another",
    "tell": "report and best say what happened",
    "wrong": "report and best say what happened",
    "read": "reading changes nothing, whatever becomes of what was read",
    "attach": "what is handed in and out is copied",
    "attach failed": "report and best say what happened",
    "fail": "report and best say what happened",
    "abandon": "report and best say what happened",
    "confirm": "a correction that changes nothing leaves beliefs",
    "slip": "a value that was corrected is as if it had been told right",
    "correct": "report and best say what happened",
    "withdraw": "report and best say what happened",
    "widen": "a wider space has the points of the one before",
    "note": "a note changes nothing else",
    "copy": "a copy goes its own way",
    "consider": "what comes after leaves the state before it",
    "refuse": "impossible calls are refused as a whole",
    "tamper": "tampered events are refused as a whole",
    "mangle": "a record in any form is refused or taken",
    "replay": "a session goes on from every prefix",
    "interrupt": "calls broken off anywhere are made or not",
}
#: The kinds of a whole session: all of them, with as many asks and tells as they need.
DECK: tuple[str, ...] = (*LAWS, *("ask", "tell") * 3, "ask", "fail", "correct", "ask three", "read")


def drawn_session(num_actions: int, seed: int) -> list[Action]:
    """Actions in a random order: of each kind some, if there are as many as in `DECK`."""
    g = torch.Generator().manual_seed(seed)
    kinds: list[str] = []
    while len(kinds) < num_actions:
        kinds += [DECK[place] for place in host.randperm(len(DECK), generator=g).tolist()]
    shares = host.rand(num_actions, generator=g).tolist()
    noise = (0.1 * host.randn(num_actions, generator=g)).tolist()
    return list(zip(kinds[:num_actions], shares, noise, strict=True))


def put_through(subject: Tried, actions: Iterable[Action], seed: int = 0) -> Machine:
    """Plays a session to its end; an error has a note that names the law that does not hold.

    Returns:
        The machine after its last action.
    """
    machine = Machine(subject, seed)
    before = torch.get_rng_state()
    try:
        for kind, share, noise in actions:
            machine.do(kind, share, noise)
            machine.law = LAWS["tell"]
            machine.check()
        machine.law = LAWS["copy"]
        machine.check_copies()
        machine.law = LAWS["replay"]
        machine.go_through_again()
        machine.law = "the seed decides"
        assert torch.equal(torch.get_rng_state(), before)
        check_seed(subject, seed)
    except Exception as error:
        error.add_note(f"this law does not hold: {machine.law}")
        raise
    return machine


def check_seed(subject: Tried, seed: int) -> None:
    """Another seed gives other trials, if the strategy is random or begins with random points."""
    strategy, other = subject.make(seed), subject.make(seed + 1)
    first = question(strategy, subject.offer(0, seed))
    if subject.is_random or first.get("info", {}).get("initial"):
        asked = [question(strategy, subject.offer(0, seed)) for _ in range(3)]
        assert asked != [question(other, subject.offer(0, seed)) for _ in range(4)][1:]


class Machine:
    """A strategy, and what has happened to it by other books than its own."""

    def __init__(self, subject: Tried, seed: int = 0) -> None:
        self.subject, self.seed = subject, seed
        self.strategy: Strategy = subject.make(seed)
        self.given = self.strategy.report()["best"] is not None
        # What is looked at now, in words.
        self.law = LAWS["replay"]
        # The step whose context and actions each trial was offered; a list shares one.
        self.offered: list[int] = []
        self.pending: list[int] = []
        self.values: dict[int, float] = {}
        self.ids: dict[str, list[int]] = {
            kind: []
            for kind in ("asked", "abandoned", "failed", "attached", "withdrawn", "corrected")
        }
        # Whether all trials were chosen by the values that are right now.
        self.is_straight = True
        # After each action the number of events, and what could be read.
        self.cuts: list[tuple[int, dict[str, Any]]] = []
        # Strategies that nothing happened to since, and their states.
        self.copies: list[tuple[Strategy, dict[str, Any]]] = []

    # --- what is done -----------------------------------------------------------------------------

    def do(self, kind: str, share: float, noise: float) -> None:
        """One action; where it cannot be done, the machine asks instead.

        Args:
            kind: One of the kinds of `LAWS`.
            share: Which trial, point, event, ... it is about, as a share of all there are.
            noise: Added to the value that is told.
        """
        if kind in ("tell", "wrong", "slip", "abandon", "fail") and not self.pending:
            kind = "ask"
        if kind in ("correct", "confirm") and not self.values:
            kind = "ask"
        can_withdraw = self.ids["attached"] or self.ids["failed"]
        if (kind == "withdraw" and not can_withdraw) or (kind == "note" and not self.offered):
            kind = "ask"
        self.law = LAWS[kind]
        getattr(self, f"_{kind.replace(' ', '_')}")(share, noise)
        self.cuts.append((len(self.strategy.events), reading(self.strategy)))

    def offer(self, step: int | None = None) -> dict[str, Any]:
        """The arguments of the next ask, or of the ask at a step."""
        return self.subject.offer(len(self.offered) if step is None else step, self.seed)

    def _others(self, value: float) -> dict[str, float]:
        return others(self.strategy, value)

    def _value(self, id: int) -> float:
        trial = self.strategy.history.trials[id]
        return self.subject.value(trial.x, trial.context)

    def _ask(self, share: float, noise: float, number: int | None = None) -> None:
        step, offer = len(self.offered), self.offer()
        given = {name: value.clone() for name, value in offer.items()}
        twin = None if number is None else self.strategy.clone()
        try:
            asked = self.strategy.ask(number, **given)
        except WaitingForObservations as waits:
            if waits.available >= (number or 1):
                raise AssertionError(f"{waits.available} trials can be asked") from waits
            if waits.available:
                self._ask(share, noise, waits.available)
            else:
                self._told(self._one(waits.ids, share), noise)
            return
        except HorizonReached:
            if self.pending:
                self._tell(share, noise)
            return
        trials = [asked] if isinstance(asked, Trial) else asked
        assert len(trials) == (number or 1)
        for trial in trials:
            self._check_trial(trial, offer)
            spoil_trial(trial)
        for value in given.values():
            value.fill_(99.0)
        if twin is not None:
            for _ in trials:
                twin.ask(**offer)
            assert state(twin) == state(self.strategy)
        for _ in trials:
            id = len(self.offered)
            self.offered.append(step)
            self.pending.append(id)
            self.ids["asked"].append(id)

    def _ask_three(self, share: float, noise: float) -> None:
        self._ask(share, noise, 3)

    def _check_trial(self, trial: Trial, offer: dict[str, Any]) -> None:
        domain, context = self.strategy.domain, offer.get("context")
        expected = None if context is None else context.tolist()
        assert (None if trial.context is None else trial.context.tolist()) == expected
        assert (trial.x.dtype, trial.x.device) == (domain.dtype, domain.device)
        assert bool(domain.contains(trial.x))
        if "index" in trial.info:
            assert torch.equal(domain.points[trial.info["index"]], trial.x)
        if "actions" in offer:
            assert torch.equal(offer["actions"][trial.info["action"]], trial.x)
        assert json.loads(json.dumps(trial.info)) == trial.info

    @staticmethod
    def _one(items: Sequence[Any], share: float) -> Any:
        return items[int(share * len(items))]

    def _tell(self, share: float, noise: float) -> None:
        self._told(self._one(self.pending, share), noise)

    def _told(self, id: int, noise: float) -> None:
        value = self._value(id) + noise
        self.strategy.tell(id, value, self._others(value))
        self._note_told(id, value)

    def _note_told(self, id: int, value: float) -> None:
        self.pending.remove(id)
        self.values[id] = value

    def _wrong(self, share: float, noise: float) -> None:
        """A value that nobody would expect."""
        id, value = self._one(self.pending, share), -2.2 + noise / 2
        self.strategy.tell(id, value, self._others(value))
        self._note_told(id, value)

    def _slip(self, share: float, noise: float) -> None:
        """A wrong value that is corrected at once."""
        id, right = self._one(self.pending, share), self.strategy.clone()
        value = self._value(id) + noise
        right.tell(id, value, self._others(value))
        self.strategy.tell(id, -2.2 + noise / 2, self._others(-2.2 + noise / 2))
        self.strategy.correct(id, value, self._others(value))
        self._note_told(id, value)
        self._note_corrected(id)
        if self.is_straight and not self.subject.refits_after_correction:
            assert_near(_shown_values(self.strategy), _shown_values(right), rel=1e-8)

    def _correct(self, share: float, noise: float) -> None:
        id = self._one(list(self.values), share)
        value = self._value(id) + noise
        self.strategy.correct(id, value, self._others(value))
        self.values[id] = value
        self._note_corrected(id)
        self.is_straight = False

    def _note_corrected(self, id: int) -> None:
        self.ids["corrected"] = sorted({*self.ids["corrected"], id})

    def _withdraw(self, share: float, noise: float) -> None:
        id = self._one([*self.ids["attached"], *self.ids["failed"]], share)
        self.strategy.withdraw(id)
        was_asked = id in self.ids["asked"]
        if id in self.ids["failed"]:
            self.ids["failed"].remove(id)
        else:
            del self.values[id]
            self.ids["attached"].remove(id)
        if not was_asked:
            self.ids["abandoned"] = [each for each in self.ids["abandoned"] if each != id]
            self.ids["withdrawn"] = sorted([*self.ids["withdrawn"], id])
        self.is_straight = False

    def _note(self, share: float, noise: float) -> None:
        before, id = state(self.strategy), self._one(range(len(self.offered)), share)
        self.strategy.note(id, f"{noise}")
        after = state(self.strategy)
        assert after.pop("events")[:-1] == before.pop("events") and after == before
        assert self.strategy.history.notes[id] == f"{noise}"

    def _widen(self, share: float, noise: float) -> None:
        wider = _wider(self.strategy)
        if self.strategy.refuses_wider is not None or not wider:
            with refused(ValueError):
                self.strategy.widen(wider)
            return
        before = self.strategy.evaluated(), self.strategy.history.trials
        self.strategy.widen(wider)
        domain, params = self.strategy.domain, [trial.params for trial in before[1]]
        assert wider.items() <= dict(domain.parameters).items()
        assert [trial.params for trial in self.strategy.history.trials] == params
        for one, other in zip(before[0], self.strategy.evaluated(), strict=True):
            assert torch.equal(one, other)
        self.is_straight = False

    def _confirm(self, share: float, noise: float) -> None:
        if self.subject.refits_after_correction or not self.is_straight:
            return
        id, twin = self._one(list(self.values), share), self.strategy.clone()
        twin.correct(id, self.values[id], self._others(self.values[id]))
        assert_near(beliefs(twin), beliefs(self.strategy), rel=1e-8)
        before = {"corrected": [], "warnings": []}
        assert_near(twin.report() | before, self.strategy.report() | before, rel=1e-8)

    def _abandon(self, share: float, noise: float, failed: bool = False) -> None:
        id = self._one(self.pending, share)
        self.strategy.abandon(id, failed=failed)
        self.pending.remove(id)
        self._note_abandoned(id, failed)

    def _note_abandoned(self, id: int, failed: bool) -> None:
        for kind in ("abandoned", *(["failed"] if failed else [])):
            self.ids[kind] = sorted([*self.ids[kind], id])

    def _fail(self, share: float, noise: float) -> None:
        self._abandon(share, noise, failed=True)

    def _attach(self, share: float, noise: float, failed: bool = False) -> None:
        x = self._one(self.strategy.domain.sample(8, seed=7), share).clone()
        context = self.offer().get("context")
        value = self.subject.value(x, context) + noise
        result: dict[str, Any] = {"failed": True}
        if not failed:
            result = {"value": value, "outcomes": self._others(value)}
        if self.strategy.refuses_attached is not None:
            with refused(ValueError, match="takes no attached"):
                self.strategy.attach(x, context=context, **result)
            return
        given = x.clone()
        trial = self.strategy.attach(given, context=context, **result)
        assert trial.info.get("attached") is True and torch.equal(trial.x, x)
        given.fill_(99.0)
        spoil_trial(trial)
        id = len(self.offered)
        self.offered.append(id)
        if failed:
            self._note_abandoned(id, failed)
        else:
            self.values[id] = value
            self.ids["attached"].append(id)

    def _attach_failed(self, share: float, noise: float) -> None:
        self._attach(share, noise, failed=True)

    def _read(self, share: float, noise: float) -> None:
        strategy = self.strategy
        before, like = state(strategy), strategy.domain.like.clone()
        if strategy.report()["best"] is not None:
            strategy.best()[0].fill_(99.0)
        if self.values:
            seen = strategy.history.trials[self._one(list(self.values), share)].context
            strategy.best(seen)[0].fill_(99.0)
        for event in strategy.events:
            if isinstance(event, Asked | FromElsewhere):
                spoil_trial(event.trial)
        strategy.pending.append(99)
        spoil(strategy.report())
        for values in strategy.evaluated():
            values.fill_(99.0)
        if hasattr(strategy, "posterior"):
            _spoil_posterior(strategy, self.offer())
        assert torch.equal(strategy.domain.like, like)
        assert state(strategy) == before

    def _copy(self, share: float, noise: float) -> None:
        """A copy plays, another one goes on in place of the strategy, which is left as it is."""
        before, other = state(self.strategy), self.strategy.clone()
        assert state(other) == before
        for _ in range(2):
            question(other, self.offer())
            if other.pending:
                other.tell(self._one(other.pending, share), noise, self._others(noise))
        assert state(self.strategy) == before
        self.copies.append((self.strategy, before))
        self.strategy = self.strategy.clone()

    def _consider(self, share: float, noise: float) -> None:
        """An event is thought of, with the question that it leads to, and dropped."""
        strategy = self.strategy
        before = state(strategy)
        ids = [*self.pending[:1], *self.pending[-1:]]
        events = [Told(id, 0.31, self._others(0.31)) for id in ids] + [
            Abandoned(id, failed=True) for id in ids
        ]
        events += [Corrected(id, -0.27, self._others(-0.27)) for id in list(self.values)[:1]]
        wrong = (*self.ids["attached"][:1], *self.ids["failed"][:1])
        events += [Withdrawn(id) for id in wrong]
        events += [Noted(id, "dull") for id in range(len(self.offered))[:1]]
        if strategy.refuses_wider is None and (wider := _wider(strategy)):
            events.append(Widened(len(self.offered), wider))
        if strategy.refuses_attached is None:
            ahead = strategy.clone()
            x, context = strategy.domain.sample(1, seed=5)[0], self.offer().get("context")
            ahead.attach(x, 0.11, context, outcomes=self._others(0.11))
            events.append(ahead.events[-1])
        if not events:
            return
        after = strategy.after(self._one(events, share))
        assert len(after.events) == len(before["events"]) + 1
        question(after, self.offer())
        assert state(strategy) == before

    def _refuse(self, share: float, noise: float) -> None:
        before = state(self.strategy)
        for call, error in impossible_calls(self.strategy, self.offer()):
            with refused(error):
                call()
            assert len(self.strategy.history.events) == len(before["events"])
        assert state(self.strategy) == before

    def _tamper(self, share: float, noise: float) -> None:
        """Good events before a wrong one must not stay either."""
        before, last = state(self.strategy), self._next_trial()
        good = [Told(self.pending[-1], 0.1, self._others(0.1))] if len(self.pending) > 1 else []
        events = list(tampered(self.strategy, last))
        stride = -(-len(events) // _MOST_TAMPERED)
        for event in events[int(share * stride) :: stride]:
            with refused(ValueError):
                self.strategy.replay([event] if isinstance(event, Asked) else [*good, event])
            assert len(self.strategy.history.events) == len(before["events"])
        assert state(self.strategy) == before

    def _mangle(self, share: float, noise: float) -> None:
        last, before = self._next_trial(), state(self.strategy)
        for event in [] if last is None else mangled(last, share):
            try:
                self.strategy.after(next(self.strategy.checked([event]))).report()
            except ValueError:
                continue
        assert state(self.strategy) == before

    def _next_trial(self) -> Trial | None:
        ahead = self.strategy.clone()
        asked = question(ahead, self.offer())
        return ahead.history.trials[-1] if "info" in asked else None

    def _replay(self, share: float, noise: float) -> None:
        """Another strategy goes on, with the events as a journal has them, and as another process
        is sent them."""
        expected, events = state(self.strategy), self.strategy.events
        cut = int(share * (len(events) + 1))
        lines, like = [as_text(event) for event in events[cut:]], self.strategy.domain.like
        sent = pickle.loads(pickle.dumps(events[:cut]))
        fresh = self.subject.make(self.seed)
        before = state(fresh)
        with refused(ValueError):
            fresh.replay([*events, Told(len(self.offered), 0.1)])
        assert state(fresh) == before
        fresh.replay(sent)
        fresh.replay(from_text(line, like) for line in lines)
        for event in (*sent, *events):
            if isinstance(event, Asked | FromElsewhere):
                spoil_trial(event.trial)
        assert state(fresh) == expected
        self.strategy = fresh

    def _interrupt(self, share: float, noise: float) -> None:
        """Copies are called; the calls are broken off, and made again unless they were made."""
        strategy, files = self.strategy, files_of(self.strategy)
        calls = list(self._calls())
        first = int(share * len(calls))
        for number, call in enumerate((calls[first:] + calls[:first])[:_MOST_INTERRUPTED]):
            whole, broken = strategy.clone(), strategy.clone()
            before = _shown(whole)
            num_lines = lines_of(lambda: call(whole), files=files)  # noqa: B023
            after, last = _shown(whole), int(num_lines * ((share + number * _GOLDEN) % 1.0))
            lines_of(lambda: call(broken), last, files)  # noqa: B023
            if _shown(broken) == before:
                call(broken)
            assert _shown(broken) == after, f"broken off after {last} of {num_lines} lines"
            assert state(broken) == state(whole)

    def _calls(self) -> Iterator[Callable[[Strategy], Any]]:
        """One of each kind."""
        offer, x = self.offer(), self.strategy.domain.sample(1, seed=5)[0]
        for id in self.pending[-1:]:
            yield lambda strategy, id=id: strategy.tell(id, 0.3, self._others(0.3))
            yield lambda strategy, id=id: strategy.abandon(id, failed=True)
        for told in list(self.values)[:1]:
            yield lambda strategy, told=told: strategy.correct(told, -0.4, self._others(-0.4))
        for wrong in (*self.ids["attached"][:1], *self.ids["failed"][:1]):
            yield lambda strategy, wrong=wrong: strategy.withdraw(wrong)
        if self.strategy.refuses_attached is None:
            yield lambda strategy: strategy.attach(
                x, 0.1, offer.get("context"), outcomes=self._others(0.1)
            )
            yield lambda strategy: strategy.attach(x, context=offer.get("context"), failed=True)
        if self.strategy.refuses_wider is None and (wider := _wider(self.strategy)):
            yield lambda strategy: strategy.widen(wider)
        yield lambda strategy: question(strategy, offer)

    # --- what holds -------------------------------------------------------------------------------

    def check(self) -> None:
        """What the strategy says is what has happened."""
        strategy = self.strategy
        report = strategy.report()
        assert json.loads(json.dumps(report)) == report
        told = [id for id in self.values if id not in self.ids["attached"]]
        assert (report["num_asked"], report["num_told"]) == (len(self.ids["asked"]), len(told))
        assert report["pending"] == strategy.pending == self.pending
        for kind in ("abandoned", "failed", "attached", "withdrawn", "corrected"):
            assert report[kind] == self.ids[kind], kind
        assert list(strategy.history.as_told.items()) == list(self.values.items())
        X, Y = strategy.evaluated()
        assert (report["best"] is None) == (not len(X)) == (not self.values and not self.given)
        if not len(X):
            return
        x, mean = strategy.best()
        named = {"params": strategy.best_params()} if isinstance(strategy.domain, Space) else {}
        assert report["best"] == {"x": x.tolist(), "mean": mean} | named
        assert bool(strategy.domain.contains(x))
        centers = [trial.info.get("center") for trial in strategy.history.trials]
        assert x.tolist() in X[:, : strategy.domain.dim].tolist() + centers
        assert report["best_observation"] == float(Y.min() if strategy.minimize else Y.max())
        if not self.given:
            assert Y.tolist() == list(self.values.values()) or hasattr(strategy, "bases")

    def check_copies(self) -> None:
        """The strategies that copies were taken of are as they were then."""
        for strategy, before in self.copies:
            assert state(strategy) == before

    def go_through_again(self) -> None:
        """A new strategy goes through all events; every other question is asked again, and where
        that is due the same can be read as then."""
        fresh, position, cuts = self.subject.make(self.seed), 0, dict(self.cuts)
        events, like = self.strategy.events, fresh.domain.like
        asked = {i: event.trial for i, event in enumerate(events) if isinstance(event, Asked)}
        again = [i for i, trial in asked.items() if trial.id % 2 == 0]
        for place in [*again, len(events)]:
            fresh.replay(from_text(as_text(event), like) for event in events[position:place])
            if place in cuts:
                assert reading(fresh) == cuts[place]
            position = place
            if place in asked:
                trial = asked[place]
                answer = question(fresh, self.offer(self.offered[trial.id]))
                assert answer == {"x": trial.x.tolist(), "info": trial.info}
                position += 1
        assert state(fresh) == state(self.strategy)
        offer = self.offer()
        assert question(fresh, offer) == question(self.strategy.clone(), offer)


def _wider(strategy: Strategy) -> dict[str, Parameter]:
    """Wider parameters of a space by name; none for another domain."""
    space, wider = strategy.domain, {}
    for name, old in space.parameters.items() if isinstance(space, Space) else ():
        if isinstance(old, Integer):
            wider[name] = replace(old, high=old.high + old.step)
        elif isinstance(old, Real):
            wider[name] = replace(old, high=old.high + (old.spacing or 1.0))
        elif isinstance(old, Choice) and old.descriptors is None:
            wider[name] = replace(old, values=[*old.values, f"value {len(old.values)}"])
    return wider


def _shown(strategy: Strategy) -> tuple[list[str], dict[str, Any]]:
    return [as_text(event) for event in strategy.events], strategy.report()


def _shown_values(strategy: Strategy) -> dict[str, Any]:
    """All that follows from values, but not how they came about."""
    shown = state(strategy)
    for part in (shown, *shown.get("bases", [])):
        del part["events"]
        part["report"] = {k: v for k, v in part["report"].items() if k not in _HOW}
    return shown


# So many events are tampered with at once; sessions draw others.
_MOST_TAMPERED = 12
# So many calls are broken off, spread over their lines by the golden ratio.
_MOST_INTERRUPTED, _GOLDEN = 3, 0.6180339887
# Entries of reports that say how values came about.
_HOW = ("corrected", "warnings", "bases")


def _spoil_posterior(strategy: Any, offer: dict[str, Any]) -> None:
    """Adds an observation to the models that are handed out."""
    posterior = strategy.posterior
    if hasattr(posterior, "add_candidate"):
        posterior.add_candidate(0, 50.0)
    elif hasattr(posterior, "joint"):  # an ensemble
        posterior.constants.fill_(99.0)
        if posterior.num_observations:
            posterior.model.add(posterior.model.train_inputs[0][..., :1, :], None)
    elif hasattr(posterior, "add"):
        x = strategy.domain.sample(1, seed=2)
        row = with_context(x, strategy.checked_context(offer.get("context")))
        posterior.add(row, row.new_tensor([50.0]))
