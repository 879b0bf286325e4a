"""What a study keeps of its strategy: the same arguments open it in every version and on every
machine, others never do, and methods of the library are made again from it."""

import functools
import json
import logging
import math
import shutil
import sqlite3
import warnings
from array import array
from contextlib import closing
from dataclasses import dataclass
from datetime import date
from unittest.mock import patch

import gpytorch
import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import PeriodicKernel, RBFKernel
from hypothesis import given, settings
from hypothesis import strategies as st

import botorch_ext as bx
from botorch_ext import algorithms
from botorch_ext.algorithms.argument_checks import checked_names
from botorch_ext.command_line import main
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
from botorch_ext.studies import event_lines
from botorch_ext.studies.described_spaces import described_space
from botorch_ext.studies.described_strategies import described_strategy
from botorch_ext.studies.description import describe, differences, require_same, versions
from botorch_ext.studies.plain_arguments import plain, plain_whole
from botorch_ext.studies.plain_events import PlainRecord, from_json, to_json
from botorch_ext.studies.plain_numbers import same_numbers
from botorch_ext.studies.translations import TRANSLATIONS, Dropped
from tests.domains.drawn_spaces import a_space
from tests.helpers import matern, rbf
from tests.studies.kept import BOX, gp_bucb, kernel
from tests.studies.kept_methods import (
    FILES,
    METHODS,
    MINIMISED,
    MINIMISED_ONCE,
    context_of,
    seen,
    value_of,
)
from tests.studies.two_versions import KINDS, scaled, widths

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


# --- numbers --------------------------------------------------------------------------------------


def scale_floats(described, factor):
    """A description in which each number that is no whole one is another one."""
    if isinstance(described, dict):
        return {key: scale_floats(part, factor) for key, part in described.items()}
    if isinstance(described, list):
        return [scale_floats(part, factor) for part in described]
    return described * factor if isinstance(described, float) else described


@pytest.mark.parametrize("format", [1, 3])
@pytest.mark.parametrize("name", ["regret_balancing", "gp_bucb", "credible_ucb"])
def test_a_study_opens_on_another_machine(name, format):
    """Where computed numbers, such as an information gain, have other last digits."""
    strategy = METHODS[name]()
    described = kept(strategy, format)
    opens(scale_floats(described, 1 + 1e-12), strategy)
    for factor in (1 + 1e-6, 1 - 1e-6):
        refuses(scale_floats(described, factor), strategy, "in the study, got")


def test_a_study_on_a_set_with_other_last_digits_goes_on(tmp_path):
    def made(factor):
        points = bx.FiniteSet(BOX.sample(150, seed=1) * factor)
        return bx.algorithms.gp_bucb(points, kernel(), **LAMBDA, width=2.0)

    study = bx.Study(tmp_path / "lab.db", made(1.0))
    study.tell(study.ask(), 0.5)
    again = bx.Study(tmp_path / "lab.db", made(1 + 1e-12))
    again.tell(again.ask(), 0.25)
    assert bx.Study(tmp_path / "lab.db", made(1.0)).pending == []
    with pytest.raises(AnotherStrategyError, match="points"):
        bx.Study(tmp_path / "lab.db", made(1 + 1e-6))


def test_a_study_with_contexts_of_other_last_digits_goes_on(tmp_path):
    def made(factor):
        contexts = bx.FiniteSet(torch.tensor([[0.3], [0.7], [1.1]], dtype=torch.float64) * factor)
        return bx.algorithms.cgp_ucb(
            BOX, RBFKernel().double(), **LAMBDA, width=2.0, context_domain=contexts
        )

    context = made(1.0).context_space.domain.points[1]
    study = bx.Study(tmp_path / "lab.db", made(1.0))
    study.tell(study.ask(context=context), 0.5)
    other = made(1 + 1e-12)
    again = bx.Study(tmp_path / "lab.db", other)
    trial = again.ask(context=other.context_space.domain.points[1])
    again.tell(trial, 0.25)
    assert bx.Study(tmp_path / "lab.db", made(1.0)).pending == []


