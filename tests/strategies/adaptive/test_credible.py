"""credible_ucb against its definition, by replay: which models are credible, what they play."""

import math
from dataclasses import replace

import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel

from botorch_ext import CandidateModels, FiniteSet, algorithms, widths
from botorch_ext.exceptions import KernelBoundWarning
from botorch_ext.strategies import Asked
from tests.helpers import pairwise
from tests.oracles.models import (
    Candidate,
    Session,
    WidthFormula,
    check_record,
    predictions,
    upper_bounds,
)
from tests.strategies.adaptive.model_sessions import (
    DELTA,
    NUMBERS,
    SIGMA,
    B,
    grid,
    make,
    oracle,
    play_promptly,
    rbf,
    scaled,
    self_normalized,
)
from tests.strategies.sessions import (
    LAMBDA,
    POLICIES,
    all_policies,
    box,
    data,
    finite,
    play,
    script,
)

FULL = self_normalized(delta=DELTA)
# Nothing but rounding is between a model and the largest evidence less c, or between two bounds.
CLOSE = 1e-7


# Of the twins in the tests.
NUGGET = 0.3


def with_twins(plain: list[Candidate], points: torch.Tensor) -> list[Candidate]:
    """The models and their twins: s^2 more where two points are one."""
    same = (points.unsqueeze(1) == points.unsqueeze(0)).all(dim=-1)
    twins = [replace(m, K=m.K + NUGGET**2 * same, position=m.position + len(plain)) for m in plain]
    return [*plain, *twins]


def width_of_plain(plain: list[Candidate], session: Session, width: WidthFormula) -> WidthFormula:
    """That of a twin is the width of its plain model, with the rows that both have."""

    def own(model: Candidate, t: int, gain: float) -> float:
        for belief in (session.believed, session.told):
            if gain == model.gain(belief.seen):
                other = plain[model.position % len(plain)]
                return width(other, belief.t, other.gain(belief.seen))
        raise AssertionError

    return own


def index(trial):
    return trial.info["index"]


def log_evidence(candidates: list[Candidate], session: Session) -> list[float]:
    """By the determinant, of what was told in time and nothing else."""
    told, values = session.told, []
    y = torch.tensor(told.y, dtype=torch.float64)
    for model in candidates:
        rows, n = told.rows, len(told.rows)
        if not n:
            values.append(0.0)
            continue
        A = model.K[rows][:, rows] + model.noise_variance * torch.eye(n, dtype=torch.float64)
        residual = y - model.prior[rows]
        fit = float(residual @ torch.linalg.inv(A) @ residual)
        logdet = float(torch.linalg.slogdet(A).logabsdet)
        values.append(-0.5 * (fit + logdet + n * math.log(2 * math.pi)))
    return values


def credible(candidates: list[Candidate], session: Session, c: float) -> list[int]:
    evidence = log_evidence(candidates, session)
    below = [max(evidence) - value for value in evidence]
    assert all(abs(gap - c) > CLOSE for gap in below if gap > 0)
    return [u for u, gap in enumerate(below) if gap <= c]


def check_decision(
    trial, candidates: list[Candidate], session: Session, c: float, width: WidthFormula
) -> list[int]:
    """argmax over points and credible models, of equal ones the first point, then the first model;
    returns the credible ones."""
    allowed, place = credible(candidates, session, c), trial.info["index"]
    bounds = upper_bounds(candidates, session, width)
    best = max(float(bounds[u].max()) for u in allowed)
    u = trial.info["model"]
    assert u in allowed
    assert best - float(bounds[u, place]) <= CLOSE
    for x in range(place):  # none before it is as good
        assert all(float(bounds[v, x]) <= best + CLOSE for v in allowed)
    check_record(trial.info, predictions(session, candidates[u], place, width), judged=False)
    return allowed


