"""What bad input gets: an error that names the argument, before anything has changed."""

import math
import warnings

import pytest
import torch
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import RBFKernel, ScaleKernel

from botorch_ext import Box, FiniteSet, KernelGP, OptimisticStrategy, algorithms, run, simulate
from botorch_ext.exceptions import KernelBoundWarning, OutsideDomainError, UnknownTrialError
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import Asked
from tests.strategies.sessions import (
    LAMBDA,
    both_domains,
    box,
    data,
    finite,
    kernel,
    make,
    plain,
    play,
    script,
    snapshot,
)

NAN, INF = math.nan, math.inf
METHODS = {
    "gp_ucb": {},
    "igp_ucb": {},
    "ec_gp_ucb": {"misspecification": 0.1},
    "gp_bucb": {},
    "gp_ucb_sdf": {"minimum": -1.0},
}
NUMBERS = {"noise_variance": LAMBDA, "rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.1}
every_method = pytest.mark.parametrize("method", METHODS)


def build(method, domain=None, k=None, without=(), **changed):
    options = {**NUMBERS, **METHODS[method], **changed}
    for name in without:
        del options[name]
    domain = finite() if domain is None else domain
    return getattr(algorithms, method)(domain, kernel() if k is None else k, **options)


# --- calls on a strategy: refused, and nothing has changed ----------------------------------------

CALLS = {
    "NaN observation": (
        lambda s: s.tell(3, NAN),
        "value must be finite, got nan for trial 3",
    ),
    "infinite observation": (
        lambda s: s.tell(3, INF),
        "value must be finite, got inf for trial 3",
    ),
    "NaN observation as a tensor": (
        lambda s: s.tell(3, torch.tensor(NAN)),
        "value must be finite, got nan",
    ),
    "several values": (
        lambda s: s.tell(3, [0.1, 0.2]),
        r"value must be one number, got \[0.1, 0.2\] for trial 3",
    ),
    "unknown trial": (
        lambda s: s.tell(4, 0.1),
        "id must be one of the pending trials, got 4: unknown",
    ),
    "told twice": (
        lambda s: s.tell(0, 0.1),
        r"id must be one of the pending trials, got 0: already told \(0.5\)",
    ),
    "told after it was given up": (
        lambda s: s.tell(2, 0.1),
        "id must be one of the pending trials, got 2: abandoned",
    ),
    "given up after it was told": (
        lambda s: s.abandon(0),
        "id must be one of the pending trials, got 0: already told",
    ),
    "given up twice": (
        lambda s: s.abandon(2),
        "id must be one of the pending trials, got 2: abandoned",
    ),
    "an unknown trial given up": (
        lambda s: s.abandon(-1),
        "id must be one of the pending trials, got -1: unknown",
    ),
    "no id at all": (
        lambda s: s.tell(None, 0.1),
        "id must be .*got None",
    ),
    "run with a fraction of a trial": (
        lambda s: run(s, lambda x: 0.0, 9.5, progress=False),
        "num_trials must be a whole number, got 9.5",
    ),
    "simulate for a fraction of a step": (
        lambda s: simulate(s, problem(s.domain), "5"),
        "horizon must be a whole number, got '5'",
    ),
    "no questions": (
        lambda s: s.ask(0),
        "num_trials must be at least 1, got 0",
    ),
    "a negative number of questions": (
        lambda s: s.ask(-2),
        "num_trials must be at least 1, got -2",
    ),
    "run with no trials": (
        lambda s: run(s, lambda x: 0.0, 0, progress=False),
        "num_trials must be at least 1, got 0",
    ),
    "run with no trial under way": (
        lambda s: run(s, lambda x: 0.0, 9, max_pending=0, progress=False),
        "max_pending must be at least 1, got 0",
    ),
    "run with several under way in one thread": (
        lambda s: run(s, lambda x: 0.0, 9, max_pending=2, progress=False),
        "max_pending must be 1 without an executor, got 2",
    ),
    "run with negative retries": (
        lambda s: run(s, lambda x: 0.0, 9, max_retries=-1, progress=False),
        "max_retries must be at least 0, got -1",
    ),
    "run with a NaN for failures": (
        lambda s: run(s, lambda x: 0.0, 9, failure_value=NAN, progress=False),
        "failure_value must be finite, got nan",
    ),
    "run with a number of workers": (
        lambda s: run(s, lambda x: 0.0, 9, executor=4, max_pending=4, progress=False),
        "executor must be .*got 4",
    ),
    "simulate for no step": (
        lambda s: simulate(s, problem(s.domain), 0),
        "horizon must be at least 1, got 0",
    ),
    "simulate with negative noise": (
        lambda s: simulate(s, problem(s.domain), 5, noise_std=-0.1),
        "noise_std must be non-negative and finite, got -0.1",
    ),
    "simulate with a negative delay": (
        lambda s: simulate(s, problem(s.domain), 5, delay=-1),
        "delay must be .*got -1",
    ),
    "simulate a problem of unknown maximum": (
        lambda s: simulate(s, WithoutOptimum(s.domain), 5),
        "problem must have a known optimal_value",
    ),
    "simulate a problem of another dimension": (
        lambda s: simulate(s, problem(Box([[1.0], [2.0]])), 5),
        "problem must have .* dimension 2, got 1",
    ),
}


def problem(domain):
    return RKHSFunction(RBFKernel().double(), domain.sample(3, 0), [1.0, -1.0, 0.5], domain)


class WithoutOptimum:
    noise_std, optimal_value, optimizer = 0.1, None, None

    def __init__(self, domain):
        self.domain = domain

    def __call__(self, X):
        return X.sum(dim=-1)


@both_domains
@pytest.mark.parametrize("case", CALLS)
def test_a_refused_call_changes_nothing(case, domain):
    strategy, twin = make(domain()), make(domain())
    for s in (strategy, twin):
        s.ask(4)
        s.tell(0, 0.5)
        s.abandon(2)
        s.tell(1, -0.1)
    call, message = CALLS[case]
    before = snapshot(strategy)
    with pytest.raises(ValueError, match=message) as raised:
        call(strategy)
    assert isinstance(raised.value, UnknownTrialError) == (
        "pending trials" in message or (case == "no id at all")
    )
    assert snapshot(strategy) == before
    strategy.tell(3, 0.1)  # nor anything that does not show
    twin.tell(3, 0.1)
    assert plain(Asked(strategy.ask())) == plain(Asked(twin.ask()))


# --- making a strategy ----------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("noise_variance", 0.0, "positive and finite, got 0.0"),
        ("noise_variance", -0.1, "positive and finite, got -0.1"),
        ("noise_variance", NAN, "positive and finite, got nan"),
        ("rkhs_bound", -1.0, "non-negative and finite, got -1.0"),
        ("rkhs_bound", INF, "non-negative and finite, got inf"),
        ("rkhs_bound", None, "given unless width is, got None"),
        ("noise_std", 0.0, "positive and finite, got 0.0"),
        ("noise_std", -0.1, "positive and finite, got -0.1"),
        ("noise_std", NAN, "positive and finite, got nan"),
        ("noise_std", None, "given unless width is, got None"),
        ("delta", 0.0, r"in \(0, 1\), got 0.0"),
        ("delta", 1.0, r"in \(0, 1\), got 1.0"),
        ("delta", -0.5, r"in \(0, 1\), got -0.5"),
        ("delta", NAN, r"in \(0, 1\), got nan"),
        ("num_initial", -1, "at least 0, got -1"),
        ("num_initial", "2", "a whole number, got '2'"),
        ("num_initial", 1.5, "a whole number, got 1.5"),
        ("seed", "2", "a whole number, got '2'"),
        ("seed", None, "a whole number, got None"),
        ("noise_variance", "2", "one number, got '2'"),
        ("noise_variance", None, "one number, got None"),
        ("pending", "wait", "got 'wait'"),
    ],
)
def test_impossible_arguments_are_named(method, name, value, allowed):
    with pytest.raises(ValueError, match=f"{name} must be .*{allowed}"):
        build(method, **{name: value})