@given(
    st.lists(st.floats(-1e9, 1e9).filter(lambda x: abs(x) > 1e-9), min_size=1, max_size=300),
    st.data(),
)
def test_numbers_that_are_equal_to_nine_digits_are_the_same(numbers, data):
    place = data.draw(st.integers(0, len(numbers) - 1))
    exact = from_json(to_json(plain(torch.tensor(numbers, dtype=torch.float64))))
    for factor, is_same in ((1 + 3e-10, True), (1 + 1e-6, False)):
        # The largest, beside which rounding of the others does not count.
        place = max(range(len(numbers)), key=lambda i: abs(numbers[i])) if not is_same else place
        other = [*numbers]
        other[place] *= factor
        assert same_numbers(from_json(to_json(plain_whole(numbers))), plain_whole(other)) is is_same
        if len(numbers) > 200:  # of which a digest was kept once
            assert not same_numbers(exact, plain_whole(other))
    assert same_numbers(exact, plain_whole(np.array(numbers)))


def test_whole_numbers_and_zeros_are_compared_as_what_they_are():
    assert same_numbers([0.0, 1.0], [1e-17, 1.0]) and not same_numbers([0.0, 1.0], [1e-12, 1.0])
    assert not same_numbers(0.0, 1e-300) and same_numbers(2, 2.0)
    assert not same_numbers(10**12, 10**12 + 1)  # seeds, say
    assert not same_numbers([10**400], [10**400 + 1])
    inf = float("inf")
    assert same_numbers([inf, 1.0], [inf, 1.0]) and not same_numbers([inf, 1.0], [-inf, 1.0])


CONTAINERS = {
    "list": np.ndarray.tolist,
    "tuple": lambda numbers: tuple(numbers.tolist()),
    "list of arrays": list,
    "array": lambda numbers: numbers,
    "float32 array": lambda numbers: numbers.astype(np.float32),
    "reversed array": lambda numbers: numbers[::-1].copy()[::-1],
    "foreign byte order": lambda numbers: numbers.astype(">f8"),
    "tensor": torch.as_tensor,
    "frame": pd.DataFrame,
    "named frame": lambda numbers: (
        pd.DataFrame(numbers).add_prefix("x").set_index(0 * numbers[:, 0])
    ),
}
COLUMNS = {
    **CONTAINERS,
    "n": lambda numbers: numbers[:, 0],
    "list of n": lambda numbers: numbers[:, 0].tolist(),
    "series": lambda numbers: pd.Series(numbers[:, 0], name="y"),
    "series of float32": lambda numbers: pd.Series(numbers[:, 0].astype(np.float32)),
}


@pytest.mark.parametrize("num", [4, 130])
@pytest.mark.parametrize("container", COLUMNS)
def test_the_same_numbers_are_the_same_study_whatever_holds_them(container, num):
    rng = np.random.default_rng(1)
    X = np.stack([rng.integers(-8, 9, num) / 8, 2 + rng.integers(0, 25, num) / 8], axis=1)
    Y = rng.integers(-16, 17, (num, 1)) / 4
    others, moved = Y.copy(), X.copy()
    others[num // 2] += 0.25
    moved[1, 0] = 0.0625
    rows, column = CONTAINERS.get(container, pd.DataFrame), COLUMNS[container]

    def made(X, Y):
        return bx.algorithms.integrated_ei(BOX, initial=(X, Y))

    given, bare = made(rows(X), column(Y)), made(X, Y)
    opens(kept(given), bare)
    opens(kept(bare), given)
    for different in (made(rows(X), column(others)), made(rows(moved), column(Y))):
        refuses(kept(bare), different, "initial")


def test_shapes_and_kinds_that_are_others():
    def same(one, other):
        return same_numbers(*(from_json(to_json(plain(each))) for each in (one, other)))

    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]])
    for other in (frame.astype("Float64"), frame.astype(object), frame.astype(int)):
        assert same(frame, other) and not same(frame, other + 1)
    assert same(range(3), [0, 1, 2]) and same(array("d", [0.5, 1.0]), [0.5, 1.0])
    assert same([[1.0], [2.0]], torch.tensor([1.0, 2.0])) and same([], np.zeros(0))
    assert same([[[1.0, 2.0]], [[3.0, 4.0]]], np.arange(1.0, 5).reshape(2, 1, 2))
    nan = [1.0, float("nan")]
    assert same(nan, torch.tensor(nan)) and not same(nan, [1.0, 2.0])
    many = torch.arange(300) % 100 / 4  # of which only digests are kept
    assert same(many.bfloat16(), many.double()) and same(many.bfloat16(), many.half().numpy())
    for one, other in [
        (many.bfloat16(), many.flip(0).bfloat16()),
        ([1.0, 2.0], [[1.0, 2.0]]),
        ([1.0, 2.0, 3.0, 4.0], [[1.0, 2.0], [3.0, 4.0]]),
        ([1, 0], [True, False]),
        (1, True),
        (np.full(300, 2**53), np.full(300, 2**53 + 1)),
        (["1.0"], [1.0]),
        ([1.0, None], [1.0, 0.0]),
        (np.zeros(300), np.zeros(301)),
        (np.zeros((300, 2)), np.zeros((2, 300))),
        ({"dtype": 3}, [3]),
    ]:
        assert not same(one, other) and not same(other, one)


