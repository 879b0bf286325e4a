"""The baselines for unknown hyperparameters against their definitions, by replay."""

import math
from itertools import cycle

import pytest
import torch

from botorch_ext import CandidateModels, algorithms, widths
from botorch_ext.strategies import Asked, Told
from tests.oracles.models import Candidate, Session, check_record, predictions, upper_bounds, xi
from tests.strategies.adaptive.model_sessions import (
    DELTA,
    METHODS,
    NUMBERS,
    SETS,
    SIGMA,
    B,
    grid,
    make,
    oracle,
    play_and_note,
    play_promptly,
    rbf,
    self_normalized,
)
from tests.strategies.sessions import (
    LAMBDA,
    POLICIES,
    box,
    data,
    f,
    finite,
    play,
    script,
)

FULL = self_normalized(delta=DELTA)


def index(trial):
    return trial.info["index"]


def asks(strategy, policy="hallucinate", initial=()):
    """Each question that was no initial point, with what was known before it."""
    session = Session(policy, index, initial or ([], []))
    for event in strategy.events:
        if isinstance(event, Asked) and not event.trial.info.get("initial"):
            yield event.trial, session
        session.apply(event)


def check_stored(trial, session, model, width, judged=False):
    check_record(trial.info, predictions(session, model, trial.info["index"], width), judged)


def log_evidence(candidates, session):
    told = session.told
    evidence = [model.log_evidence(told.rows, told.y) for model in candidates]
    return torch.tensor(evidence, dtype=torch.float64)


