"""Methods over several models against their definitions: which models play and which are refuted,
every pick a maximiser, every recorded prediction."""

import math
import warnings

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import CandidateModels, algorithms, widths
from botorch_ext.exceptions import AllModelsRejectedWarning, BotorchExtWarning, KernelBoundWarning
from botorch_ext.kernels import NuggetKernel
from tests.helpers import matern, rbf
from tests.laws.scenarios import quietly
from tests.oracles.models import Candidate
from tests.oracles.posterior import self_normalized_width
from tests.strategies import sessions
from tests.strategies.adaptive.judged import (
    Average,
    ByErrors,
    BySuspectedRegret,
    Credible,
    Likeliest,
    Nearest,
    check,
)
from tests.strategies.sessions import LAMBDA, box, data, f, finite, play

# The observations of `f` lie between -1.9 and 0.1: far from what such a B allows, so that models
# are rejected. Nothing here asks for widths that hold.
B, SIGMA, DELTA, EPS = 0.25, 0.03, 0.1, 0.04
NUMBERS = {"rkhs_bound": B, "noise_std": SIGMA, "delta": DELTA}


def slope(X):
    return 0.8 * (X[..., 0] - 3.5)


def tilted(X):
    """A prior mean over joint points: it looks at the context."""
    return 0.5 * (X[..., 0] - 3.5) - 0.3 * X[..., 2]


SCALES, NUGGET = [0.3, 0.8, 2.5, 6.0], 0.3
MIXED = [
    (rbf(0.8), 0.02, None),
    (matern(0.7, nu=1.5), 0.05, None),
    (rbf(0.4), 0.02, slope),
    (sessions.scaled(sessions.periodic(1.7), 0.9), 0.01, sessions.level(0.4)),
    (rbf(2.5), 0.04, None),
]
# setting: for each model its kernel, its noise variance and its prior mean
MODELS = {
    "alone": MIXED,
    "actions": MIXED,
    "lengthscales": [(rbf(v), LAMBDA, sessions.level(0.7)) for v in SCALES],
    # Far enough above f for widths that are valid for a function drawn from the process.
    "high means": [(rbf(0.7), LAMBDA, sessions.level(v)) for v in (-0.5, 3.5, 4.5, 6.0)],
    "nugget": [
        *((rbf(v), LAMBDA, None) for v in (0.8, 2.5)),
        *((rbf(v) + NuggetKernel(NUGGET**2), LAMBDA, None) for v in (0.8, 2.5)),
    ],
    "tasks": [
        (sessions.product(rbf(0.8), sessions.task_kernel()), 0.02, None),
        (sessions.product(rbf(0.5), rbf(9.0)), 0.05, None),
        # Task numbers taken for a quantity.
        (sessions.product(matern(0.7, nu=1.5), rbf(1.5)), 0.02, tilted),
        (sessions.half_sum(rbf(0.6), sessions.task_kernel()), 0.01, sessions.level(0.8)),
    ],
    "reals": [
        (sessions.product(rbf(0.9, 0.7), matern(0.8, 1.5, nu=1.5)), 0.02, None),
        (sessions.product(rbf(0.4, 0.7), matern(3.0, 1.5, nu=1.5)), 0.02, tilted),
        (sessions.product(rbf(2.5, 0.7), matern(0.4, 1.5, nu=1.5)), 0.1, sessions.level(0.6)),
        (sessions.half_sum(rbf(0.8), matern(1.2, nu=1.5)), 0.02, None),
    ],
}


def candidate_models(name):
    """The models of the library."""
    if name == "lengthscales":
        return CandidateModels.lengthscales(rbf(1.0), SCALES, LAMBDA, means=sessions.level(0.7))
    if name == "nugget":
        return CandidateModels.lengthscales(rbf(1.0), [0.8, 2.5], LAMBDA).with_nugget(NUGGET)
    kernels, noises, means = zip(*MODELS[name], strict=True)
    return CandidateModels(list(kernels), list(noises), list(means))


def growing(lengthscale_0=2.0, exponent=0.9):
    """The models of a growing set, and those that have joined by a step."""
    models = CandidateModels.growing(
        rbf(1.0), lengthscale_0, LAMBDA, dim=2, growth=lambda t: t**exponent
    )
    scales = [lengthscale_0 * math.exp(-i / 2) for i in range(20)]

    def present(t):
        num = 1  # l_i is there once l_0 / t^exponent has fallen below it
        while lengthscale_0 / t**exponent < scales[num]:
            num += 1
        return [(rbf(scale), LAMBDA, None) for scale in scales[:num]]

    return models, present