def test_one_number_is_the_same_of_every_kind_and_a_bool_is_none():
    for two in (2, np.float64(2), np.float32(2), np.int8(2), np.array(2.0), torch.tensor(2.0)):
        opens(kept(gp_bucb(width=2.0)), gp_bucb(width=two))
        opens(kept(gp_bucb(width=two)), gp_bucb(width=2.0))
        refuses(kept(gp_bucb(width=two)), gp_bucb(width=2.5), "width is 2")
    found = list(differences({"inflate": True}, {"inflate": 1}))
    assert found == ["inflate is True in the study, got 1"]


@pytest.mark.parametrize("num", [4, 130])
def test_what_a_domain_computes_in_is_compared(num):
    def made(dtype):
        return RandomSearch(bx.FiniteSet(torch.linspace(0, 1, num)[:, None].to(dtype)))

    opens(kept(made(torch.float32)), made(torch.float32))
    message = r"domain\.dtype\S* is 'torch.float32' in the study, got 'torch.float64'"
    refuses(kept(made(torch.float32)), made(torch.float64), message)


# --- functions and objects ------------------------------------------------------------------------


def times(X, a):
    return a * X[..., 0]


def first_of(X, of):
    return X[..., 0]


def _one_deeper(a):
    def inner(X):
        return a * X[..., 0]

    return lambda X, *, scale=a: scale * inner(X)


class _Slotted:
    __slots__ = ("__a", "b")

    def __init__(self, a):
        self.__a = a

    def __call__(self, X):
        return self.__a * X[..., 0]


class _Private:
    def __init__(self, a):
        self._a, self.__b = 1.0, a
        self._log, self.me = logging.getLogger("lab"), [self]

    def __call__(self, X):
        return self.__b * X[..., 0]


class _Kernel(RBFKernel):
    def __init__(self, a):
        super().__init__()
        self._power = a


@dataclass(frozen=True)
class _Fields:
    _a: float

    def __call__(self, X):
        return self._a * X[..., 0]


def _calls_itself(a):
    def mean(X):
        return a * X[..., 0] if a else mean(X)

    return mean


CALLABLES = {
    "partial": lambda a: functools.partial(times, a=a),
    "partial of a partial": lambda a: functools.partial(functools.partial(times), a=a),
    "builtin": lambda a: functools.partial([torch.sum, torch.mean][int(a) - 1], dim=-1),
    "ufunc": lambda a: functools.partial(first_of, of=[np.sin, np.cos][int(a) - 1]),
    "of math": lambda a: functools.partial(first_of, of=[math.sin, math.cos][int(a) - 1]),
    "method of a class": lambda a: functools.partial(
        first_of, of=[torch.Tensor.sum, torch.Tensor.mean][int(a) - 1]
    ),
    "closure": _one_deeper,
    "slots": _Slotted,
    "private": _Private,
    "fields": _Fields,
    "bound method": lambda a: _Private(a).__call__,
    "itself": _calls_itself,
    "module": lambda a: gpytorch.means.ConstantMean().initialize(constant=a),
}


