"""Sets of models by name: what is in them, against kernels made by hand."""

import math
from copy import deepcopy
from itertools import combinations

import numpy
import pytest
import torch
from botorch.models import SingleTaskGP, fully_bayesian
from botorch.models.fully_bayesian import (
    FullyBayesianSingleTaskGP,
    SaasFullyBayesianSingleTaskGP,
)
from botorch.models.transforms import Normalize, Standardize
from botorch.models.transforms.input import Warp
from botorch.models.transforms.outcome import Log
from gpytorch.constraints import Interval
from gpytorch.kernels import (
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ConstantMean, LinearMean, ZeroMean
from gpytorch.priors import LogNormalPrior
from torch.testing import assert_close

from botorch_ext import CandidateModels
from botorch_ext.exceptions import PriorDrawsWarning
from botorch_ext.kernels import AdditiveKernel
from botorch_ext.models import KernelGP
from botorch_ext.models.decompositions import random_trees, set_partitions
from botorch_ext.widths import SelfNormalized
from tests.helpers import drawn, matern, pairwise, rbf, tolerance
from tests.models.sessions import values

BOX = torch.tensor([[2.0, -3.0, 4.0], [5.0, -1.0, 4.5]], dtype=torch.float64)
EXACT = tolerance(torch.float64)

pytestmark = pytest.mark.filterwarnings(
    "ignore:Data .* is not (contained|standardized):botorch.exceptions.warnings.InputDataWarning"
)


def draw(n, seed, dim=3):
    return BOX[0, :dim] + (BOX[1] - BOX[0])[:dim] * drawn(n, dim, seed=seed)


def require_equal(models, alone):
    """Each model of a set is a separate one: moments and information gain with data."""
    X, Z = draw(10, 0), draw(5, 1)
    Y = values(10, 2)
    models.add(X, Y)
    mean, std = models.mean_and_std(Z)
    gain = models.information_gain()
    assert len(models) == len(alone)
    for i, (kernel, noise, prior) in enumerate(alone):
        model = KernelGP(kernel, noise, prior)
        model.add(X, Y)
        expected = *model.mean_and_std(Z), model.information_gain()
        for got, each in zip((mean[i], std[i], gain[i]), expected, strict=True):
            assert_close(got, each.to(got), **EXACT)


def test_lengthscales():
    kernel = ScaleKernel(RBFKernel()).double()
    grid = [0.3, 0.9, 2.7]
    models = CandidateModels.lengthscales(kernel, grid, 0.02)
    assert models.names == ["lengthscale 0.3", "lengthscale 0.9", "lengthscale 2.7"]
    assert_close(models.lengthscales_of, torch.tensor(grid, dtype=torch.float64))
    assert_close(models.select([2, 0]).lengthscales_of, torch.tensor([2.7, 0.3]).double())
    scale = kernel.outputscale.item()
    alone = []
    for value in grid:
        one = ScaleKernel(rbf(float(value))).double()
        one.outputscale = torch.tensor(scale, dtype=torch.float64)
        alone.append((one, 0.02, None))
    require_equal(models, alone)
    assert len(models.parts) == 1
    assert CandidateModels(kernel, 0.1).lengthscales_of is None
    near = CandidateModels.lengthscales(kernel, [0.123456, 0.123457], 0.1)
    assert near.names == ["lengthscale 0.123456", "lengthscale 0.123457"]


@pytest.mark.parametrize("ard", [True, False])
def test_lengthscales_for_each_column(ard):
    grid = torch.tensor([[0.3, 1.0, 0.5], [2.0, 0.7, 0.9]], dtype=torch.float64)
    kernel = MaternKernel(nu=1.5, ard_num_dims=3 if ard else None)
    models = CandidateModels.lengthscales(kernel, grid, [0.1, 0.2])
    assert models.names == ["lengthscale 0.3, 1, 0.5", "lengthscale 2, 0.7, 0.9"]
    assert models.lengthscales_of is None
    alone = [
        (matern(*value.tolist(), nu=1.5), noise, None)
        for value, noise in zip(grid, (0.1, 0.2), strict=True)
    ]
    require_equal(models, alone)


def test_one_lengthscale_for_an_ard_kernel():
    models = CandidateModels.lengthscales(RBFKernel(ard_num_dims=3), [0.4, 0.8], 0.1)
    require_equal(models, [(rbf(v), 0.1, None) for v in (0.4, 0.8)])


def test_periods():
    kernel = rbf(1.3) * PeriodicKernel(active_dims=(1,)).double()
    models = CandidateModels.periods(kernel, [0.5, 1.2], 0.05)
    assert models.names == ["period 0.5", "period 1.2"]
    alone = []
    for period in (0.5, 1.2):
        part = PeriodicKernel(active_dims=(1,)).double()
        part.period_length = torch.tensor(period, dtype=torch.float64)
        alone.append((rbf(1.3) * part, 0.05, None))
    require_equal(models, alone)


def test_noise_variances_and_prior_means():
    kernel = rbf(0.7)
    models = CandidateModels.noise_variances(kernel, [0.01, 0.3])
    assert models.names == ["noise variance 0.01", "noise variance 0.3"]
    assert models.parts[0].model.kernel.batch_shape == torch.Size()
    require_equal(models, [(kernel, 0.01, None), (kernel, 0.3, None)])

    def ramp(X):
        return X[..., 1]

    constant = ConstantMean().double()
    constant.constant = 3.0
    means = [None, 0.5, ramp, constant, lambda X: -X[..., 0]]
    models = CandidateModels.prior_means(kernel, means, 0.1)
    assert models.names == ["mean 0", "mean 0.5", "mean ramp", "mean 3", "mean 4"]
    means[1] = lambda X: torch.full_like(X[..., 0], 0.5)
    require_equal(models, [(kernel, 0.1, mean) for mean in means])


@pytest.mark.parametrize(("dim", "bell"), [(1, 1), (3, 5), (5, 52), (7, 877)])
def test_all_partitions(dim, bell):
    partitions = set_partitions(dim)
    assert len(set(partitions)) == len(partitions) == bell
    for groups in partitions:
        assert sorted(column for group in groups for column in group) == list(range(dim))
    assert partitions[0] == (tuple(range(dim)),)


def test_random_trees():
    trees = random_trees(4, 16, seed=3)
    # All trees on 4 nodes, found as the acyclic choices of 3 of the 6 edges.
    edges = list(combinations(range(4), 2))
    expected = set()
    for chosen in combinations(edges, 3):
        component = list(range(4))
        for a, b in chosen:
            component = [component[a] if c == component[b] else c for c in component]
        if len(set(component)) == 1:
            expected.add(chosen)
    assert set(trees) == expected
    assert random_trees(9, 5, seed=1) == random_trees(9, 5, seed=1) != random_trees(9, 5, seed=2)


def test_additive_decompositions():
    base = rbf(0.8)
    models = CandidateModels.additive(base, "all", 0.05, dim=3)
    assert sorted(models.names) == ["{0,1,2}", "{0,1|2}", "{0,2|1}", "{0|1,2}", "{0|1|2}"]
    assert len(models.parts) == 1
    decompositions = [
        [[int(column) for column in group.split(",")] for group in name[1:-1].split("|")]
        for name in models.names
    ]
    alone = [(AdditiveKernel(base, groups, 3), 0.05, None) for groups in decompositions]
    require_equal(models, alone)
    given = CandidateModels.additive(base, [[[0], [1, 2]], [[2, 0]]], 0.05, dim=3)
    assert given.names == ["{0|1,2}", "{0,2}"]
    trees = CandidateModels.additive(base, "trees", 0.05, dim=6, num=7, seed=1)
    assert len(set(trees.names)) == 7


def test_a_growing_family():
    def growth(t):
        return float(t)

    d = 3
    for kernel, rate in ((RBFKernel(), d), (ScaleKernel(MaternKernel(nu=1.5)), d + 3)):
        models = CandidateModels.growing(kernel, 2.0, 0.1, d, growth)
        finite = models.on(draw(6, 3))
        assert models.names == ["lengthscale 2"]
        count = 1
        for t in range(1, 12):
            X, Y = draw(2, t), values(2, t)
            for each in (models, finite):
                each.add(X[:1], Y[:1])
                each.add(X[1:], None)
            # All lengthscales above 2 / t, and the first.
            due = [2 * math.exp(-i / rate) for i in range(100)]
            due = [value for i, value in enumerate(due) if i == 0 or value > 2 / t]
            names = [f"lengthscale {value:.4g}" for value in due]
            assert models.grow(t) == finite.grow(t) == names[count:]
            assert models.grow(t) == []
            count = len(due)
            assert models.names == finite.names == names
            assert_close(models.lengthscales_of, torch.tensor(due, dtype=torch.float64))
        assert models.num_observations == 22
        assert models.pending == list(range(1, 22, 2))
        mean, std = models.mean_and_std(finite.candidates)
        assert_close(finite.mean, mean, **EXACT)
        assert_close(finite.std, std, **EXACT)
        fresh = CandidateModels.lengthscales(kernel, due, 0.1)
        for t in range(1, 12):
            X, Y = draw(2, t), values(2, t)
            fresh.add(X[:1], Y[:1])
            fresh.add(X[1:], None)
        for got, expected in zip((mean, std), fresh.mean_and_std(finite.candidates), strict=True):
            assert_close(got, expected, **EXACT)
        few = models.select([1, 0])
        added = few.grow(40)
        assert few.names == [models.names[1], models.names[0], *added] and added
        assert CandidateModels(kernel, 0.1).grow(100) == []


def test_a_family_starts_again_with_what_it_had():
    models = CandidateModels.growing(RBFKernel(), 1.0, 0.1, 2)
    assert len(models.grow(50)) == sum(math.exp(-i / 2) > 50**-0.9 for i in range(1, 50))
    assert models.num_observations == 0


# --- draws of hyperparameters -----------------------------------------------------------------


def mcmc_samples(count):
    g = torch.Generator().manual_seed(5)

    def positive(*shape):
        return 0.3 + torch.rand(*shape, generator=g, dtype=torch.float64)

    return {
        "mean": torch.randn(count, generator=g, dtype=torch.float64),
        "noise": positive(count, 1) * 0.1,
        "outputscale": positive(count),
        "lengthscale": positive(count, 1, 3),
    }


def fitted(model_type, count=6, **kwargs):
    X = draw(12, 1)
    model = model_type(X, 2 + 3 * values(12, 3).unsqueeze(-1), **kwargs)
    model.load_mcmc_samples(mcmc_samples(count))
    return model.eval()


@pytest.fixture(autouse=True)
def _without_jax(monkeypatch):
    # Only the sampler needs JAX, which is optional; here the draws are given.
    if not fully_bayesian._HAS_JAX:
        monkeypatch.setattr(fully_bayesian, "_check_jax_available", lambda: None)
        monkeypatch.setattr(fully_bayesian, "jnp", numpy, raising=False)


TRANSFORMS = {
    "plain": dict,
    "inputs": lambda: {"input_transform": Normalize(3)},
    "some inputs": lambda: {"input_transform": Normalize(3, indices=[2, 0])},
    "outcome": lambda: {"outcome_transform": Standardize(1)},
    "both": lambda: {
        "input_transform": Normalize(3),
        "outcome_transform": Standardize(1),
    },
}


@pairwise(name=TRANSFORMS, model_type=[SaasFullyBayesianSingleTaskGP, FullyBayesianSingleTaskGP])
def test_mcmc_draws_predict_what_the_fitted_model_predicts(name, model_type):
    model = fitted(model_type, **TRANSFORMS[name]())
    models = CandidateModels.from_posterior_samples(model)
    assert models.names == [f"draw {i}" for i in range(6)]
    assert models.num_observations == 0
    assert len(models.parts) == 1
    models.add(draw(12, 1), 2 + 3 * values(12, 3))
    Z = draw(5, 2)
    with torch.no_grad():
        posterior = model.posterior(Z.unsqueeze(-2))  # 5 x draws x 1 x 1
    mean, std = models.mean_and_std(Z)
    assert_close(mean, posterior.mean[..., 0, 0].mT, **EXACT)
    assert_close(std.square(), posterior.variance[..., 0, 0].mT, **EXACT)
    thinned = CandidateModels.from_posterior_samples(model, 3)
    for i, position in enumerate((0, 2, 5)):  # 2.5 rounds to even
        assert_close(thinned.noise_variance[i], models.noise_variance[position], **EXACT)
    with pytest.raises(ValueError, match="num_models must be at most 6"):
        CandidateModels.from_posterior_samples(model, 7)


def single_task(**kwargs):
    return SingleTaskGP(draw(12, 1), 2 + 3 * values(12, 3).unsqueeze(-1), **kwargs)


@pytest.mark.parametrize("name", ["plain", "both"])
def test_prior_draws_are_models_with_these_hyperparameters(name):
    kwargs = {"outcome_transform": None} | TRANSFORMS[name]()
    state = torch.random.get_rng_state()
    model = single_task(**kwargs).eval()
    before = model.covar_module.lengthscale.clone()
    models = CandidateModels.from_posterior_samples(model, 5, 3, conditioned=False)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert_close(model.covar_module.lengthscale, before)
    again = CandidateModels.from_posterior_samples(model, 5, 3, conditioned=False)
    assert_close(models.noise_variance, again.noise_variance)
    # The same draws in the units of the model, one after another.
    alone = single_task(outcome_transform=None)
    plain = CandidateModels.from_posterior_samples(alone, 5, 3, conditioned=False)
    models.add(draw(12, 1), 2 + 3 * values(12, 3))
    Z = draw(5, 2)
    mean, std = models.mean_and_std(Z)
    for i in range(5):
        one = single_task(**kwargs)
        one.likelihood.noise = plain.noise_variance[i]
        one.covar_module.lengthscale = plain.single(i).kernel.lengthscale.detach()
        one.mean_module.constant = model.mean_module.constant.detach()
        one.eval()
        with torch.no_grad():
            posterior = one.posterior(Z)
        assert_close(mean[i], posterior.mean[:, 0], **EXACT)
        assert_close(std[i].square(), posterior.variance[:, 0], **EXACT)
    lengthscales = plain.parts[0].model.kernel.lengthscale
    assert lengthscales.shape == (5, 1, 3)
    assert len(torch.unique(lengthscales)) == 15


def one_lengthscale(n=10, **kwargs):
    """A GP whose only unknown number is the lengthscale, and its data."""
    g = torch.Generator().manual_seed(4)
    X = torch.rand(n, 1, generator=g, dtype=torch.float64)
    Y = (4 * X).sin() + 0.1 * torch.randn(n, 1, generator=g, dtype=torch.float64)
    kernel = RBFKernel(lengthscale_prior=LogNormalPrior(0.0, 1.0)).double()
    likelihood = single_likelihood()
    likelihood.noise = 0.01
    options = {"covar_module": kernel, "likelihood": likelihood, "mean_module": ZeroMean()}
    return SingleTaskGP(X, Y, outcome_transform=None, **options, **kwargs), X, Y[:, 0]


def test_draws_are_those_of_the_posterior_given_the_data():
    """Beside the posterior of the lengthscale on a grid, which is far from the prior."""
    model, X, y = one_lengthscale()
    grid = torch.linspace(-4, 3, 1401, dtype=torch.float64)
    squares = (X - X.mT).square()
    K = (-squares / (2 * (2 * grid).exp()[:, None, None])).exp()
    K = K + 0.01 * torch.eye(len(y), dtype=torch.float64)
    quadratic = torch.linalg.solve(K, y.expand(len(K), -1).unsqueeze(-1)).squeeze(-1) @ y
    log_posterior = -0.5 * (quadratic + torch.logdet(K) + grid.square())
    weights = log_posterior.softmax(dim=0)
    mean = float(weights @ grid)
    std = float((weights @ (grid - mean).square()).sqrt())
    models = CandidateModels.from_posterior_samples(model, 64, seed=0)
    draws = models.parts[0].model.kernel.lengthscale.flatten().log()
    assert abs(mean) > 3 * std / 2  # the prior is elsewhere
    # 512 draws from the prior, of which some 150 count.
    assert abs(float(draws.mean()) - mean) < 5 * std / math.sqrt(100)
    assert 0.6 * std < float(draws.std()) < 1.5 * std


def test_draws_that_do_not_bear_the_data_are_warned_of():
    """Of draws over many orders of magnitude next to none predicts 60 observations."""
    model, _, _ = one_lengthscale(60)
    prior = LogNormalPrior(-2.0, 30.0)
    model.covar_module.register_prior("lengthscale_prior", prior, "lengthscale")
    CandidateModels.from_posterior_samples(model, 16, conditioned=False)
    with pytest.warns(PriorDrawsWarning, match="16 samples have an effective size of "):
        CandidateModels.from_posterior_samples(model, 16)


def test_a_model_without_data_gives_draws_from_its_priors_and_says_so():
    model, _, _ = one_lengthscale()
    empty = deepcopy(model)
    empty.train_inputs, empty.train_targets = None, None
    with pytest.warns(PriorDrawsWarning, match="model has no data"):
        models = CandidateModels.from_posterior_samples(empty, 5, seed=3)
    plain = CandidateModels.from_posterior_samples(model, 5, seed=3, conditioned=False)
    expected = plain.parts[0].model.kernel.lengthscale
    assert_close(models.parts[0].model.kernel.lengthscale, expected)


def bad_models():
    X, Y = draw(8, 1), values(8, 1).unsqueeze(-1)
    plain = RBFKernel().double()
    yield "fitted", SaasFullyBayesianSingleTaskGP(X, Y)
    yield "either", SingleTaskGP(X, Y, covar_module=plain, likelihood=single_likelihood())
    yield "one output", SingleTaskGP(X, Y.expand(8, 2) + X[:, :2])
    yield "input transform", SingleTaskGP(X, Y, input_transform=warp())
    yield "outcome transform", SingleTaskGP(X, Y.exp(), outcome_transform=Log())
    yield (
        "RBF or Matern",
        SingleTaskGP(X, Y, covar_module=LinearKernel(), input_transform=Normalize(3)),
    )
    yield "noise variance at every point", SingleTaskGP(X, Y, Y.exp())
    yield "constant prior mean", SingleTaskGP(X, Y, mean_module=linear_mean())


def single_likelihood():
    return GaussianLikelihood().double()


def linear_mean():
    return LinearMean(3).double()


def warp():
    return Warp(3, indices=[0], bounds=BOX)


def test_models_without_draws_are_refused():
    for message, model in bad_models():
        with pytest.raises(ValueError, match=message):
            CandidateModels.from_posterior_samples(model)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("values", lambda: CandidateModels.lengthscales(RBFKernel(), [0.1, -1], 0.1)),
        ("number", lambda: CandidateModels.lengthscales(RBFKernel(), [], 0.1)),
        ("twice", lambda: CandidateModels.lengthscales(RBFKernel(), [1.0, 1.0], 0.1)),
        ("got 2", lambda: CandidateModels.lengthscales(RBFKernel() + RBFKernel(), [1.0], 0.1)),
        ("got 0", lambda: CandidateModels.lengthscales(LinearKernel(), [1.0], 0.1)),
        (
            "columns",
            lambda: CandidateModels.lengthscales(RBFKernel(ard_num_dims=3), [[1.0, 2.0]], 0.1),
        ),
        (
            "constraint",
            lambda: CandidateModels.lengthscales(
                RBFKernel(lengthscale_constraint=Interval(0.1, 1.0)), [0.5, 2.0], 0.1
            ),
        ),
        ("PeriodicKernel", lambda: CandidateModels.periods(RBFKernel(), [1.0], 0.1)),
        ("values", lambda: CandidateModels.noise_variances(RBFKernel(), [0.0])),
        ("values", lambda: CandidateModels.noise_variances(RBFKernel(), [[0.1, 0.2]])),
        ("dim", lambda: CandidateModels.additive(RBFKernel(), "all", 0.1, 8)),
        ("num", lambda: CandidateModels.additive(RBFKernel(), "trees", 0.1, 3)),
        ("num", lambda: CandidateModels.additive(RBFKernel(), "trees", 0.1, 3, 4)),
        ("all", lambda: CandidateModels.additive(RBFKernel(), "tree", 0.1, 3)),
        ("RBF or a Matern", lambda: CandidateModels.growing(PeriodicKernel(), 1.0, 0.1, 2)),
        ("lengthscale_0", lambda: CandidateModels.growing(RBFKernel(), -1.0, 0.1, 2)),
        (
            "growth",
            lambda: CandidateModels.growing(RBFKernel(), 1.0, 0.1, 2, growth=lambda t: 0.0),
        ),
        ("std", lambda: CandidateModels(RBFKernel(), 0.02).with_nugget(-0.1)),
    ],
)
def test_bad_sets(name, make):
    with pytest.raises(ValueError, match=name):
        make()


