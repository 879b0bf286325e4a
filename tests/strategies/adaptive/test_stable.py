"""StableOpt and HE-StableOpt against their definitions: the histories are replayed through plain
loops and dense algebra, which share no code with the library."""

import json
import math
import warnings

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box, CandidateModels, algorithms, widths
from botorch_ext.exceptions import NoObservationsError
from botorch_ext.strategies import Asked, Told, Trial
from tests.helpers import devices, pairwise, steps_on
from tests.oracles.models import Session, check_record, predictions, upper_bounds
from tests.strategies.adaptive.model_sessions import (
    DELTA,
    NUMBERS,
    SETS,
    SIGMA,
    B,
    level,
    oracle,
    play_and_note,
    rbf,
    self_normalized,
)
from tests.strategies.sessions import (
    LAMBDA,
    POLICIES,
    all_policies,
    both_domains,
    box,
    data,
    f,
    finite,
    kernel,
    play,
    script,
)

RADIUS = 0.6
PLAIN = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")


def make(domain, policy="hallucinate", name="mixed", radius=RADIUS, norm="l2", **more):
    models = SETS[name][0](dtype=domain.dtype, device=domain.device)
    options = {**NUMBERS, "seed": 5, "radius": radius, "norm": norm, **POLICIES[policy], **more}
    return algorithms.he_stable_opt(domain, models, **options)


def one_model(domain, policy="hallucinate", radius=RADIUS, **more):
    options = {"seed": 5, "noise_variance": LAMBDA, "radius": radius, **POLICIES[policy], **more}
    return algorithms.stable_opt(domain, kernel(), rkhs_bound=B, noise_std=SIGMA, **options)


def distance(x, z, norm):
    gap = [abs(a - b) for a, b in zip(x.tolist(), z.tolist(), strict=True)]
    return math.hypot(*gap) if norm == "l2" else max(gap)


class BothTests:
    """Both running tests of every model: 4 |U| in xi, u_t first."""

    def __init__(self, num_models, eps):
        self.num_models, self.eps = num_models, eps
        self.alive = list(range(num_models))
        self.sums = {}
        self.refused = False
        self.log = []

    def tell(self, t, side, u, error, half_width):
        if u not in self.alive:
            return
        n, errors, bounds = self.sums.get((side, u), (0, 0.0, 0.0))
        n, errors, bounds = n + 1, errors + error, bounds + half_width + self.eps
        self.sums[side, u] = n, errors, bounds
        xi = 2 * SIGMA**2 * math.log(4 * self.num_models * math.pi**2 * t**2 / (3 * DELTA))
        self.log.append((t, side, u, n, errors, math.sqrt(xi * n) + bounds))
        if abs(errors) > math.sqrt(xi * n) + bounds:
            if len(self.alive) > 1:
                self.alive.remove(u)
            else:
                self.refused = True


def check(strategy, alive_after, policy, name, radius, norm, eps=0.0, initial=((), ())):
    """Replays a history on the finite set; returns the tests it ends with."""
    points = finite().points
    candidates = oracle(name, points)
    near = [
        [j for j in range(len(points)) if distance(points[i], points[j], norm) <= radius + 1e-12]
        for i in range(len(points))
    ]
    session = Session(policy, lambda trial: trial.info["index"], tuple(map(list, initial)))
    tests = BothTests(len(candidates), eps)

    def width(model, t, gain):
        enlarged = eps * math.sqrt(t) / math.sqrt(model.noise_variance)
        return self_normalized()(model, t, gain) + enlarged

    for event, alive in zip(strategy.events, alive_after, strict=True):
        if isinstance(event, Asked) and not event.trial.info.get("initial"):
            info = event.trial.info
            center, x = info["center_index"], info["index"]
            u, v = info["model"], info["pessimistic"]["model"]
            assert info["center"] == points[center].tolist()
            assert {u, v} <= set(tests.alive)
            assert x in near[center]
            upper = upper_bounds(candidates, session, width)
            lower = -upper_bounds([Negative(model) for model in candidates], session, width)
            # x_t, u_t: no alive model has a better worst case anywhere.
            worst = max(
                min(upper[w, j].item() for j in near[i])
                for i in range(len(points))
                for w in tests.alive
            )
            assert worst - min(upper[u, j].item() for j in near[center]) <= 1e-7
            # delta_t, v_t: no alive model fears anything worse within reach.
            least = min(lower[w, j].item() for j in near[center] for w in tests.alive)
            assert lower[v, x].item() - least <= 1e-7
            for record in (info, info["pessimistic"]):
                model = candidates[record["model"]]
                check_record(record, predictions(session, model, x, width))
        session.apply(event)
        if isinstance(event, Told) and event.id in session.values:
            info = session.info[event.id]
            if not info.get("initial"):
                for side, record in (("optimistic", info), ("pessimistic", info["pessimistic"])):
                    told = record["told"]
                    error = event.value - told["mean"]
                    half_width = told["width"] * told["std"] + told["offset"]
                    tests.tell(session.told.t - 1, side, record["model"], error, half_width)
        assert alive == tests.alive
    assert len(strategy.tests) == len(tests.log) > 8
    for mine, (t, side, u, n, errors, bound) in zip(strategy.tests, tests.log, strict=True):
        assert (mine.t, mine.side, mine.model, mine.count) == (t, side, u, n)
        assert mine.error == pytest.approx(errors, rel=1e-9, abs=1e-9)
        assert mine.bound == pytest.approx(bound, rel=1e-9)
    return tests