# --- MLE-UCB and ExpectedUCB ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "policy"), list(zip(cycle(["lengthscales", "periods", "mixed"]), POLICIES))
)
def test_mle_ucb_plays_the_model_with_the_highest_evidence(name, policy):
    width = widths.SelfNormalized(B, SIGMA, DELTA)
    strategy = make("mle_ucb", finite(), policy, name, width=width, seed=1)
    alive_after = play_and_note(strategy, script(60, seed=31))
    candidates = oracle(name, finite().points)
    assert all(alive == list(range(len(candidates))) for alive in alive_after)
    chosen = set()
    for trial, session in asks(strategy, policy):
        evidence, u = log_evidence(candidates, session), trial.info["model"]
        assert evidence.max() - evidence[u] <= 1e-7
        bounds = upper_bounds([candidates[u]], session, FULL)[0]
        assert bounds.max() - bounds[trial.info["index"]] <= 1e-7
        check_stored(trial, session, candidates[u], FULL)
        chosen.add(u)
    assert len(chosen) > 1
    session = Session(policy, index)
    for event in strategy.events:
        session.apply(event)
    reported = [line["log_marginal_likelihood"] for line in strategy.report()["models"]]
    assert reported == pytest.approx(log_evidence(candidates, session).tolist(), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(
    ("name", "policy"), list(zip(cycle(["means", "periods", "mixed"]), POLICIES))
)
def test_expected_ucb_averages_the_bounds_by_the_evidence(name, policy):
    width = widths.SelfNormalized(B, SIGMA, DELTA)
    strategy = make("expected_ucb", finite(), policy, name, width=width, seed=1)
    play(strategy, script(60, seed=32))
    candidates = oracle(name, finite().points)
    undecided = 0
    for trial, session in asks(strategy, policy):
        shares = log_evidence(candidates, session).softmax(dim=0)
        average = shares @ upper_bounds(candidates, session, FULL)
        assert average.max() - average[trial.info["index"]] <= 1e-7
        undecided += bool(shares.max() < 0.95)
        if "model" in trial.info:
            check_stored(trial, session, candidates[trial.info["model"]], FULL)
    assert undecided > 1


# --- A-GP-UCB -------------------------------------------------------------------------------------

LENGTHSCALES = [0.3, 0.8, 2.5, 6.0]


@pytest.mark.parametrize(
    ("lengthscale_0", "growth", "exponent"),
    [(None, None, 0.9), (3.0, None, 0.9), (4.0, lambda t: t**0.4, 0.4)],
)
@pytest.mark.parametrize("start", [{}, {"num_initial": 2}])
def test_a_gp_ucb_shrinks_the_lengthscale_and_raises_the_bound(
    lengthscale_0, growth, exponent, start
):
    options = {"lengthscale_0": lengthscale_0, "growth": growth, **start}
    options = {key: value for key, value in options.items() if value is not None}
    strategy = make("a_gp_ucb", finite(), initial=data(finite(), 1), **options)
    play_promptly(strategy, 30)
    X, Y = data(finite(), 1)
    candidates = oracle("lengthscales", finite().points)
    top = 6.0 if lengthscale_0 is None else lengthscale_0  # the largest of them
    played = []
    for trial, session in asks(strategy, initial=(finite().index(X).tolist(), Y.tolist())):
        t = session.told.t
        wanted = top / t**exponent
        u = min(range(4), key=lambda v: abs(LENGTHSCALES[v] - wanted))
        assert trial.info["model"] == u
        width = self_normalized(B * (top / LENGTHSCALES[u]) ** 2, DELTA)  # d = 2
        bounds = upper_bounds([candidates[u]], session, width)[0]
        assert bounds.max() - bounds[trial.info["index"]] <= 1e-7
        check_stored(trial, session, candidates[u], width)
        played.append(u)
    assert len(set(played)) >= 2
    assert played == sorted(played, reverse=True)


# --- LB-GP-UCB ------------------------------------------------------------------------------------


def suspected_bound(lengthscale, n, d, rkhs_bound):
    g = lengthscale**-d * math.log(n) ** (d + 1)
    return math.sqrt(n * g) * (math.sqrt(g) + rkhs_bound)


@pytest.mark.parametrize(
    ("lengthscale_0", "growth", "constant"), [(2.0, 0.9, 0.5), (6.0, 0.9, 0.05), (3.0, 0.5, 0.1)]
)
def test_lb_gp_ucb_balances_suspected_bounds(lengthscale_0, growth, constant):
    models = CandidateModels.growing(
        rbf(1.0), lengthscale_0, LAMBDA, dim=2, growth=lambda t: t**growth
    )
    strategy = algorithms.lb_gp_ucb(finite(), models, width=constant, **NUMBERS)
    alive_after = []
    g = torch.Generator().manual_seed(4)
    for noise in (SIGMA * torch.randn(60, generator=g)).tolist():
        trial = strategy.ask()
        alive_after.append(list(strategy.alive))
        strategy.tell(trial.id, f(trial.x) + noise)
        alive_after.append(list(strategy.alive))
    points = finite().points

    def width(model, t, gain):
        return constant

    session, rejected, alive = Session("hallucinate", index), {}, []
    scales, candidates, played = [], [], []
    for event, noted in zip(strategy.events, alive_after, strict=True):
        t = session.told.t
        if isinstance(event, Asked):
            # l_i = lengthscale_0 exp(-i/d), added once lengthscale_0/g(t) has fallen below it.
            while not scales or lengthscale_0 / t**growth < lengthscale_0 * math.exp(
                -len(scales) / 2
            ):
                scales.append(lengthscale_0 * math.exp(-len(scales) / 2))
                candidates.append(Candidate.at(points, rbf(scales[-1]), LAMBDA))
                played.append([])
            alive = [u for u in range(len(scales)) if u not in rejected]
            promised = {u: suspected_bound(scales[u], len(played[u]) + 1, 2, B) for u in alive}
            info = event.trial.info
            u = info["model"]
            assert promised[u] <= min(promised.values()) * (1 + 1e-9)
            bounds = upper_bounds([candidates[u]], session, width)[0]
            assert bounds.max() - bounds[info["index"]] <= 1e-7
            check_stored(event.trial, session, candidates[u], width, judged=True)
        session.apply(event)
        if isinstance(event, Told):
            info = session.info[event.id]
            told = info["told"]
            played[info["model"]].append((event.value, told["width"] * told["std"]))
            if all(played[u] for u in alive):
                noise = {
                    u: math.sqrt(xi(t, len(scales), SIGMA, DELTA) / len(played[u])) for u in alive
                }
                mean = {u: sum(y for y, _ in played[u]) / len(played[u]) for u in alive}
                slack = {u: sum(ws for _, ws in played[u]) / len(played[u]) for u in alive}
                threshold = max(mean[u] - noise[u] for u in alive)
                for u in alive:
                    if mean[u] + slack[u] + noise[u] < threshold:
                        rejected[u] = t
                alive = [u for u in alive if u not in rejected]
        # The next ones may be there already, for the next question.
        assert [u for u in noted if u < len(scales)] == alive
    assert len(scales) >= 5
    lines = strategy.report()["models"]
    assert len(lines) - len(scales) in (0, 1)
    assert {u: line["rejected_at"] for u, line in enumerate(lines) if line["rejected_at"]} == (
        rejected
    )
    if constant == 0.05:
        assert rejected


def test_a_new_lengthscale_gets_all_the_data():
    models = CandidateModels.growing(rbf(1.0), 2.0, LAMBDA, dim=2, growth=lambda t: 1.7**t)
    strategy = algorithms.lb_gp_ucb(
        finite(), models, width=0.5, initial=data(finite(), 5), **NUMBERS
    )
    strategy.ask(4)
    strategy.tell(1, -0.4)
    trial = strategy.ask()
    u = trial.info["model"]
    assert u > 0
    X, Y = data(finite(), 5)
    model = Candidate.at(finite().points, rbf(2.0 * math.exp(-u / 2)), LAMBDA)
    second = strategy.history.trials[1].info["index"]
    rows, y = [*finite().index(X).tolist(), second], [*Y.tolist(), -0.4]
    row = trial.info["index"]
    told = trial.info["told"]
    assert told["mean"] == pytest.approx(model.mean(rows, y)[row].item(), rel=1e-8, abs=1e-9)
    assert told["std"] == pytest.approx(model.std(rows)[row].item(), rel=1e-8)


@pytest.mark.parametrize("stretch", [1.0, 30.0])
def test_without_a_bound_lb_gp_ucb_standardises_what_the_models_see(stretch):
    models = CandidateModels.growing(rbf(1.0), 2.0, LAMBDA, dim=2)
    strategy = algorithms.lb_gp_ucb(finite(), models, noise_std=SIGMA * stretch, delta=DELTA)
    for _ in range(25):
        trial = strategy.ask()
        strategy.tell(trial.id, 7.0 + stretch * f(trial.x))
    for trial, session in asks(strategy):
        info, y = trial.info, torch.tensor(session.told.y, dtype=torch.float64)
        shift = float(y.mean()) if len(y) else 0.0
        scale = float(y.std()) if len(y) > 1 and float(y.std()) > 0 else 1.0
        model = Candidate.at(finite().points, rbf(2.0 * math.exp(-info["model"] / 2)), LAMBDA)
        rows, row = session.told.rows, info["index"]
        mean = model.mean(rows, ((y - shift) / scale).tolist())
        std, gain = model.std(rows), model.gain(rows)
        ratio = SIGMA * stretch / scale / math.sqrt(LAMBDA)
        w = ratio * math.sqrt(2 * math.log(1 / DELTA) + 2 * gain) + 1.0  # B = 1
        bounds = mean + w * std
        assert bounds.max() - bounds[row] <= 1e-7
        assert info["width"] == pytest.approx(w, rel=1e-8)
        assert info["mean"] == pytest.approx(shift + scale * mean[row].item(), rel=1e-7, abs=1e-7)
        assert info["std"] == pytest.approx(scale * std[row].item(), rel=1e-7, abs=1e-8)
    told = [7.0 + stretch * f(trial.x) for trial in strategy.history.trials]
    assert strategy.best()[1] == pytest.approx(max(told), abs=0.3 * stretch)


# --- on a box -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS[1:])
def test_no_point_of_a_fine_grid_beats_a_pick_on_a_box(method):
    X, Y = data(box(), 3)
    strategy = make(method, box(), initial=(X, Y), width=0.8)
    play(strategy, script(20, seed=34))
    trials, fine = strategy.history.trials, grid(21)
    points = torch.cat([fine, X, torch.stack([trial.x for trial in trials])])
    first = len(fine) + len(X)
    if method == "lb_gp_ucb":
        scales = [2.0 * math.exp(-i / 2) for i in range(len(strategy.names))]
        candidates = [Candidate.at(points, rbf(scale), LAMBDA) for scale in scales]
    else:
        candidates = oracle("lengthscales" if method == "a_gp_ucb" else "mixed", points)
    session = Session("hallucinate", lambda trial: first + trial.id)
    session.initial = (list(range(len(fine), first)), Y.tolist())
    played = 0
    for event in strategy.events:
        if isinstance(event, Asked):
            bounds = upper_bounds(candidates, session, lambda model, t, gain: 0.8)
            if method == "expected_ucb":
                scores = log_evidence(candidates, session).softmax(dim=0) @ bounds
            else:
                scores = bounds[event.trial.info["model"]]
            assert scores.max() - scores[first + event.trial.id] <= 1e-7
            played += 1
        session.apply(event)
    assert played > 6


def test_the_names_say_what_a_model_is():
    assert len(set(SETS["mixed"][0]().names)) == 6
    for name in ("lengthscales", "periods", "additive", "means", "noise"):
        strategy = make("mle_ucb", finite(), name=name)
        names = [line["name"] for line in strategy.report()["models"]]
        assert names == list(strategy.names) == list(SETS[name][0]().names)
        assert len(set(names)) == len(names)
