"""Recorded trials that a method cannot have asked are refused by name, and nothing changes.

What holds for all methods is in the laws: indices, models, contexts, and predictions of a model.
"""

import copy
import json
import math
import pickle
from dataclasses import dataclass, make_dataclass
from functools import cache
from typing import Any, Literal

import pytest

from botorch_ext import Box, CandidateModels, Fitted, Particles, algorithms
from botorch_ext.records import Finite, NonNegative, decoded, plain
from botorch_ext.strategies import Asked, RandomSearch, Trial
from botorch_ext.widths import Width
from botorch_ext.widths.base import ModelNumbers
from tests.helpers import matern, rbf
from tests.laws.scenarios import quietly
from tests.strategies.fixed_design import sessions
from tests.strategies.sessions import box, f, finite

pytestmark = quietly
NAN, INF, GONE = math.nan, math.inf, object()
LINE = Box([[2.0], [5.0]])
NUMBERS = {"noise_variance": 0.01, "noise_std": 0.02, "rkhs_bound": 1.5}
MODELS = CandidateModels([rbf(0.4), rbf(0.8)], 0.01)
FIRST = {"num_initial": 3}
FIT = {"lengthscales": [0.3, 0.3], "noise_variance": 0.1, "outputscale": 1.0, "mean": 0.0}


def certified(domain):
    return sessions.certified(domain, 44, width=1.0, buy="always")


# The strategy, and what the record has that is tampered with: it is the first trial with that.
SCENES = {
    "he_gp_ucb": (lambda: algorithms.he_gp_ucb(finite(), MODELS, noise_std=9.0, width=1.0), "told"),
    "he_stable_opt": (
        lambda: algorithms.he_stable_opt(finite(), MODELS, noise_std=9.0, rkhs_bound=1, radius=0.6),
        "center",
    ),
    "integrated_ei": (lambda: algorithms.integrated_ei(LINE, Particles(8), **FIRST), "particles"),
    "credible": (lambda: algorithms.credible_ucb(LINE, Particles(8), **FIRST), "particles"),
    "fitted": (lambda: algorithms.gp_ucb(LINE, Fitted(), width=2.0, **FIRST), "fit"),
    "insured": (lambda: algorithms.insured_ucb(LINE, rbf(0.9), **NUMBERS), "watched"),
    "round": (lambda: sessions.phased("bpe", finite(), 34), "opening.argmax"),
    "round in a box": (lambda: sessions.phased("bpe", box(), 34), "opening.argmax"),
    "cells": (
        lambda: algorithms.breadthwise_exploration(LINE, matern(0.9), **NUMBERS, horizon=60),
        "opening.kept",
    ),
    "plan": (lambda: certified(finite()), "plan"),
    "cut": (lambda: certified(finite()), "cut"),
    "cut in a box": (lambda: certified(box()), "cut"),
    "closing": (lambda: certified(finite()), "closing"),
}


def found(info, path):
    """What a record has at a path of keys; None for nothing."""
    for key in path.split("."):
        info = info.get(key) if isinstance(info, dict) else None
    return info


@cache
def scene(name):
    """A strategy, and the trial that it asks next."""
    make, path = SCENES[name]
    strategy, late = make(), 8 if name == "late" else 0
    while True:
        trial = strategy.clone().ask()
        if any(found(trial.info, path) or ()):
            return strategy, trial
        strategy.ask()
        if trial.id >= late:
            told = strategy.history.trials[trial.id - late]
            strategy.tell(told.id, f(told.x) if len(told.x) > 1 else float(told.x) - 4)


def changed(info, path, value):
    """A record with another value at a path; a function is given the one that is there."""
    info, (*parents, last) = copy.deepcopy(info), path.split(".")
    inner = info
    for key in parents:
        inner = inner[key]
    if value is GONE:
        del inner[last]
    else:
        inner[last] = value(inner[last]) if callable(value) else value
    return info