@pytest.mark.parametrize("name", CALLABLES)
def test_what_a_callable_carries_is_compared(name):
    make = CALLABLES[name]
    opens(kept(gp_bucb(mean=make(1.0))), gp_bucb(mean=make(1.0)))
    refuses(kept(gp_bucb(mean=make(1.0))), gp_bucb(mean=make(2.0)), "^it .*: mean")


def test_kernels_are_compared_by_their_numbers_when_the_strategy_was_made():
    first = algorithms.gp_bucb(BOX, _Kernel(1.0), **LAMBDA, width=2.0)
    other = algorithms.gp_bucb(BOX, _Kernel(2.0), **LAMBDA, width=2.0)
    refuses(kept(first), other, r"_power is 1\.0 in the study, got 2\.0")
    mine = rbf(0.5)
    strategy = algorithms.gp_bucb(BOX, mine, **LAMBDA, width=2.0)
    described = kept(strategy)
    mine.lengthscale = 2.0
    opens(described, strategy)
    refuses(described, algorithms.gp_bucb(BOX, mine, **LAMBDA, width=2.0), "lengthscale")
    opens(kept(gp_bucb()), gp_bucb())
    double = algorithms.gp_bucb(BOX, kernel().double(), **LAMBDA, width=2.0)
    opens(kept(gp_bucb()), double)  # whatever the dtype of its numbers is


def test_what_cannot_be_described_is_a_warning():
    class Dated(_Fields):
        def __call__(self, X):
            return X[..., 0]

    strategy = gp_bucb(mean=Dated(date(2026, 1, 1)))
    refuses(kept(strategy), gp_bucb(mean=Dated(date(2026, 1, 2))), "2026")
    with pytest.warns(UndescribedWarning, match=r"strategy\.mean.* \(a "):
        describe(gp_bucb(mean=Dated(object())))


def test_other_code_is_a_warning():
    def one(a):
        return lambda X: a * X[..., 0]

    def other(a):
        return lambda X: a * X[..., 1]

    first, second = one(1.0), other(1.0)
    second.__qualname__ = first.__qualname__
    described = kept(gp_bucb(mean=first))
    with pytest.warns(VersionWarning, match=r"other code, .*: strategy\.mean$"):
        require_same(described, describe(gp_bucb(mean=second)), "it")
    # Of another version of Python, which has other code for all of them.
    opens(described | {"code": {"2.7": {"strategy.mean": "0"}}}, gp_bucb(mean=second))

    def made(row):
        class Mean:
            def __call__(self, X):
                return X[..., row] if row else X.sum(-1)

        class Other:
            def __call__(self, X):
                return X[..., 0]

        Other.__qualname__ = Mean.__qualname__
        return Mean(), Other()

    before, after = made(0)
    with pytest.warns(VersionWarning, match="other code"):
        require_same(kept(gp_bucb(mean=before)), describe(gp_bucb(mean=after)), "it")


# --- calls, defaults, names -----------------------------------------------------------------------


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
    opens(kept(first) | {"made_by": "ours"}, first)
    assert kept(RandomSearch(BOX))["made_by"] is None
    bases = METHODS["regret_balancing"]().bases
    assert {base.arguments.of_function.made_by for base in bases} == {"ec_gp_ucb"}


def test_what_a_function_computes_may_change(monkeypatch):
    described = kept(METHODS["regret_balancing"]())
    monkeypatch.setattr(torch.Tensor, "argmax", torch.Tensor.argmin)
    strategy = METHODS["regret_balancing"]()
    assert kept(strategy, 1)["strategy"] != _of_format_1(described)["strategy"]
    opens(described, strategy)


# A function stands in no description of format 1, only the strategy that it made.
@pytest.mark.parametrize(
    ("kind", "format"), [(kind, 3) for kind in KINDS] + [(kind, 1) for kind in KINDS[:-1]]
)
def test_a_study_opens_when_an_argument_is_new_or_gone(kind, format):
    before, after = kind(False), kind(True)
    opens(kept(before(), format), after())
    opens(kept(before(), format), after(factor=1.0))
    message = r"factor\S* is missing in the study, got .*2\.0"
    refuses(kept(before(), format), after(factor=2.0), message)
    if format == 3:
        opens(kept(after()), before())
        opens(kept(after(factor=1.0)), before())
        refuses(kept(after(factor=2.0)), before(), r"factor is .*2\.0.* in the study, got missing")


