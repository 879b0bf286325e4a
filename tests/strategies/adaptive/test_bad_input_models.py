"""What bad sets of models get, and what happens when all of them are wrong."""

import math
import warnings

import pytest
import torch

from botorch_ext import CandidateModels, algorithms
from botorch_ext.exceptions import BotorchExtWarning, KernelBoundWarning
from botorch_ext.strategies import Asked
from tests.strategies.adaptive.model_sessions import (
    METHODS,
    NUMBERS,
    make,
    make_models,
    matern,
    play_promptly,
    rbf,
    scaled,
    snapshot,
)
from tests.strategies.sessions import LAMBDA, both_domains, box, data, finite, plain, play, script

NAN, INF = math.nan, math.inf
every_method = pytest.mark.parametrize("method", METHODS)
# Methods that take any set of models.
of_any_models = pytest.mark.parametrize(
    "method", ["he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb"]
)


def build(method, domain, models=None, without=(), **changed):
    options = {**NUMBERS, **changed}
    for name in without:
        del options[name]
    models = make_models(method) if models is None else models
    return getattr(algorithms, method)(domain, models, **options)


# --- sets of models -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "empty",
    [
        lambda: CandidateModels([], LAMBDA),
        lambda: CandidateModels(rbf(0.5), []),
        lambda: CandidateModels(rbf(0.5), LAMBDA, means=[]),
        lambda: CandidateModels.lengthscales(rbf(0.5), [], LAMBDA),
        lambda: CandidateModels.noise_variances(rbf(0.5), []),
        lambda: CandidateModels.prior_means(rbf(0.5), [], LAMBDA),
        lambda: CandidateModels.additive(rbf(0.5), [], LAMBDA, dim=2),
    ],
)
def test_an_empty_set_is_refused(empty):
    with pytest.raises(ValueError, match=r"must (have|hold|be|contain|name).*"):
        empty()


@of_any_models
@both_domains
def test_a_model_of_another_dimension_is_refused_by_its_name(method, domain):
    kernels = [rbf([0.5, 0.5]), rbf([0.5, 0.5, 0.5])]
    models = CandidateModels(kernels, LAMBDA, names=["fits", "too wide"])
    with pytest.raises(ValueError, match=r"(too wide.*dimension 2)|(dimension 2.*too wide)"):
        build(method, domain(), models)


@of_any_models
def test_a_model_that_looks_at_a_column_too_many_is_refused(method):
    wide = rbf(0.5)
    wide.active_dims = torch.tensor([2])
    models = CandidateModels([matern(0.5), wide], LAMBDA, names=["fits", "third column"])
    with pytest.raises(ValueError, match="third column"):
        build(method, finite(), models)
    models = CandidateModels.additive(rbf(0.5), [[(0,), (1,)], [(0, 2), (1,)]], LAMBDA, dim=3)
    with pytest.raises(ValueError, match="dimension 2"):
        build(method, finite(), models)


@of_any_models
@both_domains
def test_models_of_another_dtype_are_refused(method, domain):
    models = CandidateModels(rbf(0.5).float(), LAMBDA, dtype=torch.float32)
    with pytest.raises(ValueError, match=r"torch.float64 on cpu, got torch.float32"):
        build(method, domain(), models)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="one device only")
@of_any_models
@both_domains
def test_models_elsewhere_are_refused(method, domain):
    with pytest.raises(ValueError, match=r"cuda:0, got .* on cpu"):
        build(method, domain(device="cuda"), CandidateModels([rbf(0.5), matern(0.5)], LAMBDA))


@of_any_models
@both_domains
def test_a_kernel_above_1_is_warned_of_once_whatever_the_number_of_models(method, domain):
    large = scaled(matern(0.7), 1.2)
    models = CandidateModels([rbf(0.5), large, rbf(0.9)], LAMBDA)
    with pytest.warns(KernelBoundWarning, match=r"k\(x, x\) <= 1.*got 1.2") as caught:
        strategy = build(method, domain(), models)
    assert len(caught) == 1
    (line,) = strategy.report()["warnings"]
    assert "1.2" in line
    strategy.tell(strategy.ask().id, 0.5)  # a warning, no more
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        build(method, domain(), CandidateModels([rbf(0.5), scaled(matern(0.7), 1.0)], LAMBDA))


