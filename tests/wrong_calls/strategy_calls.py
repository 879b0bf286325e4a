"""Asking, attaching and replaying, with points, contexts, actions and events as users have them."""

import math
from typing import Any

import numpy as np
import torch

from botorch_ext import algorithms
from botorch_ext.strategies import Asked, Told, Trial
from tests.wrong_calls.calls import LAMBDA, refused, refused_values, working_values, works
from tests.wrong_calls.kinds import as_people_write, no_points

OMITTED: Any = object()
WIDTH = {"noise_variance": LAMBDA, "width": 2.0}
POINT = [3.0, -2.0]
INITIAL = [[3.0, -2.0], [4.0, -2.5], [2.5, -1.75]]
NO_CONTEXT = {
    "nothing": None,
    "a string": "monday",
    "two numbers": [0.1, 0.2],
    "none": [],
    "outside": 7.0,
    "NaN": math.nan,
    "a bool": True,
    "bools": [True],
    "complex": 0.5j,
    "masked": np.ma.masked,
    "a masked array": np.ma.array([0.5]),
    "float32": torch.tensor([0.5]),
    "a batch": [[0.5]],
    "a date": np.datetime64("2026-01-01"),
    "a dict": {"day": 0.5},
}
NO_EVENTS = {
    "a dict": {},
    "a filled dict": {0: Told(3, 0.5)},
    "nothing": None,
    "a string": "events",
    "an empty string": "",
    "a number": 3,
    "one event": Told(3, 0.5),
    "trials": [Trial(4, torch.zeros(2).double())],
    "pairs": [(3, 0.5)],
    "a strategy": algorithms,
    "classes": [Told],
}
NO_ACTIONS = {
    "none": [],
    "a string": "all",
    "outside": [[99.0, 99.0]],
    "one column": [[3.0]],
    "bools": [[True, False]],
    "masked": np.ma.array([POINT]),
    "float32": torch.tensor([POINT]),
    "objects": np.array([POINT], dtype=object),
    "NaN": [[math.nan, -2.0]],
    "a number": 3.0,
}


def attached(s, x):
    s.strategy.attach(x, 0.5)
    return s.strategy


def seen(s, context):
    return s.seeing.ask(context=context)


def started(s, X=OMITTED, Y=OMITTED):
    X, Y = s.X if X is OMITTED else X, s.Y if Y is OMITTED else Y
    return algorithms.gp_ucb(s.box, s.kernel, initial=(X, Y), **WIDTH)


def offered(s, actions):
    return s.strategy.ask(actions=actions)


ON_SET = [[3.0, -2.0], [4.0, -2.5]]

