"""What OptimisticStrategy computes, against dense algebra; test_replay.py checks its picks."""

import math

import pytest
import torch
from botorch.acquisition import UpperConfidenceBound
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch.testing import assert_close

from botorch_ext import algorithms
from botorch_ext.domains import FiniteSet
from botorch_ext.exceptions import KernelBoundWarning
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Abandoned, Asked, OptimisticStrategy, Told
from botorch_ext.testing.nearness import assert_near
from tests.helpers import devices, pairwise, steps_on, tolerance
from tests.oracles.posterior import dense_information_gain, dense_posterior, self_normalized_width
from tests.strategies.sessions import (
    LAMBDA,
    MINIMUM,
    POLICIES,
    WIDTH,
    all_policies,
    both_domains,
    box,
    data,
    f,
    finite,
    kernel,
    make,
    plain,
    play,
    script,
    snapshot,
)

TOL = tolerance(torch.float64)


def believed(events, policy, initial=None):
    """By the definition of each policy: the rows the mean sees, their values, and the rows the
    standard deviation and the width see."""
    timeout = POLICIES[policy].get("timeout", math.inf)
    num_asked, x, y, late, gone = 0, {}, {}, set(), set()
    for event in events:
        match event:
            case Asked(trial):
                x[trial.id] = trial.x
                num_asked += 1
            case Told(id, value):
                y[id] = value
                if num_asked > id + timeout + 1:  # the ask of step s + m + 1 came first
                    late.add(id)
            case Abandoned(id):
                gone.add(id)
    kept = [id for id in x if id not in gone]
    told = [id for id in kept if id in y]
    seen = told if policy == "ignore" else kept
    if policy in ("censor", "timeout"):
        told = kept
        y = {id: y[id] if id in y and id not in late else MINIMUM for id in kept}
    X0, Y0 = data(box(), 0) if initial is None else initial

    def rows(ids):
        return torch.cat([X0, *(x[id][None] for id in ids)])

    return rows(told), torch.cat([Y0, Y0.new_tensor([y[id] for id in told])]), rows(seen)


def dense_upper_bound(events, policy, Z, initial=None):
    """mean, std and width at Z, by dense algebra."""
    X, y, seen = believed(events, policy, initial)
    mean, std = Z.new_zeros(len(Z)), Z.new_ones(len(Z))
    gain = told_gain = 0.0
    if len(X):
        mean = dense_posterior(kernel(), X, y, Z, LAMBDA)[0]
        told_gain = dense_information_gain(kernel(), X, LAMBDA)
    if len(seen):
        covariance = dense_posterior(kernel(), seen, seen.new_zeros(len(seen)), Z, LAMBDA)[1]
        std = covariance.diagonal().clamp_min(0).sqrt()
        gain = dense_information_gain(kernel(), seen, LAMBDA)
    width = self_normalized_width(1.5, 0.1, 0.1, LAMBDA, gain)
    width += 0.05 * math.sqrt(len(seen) + 1) / math.sqrt(LAMBDA)
    if policy == "inflate":
        width *= math.exp(gain - told_gain)
    return mean, std, width


# --- picks on a box -------------------------------------------------------------------------------


@all_policies
def test_no_point_of_a_fine_grid_beats_a_pick_on_a_box(policy):
    initial = data(box(), 3)
    strategy = make(box(), policy, initial=initial)
    play(strategy, script(36, seed=21))
    side = [torch.linspace(*side, 21, dtype=torch.float64) for side in box().bounds.T.tolist()]
    grid = torch.cartesian_prod(*side)
    num_asked = 0
    for i, event in enumerate(strategy.events):
        if not isinstance(event, Asked):
            continue
        trial = event.trial
        Z = torch.cat([trial.x[None], grid])
        mean, std, width = dense_upper_bound(strategy.events[:i], policy, Z, initial)
        assert trial.info["width"] == pytest.approx(width, rel=1e-8)
        assert trial.info["mean"] == pytest.approx(mean[0].item(), rel=1e-6, abs=1e-7)
        assert trial.info["std"] == pytest.approx(std[0].item(), rel=1e-6, abs=1e-7)
        scores = mean + width * std
        assert scores[1:].max().item() <= scores[0].item() + 1e-7
        num_asked += 1
    assert num_asked > 15


# --- initial data ---------------------------------------------------------------------------------


