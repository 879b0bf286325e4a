"""Arguments as plain values: they come back to the last bit, and nothing else is made."""

import functools
import gzip
import json
import math
import os
import random
from collections import Counter
from copy import deepcopy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import torch
from gpytorch import constraints, kernels, priors
from torch import nn

import botorch_ext as bx
from botorch_ext import codec
from botorch_ext.codec import allow_argument, decode, differences, encode, renamed
from botorch_ext.hyperparameters.prior import Prior
from botorch_ext.kernels.structure import plain_kernel
from botorch_ext.plain_events import from_json, to_json
from botorch_ext.studies.description import _unknown
from tests.helpers import drawn
from tests.watch import LOADS_OR_WRITES, RUNS, nothing_may

RBF, Matern = kernels.RBFKernel, kernels.MaternKernel
# What version 0.3.0 wrote of one value each. Each later version reads them.
TEXTS = json.loads(gzip.decompress(Path(__file__).with_name("saved_by_0_3_0.json.gz").read_bytes()))


def text_of(value):
    return to_json(encode(value, "k"))


def of_text(text):
    return decode(from_json(text), "k")


def back(value):
    return of_text(text_of(value))


def of_numbers(kernel, seed=0):
    """The kernel in float64, with numbers of many digits."""
    generator = torch.Generator().manual_seed(seed)
    kernel = kernel.double()
    for parameter in kernel.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += 0.1 * noise
    return kernel.requires_grad_(False)


#: Kernels that version 0.3.0 saved, with constraints and batches, and two made here.
SAVED = ("sum", "product", "BoTorch", "batch", "categories", "rational", "pieces", "cosine")
SAVED += ("groups", "nugget", "prior of tasks", "tasks")
KERNELS = {
    **{name: of_text(TEXTS[name]) for name in SAVED},
    "scaled": kernels.ScaleKernel(
        Matern(1.5, ard_num_dims=2, active_dims=(0, 2), lengthscale_prior=priors.GammaPrior(3, 6)),
        outputscale_prior=priors.LogNormalPrior(0.0, 1.0),
    ),
    "no transform": RBF(
        lengthscale_constraint=constraints.GreaterThan(0.1, None, initial_value=1.05)
    ),
}
VALUES = {
    "tree": bx.Box(
        [(0, 1), (1, 9), (2, 4)],
        integer=[1],
        categories={2: [2, 4]},
        conditions={0: (1, [3, 4]), 1: (2, [2])},
    ),
    "space": bx.ContextSpace(
        bx.Space(
            a=bx.Real(0.1, 2.0, log=True),
            b=bx.Integer(1, 9),
            c=bx.Choice(("u", "v"), descriptors=[[0.0], [1.5]]),
            d=bx.Real(0.0, 1.0, step=0.05),
            constraints=["a + d <= 2.5"],
            conditions={"b": ("c", ["u"])},
        )
    ),
}


# Of PyTorch, about GPyTorch's `IndexKernel`.
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_comes_back_bit_by_bit(name):
    kernel = of_numbers(KERNELS[name])
    text = text_of(kernel)
    again = of_text(text)
    assert text_of(again) == text
    X = torch.cat([drawn(6, 3), torch.tensor([[0.0], [1.0]]).double().repeat(3, 1)], dim=-1)
    X = X if name in ("tasks", "cosine", "prior of tasks") else X[:, :3]
    assert torch.equal(again(X).to_dense(), kernel(X).to_dense())
    kernel = plain_kernel(kernel, X)  # no method looks at its priors
    named, kept = (
        {**dict(k.named_parameters()), **dict(k.named_buffers())} for k in (kernel, again)
    )
    assert kept.keys() == named.keys()
    assert all(torch.equal(kept[key], named[key]) for key in named)
    assert [repr(each) for each in again.modules()] == [repr(each) for each in kernel.modules()]


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back(name):
    again = back(VALUES[name])
    assert text_of(again) == text_of(VALUES[name]) and repr(again) == repr(VALUES[name])


@pytest.mark.parametrize("name", TEXTS)
def test_what_0_3_0_saved_is_read(name):
    assert text_of(of_text(TEXTS[name])) == TEXTS[name]


DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool)


@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (2, 150), (70, 3, 1)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tensor_comes_back(dtype, shape):
    tensor = (9 * drawn(math.prod(shape), 1)).to(dtype).reshape(shape)
    again = back(tensor)
    assert again.dtype is dtype and torch.equal(again, tensor)


def double(X):
    return 2 * X[..., 0]


