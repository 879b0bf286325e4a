"""Descriptions: the same arguments open a study in every version, and others never do."""

import functools
import json
import logging
import shutil
import warnings
from dataclasses import dataclass
from datetime import date

import gpytorch
import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import PeriodicKernel, RBFKernel

import botorch_ext as bx
from botorch_ext import algorithms
from botorch_ext.algorithms.argument_checks import algorithm
from botorch_ext.exceptions import (
    AnotherStrategyError,
    BrokenStudyError,
    NewerStudyError,
    StudyError,
    UndescribedWarning,
    VersionWarning,
    WaitingForObservations,
)
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.described_strategies import described_strategy
from botorch_ext.studies.description import describe, require_same
from botorch_ext.studies.plain_events import from_json, to_json
from botorch_ext.studies.translations import TRANSLATIONS, Dropped
from tests.helpers import matern, rbf
from tests.studies.kept import BOX, gp_bucb, kernel
from tests.studies.kept_methods import FILES, METHODS, MINIMISED, context_of, seen, value_of

LAMBDA = {"noise_variance": 0.01}
NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1}


def kept(strategy, format=3):
    """What is in the file of a study: of format 1 what was there before there was another one."""
    described = from_json(to_json(describe(strategy)))
    return described if format == 3 else _of_format_1(described)


def _of_format_1(described):
    marks = ("<call>", "<default>", "<given>", "format")
    if isinstance(described, dict):
        return {key: _of_format_1(part) for key, part in described.items() if key not in marks}
    return [_of_format_1(part) for part in described] if isinstance(described, list) else described


