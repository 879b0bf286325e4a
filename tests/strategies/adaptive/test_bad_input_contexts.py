"""What bad contexts and actions get: an error that names them, before anything has changed."""

import math

import pytest
import torch
from gpytorch.kernels import IndexKernel, LinearKernel, RBFKernel

from botorch_ext import (
    Box,
    CandidateModels,
    FiniteSet,
    KernelGP,
    OptimisticStrategy,
    algorithms,
)
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import KernelBoundWarning, OutsideDomainError
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.strategies import (
    Asked,
    LengthscaleBalancing,
    RandomSearch,
    ShrinkingLengthscale,
)
from tests.strategies.adaptive.contextual_sessions import (
    CONTEXT_BOX,
    NOISE_VARIANCE,
    SETTINGS,
    contextual_data,
    matern,
    rbf,
)
from tests.strategies.adaptive.test_contextual_events import NUMBERS, make, snapshot
from tests.strategies.sessions import both_domains, box, finite, plain

NAN, INF = math.nan, math.inf
CONTEXTUAL = ("cgp_ucb", "he_gp_ucb", "expected_ucb", "random")


def started(method, domain, name):
    """In the middle of a study: one trial told, one abandoned, one pending."""
    strategy = make(method, domain, name, num_initial=1)
    contexts = SETTINGS[name].draw(3, torch.Generator().manual_seed(111))
    for context in contexts:
        strategy.ask(context=context)
    strategy.tell(1, 0.5)
    strategy.abandon(0)
    return strategy


def check_unchanged(method, domain, name, refused, call, error=lambda case: ValueError):
    """That calls are refused, and change nothing.

    Args:
        method: One of `CONTEXTUAL`.
        domain: Of actions.
        name: A setting.
        refused: From a case to what it gives to ``call``, and the message.
        call: Of a strategy and what the case gives.
        error: From a case to the type of the error.
    """
    strategy, twin = (started(method, domain, name) for _ in range(2))
    before = snapshot(strategy)
    for case, (given, message) in refused.items():
        with pytest.raises(error(case), match=message):
            call(strategy, given)
        assert snapshot(strategy) == before, case
    right = SETTINGS[name].draw(1, torch.Generator().manual_seed(112))[0]
    for s in (strategy, twin):  # nor anything that does not show
        s.tell(2, -0.1)
    assert plain(Asked(strategy.ask(context=right))) == plain(Asked(twin.ask(context=right)))


# --- contexts -------------------------------------------------------------------------------------

# By setting: the context and what is said of it.
CONTEXTS = {
    "product": {
        "missing": (None, "context must be given for .* with a context_domain, got None"),
        "too small": ([0.1], r"context must have shape \(2,\), got \(1,\)"),
        "too large": ([0.1, 5.0, 0.2], r"context must have shape \(2,\), got \(3,\)"),
        "joint": ([2.0, -2.0, 0.1, 5.0], r"context must have shape \(2,\), got \(4,\)"),
        "a row": ([[0.1, 5.0]], r"context must have shape \(2,\), got \(1, 2\)"),
        "a number": (0.1, r"context must have shape \(2,\), got \(1,\)"),
        "empty": ([], r"context must have shape \(2,\), got \(0,\)"),
        "NaN": ([0.1, NAN], "context must be finite"),
        "infinite": ([INF, 5.0], "context must be finite"),
        "words": ("ab", "context must be a tensor or nested numbers"),
        "float32": (
            torch.tensor([0.1, 5.0]),
            "context must be torch.float64 on cpu, got torch.float32 on cpu",
        ),
        "whole numbers": (
            torch.tensor([False, True]),
            "context must be real numbers, got torch.bool",
        ),
        "elsewhere": (
            torch.tensor([0.1, 5.0]).double().to("meta"),
            "context must be torch.float64 on cpu, got torch.float64 on meta",
        ),
        "outside": ([0.1, 3.99], "context must lie in the box"),
    },
    # Of which the size is stated.
    "sum": {
        "missing": (None, "context must be given"),
        "too small": ([0.1], r"context must have shape \(2,\), got \(1,\)"),
        "too large": ([0.1, 5.0, 0.2], r"context must have shape \(2,\), got \(3,\)"),
        "NaN": ([0.1, NAN], "context must be finite"),
    },
    # Of which nothing is stated but the kernels.
    "tasks": {
        "no such task": (4.0, r"task.* whole number.* from 0 to 3"),
        "a negative task": ([-1.0], r"task.* whole number.* from 0 to 3"),
        "half a task": ([1.5], r"task.* whole number.* from 0 to 3"),
        "NaN for a task": ([NAN], "context must be finite"),
        "two tasks": ([1.0, 2.0], r"context must have shape \(1,\), got \(2,\)"),
    },
}


