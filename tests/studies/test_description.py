"""What of the arguments of a strategy is kept, and what is seen to be another."""

import functools
import logging
import math
import warnings
from dataclasses import dataclass
from datetime import date

import gpytorch
import numpy as np
import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import AnotherStrategyError, UndescribedWarning, VersionWarning
from botorch_ext.studies.description import describe, differences, require_same
from botorch_ext.studies.plain_events import from_json, to_json
from tests.studies.kept import gp_bucb


def _kept(mean):
    return from_json(to_json(describe(gp_bucb(mean=mean))))


def _compare(first, second):
    require_same(_kept(first), describe(gp_bucb(mean=second)), "it")


def scaled(X, a):
    return a * X[..., 0]


def first_of(X, of):
    return X[..., 0]


def _by_keyword(a):
    def mean(X, *, scale=a):
        return scale * X[..., 0]

    return mean


def _one_deeper(a):
    def inner(X):
        return a * X[..., 0]

    def mean(X):
        return inner(X)

    return mean


class _Slotted:
    __slots__ = ("__a", "b")

    def __init__(self, a):
        self.__a = a

    def __call__(self, X):
        return self.__a * X[..., 0]


class _Private:
    def __init__(self, a):
        self._a, self.__b = 1.0, a
        self._log = logging.getLogger("lab")

    def __call__(self, X):
        return self.__b * X[..., 0]


class _Kernel(gpytorch.kernels.RBFKernel):
    def __init__(self, a):
        super().__init__()
        self._power = a


@dataclass(frozen=True)
class _Fields:
    _a: float

    def __call__(self, X):
        return self._a * X[..., 0]


def _bound(a):
    return _Private(a).__call__


def _holds_itself(a):
    one = _Private(a)
    one.me = [one]
    return one


def _calls_itself(a):
    def mean(X):
        return a * X[..., 0] if a else mean(X)

    return mean


@pytest.mark.parametrize(
    "make",
    [
        lambda a: functools.partial(scaled, a=a),
        lambda a: functools.partial(functools.partial(scaled), a=a),
        lambda a: functools.partial([torch.sum, torch.mean][int(a) - 1], dim=-1),
        lambda a: functools.partial(first_of, of=[np.sin, np.cos][int(a) - 1]),
        lambda a: functools.partial(first_of, of=[math.sin, math.cos][int(a) - 1]),
        lambda a: functools.partial(first_of, of=[torch.Tensor.sum, torch.Tensor.mean][int(a) - 1]),
        _by_keyword,
        _one_deeper,
        _Slotted,
        _Private,
        _Fields,
        _bound,
        _holds_itself,
        _calls_itself,
        lambda a: gpytorch.means.ConstantMean().initialize(constant=a),
    ],
)
def test_what_a_callable_carries_is_compared(make):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _compare(make(1.0), make(1.0))
        with pytest.raises(AnotherStrategyError, match=r"^it .*: mean"):
            _compare(make(1.0), make(2.0))


def test_private_numbers_of_a_kernel_are_compared():
    with pytest.raises(AnotherStrategyError, match=r"_power is 1\.0 in the study, got 2\.0"):
        require_same(
            from_json(to_json(describe(bx.algorithms.gp_ucb(_BOX, _Kernel(1.0), **_NUMBERS)))),
            describe(bx.algorithms.gp_ucb(_BOX, _Kernel(2.0), **_NUMBERS)),
            "it",
        )


_BOX = bx.Box([(-1.0, 1.0), (2.0, 5.0)])
_NUMBERS = {"noise_variance": 0.01, "width": 2.0}


def test_what_cannot_be_compared_is_said():
    class Drawn:
        def __init__(self):
            self._rng = np.random.default_rng(0)

        def __call__(self, X):
            return X[..., 0]

    with pytest.warns(UndescribedWarning, match=r"strategy\.mean\._rng \(a Generator\)"):
        described = _kept(Drawn())
    with pytest.warns(UndescribedWarning):
        require_same(described, describe(gp_bucb(mean=Drawn())), "it")


def test_what_a_class_written_in_c_holds_is_said_to_be_unknown():
    class Dated(date):
        def __call__(self, X):
            return self.year * X[..., 0]

    with pytest.warns(UndescribedWarning, match=r"strategy\.mean \(a Dated\)"):
        describe(gp_bucb(mean=Dated(2026, 1, 2)))


def test_other_code_is_a_warning():
    def one(a):
        return lambda X: a * X[..., 0]

    def other(a):
        return lambda X: a * X[..., 1]

    first, second = one(1.0), other(1.0)
    second.__qualname__ = first.__qualname__
    with pytest.warns(VersionWarning, match=r"other code, .*: strategy\.mean$"):
        _compare(first, second)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = _kept(first)
        # Of another version of Python, which has other code for all of them; and of a study from
        # before there were any.
        kept["code"] = {"2.7": {"strategy.mean": "0"}}
        require_same(kept, describe(gp_bucb(mean=second)), "it")
        del kept["code"]
        require_same(kept, describe(gp_bucb(mean=second)), "it")


def test_code_of_classes():
    def make(row):
        class Mean:
            def __call__(self, X):
                return X[..., row] if row else X.sum(-1)

        return Mean()

    def other():
        class Mean:
            def __call__(self, X):
                return X[..., 0]

        Mean.__qualname__ = type(make(0)).__qualname__
        return Mean()

    with pytest.warns(VersionWarning, match="other code"):
        _compare(make(0), other())


def test_a_strategy_is_known_by_the_function_that_was_typed():
    made = {"noise_variance": 0.01, "rkhs_bound": 1.0, "noise_std": 0.1}
    box, kernel = bx.Box([[0.0], [1.0]]), gpytorch.kernels.RBFKernel()
    by_box = {name: getattr(bx.algorithms, name) for name in ("gp_ucb", "ec_gp_ucb")}
    strategies = {
        "gp_ucb": by_box["gp_ucb"](box, kernel, **made),
        "ec_gp_ucb": by_box["ec_gp_ucb"](box, kernel, misspecification=0.1, **made),
        "regret_balancing": bx.algorithms.regret_balancing(box, kernel, horizon=9, **made),
        "integrated_ei": bx.algorithms.integrated_ei(box),
        None: bx.strategies.RandomSearch(box),
    }
    for name, strategy in strategies.items():
        assert describe(strategy)["made_by"] == describe(strategy.clone())["made_by"] == name
    bases = strategies["regret_balancing"].bases
    assert {base.arguments.of_function.made_by for base in bases} == {"ec_gp_ucb"}


def test_another_name_for_the_same_is_no_other_strategy():
    kept = from_json(to_json(describe(gp_bucb())))
    assert kept["made_by"] == "gp_bucb"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_same(kept | {"made_by": "ours"}, describe(gp_bucb()), "it")
        require_same({key: kept[key] for key in kept if key != "made_by"}, describe(gp_bucb()), "")


def test_a_whole_number_is_the_same_argument_as_its_float():
    kept = from_json(to_json(describe(gp_bucb())))
    whole = from_json(to_json(kept).replace('"width":2.0', '"width":2'))
    assert to_json(whole) != to_json(kept)
    require_same(whole, describe(gp_bucb()), "it")
    assert list(differences({"inflate": True}, {"inflate": 1})) == [
        "inflate is True in the study, got 1"
    ]