def replayed(strategy, candidates, policy, c, width=FULL, initial=None):
    """Every decision checked; the credible models before each of them, and after all events."""
    session, history = Session(policy, index, initial or ([], [])), []
    for event in strategy.events:
        if isinstance(event, Asked) and not event.trial.info.get("initial"):
            history.append(check_decision(event.trial, candidates, session, c, width))
        session.apply(event)
    evidence = log_evidence(candidates, session)
    report = strategy.report()
    assert report["credibility"] == pytest.approx(c)
    for line, value in zip(report["models"], evidence, strict=True):
        assert line["log_marginal_likelihood"] == pytest.approx(value, rel=1e-7, abs=1e-6)
        below = max(evidence) - value
        assert line["log_evidence_below_best"] == pytest.approx(below, rel=1e-6, abs=1e-6)
        assert line["credible"] == (below <= c)
        assert line["status"] == "alive"
    return history


@pairwise(policy=POLICIES, name=["lengthscales", "periods", "mixed"], credibility=[None, 1.5])
def test_the_highest_bound_of_the_credible_models_is_played(name, policy, credibility):
    width = widths.SelfNormalized(B, SIGMA, DELTA)
    more = {"width": width, "credibility": credibility, "seed": 1}
    strategy = make("credible_ucb", finite(), policy, name, **more)
    play(strategy, script(60, seed=31))
    candidates = oracle(name, finite().points)
    c = math.log(len(candidates) / DELTA) if credibility is None else credibility
    history = replayed(strategy, candidates, policy, c)
    everyone = list(range(len(candidates)))
    assert history[0] == everyone
    assert strategy.alive == everyone
    if name != "periods" or credibility is not None:
        assert min(map(len, history)) < len(everyone)


def test_delta_is_that_of_c_and_of_the_width():
    numbers = {**NUMBERS, "delta": 0.004}
    strategy = make("credible_ucb", finite(), name="lengthscales", **numbers)
    play(strategy, script(60, seed=33))
    candidates = oracle("lengthscales", finite().points)
    replayed(strategy, candidates, "hallucinate", math.log(4 / 0.004), self_normalized(B, 0.004))


# The truth wiggles in one half of the domain alone: data of the other half speak for the smooth.
SCALES = [0.25, 3.0]


def two_faced(x):
    return float(0.3 * (x[1] + 2)) if x[0] < 3.5 else 0.6 * math.copysign(1, math.sin(9 * x[0]))


def test_a_model_that_left_comes_back():
    models = CandidateModels.lengthscales(rbf(1.0), SCALES, LAMBDA)
    points = finite().points
    halves = points[points[:, 0] < 3.5], points[points[:, 0] >= 3.5]
    strategy = algorithms.credible_ucb(finite(), models, width=1.0)
    candidates = [Candidate.at(points, rbf(scale), LAMBDA) for scale in SCALES]
    standings = []
    for x in (*halves[0], *halves[1]):
        trial = strategy.ask(actions=x[None])
        strategy.tell(trial.id, two_faced(trial.x))
        standings.append(tuple(line["credible"] for line in strategy.report()["models"]))
    left = standings.index((False, True))
    back = next(step for step in range(left, len(standings)) if standings[step][0])
    assert strategy.rejected == {}
    session = Session("hallucinate", index)
    for step, told in enumerate(trial.id for trial in strategy.history.trials):
        for event in strategy.events[2 * told : 2 * told + 2]:
            session.apply(event)
        allowed = credible(candidates, session, math.log(2 / DELTA))
        assert standings[step] == tuple(u in allowed for u in range(2))
    assert {strategy.history.trials[step].info["model"] for step in range(left + 1, back)} == {1}
    assert strategy.ask().info["model"] == 0


def test_of_equal_models_the_first_plays_at_the_first_point():
    models = CandidateModels([rbf(0.8), rbf(0.8)], LAMBDA, names=["one", "the same"])
    strategy = algorithms.credible_ucb(finite(), models, width=2.0)
    assert index(strategy.ask()) == 0
    play_promptly(strategy, 12)
    assert {trial.info["model"] for trial in strategy.history.trials} == {0}
    replayed(
        strategy,
        [Candidate.at(finite().points, rbf(0.8), LAMBDA, None, u) for u in range(2)],
        "hallucinate",
        math.log(2 / DELTA),
        lambda model, t, gain: 2.0,
    )