def test_an_argument_that_is_gone_had_the_default_that_the_table_says(monkeypatch):
    """Format 1 does not say what the defaults were."""
    before, after = widths(True), widths(False)
    refuses(kept(before(), 1), after(), r"factor is 1\.0 in the study, got missing")
    monkeypatch.setitem(TRANSLATIONS, "Level.factor", Dropped(1.0))
    opens(kept(before(), 1), after())
    refuses(kept(before(factor=2.0), 1), after(), r"factor is 2\.0 in the study, got missing")


@pytest.mark.parametrize("format", [1, 3])
def test_renamed_arguments_classes_and_functions_are_one_line_each(format, monkeypatch):
    before, after = scaled("Level", by=1.0), scaled("Factor", factor=1.0)
    refuses(kept(before(3.0), format), after(3.0), "class is 'Level' in the study, got 'Factor'")
    monkeypatch.setitem(TRANSLATIONS, "Level", "Factor")
    refuses(kept(before(3.0), format), after(3.0), r"by is 3\.0 in the study, got missing")
    monkeypatch.setitem(TRANSLATIONS, "Level.by", "factor")
    opens(kept(before(3.0), format), after(3.0))
    opens(kept(before(), format), after())
    refuses(kept(before(3.0), format), after(4.0), r"factor is 3\.0 in the study, got 4\.0")
    now = algorithms.gp_ucb(BOX, kernel(), **LAMBDA, **NUMBERS)
    described = kept(now)
    described["strategy"]["<call>"]["function"] = "old_ucb"
    described["strategy"]["class"] = "Old"
    described["strategy"]["<call>"]["bound"] = described["strategy"]["<call>"].pop("rkhs_bound")
    refuses(described, now, "class is 'Old'")
    monkeypatch.setitem(TRANSLATIONS, "old_ucb", "gp_ucb")
    monkeypatch.setitem(TRANSLATIONS, "old_ucb.bound", "rkhs_bound")
    opens(described, now)


@pytest.mark.parametrize("of", ["class", "function", "width"])
def test_a_default_may_change_and_what_was_given_stays_what_it_is(of):
    def version(default):
        class Search(RandomSearch):
            def __init__(self, domain, *, factor=default):
                super().__init__(domain)

        def search(domain, *, factor=default):
            return Search(domain, factor=factor)

        return functools.partial(Search if of == "class" else checked_names(search), BOX)

    if of == "width":
        before, after = scaled("Level", by=1.0), scaled("Level", by=2.0)
        opens(kept(before()), after())
        opens(kept(before()), after(1.0))
        opens(kept(before(5.0)), after(5.0))
        refuses(kept(before()), after(5.0), r"width\.by is 1\.0 in the study, got 5\.0")
        refuses(kept(before(5.0)), after(), r"width\.by is 5\.0 in the study, got 2\.0")
        # In format 1, what was given cannot be told from what was not.
        refuses(kept(before(), 1), after(), r"width\.by is 1\.0 in the study, got 2\.0")
        return
    before, after = version(1.0), version(2.0)
    for options in ({}, {"factor": 2.0}, {"factor": 1.0}):
        opens(kept(before()), after(**options))
    opens(kept(before(factor=1.0)), after(factor=1.0))
    opens(kept(before(factor=2.0)), after())
    for options in ({}, {"factor": 2.0}):
        refuses(kept(before(factor=1.0)), after(**options), r"factor is 1\.0 in the study, got 2")
    opens(kept(before(factor=1.0)), before())  # it may be left out while it is the default


# --- descriptions of strangers --------------------------------------------------------------------


@pytest.mark.parametrize("code", [3, "text", ["list"], {"3.11": "text"}, {"3.11": None}, None])
def test_code_that_is_no_digests_is_refused_by_name(code):
    strategy = RandomSearch(BOX)
    with pytest.raises(BrokenStudyError, match="cannot be read: its code must be"):
        require_same(kept(strategy) | {"code": code}, describe(strategy), "study 'it'")