@every_method
@pytest.mark.parametrize("name", ["rkhs_bound", "noise_std"])
def test_the_numbers_of_a_width_are_needed_without_one(method, name):
    with pytest.raises(ValueError, match=f"{name} must be given unless width is, got None"):
        build(method, without=[name])
    strategy = build(method, without=["rkhs_bound", "noise_std", "delta"], width=2.0)
    assert strategy.ask().info["width"] >= 2.0


@every_method
def test_an_impossible_width_is_refused(method):
    with pytest.raises(ValueError, match=r"must be non-negative and finite, got -1.0"):
        build(method, width=-1.0)


PENDING = {
    "ignore": {},
    "hallucinate": {"inflate": True},
    "censor": {"minimum": -2.5, "timeout": 3},
}


@pytest.mark.parametrize("pending", PENDING)
@pytest.mark.parametrize("method", ["gp_ucb", "igp_ucb", "ec_gp_ucb"])
def test_every_optimistic_method_takes_every_pending_policy(method, pending):
    options = {"pending": pending, **PENDING[pending]}
    strategy = build(method, **options)
    twin = OptimisticStrategy(finite(), KernelGP(kernel(), LAMBDA), strategy.width, **options)
    for s in (strategy, twin):
        play(s, script(30, seed=81))
    assert snapshot(strategy) == snapshot(twin)
    assert strategy.report()["inflated"] == ("inflate" in options)
    assert bool(strategy.report()["told_too_late"]) == ("timeout" in options)