# --- twins with a nugget --------------------------------------------------------------------------


def test_twins_are_the_models_with_a_nugget():
    grid, s = [0.3, 2.7], 0.4
    models = CandidateModels.lengthscales(RBFKernel(), grid, 0.02, means=lambda X: X[..., 0])
    both = models.with_nugget(s)
    plain = ["lengthscale 0.3", "lengthscale 2.7"]
    assert both.names == [*plain, *(f"{name}, nugget 0.4" for name in plain)]
    assert models.names == plain
    assert both.lengthscales_of is None
    X, Z = draw(8, 0), draw(4, 1)
    X = torch.cat([X, X[:3]])  # some twice
    Y = values(11, 2)
    both.add(X, Y)
    points = torch.cat([Z, X[:2]])
    mean, std = both.mean_and_std(points)
    for u, scale in enumerate([*grid, *grid]):
        kernel = rbf(scale)

        def k(A, B, kernel=kernel, nugget=s**2 * (u > 1)):
            same = (A.unsqueeze(1) == B.unsqueeze(0)).all(dim=-1)
            return kernel(A, B).to_dense().detach() + nugget * same

        system = k(X, X) + 0.02 * torch.eye(11)
        weights = torch.linalg.solve(system, Y - X[:, 0])
        assert_close(mean[u], points[:, 0] + k(points, X) @ weights, **EXACT)
        variance = k(points, points) - k(points, X) @ torch.linalg.solve(system, k(X, points))
        assert_close(std[u], variance.diagonal().sqrt(), **EXACT)
        gain = 0.5 * torch.linalg.slogdet(system / 0.02).logabsdet
        assert_close(both.information_gain()[u], gain, **EXACT)