def ask_in(strategy, context):
    strategy.ask(context=context)


@both_domains
@pytest.mark.parametrize("name", CONTEXTS)
@pytest.mark.parametrize("method", CONTEXTUAL)
def test_a_bad_context_changes_nothing(method, name, domain):
    refused = CONTEXTS[name]
    if method == "random" and name == "tasks":  # it has no kernel
        refused = {case: refused[case] for case in ("NaN for a task", "two tasks")}
    check_unchanged(method, domain(), name, refused, ask_in)


def test_tasks_are_known_from_the_kernel():
    for name, wrong in (("tasks", 4.0), ("sum of tasks", 3.0)):
        message = f"context must have a task in column 0, .* from 0 to {wrong - 1:.0f}, got"
        with pytest.raises(ValueError, match=message):
            make("cgp_ucb", finite(), name).ask(context=wrong)


@pytest.mark.parametrize(("given", "known"), [((0, 2), 2), ((0, 9), 5)])
def test_tasks_of_the_kernel_are_known_where_some_are_given(given, known):
    kernels = [TaskKernel(torch.eye(n).double(), active_dims=(c,)) for n, c in ((5, 0), (4, 1))]
    strategy = algorithms.cgp_ucb(
        box(),
        action_kernel=rbf(0.8),
        context_kernel=kernels[0] * kernels[1],
        **numbers(context_domain=ContextSpace(tasks=(given,))),
    )
    assert strategy.context_space.tasks == ((0, known), (1, 4))
    assert strategy.ask(context=[known - 1, 3]).id == 0
    for context, column in (([known, 0], 0), ([0, 4], 1)):
        with pytest.raises(ValueError, match=f"context must have a task in column {column}"):
            strategy.ask(context=context)


@both_domains
@pytest.mark.parametrize("warned", [False, True])
@pytest.mark.parametrize("method", ["he_gp_ucb", "gp_ucb"])
def test_a_bad_task_at_an_initial_point_changes_nothing(method, domain, warned):
    # Nothing looks at the model before such a point is asked.
    covariance = torch.eye(3).double() * (1.5 if warned else 1.0)
    kernel = ActionContextKernel(rbf(0.8), TaskKernel(covariance), 2)
    options = {"width": 1.0, "num_initial": 2, "context_domain": 1, "seed": 3}

    def fresh():
        if method == "gp_ucb":
            return algorithms.gp_ucb(domain(), kernel, noise_variance=0.1, **options)
        return algorithms.he_gp_ucb(
            domain(), CandidateModels(kernel, [0.1, 0.2]), noise_std=0.1, **options
        )

    if warned:
        with pytest.warns(KernelBoundWarning):
            strategy = fresh()
    else:
        strategy = fresh()
    for count in (None, 2):
        with pytest.raises(ValueError, match="whole numbers from 0 to 2"):
            strategy.ask(count, context=3.0)
    assert strategy.events == ()
    assert strategy.report()["t"] == 1
    for context in (1.0, 2.0, 0.0):
        strategy.tell(strategy.ask(context=context).id, 0.3)
    assert strategy.report()["t"] == 4