@dataclass(frozen=True)
class Inner:
    rows: tuple[tuple[int, ...] | None, ...]
    size: NonNegative = 0.0


@dataclass(frozen=True)
class Outer:
    count: int
    share: Finite
    kind: Literal["a", "b"]
    name: str = "it"
    size: float = 1.0
    is_late: bool = False
    inner: Inner | None = None
    others: tuple[dict[str, Any], ...] | None = None


@pytest.mark.parametrize(
    "record",
    [
        Outer(3, -0.5, "a"),
        Outer(0, 1e300, "b", "", -2.5, True, Inner((None, (), (1, 2)), 0.1), ({"x": None},)),
    ],
)
def test_a_record_is_made_again_from_its_plain_values(record):
    kept = json.loads(json.dumps(plain(record)))
    assert decoded(Outer, kept, "it") == decoded(Outer, kept | {"k": 1}, "it", True) == record
    with pytest.raises(ValueError, match="it must be a dict with"):
        decoded(Outer, kept | {"more": 1}, "it")


@pytest.mark.parametrize(
    ("name", "named", "path", "value"),
    [
        ("he_gp_ucb", "offset", "offset", NAN),
        ("he_gp_ucb", "told", "told", GONE),
        ("he_stable_opt", "info", "pessimistic", GONE),
        ("he_stable_opt", "pessimistic", "pessimistic", {"model": 0}),
        ("he_stable_opt", "model", "pessimistic.model", 77),
        ("he_stable_opt", "info", "center", GONE),
        ("he_stable_opt", "center", "center", [3.0]),
        ("he_stable_opt", "center", "center", [30.0, -2.0]),
        ("integrated_ei", "mean", "mean", "high"),
        ("integrated_ei", "std", "std", NAN),
        ("integrated_ei", "particles", "particles", None),
        ("integrated_ei", "values", "particles.values", [0.0]),
        ("integrated_ei", "parameters", "particles.parameters", [[NAN] * 3] * 8),
        ("integrated_ei", "bend", "particles.bend", -1.0),
        ("credible", "model", "model", 8),
        ("credible", "model", "model", 1.5),
        ("fitted", "fit", "fit", None),
        ("fitted", "fit", "fit", lambda fit: fit | {"more": 1.0}),
        ("fitted", "lengthscales", "fit.lengthscales", [0.3, 0.3]),
        ("fitted", "lengthscales", "fit.lengthscales", [0.0]),
        ("fitted", "mean", "fit.mean", NAN),
        ("fitted", "outputscale", "fit.outputscale", INF),
        ("fitted", "noise_variance", "fit.noise_variance", -1.0),
        ("insured", "cost", "cost", -1.0),
        ("insured", "cost", "cost", NAN),
        ("insured", "kind", "kind", "guess"),
        ("insured", "level", "level", 99),
        ("insured", "refuted", "refuted", [5]),
        ("insured", "suspect", "suspect", {"level": 1}),
        ("insured", "watched", "watched", [[NAN]]),
        ("insured", "watched", "watched", []),
        ("integrated_ei", "std", "std", -1.0),
        ("he_gp_ucb", "fit", "fit", FIT),
        ("round", "round", "round", 7),
        ("plan", "round", "round", 7),
        ("plan", "phase", "phase", "rest"),
        ("round", "info", "opening", GONE),
        ("round", "info", "opening.argmax", GONE),
        ("round in a box", "(threshold|points)", "opening.threshold", 100.0),
        ("round", "threshold", "opening.threshold", NAN),
        ("round", "argmax", "opening.argmax", [9.0, 9.0]),
        ("round", "std", "opening.plan", lambda plan: plan[:-1]),
        ("round", "plan", "opening.plan", lambda plan: [2**70 for _ in plan]),
        ("round", "std", "opening.std", lambda std: [-s for s in std]),
        ("round", "volume", "opening.volume", "all"),
        ("cells", "level", "level", 7),
        ("cells", "info", "opening", GONE),
        ("cells", "info", "cell", GONE),
        ("cells", "info", "cell", -1),
        ("cells", "cell", "cell", 2**70),
        ("cells", "kept", "opening.kept", [[]]),
        ("cells", "kept", "opening.kept", lambda rows: [[-1, *rows[0]]]),
        ("cells", "kept", "opening.kept", lambda rows: [[*rows[0], 99]]),
        ("cells", "kept", "opening.kept", lambda rows: [[*rows[0], 2**70]]),
        ("closing", "info", "closing", GONE),
        ("cut", "info", "cut", GONE),
        ("plan", "info", "plan", GONE),
        ("plan", "phase", "phase", "sleep"),
        ("cut in a box", "(threshold|points)", "cut.threshold", 100.0),
        ("cut", "threshold", "cut.threshold", NAN),
        ("cut", "argmax", "cut.argmax", [9.0, 9.0]),
        ("cut", "certificate", "cut.certificate", -1.0),
        ("closing", "volume", "closing.volume", "all"),
        ("plan", "put_off", "cut.put_off", "no"),
        ("plan", "std", "plan.plan", []),
        ("plan", "promise", "plan.promise", -1.0),
        ("plan", "promise", "plan.promise", INF),
    ],
)
def test_a_record_that_cannot_be_is_refused(name, named, path, value):
    strategy, trial = scene(name)
    strategy, before = strategy.clone(), strategy.report()
    wrong = Trial(trial.id, trial.x, None, changed(trial.info, path, value))
    with pytest.raises(ValueError, match=rf"\b{named}\b.*must"):
        strategy.replay([Asked(wrong)])
    assert strategy.report() == before
    strategy.replay([Asked(trial)])


