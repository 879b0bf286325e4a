"""Studies with contexts as folds over events: replayed, they go on bit for bit the same."""

import pytest
import torch

from botorch_ext import CandidateModels, FiniteSet, algorithms
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.strategies import Asked, RandomSearch, Told, Trial
from tests.helpers import pairwise
from tests.oracles.models import Candidate
from tests.strategies.adaptive.contextual_sessions import (
    NOISE_VARIANCE,
    SETTINGS,
    contextual_data,
    joint,
    offers,
    play,
    policy_options,
)
from tests.strategies.sessions import box, finite, plain, script

# The last model left warns when it would be rejected.
pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.AllModelsRejectedWarning")

NUMBERS = {"noise_std": 0.03, "rkhs_bound": 0.25, "delta": 0.1}
MULTI_MODEL = ("he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb")
RIDGES = [1.5, 0.02, 0.3]


def context_domain(name):
    domain = SETTINGS[name].domain()
    return ContextSpace() if domain is None else domain


def make(method, domain, name="tasks", policy="hallucinate", **more):
    setting = SETTINGS[name]
    if method == "random":
        return RandomSearch(domain, seed=5, context_domain=context_domain(name), **more)
    options = {**NUMBERS, **policy_options(policy), **more}
    if method == "cgp_ucb":
        return algorithms.cgp_ucb(
            domain,
            **setting.parts(),
            context_domain=setting.domain(),
            noise_variance=NOISE_VARIANCE,
            **options,
        )
    models = CandidateModels(setting.kernel(), RIDGES)
    return getattr(algorithms, method)(
        domain, models, context_domain=context_domain(name), **options
    )


def snapshot(strategy):
    """All that shows, the numbers in full, and the posterior at some joint points."""
    shown = [plain(event) for event in strategy.events], strategy.report(), strategy.pending
    if isinstance(strategy, RandomSearch):
        return shown
    rows = strategy.initial[0] if strategy.initial is not None else None
    if rows is None:
        rows = torch.stack([trial.point for trial in strategy.history.trials])
    posterior = strategy.posterior
    with torch.no_grad():
        numbers = [value.tolist() for value in posterior.mean_and_std(rows)]
    return (*shown, numbers, posterior.num_observations, list(getattr(strategy, "alive", [])))


def pair(method="cgp_ucb", domain=finite, name="product", **more):
    return [make(method, domain(), name, **more) for _ in range(2)]


of_each_kind = pytest.mark.parametrize("method", ["cgp_ucb", "he_gp_ucb", "random"])


def test_graphs_of_contexts_and_actions_are_left_behind():
    strategy = make("cgp_ucb", box(), "product")
    offer = offers(SETTINGS["product"], box(), 1, 103, share=1.0)[0]
    given = {key: value.requires_grad_() for key, value in offer.keywords().items()}
    strategy.tell(strategy.ask(**given).id, 0.4)
    trial = strategy.ask(context=given["context"])
    strategy.abandon(trial.id)
    X, Y = contextual_data(SETTINGS["product"], box(), 3)
    started = make("cgp_ucb", box(), "product", initial=(X.requires_grad_(), Y.requires_grad_()))
    for s in (strategy, started):
        assert not s.posterior.train_inputs[0].requires_grad
        assert not any(t.point.requires_grad for t in s.history.trials)
        s.report()
        s.ask(context=given["context"])


@of_each_kind
@pytest.mark.parametrize("domain", [finite, box])
def test_initial_points_are_some_of_the_actions_there_are(method, domain):
    strategy = make(method, domain(), "product", num_initial=8)
    places = []
    for offer in offers(SETTINGS["product"], domain(), 8, 109, share=1.0):
        trial = strategy.ask(**offer.keywords())
        assert trial.info["initial"]
        assert torch.equal(offer.actions[trial.info["action"]], trial.x)
        if domain is finite:
            assert torch.equal(finite().points[trial.info["index"]], trial.x)
        places.append(trial.info["action"])
    assert len(set(places)) > 2


@pairwise(method=["cgp_ucb", *MULTI_MODEL], domain=[finite, box], policy=["hallucinate", "censor"])
def test_best_is_the_best_of_the_evaluated_actions(method, domain, policy):
    X, Y = contextual_data(SETTINGS["product"], domain(), 4)
    strategy = make(method, domain(), "product", policy, initial=(X, Y))
    play(strategy, script(18, 106), offers(SETTINGS["product"], domain(), 60, 106))
    told = [event for event in strategy.events if isinstance(event, Told)]
    trials = strategy.history.trials
    # Rows: all that is data, then, censored at the minimum, what pends.
    rows = torch.cat([X, *(trials[event.id].point[None] for event in told)])
    y = [*Y.tolist(), *(event.value for event in told)]
    believed, values = rows, list(y)
    if policy == "censor":
        pending = [trials[id].point[None] for id in strategy.pending]
        believed = torch.cat([rows, *pending])
        values += [strategy._rows.policy.minimum] * len(pending)
    assert strategy.pending
    noises = [NOISE_VARIANCE] if method == "cgp_ucb" else RIDGES
    z = torch.tensor([0.1, 5.5]).double()
    points = torch.cat([believed, joint(rows[:, :2], z)])
    models = [Candidate.at(points, SETTINGS["product"].gram, noise) for noise in noises]
    known = list(range(len(rows)))
    alive = getattr(strategy, "alive", [0])
    likeliest = max(alive, key=lambda u: models[u].log_evidence(known, y))
    assert likeliest > 0 or method == "cgp_ucb"
    mean = models[likeliest].mean(list(range(len(believed))), values)
    for context, means in ((None, mean[: len(rows)]), (z, mean[len(believed) :])):
        x, best = strategy.best(context)
        assert best == pytest.approx(means.max().item(), rel=1e-7, abs=1e-7)
        top = rows[(means - means.max()).abs() < 1e-9, :2]
        assert bool((top == x).all(dim=-1).any())


