"""Arguments as text: the same to the last bit when they come back, and nothing else is made."""

import json
import math

import numpy as np
import pytest
import torch
from botorch.models.kernels.categorical import CategoricalKernel
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch import constraints, kernels, means, priors

import botorch_ext as bx
from botorch_ext import delays, widths
from botorch_ext.integrations import saved_modules
from botorch_ext.integrations.saved_arguments import allow_argument, as_text, from_text
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.kernels import ActionContextKernel, GroupAdditiveKernel, NuggetKernel, TaskKernel
from botorch_ext.kernels.structure import plain_kernel
from botorch_ext.strategies import Terms
from botorch_ext.studies.plain_arguments import plain

RBF, Matern = kernels.RBFKernel, kernels.MaternKernel


def of_numbers(kernel, seed=0):
    """The kernel in float64, with numbers of many digits."""
    generator = torch.Generator().manual_seed(seed)
    kernel = kernel.double()
    for parameter in kernel.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += 0.1 * noise
    return kernel.requires_grad_(False)


KERNELS = {
    "sum": kernels.AdditiveKernel(RBF(active_dims=(0,)), kernels.PeriodicKernel()),
    "product": kernels.ProductKernel(RBF(), kernels.LinearKernel(ard_num_dims=3)),
    "scaled": kernels.ScaleKernel(
        Matern(1.5, ard_num_dims=2, active_dims=(0, 2), lengthscale_prior=priors.GammaPrior(3, 6)),
        outputscale_prior=priors.LogNormalPrior(0.0, 1.0),
    ),
    "BoTorch": get_covar_module_with_dim_scaled_prior(ard_num_dims=3),
    "batch": RBF(batch_shape=torch.Size([2]), ard_num_dims=3),
    "categories": CategoricalKernel(ard_num_dims=3),
    "rational": kernels.RQKernel(lengthscale_constraint=constraints.Interval(0.1, 2.0)),
    "pieces": kernels.PiecewisePolynomialKernel(q=1),
    "cosine": kernels.CosineKernel(period_length_constraint=constraints.LessThan(3.0)),
    "polynomial": kernels.PolynomialKernel(2),
    "constant": kernels.ConstantKernel(),
    "index": kernels.IndexKernel(num_tasks=3, rank=2, active_dims=(3,)),
    "exp": RBF(lengthscale_constraint=constraints.Positive(torch.exp, torch.log)),
    "contexts": ActionContextKernel(RBF(), Matern(0.5), (2, 0), (1,), "sum"),
    "groups": GroupAdditiveKernel(RBF(ard_num_dims=3), [[0], [1, 2]], dim=3),
    "nugget": NuggetKernel(0.1, active_dims=(1,)),
    "tasks": TaskKernel([[1.0, 1 / 3], [1 / 3, 1.0]], active_dims=(3,)),
}
VALUES = {
    "plain": [1, 2.0, True, None, "a", 0.1 + 0.2, -0.0, 1e-320],
    "infinite": (math.inf, -math.inf),
    "nested": {"a": (1, [2.0, {0: "b"}])},
    "numpy": np.float64(1 / 3),
    "array": np.array([[1 / 3, 2.0]]),
    "initial": (torch.rand(3, 2, dtype=torch.float64), torch.rand(3, 1)),
    "codes": torch.tensor([2**53 + 1, 1]),
    "dtype": torch.float32,
    "box": bx.Box(
        [(0, 1), (1, 9), (2, 4)],
        integer=[1],
        log=[1],
        categories={2: [2, 4]},
        constraints=([[1, 1, 0]], [5]),
    ),
    "set": bx.FiniteSet([[0.1, 0.2], [0.3, 0.4]]),
    "contexts": bx.ContextSpace(bx.Box([(0, 3), (0, 1)]), tasks=((0, 4),)),
    "fitted": bx.Fitted(every=3),
    "particles": bx.Particles(8),
    "terms": Terms(alpha=0.1),
    "holder": HolderConstants(1.0, 0.5, (math.inf, 2.0), 1.0),
    "width": widths.Scaled(widths.Enlarged(widths.SelfNormalized(2.0, 0.1, 0.05), 0.1), 1 / 3),
    "published": widths.ChowdhuryGopalan(2.0, 0.1, 0.05, printed=True),
    "delay": delays.LogNormal(3.0, 0.5),
    "allowance": delays.Quantile(delays.Poisson(3.0)),
    "mean": means.ConstantMean().double(),
    "linear mean": means.LinearMean(2, bias=False),
    "zero mean": means.ZeroMean(),
    "models": bx.CandidateModels.lengthscales(RBF(), [0.1, 1 / 3, 0.5], 0.01).with_nugget(0.1),
    "trees": bx.CandidateModels.additive(RBF(), "trees", 0.01, dim=4, num=3),
    "growing": bx.CandidateModels.growing(Matern(2.5), 4.0, 0.01, dim=2),
    "means": bx.CandidateModels.prior_means(RBF(), [0.5, None, means.LinearMean(1)], 0.01),
}


def test_every_kernel_of_the_table_is_tried():
    tried = {type(part) for kernel in KERNELS.values() for part in kernel.modules()}
    assert tried >= saved_modules._KERNELS.keys()