def make(method, domain, policy="hallucinate", name="alone", models=None, **more):
    models, space = models or candidate_models(name), sessions.setting_of(name).context_domain
    options = {**NUMBERS, "seed": 5, **sessions.POLICIES[policy], **more}
    options |= {} if space is None else {"context_domain": space}
    return getattr(algorithms, method)(domain, models, **options)


def self_normalized(rkhs_bound=B, delta=DELTA):
    def width(model, t, gain):
        return self_normalized_width(rkhs_bound, SIGMA, delta, model.noise_variance, gain)

    return width


def session(method, judge, policy, name="alone", width=None, length=28, seed=21, **more):
    """Plays a method on the set, and checks it all."""
    strategy = make(method, finite(), policy, name, **more)
    played = play(strategy, policy, sessions.setting_of(name), length, seed)
    check(played, MODELS[name], width or self_normalized(), judge, initial=more.get("initial"))
    return strategy


def asks(strategy, length=12, sigma=SIGMA):
    """Every question is answered before the next."""
    g = torch.Generator().manual_seed(0)
    for noise in (sigma * torch.randn(length, generator=g)).tolist():
        trial = strategy.ask()
        strategy.tell(trial.id, f(trial.x) + noise)


@pytest.mark.parametrize(
    ("policy", "name", "own"),
    [
        ("ignore", "alone", {}),
        ("hallucinate", "reals", {"credibility": 1.5}),
        ("inflate", "lengthscales", {"delta": 0.004}),
        ("censor", "actions", {}),
        ("timeout", "tasks", {}),
    ],
)
def test_baselines_play_by_the_evidence(policy, name, own):
    """mle_ucb the likeliest model, expected_ucb an average, credible_ucb all that are likely."""
    strategy = session("mle_ucb", Likeliest(), policy, name)
    assert len({t.info["model"] for t in strategy.history.trials}) > 1
    initial = data(finite(), 3, name)
    session("expected_ucb", Average(), policy, name, initial=initial, num_initial=2)
    delta = own.get("delta", DELTA)
    judge, width = Credible(delta=delta, c=own.get("credibility")), self_normalized(B, delta)
    strategy = session("credible_ucb", judge, policy, name, width, 28, seed=31, **own)
    report, c = strategy.report(), judge.reach(len(strategy.names))
    assert report["credibility"] == pytest.approx(c)
    evidence = strategy.evidence()
    for line, value in zip(report["models"], evidence.tolist(), strict=True):
        below = float(evidence.max()) - value
        assert line["log_evidence_below_best"] == pytest.approx(below, abs=1e-9)
        assert line["credible"] == (below <= c)


def test_of_equal_models_the_first_plays_and_where_nothing_is_told_too():
    models = CandidateModels([rbf(0.8), rbf(0.8)], LAMBDA, names=["one", "the same"])
    for method in ("credible_ucb", "mle_ucb", "he_gp_ucb"):
        strategy = getattr(algorithms, method)(finite(), models, width=2.0, noise_std=9.0)
        assert strategy.ask().info["index"] == 0
        asks(strategy, 6)
        assert {trial.info["model"] for trial in strategy.history.trials} == {0}
    for domain in (finite(), box()):
        strategy = make("mle_ucb", domain)
        assert [trial.info["model"] for trial in strategy.ask(2)] == [0] * 2
        assert strategy.evidence().tolist() == [0.0] * 5


@pytest.mark.parametrize("policy", ["hallucinate", "timeout"])
@pytest.mark.parametrize(("method", "judge"), [("credible_ucb", Credible), ("he_gp_ucb", ByErrors)])
def test_models_with_a_nugget_play_among_their_twins(method, judge, policy):
    strategy = make(method, finite(), policy, "nugget", width=0.8)
    played = play(strategy, policy, None, 40, seed=43)
    check(played, MODELS["nugget"], lambda *_: 0.8, judge())
    assert sum(trial.info["model"] > 1 for trial in strategy.history.trials) > 2


def bayes_finite(model, t, gain):
    return math.sqrt(2 * math.log(54 * math.pi**2 * t**2 / (3 * DELTA)))


def enlarged(model, t, gain):
    return self_normalized(B, DELTA / 2)(model, t, gain) + EPS * math.sqrt(t / model.noise_variance)


EACH = [0.3, 0.5, widths.SelfNormalized(0.7, SIGMA, DELTA), 0.2, 0.4]