def undefined(X):
    return X.prod(dim=-1).log()  # of a negative number


def infinite(X):
    return X[..., 0] / 0.0


def column(X):
    return X[..., :1]


def third(X):
    return X[..., 2]


@of_any_models
@both_domains
@pytest.mark.parametrize(
    ("mean", "message"),
    [(undefined, "finite"), (infinite, "finite"), (column, "shape"), (third, "dimension 2")],
)
def test_a_prior_mean_that_cannot_be_is_refused_by_its_name(method, domain, mean, message):
    models = CandidateModels(rbf(0.5), LAMBDA, means=[None, mean], names=["zero", "odd one"])
    with pytest.raises(ValueError, match=rf"(odd one.*{message})|({message}.*odd one)"):
        build(method, domain(), models)


def infinite_at_a_corner(X):
    """Where the first coordinate of the box is lowest and the second highest."""
    corner = torch.stack([box().lower[0], box().upper[1]])
    return 1 / (X - corner).abs().sum(dim=-1)


@of_any_models
def test_all_corners_of_a_box_are_looked_at(method):
    models = CandidateModels(rbf(0.5), LAMBDA, [infinite_at_a_corner], names=["odd one"])
    with pytest.raises(ValueError, match=r"odd one.*finite"):
        build(method, box(), models)


def test_refused_models_stay_as_they_are():
    models = CandidateModels([rbf(0.5), matern(0.5)], LAMBDA)
    X, Y = data(finite(), 3)
    models.add(X, Y)
    with pytest.raises(ValueError, match="num_initial"):
        build("he_gp_ucb", finite(), models, num_initial=-1)
    strategy = build("he_gp_ucb", finite(), models, initial=data(finite(), 4, seed=3))
    play(strategy, script(12, seed=51))
    assert models.num_observations == 3
    assert models.num_models == 2


# --- arguments ------------------------------------------------------------------------------------


@every_method
@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("rkhs_bound", -1.0, "non-negative and finite, got -1.0"),
        ("rkhs_bound", NAN, "non-negative and finite, got nan"),
        ("rkhs_bound", None, "given unless .*, got None"),
        ("noise_std", 0.0, "positive and finite, got 0.0"),
        ("noise_std", -0.1, "positive and finite, got -0.1"),
        ("noise_std", INF, "positive and finite, got inf"),
        ("delta", 0.0, r"in \(0, 1\), got 0.0"),
        ("delta", 1.5, r"in \(0, 1\), got 1.5"),
        ("delta", NAN, r"in \(0, 1\), got nan"),
        ("num_initial", -1, "at least 0, got -1"),
        ("seed", None, "a whole number, got None"),
        ("pending", "wait", "got 'wait'"),
        ("width", -1.0, "non-negative and finite, got -1.0"),
        ("width", torch.ones(6, 2), r"one number, got tensor\(\[1"),
        ("timeout", 3, "got 3"),
        ("minimum", 0.5, "got 0.5"),
    ],
)
def test_impossible_arguments_are_named(method, name, value, allowed):
    if (method, name, value) == ("lb_gp_ucb", "rkhs_bound", None):  # it does without
        assert build(method, finite(), rkhs_bound=None).standardize
        return
    said = "(value|width)" if name == "width" else name
    with pytest.raises(ValueError, match=f"{said} must be .*{allowed}"):
        build(method, finite(), **{name: value})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"noise_std": None}, "noise_std must be given.*got None"),
        ({"noise_std": None, "width": 2.0}, "noise_std must be .*got None"),  # the test needs it
        (
            {"a": 3.0},
            'a and b must be None unless setting is "bayesian" on a box, got 3.0 and None',
        ),
        ({"misspecification": -0.1}, "misspecification must be non-negative and finite, got -0.1"),
        ({"misspecification": NAN}, "misspecification must be non-negative and finite, got nan"),
        ({"misspecification": "2"}, "misspecification must be one number, got '2'"),
        ({"setting": "both"}, "setting must be .*got 'both'"),
        ({"setting": None}, "setting must be .*got None"),
        ({"width": [1.0, 2.0]}, "width must .*6"),
        ({"width": []}, "width must .*6"),
        ({"width": [1.0] * 5 + [-2.0]}, "non-negative and finite, got -2.0"),
        ({"width": 0.5, "delta": 0.0}, r"delta must be in \(0, 1\), got 0.0"),
        ({"width": 0.5, "delta": 2.0}, r"delta must be in \(0, 1\), got 2.0"),
        ({"width": 0.5, "noise_std": -1.0}, "noise_std must be positive and finite, got -1.0"),
    ],
    ids=str,
)
@both_domains
def test_impossible_arguments_of_he_gp_ucb_are_named(domain, changed, message):
    with pytest.raises(ValueError, match=message):
        build("he_gp_ucb", domain(), **changed)