class Negative:
    """The model of -f: its upper bound is minus the lower bound of f."""

    def __init__(self, model):
        self.model = model
        self.noise_variance, self.position = model.noise_variance, model.position

    def mean(self, rows, y):
        return -self.model.mean(rows, y)

    def std(self, rows):
        return self.model.std(rows)

    def gain(self, rows):
        return self.model.gain(rows)


def on_finite(policy="hallucinate", name="mixed", seed=21, norm="l2", radius=RADIUS, **more):
    initial = ((), ())
    if "initial" in more:
        X, Y = more["initial"]
        initial = (finite().index(X).tolist(), Y.tolist())
    strategy = make(finite(), policy, name, norm=norm, radius=radius, **more)
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        alive_after = play_and_note(strategy, script(90, seed))
    eps = more.get("misspecification", 0.0)
    tests = check(strategy, alive_after, policy, name, radius, norm, eps, initial)
    assert bool(strategy.report()["all_rejected_at"]) == tests.refused
    return tests


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize("name", ["mixed", "lengthscales", "periods"])
def test_every_decision_and_every_rejection_is_that_of_the_definition(name, norm):
    tests = on_finite(name=name, norm=norm)
    if name != "periods":
        assert len(tests.alive) < tests.num_models


@all_policies
def test_with_every_pending_policy(policy):
    tests = on_finite(policy, seed=23)
    assert len(tests.alive) < tests.num_models


def test_with_initial_data_initial_points_and_misspecification():
    on_finite("timeout", "periods", initial=data(finite(), 7), num_initial=4)
    on_finite(misspecification=0.03)


def test_both_sides_reject():
    # f lies between -1.9 and 0.1: the high model promises too much, the low one threatens too much.
    models = CandidateModels.prior_means(rbf(0.7), [None, level(6.0), level(-8.0)], LAMBDA)
    strategy = algorithms.he_stable_opt(finite(), models, radius=RADIUS, **NUMBERS)
    for _ in range(6):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    failed = {(test.side, test.model) for test in strategy.tests if test.fails}
    assert {("optimistic", 1), ("pessimistic", 2)} <= failed
    assert strategy.alive == [0]


# --- special cases --------------------------------------------------------------------------------


@all_policies
@both_domains
def test_without_a_radius_one_model_is_gp_ucb(domain, policy):
    stable = one_model(domain(), policy, radius=0.0, initial=data(domain(), 3))
    options = {"seed": 5, **POLICIES[policy]}
    plain_one = algorithms.gp_ucb(
        domain(),
        kernel(),
        noise_variance=LAMBDA,
        rkhs_bound=B,
        noise_std=SIGMA,
        initial=data(domain(), 3),
        **options,
    )
    for action in script(60 if domain is finite else 16, seed=28):
        for strategy in (stable, plain_one):
            play(strategy, [action])
    mine, other = (torch.stack([t.x for t in s.history.trials]) for s in (stable, plain_one))
    assert len(mine) > 6
    # Where both climb the same hill, a flat top leaves half the digits of the point.
    assert_close(mine, other, rtol=1e-5, atol=1e-5)
    assert stable.tests == []
    assert stable.best()[1] == pytest.approx(plain_one.best()[1], rel=1e-6)


