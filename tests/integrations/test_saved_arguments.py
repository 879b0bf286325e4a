"""Arguments as text: the same to the last bit when they come back, and nothing else is made."""

import json
import math

import numpy as np
import pytest
import torch
from botorch.models.kernels.categorical import CategoricalKernel
from botorch.models.utils.gpytorch_modules import get_covar_module_with_dim_scaled_prior
from gpytorch import constraints, kernels, means, priors
from scipy import stats

import botorch_ext as bx
from botorch_ext import delays, widths
from botorch_ext.integrations import saved_classes
from botorch_ext.integrations.saved_arguments import as_text, from_text
from botorch_ext.kernel_functions.smoothness import HolderConstants
from botorch_ext.kernels import ActionContextKernel, GroupAdditiveKernel, NuggetKernel, TaskKernel
from botorch_ext.kernels.structure import plain_kernel
from botorch_ext.strategies import Terms
from botorch_ext.studies.plain_arguments import plain
from botorch_ext.studies.plain_events import to_json
from tests.domains.test_random_spaces import a_space
from tests.integrations import saved_before

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
    "scaled columns": kernels.ScaleKernel(RBF(), active_dims=(0,)),
    "initial": RBF(lengthscale_constraint=constraints.Interval(0.1, 2.0, initial_value=0.5)),
    "prior that is drawn": RBF(lengthscale_prior=priors.HorseshoePrior(0.1)),
    "prior of tasks": kernels.IndexKernel(
        num_tasks=3,
        active_dims=(3,),
        prior=priors.LKJCovariancePrior(3, 1.0, priors.GammaPrior(1.0, 1.0)),
    ),
    "tasks": TaskKernel([[1.0, 1 / 3], [1 / 3, 1.0]], active_dims=(3,)),
}
VALUES = {
    "plain": [1, 2.0, True, None, "a", 0.1 + 0.2, -0.0, 1e-320],
    "infinite": (math.inf, -math.inf, math.nan),
    "NaN in a tensor": torch.tensor([math.nan, -math.inf]),
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
    "tree": bx.Box(
        [(0, 1), (1, 9), (2, 4)],
        integer=[1],
        categories={2: [2, 4]},
        conditions={0: (1, [3, 4]), 1: (2, [2])},
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
    "SciPy": delays.FromScipy(stats.lognorm(s=0.5, scale=3)),
    "SciPy, discrete": stats.poisson(3),
    "mean": means.ConstantMean().double(),
    "bounded mean": means.ConstantMean(constant_constraint=constraints.Interval(-1.0, 1.0)),
    "linear mean": means.LinearMean(2, bias=False),
    "zero mean": means.ZeroMean(),
    "models": bx.CandidateModels.lengthscales(RBF(), [0.1, 1 / 3, 0.5], 0.01).with_nugget(0.1),
    "trees": bx.CandidateModels.additive(RBF(), "trees", 0.01, dim=4, num=3),
    "growing": bx.CandidateModels.growing(Matern(2.5), 4.0, 0.01, dim=2),
    "means": bx.CandidateModels.prior_means(RBF(), [0.5, None, means.LinearMean(1)], 0.01),
}


def test_every_kernel_of_the_table_is_tried():
    tried = {type(part) for kernel in KERNELS.values() for part in kernel.modules()}
    assert tried >= {kind for kind in saved_classes._MODULES if issubclass(kind, kernels.Kernel)}


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
    X = X if name in ("index", "tasks", "cosine", "prior of tasks") else X[:, :3]
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
    # As text, in which NaN is NaN.
    assert to_json(plain(again[name])) == to_json(plain(VALUES[name]))


@pytest.mark.parametrize("name", saved_before.TEXTS)
def test_what_was_saved_before_comes_back(name):
    text = saved_before.TEXTS[name]
    assert json.loads(as_text(from_text(text))) == _of_now(json.loads(text))


@pytest.mark.parametrize("seed", range(20))
def test_a_space_of_contexts_comes_back(seed):
    contexts = bx.ContextSpace(a_space(seed))
    again = from_text(as_text({"contexts": contexts}))["contexts"].domain
    assert repr(again) == repr(contexts.domain)
    assert torch.equal(again.sample(5, 1), contexts.domain.sample(5, 1))


def _of_now(tree):
    """With what classes have got since."""
    if isinstance(tree, list):
        return list(map(_of_now, tree))
    if not isinstance(tree, dict):
        return tree
    tree = {key: _of_now(part) for key, part in tree.items()}
    if tree.get("class") == "Box":
        none = {"class": "dict", "state": {"pairs": []}}
        tree["state"] |= {"conditions": none, "steps": none}
    return tree


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