def each(model, t, gain):
    u = model.position
    return self_normalized(0.7, DELTA / 2)(model, t, gain) if u == 2 else EACH[u]


# name: options of he_gp_ucb, the width written out, its offset
WIDTHS = {
    "frequentist": ({}, self_normalized(B, DELTA / 2), lambda t: 0.0),
    "bayesian": ({"setting": "bayesian", "rkhs_bound": None}, bayes_finite, lambda t: 0.0),
    "misspecified": ({"misspecification": EPS}, enlarged, lambda t: 0.0),
    "one for each": ({"width": EACH[:4]}, each, lambda t: 0.0),
    "offset": (
        {"width": sessions.Stepwise()},
        lambda model, t, gain: 0.4 + 0.02 * t,
        lambda t: 0.3 / t,
    ),
}


def eliminate(domain, policy, name, kind="frequentist", length=44, seed=21, fine=None, **more):
    """Plays he_gp_ucb and checks it all; returns the judge."""
    options, width, offset = WIDTHS[kind]
    strategy = make("he_gp_ucb", domain, policy, name, **options, **more)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        played = play(strategy, policy, sessions.setting_of(name), length, seed)
    judge = ByErrors(eps=EPS if kind == "misspecified" else 0.0)
    check(played, MODELS[name], width, judge, offset, more.get("initial"), fine)
    judge.test.check(strategy.tests)
    for u, line in enumerate(strategy.report()["models"]):
        n, error, _ = judge.test.sums.get(("optimistic", u), (0, 0.0, 0.0))
        assert line["times_told"] == n
        assert line["running_error"] == pytest.approx(error, abs=1e-9)
        assert line["margin"] == pytest.approx(line["bound"] - abs(error))
    # One warning when the last model would have been rejected, however often it would have been.
    report = strategy.report()
    assert [str(warning.message) for warning in caught] == report["warnings"]
    assert len(caught) == bool(judge.test.refused)
    assert report["all_rejected_at"] == min(judge.test.refused, default=None)
    return judge


@pytest.mark.parametrize(
    ("policy", "name", "kind"),
    [
        ("hallucinate", "alone", "frequentist"),
        ("ignore", "high means", "bayesian"),
        ("inflate", "actions", "misspecified"),
        ("censor", "tasks", "one for each"),
        ("timeout", "reals", "offset"),
        ("timeout", "lengthscales", "frequentist"),
    ],
)
def test_every_pick_and_every_rejection_is_that_of_the_definition(policy, name, kind):
    judge = eliminate(finite(), policy, name, kind)
    assert 0 < len(judge.rejected) < judge.num_models


def test_initial_data_and_initial_points_count_as_steps_and_test_nobody():
    initial = data(finite(), 7)
    judge = eliminate(finite(), "timeout", "high means", initial=initial, num_initial=4)
    assert min(judge.rejected.values()) > 7 + 1