def opens(description, strategy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_same(description, describe(strategy), "it")


def refuses(description, strategy, message):
    with pytest.raises(AnotherStrategyError, match=message):
        opens(description, strategy)


def scale_floats(described, factor):
    """A description in which each number that is no whole one is another one."""
    if isinstance(described, dict):
        return {key: scale_floats(part, factor) for key, part in described.items()}
    if isinstance(described, list):
        return [scale_floats(part, factor) for part in described]
    return described * factor if isinstance(described, float) else described


@pytest.mark.parametrize("format", [1, 3])
@pytest.mark.parametrize("name", ["regret_balancing", "gp_ucb_box"])
def test_a_study_opens_on_another_machine(name, format):
    """Where computed numbers, such as an information gain, have other last digits."""
    strategy = METHODS[name]()
    described = kept(strategy, format)
    opens(scale_floats(described, 1 + 1e-12), strategy)
    for factor in (1 + 1e-6, 1 - 1e-6):
        refuses(scale_floats(described, factor), strategy, "in the study, got")


def with_digits(factor):
    """A strategy on a set, with contexts of a set."""
    contexts = bx.FiniteSet(torch.tensor([[0.3], [0.7]], dtype=torch.float64) * factor)
    points = bx.FiniteSet(BOX.sample(150, seed=1) * factor)
    options = {"width": 2.0, "context_domain": contexts} | LAMBDA
    return bx.algorithms.cgp_ucb(points, RBFKernel().double(), **options)


def test_a_study_on_sets_with_other_last_digits_goes_on(tmp_path):
    for factor, value in ((1.0, 0.5), (1 + 1e-12, 0.25)):
        made = with_digits(factor)
        study = bx.Study(tmp_path / "lab.db", made)
        study.tell(study.ask(context=made.context_space.domain.points[1]), value)
    assert bx.Study(tmp_path / "lab.db", with_digits(1.0)).pending == []
    with pytest.raises(AnotherStrategyError, match="points"):
        bx.Study(tmp_path / "lab.db", with_digits(1 + 1e-6))


ROWS = {
    "list of arrays": list,
    "float32 array": lambda numbers: numbers.astype(np.float32),
    "reversed array": lambda numbers: numbers[::-1].copy()[::-1],
    "foreign byte order": lambda numbers: numbers.astype(">f8"),
    "tensor": torch.as_tensor,
    "named frame": lambda numbers: pd.DataFrame(numbers).add_prefix("x").set_index(numbers[:, 0]),
}
COLUMNS = {
    "n": lambda numbers: numbers[:, 0],
    "series of float32": lambda numbers: pd.Series(numbers[:, 0].astype(np.float32), name="y"),
}


@pytest.mark.parametrize("num", [4, 130])
@pytest.mark.parametrize("container", [*ROWS, *COLUMNS])
def test_the_same_numbers_are_the_same_study_whatever_holds_them(container, num):
    rng = np.random.default_rng(1)
    X = np.stack([rng.integers(-8, 9, num) / 8, 2 + rng.integers(0, 25, num) / 8], axis=1)
    Y = rng.integers(-16, 17, (num, 1)) / 4
    others, moved = Y.copy(), X.copy()
    others[num // 2] += 0.25
    moved[1, 0] = 0.0625
    rows, column = ROWS.get(container, pd.DataFrame), (ROWS | COLUMNS)[container]

    def made(X, Y):
        return bx.algorithms.integrated_ei(BOX, initial=(X, Y))

    given, bare = made(rows(X), column(Y)), made(X, Y)
    opens(kept(given), bare)
    opens(kept(bare), given)
    for different in (made(rows(X), column(others)), made(rows(moved), column(Y))):
        refuses(kept(bare), different, "initial")


def times(X, a):
    return a * X[..., 0]


class Mean:
    """A mean with a number that it does not show, with a logger and with itself."""

    def __init__(self, a):
        self.__a, self._log, self.me = a, logging.getLogger("lab"), [self]

    def __call__(self, X):
        return self.__a * X[..., 0]


@dataclass(frozen=True)
class Dated:
    _date: date

    def __call__(self, X):
        return X[..., 0]


CALLABLES = {
    "partial": lambda a: functools.partial(times, a=a),
    "object": Mean,
    "module": lambda a: gpytorch.means.ConstantMean().initialize(constant=a),
    "date": lambda a: Dated(date(2026, 1, int(a))),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_what_a_callable_carries_is_compared(name):
    make = CALLABLES[name]
    opens(kept(gp_bucb(mean=make(1.0))), gp_bucb(mean=make(1.0)))
    refuses(kept(gp_bucb(mean=make(1.0))), gp_bucb(mean=make(2.0)), "^it .*: mean")


def test_kernels_are_compared_by_their_numbers_when_the_strategy_was_made():
    def made(kernel):
        return algorithms.gp_bucb(BOX, kernel, **LAMBDA, width=2.0)

    mine = rbf(0.5)
    strategy = made(mine)
    described = kept(strategy)
    mine.lengthscale = 2.0
    opens(described, strategy)
    refuses(described, made(mine), "lengthscale")
    opens(kept(gp_bucb()), made(kernel().double()))  # whatever the dtype of its numbers is


def test_what_cannot_be_described_is_a_warning():
    with pytest.warns(UndescribedWarning, match=r"strategy\.mean.* \(a "):
        describe(gp_bucb(mean=Dated(object())))


def test_other_code_is_a_warning():
    def made(row):
        return (lambda X: X[..., 0]) if row else (lambda X: X.sum(-1))

    described = kept(gp_bucb(mean=made(0)))
    with pytest.warns(VersionWarning, match=r"other code, .*: strategy\.mean$"):
        require_same(described, describe(gp_bucb(mean=made(1))), "it")
    # Of another version of Python, which has other code for all of them.
    opens(described | {"code": {"2.7": {"strategy.mean": "0"}}}, gp_bucb(mean=made(0)))


def test_what_a_function_was_called_with_is_the_study_and_not_how():
    first = algorithms.gp_ucb(BOX, kernel(), **LAMBDA, **NUMBERS)
    for second in (
        algorithms.gp_ucb(domain=BOX, kernel=kernel(), **LAMBDA, **NUMBERS),
        algorithms.gp_ucb(BOX, kernel(), **LAMBDA, delta=0.1, seed=0, **NUMBERS),
        algorithms.gp_ucb([(-1.0, 1.0), (2.0, 5.0)], kernel(), **LAMBDA, **NUMBERS),
    ):
        opens(kept(first), second)
        opens(kept(first, 1), second)
    other = algorithms.gp_ucb(BOX, kernel(), **LAMBDA, delta=0.2, **NUMBERS)
    refuses(kept(first), other, r": delta is 0\.1 in the study, got 0\.2$")
    assert kept(first)["made_by"] == kept(first.clone())["made_by"] == "gp_ucb"


class Before(RandomSearch):
    def __init__(self, domain, seed=0):
        super().__init__(domain, seed=seed)


class Search(RandomSearch):
    def __init__(self, domain, seed=0, factor=1.0):
        super().__init__(domain, seed=seed)


class Named(RandomSearch):
    def __init__(self, domain, seed=0, by=1.0):
        super().__init__(domain, seed=seed)


def in_the_library(kind, name):
    """A strategy of the library, of whose class a study says no more than its name."""
    kind.__module__, kind.__qualname__ = "botorch_ext.ours", name
    return functools.partial(kind, BOX)


def old_ucb(domain, kernel, *, noise_variance, width):
    return algorithms.gp_ucb(domain, kernel, noise_variance=noise_variance, width=width)


def new_ucb(domain, kernel, *, noise_variance, width, factor=1.0):
    """A function whose strategy is made otherwise, too.

    Args:
        factor: What the width is multiplied by.

    Returns:
        GP-UCB.
    """
    scaled = bx.widths.Scaled(width, factor)
    return algorithms.gp_ucb(domain, kernel, noise_variance=noise_variance, width=scaled)


def called(function):
    function.__name__ = "level_ucb"
    return functools.partial(algorithm(function), BOX, kernel(), **LAMBDA, width=2.0)


# A function stands in no description of format 1, only the strategy that it made.
@pytest.mark.parametrize(("of", "format"), [("class", 3), ("function", 3), ("class", 1)])
def test_a_study_opens_when_an_argument_is_new_or_gone(of, format):
    before, after = in_the_library(Before, "Search"), in_the_library(Search, "Search")
    if of == "function":
        before, after = called(old_ucb), called(new_ucb)
    opens(kept(before(), format), after())
    opens(kept(before(), format), after(factor=1.0))
    message = r"factor\S* is missing in the study, got .*2\.0"
    refuses(kept(before(), format), after(factor=2.0), message)
    if format == 3:
        opens(kept(after()), before())
        opens(kept(after(factor=1.0)), before())
        refuses(kept(after(factor=2.0)), before(), r"factor is .*2\.0.* in the study, got missing")


@pytest.mark.parametrize("format", [1, 3])
def test_renamed_arguments_and_classes_are_one_line_each(format, monkeypatch):
    before, after = in_the_library(Named, "Level"), in_the_library(Search, "Factor")
    refuses(kept(before(), format), after(), "class is 'Level' in the study, got 'Factor'")
    monkeypatch.setitem(TRANSLATIONS, "Level", "Factor")
    refuses(kept(before(by=3.0), format), after(factor=3.0), r"by is 3\.0 in the study, got miss")
    monkeypatch.setitem(TRANSLATIONS, "Level.by", "factor")
    opens(kept(before(by=3.0), format), after(factor=3.0))
    opens(kept(before(), format), after())
    refuses(kept(before(by=3.0), format), after(factor=4.0), r"factor is 3\.0 in the .* got 4\.0")
    monkeypatch.setitem(TRANSLATIONS, "Level.by", Dropped(1.0))
    opens(kept(before(), format), in_the_library(Before, "Factor")())


@pytest.mark.parametrize("of", ["class", "function"])
def test_a_default_may_change_and_what_was_given_stays_what_it_is(of):
    def version(default):
        class Search(RandomSearch):
            def __init__(self, domain, *, factor=default):
                super().__init__(domain)

        def search(domain, *, factor=default):
            """A search.

            Args:
                factor: A number.

            Returns:
                The search.
            """
            return Search(domain, factor=factor)

        return functools.partial(Search if of == "class" else algorithm(search), BOX)

    before, after = version(1.0), version(2.0)
    for options in ({}, {"factor": 2.0}, {"factor": 1.0}):
        opens(kept(before()), after(**options))
        if options != {"factor": 1.0}:
            message = r"factor is 1\.0 in the study, got 2"
            refuses(kept(before(factor=1.0)), after(**options), message)
    opens(kept(before(factor=1.0)), after(factor=1.0))
    opens(kept(before(factor=2.0)), after())
    opens(kept(before(factor=1.0)), before())  # it may be left out while it is the default


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"code": ["list"]}, BrokenStudyError, "cannot be read: its code must be"),
        ({"code": {"3.11": "text"}}, BrokenStudyError, "cannot be read: its code must be"),
        ({"format": 4}, NewerStudyError, r"has format 4, and this version .* knows 3"),
        ({"format": True}, BrokenStudyError, "its format is"),
        ({"format": None}, BrokenStudyError, "its format is"),
    ],
)
def test_descriptions_of_strangers_are_refused_by_name(change, error, message):
    strategy = RandomSearch(BOX)
    with pytest.raises(error, match=message):
        require_same(kept(strategy) | change, describe(strategy), "study 'it'")


