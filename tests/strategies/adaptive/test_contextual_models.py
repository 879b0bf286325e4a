"""Unknown hyperparameters with contexts: every pick, prediction and rejection, by replay."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import CandidateModels, algorithms, widths
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.helpers import tolerance
from tests.oracles.models import (
    Candidate,
    EliminationTest,
    Session,
    check_record,
    predictions,
    upper_bounds,
)
from tests.strategies.adaptive.contextual_replay import (
    check_elimination,
    log_evidence,
    replay,
)
from tests.strategies.adaptive.contextual_sessions import (
    INDEX,
    SETTINGS,
    TASKS,
    contextual_data,
    half_sum_of,
    index_kernel,
    joint,
    matern,
    matern_of,
    offers,
    play,
    policy_options,
    product_of,
    rbf,
    rbf_of,
    table_of,
)
from tests.strategies.adaptive.model_sessions import (
    DELTA,
    NUMBERS,
    SIGMA,
    grid,
    level,
    self_normalized,
    slope,
)
from tests.strategies.sessions import POLICIES, box, data, finite, script

EPS = 0.04
TOL = tolerance(torch.float64)


def tilted(X):
    """A prior mean over joint points: it looks at the context."""
    return 0.5 * (X[..., 0] - 3.5) - 0.3 * X[..., 2]


def product(of_actions, of_contexts):
    return ActionContextKernel(of_actions, of_contexts, 2)


def half_sum(of_actions, of_contexts):
    return ActionContextKernel(of_actions, of_contexts, 2, combination="sum")


ONES, EYE = torch.ones(4, 4).double(), torch.eye(4).double()
# setting: for each model its kernel of the library, its definition, its ridge and its prior mean
MODELS = {
    "tasks": [
        # Three of one form: tasks that share, are one, are unrelated.
        (
            product(rbf(0.8), TaskKernel(TASKS)),
            product_of(rbf_of(0.8), table_of(TASKS)),
            0.02,
            None,
        ),
        (product(rbf(0.8), TaskKernel(ONES)), product_of(rbf_of(0.8), table_of(ONES)), 0.05, None),
        (product(rbf(0.5), TaskKernel(EYE)), product_of(rbf_of(0.5), table_of(EYE)), 0.02, None),
        # Task numbers taken for a quantity.
        (product(matern(0.7), rbf(1.5)), product_of(matern_of(0.7), rbf_of(1.5)), 0.02, tilted),
        (
            half_sum(rbf(0.6), TaskKernel(TASKS)),
            half_sum_of(rbf_of(0.6), table_of(TASKS)),
            0.01,
            level(0.8),
        ),
    ],
    "sum of tasks": [
        (product(rbf(0.8), index_kernel()), product_of(rbf_of(0.8), table_of(INDEX)), 0.02, None),
        (product(rbf(0.4), index_kernel()), product_of(rbf_of(0.4), table_of(INDEX)), 0.02, None),
        (
            half_sum(rbf(0.6), index_kernel()),
            half_sum_of(rbf_of(0.6), table_of(INDEX)),
            0.02,
            level(0.8),
        ),
    ],
    "product": [
        (
            product(rbf([a, 0.7]), matern([b, 1.5])),
            product_of(rbf_of([a, 0.7]), matern_of([b, 1.5])),
            noise,
            mean,
        )
        for a, b, noise, mean in [
            (0.9, 0.8, 0.02, None),
            (0.4, 3.0, 0.02, tilted),
            (2.5, 0.4, 0.1, level(0.6)),
        ]
    ]
    + [
        (half_sum(rbf(0.8), matern(1.2)), half_sum_of(rbf_of(0.8), matern_of(1.2)), 0.02, None),
        (
            half_sum(rbf(0.8), matern(4.0)),
            half_sum_of(rbf_of(0.8), matern_of(4.0)),
            0.02,
            level(0.6),
        ),
    ],
    # Action sets alone.
    "no contexts": [
        (rbf(0.8), rbf_of(0.8), 0.02, None),
        (rbf(2.5), rbf_of(2.5), 0.04, level(0.7)),
        (matern(0.7), matern_of(0.7), 0.05, slope),
    ],
}


def enlarged(model, t, gain):
    return self_normalized()(model, t, gain) + EPS * math.sqrt(t) / math.sqrt(model.noise_variance)


class WithOffset(widths.Width):
    """A width and an offset that depend on the step."""

    def __call__(self, t, model):
        return 0.4 + 0.02 * t

    def offset(self, t, model):
        return 0.3 / t


def bayes_finite(model, t, gain):
    # With contexts that do not depend on f a union over the actions is enough.
    return math.sqrt(2 * math.log(54 * math.pi**2 * t**2 / (3 * DELTA)))


# name: options of he_gp_ucb, the width written out, its offset
WIDTHS = {
    "bayesian": ({"setting": "bayesian", "rkhs_bound": None}, bayes_finite, lambda t: 0.0),
    "frequentist": ({}, self_normalized(), lambda t: 0.0),
    "misspecified": ({"misspecification": EPS}, enlarged, lambda t: 0.0),
    "offset": ({"width": WithOffset()}, lambda m, t, gain: 0.4 + 0.02 * t, lambda t: 0.3 / t),
    "each": (
        {"width": lambda m: [0.3 + 0.1 * u for u in range(m)]},
        lambda model, t, gain: 0.3 + 0.1 * model.position,
        lambda t: 0.0,
    ),
}


def make(method, name, domain, policy, **more):
    kernels, _, noises, means = (list(column) for column in zip(*MODELS[name], strict=True))
    width = more.get("width")
    if callable(width) and not isinstance(width, widths.Width):
        more["width"] = width(len(kernels))
    context_domain = None
    if name in SETTINGS:
        context_domain = SETTINGS[name].domain()
        context_domain = 1 if context_domain is None else context_domain
    return getattr(algorithms, method)(
        domain,
        CandidateModels(kernels, noises, means),
        context_domain=context_domain,
        **{**NUMBERS, **policy_options(policy), **more},
    )


def definitions(name):
    return [(gram, noise, mean) for _, gram, noise, mean in MODELS[name]]


def play_and_note(strategy, actions, made):
    """The models alive after each event, and what each trial was chosen from."""
    alive, chosen_from = [], {}
    for action in actions:
        chosen_from |= play(strategy, [action], made, chosen_from)
        alive += [list(strategy.alive)] * (len(strategy.events) - len(alive))
    return alive, chosen_from


def eliminate(name, domain, policy, kind="frequentist", length=48, seed=81, fine=None, **more):
    options, width, offset = WIDTHS[kind]
    strategy = make("he_gp_ucb", name, domain, policy, **options, **more)
    made = offers(SETTINGS.get(name), domain, 3 * length, seed, share=0.3)
    alive_after, chosen_from = play_and_note(strategy, script(length, seed), made)
    eps = EPS if kind == "misspecified" else 0.0
    test = EliminationTest(len(strategy.names), SIGMA, DELTA, eps)
    check_elimination(
        strategy,
        alive_after,
        policy,
        chosen_from,
        definitions(name),
        width,
        test,
        offset,
        more.get("initial"),
        fine,
    )
    return test


# The last model left warns when it would be rejected.
pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.AllModelsRejectedWarning")


@pytest.mark.parametrize(
    ("name", "policy"),
    [("tasks", policy) for policy in POLICIES]
    + [("product", "hallucinate"), ("sum of tasks", "ignore")]
    + [("no contexts", "timeout")],
)
def test_every_pick_and_every_rejection_is_that_of_the_definition(name, policy):
    test = eliminate(name, finite(), policy)
    assert 0 < len(test.rejected_at) < test.num_models


@pytest.mark.parametrize("kind", WIDTHS)
def test_with_every_width(kind):
    eliminate("tasks", finite(), "hallucinate", kind, length=36, seed=82)


def test_initial_data_and_initial_points_count_as_steps():
    initial = contextual_data(SETTINGS["product"], finite(), 6)
    test = eliminate("product", finite(), "timeout", seed=83, initial=initial, num_initial=3)
    assert min(test.rejected_at.values()) > 6 + 1


@pytest.mark.parametrize("policy", ["inflate", "censor"])
@pytest.mark.parametrize("domain", [finite, box])
def test_bands_are_those_of_the_next_question(domain, policy):
    strategy = make("he_gp_ucb", "product", domain(), policy, num_initial=9)
    made = offers(SETTINGS["product"], domain(), 40, 88)
    chosen_from = play(strategy, script(20, 88), made)
    assert strategy.pending
    session = Session(policy, lambda trial: trial.id)
    for event in strategy.events:
        session.apply(event)
    rows = torch.cat([joint(t.x[None], chosen_from[t.id].context) for t in strategy.history.trials])
    X, z = domain().sample(5, 1), made[-1].context
    points = torch.cat([rows, joint(X, z)])
    models = [Candidate.at(points, *model, u) for u, model in enumerate(definitions("product"))]
    models = [models[u] for u in strategy.alive]
    upper = upper_bounds(models, session, self_normalized())[:, len(rows) :]
    believed = session.believed
    means = torch.stack([m.mean(believed.rows, believed.y)[len(rows) :] for m in models])
    mean, half_width = strategy.bands(X, z)
    assert_close(mean, means, **TOL)
    assert_close(mean + half_width, upper, **TOL)


@pytest.mark.parametrize(
    ("name", "policy"),
    [("tasks", "timeout"), ("product", "inflate"), ("no contexts", "hallucinate")],
)
def test_no_action_of_a_fine_grid_and_no_model_beats_a_pick_on_a_box(name, policy):
    initial = data(box(), 3)
    if name in SETTINGS:
        initial = contextual_data(SETTINGS[name], box(), 3)
    eliminate(name, box(), policy, length=14, seed=86, fine=grid(13), initial=initial)


def fixed(model, t, gain):
    return 0.8


@pytest.mark.parametrize("method", ["mle_ucb", "expected_ucb", "credible_ucb"])
@pytest.mark.parametrize(
    ("domain", "name", "policy"),
    [
        (finite, "product", "censor"),
        (finite, "no contexts", "inflate"),
        (finite, "tasks", "timeout"),
        (box, "tasks", "hallucinate"),
    ],
)
def test_baselines_play_by_the_evidence(method, domain, name, policy):
    strategy = make(method, name, domain(), policy, width=0.8)
    made = offers(SETTINGS.get(name), domain(), 200, 87, share=0.3)
    chosen_from = play(strategy, script(36 if domain is finite else 12, 87), made)
    fine = None if domain is finite else grid(13)
    for event, session, question in replay(strategy, policy, chosen_from, fine=fine):
        if question is not None:
            models = [question.model(*model, u) for u, model in enumerate(definitions(name))]
            info = question.trial.info
            bounds = upper_bounds(models, session, fixed)
            expected = predictions(session, models[info["model"]], question.own, fixed)
            check_record(info, expected, judged=False)
            if method == "expected_ucb":
                bounds = log_evidence(models, session).softmax(dim=0) @ bounds
            elif method == "credible_ucb":
                evidence = log_evidence(models, session)
                c = math.log(len(models) / DELTA)
                bounds = bounds[evidence.max() - evidence <= c].amax(dim=0)
            else:
                evidence = log_evidence(models, session)
                assert evidence.max() - evidence[info["model"]] <= 1e-7
                bounds = bounds[info["model"]]
            assert question.shortfall(bounds) <= 1e-7
        session.apply(event)