@pytest.mark.parametrize("policy", ["hallucinate", "timeout"])
def test_of_a_growing_set_those_that_have_joined_count(policy):
    models = CandidateModels.growing(rbf(1.0), 2.0, LAMBDA, dim=2)
    options = {**NUMBERS, **POLICIES[policy]}
    strategy = algorithms.credible_ucb(finite(), models, initial=data(finite(), 3), **options)
    play(strategy, script(50, seed=37))
    X, Y = data(finite(), 3)
    session = Session(policy, index, (finite().index(X).tolist(), Y.tolist()))
    candidates, sizes = [], set()
    for event in strategy.events:
        if isinstance(event, Asked):
            # l_i = 2 exp(-i/2) is there once 2 / t^0.9 is below it; t counts every ask.
            t = len(X) + event.trial.id + 1
            while not candidates or 2.0 / t**0.9 < 2.0 * math.exp(-len(candidates) / 2):
                scale = 2.0 * math.exp(-len(candidates) / 2)
                candidates.append(Candidate.at(finite().points, rbf(scale), LAMBDA))
            c = math.log(len(candidates) / DELTA)
            check_decision(event.trial, candidates, session, c, FULL)
            sizes.add(len(candidates))
        session.apply(event)
    assert len(sizes) > 3


@pytest.mark.slow
@pytest.mark.parametrize("credibility", [None, 0.3])
def test_no_point_of_a_fine_grid_and_no_credible_model_beats_a_pick_on_a_box(credibility):
    X, Y = data(box(), 3)
    more = {"initial": (X, Y), "width": 0.8, "credibility": credibility}
    strategy = make("credible_ucb", box(), **more)
    play(strategy, script(20, seed=34))
    trials, fine = strategy.history.trials, grid(21)
    points = torch.cat([fine, X, torch.stack([trial.x for trial in trials])])
    first = len(fine) + len(X)
    candidates = oracle("mixed", points)
    c = math.log(6 / DELTA) if credibility is None else credibility
    session = Session("hallucinate", lambda trial: first + trial.id)
    session.initial = (list(range(len(fine), first)), Y.tolist())
    sizes = set()
    for event in strategy.events:
        if isinstance(event, Asked):
            allowed = credible(candidates, session, c)
            bounds = upper_bounds(candidates, session, lambda model, t, gain: 0.8)
            own = bounds[event.trial.info["model"], first + event.trial.id]
            assert event.trial.info["model"] in allowed
            assert bounds[allowed].max() - own <= CLOSE
            sizes.add(len(allowed))
        session.apply(event)
    assert max(sizes) > min(sizes)


# --- the nugget -----------------------------------------------------------------------------------


@all_policies
def test_twins_with_a_nugget_play_by_the_width_of_their_plain_models(policy):
    models = CandidateModels.lengthscales(rbf(1.0), [0.8, 2.5], LAMBDA).with_nugget(NUGGET)
    strategy = algorithms.credible_ucb(finite(), models, **NUMBERS, **POLICIES[policy])
    play(strategy, script(70, seed=41))
    points = finite().points
    plain = [Candidate.at(points, rbf(v), LAMBDA, None, u) for u, v in enumerate((0.8, 2.5))]
    session = Session(policy, index)
    played, c = set(), math.log(4 / DELTA)
    for event in strategy.events:
        if isinstance(event, Asked):
            width = width_of_plain(plain, session, FULL)
            check_decision(event.trial, with_twins(plain, points), session, c, width)
            played.add(event.trial.info["model"])
        session.apply(event)
    assert played & {2, 3}
    assert len(played) > 1 or policy == "ignore"


