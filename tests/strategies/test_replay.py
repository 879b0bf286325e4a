"""GP-UCB and its relatives against their definition: each pick is a maximiser of the bound."""

import itertools
import math
import zlib
from itertools import cycle

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel
from torch.testing import assert_close

from botorch_ext import Box, FiniteSet, KernelGP, OptimisticStrategy, algorithms, widths
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import KernelBoundWarning
from tests.helpers import matern, rbf, tolerance
from tests.oracles.posterior import dense_posterior, self_normalized_width
from tests.strategies import sessions
from tests.strategies.adaptive.judged import check
from tests.strategies.sessions import LAMBDA, POLICIES, box, data, f, finite, grid, play

B, SIGMA, DELTA, EPS = 1.5, 0.1, 0.1, 0.05
NUMBERS = {"noise_variance": LAMBDA, "rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}
KERNELS = {
    "alone": rbf(0.9, 0.5),
    "actions": rbf(0.9, 0.5),
    "tasks": sessions.product(rbf(0.9, 0.5), sessions.task_kernel()),
    "reals": sessions.product(rbf(0.9, 0.5), matern(0.8, 1.5, nu=1.5)),
    "sums": sessions.half_sum(matern(0.8, nu=1.5), rbf(0.8, 1.5)),
}


def self_normalized(model, t, gain):
    return self_normalized_width(B, SIGMA, DELTA, model.noise_variance, gain)


def chowdhury_gopalan(model, t, gain):
    ratio = SIGMA / math.sqrt(model.noise_variance)
    return B + ratio * math.sqrt(2 * (gain + 1 + math.log(1 / DELTA)))


def enlarged(model, t, gain):
    return self_normalized(model, t, gain) + EPS * math.sqrt(t) / math.sqrt(model.noise_variance)


# method: its options, its width written out
METHODS = {
    "gp_ucb": ({}, self_normalized),
    "igp_ucb": ({}, chowdhury_gopalan),
    "ec_gp_ucb": ({"misspecification": EPS}, enlarged),
    "cgp_ucb": ({"misspecification": EPS}, enlarged),
    "gp_bucb": ({}, self_normalized),
    "gp_ucb_sdf": ({}, self_normalized),
}


def make(method, domain, setting, policy, **more):
    kernel, options = KERNELS[setting], {"seed": 5, **NUMBERS, **METHODS[method][0], **more}
    options |= {"context_domain": sessions.SETTINGS[setting].context_domain, **POLICIES[policy]}
    if method == "gp_bucb":
        options.pop("pending")
    if method == "cgp_ucb":
        parts = {"action_kernel": kernel.action_kernel, "context_kernel": kernel.context_kernel}
        combination = "sum" if setting == "sums" else "product"
        return algorithms.cgp_ucb(domain, **parts, combination=combination, **options)
    return getattr(algorithms, method)(domain, kernel, **options)


def _cases():
    """Each policy in two settings, by the methods in turn; those of one policy by themselves."""
    plain, of_contexts = cycle(["gp_ucb", "igp_ucb", "ec_gp_ucb"]), cycle(["cgp_ucb", "igp_ucb"])
    for shift, (i, policy) in itertools.product((0, 2), enumerate(POLICIES)):
        setting = list(sessions.SETTINGS)[(i + shift) % len(sessions.SETTINGS)]
        yield next(of_contexts if sessions.SETTINGS[setting].draw else plain), setting, policy
    yield from (("gp_bucb", "alone", "inflate"), ("gp_bucb", "tasks", "hallucinate"))
    yield from (("gp_ucb_sdf", "actions", "censor"), ("gp_ucb_sdf", "alone", "timeout"))


def replay(method, domain, setting, policy, length, seed, fine=None, **more):
    strategy = make(method, domain, setting, policy, **more)
    played = play(strategy, policy, sessions.SETTINGS[setting], length, seed)
    models = [(KERNELS[setting], LAMBDA, None)]
    check(played, models, METHODS[method][1], initial=more.get("initial"), fine=fine)
    return strategy


@pytest.mark.parametrize(("method", "setting", "policy"), list(_cases()))
def test_every_pick_on_a_set_is_a_maximiser(method, setting, policy):
    seed = zlib.crc32(f"{method} {setting} {policy}".encode()) % 1000
    more = {"initial": data(finite(), 4, setting), "num_initial": 2} if seed % 2 else {}
    strategy = replay(method, finite(), setting, policy, 45, seed, **more)
    assert bool(strategy.report()["told_too_late"]) == (policy == "timeout")


@pytest.mark.parametrize(
    ("method", "setting", "policy"),
    [
        ("gp_ucb", "alone", "inflate"),
        ("cgp_ucb", "tasks", "timeout"),
        ("ec_gp_ucb", "actions", "ignore"),
        ("cgp_ucb", "sums", "censor"),
    ],
)
def test_no_point_of_a_fine_grid_beats_a_pick_on_a_box(method, setting, policy):
    replay(method, box(), setting, policy, 20, 21, grid(21), initial=data(box(), 3, setting))


@sessions.both_domains
def test_data_in_the_model_is_initial_data_and_stays_as_it_is(domain):
    X, Y = data(domain(), 5)
    model = KernelGP(KERNELS["alone"], LAMBDA)
    model.add(X, Y)
    width = widths.Enlarged(widths.SelfNormalized(B, SIGMA, DELTA), EPS)
    told = OptimisticStrategy(domain(), model, width, seed=5)
    given = make("ec_gp_ucb", domain(), "alone", "hallucinate", initial=(X, Y[:, None]))
    mean, _ = dense_posterior(KERNELS["alone"], X, Y, finite().points, LAMBDA)
    for strategy in (told, given):
        assert strategy.report()["t"] == 6
        assert_close(strategy.bands(finite().points)[0][0], mean, **tolerance(torch.float64))
        play(strategy, "hallucinate", length=8)
    for key, value in given.history.trials[0].info.items():
        assert told.history.trials[0].info[key] == pytest.approx(value, abs=1e-5)
    assert model.num_observations == 5
    assert [each.report()["num_initial_data"] for each in (told, given)] == [0, 5]


def test_rows_that_need_jitter_are_counted():
    X, Y = data(finite(), 1)
    model = KernelGP(KERNELS["alone"], 1e-16)
    strategy = OptimisticStrategy(finite(), model, 1.0, initial=(X.repeat(3, 1), Y.repeat(3)))
    assert strategy.report()["jittered_rows"] == 2
    assert math.isfinite(strategy.ask().info["std"])


def test_plateaus_of_a_set_go_to_the_first_candidate_and_of_a_box_by_the_seed():
    # A symmetric kernel leaves mirror images tied after a point in the middle.
    line = FiniteSet(torch.tensor([[3.0], [2.0], [4.0], [1.0], [5.0]]).double())
    strategy = OptimisticStrategy(line, KernelGP(MaternKernel(nu=2.5).double(), LAMBDA), 2.0)
    first = strategy.ask()
    assert first.info["index"] == 0
    strategy.tell(first.id, 0.0)
    assert strategy.ask().info["index"] == 3
    made = [make("gp_ucb", box(), "alone", "ignore", seed=seed) for seed in (0, 0, 1, 2)]
    firsts = [tuple(strategy.ask().x.tolist()) for strategy in made]
    assert firsts[0] == firsts[1] and len(set(firsts)) == 3


@sessions.both_domains
def test_trials_follow_the_dtype_of_the_domain(domain):
    points = domain(dtype=torch.float32)
    strategy = make("gp_ucb", points, "alone", "inflate", initial=data(points, 3), num_initial=2)
    play(strategy, "inflate", length=12, seed=71)
    for x in (strategy.best()[0], *(trial.x for trial in strategy.history.trials)):
        assert x.dtype == torch.float32 and bool(points.contains(x))
    assert type(strategy.best()[1]) is float


def test_points_where_the_bound_is_no_number_are_not_asked():
    strategy = algorithms.cgp_ucb(
        FiniteSet(torch.tensor([[0.9], [0.2], [0.3]], dtype=torch.float64)),
        rbf(0.7),
        noise_variance=0.01,
        width=2.0,
        mean=lambda X: torch.where((X[..., 0] > 0.5) & (X[..., 1] > 0.5), torch.nan, X[..., 0]),
        context_domain=1,
    )
    assert strategy.ask(context=[0.9]).info["index"] == 2


@pytest.mark.filterwarnings("ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning")
def test_a_frozen_botorch_model_with_transforms_is_optimised_on_a_box():
    X, Y = data(box(), 12)
    transforms = {
        "outcome_transform": Standardize(1),
        "input_transform": Normalize(2, bounds=box().bounds),
    }
    gp = SingleTaskGP(X, 40 + 7 * Y[:, None], **transforms)
    gp.covar_module.lengthscale = 0.3
    gp.likelihood.noise = 0.05
    strategy = OptimisticStrategy(box(), KernelGP.from_botorch(gp), 2.0, seed=0)
    for _ in range(2):
        trial, ucb = strategy.ask(), UpperConfidenceBound(gp, beta=4.0)
        picked = ucb(trial.x[None]).item()
        assert ucb(grid(21)[:, None]).max().item() <= picked + 1e-6
        assert picked == pytest.approx(trial.info["mean"] + 2 * trial.info["std"], rel=1e-6)
        value = 40 + 7 * f(trial.x)
        strategy.tell(trial.id, value)
        gp = gp.condition_on_observations(trial.x[None], torch.tensor([[value]]).to(X))
    told = torch.stack([trial.x for trial in strategy.history.trials])
    assert strategy.best()[1] == pytest.approx(gp.posterior(told).mean.max().item(), rel=1e-6)


def test_a_kernel_of_another_dimension_is_refused_where_the_size_becomes_known():
    kernel = sessions.product(rbf(1.0, 2.0), rbf(1.0, 2.0, 3.0))
    numbers = {"noise_variance": LAMBDA, "width": 1.0}
    for space in (2, FiniteSet([[0.1, 0.2], [0.3, 0.4]])):
        with pytest.raises(ValueError, match="kernel"):
            algorithms.gp_ucb(finite(), kernel, context_domain=space, **numbers)
    strategy = algorithms.gp_ucb(finite(), kernel, context_domain=ContextSpace(), **numbers)
    with pytest.raises(ValueError, match="kernel"):
        strategy.ask(context=[0.1, 5.0])
    assert strategy.events == ()
    strategy.ask(context=[0.1, 5.0, 0.2])


@sessions.both_domains
def test_a_kernel_above_1_is_warned_of_once_where_it_shows(domain):
    numbers = {"noise_variance": LAMBDA, "width": 1.0}
    algorithms.gp_ucb(domain(), sessions.scaled(rbf(0.9), 1.0), **numbers)  # warnings are errors
    kernel = sessions.product(rbf(0.9), sessions.scaled(matern(0.8), 1.5))
    with pytest.warns(KernelBoundWarning, match="got 1.5"):
        strategy = algorithms.gp_ucb(domain(), sessions.scaled(rbf(0.9), 1.5), **numbers)
    strategy.tell(strategy.ask().id, 0.5)  # a warning, no more
    with pytest.warns(KernelBoundWarning, match="got 1.5"):
        algorithms.gp_ucb(domain(), kernel, context_domain=Box([[0.0], [1.0]]), **numbers)
    strategy = algorithms.gp_ucb(domain(), kernel, context_domain=ContextSpace(), **numbers)
    with pytest.warns(KernelBoundWarning, match="got 1.5"):
        strategy.ask(context=2.0)
    strategy.ask(context=3.0)
    assert len(strategy.report()["warnings"]) == 1