@pytest.mark.parametrize(
    ("methods", "options", "name"),
    [
        ("gp_ucb igp_ucb ec_gp_ucb", {"pending": "ignore", "inflate": True}, "inflate"),
        ("gp_ucb igp_ucb ec_gp_ucb", {"pending": "ignore", "minimum": -2.5}, "minimum"),
        ("gp_ucb igp_ucb ec_gp_ucb", {"pending": "censor"}, "minimum"),
        ("gp_ucb igp_ucb ec_gp_ucb", {"minimum": -2.5}, "minimum"),
        ("gp_ucb igp_ucb ec_gp_ucb", {"timeout": 3}, "timeout"),
        ("gp_ucb_sdf", {"minimum": None}, "minimum"),
    ],
)
def test_a_method_takes_the_options_of_its_pending_policy_only(methods, options, name):
    for method in methods.split():
        with pytest.raises(ValueError, match=f"{name} must be"):
            build(method, **options)


@pytest.mark.parametrize("value", [-0.1, INF, NAN, None, "2"])
def test_a_misspecification_is_not_negative(value):
    with pytest.raises(ValueError, match=r"misspecification must be .*, got"):
        build("ec_gp_ucb", misspecification=value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pending": "wait"}, 'pending must be "ignore", "hallucinate" or "censor", got \'wait\''),
        ({"pending": None}, "pending must be .*got None"),
        ({"pending": "ignore", "inflate": True}, "inflate must be False unless .*got 'ignore'"),
        ({"pending": "censor", "inflate": True, "minimum": 0.0}, "inflate must be False unless"),
        ({"pending": "censor"}, 'minimum must be given exactly when pending is "censor", got None'),
        ({"pending": "ignore", "minimum": 0.0}, "minimum must be given exactly when .*got 0.0"),
        ({"minimum": -1.0}, "minimum must be given exactly when .*got -1.0"),
        ({"pending": "censor", "minimum": NAN}, "minimum must be finite, got nan"),
        ({"pending": "censor", "minimum": -INF}, "minimum must be finite, got -inf"),
        ({"pending": "censor", "minimum": 0.0, "timeout": -1}, "timeout must be .*got -1"),
        ({"timeout": 3}, 'timeout must be .*with pending "censor", got 3'),
        ({"pending": "ignore", "timeout": 0}, "timeout must be .*got 0"),
        ({"num_initial": -2}, "num_initial must be at least 0, got -2"),
        ({"num_initial": "2"}, "num_initial must be a whole number, got '2'"),
        ({"seed": None}, "seed must be a whole number, got None"),
        ({"pending": "censor", "minimum": "low"}, "minimum must be one number, got 'low'"),
        ({"pending": "censor", "minimum": 0.0, "timeout": 1.5}, "timeout must be .*got 1.5"),
    ],
)
@both_domains
def test_options_that_do_not_belong_together_are_refused(domain, options, message):
    with pytest.raises(ValueError, match=message):
        OptimisticStrategy(domain(), KernelGP(kernel(), LAMBDA), 2.0, **options)


