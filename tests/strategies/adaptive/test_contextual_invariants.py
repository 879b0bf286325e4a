"""Contexts that say nothing change nothing; those that share nothing are studies of their own."""

from itertools import cycle

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box, CandidateModels, algorithms, widths
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from botorch_ext.strategies import ContextwiseStrategy
from tests.strategies.adaptive.contextual_sessions import (
    NOISE_VARIANCE,
    matern,
    policy_options,
    rbf,
)
from tests.strategies.adaptive.model_sessions import level
from tests.strategies.sessions import POLICIES, all_policies, box, data, f, finite, script

WIDTH = widths.Enlarged(widths.SelfNormalized(1.5, 0.1, 0.1), 0.05)
# Unit variances, so that k_Z(z, z) = 1.
COVARIANCE = torch.tensor([[1.0, 0.5, -0.9], [0.5, 1.0, -0.4], [-0.9, -0.4, 1.0]]).double()
# name: context kernel, what contexts there are, the one that is always seen
CONSTANT = {
    "continuous": (lambda: matern([0.8, 1.5]), 2, [0.3, 6.1]),
    "in a box": (lambda: rbf(0.8), Box([[-1.0], [0.5]]), [0.5]),
    "task": (lambda: TaskKernel(COVARIANCE), None, [2.0]),
}


def play(strategy, actions, context):
    for kind, share, noise in actions:
        if kind in ("ask", "ask three") or not strategy.pending:
            count = 3 if kind == "ask three" and strategy.pending else None
            strategy.ask(count, **({} if context is None else {"context": context}))
        else:
            id = strategy.pending[int(share * len(strategy.pending))]
            if kind == "tell":
                strategy.tell(id, f(strategy.history.trials[id].x) + noise)
            else:
                strategy.abandon(id)


def joint_data(domain, context, num_points):
    X, Y = data(domain, num_points)
    return torch.cat([X, X.new_tensor(context).expand(len(X), -1)], dim=-1), Y


@pytest.mark.parametrize(("case", "policy"), list(zip(cycle(CONSTANT), POLICIES)))
def test_a_constant_context_makes_cgp_ucb_gp_ucb_on_a_finite_set(case, policy):
    of_contexts, context_domain, z = CONSTANT[case]
    options = {"noise_variance": NOISE_VARIANCE, "width": WIDTH, **policy_options(policy)}
    k = rbf([0.9, 0.5])
    contextual = algorithms.cgp_ucb(
        finite(),
        action_kernel=k,
        context_kernel=of_contexts(),
        context_domain=context_domain,
        initial=joint_data(finite(), z, 3),
        num_initial=2,
        **options,
    )
    plain = algorithms.gp_ucb(finite(), k, initial=data(finite(), 3), num_initial=2, **options)
    play(contextual, script(56, 91), torch.tensor(z).double())
    play(plain, script(56, 91), None)
    picks, expected = ([t.info["index"] for t in s.history.trials] for s in (contextual, plain))
    assert picks == expected
    assert len(picks) > 18
    for mine, other in zip(contextual.history.trials, plain.history.trials, strict=True):
        assert mine.info.keys() == other.info.keys()
        for key in ("mean", "std", "width"):
            if key in other.info:
                assert mine.info[key] == pytest.approx(other.info[key], rel=1e-7, abs=1e-8)
    assert contextual.best()[0].tolist() == plain.best()[0].tolist()
    assert contextual.best()[1] == pytest.approx(plain.best()[1], rel=1e-8)
    one, other = contextual.report(), plain.report()
    for key in ("t", "current_width", "information_gain", "told_too_late", "pending"):
        assert one[key] == pytest.approx(other[key], rel=1e-7), key


