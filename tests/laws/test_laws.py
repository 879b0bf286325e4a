"""Every method of the registry is put through calls of all kinds, in orders that are drawn anew."""

import copy
from collections import Counter
from dataclasses import replace
from zlib import crc32

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import algorithms
from botorch_ext.testing.machine import DECK, LAWS, Machine, drawn_session, put_through
from botorch_ext.testing.states import beliefs, reading
from tests.helpers import devices
from tests.laws.registry import (
    ENTRIES,
    HEAVY,
    METHODS,
    ON_BOXES,
    ON_SETS,
    POLICIES,
    QUICK,
    SCENARIOS,
)
from tests.laws.scenarios import quietly
from tests.laws.sessions import Session

pytestmark = quietly


def put_through_some(entry, num_actions):
    """A session of its own for each entry and length."""
    name = f"{entry.name}, {num_actions}"
    put_through(entry, drawn_session(num_actions, crc32(name.encode())), seed=3)


def by_name(entries, quick=()):
    return pytest.mark.parametrize(
        "entry",
        [
            pytest.param(e, marks=() if not quick or e.method in quick else pytest.mark.slow)
            for e in entries
        ],
        ids=lambda entry: entry.name,
    )


@by_name([e for e in ON_SETS if e.method not in HEAVY])
def test_laws_hold_on_a_set(entry):
    put_through_some(entry, 12)


@by_name([e for e in ON_BOXES if e.method in (*QUICK, "gp_ucb", "certified_bucb")])
def test_laws_hold_on_a_box(entry):
    put_through_some(entry, 8)


@pytest.mark.slow
@by_name(ON_SETS + ON_BOXES)
def test_laws_hold_in_long_sessions(entry):
    put_through_some(entry, 12 if entry.scenario.is_box else len(DECK))


def test_every_method_is_tried_and_all_of_it_happens():
    tried = {name.partition(",")[0] for name in METHODS}
    assert set(algorithms.__all__) <= tried
    assert {entry.method for entry in ON_SETS + ON_BOXES} == set(METHODS)
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert set(POLICIES) < {entry.policy for entry in ON_SETS}
    for entries, is_box in ((ON_SETS, False), (ON_BOXES, True)):
        scenarios = {name for name, each in SCENARIOS.items() if each.is_box == is_box}
        assert {entry.scenario_name for entry in entries} == scenarios
    assert set(DECK) == set(LAWS)


@pytest.mark.parametrize(
    ("method", "scenario"), [("random", "set"), ("gp_ucb", "set"), ("random", "space")]
)
def test_a_session_has_in_it_what_the_laws_are_about(method, scenario):
    (entry,) = (e for e in ENTRIES if e.method == method and e.scenario_name.startswith(scenario))
    actions = [(kind, 0.37 * place % 1.0, 0.1) for place, kind in enumerate(DECK)]
    machine = put_through(entry, actions, seed=3)
    found = Counter(type(event).__name__ for event in machine.strategy.events)
    kinds = ("Asked", "Told", "Abandoned", "Attached", "Failed", "Corrected", "Withdrawn", "Noted")
    kinds += ("Widened",) if scenario == "space" else ()
    assert min(found[kind] for kind in kinds) > 0
    assert machine.pending and machine.copies
    assert machine.ids["failed"] != machine.ids["abandoned"]


QUICKLY_ON_DEVICES = ("gp_ucb", "mle_ucb", "bpe", "thompson_sampling")


@by_name(ON_SETS + [entry for entry in ON_BOXES if entry.method != "gp_ucb"], QUICKLY_ON_DEVICES)
@pytest.mark.parametrize("device", devices()[1:], indirect=True)
def test_a_session_on_a_device_is_that_of_the_host(entry, device):
    number, asked = 5 if entry.scenario.is_box else 12, []
    for where in (device, torch.device("cpu")):
        session = Session(replace(entry, device=where), 3, number)
        session.play()
        for trial in session.strategy.history.trials:
            assert trial.x.device.type == where.type
            assert trial.context is None or trial.context.device.type == where.type
        reading(session.strategy)
        beliefs(session.strategy)
        asked.append(torch.stack([trial.x.cpu() for trial in session.strategy.history.trials]))
    # On a box what CUDA does differently may end a little beside.
    assert_close(*asked, rtol=0, atol=1e-4 if entry.scenario.is_box else 0)


def test_the_machine_finds_a_report_that_differs_from_its_own_books():
    (entry,) = (entry for entry in ON_SETS if entry.method == "random")
    machine = Machine(entry)

    def check(machine):
        machine.check()
        machine.check_copies()

    for kind in ("ask three", "tell", "attach", "fail", "correct"):
        machine.do(kind, 0.0, 0.0)
    check(machine)
    for change in (
        lambda m: m.pending.pop(),
        lambda m: m.values.update({m.ids["attached"][0]: 9.0}),
        lambda m: m.ids["failed"].append(7),
        lambda m: m.ids["corrected"].clear(),
        lambda m: m.copies.append((m.strategy, {"events": []})),
    ):
        other = copy.deepcopy(machine)
        change(other)
        with pytest.raises(AssertionError):
            check(other)