def test_what_a_twin_says_of_told_data_alone_has_the_width_of_its_plain_model():
    """For tests of the models: `he_gp_ucb`, nothing refuted."""
    models = CandidateModels.lengthscales(rbf(1.0), [0.8, 2.5], LAMBDA).with_nugget(NUGGET)
    width = widths.SelfNormalized(B, SIGMA, DELTA)
    strategy = algorithms.he_gp_ucb(finite(), models, noise_std=9.0, width=width, delta=0.1)
    play(strategy, script(50, seed=43))
    points = finite().points
    plain = [Candidate.at(points, rbf(v), LAMBDA, None, u) for u, v in enumerate((0.8, 2.5))]
    candidates, session = with_twins(plain, points), Session("hallucinate", index)
    twins = 0
    for event in strategy.events:
        if isinstance(event, Asked):
            trial, late = event.trial, session.believed.seen != session.told.seen
            own = width_of_plain(plain, session, self_normalized(B, DELTA / 2))
            u = trial.info["model"]
            check_record(trial.info, predictions(session, candidates[u], index(trial), own))
            twins += u > 1 and late
        session.apply(event)
    assert twins > 3


def test_on_a_box_the_nugget_is_known_at_evaluated_points_alone():
    X, Y = data(box(), 4)
    models = CandidateModels.lengthscales(rbf(1.0), [0.8, 2.5], LAMBDA).with_nugget(NUGGET)
    more = {"initial": (X, Y), "width": 0.8}
    strategy = algorithms.credible_ucb(box(), models, **more)
    play(strategy, script(16, seed=35))
    trials, fine = strategy.history.trials, grid(21)
    points = torch.cat([fine, X, torch.stack([trial.x for trial in trials])])
    first = len(fine) + len(X)
    plain = [Candidate.at(points, rbf(v), LAMBDA, None, u) for u, v in enumerate((0.8, 2.5))]
    candidates = with_twins(plain, points)
    session = Session("hallucinate", lambda trial: first + trial.id)
    session.initial = (list(range(len(fine), first)), Y.tolist())
    for event in strategy.events:
        if isinstance(event, Asked):
            allowed = credible(candidates, session, math.log(4 / DELTA))
            bounds = upper_bounds(candidates, session, lambda model, t, gain: 0.8)
            # What was told by then and the grid: not the points that were asked later.
            known = [*range(first), *(first + i for i in range(event.trial.id + 1))]
            own = bounds[event.trial.info["model"], first + event.trial.id]
            assert event.trial.info["model"] in allowed
            assert bounds[allowed][:, known].max() - own <= CLOSE
        session.apply(event)
    evaluated, _ = strategy.evaluated()
    told = [*session.told.rows]
    posterior = strategy.posterior
    with torch.no_grad():
        mean, std = posterior.mean_and_std(torch.cat([evaluated, evaluated + 1e-9]))
    n, seen = len(told), session.believed.seen
    assert torch.allclose(mean[2, :n], candidates[2].mean(told, session.told.y)[told], atol=1e-8)
    assert torch.allclose(std[2, :n], candidates[2].std(seen)[told], atol=1e-7)
    assert (std[2, n:].square() - std[2, :n].square()).min() > 0.5 * NUGGET**2
    assert (std[0, n:] - std[0, :n]).abs().max() < 1e-6


def test_the_bound_of_the_kernel_is_asked_of_the_plain_models():
    models = CandidateModels(rbf(0.8), LAMBDA).with_nugget(NUGGET)
    algorithms.credible_ucb(finite(), models, width=2.0)  # warnings are errors
    large = CandidateModels(scaled(rbf(0.8), 1.5), LAMBDA).with_nugget(NUGGET)
    with pytest.warns(KernelBoundWarning) as caught:
        algorithms.credible_ucb(finite(), large, width=2.0)
    said = [str(each.message) for each in caught]
    assert all(", got 1.5 (RBF" in message for message in said)


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [1e160, -1e300])
@pytest.mark.parametrize("method", ["credible_ucb", "expected_ucb", "safe_ucb"])
def test_values_whose_squares_are_no_numbers_leave_all_models(method, value):
    kernels = [RBFKernel().double(), MaternKernel(nu=2.5).double()]
    domain = FiniteSet(torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1))
    models = CandidateModels(kernels, 0.01)
    strategy = getattr(algorithms, method)(domain, models, noise_std=0.1, rkhs_bound=1.0)
    for _ in range(2):
        strategy.tell(strategy.ask().id, value)
    assert strategy.ask().info["index"] in range(9)
