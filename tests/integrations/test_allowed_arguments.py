"""What is allowed, and what is refused as it would not come back as it is."""

import math
from functools import reduce
from inspect import isabstract

import numpy as np
import pytest
import torch
from gpytorch import constraints, kernels, means
from gpytorch.utils.transforms import inv_softplus
from torch import nn

import botorch_ext as bx
from botorch_ext import delays, widths
from botorch_ext.integrations import saved_arguments
from botorch_ext.integrations.saved_arguments import allow_argument, as_text, from_text
from botorch_ext.kernels import GroupAdditiveKernel

RBF, Matern = kernels.RBFKernel, kernels.MaternKernel


def back(value):
    return from_text(as_text({"k": value}))["k"]


def double(X):
    return 2 * X[..., 0]


class Scale:
    """An object of the user."""

    def __init__(self, size):
        self.size = size


class Stretched(kernels.RBFKernel):
    """A kernel of the user."""

    def __init__(self, factor: float, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def forward(self, x1, x2, **params):
        return self.factor * super().forward(x1, x2, **params)


def test_what_is_not_allowed_is_refused_by_name():
    with pytest.raises(ValueError, match=r"mean cannot be saved.*allow_argument\(double\)"):
        as_text({"mean": double})
    kernel = kernels.ScaleKernel(Stretched(2.0, ard_num_dims=2)).double()
    with pytest.raises(ValueError, match=r"base_kernel of kernel cannot be saved.*Stretched"):
        as_text({"kernel": kernel})
    allow_argument(double)
    allow_argument(Stretched)
    again = from_text(as_text({"mean": double, "kernel": kernel}))
    assert again["mean"] is double
    X = torch.rand(3, 2, dtype=torch.float64)
    assert torch.equal(again["kernel"](X).to_dense(), kernel(X).to_dense())
    with pytest.raises(ValueError, match="name must be given"):
        allow_argument(lambda X: X)
    with pytest.raises(ValueError, match=r"name must be 'Stretched', as .* got 'Box'"):
        allow_argument(Stretched, "Box")
    with pytest.raises(ValueError, match="name must be one that is not taken, got 'Box'"):
        allow_argument(Scale, "Box")


def test_what_is_not_all_in_its_parts_is_refused():
    kernel = RBF()
    kernel.extra = 3.0
    with pytest.raises(ValueError, match="kernel must be as its constructor makes it"):
        as_text({"kernel": kernel})
    models = bx.CandidateModels(RBF(), 0.01)
    models.add(torch.rand(1, 1, dtype=torch.float64), torch.rand(1, dtype=torch.float64))
    with pytest.raises(ValueError, match="models cannot be saved: models must have no data"):
        as_text({"models": models})


@pytest.mark.parametrize("initial", [0.2, 0.5, 1.05, 5.0])
@pytest.mark.parametrize(
    "transforms", [(), (torch.exp, torch.log), (None,)], ids=["softplus", "exp", "none"]
)
def test_the_first_value_of_a_constraint_is_kept(initial, transforms):
    bound = constraints.GreaterThan(0.1, *transforms, initial_value=initial)
    kernel = RBF(lengthscale_constraint=bound).double()
    again = back(kernel).raw_lengthscale_constraint._initial_value
    assert torch.equal(again, bound._initial_value) and again.dtype == bound._initial_value.dtype


def test_softplus_by_hand_is_the_default():
    positive = constraints.Positive(nn.functional.softplus, inv_softplus)
    again = back(RBF(lengthscale_constraint=positive))
    assert as_text({"k": again}) == as_text({"k": RBF()})


def test_means_that_are_shared_are_shared_again():
    mean = means.LinearMean(1)
    shared = bx.CandidateModels.lengthscales(RBF(), torch.linspace(0.1, 1, 8), 0.01, means=mean)
    again = back(shared)
    assert len(again.parts) == len(shared.parts) == 1
    assert len({id(entry.mean) for entry in again._entries}) == 1
    growing = back(bx.CandidateModels.growing(RBF(), 0.5, 0.01, dim=1, mean=mean))
    assert growing._family.mean is growing._entries[0].mean
    growing.add(torch.rand(1, 1, dtype=torch.float64), torch.rand(1, dtype=torch.float64))
    growing.grow(50)
    assert len(growing) > 1 and len(growing.parts) == 1


def hook(module, given):
    return None


def with_hook():
    kernel = RBF()
    kernel.register_forward_pre_hook(hook)
    return kernel


def of_itself():
    values = []
    values.append(values)
    return values


class Hidden(nn.Module):
    """A module with a part that is no argument."""

    def __init__(self, width):
        super().__init__()
        self.width = width
        self.own_prior = nn.Linear(width, 1)


class Private:
    """An object that does not show what it was made with."""

    def __init__(self, rate):
        self._rate = rate


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (with_hook(), "k must be as its constructor makes it"),
        (torch.ones(1, requires_grad=True), "k cannot be saved: a tensor must .* no gradient"),
        (torch.ones(1, device="meta"), "k cannot be saved: a tensor must be on the CPU"),
        (torch.ones([1] * 9), "k cannot be saved: a tensor must .* at most 8 dimensions"),
        (np.array(["a"]), "k cannot be saved: can't convert"),
        (of_itself(), "k must be nested at most"),
        (Hidden(2), "k must be as its constructor makes it to be saved, got a Hidden"),
        (Private(2), "k cannot be saved: a Private must have an attribute rate"),
        (10**400, "k must be a number of 64 bits"),
        (GroupAdditiveKernel(RBF(batch_shape=torch.Size([2])), [[0]], 1), "not be batched"),
        (
            reduce(lambda k, _: kernels.ScaleKernel(k), range(10), RBF()),
            "k must be nested at most",
        ),
    ],
    ids=lambda given: "" if isinstance(given, str) else type(given).__name__,
)
def test_what_would_be_lost_is_refused(value, message):
    for kind in (Hidden, Private):
        allow_argument(kind)
    with pytest.raises(ValueError, match=message):
        as_text({"k": value})


