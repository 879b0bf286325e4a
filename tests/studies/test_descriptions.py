"""Descriptions: the same arguments open a study on every machine, and others never do."""

import base64
import functools
import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from gpytorch.kernels import RBFKernel
from gpytorch.means import ConstantMean

import botorch_ext as bx
from botorch_ext import algorithms, codec
from botorch_ext.algorithms.argument_checks import algorithm
from botorch_ext.command_line import main
from botorch_ext.exceptions import (
    AnotherStrategyError,
    BrokenStudyError,
    StudyError,
    UndescribedWarning,
    VersionWarning,
    WaitingForObservations,
)
from botorch_ext.plain_events import from_json, to_json
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies.description import describe, described_strategy, require_same
from tests.helpers import matern, rbf
from tests.laws.registry import ENTRIES
from tests.studies.kept import BOX, gp_bucb, kernel
from tests.studies.kept_methods import FILES, METHODS, MINIMISED, context_of, seen, value_of

LAMBDA = {"noise_variance": 0.01}
NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1}


def kept(strategy):
    """What is in the file of a study."""
    return from_json(to_json(describe(strategy)))


def opens(description, strategy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_same(description, describe(strategy), "it")


def refuses(description, strategy, message):
    with pytest.raises(AnotherStrategyError, match=message):
        opens(description, strategy)


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


def test_data_are_the_same_whatever_holds_them():
    X, Y = BOX.sample(130, seed=1).numpy(), torch.linspace(0, 1, 130).double().numpy()
    frame = pd.DataFrame(X).add_prefix("x")
    given = algorithms.integrated_ei(BOX, initial=(frame, pd.Series(Y, name="y")))
    opens(kept(given), algorithms.integrated_ei(BOX, initial=(X, Y[:, None])))
    refuses(kept(given), algorithms.integrated_ei(BOX, initial=(X, 1 - Y)), r"initial\[1\]")


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


class Own(RandomSearch):
    """A strategy that a user wrote."""


class Hidden:
    """A mean with a number that it does not show."""

    def __init__(self, a):
        self._a = a

    def __call__(self, X):
        return self._a * X[..., 0]


def times(X, a=1.0):
    return a * X[..., 0]


def test_what_a_callable_carries_is_compared_if_it_shows_it():
    described = kept(gp_bucb(mean=functools.partial(times, a=1.0)))
    opens(described, gp_bucb(mean=functools.partial(times, a=1.0)))
    refuses(described, gp_bucb(mean=functools.partial(times, a=2.0)), "^it .*: mean")
    refuses(described, gp_bucb(mean=times), "^it .*: mean")
    with pytest.warns(UndescribedWarning, match=r"strategy\.mean \(a Hidden"):
        describe(gp_bucb(mean=Hidden(1.0)))


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.UndescribedWarning")
def test_the_numbers_of_a_module_are_compared_though_it_cannot_be_made_again():
    def network(seed):
        torch.manual_seed(seed)
        inner = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
        return torch.nn.Sequential(inner.double(), torch.nn.Flatten(-2))

    described = kept(gp_bucb(mean=network(0)))
    require_same(described, describe(gp_bucb(mean=network(0))), "it")
    with pytest.raises(AnotherStrategyError, match="mean"):
        require_same(described, describe(gp_bucb(mean=network(1))), "it")


def test_what_a_function_was_called_with_is_the_study_and_not_how():
    first = algorithms.gp_ucb(BOX, kernel(), **LAMBDA, **NUMBERS)
    for second in (
        algorithms.gp_ucb(domain=BOX, kernel=kernel(), **LAMBDA, **NUMBERS),
        algorithms.gp_ucb(BOX, kernel(), **LAMBDA, delta=0.1, seed=0, **NUMBERS),
        algorithms.gp_ucb([(-1.0, 1.0), (2.0, 5.0)], kernel(), **LAMBDA, **NUMBERS),
    ):
        opens(kept(first), second)
    other = algorithms.gp_ucb(BOX, kernel(), **LAMBDA, delta=0.2, **NUMBERS)
    refuses(kept(first), other, r": delta is 0\.1 in the study, got 0\.2$")
    assert kept(first.clone()) == kept(first)


@pytest.mark.parametrize("of", ["class", "function"])
def test_a_default_may_change_and_what_was_given_stays_what_it_is(of, monkeypatch):
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

        if of == "class":
            monkeypatch.setitem(codec._classes, "Search", Search)
            Search.__qualname__ = "Search"
            return functools.partial(Search, BOX)
        made = algorithm(search)
        monkeypatch.setattr(algorithms, "search", made, raising=False)
        monkeypatch.setattr(algorithms, "__all__", [*algorithms.__all__, "search"])
        return functools.partial(made, BOX)

    before, after = version(1.0), version(2.0)
    for options in ({}, {"factor": 2.0}):
        opens(kept(before()), after(**options))
        refuses(kept(before(factor=1.0)), after(**options), r"factor is 1\.0 in the study, got 2")
    opens(kept(before(factor=1.0)), after(factor=1.0))
    opens(kept(before(factor=2.0)), after())
    again = described_strategy(kept(before(factor=3.0)), "it")
    assert again.arguments.given["factor"] == 3.0


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


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_every_method_is_made_again_from_its_description(entry):
    """But for those with a function of the user, which are refused by the name of the argument."""
    made = entry.make()
    if entry.method == "contextwise":
        with pytest.raises(StudyError, match="key of its strategy is the function"):
            described_strategy(kept(made), "it")
        return
    again = described_strategy(kept(made), "it")
    assert kept(again) == kept(made)


UNMADE = {
    "class": (lambda: Own(BOX), "its strategy is of the class Own, which is not allowed"),
    "function": (lambda: gp_bucb(mean=lambda X: X.sum(dim=-1)), "mean of its strategy is the func"),
}


@pytest.mark.parametrize("name", UNMADE)
def test_what_a_description_does_not_hold_is_named(name):
    make, message = UNMADE[name]
    with pytest.raises(StudyError, match=f"^study 'a' cannot make its strategy again, {message}"):
        described_strategy(kept(make()), "study 'a'")


def test_another_argument_is_never_made_up():
    described = kept(MADE["width"]())
    described["strategy"]["arguments"]["period_length"] = 2.0
    for wrong in (described, {}, {"strategy": "x"}, {"strategy": {"class": "Strategy"}}):
        with pytest.raises(StudyError, match="study 'a'"):
            described_strategy(wrong, "study 'a'")


def test_a_study_of_version_0_2_is_refused_by_name(tmp_path, capsys):
    path = tmp_path / "random.db"
    shutil.copy(FILES / "0.2.0" / "random.sqlite", path)
    message = "was written by botorch-ext 0.2 or earlier, which alone reads it: go on with"
    for strategy in (None, RandomSearch(bx.Box([(-1.0, 1.0), (2.0, 5.0)]), seed=5)):
        with pytest.raises(StudyError, match=message):
            bx.Study(path, strategy)
    for command in (["status"], ["trials"], ["ask"], ["report", "-o", str(tmp_path / "a.html")]):
        assert main([command[0], str(path), *command[1:]]) == 2
        assert message in capsys.readouterr().err


VERSIONS = ["0.3.0"]  # a release adds a folder


def written(version, name, tmp_path):
    """A copy of a file that a version wrote, and the events that it must have."""
    path = tmp_path / f"{name}.sqlite"
    shutil.copy(FILES / version / f"{name}.sqlite", path)
    return path, json.loads((FILES / version / "events.json").read_text())[name]


def opened(path, strategy):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VersionWarning)
        return bx.Study(path, strategy)


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", METHODS)
def test_a_file_of_an_earlier_version_opens_and_goes_on(tmp_path, name, version):
    path, expected = written(version, name, tmp_path)
    study = opened(path, METHODS[name]())
    assert seen(study) == expected
    assert study.minimize == (name in MINIMISED)
    first, *others = study.pending
    study.tell(first, value_of(study.strategy.history.trials[first]))
    context = context_of(name, len(expected))
    try:
        trial = study.ask(context=context)
    except WaitingForObservations:
        for id in others:
            study.tell(id, value_of(study.strategy.history.trials[id]))
        trial = study.ask(context=context)
    study.tell(trial, value_of(trial))
    # The strategy with a function of the user is given again, the others are made again.
    again = opened(path, METHODS[name]() if name == "contextwise" else None)
    assert seen(again) == seen(study) and len(seen(again)) >= len(expected) + 3