@both_domains
@pytest.mark.parametrize("column", [False, True])
def test_initial_data_is_the_same_data_in_the_model(domain, column, device):
    points = domain(device=device)
    X, Y = data(points, 7)
    given = make(points, initial=(X, Y[:, None] if column else Y))
    model = KernelGP(kernel(), LAMBDA, device=device)
    model.add(X, Y)
    told = OptimisticStrategy(points, model, WIDTH, seed=5)
    expected = dense_posterior(kernel(), X.cpu(), Y.cpu(), finite().points, LAMBDA)
    for strategy in (given, told):
        posterior = strategy.posterior
        if domain is finite:
            mean, variance = posterior.mean, posterior.variance
        else:
            mean, std = posterior.mean_and_std(finite().points.to(device))
            variance = std.square()
        assert_close(mean.cpu(), expected[0], **TOL)
        assert_close(variance.cpu(), expected[1].diagonal(), **TOL)
        assert strategy.report()["t"] == 8
        gain = dense_information_gain(kernel(), X.cpu(), LAMBDA)
        width = self_normalized_width(1.5, 0.1, 0.1, LAMBDA, gain)
        width += 0.05 * math.sqrt(8) / math.sqrt(LAMBDA)  # t = 8
        assert strategy.ask().info["width"] == pytest.approx(width, rel=1e-9)
    # On a box the evaluated points join the screening, so there only the value is the same.
    a, b = given.history.trials[0], told.history.trials[0]
    if domain is finite:
        assert_near(plain(Asked(a)), plain(Asked(b)))
    for key in ("mean", "std"):
        assert a.info[key] == pytest.approx(b.info[key], abs=1e-5)


@both_domains
def test_initial_data_and_initial_points_both_count_as_steps(domain):
    strategy = make(domain(), initial=data(domain(), 4), num_initial=3)
    for trial in strategy.ask(3):
        strategy.tell(trial.id, 0.1)
    assert strategy.report()["t"] == 8
    X, _, _ = believed(strategy.events, "hallucinate", strategy.initial)
    gain = dense_information_gain(kernel(), X, LAMBDA)
    width = self_normalized_width(1.5, 0.1, 0.1, LAMBDA, gain) + 0.05 * math.sqrt(8 / LAMBDA)
    assert strategy.ask().info["width"] == pytest.approx(width, rel=1e-9)


@both_domains
def test_the_given_model_stays_as_it_is(domain):
    model = KernelGP(kernel(), LAMBDA)
    X, Y = data(domain(), 4)
    model.add(X, Y)
    strategy = OptimisticStrategy(domain(), model, 2.0, initial=data(domain(), 3, seed=2))
    play(strategy, script(20, seed=0))
    assert model.num_observations == 4
    assert_close(model.mean_and_std(X)[0], dense_posterior(kernel(), X, Y, X, LAMBDA)[0], **TOL)


# --- best and report ------------------------------------------------------------------------------


@pairwise(domain=[finite, box], policy=POLICIES, with_data=[False, True])
def test_best_is_the_evaluated_point_with_the_highest_mean(domain, policy, with_data):
    initial = data(domain(), 3) if with_data else None
    strategy = make(domain(), policy, initial=initial)
    compared = 0
    for action in script(40, seed=31):
        play(strategy, [action])
        told = [e.id for e in strategy.events if isinstance(e, Told)]
        if not told or not strategy.pending or compared >= 6:
            continue
        X = torch.stack([strategy.history.trials[id].x for id in told])
        if initial is not None:
            X = torch.cat([initial[0], X])
        rows, y, _ = believed(strategy.events, policy, initial)
        mean = dense_posterior(kernel(), rows, y, X, LAMBDA)[0]
        x, best = strategy.best()
        assert best == pytest.approx(mean.max().item(), rel=1e-7, abs=1e-7)
        assert mean[(X == x).all(dim=-1)].max().item() == pytest.approx(best, rel=1e-7, abs=1e-7)
        compared += 1
    assert compared == 6


def test_before_anything_is_evaluated_there_are_no_means(device):
    domain = FiniteSet([[0.0], [1.0]], device=device)
    model = KernelGP(MaternKernel(), 1e-2, device=device)
    assert OptimisticStrategy(domain, model, width=2.0).evaluated_means().shape == (0,)