def test_the_bayesian_width_of_a_finite_set_needs_no_norm():
    build("he_gp_ucb", finite(), without=["rkhs_bound"], setting="bayesian").ask()


def test_the_bayesian_width_of_a_box_needs_constants_nobody_can_guess():
    for given in ({}, {"a": 1.0}, {"b": 2.0}):
        with pytest.raises(ValueError, match="a and b must be given"):
            build("he_gp_ucb", box(), without=["rkhs_bound"], setting="bayesian", **given)
    strategy = build("he_gp_ucb", box(), setting="bayesian", a=1.5, b=2.0)
    strategy.tell(strategy.ask().id, -0.5)
    # d = 2, r = 3 (the longer side), t = 2, delta / 2 = 0.05.
    grid = 4 * 2 * 2.0 * 3.0 * math.sqrt(math.log(4 * 2 * 1.5 / 0.05))
    expected = math.sqrt(2 * math.log(2 * math.pi**2 * 4 / (3 * 0.05)) + 2 * 2 * math.log(grid))
    assert strategy.ask().info["width"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("value", [0.0, -1.0, NAN, INF])
def test_a_lengthscale_to_start_from_is_positive(value):
    with pytest.raises(ValueError, match="lengthscale_0 must be"):
        build("a_gp_ucb", finite(), lengthscale_0=value)


@pytest.mark.parametrize("value", [0.0, -1.0, NAN, INF])
def test_a_lengthscale_shrinks_by_a_positive_number(value):
    with pytest.raises(ValueError, match=r"growth\(1\) must be positive and finite"):
        build("a_gp_ucb", finite(), growth=lambda t: value)


def test_methods_of_lengthscales_take_models_that_have_one():
    for method in ("a_gp_ucb", "lb_gp_ucb"):
        models = CandidateModels([rbf(0.5), matern(0.5)], LAMBDA)
        with pytest.raises(ValueError, match="models must be told apart by one lengthscale"):
            build(method, finite(), models)


def test_models_that_join_later_have_no_widths_of_their_own():
    models = make_models("lb_gp_ucb")
    with pytest.raises(ValueError, match="models must all be there from the start"):
        build("a_gp_ucb", finite(), models)
    for method in ("he_gp_ucb", "mle_ucb", "expected_ucb", "credible_ucb"):
        with pytest.raises(ValueError, match=r"width must be one for all models .*grows, got 1"):
            build(method, finite(), models, width=[0.5])
        strategy = build(method, finite(), models, width=0.5)
        play_promptly(strategy, 6)
        assert len(strategy.names) > 2


@of_any_models
def test_something_that_is_no_set_of_models_is_refused(method):
    with pytest.raises((ValueError, TypeError), match="models must be"):
        build(method, finite(), [rbf(0.5), rbf(0.7)])


# --- calls ----------------------------------------------------------------------------------------


@every_method
@both_domains
def test_refused_calls_change_nothing(method, domain):
    strategy, twin = make(method, domain()), make(method, domain())
    for s in (strategy, twin):
        s.ask(4)
        s.tell(0, -0.5)
        s.abandon(2)
    before = snapshot(strategy)
    for call, message in [
        (lambda: strategy.tell(3, NAN), "value must be finite, got nan for trial 3"),
        (lambda: strategy.tell(3, [0.1, 0.2]), "value must be one number"),
        (lambda: strategy.tell(0, 0.1), "got 0: already told"),
        (lambda: strategy.tell(2, 0.1), "got 2: abandoned"),
        (lambda: strategy.abandon(9), "got 9: unknown"),
        (lambda: strategy.ask(0), "num_trials must be at least 1, got 0"),
        (lambda: strategy.ask(context=torch.ones(1)), "context must be None"),
    ]:
        with pytest.raises(ValueError, match=message):
            call()
        assert snapshot(strategy) == before
    for s in (strategy, twin):
        s.tell(3, -0.4)
    assert plain(Asked(strategy.ask())) == plain(Asked(twin.ask()))


# --- every model is wrong -------------------------------------------------------------------------


@both_domains
@pytest.mark.parametrize("num_models", [1, 3])
def test_the_last_model_stays_with_one_warning_and_a_line_in_the_report(domain, num_models):
    scales = [0.4, 0.8, 1.6][:num_models]
    strategy = build("he_gp_ucb", domain(), CandidateModels(list(map(rbf, scales)), LAMBDA))
    caught = []
    for step in range(5 + num_models):
        trial = strategy.ask()
        with warnings.catch_warnings(record=True) as now:
            warnings.simplefilter("always")
            strategy.tell(trial.id, trial.info["mean"] - 50.0)  # no model allows that
        caught += now
        assert len(strategy.alive) == max(num_models - step - 1, 1)
    assert len(caught) == 1
    assert issubclass(caught[0].category, BotorchExtWarning)
    assert caught[0].filename == __file__
    (line,) = strategy.report()["warnings"]
    assert line == str(caught[0].message)
    assert len(strategy.alive) == 1
    lines = strategy.report()["models"]
    assert [entry["status"] for entry in lines].count("alive") == 1
    (last,) = (entry for entry in lines if entry["status"] == "alive")
    assert last["name"] in line
    assert last["margin"] < 0
    assert last["rejected_at"] is None
    assert len(strategy.rejected) == num_models - 1


@both_domains
def test_a_warning_made_an_error_leaves_the_observation_told(domain):
    # `python -W error`: the state is that after the event, or that before it.
    strategy, twin = (
        build("he_gp_ucb", domain(), CandidateModels(rbf(0.5), LAMBDA)) for _ in range(2)
    )
    for s in (strategy, twin):
        s.ask()
    before = snapshot(strategy)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(BotorchExtWarning):
            strategy.tell(0, -50.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        twin.tell(0, -50.0)
    assert snapshot(strategy) in (before, snapshot(twin))


def test_a_late_answer_to_a_rejected_model_rejects_nobody():
    models = CandidateModels(list(map(rbf, [0.4, 0.8])), LAMBDA)
    strategy = build("he_gp_ucb", finite(), models)
    first, second = strategy.ask(2)
    assert first.info["model"] == second.info["model"]
    strategy.tell(second.id, -50.0)
    alive = list(strategy.alive)
    assert len(alive) == 1
    strategy.tell(first.id, -50.0)
    assert strategy.alive == alive
    assert strategy.report()["warnings"] == []
    assert len(strategy.rejected) == 1


def test_code_without_a_name_is_warned_as_well():
    # Such as what `exec` runs.
    models = CandidateModels(scaled(rbf(0.5), 3.0), LAMBDA)
    names = {"build": algorithms.mle_ucb, "domain": finite(), "models": models}
    with pytest.warns(KernelBoundWarning):
        exec("build(domain, models, width=2.0)", names)