class Stretched(kernels.RBFKernel):
    """A kernel of the user."""

    def __init__(self, factor: float, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def forward(self, x1, x2, **params):
        return self.factor * super().forward(x1, x2, **params)


class Lab:
    def fmean(self, X):
        return X[..., 0]


class Hidden(nn.Module):
    """A module with a part that is no argument."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.own_prior = nn.Linear(width, 1)


def test_what_is_not_allowed_is_refused_by_name_until_it_is():
    with pytest.raises(ValueError, match=r"k is the function double, .* allow_argument\(double\)"):
        back(double)
    kernel = kernels.ScaleKernel(Stretched(2.0, ard_num_dims=2)).double()
    with pytest.raises(ValueError, match="base_kernel of k is of the class Stretched"):
        back(kernel)
    allow_argument(double)
    allow_argument(Stretched)
    assert back(double) is double
    again = back(kernel)
    assert torch.equal(again(drawn(3, 2)).to_dense(), kernel(drawn(3, 2)).to_dense())
    centre = Lab()
    allow_argument(centre.fmean, "mean of the lab")
    assert back(centre.fmean) == centre.fmean
    # A form of the library stays.
    before = text_of(RBF())
    allow_argument(RBF)
    assert text_of(RBF()) == before
    for argument, name in [(lambda X: X, None), (Lab, "Box"), (Matern, "mine"), (3, None)]:
        with pytest.raises(ValueError, match=r"name must be|argument must be"):
            allow_argument(argument, name)


ITSELF, DATA = [], bx.CandidateModels(RBF(), 0.01)
ITSELF.append(ITSELF)
DATA.add(drawn(1, 1), drawn(1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (DATA, "k is a CandidateModels: models must have no data"),
        (torch.ones([1] * 9), "k must have at most 8 dimensions"),
        (ITSELF, "k must be nested at most"),
        (Hidden(2), "k is a Hidden: k must be as its constructor makes it to be saved"),
        (10**400, "k must be a number of 64 bits"),
        (lambda X: X, "k is the function <lambda>, which is not allowed"),
    ],
    ids=lambda given: "" if isinstance(given, str) else type(given).__name__,
)
def test_what_would_be_lost_is_refused(value, message):
    allow_argument(Hidden)
    with pytest.raises(ValueError, match=message):
        back(value)


def tree(kind, **arguments):
    return {"class": kind, "arguments": arguments}


DEEP = 5_000 * "[" + 5_000 * "]"
LESS_DEEP = 900 * "[" + 900 * "]"
SOME = text_of(kernels.ScaleKernel(Matern(1.5, ard_num_dims=2)))
RAW = {"tensor": "float32", "shape": [1, 1], "values": [0.5]}
HUGE = {"tensor": "float64", "shape": [10**12], "values": [1.0]}
ATTACKS = {
    "a dotted path": tree("os.system", command="false"),
    "a function of a room": tree("widths.as_tensor_like", value=1.0),
    "a function of torch": {"function": "torch.nn.modules.module.register_module_hook"},
    "a method as a number": tree("RBFKernel")
    | {"values": {"forward": RAW, "raw_lengthscale": RAW}},
    "more numbers than there are": HUGE,
    "columns without numbers": (
        tree("RBFKernel", ard_num_dims=10**12) | {"values": {"raw_lengthscale": RAW}}
    ),
    "many particles": tree("Particles", num_particles=10**9),
    "a long horizon": {"algorithm": "bpe", "arguments": {"horizon": 10**9}},
    "a number of 400 digits": tree("widths.Constant", value=10**400),
    "60 levels": json.loads(60 * "[" + "1" + 60 * "]"),
    "an impossible number": tree(
        "widths.SelfNormalized", rkhs_bound=-1.0, noise_std=0.1, delta=0.1
    ),
    "a kernel as a list of kernels": (
        tree("ProductKernel", kernels=json.loads(text_of(RBF()))) | {"values": {}}
    ),
    "a distribution of another name": {"scipy": ["rv_frozen", [], {"dict": {}}]},
}
TEXTS_OF_STRANGERS = [json.dumps(attack) for attack in ATTACKS.values()]
TEXTS_OF_STRANGERS += ["", "{}", DEEP, LESS_DEEP, "NaN", b"\x80\x04.", SOME[:97], SOME[:-1]]


@pytest.mark.parametrize("text", TEXTS_OF_STRANGERS)
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        of_text(text)


def places_of(tree):
    """All places in a tree: what holds them, and where."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places_of(tree[key])


TREES = [{"k": json.loads(text)} for text in TEXTS.values()]
PLACES = [place for each in TREES for place in places_of(each)]
CLASSES = sorted({holder[key] for holder, key in PLACES if key in ("class", "algorithm")})
WORDS = [
    *CLASSES,
    "os.system",
    "builtins.eval",
    "__import__",
    "__class__",
    "__reduce__",
    "torch.load",
]
WORDS += ["function", "algorithm", "class", "arguments", "values", "forward", "constraints"]
WORDS += ["tensor", "shape", "bytes", "dict", "dtype", "partial", "scipy", "unknown", "", "nan"]
NUMBERS = [0, -1, 2, 10**7, 2**63, 10**400, 0.5, -0.0, 1e308, True, None, {"not finite": "nan"}]


def part(rng, depth=0):
    """A word, a number, or a list or a dict of them."""
    kind = rng.randrange(5) if depth < 3 else 0
    if kind < 2:
        return deepcopy(rng.choice([*WORDS, *NUMBERS]))
    if kind == 2:
        return [part(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 3:
        return {rng.choice(WORDS): part(rng, depth + 1) for _ in range(rng.randrange(4))}
    return tree(rng.choice(WORDS), **{rng.choice(WORDS): part(rng, depth + 1)})


def hostile(rng):
    """A text of which one to three places are others, or that is cut."""
    made = deepcopy(rng.choice(TREES))
    for _ in range(rng.randint(1, 3)):
        holder, key = rng.choice([*places_of(made)])
        kind = rng.randrange(4)
        if kind == 0:
            other, place = rng.choice(PLACES)
            holder[key] = deepcopy(other[place])
        elif kind == 1 and isinstance(holder, dict):
            holder[rng.choice(WORDS)] = holder.pop(key)
        else:
            holder[key] = part(rng)
    text = json.dumps(made["k"] if made.keys() == {"k"} else made)
    return text[: rng.randint(1, len(text))] if rng.randrange(10) == 0 else text


@pytest.mark.filterwarnings("ignore")
def test_nothing_in_a_hostile_text_runs():
    """HOSTILE_TEXTS=20000 tries more of them."""
    for saved in TEXTS.values():  # or what they need would be imported under watch
        back(of_text(saved))
    repr(torch.ones(1))
    rng, outcomes = random.Random(0), Counter()
    for _ in range(int(os.environ.get("HOSTILE_TEXTS", "300"))):
        text = hostile(rng)
        with nothing_may(*RUNS, *LOADS_OR_WRITES):
            try:
                value = of_text(text)
                assert text_of(of_text(text_of(value))) == text_of(value), text
                outcomes["made"] += 1
            except ValueError:
                outcomes["refused"] += 1
    assert min(outcomes["made"], outcomes["refused"]) > 20


# --- comparison -----------------------------------------------------------------------------------


def found(kept, given):
    return list(differences(renamed(from_json(text_of(kept))), from_json(text_of(given)), "k"))


NUMBERS_IN = {
    "list": lambda numbers: numbers.tolist(),
    "tuple of arrays": tuple,
    "float32": lambda numbers: numbers.astype(np.float32),
    "reversed": lambda numbers: numbers[::-1].copy()[::-1],
    "foreign byte order": lambda numbers: numbers.astype(">f8"),
    "tensor": torch.as_tensor,
    "column": lambda numbers: numbers.reshape(*numbers.shape, 1),
    "frame": lambda numbers: pd.DataFrame(numbers).add_prefix("x").set_index(numbers[:, 0]),
}


@pytest.mark.parametrize("num", [4, 130])
@pytest.mark.parametrize("container", NUMBERS_IN)
def test_the_same_numbers_are_the_same_whatever_holds_them(container, num):
    numbers = np.random.default_rng(1).integers(-8, 9, (num, 2)) / 8
    held, moved = NUMBERS_IN[container](numbers), numbers.copy()
    moved[num // 2, 1] += 0.0625
    assert not found(held, numbers) and not found(numbers, held)
    (message,) = found(held, moved)
    assert message.startswith("k") and "in the study, got" in message


@pytest.mark.parametrize("num", [3, 300])
@pytest.mark.parametrize(("dtype", "near", "far"), [("d", 1e-12, 1e-7), ("f", 1e-7, 1e-4)])
def test_last_digits_may_differ(dtype, near, far, num):
    values = np.linspace(1.0, 2.0, num).astype(dtype)
    assert not found(values, (values * (1 + near)).astype(dtype))
    assert found(values, (values * (1 + far)).astype(dtype))
    zero = np.append(values, 0.0).astype(dtype)
    assert not found(zero, zero + np.float64(1e-17))


@pytest.mark.parametrize(
    ("kept", "given"),
    [(3, 4), (2**60, 2**60 + 1), (True, 1), (None, 0), ("a", "b"), ([1, 2], [1]), (math.nan, 1.0)],
)
def test_other_values_differ(kept, given):
    assert found(kept, given) and not found(kept, kept)


SPACE = {"a": bx.Real(0, 1), "b": bx.Integer(1, 9)}


@pytest.mark.parametrize(
    ("kept", "given", "message"),
    [
        (bx.widths.Constant(1.0), bx.widths.Constant(2.0), "k.value is 1.0 in the study, got 2.0"),
        (bx.widths.Constant(1.0), Prior(), "k.class is 'widths.Constant' in the study"),
        (bx.Box([(0, 1)]), bx.Box([(0, 1)], dtype=torch.float32), "k.dtype is float64"),
        (bx.Space(SPACE), bx.Space(dict(reversed(SPACE.items()))), "the order of k"),
        (bx.Space(SPACE), bx.Space(SPACE | {"b": bx.Integer(1, 8)}), "k.parameters.b.high is 9"),
        (RBF(), Matern(), "k.class is 'RBFKernel' in the study, got 'MaternKernel'"),
        (RBF(), RBF(lengthscale_constraint=constraints.Interval(0.1, 2.0)), "k.lengthscale"),
        ({"a": 1}, {"a": 1, "b": 2}, "k.b is missing in the study, got 2"),
    ],
    ids=lambda given: "" if not isinstance(given, str) else given,
)
def test_each_difference_is_named(kept, given, message):
    assert found(kept, given)[0].startswith(message)


def test_arguments_may_be_new_and_defaults_and_names_may_change(monkeypatch):
    kept = from_json(text_of(Prior(spread=2.0)))
    assert kept["arguments"] == {"spread": 2.0}
    assert not list(differences(kept, encode(Prior(spread=2.0, noise_spread=2.0))))
    assert decode(kept).location == Prior().location
    old = {"class": "OldPrior", "arguments": {"width": 2.0}}
    with pytest.raises(ValueError, match="OldPrior, which is not allowed"):
        decode(old)
    monkeypatch.setitem(codec.RENAMED, "OldPrior", "Prior")
    monkeypatch.setitem(codec.RENAMED, "OldPrior.width", "spread")
    assert decode(old) == Prior(spread=2.0)
    assert not list(differences(renamed(old), kept))


# --- classes and functions of the user ------------------------------------------------------------


def user_kernel():
    class RBFKernel(kernels.RBFKernel):
        """A kernel that is called as one of GPyTorch."""

    RBFKernel.__qualname__ = "RBFKernel"
    return RBFKernel()


class Clip:
    def __init__(self, lower=0.0, upper=1.0):
        self.lower, self.upper = lower, upper


class Loose:
    def __init__(self, **given):
        self.given = given


class Filled:
    def __call__(self, X):
        return X


def with_number(a):
    held = Filled()
    held.a = a
    return held


def closure(a):
    return lambda X: a * X


def custom(p):
    return scipy.stats.rv_discrete(name="custom", values=([0, 1], [p, 1 - p]))()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (user_kernel(), RBF()),
        (Clip(0.4, 0.6), Clip(0.1, 0.6)),
        (Lab().fmean, Lab.fmean),
        (functools.partial(max, 1), functools.partial(max, True)),
        (closure(1.0), closure(2.0)),
        (bx.Choice((True, False)), bx.Choice((1, 0))),
        (torch.tensor([True]), torch.tensor([1])),
    ],
    ids=lambda given: type(given).__name__,
)
def test_what_is_called_alike_and_is_another_thing_differs(one, other):
    assert found(one, other) and found(other, one)
    assert not found(one, one)


@pytest.mark.parametrize("value", [Loose(a=1), with_number(1.0), custom(0.5)])
def test_what_an_object_does_not_show_is_unknown(value):
    assert "unknown" in encode(value)
    with pytest.raises(ValueError, match=f"k is a {type(value).__name__}: "):
        back(value)


def test_an_object_comes_back_with_arguments_that_domains_leave_out():
    allow_argument(Clip)
    assert vars(back(Clip(0.4, 0.6))) == {"lower": 0.4, "upper": 0.6}


@pytest.mark.parametrize("kind", ["f4", ">f8", "u2", "u4", "i8"])
def test_an_array_comes_back_as_an_array(kind):
    again = back(np.array([[1, 2], [3, 4]], dtype=kind))
    assert isinstance(again, np.ndarray) and again.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", ["bytes", "unknown", "class", "not finite", "dict", "tensor"])
def test_parameters_may_be_called_like_keys(name):
    space = bx.Space({name: bx.Real(0, 1), "other": bx.Real(0, 1)})
    assert repr(back(space)) == repr(space) and repr(back(bx.Space({name: bx.Real(0, 1)})))
    assert not list(_unknown(encode(space), "k"))


def test_numbers_of_kernels_may_have_other_last_digits_and_are_shown_as_they_were_set():
    one, near, far = RBF(), RBF(), RBF()
    for kernel, lengthscale in ((one, math.log(2)), (near, math.log(2)), (far, 0.7)):
        kernel.lengthscale = lengthscale
    near.raw_lengthscale.data += 1e-8
    assert not found(one.double(), near.double())
    (message,) = found(one, far.double())
    assert message.startswith("k.lengthscale is") and "0.69" in message and "0.69" in message