def test_formats_that_are_newer_or_none():
    strategy = RandomSearch(BOX)
    with pytest.raises(NewerStudyError, match=r"has format 4, and this version .* knows 3"):
        require_same(kept(strategy) | {"format": 4}, describe(strategy), "it")
    for number in (0, True, "2", None):
        with pytest.raises(BrokenStudyError, match="its format is"):
            require_same(kept(strategy) | {"format": number}, describe(strategy), "it")


@pytest.mark.parametrize("mark", ["<call>", "<default>", "<given>", "<float64>", "<code>"])
@pytest.mark.parametrize("value", [None, 3, "text", ["a", [1]], {"function": ["gp_ucb"]}])
def test_marks_of_strangers_open_nothing(mark, value):
    described = kept(algorithms.gp_ucb(BOX, kernel(), **LAMBDA, **NUMBERS))
    described["strategy"][mark] = value
    first = algorithms.gp_ucb(BOX, kernel(), **LAMBDA, seed=1, **NUMBERS)
    refuses(described, first, "seed is 0 in the study, got 1")


# --- strategies and spaces made again -------------------------------------------------------------

MIXED = bx.Box([(0, 1), (2, 5)], integer=[1])
SPACE = bx.Space(
    time=bx.Real(1, 9, log=True, unit="s"),
    kind=bx.Choice({"a": [0.0], "b": [1.0], "c": [5.0]}),
    depth=bx.Integer(1, 9, step=2),
    constraints=["depth + time <= 12"],
)
DATA = (MIXED.sample(300, seed=2), torch.linspace(0, 1, 300).double())
MADE = {
    "integrated_ei": lambda: algorithms.integrated_ei(SPACE, seed=4),
    "many data": lambda: algorithms.gp_ucb(
        MIXED, rbf(1.0), **LAMBDA, width=2.0, initial=DATA, num_initial=2
    ),
    "fitted": lambda: algorithms.gp_bucb(SPACE, bx.Fitted(), width=2.0, num_initial=4),
    "kernel": lambda: algorithms.gp_ucb(MIXED, matern(0.3, 2.0, nu=1.5), **LAMBDA, width=2.0),
    "width": lambda: algorithms.gp_bucb(
        bx.Box([(0, 1), (2, 5)]), rbf(1.0), **LAMBDA, width=bx.widths.SelfNormalized(1.0, 0.1, 0.05)
    ),
    "rounds": lambda: algorithms.bpe(
        bx.FiniteSet(MIXED.sample(9, seed=1)), rbf(1.0), horizon=20, **LAMBDA, width=2.0
    ),
    "contexts": lambda: algorithms.integrated_ei(
        MIXED, context_domain=bx.Space(humidity=bx.Real(0, 1))
    ),
    "many points": lambda: RandomSearch(bx.FiniteSet(BOX.sample(101, seed=3))),
    "class": lambda: RandomSearch(SPACE, seed=3, num_initial=2),
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


def _models():
    models = bx.CandidateModels.lengthscales(RBFKernel().double(), [0.3, 0.7, 1.5], 0.01)
    return algorithms.he_gp_ucb(BOX, models, rkhs_bound=1.0, noise_std=0.1)


UNMADE = {
    "class": (lambda: Own(BOX), "does not have, Own: open the study in Python"),
    "kernel": (
        lambda: algorithms.gp_bucb(BOX, PeriodicKernel().double(), **LAMBDA, width=2.0),
        "cannot make its strategy gp_bucb again, kernel is a PeriodicKernel",
    ),
    "function": (lambda: gp_bucb(mean=lambda X: X.sum(dim=-1)), "mean is a "),
    "models": (_models, "cannot make its strategy he_gp_ucb again"),
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


@pytest.mark.usefixtures("empty_pictures")
def test_the_page_and_the_commands_of_a_study_of_candidate_models(tmp_path, capsys):
    path = tmp_path / "models.db"
    study = bx.Study(path, _models())
    for x in BOX.sample(3, seed=1):
        study.attach(x, float(x[0]))
    for command in ("ask", "recommended"):
        assert main([command, str(path)]) == 2
        assert "cannot make its strategy he_gp_ucb again" in capsys.readouterr().err
    assert main(["report", str(path), "-o", str(tmp_path / "page.html")]) == 0
    assert "cannot make its strategy he_gp_ucb again" in (tmp_path / "page.html").read_text()


def test_another_argument_is_never_made_up():
    described = kept(MADE["kernel"]())
    call = described["strategy"]["<call>"]
    call["kernel"]["period_length"] = {"dtype": "torch.float64", "values": 2.0}
    with pytest.raises(StudyError, match=r"again: .*period_length is"):
        described_strategy(described, "study 'a'")
    for wrong in ({}, {"strategy": "x"}, {"strategy": {"class": "Strategy"}}):
        with pytest.raises(StudyError, match="study 'a'"):
            described_strategy(wrong, "study 'a'")


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.sampled_from([torch.float64, torch.float32]))
def test_a_space_is_made_again_from_its_description(seed, dtype):
    space = a_space(seed, dtype)
    described = kept(RandomSearch(space))["strategy"]["domain"]
    again = described_space(described)
    assert described == kept(RandomSearch(again))["strategy"]["domain"]
    X = space.sample(9, 2)
    assert torch.equal(again.sample(9, 2), X)
    assert [again.params(x) for x in X] == [space.params(x) for x in X]
    for key in ("order", "parameters", "bounds"):
        broken = {name: part for name, part in described.items() if name != key}
        with pytest.raises(BrokenStudyError, match="the space of a study cannot be read"):
            described_space(broken)


def test_a_large_space_that_the_command_line_began_is_asked(tmp_path, capsys):
    path = tmp_path / "large.toml"
    names = [f"x{j}" for j in range(21)]
    limits = [f'"{names[j]} + {names[j + 1]} <= 1.5"' for j in range(10)]
    sides = "".join(
        f'[parameters.{name}]\ntype = "real"\nlow = 0.0\nhigh = 1.0\n' for name in names
    )
    path.write_text(f"constraints = [{', '.join(limits)}]\n{sides}")
    place = str(tmp_path / "large.db")
    assert main(["new", place, str(path)]) == 0
    assert main(["ask", place]) == 0
    assert "x20" in capsys.readouterr().out


# --- files of earlier versions --------------------------------------------------------------------


QUICK = ("gp_ucb_float32", "regret_balancing", "contextwise", "random")


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
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in METHODS],
)
def test_a_file_of_an_earlier_version_opens_and_goes_on(tmp_path, name, folder):
    path, expected = written(folder, name, tmp_path)
    study = opened(path, name)
    assert seen(study) == expected
    minimised = MINIMISED_ONCE if folder == "359dab4" else MINIMISED
    assert study.minimize == (name in minimised)
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


