"""Asked, told, abandoned and replayed: what the laws do not look at."""

import warnings

import pytest
import torch

import botorch_ext as bx
from botorch_ext.exceptions import NoObservationsError, PriorScaleWarning
from botorch_ext.models import KernelGP
from botorch_ext.strategies import Asked, OptimisticStrategy
from botorch_ext.testing.interrupting import lines_of
from tests.helpers import rbf
from tests.laws.scenarios import quietly
from tests.strategies import sessions
from tests.strategies.sessions import both_domains, box, data, finite, make

pytestmark = quietly


def test_a_list_is_asked_as_a_whole_or_not_at_all():
    before = make(box())
    before.ask()
    whole = before.clone()
    total = lines_of(lambda: whole.ask(3))
    for number in range(6):
        strategy = before.clone()
        lines_of(lambda: strategy.ask(3), total * number // 6)  # noqa: B023
        assert len(strategy.events) == 1
        strategy.ask(3)
        assert strategy.report() == whole.report()


@both_domains
def test_given_data_is_copied(domain):
    X, Y = data(domain(), 5)
    kept, changed = make(domain(), initial=(X.clone(), Y.clone())), make(domain(), initial=(X, Y))
    X.fill_(3.0)
    Y.fill_(7.0)
    assert sessions.plain(Asked(kept.ask())) == sessions.plain(Asked(changed.ask()))
    assert sessions.snapshot(kept) == sessions.snapshot(changed)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("width", lambda f: bx.algorithms.gp_ucb(box(), rbf(1.0), noise_variance=0.1, width=f)),
        ("width", lambda f: bx.algorithms.gp_ucb(box(), rbf(1.0), noise_variance=0.1, width=[f])),
        ("width", lambda f: bx.widths.Scaled(f, 0.5)),
        (
            "width",
            lambda f: bx.acquisition.EnlargedUpperConfidenceBound(KernelGP(rbf(1.0), 0.1), f),
        ),
        (
            "free_width",
            lambda f: bx.algorithms.certified_bucb(
                box(), sessions.kernel(), horizon=30, width=2.0, noise_variance=0.1, free_width=f
            ),
        ),
    ],
)
def test_a_function_in_place_of_a_width_is_refused_with_the_cure(name, call):
    with pytest.raises(ValueError, match=rf"^{name} must .*botorch_ext\.widths\.Width"):
        call(lambda t, model: 2.0)


@both_domains
def test_data_in_the_model_is_never_best(domain):
    model = KernelGP(sessions.kernel(), sessions.LAMBDA)
    X, Y = data(domain(), 4)
    model.add(X + 10.0, Y + 5.0)  # nor need it lie in the domain
    strategy = OptimisticStrategy(domain(), model, 2.0)
    strategy.abandon(strategy.ask().id)
    with pytest.raises(NoObservationsError, match="best needs at least one evaluated point"):
        strategy.best()
    assert strategy.report()["best"] is None
    trial = strategy.ask()
    strategy.tell(trial.id, -3.0)
    assert torch.equal(strategy.best()[0], trial.x)


@both_domains
def test_initial_points_are_spread_and_follow_the_seed(domain):
    strategy = make(domain(), num_initial=6)
    for step in range(3):  # told or not makes no difference
        strategy.tell(strategy.ask().id, 5.0 - step)
    strategy.ask(3)
    X = torch.stack([trial.x for trial in strategy.history.trials])
    assert torch.equal(X, domain().sample(6, 5))
    assert len(X.unique(dim=0)) == 6
    assert all(trial.info["initial"] for trial in strategy.history.trials)
    assert "initial" not in strategy.ask().info
    other = make(domain(), num_initial=6, seed=6)
    assert not torch.equal(torch.stack([trial.x for trial in other.ask(6)]), X)


def test_more_initial_points_than_members_start_over():
    rows = [trial.info["index"] for trial in make(finite(), num_initial=60).ask(60)]
    assert sorted(rows[:54]) == list(range(54))
    assert len(set(rows[54:])) == 6


def test_a_warning_made_an_error_leaves_a_replay_undone():
    strategy, fresh = (
        OptimisticStrategy(finite(), KernelGP(sessions.kernel(), sessions.LAMBDA), 2.0)
        for _ in range(2)
    )
    for _ in range(8):
        strategy.tell(strategy.ask().id, 100.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PriorScaleWarning)
        with pytest.raises(PriorScaleWarning):
            fresh.replay(strategy.events)
    assert fresh.events == ()