@all_policies
def test_a_constant_context_makes_cgp_ucb_gp_ucb_on_a_box(policy):
    of_contexts, context_domain, z = CONSTANT["continuous"]
    options = {"noise_variance": NOISE_VARIANCE, "width": WIDTH, **policy_options(policy)}
    k = rbf([0.9, 0.5])
    contextual = algorithms.cgp_ucb(
        box(),
        action_kernel=k,
        context_kernel=of_contexts(),
        context_domain=context_domain,
        initial=joint_data(box(), z, 4),
        **options,
    )
    plain = algorithms.gp_ucb(box(), k, initial=data(box(), 4), **options)
    for action in script(16, seed=28):
        play(contextual, [action], torch.tensor(z).double())
        play(plain, [action], None)
    mine, other = (torch.stack([t.x for t in s.history.trials]) for s in (contextual, plain))
    assert len(mine) > 5
    # Where both climb the same hill, a flat top leaves half the digits of the point.
    assert_close(mine, other, rtol=1e-5, atol=1e-5)


# Of models that differ in their prior means: f is below most of them.
LEVELS = [-0.5, 0.7, 3.5, 6.0]


@pytest.mark.parametrize(
    ("domain", "policy"),
    [(finite, policy) for policy in POLICIES] + [(box, "timeout")],
)
def test_a_constant_context_makes_contextual_he_gp_ucb_he_gp_ucb(domain, policy):
    options = {"rkhs_bound": 0.25, "noise_std": 0.03, "delta": 0.1, **policy_options(policy)}
    of_contexts, context_domain, z = CONSTANT["continuous"]
    means = [level(value) for value in LEVELS]
    plain = algorithms.he_gp_ucb(
        domain(),
        CandidateModels(rbf(0.7), NOISE_VARIANCE, means=means),
        initial=data(domain(), 3),
        **options,
    )
    k = ActionContextKernel(rbf(0.7), of_contexts(), 2)
    contextual = algorithms.he_gp_ucb(
        domain(),
        CandidateModels(k, NOISE_VARIANCE, means=means),
        context_domain=context_domain,
        initial=joint_data(domain(), z, 3),
        **options,
    )
    for action in script(50 if domain is finite else 14, seed=29):
        play(contextual, [action], torch.tensor(z).double())
        play(plain, [action], None)
        assert contextual.alive == plain.alive
    assert len(plain.alive) < len(LEVELS)
    mine, other = (torch.stack([t.x for t in s.history.trials]) for s in (contextual, plain))
    assert_close(mine, other, rtol=1e-5, atol=1e-5)
    models = [[t.info["model"] for t in s.history.trials] for s in (contextual, plain)]
    assert models[0] == models[1]


@pytest.mark.parametrize("policy", ["ignore", "hallucinate", "censor"])
def test_contexts_that_share_nothing_are_studies_of_their_own(policy):
    options = {"noise_variance": NOISE_VARIANCE, "width": 1.3, **policy_options(policy)}
    k = rbf([0.9, 0.5])
    whole = algorithms.cgp_ucb(
        finite(), action_kernel=k, context_kernel=TaskKernel(torch.eye(3).double()), **options
    )
    alone = [algorithms.gp_ucb(finite(), k, **options) for _ in range(3)]
    master = ContextwiseStrategy(alone, key=int, context_domain=1)
    tasks = torch.randint(3, (80,), generator=torch.Generator().manual_seed(92)).tolist()
    own = {}  # from the trial of the whole to the study and its trial
    for (kind, share, noise), task in zip(script(80, 93), tasks, strict=True):
        if kind in ("ask", "ask three") or not whole.pending:
            mine = whole.ask(context=[task])
            other = alone[task].ask()
            own[mine.id] = task, other.id
            assert mine.info["index"] == other.info["index"]
            for key in ("mean", "std"):
                assert mine.info[key] == pytest.approx(other.info[key], rel=1e-7, abs=1e-8)
            assert master.ask(context=[task]).info == {
                "base": task,
                "decision": other.info,
                "index": other.info["index"],
            }
        else:
            id = whole.pending[int(share * len(whole.pending))]
            task, other = own[id]
            value = f(whole.history.trials[id].x) + task + noise
            for study, known_as in ((whole, id), (master, id), (alone[task], other)):
                if kind == "tell":
                    study.tell(known_as, value)
                else:
                    study.abandon(known_as)
    assert min(len(study.history.trials) for study in alone) > 5
    gains = [study.report()["information_gain"] for study in alone]
    assert whole.report()["information_gain"] == pytest.approx(sum(gains), rel=1e-8)