def with_other_digits(plain):
    """Plain values in which each number that is no whole one is another one."""
    if isinstance(plain, dict):
        if "bytes" in plain and plain["tensor"] in ("float64", "float32"):
            numbers = np.frombuffer(base64.b64decode(plain["bytes"]), plain["tensor"]) * (1 + 1e-12)
            return plain | {"bytes": base64.b64encode(numbers.tobytes()).decode()}
        return {key: with_other_digits(part) for key, part in plain.items()}
    if isinstance(plain, list):
        return [with_other_digits(part) for part in plain]
    return plain * (1 + 1e-12) if isinstance(plain, float) else plain


@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
@pytest.mark.parametrize("name", METHODS)
def test_a_study_opens_where_computed_numbers_have_other_last_digits(name):
    strategy = METHODS[name]()
    description = kept(strategy)
    other = with_other_digits(description["strategy"])
    assert to_json(other) != to_json(description["strategy"])
    opens(description | {"strategy": other}, strategy)


@pytest.mark.parametrize(
    "domain",
    [
        {"tensor": "float99", "shape": [1], "values": [1.0]},
        {"tensor": "float64", "values": [1.0]},
        {"tensor": "float64", "shape": [1], "bytes": "?"},
        {"tensor": "float64", "shape": [1], "values": ["x"]},
        functools.reduce(lambda inner, _: [inner], range(980), 1),
    ],
    ids=range(5),
)
def test_a_description_that_nobody_wrote_is_a_broken_study(domain):
    described = kept(RandomSearch(BOX))
    described["strategy"]["arguments"]["domain"] = domain
    with pytest.raises(BrokenStudyError, match="the description of it cannot be read"):
        require_same(described, describe(RandomSearch(BOX)), "it")


def test_what_is_changed_after_the_strategy_was_made_is_no_part_of_it():
    mean, X = ConstantMean().double(), BOX.sample(3, seed=1).numpy()
    strategy = gp_bucb(mean=mean, initial=(X, [0.1, 0.2, 0.3]))
    described = kept(strategy)
    mean.constant = 3.0
    X[:] = 0.5
    assert kept(strategy) == described


def test_bounds_of_contexts_are_read_like_those_of_a_domain():
    corners = [[0, 0], [1, 2]]
    made = algorithms.integrated_ei(BOX, context_domain=corners)
    again = described_strategy(kept(made), "it")
    assert repr(again.context_space) == repr(made.context_space)