@both_domains
@pytest.mark.parametrize("method", CONTEXTUAL)
def test_bad_contexts_for_best(method, domain):
    refused = {
        "too small": ([0.1], r"context must have shape \(2,\), got \(1,\)"),
        "outside": ([0.1, 9.9], "context must lie in the box"),
    }
    check_unchanged(method, domain(), "product", refused, lambda s, context: s.best(context))


def without_contexts(domain):
    numbers = {"noise_variance": 0.1, "rkhs_bound": 1.0, "noise_std": 0.1}
    models = CandidateModels([RBFKernel(), matern(0.7)], 0.1)
    several = {"noise_std": 0.1, "rkhs_bound": 1.0}
    yield algorithms.gp_ucb(domain, RBFKernel(), **numbers)
    yield algorithms.bpe(domain, RBFKernel(), horizon=20, **numbers)
    yield algorithms.phased_uncertainty_sampling(domain, RBFKernel(), horizon=20, **numbers)
    yield algorithms.he_gp_ucb(domain, models, **several)
    yield algorithms.stable_opt(domain, RBFKernel(), radius=0.1, **numbers)
    yield RandomSearch(domain)


@both_domains
def test_contexts_that_are_not_expected(domain):
    for strategy in without_contexts(domain()):
        strategy.tell(strategy.ask().id, 0.3)
        before = [plain(event) for event in strategy.events], strategy.report()
        for call in (
            lambda s: s.ask(context=[0.5]),
            lambda s: s.ask(2, context=torch.ones(2)),
            lambda s: s.best([0.5]),
        ):
            with pytest.raises(
                ValueError, match=f"context must be None for .*{type(strategy).__name__}"
            ):
                call(strategy)
        assert ([plain(event) for event in strategy.events], strategy.report()) == before


# --- actions --------------------------------------------------------------------------------------

# on a finite set, on a box
ACTIONS = {
    "none": (
        [],
        "actions must hold at least one point, got none",
        "actions must hold at least one point, got none",
    ),
    "no rows": (
        torch.empty(0, 2).double(),
        "actions must hold at least one point, got none",
        "actions must hold at least one point, got none",
    ),
    "of another dimension": (
        [[3.0, -2.0, 0.1]],
        r"actions must have shape \(n, 2\) or \(2,\), got \(1, 3\)",
        r"actions must have shape \(n, 2\) or \(2,\), got \(1, 3\)",
    ),
    "joint": (
        [[3.0, -2.0, 0.1, 5.0]],
        r"actions must have shape \(n, 2\)",
        r"actions must have shape \(n, 2\)",
    ),
    "in batches": (
        torch.zeros(1, 1, 2).double(),
        r"actions must have shape .*got \(1, 1, 2\)",
        r"actions must have shape .*got \(1, 1, 2\)",
    ),
    "not finite": ([[3.0, NAN]], "actions must be finite", "actions must be finite"),
    "outside": (
        [[2.0, -3.0], [1.9, -3.0]],
        r"actions must be one of the 54 points of the set, got \[1.9, -3.0\]",
        r"actions must lie in the box .*got \[1.9, -3.0\]",
    ),
    "float32": (
        torch.tensor([[2.0, -3.0]]),
        "actions must be torch.float64 on cpu, got torch.float32",
        "actions must be torch.float64 on cpu, got torch.float32",
    ),
    "words": ("ab", "actions must be a tensor", "actions must be a tensor"),
}


@both_domains
@pytest.mark.parametrize("method", CONTEXTUAL)
def test_bad_actions_change_nothing(method, domain):
    check_unchanged(
        method,
        domain(),
        "product",
        {case: (given, m[domain is box]) for case, (given, *m) in ACTIONS.items()},
        lambda s, actions: s.ask(context=[0.1, 5.0], actions=actions),
        lambda case: OutsideDomainError if case == "outside" else ValueError,
    )


