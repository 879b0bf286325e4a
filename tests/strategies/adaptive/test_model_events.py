"""Methods over several models as folds over events: replayed, they go on bit for bit the same."""

import pytest
import torch

from botorch_ext import CandidateModels, algorithms
from botorch_ext.models.growing_rows import GrowingRows
from botorch_ext.strategies import Asked, Told, Trial
from tests.helpers import devices, pairwise, steps_on
from tests.strategies.adaptive.model_sessions import (
    METHODS,
    SIGMA,
    make,
    oracle,
    play_promptly,
    rbf,
    snapshot,
)
from tests.strategies.sessions import LAMBDA, both_domains, box, data, f, finite, play, script

every_method = pytest.mark.parametrize("method", METHODS)
# The last model left warns when it would be rejected.
pytestmark = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")


def start(domain):
    return {"initial": data(domain, 4), "num_initial": 2}


@every_method
@both_domains
def test_reports_of_hallucinated_trials_copy_no_posterior(method, domain, monkeypatch):
    strategy = make(method, domain(), **start(domain()))
    play_promptly(strategy, 3)
    strategy.ask()
    monkeypatch.setattr("copy.deepcopy", None)
    monkeypatch.setattr(GrowingRows, "_owned", None)  # where shared rows are copied
    summary = strategy.report()
    monkeypatch.undo()
    asked = strategy.ask()
    strategy.abandon(asked.id)  # by now all rows are entered
    later = strategy.report()
    assert summary["t"] == later["t"]
    assert summary["best"]["x"] == later["best"]["x"]
    for a, b in zip(summary["models"], later["models"], strict=False):  # some join later
        assert a["log_marginal_likelihood"] == pytest.approx(b["log_marginal_likelihood"])


@both_domains
def test_a_growth_that_fails_leaves_the_study_as_it_was(domain):
    def growth(t):
        return t**0.9 if t < 5 else float("nan")

    models = CandidateModels.growing(rbf(0.5), 1.0, LAMBDA, dim=2, growth=growth)
    strategy = algorithms.he_gp_ucb(domain(), models, noise_std=SIGMA, width=2.0)
    play_promptly(strategy, 2)
    strategy.ask()
    before = snapshot(strategy)
    with pytest.raises(ValueError, match=r"growth\(5\)"):
        strategy.ask()
    assert snapshot(strategy) == before


@every_method
@both_domains
def test_the_report_says_how_every_model_stands(method, domain):
    strategy = make(method, domain(), num_initial=2)
    play(strategy, script(14, seed=47))
    report = strategy.report()
    for trial in strategy.history.trials:
        assert (trial.info == {"initial": True} | trial.info) == (trial.id < 2)
    lines = report["models"]
    for line in lines:
        assert {"name", "times_played", "status", "rejected_at", "log_marginal_likelihood"} <= (
            line.keys()
        )
        assert line["status"] in ("alive", "rejected")
    if method != "expected_ucb":
        played = [trial.info["model"] for trial in strategy.history.trials if trial.id >= 2]
        told = [
            t.info["model"] for t in strategy.history.trials[2:] if t.id in strategy.history.values
        ]
        for u, line in enumerate(lines):
            assert told.count(u) <= line["times_played"] <= played.count(u)
    lines.clear()
    assert strategy.report()["models"]


def test_best_is_the_evaluated_point_with_the_highest_mean_of_the_likeliest_alive_model():
    strategy = make("he_gp_ucb", finite(), name="high means")
    play_promptly(strategy, 12)
    lines = strategy.report()["models"]
    assert len(strategy.alive) < 4
    likeliest = max(strategy.alive, key=lambda u: lines[u]["log_marginal_likelihood"])
    model = oracle("high means", finite().points)[likeliest]
    rows = [trial.info["index"] for trial in strategy.history.trials]
    y = [strategy.history.values[trial.id] for trial in strategy.history.trials]
    mean = model.mean(rows, y)[rows]
    x, best = strategy.best()
    assert best == pytest.approx(mean.max().item(), rel=1e-8)
    assert torch.equal(x, finite().points[rows[int(mean.argmax())]])


@pairwise(
    method=METHODS,
    domain=[finite, box],
    dtype=[torch.float64, torch.float32],
    device=devices(),
)
def test_trials_follow_dtype_and_device_of_the_domain(method, domain, dtype, device):
    points = domain(device=device).to(dtype=dtype)
    strategy = make(method, points, num_initial=2)
    play(strategy, script(2 + steps_on(device, 9), seed=207))
    for trial in strategy.history.trials:
        assert (trial.x.dtype, trial.x.device) == (points.dtype, points.device)
        assert bool(points.contains(trial.x).all())
    x, mean = strategy.best()
    assert (x.dtype, x.device) == (points.dtype, points.device)
    assert type(mean) is float


# --- events that were tampered with ---------------------------------------------------------------


def recorded():
    """Events among which models are rejected, and the position of the last question."""
    strategy = make("he_gp_ucb", finite(), name="high means")
    play_promptly(strategy, 8)
    strategy.ask()
    return strategy


def forged(events, **changes):
    """The last question with another info; None takes a key away."""
    trial = events[-1].trial
    info = {**trial.info, **changes}
    info = {key: value for key, value in info.items() if value is not None}
    return [*events[:-1], Asked(Trial(trial.id, trial.x, None, info))]


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "changes",
    [
        {"model": 4},
        {"model": -1},
        {"model": None},
        {"model": "RBF"},
        {"model": 0.0},
        {"model": True},
        {"model": [0]},
        {"mean": NAN},
        {"mean": INF},
        {"mean": None},
        {"mean": "0.5"},
        {"std": NAN},
        {"std": -0.1},
        {"std": None},
        {"width": NAN},
        {"width": -1.0},
        {"width": INF},
        {"width": None},
        {"offset": NAN},
        {"offset": "none"},
        {"index": 54},
        {"index": None},
    ],
    ids=str,
)
def test_forged_infos_are_refused_as_a_whole(changes):
    events = recorded().events
    strategy, twin = (make("he_gp_ucb", finite(), name="high means") for _ in range(2))
    for s in (strategy, twin):
        s.replay(events[:5])
    before = snapshot(strategy)
    with pytest.raises(ValueError, match=r"\b8\b|model|mean|std|width|offset|index"):
        strategy.replay(forged(events, **changes)[5:])
    assert snapshot(strategy) == before
    for s in (strategy, twin):
        s.replay(events[5:])
    assert snapshot(strategy) == snapshot(twin)


def test_events_of_other_models_are_refused_or_change_nothing():
    # Six models played, four known.
    played = make("he_gp_ucb", finite(), name="mixed")
    play(played, script(60, seed=48))
    assert max(t.info["model"] for t in played.history.trials) >= 3
    strategy = make("he_gp_ucb", finite(), name="additive")
    before = snapshot(strategy)
    with pytest.raises(ValueError, match="model"):
        strategy.replay(played.events)
    assert snapshot(strategy) == before


def test_initial_points_have_no_model():
    strategy = make("he_gp_ucb", finite(), num_initial=2)
    for _ in range(3):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x) + SIGMA)
    assert [trial.info.get("model") is None for trial in strategy.history.trials] == [
        True,
        True,
        False,
    ]
    assert len(strategy.tests) == 1
    assert strategy.tests[0].t == 3
    assert sum(isinstance(event, Told) for event in strategy.events) == 3
