"""Tasks and sizes of contexts, as kernels, models and data state them."""

import pytest
import torch
from gpytorch.kernels import LinearKernel, RBFKernel

from botorch_ext import (
    Box,
    CandidateModels,
    FiniteSet,
    KernelGP,
    OptimisticStrategy,
    algorithms,
)
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import KernelBoundWarning
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.strategies.adaptive.contextual_sessions import (
    CONTEXT_BOX,
    NOISE_VARIANCE,
    SETTINGS,
    contextual_data,
    rbf,
)
from tests.strategies.adaptive.test_contextual_events import NUMBERS, make, snapshot
from tests.strategies.sessions import both_domains, box, finite


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


def numbers(**more):
    return {"noise_variance": NOISE_VARIANCE, "width": 1.0, **more}


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