def test_the_bayesian_width_of_a_box_is_that_of_its_constants():
    more = {"setting": "bayesian", "rkhs_bound": None, "a": 1.5, "b": 2.0}
    strategy = make("he_gp_ucb", box(), name="lengthscales", **more)
    strategy.tell(strategy.ask().id, -0.5)
    # d = 2, r = 3 (the longer side), t = 2, delta / 2 = 0.05.
    cells = 4 * 2 * 2.0 * 3.0 * math.sqrt(math.log(4 * 2 * 1.5 / 0.05))
    expected = math.sqrt(2 * math.log(2 * math.pi**2 * 4 / (3 * 0.05)) + 2 * 2 * math.log(cells))
    assert strategy.ask().info["width"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("num_models", [1, 3])
def test_the_last_model_stays_with_one_warning(num_models):
    models = CandidateModels([rbf(v) for v in (0.4, 0.8, 1.6)][:num_models], LAMBDA)
    strategy, caught = make("he_gp_ucb", finite(), models=models), []
    for step in range(4 + num_models):
        trial = strategy.ask()
        with warnings.catch_warnings(record=True) as now:
            warnings.simplefilter("always")
            strategy.tell(trial.id, trial.info["mean"] - 50.0)  # no model allows that
        caught += now
        assert len(strategy.alive) == max(num_models - step - 1, 1)
    report = strategy.report()
    (warning,), (line,) = caught, report["warnings"]
    assert (warning.category, warning.filename) == (AllModelsRejectedWarning, __file__)
    (last,) = (own for own in report["models"] if own["status"] == "alive")
    assert line == str(warning.message) and last["name"] in line
    assert report["all_rejected_at"] == num_models
    # As an error it leaves the observation told.
    strict = make("he_gp_ucb", finite(), models=CandidateModels(rbf(0.5), LAMBDA))
    strict.ask()
    with pytest.raises(BotorchExtWarning):  # all warnings of tests are errors
        strict.tell(0, -50.0)
    assert len(strict.history.values) == len(strict.tests)


@pytest.mark.parametrize(
    ("policy", "longest", "exponent", "more"),
    [
        ("hallucinate", None, None, {}),
        ("timeout", 3.0, None, {"num_initial": 2}),
        ("inflate", 4.0, 0.4, {}),
    ],
)
def test_a_gp_ucb_shrinks_the_lengthscale_and_raises_the_bound(policy, longest, exponent, more):
    more, initial = more | {"lengthscale_0": longest}, data(finite(), 1)
    if exponent is not None:
        more["growth"] = lambda t: t**exponent
    longest, exponent = longest or 6.0, exponent or 0.9  # the largest lengthscale, and 0.9

    def width(model, t, gain):
        bound = B * (longest / SCALES[model.position]) ** 2  # d = 2
        return self_normalized(bound)(model, t, gain)

    judge = Nearest(scales=SCALES, longest=longest, exponent=exponent)
    strategy = session("a_gp_ucb", judge, policy, "lengthscales", width, initial=initial, **more)
    played = [trial.info["model"] for trial in strategy.history.trials if "model" in trial.info]
    assert len(set(played)) >= 2
    assert played == sorted(played, reverse=True)


@quietly
@pytest.mark.parametrize(
    ("policy", "lengthscale_0", "exponent", "constant"),
    [("hallucinate", 2.0, 0.9, 0.5), ("ignore", 6.0, 0.9, 0.05), ("timeout", 3.0, 0.5, 0.1)],
)
def test_lb_gp_ucb_balances_suspected_bounds(policy, lengthscale_0, exponent, constant):
    models, present = growing(lengthscale_0, exponent)
    noise_std = 0.08 if constant == 0.05 else SIGMA  # which says when rewards are too low
    more = {"models": models, "width": constant, "noise_std": noise_std}
    strategy = make("lb_gp_ucb", finite(), policy, **more)
    judge = BySuspectedRegret(lengthscale_0=lengthscale_0, noise_std=noise_std)
    played = play(strategy, policy, None, 60, seed=11)
    check(played, present, lambda model, t, gain: constant, judge)
    assert len(strategy.names) >= 4
    assert judge.rejected or constant != 0.05


@pytest.mark.parametrize("stretch", [1.0, 30.0])
def test_without_a_bound_lb_gp_ucb_standardises_what_the_models_see(stretch):
    models, _ = growing()
    strategy = algorithms.lb_gp_ucb(finite(), models, noise_std=SIGMA * stretch, delta=DELTA)
    X, told = finite().points[[3, 17]], []
    for _ in range(16):
        y = torch.tensor(told, dtype=torch.float64)
        shift = float(y.mean()) if told else 0.0
        scale = float(y.std()) if len(told) > 1 else 1.0
        rows = [trial.info["index"] for trial in strategy.history.trials]
        bands = strategy.bands(X)
        trial = strategy.ask()
        info = trial.info
        model = Candidate.at(finite().points, rbf(2.0 * math.exp(-info["model"] / 2)), LAMBDA)
        mean = model.mean(rows, ((y - shift) / scale).tolist())
        std, gain = model.std(rows), model.gain(rows)
        ratio = SIGMA * stretch / scale / math.sqrt(LAMBDA)
        w = ratio * math.sqrt(2 * math.log(1 / DELTA) + 2 * gain) + 1.0  # B = 1
        bounds, row = mean + w * std, info["index"]
        assert bounds.max() - bounds[row] <= 1e-7
        assert info["width"] == pytest.approx(w, rel=1e-8)
        for numbers in (info, info["told"]):
            own = shift + scale * mean[row].item()
            assert numbers["mean"] == pytest.approx(own, rel=1e-7, abs=1e-7)
            assert numbers["std"] == pytest.approx(scale * std[row].item(), rel=1e-7, abs=1e-8)
        position = strategy.alive.index(info["model"])
        assert_close(bands[0][position], shift + scale * mean[[3, 17]], rtol=1e-7, atol=1e-7)
        assert_close(bands[1][position], w * scale * std[[3, 17]], rtol=1e-7, atol=1e-7)
        told.append(7.0 + stretch * f(trial.x))
        strategy.tell(trial.id, told[-1])
    assert strategy.best()[1] == pytest.approx(max(told), abs=0.3 * stretch)


@quietly
@pytest.mark.parametrize("method", ["he_gp_ucb", "credible_ucb", "expected_ucb"])
def test_of_a_growing_set_those_that_have_joined_count(method):
    models, present = growing()
    initial = data(finite(), 3)
    strategy = make(method, finite(), "timeout", models=models, initial=initial)
    judge = {"he_gp_ucb": ByErrors(), "credible_ucb": Credible(), "expected_ucb": Average()}[method]
    delta = DELTA / 2 if method == "he_gp_ucb" else DELTA
    played = play(strategy, "timeout", None, 40, seed=37)
    check(played, present, self_normalized(B, delta), judge, initial=initial)
    assert len(strategy.names) > 3


def test_a_growth_that_fails_leaves_the_study_as_it_was():
    models = CandidateModels.growing(
        rbf(0.5), 1.0, LAMBDA, dim=2, growth=lambda t: t**0.9 if t < 5 else float("nan")
    )
    strategy = algorithms.he_gp_ucb(finite(), models, noise_std=SIGMA, width=2.0)
    asks(strategy, 2)
    strategy.ask()
    before = strategy.report()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"growth"):
            strategy.ask()
        assert strategy.report() == before