def test_sizes_of_contexts_that_nothing_states_are_those_of_the_first():
    X, Y = contextual_data(SETTINGS["product"], finite(), 4)
    options = {"noise_variance": NOISE_VARIANCE, "width": 1.0, "context_domain": ContextSpace()}
    kernel = SETTINGS["product"].kernel()
    first = algorithms.gp_ucb(finite(), kernel, **options)
    first.ask(context=[0.1, 5.0])
    started = algorithms.gp_ucb(finite(), kernel, initial=(X, Y), **options)
    replayed = algorithms.gp_ucb(finite(), kernel, **options)
    replayed.replay(first.events)
    for strategy in (first, started, replayed):
        before = snapshot(strategy)
        for wrong in ([0.1], [0.1, 0.2, 0.3]):
            with pytest.raises(ValueError, match=r"context must have shape \(2,\), got"):
                strategy.ask(context=wrong)
        assert snapshot(strategy) == before
        strategy.ask(context=[0.2, 6.0])


# --- events that were tampered with ---------------------------------------------------------------


def recorded(name="product"):
    strategy = make("he_gp_ucb", finite(), name)
    play(strategy, script(12, 108), offers(SETTINGS[name], finite(), 30, 108))
    strategy.ask(context=SETTINGS[name].draw(1, torch.Generator().manual_seed(1))[0])
    return strategy


NAN = float("nan")
# setting: what the last question has in place of its context, and what is said of it
FORGED = {
    "no context": ("product", None, "context of trial .* must be given"),
    "too small": ("product", [0.1], r"context of trial .* must have shape \(2,\), got \(1,\)"),
    "too large": ("product", [0.1, 5.0, 0.0], r"must have shape \(2,\), got \(3,\)"),
    "two of them": ("product", [[0.1, 5.0], [0.2, 5.0]], r"must have shape \(2,\), got \(2, 2\)"),
    "not finite": ("product", [0.1, NAN], "context of trial .* must be finite"),
    "outside": ("product", [0.1, 3.9], "context of trial .* must lie in the box"),
    "no such task": ("tasks", [4.0], "context of trial|tasks must be"),
    "half a task": ("tasks", [0.5], "context of trial|tasks must be"),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_contexts_are_refused_as_a_whole(case):
    name, context, message = FORGED[case]
    if context is not None:
        context = torch.tensor(context, dtype=torch.float64)
    check_refused(name, context, message)


@pytest.mark.parametrize(
    ("context", "message"),
    [
        ([0.1, 5.0], r"context of trial .* must be a tensor or None, got \[0.1, 5.0\]"),
        (0.1, "context of trial .* must be a tensor or None, got 0.1"),
        (torch.tensor([0.1, 5.0]), "context of trial .* must be torch.float64 on cpu, got .*32"),
        (torch.tensor([0.1, 5.0]).double().to("meta"), "context of trial .* must be .*got .*meta"),
    ],
)
def test_contexts_of_another_kind_are_refused_as_a_whole(context, message):
    check_refused("product", context, message)


def check_refused(name, context, message):
    *events, last = recorded(name).events
    strategy, twin = (make("he_gp_ucb", finite(), name) for _ in range(2))
    for s in (strategy, twin):
        s.replay(events[:4])
    before = snapshot(strategy)
    forged = Asked(Trial(last.trial.id, last.trial.x, context, last.trial.info))
    with pytest.raises(ValueError, match=message):
        strategy.replay([*events[4:], forged])
    assert snapshot(strategy) == before
    for s in (strategy, twin):
        s.replay([*events[4:], last])
    assert snapshot(strategy) == snapshot(twin)


def test_events_with_contexts_are_none_of_a_strategy_without_them():
    events = recorded().events
    kernel = SETTINGS["product"].parts()["action_kernel"]
    strategy = algorithms.gp_ucb(finite(), kernel, noise_variance=0.1, width=1.0)
    with pytest.raises(ValueError, match="context of trial 0 must be None"):
        strategy.replay(events)
    assert strategy.events == ()


def test_contexts_of_two_sizes_are_refused_where_nothing_states_the_size():
    def fresh():
        return RandomSearch(FiniteSet([[1.0], [2.0]]), context_domain=ContextSpace())

    x = torch.tensor([1.0]).double()
    trials = [Trial(i, x, torch.ones(2 + i).double(), {"index": 0}) for i in range(2)]
    strategy = fresh()
    with pytest.raises(ValueError, match=r"context of trial 1 must have shape \(2,\), got \(3,\)"):
        strategy.replay([Asked(trial) for trial in trials])
    assert strategy.events == ()
    assert strategy.ask(context=[3.0]).context.tolist() == [3.0]