CALLS = [
    # --- attach
    *working_values(
        "attach",
        attached,
        {**as_people_write(POINT), "one row": [POINT]},
        torch.tensor(POINT).double(),
    ),
    *working_values(
        "attach",
        attached,
        {"integers": [3, -2], "an integer tensor": torch.tensor([3, -2])},
        torch.tensor([3.0, -2.0]).double(),
    ),
    *refused_values(
        "x",
        "attach",
        attached,
        {
            **{k: v for k, v in no_points([POINT]).items() if k != "bools in lists"},
            "two points": [POINT, POINT],
            "outside": [9.0, 9.0],
            "bools": [True, False],
            "bools among numbers": [3.0, True],
        },
    ),
    *refused(
        "context",
        attach_with_a_context=lambda s: s.strategy.attach(POINT, 0.5, context=[0.5]),
        attach_without_a_context=lambda s: s.seeing.attach(POINT, 0.5),
    ),
    # --- contexts and actions
    *working_values(
        "ask",
        seen,
        {
            "a list": [0.25],
            "a tuple": (0.25,),
            "an array": np.array([0.25]),
            "a number": 0.25,
            "a numpy number": np.float64(0.25),
            "an array without dimensions": np.array(0.25),
        },
        torch.tensor([0.25]).double(),
    ),
    *working_values(
        "ask", seen, {"an int": 1, "an int tensor": torch.tensor([1])}, torch.tensor([1.0]).double()
    ),
    *refused_values("context", "ask", seen, NO_CONTEXT),
    *refused_values(
        "context",
        "best",
        lambda s, c: s.seeing.best(context=c),
        {k: NO_CONTEXT[k] for k in ("a string", "two numbers", "bools", "masked")},
    ),
    *refused_values(
        "context",
        "attach",
        lambda s, c: s.seeing.attach(POINT, 0.5, context=c),
        {k: NO_CONTEXT[k] for k in ("a string", "two numbers", "bools", "masked")},
    ),
    *refused("context", a_context_too_many=lambda s: s.strategy.ask(context=0.5)),
    *working_values(
        "ask with actions", offered, as_people_write(ON_SET), torch.tensor(ON_SET).double()
    ),
    *refused_values("actions", "ask", offered, NO_ACTIONS),
    *refused_values(
        "actions",
        "ask on a set",
        lambda s, a: s.on_set.ask(actions=a),
        {k: NO_ACTIONS[k] for k in ("none", "a string", "bools", "float32", "outside")},
    ),
    # --- initial data
    *working_values("initial X", started, as_people_write(INITIAL), torch.tensor(INITIAL).double()),
    *working_values(
        "initial Y",
        lambda s, Y: started(s, Y=Y),
        as_people_write([0.3, -0.2, 0.1]),
        torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64),
    ),
    *working_values(
        "initial Y",
        lambda s, Y: started(s, Y=Y),
        {
            "whole numbers": [1, 2, 3],
            "integers": np.array([1, 2, 3]),
            "an int tensor": torch.tensor([1, 2, 3]),
        },
        [1.0, 2.0, 3.0],
    ),
    *works(
        lambda s: algorithms.gp_ucb(s.box, s.kernel, **WIDTH),
        no_initial_data=lambda s: started(s, s.X[:0], s.Y[:0]),
        initial_empty_lists=lambda s: started(s, np.zeros((0, 2)), []),
    ),
    *refused_values(
        "initial X",
        "initial",
        started,
        {
            **{k: v for k, v in no_points(INITIAL).items() if k != "bools in lists"},
            "batches": [INITIAL],
        },
    ),
    *refused_values(
        "initial Y",
        "initial",
        lambda s, Y: started(s, Y=Y),
        {
            "strings": ["a", "b", "c"],
            "bools": [True, False, True],
            "masked": np.ma.array([0.3, -0.2, 0.1]),
            "float32": torch.tensor([0.3, -0.2, 0.1]),
            "too few": [0.3],
            "NaN": [0.3, math.nan, 0.1],
            "one number": 0.3,
            "a complex array": np.array([0.3, -0.2, 0.1]) + 0j,
        },
    ),
    *refused_values(
        "initial",
        "initial",
        lambda s, i: algorithms.gp_ucb(s.box, s.kernel, initial=i, **WIDTH),
        {
            "X alone": np.array(INITIAL),
            "a dict": {"X": INITIAL, "Y": [0.3, -0.2, 0.1]},
            "a string": "XY",
            "three things": (INITIAL, [0.1] * 3, [0.1] * 3),
        },
    ),
    # --- events
    *refused_values("events", "replay", lambda s, e: s.strategy.replay(e), NO_EVENTS),
    *works(lambda s: s.strategy, replay_of_none=lambda s: [s.strategy.replay([]), s.strategy][1]),
    *works(
        lambda s: [s.strategy.replay([Told(3, 0.5)]), s.strategy][1],
        replay_of_a_generator=lambda s: [s.strategy.replay(e for e in [Told(3, 0.5)]), s.strategy][
            1
        ],
    ),
    *refused(
        "value",
        replay_of_a_bool=lambda s: s.strategy.replay([Told(3, True)]),
        replay_of_masked=lambda s: s.strategy.replay([Told(3, np.ma.masked)]),
    ),
    *refused(
        "x of trial 4", replay_of_a_list=lambda s: s.strategy.replay([Asked(Trial(4, POINT))])
    ),
]