def test_a_study_that_does_not_say_its_numbers_opens_with_a_warning(tmp_path):
    path, _ = written("359dab4", "integrated_ei_frame", tmp_path)
    message = r"does not say which numbers .*: initial\[0\]; initial\[1\]$"
    with pytest.warns(UndescribedWarning, match=message):
        opened(path, "integrated_ei_frame")
    other = algorithms.integrated_ei(METHODS["integrated_ei_frame"]().domain, seed=1)
    with pytest.raises(AnotherStrategyError, match="seed is 0"):
        bx.Study(path, other)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("name", ["gp_ucb_set", "regret_balancing"])
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


def test_events_say_by_which_version_they_were_written(tmp_path):
    path = tmp_path / "study.db"
    study = bx.Study(path, RandomSearch(BOX))
    study.ask()
    for version in ("99.1", None):
        with patch.object(event_lines, "versions", return_value={"botorch-ext": version}):
            (study.correct if version is None else study.tell)(0, 1.0)
    with closing(sqlite3.connect(path)) as connection:
        bodies = [body for (body,) in connection.execute("SELECT body FROM botorch_ext_events")]
    found = [PlainRecord.read(body).version for body in bodies]
    assert found == [versions()["botorch-ext"], "99.1", None]
    assert seen(bx.Study(path, RandomSearch(BOX))) == seen(study)