# Of PyTorch, about GPyTorch's `IndexKernel`.
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_comes_back_bit_by_bit(name):
    kernel = of_numbers(KERNELS[name])
    text = as_text({"kernel": kernel})
    again = from_text(text)["kernel"]
    assert as_text({"kernel": again}) == text
    X = torch.rand(6, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    X = torch.cat([X, torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(3, 1)], dim=-1)
    X = X if name in ("index", "tasks", "cosine") else X[:, :3]
    assert torch.equal(again(X).to_dense(), kernel(X).to_dense())
    kernel = plain_kernel(kernel, X)  # no method looks at its priors
    named = dict(kernel.named_parameters()) | dict(kernel.named_buffers())
    kept = dict(again.named_parameters()) | dict(again.named_buffers())
    assert kept.keys() == named.keys()
    assert all(torch.equal(kept[key], named[key]) for key in named)
    assert [repr(each) for each in again.modules()] == [repr(each) for each in kernel.modules()]


@pytest.mark.parametrize("name", VALUES)
def test_a_value_comes_back(name):
    text = as_text({name: VALUES[name]})
    again = from_text(text)
    assert as_text(again) == text
    assert plain(again[name]) == plain(VALUES[name])


def test_models_ask_as_those_they_come_from():
    box, models = bx.Box([(0, 1), (2, 5)]), bx.CandidateModels.lengthscales(RBF(), [0.2, 2], 0.01)
    again = from_text(as_text({"models": models}))["models"]
    first, second = (
        bx.algorithms.he_gp_ucb(box, each, noise_std=0.1, rkhs_bound=2.0, num_initial=2)
        for each in (models, again)
    )
    for _ in range(5):
        asked, other = first.ask(), second.ask()
        assert torch.equal(asked.x, other.x)
        for strategy in (first, second):
            strategy.tell(asked.id, float(asked.x.sin().sum()))


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
    with pytest.raises(ValueError, match="kernel must be made by its constructor alone"):
        as_text({"kernel": kernel})
    models = bx.CandidateModels(RBF(), 0.01)
    models.add(torch.rand(1, 1, dtype=torch.float64), torch.rand(1, dtype=torch.float64))
    with pytest.raises(ValueError, match="models cannot be saved: models must have no data"):
        as_text({"models": models})


def tree(kind, **state):
    return {"class": kind, "state": state}


NUMBER = tree("Tensor", dtype="float64", shape=[], values=[1.0])
POINT = {**json.loads(as_text({"k": RBF()}))["k"]["state"]}
DEEP = 5_000 * "[" + 5_000 * "]"

ATTACKS = {
    "a dotted path": tree("os.system", command="false"),
    "a function of torch": tree("function", name="torch.nn.modules.module.register_module_hook"),
    "a wrapper that takes attributes": tree(
        "torch.nn.cpp.OrderedDictWrapper", cpp_module=tree("RBFKernel", **POINT), attr="_method"
    ),
    "a dtype that is none": tree("dtype", name="load"),
    "a class of the interpreter": tree("type", name="x"),
    "a part that is not its own": tree("RBFKernel", **POINT, __class__="X"),
    "a method as a number": tree(
        "RBFKernel", **POINT | {"values": tree("dict", pairs=[["forward", NUMBER]])}
    ),
    "a constraint on nothing": tree(
        "RBFKernel", **POINT | {"constraints": tree("dict", pairs=[["x_constraint", NUMBER]])}
    ),
    "too few parts": tree("SelfNormalized", rkhs_bound=1.0),
    "another type": tree("SelfNormalized", rkhs_bound="1", noise_std=0.1, delta=0.1),
    "an impossible number": tree("SelfNormalized", rkhs_bound=-1.0, noise_std=0.1, delta=0.1),
    "a truth value as a number": tree("Constant", value=True),
    "numbers as parts": tree("tuple", parts=3),
    "keys that are lists": tree("dict", pairs=[[[1], 2]]),
    "pairs that are none": tree("dict", pairs=[[1, 2, 3]]),
    "more numbers than there are": tree("Tensor", dtype="float64", shape=[10**12], values=[1.0]),
    "negative shapes": tree("Tensor", dtype="float64", shape=[-1, -1], values=[1.0]),
    "numbers of another dtype": tree("Tensor", dtype="int64", shape=[1], values=[0.5]),
    "a batch without numbers": tree(
        "RBFKernel", **POINT | {"batch_shape": tree("tuple", parts=[10**12])}
    ),
    "columns without numbers": tree("RBFKernel", **POINT | {"ard_num_dims": 10**12}),
    "no class": {"state": {}},
    "a class that is a list": {"class": ["Box"], "state": {}},
    "no float": {"not finite": "1; import os"},
    "60 levels": json.loads(60 * "[" + "1" + 60 * "]"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_any_other_tree_is_refused(attack):
    with pytest.raises(ValueError, match="saved arguments cannot be read"):
        from_text(json.dumps({"kernel": ATTACKS[attack]}))


@pytest.mark.parametrize(
    "text", ["", "null", "[1]", '{"kernel": ', DEEP, '{"k": NaN}', b"\x80\x04."]
)
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match="saved arguments cannot be read"):
        from_text(text)


def test_text_that_is_cut_short_is_refused():
    text = as_text({"kernel": KERNELS["scaled"]})
    for length in range(0, len(text), 97):
        with pytest.raises(ValueError, match="saved arguments cannot be read"):
            from_text(text[:length])
