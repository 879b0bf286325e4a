"""What beginners do in their first week: mistakes with trials and values, on strategies and on
studies, and with the arguments of `run`, `optimize` and `Study`."""

import math
from functools import partial

import torch

import botorch_ext as bx
from botorch_ext import algorithms
from tests.wrong_calls.calls import refused

# The strategy and the study have told the trials 0 to 2, and trial 3 is pending.
ASKED = {"strategy": lambda s: s.strategy, "study": lambda s: s.study}


def trial(of, id):
    return (of.strategy if isinstance(of, bx.Study) else of).history.trials[id]


def pending(of):
    return trial(of, 3)


#: From the argument that is wrong to the mistakes, each a call on a strategy or a study.
MISTAKES = {
    "id": {
        "a trial of another": lambda a, s: a.tell(s.seeing.history.trials[3], 0.5),
        "a trial of another dtype": lambda a, s: a.tell(
            bx.Trial(3, pending(a).x.float() + 0.1), 0.5
        ),
        "a trial that was never asked": lambda a, s: a.tell(bx.Trial(7, pending(a).x), 0.5),
        "a trial told twice": lambda a, s: a.tell(trial(a, 0), 0.5),
        "all trials at once": lambda a, s: a.tell([pending(a)], [0.5]),
        "the point for the trial": lambda a, s: a.tell(pending(a).x, 0.5),
        "the value before the trial": lambda a, s: a.tell(0.5, pending(a)),
        "the word trial": lambda a, s: a.tell("trial 3", 0.5),
        "an id from the end": lambda a, s: a.tell(-1, 0.5),
        "a pending trial corrected": lambda a, s: a.correct(pending(a), 0.5),
        "a trial of another corrected": lambda a, s: a.correct(s.seeing.history.trials[0], 0.5),
        "all trials corrected at once": lambda a, s: a.correct([0, 1], [0.5, 0.5]),
        "a told trial abandoned": lambda a, s: a.abandon(trial(a, 0)),
        "a trial of another abandoned": lambda a, s: a.abandon(s.seeing.history.trials[3]),
        "all trials abandoned at once": lambda a, s: a.abandon([pending(a)]),
    },
    "value": {
        "text": lambda a, s: a.tell(pending(a), "0.5"),
        "a decimal comma": lambda a, s: a.tell(pending(a), "0,5"),
        "a value with its unit": lambda a, s: a.tell(pending(a), "0.5 %"),
        "repeated measurements": lambda a, s: a.tell(pending(a), [0.5, 0.6]),
        "a value and its error": lambda a, s: a.tell(pending(a), (0.5, 0.1)),
        "a dict of results": lambda a, s: a.tell(pending(a), {"yield": 0.5}),
        "no value yet": lambda a, s: a.tell(pending(a), None),
        "NaN for a failure": lambda a, s: a.tell(pending(a), math.nan),
        "infinity for a failure": lambda a, s: a.tell(pending(a), -math.inf),
        "success as a bool": lambda a, s: a.tell(pending(a), True),
        "a correction in words": lambda a, s: a.correct(trial(a, 0), "half"),
        "a correction to NaN": lambda a, s: a.correct(trial(a, 0), math.nan),
        "repeated measurements attached": lambda a, s: a.attach([3.0, -2.0], [0.5, 0.6]),
        "an attached NaN": lambda a, s: a.attach([3.0, -2.0], math.nan),
    },
    "failed": {"a reason": lambda a, s: a.abandon(pending(a), "it exploded")},
    "num_trials": {
        "none": lambda a, s: a.ask(0),
        "fewer than none": lambda a, s: a.ask(-2),
        "a float": lambda a, s: a.ask(4.0),
        "the point to ask": lambda a, s: a.ask([3.0, -2.0]),
    },
    "x": {
        "one column": lambda a, s: a.attach([3.0], 0.5),
        "outside": lambda a, s: a.attach([3.0, 2.0], 0.5),
        "text": lambda a, s: a.attach(["3.0", "-2.0"], 0.5),
    },
}

LOOPS = {
    "run": lambda s, objective=lambda x: 0.0, on=None, num=9, **more: bx.run(
        s.strategy if on is None else on, objective, num, progress=False, **more
    ),
    "optimize": lambda s, objective=lambda x: 0.0, on=None, num=9, **more: bx.optimize(
        objective, s.box if on is None else on, num, progress=False, **more
    ),
}

