"""Arguments as text: the same to the last bit when they come back, and nothing else is made."""

import gzip
import json
import sys
from copy import deepcopy
from pathlib import Path

import pytest
import torch
from gpytorch import constraints, kernels, priors
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import botorch_ext as bx
from botorch_ext.integrations.saved_arguments import allow_argument, as_text, from_text
from botorch_ext.kernels.structure import plain_kernel
from botorch_ext.studies.plain_arguments import plain
from botorch_ext.studies.plain_events import to_json
from tests.helpers import drawn

RBF, Matern = kernels.RBFKernel, kernels.MaternKernel
# What version 0.2.0 saved of one argument each.
BEFORE = json.loads(gzip.decompress(Path(__file__).with_name("saved_before.json.gz").read_bytes()))
TEXTS = BEFORE["texts"]


def back(value):
    return from_text(as_text({"k": value}))["k"]


def of_numbers(kernel, seed=0):
    """The kernel in float64, with numbers of many digits."""
    generator = torch.Generator().manual_seed(seed)
    kernel = kernel.double()
    for parameter in kernel.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += 0.1 * noise
    return kernel.requires_grad_(False)


#: Kernels that version 0.2.0 saved, with priors, constraints and batches, and two made here.
SAVED = ("sum", "product", "BoTorch", "batch", "categories", "rational", "pieces", "cosine")
SAVED += ("groups", "nugget", "prior of tasks", "tasks")
KERNELS = {
    **{name: from_text(TEXTS[name])["value"] for name in SAVED},
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
    text = as_text({"kernel": kernel})
    again = from_text(text)["kernel"]
    assert as_text({"kernel": again}) == text
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
    for own, other in zip(again.modules(), kernel.modules(), strict=True):
        if isinstance(own, constraints.Interval) and own._initial_value is not None:
            assert torch.equal(own._initial_value, other._initial_value)


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back(name):
    text = as_text({name: VALUES[name]})
    again = from_text(text)
    assert as_text(again) == text
    # As text, in which NaN is NaN.
    assert to_json(plain(again[name])) == to_json(plain(VALUES[name]))


@pytest.mark.parametrize("name", TEXTS)
def test_what_was_saved_before_comes_back(name):
    text = TEXTS[name]
    now = json.loads(as_text(from_text(text)))
    assert _without_news(now) == _without_news(json.loads(text))


def _without_news(tree):
    """Without what a box has got since."""
    if isinstance(tree, list):
        return [_without_news(part) for part in tree]
    if not isinstance(tree, dict):
        return tree
    news = ("conditions", "steps") if "integer" in tree else ()
    return {key: _without_news(part) for key, part in tree.items() if key not in news}


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
    with pytest.raises(ValueError, match=r"mean cannot be saved.*allow_argument\(double\)"):
        as_text({"mean": double})
    kernel = kernels.ScaleKernel(Stretched(2.0, ard_num_dims=2)).double()
    with pytest.raises(ValueError, match=r"base_kernel of kernel cannot be saved.*Stretched"):
        as_text({"kernel": kernel})
    allow_argument(double)
    allow_argument(Stretched)
    again = from_text(as_text({"mean": double, "kernel": kernel}))
    assert again["mean"] is double
    assert torch.equal(again["kernel"](drawn(3, 2)).to_dense(), kernel(drawn(3, 2)).to_dense())
    centre = Lab()
    allow_argument(centre.fmean, "mean of the lab")
    assert back(centre.fmean) == centre.fmean
    # A form of the library stays.
    before = as_text({"kernel": RBF()})
    allow_argument(RBF)
    assert as_text({"kernel": RBF()}) == before
    for argument, name in [(lambda X: X, None), (Lab, "Box"), (Matern, "mine"), (3, None)]:
        with pytest.raises(ValueError, match=r"name must be|argument must be"):
            allow_argument(argument, name)


ITSELF, EXTRA, DATA = [], RBF(), bx.CandidateModels(RBF(), 0.01)
ITSELF.append(ITSELF)
EXTRA.extra = 3.0
DATA.add(drawn(1, 1), drawn(1))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (EXTRA, "k must be as its constructor makes it"),
        (DATA, "models must have no data"),
        (torch.ones(1, requires_grad=True), "a tensor must .* no gradient"),
        (torch.ones([1] * 9), "a tensor must .* at most 8 dimensions"),
        (ITSELF, "k must be nested at most"),
        (Hidden(2), "k must be as its constructor makes it to be saved, got a Hidden"),
        (10**400, "k must be a number of 64 bits"),
        # Advice is given where it helps.
        (lambda X: X, "unknown$"),
    ],
    ids=lambda given: "" if isinstance(given, str) else type(given).__name__,
)
def test_what_would_be_lost_is_refused(value, message):
    allow_argument(Hidden)
    with pytest.raises(ValueError, match=message):
        as_text({"k": value})


def tree(kind, **state):
    return {"class": kind, "state": state}


DEEP = 5_000 * "[" + 5_000 * "]"
SOME = as_text({"kernel": kernels.ScaleKernel(Matern(1.5, ard_num_dims=2))})