@pytest.mark.parametrize(
    ("method", "pending"),
    [("gp_bucb", "ignore"), ("gp_bucb", "censor"), ("gp_ucb_sdf", "hallucinate")],
)
def test_a_method_that_is_its_pending_policy_takes_no_other(method, pending):
    with pytest.raises(ValueError, match=f"pending must be .*for {method}, got '{pending}'"):
        build(method, pending=pending)


@every_method
@both_domains
def test_a_kernel_above_1_is_warned_of(method, domain):
    large = ScaleKernel(kernel()).double()
    large.outputscale = torch.tensor(1.01, dtype=torch.float64)
    with pytest.warns(KernelBoundWarning, match=r"kernel must have k\(x, x\) <= 1 .*got 1.01"):
        build(method, domain(), large)
    large.outputscale = torch.tensor(1.0, dtype=torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(method, domain(), large)


# --- initial data ---------------------------------------------------------------------------------

# What is wrong with X and Y, given three right rows of them.
INITIAL = {
    "a NaN observation": (lambda X, Y: (X, Y * NAN), "initial Y must be finite"),
    "an infinite observation": (lambda X, Y: (X, Y + INF), "initial Y must be finite"),
    "a NaN point": (lambda X, Y: (X * NAN, Y), "initial X must be finite"),
    "a point outside": (lambda X, Y: (X + 10, Y), "initial X must .*got"),
    "wrong dimension": (
        lambda X, Y: (X[:, :1], Y),
        r"initial X must have shape \(n, 2\) or \(2,\), got \(3, 1\)",
    ),
    "points in batches": (lambda X, Y: (X[None], Y), "initial X must have shape"),
    "too few observations": (
        lambda X, Y: (X, Y[:2]),
        r"initial Y must have shape \(3, 1\) or \(3,\), got \(2,\)",
    ),
    "observations in a row": (lambda X, Y: (X, Y[None]), r"initial Y must have shape .*\(1, 3\)"),
    "points in float32": (
        lambda X, Y: (X.float(), Y),
        "initial X must be torch.float64 on cpu, got torch.float32",
    ),
    "observations in float32": (
        lambda X, Y: (X, Y.float()),
        "initial Y must be torch.float64 on cpu, got torch.float32",
    ),
    "points elsewhere": (lambda X, Y: (X.to("meta"), Y), "initial X must be .* on cpu, got .*meta"),
    "observations elsewhere": (lambda X, Y: (X, Y.to("meta")), "initial Y must be .*got .*meta"),
    "points alone": (lambda X, Y: (X,), r"initial must be a pair \(X, Y\), got .*"),
    "one tensor": (lambda X, Y: X, r"initial must be a pair \(X, Y\), got Tensor"),
    "words": (lambda X, Y: (X, ["a", "b", "c"]), "initial Y must be .*numbers"),
}


@both_domains
@pytest.mark.parametrize("case", INITIAL)
def test_bad_initial_data_is_refused(case, domain):
    spoil, message = INITIAL[case]
    X, Y = data(domain(), 3)
    model = KernelGP(kernel(), LAMBDA)
    with pytest.raises(ValueError, match=message) as raised:
        OptimisticStrategy(domain(), model, 2.0, initial=spoil(X, Y))
    assert isinstance(raised.value, OutsideDomainError) == (case == "a point outside")
    assert model.num_observations == 0
    with pytest.raises(ValueError, match=message):
        build("gp_ucb", domain(), initial=spoil(X, Y))


def test_initial_data_may_be_nested_numbers():
    X, Y = data(finite(), 3)
    given = make(finite(), initial=(X.tolist(), Y.tolist()))
    assert snapshot(given) == snapshot(make(finite(), initial=(X, Y)))


# --- models that do not fit -----------------------------------------------------------------------


def model(k=None, noise=LAMBDA, **more):
    return KernelGP(kernel() if k is None else k, noise, **more)


def with_data(dim):
    m = model(RBFKernel().double())
    m.add(torch.ones(2, dim).double(), torch.zeros(2).double())
    return m


def batched_kernel():
    return RBFKernel(batch_shape=torch.Size([3])).double()


MODELS = {
    "a batch of kernels": (
        lambda: model(batched_kernel()),
        r"model must not be batched, got batch shape \(3,\)",
    ),
    "a batch of noise variances": (
        lambda: model(noise=torch.tensor([0.1, 0.2])),
        r"model must not be batched, got batch shape \(2,\)",
    ),
    "another dtype": (
        lambda: model(dtype=torch.float32),
        "model must be torch.float64 on cpu, got torch.float32 on cpu",
    ),
    "data of another dimension": (lambda: with_data(3), "model must .*dimension 2, got 3"),
}


@both_domains
@pytest.mark.parametrize("case", MODELS)
def test_a_model_that_does_not_fit_is_refused(case, domain):
    make_model, message = MODELS[case]
    with pytest.raises(ValueError, match=message):
        OptimisticStrategy(domain(), make_model(), 2.0)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="one device only")