#: From the argument that is wrong to the mistakes, each a call of a loop.
LOOP_MISTAKES = {
    "objective": {
        "that returns nothing": lambda loop, s: loop(s, lambda x: None),
        "that returns two numbers": lambda loop, s: loop(s, lambda x: torch.zeros(2)),
        "that returns all of x": lambda loop, s: loop(s, lambda x: x),
        "that returns text": lambda loop, s: loop(s, lambda x: f"{x[0]}"),
        "of two numbers": lambda loop, s: loop(s, lambda temperature, time: 0.0),
        "that was called already": lambda loop, s: loop(s, 0.5),
    },
    "num_trials": {
        "negative": lambda loop, s: loop(s, num=-3),
        "none": lambda loop, s: loop(s, num=0),
        "a float": lambda loop, s: loop(s, num=9.0),
        "infinite": lambda loop, s: loop(s, num=math.inf),
    },
    "callback": {
        "no function": lambda loop, s: loop(s, callback=3),
        "a name": lambda loop, s: loop(s, callback="print"),
        "a list of them": lambda loop, s: loop(s, callback=[print]),
        "of nothing": lambda loop, s: loop(s, callback=lambda: True),
        "of a trial alone": lambda loop, s: loop(s, callback=lambda trial: True),
    },
    "time_limit": {
        "negative": lambda loop, s: loop(s, time_limit=-60),
        "no time at all": lambda loop, s: loop(s, time_limit=0),
        "in words": lambda loop, s: loop(s, time_limit="1h"),
        "NaN": lambda loop, s: loop(s, time_limit=math.nan),
    },
    "target": {
        "in words": lambda loop, s: loop(s, target="best"),
        "NaN": lambda loop, s: loop(s, target=math.nan),
        "a range": lambda loop, s: loop(s, target=(0.5, 1.0)),
    },
    "minimize": {
        "a word": lambda loop, s: loop(s, minimize="cost"),
        "zero": lambda loop, s: loop(s, minimize=0),
        "against the study": lambda loop, s: loop(s, on=s.study, minimize=False),
    },
    "maximize": {"in place of minimize": lambda loop, s: loop(s, maximize=True)},
    "max_retries": {
        "nothing": lambda loop, s: loop(s, max_retries=None),
        "fewer than none": lambda loop, s: loop(s, max_retries=-1),
    },
}

CALLS = [
    *(
        call
        for who, asked in ASKED.items()
        for argument, mistakes in MISTAKES.items()
        for name, mistake in mistakes.items()
        for call in refused(
            argument, **{f"{who} {argument} {name}": lambda s, m=mistake, a=asked: m(a(s), s)}
        )
    ),
    *(
        call
        for which, loop in LOOPS.items()
        for argument, mistakes in LOOP_MISTAKES.items()
        for name, mistake in mistakes.items()
        for call in refused(argument, **{f"{which} {argument} {name}": partial(mistake, loop)})
    ),
    *refused(
        "minimize",
        a_cost_that_was_to_be_maximised_before=lambda s: LOOPS["optimize"](
            s, on=begun_with_a_cost(s), minimize=False
        ),
        a_cost_for_a_strategy_that_has_values=lambda s: LOOPS["optimize"](
            s, on=with_values(s), minimize=True
        ),
    ),
    *refused("seed", a_seed_beside_a_strategy=lambda s: go_on(s.strategy, seed=3)),
    *refused("seed", a_seed_beside_a_study=lambda s: go_on(s.study, seed=0)),
    *refused("initial", data_beside_a_strategy=lambda s: go_on(s.strategy, initial=(s.X, s.Y))),
    *refused("num_initial", first_points_beside_a_study=lambda s: go_on(s.study, num_initial=4)),
    *refused(
        "particles", particles_beside_a_study=lambda s: go_on(s.study, particles=bx.Particles())
    ),
    *refused(
        "domain",
        optimize_with_contexts=lambda s: go_on(s.seeing),
        optimize_of_a_method=lambda s: go_on(algorithms.gp_ucb),
        optimize_of_a_class=lambda s: go_on(bx.OptimisticStrategy),
        optimize_of_a_file=lambda s: go_on("yield.db"),
        optimize_in_another_order=lambda s: bx.optimize(s.box, lambda x: 0.0, 9, progress=False),
    ),
    *refused(
        "strategy",
        run_of_a_file=lambda s: LOOPS["run"](s, on="yield.db"),
        run_of_a_box=lambda s: LOOPS["run"](s, on=s.box),
        run_of_a_result=lambda s: LOOPS["run"](s, on={"strategy": s.strategy}),
        run_in_another_order=lambda s: bx.run(lambda x: 0.0, s.strategy, 9, progress=False),
        study_before_its_place=lambda s: bx.Study(s.strategy, "never.db"),
        study_of_a_strategy_with_trials=lambda s: bx.Study("never.db", s.strategy),
        study_of_a_box=lambda s: bx.Study("never.db", s.box),
    ),
]


def go_on(given, **more):
    return bx.optimize(lambda x: 0.0, given, 9, progress=False, **more)


def with_values(s):
    return algorithms.integrated_ei(s.box, initial=(s.X, s.Y))


def begun_with_a_cost(s):
    strategy = algorithms.integrated_ei(s.box)
    bx.run(strategy, lambda x: 0.0, 1, minimize=True, progress=False)
    return strategy