@pytest.mark.parametrize("hint", [list[int], int | str | None, tuple[int, str]])
def test_a_record_that_cannot_be_decoded_is_refused_when_the_class_is_made(hint):
    record = make_dataclass("Mine", [("score", hint)])
    with pytest.raises(TypeError, match="record must have fields"):
        type("Own", (RandomSearch,), {"record": record})
    with pytest.raises(TypeError, match="record must be a dataclass"):
        type("Own", (RandomSearch,), {"record": dict})


def test_a_copy_of_a_trial_is_pickled_once():
    strategy, trial = scene("integrated_ei")
    asked = strategy.clone().ask()
    assert (
        len(pickle.dumps(asked))
        == len(pickle.dumps(trial.copy()))
        < 2 * len(pickle.dumps(Trial(trial.id, trial.x, None, trial.info, trial.domain)))
    )
    strategy = strategy.clone()
    strategy.ask()
    strategy.tell(pickle.loads(pickle.dumps(asked)), 0.3)


@dataclass(frozen=True)
class Impossible(Width):
    value: float

    def __call__(self, t, model):
        return self.value if t > 2 else 1.0


@pytest.mark.parametrize("value", [-1.0, NAN, INF])
@pytest.mark.parametrize("domain", [finite(), LINE])
def test_what_no_record_may_hold_is_not_asked(domain, value):
    strategy = algorithms.gp_ucb(domain, rbf(0.9), noise_variance=0.01, width=Impossible(value))
    strategy.ask(2)
    before = strategy.report()["num_asked"]
    with pytest.raises(ValueError, match=r"width must .* from Impossible"):
        strategy.ask()
    assert strategy.report()["num_asked"] == before == 2


@dataclass(frozen=True)
class WrongForToldData(Width):
    def __call__(self, t, model):
        return -1.0 if isinstance(model, ModelNumbers) else 1.0


def test_the_interval_from_told_data_alone_is_looked_at_too():
    width = WrongForToldData()
    strategy = algorithms.he_gp_ucb(finite(), MODELS, noise_std=9.0, width=width)
    strategy.ask()
    with pytest.raises(ValueError, match=r"width must .* from WrongForToldData"):
        strategy.ask()