def test_twins_of_twins_take_the_width_of_the_first():
    models = CandidateModels.lengthscales(RBFKernel(), [0.3, 2.7], 0.02)
    four = models.with_nugget(0.1).with_nugget(0.2)
    for each in (models, four):
        each.add(draw(9, 0), values(9, 2))
    width = SelfNormalized(1.0, 0.1, 0.1)
    expected = models.width(width, 10)
    assert_close(four.width(width, 10), expected.repeat(4), **EXACT)
    several = [SelfNormalized(1.0 + i, 0.1, 0.1) for i in range(8)]
    shift = torch.arange(8.0).double()
    assert_close(four.width(several, 10), expected.repeat(4) + shift, **EXACT)
    # Without its plain model a twin has its own.
    left = four.select([0, 3])
    own = 1 + 0.1 * ((2 * math.log(10) + 2 * left.information_gain()[1]) / 0.02).sqrt()
    assert_close(left.width(width, 10), torch.stack([expected[0], own]), **EXACT)


def test_what_can_have_no_twins_says_so():
    growing = CandidateModels.growing(RBFKernel(), 2.0, 0.02, dim=2)
    known = CandidateModels(RBFKernel(), 0.02)
    known.add(draw(3, 0), values(3, 1))
    moved = KernelGP(RBFKernel(), 0.02, outcome_transform=Standardize(1))
    for models in (growing, known, CandidateModels.of(moved)):
        with pytest.raises(ValueError, match="with_nugget adds twins only"):
            models.with_nugget(0.1)