def test_actions_between_the_members_of_a_set_are_none_of_it():
    x = finite().points[:2].mean(dim=0)
    with pytest.raises(OutsideDomainError, match="actions must be one of the 54 points"):
        make("cgp_ucb", finite(), "product").ask(context=[0.1, 5.0], actions=x)


@both_domains
def test_methods_that_always_choose_from_all_actions(domain):
    for strategy in without_contexts(domain()):
        strategy.tell(strategy.ask().id, 0.3)
        before = [plain(event) for event in strategy.events], strategy.report()
        takes = type(strategy).__name__ not in ("PhasedElimination", "StableStrategy")
        if takes:
            strategy.ask(actions=domain().sample(2, 0))
            continue
        with pytest.raises(ValueError, match="actions must be None for"):
            strategy.ask(actions=domain().sample(2, 0))
        assert ([plain(event) for event in strategy.events], strategy.report()) == before


# --- making a strategy ----------------------------------------------------------------------------


def numbers(**more):
    return {"noise_variance": NOISE_VARIANCE, "width": 1.0, **more}


def parts():
    return {"action_kernel": rbf(0.8), "context_kernel": matern(0.9)}


@both_domains
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "context_domain must be at least 1, got 0"),
        (-2, "context_domain must be at least 1, got -2"),
        (1.5, "context_domain must be a whole number, got 1.5"),
        (True, "context_domain must be a whole number, got True"),
        ("2", "context_domain must be a whole number, got '2'"),
        ([[0.0], [1.0], [2.0]], "context_domain must have shape"),
        (
            Box(CONTEXT_BOX, dtype=torch.float32),
            "context_domain must be torch.float64 on cpu, got torch.float32 on cpu",
        ),
        (
            FiniteSet([[0.0], [1.0]], dtype=torch.float32),
            "context_domain must be torch.float64 on cpu, got torch.float32 on cpu",
        ),
    ],
)
def test_context_domains_that_are_none(domain, value, message):
    models = CandidateModels(SETTINGS["product"].kernel(), 0.1)
    for make_strategy in (
        lambda: algorithms.cgp_ucb(domain(), **parts(), context_domain=value, **numbers()),
        lambda: algorithms.he_gp_ucb(domain(), models, context_domain=value, **NUMBERS),
        lambda: RandomSearch(domain(), context_domain=value),
    ):
        with pytest.raises(ValueError, match=message):
            make_strategy()


def test_methods_that_take_no_context_domain():
    several = CandidateModels.lengthscales(rbf(1.0), [0.3, 0.8], 0.1)
    for method, first in (
        ("bpe", RBFKernel()),
        ("stable_opt", RBFKernel()),
        ("a_gp_ucb", several),
        ("lb_gp_ucb", several),
    ):
        options = {"noise_std": 0.1, "rkhs_bound": 1.0}
        if method in ("bpe", "stable_opt"):
            options["noise_variance"] = 0.1
        options |= {"bpe": {"horizon": 9}, "stable_opt": {"radius": 0.1}}.get(method, {})
        with pytest.raises((TypeError, ValueError), match="context_domain"):
            getattr(algorithms, method)(box(), first, context_domain=2, **options)
    for make_strategy in (
        lambda **more: LengthscaleBalancing(box(), several, 1.0, noise_std=0.1, **more),
        lambda **more: ShrinkingLengthscale(
            box(), several, 1.0, lengthscale_0=1.0, growth=float, **more
        ),
    ):
        with pytest.raises(ValueError, match="context_domain must be None"):
            make_strategy(context_domain=2)
        make_strategy(context_domain=None)


OTHER_SIZE = ActionContextKernel(rbf([1.0, 2.0]), rbf([1.0, 2.0, 3.0]), 2)
WIDE = RBFKernel(ard_num_dims=5).double()