def test_one_model_stays_and_warns_where_it_is_tested():
    models = CandidateModels(kernel(), LAMBDA)
    strategy = algorithms.he_stable_opt(finite(), models, radius=RADIUS, **NUMBERS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            strategy.tell(strategy.ask().id, 9.0)
    assert strategy.alive == [0]
    assert len(caught) == 1


# --- boxes ----------------------------------------------------------------------------------------


def fine(x, radius, norm, count=41):
    axis = torch.linspace(-1, 1, count, dtype=torch.float64)
    U = torch.cartesian_prod(axis, axis)
    U = torch.cat([U, U / U.norm(dim=-1, keepdim=True).clamp_min(1e-9)])
    if norm == "l2":
        U = U[U.norm(dim=-1) <= 1 + 1e-12]
    Z = x + radius * U
    return Z[box().contains(Z)]


@PLAIN
@pytest.mark.slow
@pytest.mark.parametrize(("policy", "norm"), [("hallucinate", "l2"), ("timeout", "linf")])
def test_picks_on_a_box_are_at_least_as_good_as_a_fine_search(policy, norm):
    strategy = make(box(), policy, radius=0.3, norm=norm, initial=data(box(), 4))
    play(strategy, script(4, seed=27))
    posterior = strategy.posterior
    trial = strategy.ask()
    center = torch.tensor(trial.info["center"], dtype=torch.float64)
    assert bool(box().contains(torch.stack([center, trial.x])).all())
    assert distance(center, trial.x, norm) <= 0.3 + 1e-9
    t = posterior.num_observations + 1
    width = posterior.width(strategy.width, t)[:, None]

    def bounds(Z, sign):
        with torch.no_grad():
            mean, std = posterior.mean_and_std(Z)
        return mean + sign * width * std

    # Any centre of a grid, by the grid of its ball: that can only look better than it is.
    around = fine(center, 0.3, norm)
    u = strategy.alive.index(trial.info["model"])
    mine = bounds(around, 1)[u].min()
    sides = [torch.linspace(*side, 15).double() for side in box().bounds.T.tolist()]
    for x in torch.cartesian_prod(*sides):
        for count in (11, 41):  # some of the points are enough where they are worse already
            worst = bounds(fine(x, 0.3, norm, count), 1).amin(dim=-1).max()
            if worst <= mine:
                break
        assert mine >= worst - 2e-3
    v = strategy.alive.index(trial.info["pessimistic"]["model"])
    asked = bounds(trial.x.unsqueeze(0), -1)[v]
    assert asked <= bounds(around, -1).min() + 1e-8


# --- best, events, input --------------------------------------------------------------------------


@PLAIN
def test_best_is_the_centre_with_the_best_worst_case():
    strategy = make(finite(), initial=data(finite(), 3))
    play(strategy, script(40, seed=30))
    lines = strategy.report()["models"]
    likeliest = max(strategy.alive, key=lambda u: lines[u]["log_marginal_likelihood"])
    points, model = finite().points, oracle("mixed", finite().points)[likeliest]
    X, Y = data(finite(), 3)
    rows, y, centers = finite().index(X).tolist(), Y.tolist(), finite().index(X).tolist()
    for id, value in strategy.history.values.items():
        info = strategy.history.trials[id].info
        rows, y = [*rows, info["index"]], [*y, value]
        centers.append(info["center_index"])
    mean = model.mean(rows, y)
    worst = {
        i: min(
            mean[j].item()
            for j in range(len(points))
            if distance(points[i], points[j], "l2") <= RADIUS + 1e-12
        )
        for i in centers
    }
    x, value = strategy.best()
    assert value == pytest.approx(max(worst.values()), rel=1e-8)
    assert worst[int(finite().index(x))] == pytest.approx(value, rel=1e-8)


@PLAIN
@pytest.mark.slow
def test_best_on_a_box():
    strategy = make(box(), radius=0.3)
    with pytest.raises(NoObservationsError):
        strategy.best()
    for _ in range(4):
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x))
    lines = strategy.report()["models"]
    likeliest = max(strategy.alive, key=lambda u: lines[u]["log_marginal_likelihood"])
    model = strategy.posterior.single(strategy.alive.index(likeliest))
    x, value = strategy.best()
    centers = [torch.tensor(t.info["center"], dtype=torch.float64) for t in strategy.history.trials]
    worst = [model.mean_and_std(fine(c, 0.3, "l2"))[0].min().item() for c in centers]
    assert max(worst) - 1e-2 <= value <= max(worst) + 1e-8
    assert x.tolist() in [center.tolist() for center in centers]