def parts_of(value):
    return json.loads(as_text({"k": value}))["k"]["state"]


HUGE = tree("Tensor", dtype="float64", shape=[10**12], values=[1.0])
ATTACKS = {
    "a dotted path": tree("os.system", command="false"),
    "a function of torch": tree("function", name="torch.nn.modules.module.register_module_hook"),
    "a method as a number": tree(
        "RBFKernel", **parts_of(RBF()) | {"values": tree("dict", pairs=[["forward", HUGE]])}
    ),
    "more numbers than there are": HUGE,
    "columns without numbers": tree("RBFKernel", **parts_of(RBF()) | {"ard_num_dims": 10**12}),
    "many particles": tree("Particles", **parts_of(bx.Particles()) | {"num_particles": 10**9}),
    "a number of 400 digits": tree("Constant", value=10**400),
    "60 levels": json.loads(60 * "[" + "1" + 60 * "]"),
    "an impossible number": tree("SelfNormalized", rkhs_bound=-1.0, noise_std=0.1, delta=0.1),
    "a truth value as a number": tree("Constant", value=True),
}
TEXTS_OF_STRANGERS = [json.dumps({"kernel": attack}) for attack in ATTACKS.values()]
TEXTS_OF_STRANGERS += ["", "null", "[1]", DEEP, '{"k": NaN}', b"\x80\x04.", SOME[:97], SOME[:-1]]


@pytest.mark.parametrize("text", TEXTS_OF_STRANGERS)
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match="saved arguments cannot be read"):
        from_text(text)


@pytest.mark.parametrize("name", ["num_initial", "horizon"])
def test_numbers_that_take_memory_are_refused(name):
    with pytest.raises(ValueError, match=f"{name} must be at most"):
        from_text(json.dumps({name: 10**8}))


# What Python says before it runs, loads or writes anything.
FORBIDDEN = ("import", "open", "exec", "compile", "os.", "subprocess.", "socket.", "shutil.")
FORBIDDEN += ("pickle.", "marshal.", "ctypes.", "code.", "builtins.input", "urllib.")
# SciPy runs a text of its own where a distribution gets its numbers.
OF_SCIPY = "_attach_argparser_methods"
seen: list[str] = []
is_watched = [False]


def watch(event, given):
    if is_watched[0] and event.startswith(FORBIDDEN):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != OF_SCIPY:
            frame = frame.f_back
        if frame is None:
            seen.append(f"{event} {given}")


def places_of(tree):
    """All places in a tree: what holds them, and where."""
    for key in tree if isinstance(tree, dict) else range(len(tree)):
        yield tree, key
        if isinstance(tree[key], dict | list):
            yield from places_of(tree[key])


TREES = [json.loads(text) for text in TEXTS.values()]
PLACES = [place for each in TREES for place in places_of(each)]
CLASSES = sorted({holder[key] for holder, key in PLACES if key == "class"})
WORDS = [
    *CLASSES,
    "os.system",
    "builtins.eval",
    "__import__",
    "__class__",
    "__reduce__",
    "torch.load",
]
WORDS += ["function", "algorithm", "class", "state", "values", "forward", "constraints", "", "nan"]
NUMBERS = [0, -1, 2, 10**7, 2**63, 10**400, 0.5, -0.0, 1e308, True, None, {"not finite": "nan"}]
PARTS = st.recursive(
    st.sampled_from([*WORDS, *NUMBERS]),
    lambda part: (
        st.lists(part, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS), part, max_size=3)
        | st.builds(tree, st.sampled_from(WORDS)).map(deepcopy)
    ),
    max_leaves=6,
)


@st.composite
def hostile(draw):
    """A text of which one to three places are others, or that is cut."""
    made = deepcopy(draw(st.sampled_from(TREES)))
    for _ in range(draw(st.integers(1, 3))):
        holder, key = draw(st.sampled_from([*places_of(made)]))
        other, place = draw(st.sampled_from(PLACES))
        kind = draw(st.integers(0, 3))
        if kind == 0:
            holder[key] = deepcopy(other[place])
        elif kind == 1 and isinstance(holder, dict):
            holder[draw(st.sampled_from(WORDS))] = holder.pop(key)
        else:
            holder[key] = draw(PARTS)
    text = json.dumps(made)
    return text[: draw(st.integers(1, len(text)))] if draw(st.integers(0, 9)) == 0 else text


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=150)
@given(text=hostile())
def test_nothing_in_a_hostile_text_runs(text):
    if not seen:  # or what it needs would be imported under watch
        for saved in TEXTS.values():
            as_text(from_text(saved))
        repr(torch.ones(1))
        sys.addaudithook(watch)
        is_watched[0] = True
        exec("1")
        assert seen  # the watch sees
    del seen[1:]
    is_watched[0] = True
    message = "saved arguments cannot be read: "
    try:
        values = from_text(text)
        assert from_text(as_text(values)).keys() == values.keys()
    except ValueError as error:
        message = str(error)
    finally:
        is_watched[0] = False
    assert message.startswith("saved arguments cannot be read: ")
    assert not seen[1:]