@both_domains
@pytest.mark.parametrize("kernel", [OTHER_SIZE, WIDE], ids=["parts", "joint"])
def test_a_joint_kernel_of_another_dimension(domain, kernel):
    message = "kernel must take points of dimension 4"
    models = CandidateModels([RBFKernel(), kernel], 0.1)  # the first takes points of any size
    X, Y = contextual_data(SETTINGS["product"], domain(), 3)

    def single(**more):
        return algorithms.gp_ucb(domain(), kernel, **numbers(**more))

    def several(**more):
        return algorithms.he_gp_ucb(domain(), models, **NUMBERS, **more)

    for make_strategy in (single, several):
        for context_domain in (2, Box(CONTEXT_BOX), FiniteSet([[0.1, 0.2], [0.3, 0.4]])):
            with pytest.raises(ValueError, match=message):
                make_strategy(context_domain=context_domain)
        # Where nothing states the size it is known from the data, or from the first context.
        with pytest.raises(ValueError, match=message):
            make_strategy(context_domain=ContextSpace(), initial=(X, Y))
        strategy = make_strategy(context_domain=ContextSpace())
        with pytest.raises(ValueError, match=message):
            strategy.ask(context=[0.1, 5.0])
        assert strategy.events == ()
        strategy.ask(context=[0.1, 5.0, 0.2])


def test_a_model_with_data_of_another_dimension():
    model = KernelGP(RBFKernel().double(), NOISE_VARIANCE)
    model.add(torch.ones(2, 5).double(), torch.zeros(2).double())
    message = "model must have data of dimension 4, got 5"
    with pytest.raises(ValueError, match=message):
        OptimisticStrategy(box(), model, 1.0, context_domain=2)
    strategy = OptimisticStrategy(box(), model, 1.0, context_domain=ContextSpace())
    with pytest.raises(ValueError, match=message):
        strategy.ask(context=[0.1, 5.0])
    assert strategy.ask(context=[0.1, 5.0, 0.3]).context.tolist() == [0.1, 5.0, 0.3]


@both_domains
@pytest.mark.parametrize("context_domain", [Box([[0.0], [2.5]]), FiniteSet([[0.0], [3.0]])])
def test_context_domains_that_are_more_than_the_tasks(domain, context_domain):
    learned = IndexKernel(num_tasks=3).double()
    learned.var = torch.tensor([1.0, 1.0, 1.0]).double()
    learned.covar_factor.data.zero_()
    for kernel in (TaskKernel(torch.eye(3).double()), learned):
        joint = ActionContextKernel(rbf(0.8), kernel, 2)
        with pytest.raises(ValueError, match="task"):
            algorithms.gp_ucb(domain(), joint, **numbers(context_domain=context_domain))


INITIAL = {
    "without contexts": (lambda X, Y: (X[:, :2], Y), r"initial X must have shape \(n, d \+ d_z\)"),
    "with too much": (
        lambda X, Y: (torch.cat([X, X[:, :1]], -1), Y),
        "context of row 0 of initial X",
    ),
    "an action outside": (
        lambda X, Y: (X + X.new_tensor([9, 0, 0, 0]), Y),
        "initial X.* must .*got",
    ),
    "a context outside": (
        lambda X, Y: (X + X.new_tensor([0, 0, 0, 9]), Y),
        "context of row 0 of initial X must lie in the box",
    ),
    "a NaN in a context": (
        lambda X, Y: (X * X.new_tensor([1, 1, NAN, 1]), Y),
        "context of row 0 of initial X must be finite",
    ),
    "one row": (lambda X, Y: (X[0], Y[:1]), r"initial X must have shape"),
    "float32": (lambda X, Y: (X.float(), Y), "initial X must be torch.float64 on cpu"),
    "too few values": (lambda X, Y: (X, Y[:2]), r"initial Y must have shape \(3, 1\) or \(3,\)"),
}