def test_eight_kernels_in_each_other_are_not_too_many():
    kernel = reduce(lambda k, _: kernels.ScaleKernel(k), range(7), RBF())
    assert back(kernel).base_kernel.base_kernel.outputscale == kernel.outputscale
    kernel = reduce(lambda k, _: kernels.AdditiveKernel(k), range(7), RBF())
    assert back(bx.CandidateModels(kernel, 0.01)).names == ["RBF"]


class Wrapping(nn.Module):
    """A module of the user."""

    def __init__(self, size):
        super().__init__()
        self.size = size


class Secret(Private):
    """Another object of the user, whose class nobody allowed."""


def test_advice_is_given_where_it_helps():
    for value, advice in (
        (Wrapping(2), r": call allow_argument\(Wrapping\) here and where it is loaded$"),
        (Wrapping(Wrapping(2)), r": call allow_argument\(Wrapping\)"),
        (Secret(2), "unknown$"),
        (lambda X: X, "unknown$"),
        (math.sqrt, "unknown$"),
        (kernels.RFFKernel(4, num_dims=2), "unknown$"),
        (torch.device("cpu"), "unknown$"),
        (Wrapping, "unknown$"),
    ):
        with pytest.raises(ValueError, match=advice):
            as_text({"k": value})


def test_a_form_of_the_library_stays():
    box = bx.Box([(0, 1), (0, 4)], integer=[1])
    text = as_text({"box": box, "kernel": RBF()})
    allow_argument(bx.Box)
    allow_argument(RBF)
    assert as_text({"box": box, "kernel": RBF()}) == text
    with pytest.raises(ValueError, match=r"name must be 'MaternKernel', as .* got 'mine'"):
        allow_argument(Matern, "mine")


def test_what_is_defined_again_takes_its_place():
    def define(factor):
        def stretch(X):
            return factor * X

        class Size:
            def __init__(self, of):
                self.of = factor * of

        return stretch, Size

    for factor in (2, 1):
        stretch, size = define(factor)
        allow_argument(stretch)
        allow_argument(size)
    assert back(stretch) is stretch
    assert type(back(size(3))) is size

    def other(X):
        return X

    with pytest.raises(ValueError, match="name must be one that is not taken, got 'stretch'"):
        allow_argument(other, "stretch")


def test_a_method_is_known_again():
    allow_argument(CENTRE.fmean, "mean of the lab")
    assert back(CENTRE.fmean) == CENTRE.fmean


class Lab:
    def fmean(self, X):
        return X[..., 0]


CENTRE = Lab()


def test_an_algorithm_is_no_argument():
    def method(domain):
        return domain

    with pytest.raises(ValueError, match=r"call allow_argument\(method, is_algorithm=True\)"):
        as_text({"algorithm": method})
    allow_argument(method, is_algorithm=True)
    assert from_text(as_text({"algorithm": method}))["algorithm"] is method
    with pytest.raises(ValueError, match=r"mean cannot be saved.*allow_argument\(method\)"):
        as_text({"mean": method})
    with pytest.raises(ValueError, match="algorithm must be a function"):
        as_text({"algorithm": RBF()})


def test_every_width_and_delay_is_in_the_table():
    named = [getattr(room, name) for room in (widths, delays) for name in room.__all__]
    concrete = {kind for kind in named if isinstance(kind, type) and not isabstract(kind)}
    concrete -= {delays.SeenDelays, widths.ConfidenceModel}
    assert all(kind in saved_arguments._by_kind for kind in concrete)
