"""The registry has every method, and its sessions have in them what the laws are about."""

from collections import Counter

from botorch_ext import algorithms
from botorch_ext.testing.states import played
from tests.laws.registry import ENTRIES, METHODS, PLAYED, POLICIES
from tests.laws.shared_sessions import quietly

pytestmark = quietly


def test_every_algorithm_is_tried():
    tried = {name.split(",")[0] for name in METHODS}
    assert set(algorithms.__all__) <= tried
    assert {entry.method for entry in PLAYED} == {entry.method for entry in ENTRIES} == set(METHODS)
    assert len({entry.name for entry in ENTRIES}) == len(ENTRIES)
    assert set(POLICIES) < {entry.policy for entry in PLAYED}


def test_sessions_have_in_them_what_the_laws_are_about():
    seen: Counter[str] = Counter()
    for entry in PLAYED:
        report = played(entry).session.strategy.report()
        assert report["num_told"] > 1
        seen["pending"] += bool(report["pending"])
        seen["abandoned"] += bool(report["abandoned"])
        seen["told too late"] += bool(report.get("told_too_late"))
        seen["rejected"] += any(m["status"] == "rejected" for m in report.get("models", []))
        seen["eliminated"] += bool(report.get("eliminated"))
        seen["rounds"] += len(report.get("rounds", [])) > 1
        seen["levels"] += len(report.get("levels", [])) > 3
        seen["changing actions"] += entry.scenario.changing
        seen["contexts"] += entry.scenario.contexts is not None
    assert min(seen.values()) >= 1, seen
    assert min(seen["pending"], seen["abandoned"]) > len(PLAYED) / 2, seen