@all_policies
def test_report_states_the_policy_and_the_width(policy):
    strategy = make(finite(), policy)
    play(strategy, script(50, seed=41))
    strategy.ask()
    report = strategy.report()
    _, _, seen = believed(strategy.events, policy)
    _, _, width = dense_upper_bound(strategy.events, policy, finite().points[:1])
    assert report["t"] == len(seen) + 1
    assert report["current_width"] == pytest.approx(width, rel=1e-8)
    gain = dense_information_gain(kernel(), seen, LAMBDA)
    assert report["information_gain"] == pytest.approx(gain, rel=1e-8)
    assert report["pending_policy"] == POLICIES[policy]["pending"]
    assert report["inflated"] == (policy == "inflate")
    inner = {"name": "SelfNormalized", "rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.1}
    assert report["width"] == {"name": "Enlarged", "width": inner, "misspecification": 0.05}
    assert report["jittered_rows"] == 0


@both_domains
@all_policies
def test_a_report_and_the_next_question_agree(domain, policy):
    strategy = make(domain(), policy)
    assert strategy.report()["t"] == 1
    for num_pending in range(3):
        report = strategy.report()
        assert report["t"] == (1 if policy == "ignore" else num_pending + 1)
        assert strategy.ask().info["width"] == report["current_width"]


def test_jittered_rows_are_counted():
    model = KernelGP(kernel(), 1e-16)
    X, Y = data(finite(), 1)
    strategy = OptimisticStrategy(finite(), model, 1.0, initial=(X.repeat(3, 1), Y.repeat(3)))
    assert strategy.report()["jittered_rows"] == 2
    assert math.isfinite(strategy.ask().info["std"])


# --- pending --------------------------------------------------------------------------------------


@both_domains
def test_a_timeout_of_m_steps_ends_at_the_ask_of_step_s_plus_m_plus_1(domain):
    m = POLICIES["timeout"]["timeout"]
    for num_asked, in_time in ((m + 1, True), (m + 2, False)):
        strategy = make(domain(), "timeout")
        first = strategy.ask(num_asked)[0]  # the last ask was that of step num_asked - 1
        strategy.tell(first.id, 0.9)
        assert strategy.report()["told_too_late"] == ([] if in_time else [0])
        assert strategy.history.values == {0: 0.9}
        assert 0 not in strategy.pending
        for trial in strategy.ask(2):  # and it stays so
            strategy.tell(trial.id, 0.0)
        X, y, _ = believed(strategy.events, "timeout")
        assert y[0].item() == (0.9 if in_time else MINIMUM)
        if domain is finite:
            mean = strategy.posterior.mean[first.info["index"]]
        else:
            mean = strategy.posterior.mean_and_std(first.x[None])[0][0]
        assert_close(mean, dense_posterior(kernel(), X, y, first.x[None], LAMBDA)[0][0], **TOL)


def test_ignoring_pending_trials_asks_the_same_again():
    strategy = make(finite(), "ignore", initial=data(finite(), 4))
    trials = strategy.ask(3)
    assert [t.info for t in trials] == [trials[0].info] * 3
    strategy.abandon(0)
    assert strategy.ask().info == trials[0].info
    strategy.tell(1, 0.2)
    assert strategy.ask().info["width"] > trials[0].info["width"]


@both_domains
@pytest.mark.parametrize("policy", sorted(POLICIES.keys() - {"timeout"}))  # which censors for ever
def test_giving_up_everything_that_pends_leaves_the_told_data(domain, policy):
    strategy = make(domain(), policy)
    play(strategy, script(40, seed=51))
    for id in strategy.pending:
        strategy.abandon(id)
    told = [e for e in strategy.events if isinstance(e, Told)]
    X = torch.stack([strategy.history.trials[e.id].x for e in told])
    y = X.new_tensor([e.value for e in told])
    Z = finite().points
    mean, covariance = dense_posterior(kernel(), X, y, Z, LAMBDA)
    if domain is finite:
        got = strategy.posterior.mean, strategy.posterior.std
    else:
        got = strategy.posterior.mean_and_std(Z)
    assert_close(got[0], mean, **TOL)
    assert_close(got[1], covariance.diagonal().sqrt(), **TOL)
    assert strategy.report()["t"] == len(told) + 1


# --- seeds ----------------------------------------------------------------------------------------


def test_plateaus_on_a_box_are_broken_by_the_seed():
    # Before any observation a stationary prior is the same everywhere.
    firsts = [tuple(make(box(), seed=seed).ask().x.tolist()) for seed in (0, 0, 1, 2)]
    assert firsts[0] == firsts[1]
    assert len(set(firsts)) == 3


def test_plateaus_of_a_finite_set_go_to_the_first_candidate():
    for seed in (0, 1):
        strategy = make(finite(), seed=seed)
        assert strategy.ask().info["index"] == 0
    # A symmetric kernel leaves mirror images tied after a point in the middle.
    line = FiniteSet(torch.tensor([[3.0], [2.0], [4.0], [1.0], [5.0]]).double())
    one = MaternKernel(nu=2.5).double()
    strategy = OptimisticStrategy(line, KernelGP(one, LAMBDA), 2.0)
    strategy.tell(strategy.ask().id, 0.0)
    scores = strategy.posterior.mean + 2.0 * strategy.posterior.std
    assert scores[3] == scores[4] == scores.max()
    assert strategy.ask().info["index"] == 3


# --- dtypes, devices, kernels ---------------------------------------------------------------------


@pairwise(
    domain=[finite, box],
    policy=POLICIES,
    dtype=[torch.float64, torch.float32],
    device=devices(),
)
def test_trials_follow_dtype_and_device_of_the_domain(domain, policy, dtype, device):
    points = domain(device=device).to(dtype=dtype)
    strategy = make(points, policy, initial=data(points, 3), num_initial=2)
    play(strategy, script(steps_on(device, 15), seed=71))
    for trial in strategy.history.trials:
        assert (trial.x.dtype, trial.x.device) == (points.dtype, points.device)
        assert bool(points.contains(trial.x).all())
        assert all(type(value) in (bool, int, float) for value in trial.info.values())
    x, mean = strategy.best()
    assert (x.dtype, x.device) == (points.dtype, points.device)
    assert type(mean) is float


@both_domains
def test_float32_agrees_with_float64(domain):
    points = domain().to(dtype=torch.float32)
    strategy = make(points, initial=data(points, 20))
    X, Y = (tensor.double() for tensor in data(points, 20))
    expected = dense_posterior(kernel(), X, Y, X, LAMBDA)[0].max()
    assert_close(strategy.best()[1], expected.item(), **tolerance(torch.float32))


@both_domains
def test_a_kernel_above_1_is_warned_of_and_reported(domain):
    large = ScaleKernel(kernel()).double()
    large.outputscale = 1.5
    with pytest.warns(KernelBoundWarning, match=r"kernel must have k\(x, x\) <= 1.*got 1.5"):
        strategy = OptimisticStrategy(domain(), KernelGP(large, LAMBDA), 2.0)
    (line,) = strategy.report()["warnings"]
    assert "kernel" in line
    strategy.tell(strategy.ask().id, 0.5)  # a warning, no more


@pytest.mark.filterwarnings("ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning")
def test_a_frozen_botorch_model_with_transforms_is_optimised_on_a_box():
    X, Y = data(box(), 12)
    gp = SingleTaskGP(
        X,
        40 + 7 * Y[:, None],
        outcome_transform=Standardize(1),
        input_transform=Normalize(2, bounds=box().bounds),
    )
    gp.covar_module.lengthscale = 0.3
    gp.likelihood.noise = 0.05
    strategy = OptimisticStrategy(box(), KernelGP.from_botorch(gp), 2.0, seed=0)
    grid = box().sample(1024, seed=1)
    for _ in range(3):
        trial = strategy.ask()
        ucb = UpperConfidenceBound(gp, beta=4.0)
        picked = ucb(trial.x[None]).item()
        assert ucb(grid[:, None]).max().item() <= picked + 1e-6
        assert picked == pytest.approx(trial.info["mean"] + 2 * trial.info["std"], rel=1e-6)
        value = 40 + 7 * f(trial.x)
        strategy.tell(trial.id, value)
        gp = gp.condition_on_observations(trial.x[None], torch.tensor([[value]]).to(X))
    told = torch.stack([trial.x for trial in strategy.history.trials])
    assert strategy.best()[1] == pytest.approx(gp.posterior(told).mean.max().item(), rel=1e-6)


@pytest.mark.parametrize("device", devices()[1:], indirect=True)
@both_domains
def test_a_model_elsewhere_is_refused(domain, device):
    with pytest.raises(ValueError, match=r"model must be .* on cuda:0, got .* on cpu"):
        OptimisticStrategy(domain(device=device), KernelGP(kernel(), LAMBDA), 2.0)


@pytest.mark.parametrize("policy", ["ignore", "inflate", "timeout"])
@pytest.mark.parametrize(
    ("method", "own"),
    [("gp_ucb", {}), ("igp_ucb", {}), ("ec_gp_ucb", {"misspecification": 0.1})],
)
def test_every_optimistic_method_takes_every_pending_policy(method, own, policy):
    numbers = {"noise_variance": LAMBDA, "rkhs_bound": 1.5, "noise_std": 0.1}
    options = POLICIES[policy]
    strategy = getattr(algorithms, method)(finite(), kernel(), **numbers, **own, **options)
    twin = OptimisticStrategy(finite(), KernelGP(kernel(), LAMBDA), strategy.width, **options)
    for s in (strategy, twin):
        play(s, script(30, seed=81))
    assert snapshot(strategy) == snapshot(twin)
    assert strategy.report()["inflated"] == ("inflate" in options)
    assert bool(strategy.report()["told_too_late"]) == ("timeout" in options)