@quietly
@pytest.mark.parametrize(
    ("method", "policy", "name"),
    [
        ("he_gp_ucb", "timeout", "lengthscales"),
        ("he_gp_ucb", "hallucinate", "tasks"),
        ("mle_ucb", "censor", "reals"),
        ("expected_ucb", "inflate", "alone"),
        ("credible_ucb", "hallucinate", "actions"),
        ("a_gp_ucb", "ignore", "lengthscales"),
        ("lb_gp_ucb", "hallucinate", "growing"),
    ],
)
def test_no_point_of_a_fine_grid_and_no_model_beats_a_pick_on_a_box(method, policy, name):
    initial = data(box(), 3, name)
    models, described = (
        growing() if name == "growing" else (candidate_models(name), MODELS.get(name))
    )
    strategy = make(method, box(), policy, name, models, initial=initial, width=0.8)
    judge = {
        "he_gp_ucb": ByErrors(),
        "mle_ucb": Likeliest(),
        "expected_ucb": Average(),
        "credible_ucb": Credible(),
        "a_gp_ucb": Nearest(scales=SCALES, longest=6.0),
        "lb_gp_ucb": BySuspectedRegret(),
    }[method]
    played = play(strategy, policy, sessions.setting_of(name), 9, seed=26)
    check(played, described, lambda *_: 0.8, judge, initial=initial, fine=sessions.grid(15))


def test_a_kernel_above_1_is_warned_of_once_whatever_the_number_of_models():
    large = sessions.scaled(matern(0.7), 1.2)
    models = CandidateModels([rbf(0.5), large, rbf(0.9)], LAMBDA)
    with pytest.warns(KernelBoundWarning, match="got 1.2") as caught:
        strategy = make("he_gp_ucb", box(), models=models)
    assert len(caught) == len(strategy.report()["warnings"]) == 1
    with pytest.warns(KernelBoundWarning, match="got 1.2"):
        make("he_gp_ucb", box(), models=CandidateModels(large, LAMBDA).with_nugget(NUGGET))
    # Below 1 but for the nugget: no warning.
    make("credible_ucb", box(), models=CandidateModels(rbf(0.5), LAMBDA).with_nugget(NUGGET))


def test_a_prior_mean_that_is_infinite_at_a_corner_is_refused():
    def odd(X):
        corner = torch.stack([box().lower[0], box().upper[1]])
        return 1 / (X - corner).abs().sum(dim=-1)

    models = CandidateModels(rbf(0.5), LAMBDA, [odd], names=["odd one"])
    with pytest.raises(ValueError, match="odd one"):
        make("he_gp_ucb", box(), models=models)


@pytest.mark.parametrize("value", [1e160, -1e300])
@pytest.mark.parametrize("method", ["credible_ucb", "expected_ucb", "safe_ucb"])
def test_values_whose_squares_are_no_numbers_leave_all_models(method, value):
    models = CandidateModels([rbf(0.7), matern(0.7)], 0.01)
    strategy = getattr(algorithms, method)(finite(), models, noise_std=0.1, rkhs_bound=1.0)
    for _ in range(2):
        strategy.tell(strategy.ask().id, value)
    assert strategy.ask().info["index"] in range(54)