MIXED = bx.Box([(0, 1), (2, 5)], integer=[1])
SPACE = bx.Space(
    time=bx.Real(1, 9, log=True, unit="s"),
    kind=bx.Choice({"a": [0.0], "b": [1.0], "c": [5.0]}),
    depth=bx.Integer(1, 9, step=2),
    constraints=["depth + time <= 12"],
)
LARGE = bx.Space(
    {f"x{j}": bx.Real(0, 1) for j in range(21)},
    constraints=[f"x{j} + x{j + 1} <= 1.5" for j in range(10)],
)
DATA = (MIXED.sample(300, seed=2), torch.linspace(0, 1, 300).double())
MADE = {
    "integrated_ei": lambda: algorithms.integrated_ei(SPACE, seed=4),
    "many data": lambda: algorithms.gp_ucb(
        MIXED, rbf(1.0), **LAMBDA, width=2.0, initial=DATA, num_initial=2
    ),
    "width": lambda: algorithms.gp_bucb(
        *(bx.Box([(0, 1), (2, 5)]), matern(0.3, 2.0, nu=1.5)),
        **LAMBDA,
        width=bx.widths.SelfNormalized(1.0, 0.1, 0.05),
    ),
    "contexts": lambda: algorithms.integrated_ei(
        MIXED, context_domain=bx.Space(humidity=bx.Real(0, 1))
    ),
    "many parameters": lambda: algorithms.integrated_ei(LARGE),
    "many points": lambda: RandomSearch(bx.FiniteSet(BOX.sample(101, seed=3))),
}


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("name", MADE)
def test_the_strategy_made_again_asks_the_same(name):
    made = MADE[name]()
    again = described_strategy(kept(made), "study 'a'")
    assert kept(again) == kept(made)
    context = {"context": [0.5]} if made.context_space is not None else {}
    for _ in range(2):
        first, second = made.ask(**context), again.ask(**context)
        assert torch.equal(first.x, second.x) and first.params == second.params
        made.tell(first, float(first.x.sum()))
        again.tell(second, float(first.x.sum()))