@both_domains
def test_a_model_elsewhere_is_refused(domain):
    with pytest.raises(ValueError, match=r"model must be .* on cuda:0, got .* on cpu"):
        OptimisticStrategy(domain(device="cuda"), model(), 2.0)


def column_mean(X):
    return X[..., :1]


def linear_mean(X):
    return X @ X.new_tensor([1.0, 2.0, 3.0])


@both_domains
@pytest.mark.parametrize(
    ("k", "mean", "message"),
    [
        (RBFKernel(active_dims=[2]), None, "kernel must take points of dimension 2, got .*Error"),
        (RBFKernel(ard_num_dims=3), None, "kernel must take points of dimension 2, got .*Error"),
        (ScaleKernel(RBFKernel(active_dims=[0, 4])), None, "kernel must take .*dimension 2"),
        (kernel(), column_mean, r"mean must return shape \(2,\) at 2 points, got \(2, 1\)"),
        (kernel(), linear_mean, "mean must take points of dimension 2, got .*Error"),
        (kernel(), lambda X: 0.5, "mean must return shape .* got a float"),
    ],
)
def test_a_kernel_or_mean_for_other_points_is_refused(domain, k, mean, message):
    with pytest.raises(ValueError, match=message):
        OptimisticStrategy(domain(), model(k.double(), mean=mean), 2.0)


@pytest.mark.parametrize("kind", ["input", "outcome"])
def test_transforms_are_refused_on_a_finite_set(kind):
    if kind == "input":
        transformed = model(input_transform=Normalize(2, bounds=box().bounds))
    else:
        standardize = Standardize(1)
        standardize(torch.tensor([[1.0], [2.0]]).double())
        transformed = model(outcome_transform=standardize.eval())
    with pytest.raises(ValueError, match="model must not have input or outcome transforms"):
        OptimisticStrategy(finite(), transformed, 2.0)


@every_method
@both_domains
def test_a_batched_kernel_is_refused(method, domain):
    with pytest.raises(ValueError, match=r"must not be batched, got batch shape \(3,\)"):
        build(method, domain(), batched_kernel())


# --- domains --------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [[[2.0, 1.0], [5.0, 1.0]], [[2.0, 1.0], [1.0, 3.0]]])
def test_lower_bounds_lie_below_upper_bounds(bounds):
    with pytest.raises(ValueError, match="bounds must have lower < upper in every column"):
        Box(bounds)


def test_a_set_has_points():
    with pytest.raises(ValueError, match="points must have shape"):
        FiniteSet(torch.empty(0, 2))
