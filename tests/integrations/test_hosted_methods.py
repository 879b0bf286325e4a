"""Every method asks in a host what it asks by hand, and the same again from what the host has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.domains.parameters import Parameter, Real
from botorch_ext.domains.space import Space
from botorch_ext.exceptions import HorizonReached, WaitingForObservations
from botorch_ext.integrations.host_trials import HostTrial
from botorch_ext.integrations.hosted import HostedStrategy
from tests.laws.registry import ENTRIES, METHODS, QUICK, Entry
from tests.laws.scenarios import value_of
from tests.laws.shared_sessions import quietly

pytestmark = quietly
STEPS = 5


def _entry(method: str) -> Entry:
    """One scenario of a method: a set where it has one, for it is quick, contexts in turn."""
    own = [each for each in ENTRIES if each.method == method and not each.scenario.changing]
    sets = [each for each in own if not each.scenario.is_box] or own
    return sets[len(method) % len(sets)]


CHOSEN = [_entry(method) for method in METHODS]
CHOSEN += [each for each in ENTRIES if each.method in QUICK and each.scenario_name == "box"]


def _space(domain: bx.Box | bx.FiniteSet) -> Space:
    """Columns as parameters, in their units where the box is plain."""
    parameters: dict[str, Parameter] = {}
    for j in range(domain.dim):
        if isinstance(domain, bx.Box):
            parameters[f"x{j}"] = Real(*domain.bounds[:, j].tolist())
        else:
            column = domain.points[:, j]
            parameters[f"x{j}"] = Real(float(column.min()), float(column.max()))
    return Space(parameters)


class _Both:
    """A strategy in a host and the same one by hand."""

    def __init__(self, entry: Entry) -> None:
        self.entry, self.hand = entry, entry.make()
        self.space = _space(self.hand.domain)
        self.hosted = HostedStrategy(entry.make(), self.space)
        self.trials: list[HostTrial] = []
        self.ids: dict[int, int] = {}

    def ask(self) -> bool:
        """Both ask, unless neither can; now and then so does one that has only what is kept."""
        context = self.entry.scenario.offer(len(self.trials), 0).get("context")
        self.hosted.follow(self.trials)
        fresh = self.hosted
        if len(self.trials) % 4 == 3:
            fresh = HostedStrategy(self.entry.make(), self.space)
            fresh.follow(self.trials)
            assert fresh.strategy.report() == self.hosted.strategy.report()
        try:
            expected = self.hand.ask(context=context)
        except (WaitingForObservations, HorizonReached) as error:
            for each in (self.hosted, fresh):
                with pytest.raises(type(error)):
                    each.ask(context)
            return False
        values, record = self.hosted.ask(context)
        assert fresh is self.hosted or fresh.ask(context) == (values, record)
        assert torch.equal(self.space.point(values), expected.x)
        key, seen = len(self.trials), None if context is None else context.tolist()
        self.trials.append(HostTrial(key, values, context=seen, record=record))
        self.ids[key] = expected.id
        return True

    def value(self, key: int) -> float:
        trial = self.trials[key]
        context = None if trial.context is None else torch.tensor(trial.context)
        return value_of(self.space.point(trial.values), context) + 0.01 * key

    def change(self, key: int, how: float) -> None:
        """Something becomes of a trial."""
        trial, id, value = self.trials[key], self.ids[key], self.value(key)
        if trial.status == "told" and how < 0.1:
            value = trial.value + 0.3
            self.trials[key] = replace(trial, value=value)
            self.hand.correct(id, value)
        elif trial.status == "running" and how < 0.7:
            self.trials[key] = replace(trial, status="told", value=value)
            self.hand.tell(id, value)
        elif trial.status == "running" and how > 0.9:
            failed = how > 0.95
            self.trials[key] = replace(trial, status="failed" if failed else "abandoned")
            self.hand.abandon(id, failed=failed)

    def add(self, seed: int) -> None:
        """A result that nobody asked for, which not all methods take."""
        x = self.hand.domain.sample(1, seed=seed)[0]
        context = self.entry.scenario.offer(seed, 1).get("context")
        key, seen = len(self.trials), None if context is None else context.tolist()
        trial = HostTrial(key, self.space.params(x), "told", context=seen)
        self.trials.append(replace(trial, value=0.25))
        if self.hand.refuses_attached is None:
            self.ids[key] = self.hand.attach(x, 0.25, context).id


@pytest.mark.parametrize("entry", CHOSEN, ids=lambda entry: entry.name)
def test_every_method_asks_in_a_host_what_it_asks_by_hand(entry: Entry) -> None:
    both, rng = _Both(entry), np.random.default_rng(len(entry.name))
    asked = 0
    for step in range(STEPS):
        asked += both.ask()
        for key, how in enumerate(rng.random(len(both.trials)).tolist()):
            if key in both.ids:
                both.change(key, how)
        if step == STEPS // 2:
            both.add(step)
    assert asked >= 3