class Own(RandomSearch):
    """A strategy that a user wrote."""


UNMADE = {
    "class": (lambda: Own(BOX), "does not have, Own: open the study in Python"),
    "kernel": (
        lambda: algorithms.gp_bucb(BOX, PeriodicKernel().double(), **LAMBDA, width=2.0),
        "cannot make its strategy gp_bucb again, kernel is a PeriodicKernel",
    ),
    "function": (lambda: gp_bucb(mean=lambda X: X.sum(dim=-1)), "mean is a "),
    "models": (
        lambda: algorithms.mle_ucb(
            BOX, bx.CandidateModels.lengthscales(rbf(1.0), [0.3, 0.7], 0.01), width=1.0
        ),
        "cannot make its strategy mle_ucb again",
    ),
    "a huge set": (
        lambda: RandomSearch(bx.FiniteSet(torch.arange(2**16 + 1.0).double()[:, None])),
        "too many numbers for its description",
    ),
}


@pytest.mark.parametrize("name", UNMADE)
def test_what_a_description_does_not_hold_is_named(name):
    make, message = UNMADE[name]
    with pytest.raises(StudyError, match=f"^study 'a' .*{message}"):
        described_strategy(kept(make()), "study 'a'")


def test_another_argument_is_never_made_up():
    described = kept(MADE["width"]())
    call = described["strategy"]["<call>"]
    call["kernel"]["period_length"] = {"dtype": "torch.float64", "values": 2.0}
    for wrong in (described, {}, {"strategy": "x"}, {"strategy": {"class": "Strategy"}}):
        with pytest.raises(StudyError, match="study 'a'"):
            described_strategy(wrong, "study 'a'")


def written(folder, name, tmp_path):
    """A copy of a file that an earlier version wrote, and the events that it must have."""
    path = tmp_path / f"{name}.sqlite"
    shutil.copy(FILES / folder / f"{name}.sqlite", path)
    return path, json.loads((FILES / folder / "events.json").read_text())[name]


def opened(path, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VersionWarning)
        return bx.Study(path, METHODS[name]())


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("folder", ["0.2.0", "359dab4"])
@pytest.mark.parametrize("name", METHODS)
def test_a_file_of_an_earlier_version_opens_and_goes_on(tmp_path, name, folder):
    path, expected = written(folder, name, tmp_path)
    study = opened(path, name)
    assert seen(study) == expected
    assert study.minimize == (name in MINIMISED)
    first, *others = study.pending
    study.tell(first, value_of(study.strategy.history.trials[first]))
    try:
        trial = study.ask(context=context_of(name, len(expected)))
    except WaitingForObservations:
        for id in others:
            study.tell(id, value_of(study.strategy.history.trials[id]))
        trial = study.ask(context=context_of(name, len(expected)))
    study.tell(trial, value_of(trial))
    again = opened(path, name)
    assert seen(again) == seen(study) and len(seen(again)) >= len(expected) + 3


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("name", ["gp_ucb_float32", "regret_balancing"])
def test_what_was_asked_stands_where_decisions_are_others(name, tmp_path, monkeypatch):
    """A version that would choose the worst of everything has every event, and keeps what is then
    asked."""
    path, expected = written("359dab4", name, tmp_path)
    asked = bx.Study(path, METHODS[name]()).strategy.ask()
    # Format 1 has the information gain that `regret_balancing` computes among its arguments.
    made = [METHODS[name]() for _ in range(2)]
    monkeypatch.setattr(torch.Tensor, "argmax", torch.Tensor.argmin)
    monkeypatch.setattr(torch.Tensor, "max", torch.Tensor.min)
    later = bx.Study(path, made.pop())
    assert seen(later) == expected
    trial = later.ask()
    assert not torch.equal(trial.x, asked.x)
    later.tell(trial, 0.25)
    monkeypatch.undo()
    assert seen(bx.Study(path, made.pop())) == seen(later)