@PLAIN
def test_report_is_plain():
    strategy = make(finite(), radius=(0.6, 0.3))
    play(strategy, script(20, seed=42))
    report = strategy.report()
    assert json.loads(json.dumps(report)) == report
    assert report["radius"] == [0.6, 0.3]
    assert report["norm"] == "l2"
    for u, line in enumerate(report["models"]):
        tests = [test for test in strategy.tests if test.model == u]
        for side, of_side in (("optimistic", line), ("pessimistic", line["pessimistic"])):
            assert of_side["times_told"] == sum(test.side == side for test in tests)


NAN = float("nan")


@PLAIN
@pytest.mark.parametrize(
    "changes",
    [
        {"pessimistic": None},
        {"pessimistic": 3},
        {"pessimistic": {"model": 0}},
        {"pessimistic": {"model": 77, "mean": 0.0, "std": 0.1, "width": 1.0, "offset": 0.0}},
        {"pessimistic": {"model": 0, "mean": NAN, "std": 0.1, "width": 1.0, "offset": 0.0}},
        {"center": None},
        {"center": [3.0]},
        {"center": [3.0, NAN]},
        {"center": [30.0, -2.0]},
        {"center": "middle"},
        {"center_index": None},
        {"center_index": 53},
        {"center_index": 1.0},
        {"far": True},
        {"model": 77},
    ],
    ids=str,
)
def test_forged_infos_are_refused_as_a_whole(changes):
    played = make(finite())
    play(played, script(10, seed=44))
    played.ask()
    events = played.events
    trial = next(event.trial for event in reversed(events) if isinstance(event, Asked))
    info = dict(trial.info)
    if changes.pop("far", None):
        points = finite().points
        row = int((points - trial.x).norm(dim=-1).argmax())
        changes = {"center": points[row].tolist(), "center_index": row}
    info = {key: value for key, value in {**info, **changes}.items() if value is not None}
    forged = [*events[:-1], Asked(Trial(trial.id, trial.x, None, info))]
    strategy = make(finite())
    with pytest.raises(ValueError, match=r"model|mean|pessimistic|center|finite"):
        strategy.replay(forged)
    assert strategy.events == ()


@pytest.mark.slow
@PLAIN
@pairwise(domain=[finite, box], dtype=[torch.float64, torch.float32], device=devices())
def test_trials_follow_dtype_and_device_of_the_domain(domain, dtype, device):
    points = domain(device=device).to(dtype=dtype)
    strategy = make(points, num_initial=2, radius=0.3)
    for _ in range(2 + steps_on(device, 2)):
        trial = strategy.ask()
        assert (trial.x.dtype, trial.x.device) == (points.dtype, points.device)
        assert bool(points.contains(trial.x).all())
        strategy.tell(trial.id, f(trial.x))
    assert strategy.best()[0].dtype == dtype


@pytest.mark.slow
def test_the_stable_optimum_is_found_where_gp_ucb_takes_the_peak():
    # A high narrow peak beside a lower wide one.
    def peaks(x):
        return math.exp(-(((x - 2.2) / 0.08) ** 2)) + 0.7 * math.exp(-(((x - 2.8) / 0.25) ** 2))

    domain = Box([[2.0], [3.2]])
    k = kernel().__class__().double()
    k.lengthscale = torch.tensor(0.1, dtype=torch.float64)
    options = {"noise_variance": 1e-3, "width": widths.Constant(2.0), "seed": 0}
    found = {}
    for name, strategy in (
        ("stable", algorithms.stable_opt(domain, k, radius=0.15, **options)),
        ("plain", algorithms.gp_ucb(domain, k, **options)),
    ):
        for _ in range(20):
            trial = strategy.ask()
            strategy.tell(trial.id, peaks(float(trial.x)))
        found[name] = float(strategy.best()[0])
    assert found["plain"] == pytest.approx(2.2, abs=0.05)
    assert found["stable"] == pytest.approx(2.8, abs=0.1)