@both_domains
@pytest.mark.parametrize("method", CONTEXTUAL)
def test_bad_initial_data(method, domain):
    X, Y = contextual_data(SETTINGS["product"], domain(), 3)
    for spoil, message in INITIAL.values():
        with pytest.raises(ValueError, match=message):
            make(method, domain(), "product", initial=spoil(X, Y))


@both_domains
def test_tasks_of_initial_data_are_tasks(domain):
    X, Y = contextual_data(SETTINGS["tasks"], domain(), 3)
    for wrong in (4.0, -1.0, 0.5):
        X[1, 2] = wrong
        for method, message in (
            ("cgp_ucb", "context of row 1 of initial X must have a task in column 0"),
            ("he_gp_ucb", "task"),
        ):
            with pytest.raises(ValueError, match=message):
                make(method, domain(), "tasks", initial=(X, Y))


# --- kernels above 1 ------------------------------------------------------------------------------


@both_domains
def test_a_kernel_above_1_is_warned_of_where_it_shows(domain):
    small, large = torch.eye(2).double(), torch.diag(torch.tensor([1.0, 1.2])).double()
    kernels = [ActionContextKernel(rbf(0.8), TaskKernel(K), 2) for K in (small, large)]
    with pytest.warns(KernelBoundWarning, match="got 1.2"):
        algorithms.gp_ucb(domain(), kernels[1], **numbers(context_domain=FiniteSet([[0.0], [1.0]])))
    many = FiniteSet(torch.arange(100.0).unsqueeze(-1).double())
    last = TaskKernel(torch.diag(torch.where(torch.arange(100) < 99, 1.0, 1.4)).double())
    kernel = ActionContextKernel(rbf(0.8), last, 2)
    with pytest.warns(KernelBoundWarning, match="got 1.4"):
        algorithms.gp_ucb(domain(), kernel, **numbers(context_domain=many))
    with pytest.warns(KernelBoundWarning, match="got 1.2"):
        algorithms.he_gp_ucb(
            domain(),
            CandidateModels(kernels, 0.1),
            **NUMBERS,
            context_domain=ContextSpace(dim=1, tasks=((0, 2),)),
        )


@both_domains
@pytest.mark.parametrize("method", ["gp_ucb", "he_gp_ucb"])
def test_a_kernel_above_1_is_warned_of_once_where_only_contexts_show_it(method, domain):
    linear = LinearKernel().double()
    linear.variance = torch.tensor(0.5).double()
    kernel = ActionContextKernel(rbf(0.8), linear, 2)

    def fresh():
        if method == "gp_ucb":
            return algorithms.gp_ucb(domain(), kernel, **numbers(context_domain=1))
        models = CandidateModels([ActionContextKernel(rbf(0.8), rbf(0.7), 2), kernel], 0.1)
        return algorithms.he_gp_ucb(domain(), models, context_domain=1, **NUMBERS)

    strategy = fresh()
    strategy.ask(context=1.2)
    assert strategy.warnings == []
    with pytest.warns(KernelBoundWarning, match="got 2"):
        strategy.ask(context=2.0)
    strategy.ask(context=3.0)
    assert len(strategy.warnings) == len(strategy.report()["warnings"]) == 1
    replayed = fresh()
    with pytest.warns(KernelBoundWarning, match="got 2"):
        replayed.replay(strategy.events)
    assert snapshot(replayed) == snapshot(strategy)


def test_points_where_the_bound_is_not_finite_are_not_asked():
    domain = FiniteSet(torch.tensor([[0.9], [0.2], [0.3]], dtype=torch.float64))
    strategy = algorithms.cgp_ucb(
        domain,
        RBFKernel(),
        noise_variance=0.01,
        width=2.0,
        mean=lambda X: torch.where((X[..., 0] > 0.5) & (X[..., 1] > 0.5), torch.nan, X[..., 0]),
        context_domain=1,
    )
    assert strategy.ask(context=[0.9]).info["index"] == 2
