"""Strategies with bounds at several ridges, and with enlargements at each point, decide as plain
algebra does."""

import numpy as np
import pytest
import torch
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from gpytorch.kernels import RQKernel

import botorch_ext as bx
from botorch_ext import widths
from tests.helpers import drawn, matern, rbf, tolerance
from tests.oracles.tight import Tight

B, SIGMA, LAM, DELTA, EPS = 1.5, 0.1, 0.02, 0.1, 0.05
POINTS = drawn(25, 2, seed=1)
CLOSE = tolerance(torch.float64)


def first_highest(values):
    return int(np.argmax(values >= values.max() - 1e-9 * abs(values.max())))


def f(x):
    return float(torch.sin(5 * x[0]) + x[1])


def oracle(kernel, X, y, at, ridges, pending=None):
    rows = X if pending is None else torch.cat([X, pending])
    K, k = (kernel(*pair).to_dense().detach().numpy() for pair in ((rows, rows), (rows, at)))
    prior = kernel(at, diag=True).detach().numpy()
    return Tight(K, k, prior, y.numpy(), LAM, B, SIGMA, DELTA, ridges)


def data_of(strategy):
    told = strategy.history.values
    X = torch.stack([strategy.history.trials[id].point for id in told])
    return X, torch.tensor(list(told.values()), dtype=torch.float64)


def made(width, enlargement, kernel, domain=None, **options):
    options |= {"noise_variance": LAM, "width": width}
    domain = bx.FiniteSet(POINTS) if domain is None else domain
    if enlargement is None:
        return bx.algorithms.gp_ucb(domain, kernel, **options)
    return bx.algorithms.ec_gp_ucb(
        domain, kernel, misspecification=EPS, enlargement=enlargement, **options
    )


LADDER = widths.Ladder(B, SIGMA, DELTA)
KINDS = {
    "mixture": (widths.Mixture(B, SIGMA, DELTA), None, (1.0,)),
    "ladder": (LADDER, None, LADDER.ridges),
    "dual": (widths.Dual(B, SIGMA, DELTA), None, LADDER.ridges),
    "pointwise dual": (widths.Dual(B, SIGMA, DELTA, (1, 9)), "pointwise", (1, 9)),
    "pointwise mixture": (widths.Mixture(B, SIGMA, DELTA), "pointwise", (1.0,)),
    "pointwise ladder": (widths.Ladder(B, SIGMA, DELTA, (1, 0.5, 30)), "pointwise", (0.5, 1, 30)),
}


@pytest.mark.parametrize("kernel", [rbf(0.3), matern(0.4)], ids=["rbf", "matern"])
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_on_a_set_are_those_of_the_definition(kind, kernel):
    width, enlargement, ridges = KINDS[kind]
    strategy = made(width, enlargement, kernel)
    noise = drawn(40, seed=2, low=-SIGMA, high=SIGMA)
    strategy.tell(strategy.ask(), 0.3)
    refuted = 0
    for step in range(40):
        mean, half_width = strategy.bands(POINTS)
        trial = strategy.ask()
        X, y = data_of(strategy)
        plain = oracle(kernel, X, y, POINTS, ridges)
        eps = 0.0 if enlargement is None else EPS
        is_dual, is_ladder = (isinstance(width, w) for w in (widths.Dual, widths.Ladder))
        index = plain.bounds(eps, False, is_dual)[1]
        lower, upper = plain.bounds(eps, is_ladder, is_dual)
        refuted += is_dual and plain.dual(eps)[0] == plain.width(LAM * ridges[0])
        row = first_highest(index)
        assert trial.info["index"] == row
        np.testing.assert_allclose(mean[0] + half_width[0], upper, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(mean[0] - half_width[0], lower, rtol=1e-8, atol=1e-8)
        info = trial.info
        a = LAM * info.get("ridge", 1.0)
        for name, value in {
            "mean": plain.mean(a)[row],
            "std": plain.std(a)[row],
            "width": plain.dual(eps)[ridges.index(a / LAM)] if is_dual else plain.width(a),
            "offset": eps * plain.norms(a)[row],
        }.items():
            assert info[name] == pytest.approx(value, rel=1e-6, abs=1e-8)
        if is_ladder:
            assert info["upper"] == pytest.approx(upper[row], abs=1e-8)
            assert info["lower"] == pytest.approx(lower[row], abs=1e-8)
        # Dual bounds notice a norm above B.
        value = float(torch.sin(20 * trial.x[0])) if kind == "dual" else f(trial.x)
        strategy.tell(trial, value + float(noise[step]))
    if kind == "dual":
        assert 0 < refuted < 40


@pytest.mark.parametrize("inflate", [False, True])
def test_pending_trials_narrow_the_bounds_and_leave_the_weights_alone(inflate):
    width, _, ridges = KINDS["pointwise ladder"]
    strategy = made(width, "pointwise", rbf(0.3), inflate=inflate)
    for _ in range(6):
        trial = strategy.ask()
        strategy.tell(trial, f(trial.x))
    pending = strategy.ask(3)
    X, y = data_of(strategy)
    waiting = torch.stack([trial.x for trial in pending])
    told = oracle(rbf(0.3), X, y, POINTS, ridges)
    plain = oracle(rbf(0.3), X, y, POINTS, ridges, waiting)
    uppers = []
    for ridge in ridges:
        a, n = LAM * ridge, len(X) + len(waiting)
        inflation = np.exp(plain.gain(a) - told.gain(a)) if inflate else 1.0
        std = plain.std(a)
        norms = np.minimum(told.norms(a), np.sqrt((n + 1) / a) * std * inflation)
        uppers.append(told.mean(a) + plain.width(a) * inflation * std + EPS * norms)
    index = np.min(uppers, axis=0)
    mean, half_width = strategy.bands(POINTS)
    upper = np.minimum(index, B)
    np.testing.assert_allclose(mean[0] + half_width[0], upper, rtol=1e-8, atol=1e-8)
    assert strategy.ask().info["index"] == first_highest(index)


def test_contexts_and_given_actions():
    kernel = rbf(0.3, 0.3, 0.5)
    strategy = bx.algorithms.cgp_ucb(
        bx.FiniteSet(POINTS),
        kernel,
        noise_variance=LAM,
        width=LADDER,
        context_domain=1,
        misspecification=EPS,
        enlargement="pointwise",
    )
    for step in range(12):
        context = [0.1 * step % 1]
        trial = strategy.ask(context=context)
        joint = torch.cat([POINTS, torch.full((25, 1), context[0], dtype=torch.float64)], dim=-1)
        if step:
            X, y = data_of(strategy)
            _, upper = oracle(kernel, X, y, joint, LADDER.ridges).bounds(EPS, clip=False)
            assert upper[trial.info["index"]] >= upper.max() - 1e-9
        strategy.tell(trial, f(trial.x))


def test_candidate_models_take_the_intersection_of_each_model():
    models = bx.CandidateModels(
        [rbf(0.2), matern(0.5), rbf(0.6)], LAM, names=["short", "rough", "long"]
    )
    strategy = bx.algorithms.he_gp_ucb(
        bx.FiniteSet(POINTS),
        models,
        noise_std=SIGMA,
        delta=DELTA,
        rkhs_bound=B,
        width=LADDER,
        misspecification=EPS,
        enlargement="pointwise",
    )
    alone = [rbf(0.2), matern(0.5), rbf(0.6)]
    strategy.tell(strategy.ask(), 0.2)
    for step in range(20):
        trials = strategy.ask(2) if step % 3 == 0 else [strategy.ask()]
        X, y = data_of(strategy)
        bounds, indices = [], []
        for kernel in alone:
            plain = oracle(kernel, X, y, POINTS, LADDER.ridges)
            plain.delta = DELTA / 2
            bounds.append(plain.bounds(EPS))
            indices.append(plain.bounds(EPS, clip=False)[1])
        uppers = np.stack(indices)
        alive = [strategy.names.index(name) for name in strategy.report()["alive"]]
        info = trials[0].info
        assert info["index"] == first_highest(uppers[alive].max(axis=0))
        assert info["model"] == alive[first_highest(uppers[alive][:, info["index"]])]
        told = trials[-1].info["told"]
        row, model = trials[-1].info["index"], trials[-1].info["model"]
        lower, upper = bounds[model]
        assert told["upper"] == pytest.approx(upper[row], abs=1e-8)
        assert told["lower"] == pytest.approx(lower[row], abs=1e-8)
        for trial in trials:
            strategy.tell(trial, f(trial.x) if step < 8 else trial.info["mean"] + 4.0)
        if len(strategy.report()["alive"]) < 3:
            break
    assert len(strategy.report()["alive"]) == 2


BOX = bx.Box([[0.0, 0.0], [1.0, 1.0]])


def uppers(strategy, at, kernel, ridges, eps, width=LADDER):
    X, y = data_of(strategy)
    is_dual = isinstance(width, widths.Dual)
    return oracle(kernel, X, y, at, ridges).bounds(eps, False, is_dual)[1]


@pytest.mark.parametrize("kernel", [rbf(0.3), matern(0.4)], ids=["rbf", "matern"])
@pytest.mark.parametrize("kind", KINDS)
def test_nobody_finds_a_better_point_of_a_box(kind, kernel):
    width, enlargement, ridges = KINDS[kind]
    strategy = made(width, enlargement, kernel, domain=BOX, num_initial=12)
    eps = 0.0 if enlargement is None else EPS
    for step in range(16):
        trial = strategy.ask()
        if step >= 12:
            (own,) = uppers(strategy, trial.x[None], kernel, ridges, eps, width)
            at = torch.cat([drawn(1500, 2, seed=step), near(trial.x, step)])
            best = uppers(strategy, at, kernel, ridges, eps, width).max()
            assert own >= best - 1e-7 * abs(best)
            assert min(own, B) == pytest.approx(trial.info.get("upper", min(own, B)), abs=1e-8)
        strategy.tell(trial, f(trial.x) + 0.05 * (-1) ** step)


def near(x, seed):
    """Points around another, at distances from 1e-6 to 0.1."""
    scale = 10 ** drawn(500, 1, seed=seed, low=-6, high=-1)
    return (x + scale * drawn(500, 2, seed=seed + 1, low=-1)).clamp(0, 1)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("mean", [None, lambda X: 0.2 * torch.sin(X[..., 0])])
@pytest.mark.parametrize("kernel", [rbf(0.3, 0.5), matern(0.4, nu=1.5), RQKernel().double()])
def test_gradients_in_a_box_are_those_of_autograd(kernel, mean, sign):
    models = bx.CandidateModels([kernel, rbf(0.3)], LAM, mean)
    strategy = bx.algorithms.he_gp_ucb(
        BOX,
        models,
        noise_std=SIGMA,
        rkhs_bound=0.9,
        width=LADDER,
        misspecification=EPS,
        enlargement="pointwise",
        num_initial=7,
    )
    for _ in range(7):
        trial = strategy.ask()
        strategy.tell(trial, 2 * f(trial.x))
    strategy.ask(2)
    strategy.abandon(7)
    strategy.ask()
    bounds = strategy._bounds(strategy._rows.current().posterior)
    signed = bounds.upper() if sign > 0 else bounds.negated_lower()
    X = drawn(30, 2, seed=3).requires_grad_()
    expected = signed._values(X)
    slopes = torch.stack(
        [torch.autograd.grad(row.sum(), X, retain_graph=True)[0] for row in expected]
    )
    for Z in (X.detach(), X.detach().expand(2, -1, -1)):
        values, gradients = signed.values_and_gradients(Z)
        torch.testing.assert_close(values, expected.detach(), **CLOSE)
        torch.testing.assert_close(gradients, slopes, rtol=1e-6, atol=1e-6)


def test_values_with_gradients_are_the_values_of_a_model_with_an_input_transform():
    box = bx.Box([[-1.0, 2.0], [3.0, 2.5]])
    model = bx.KernelGP(rbf(0.3), LAM, input_transform=Normalize(2, bounds=box.bounds))
    strategy = bx.strategies.BoundsStrategy(
        box, model, widths.PointwiseEnlarged(2.0, EPS), num_initial=7
    )
    for _ in range(7):
        trial = strategy.ask()
        strategy.tell(trial, f(trial.x))
    upper, X = strategy._bounds(strategy._rows.current().posterior).upper(), box.sample(20, 3)
    torch.testing.assert_close(upper.values_and_gradients(X)[0], upper.values(X), **CLOSE)


def test_worst_cases_are_those_of_the_intersected_bounds():
    radius, grid = 0.21, bx.FiniteSet(torch.cartesian_prod(*[drawn(5, seed=7).sort()[0]] * 2))
    strategy = bx.algorithms.stable_opt(
        grid, rbf(0.3), noise_variance=LAM, radius=radius, width=LADDER
    )
    near = (torch.cdist(grid.points, grid.points) <= radius).numpy()
    for step in range(12):
        trial = strategy.ask()
        if step:
            X, y = data_of(strategy)
            lower, upper = oracle(rbf(0.3), X, y, grid.points, LADDER.ridges).bounds(clip=False)
            worst = np.where(near, upper, np.inf).min(axis=1)
            center = trial.info["center_index"]
            assert worst[center] == pytest.approx(worst.max(), abs=1e-9)
            assert near[center, trial.info["index"]]
            assert lower[trial.info["index"]] == pytest.approx(lower[near[center]].min(), abs=1e-9)
        strategy.tell(trial, f(trial.x))


def test_worst_cases_in_a_box_are_those_of_the_intersected_bounds():
    strategy = bx.algorithms.stable_opt(
        BOX, rbf(0.4), noise_variance=LAM, radius=0.1, width=LADDER, num_initial=10
    )
    for _ in range(10):
        trial = strategy.ask()
        strategy.tell(trial, f(trial.x))
    trial = strategy.ask()
    angles = torch.linspace(0, 6.2832, 73, dtype=torch.float64)
    circle = torch.stack([angles.cos(), angles.sin()], dim=-1)
    ball = torch.cat([radius * circle for radius in (0.0, 0.05, 0.1)])

    def worst(centers):
        around = (centers[:, None] + ball).clamp(0, 1).flatten(0, 1)
        return (
            uppers(strategy, around, rbf(0.4), LADDER.ridges, 0.0).reshape(len(centers), -1).min(1)
        )

    own = worst(torch.tensor([trial.info["center"]], dtype=torch.float64))[0]
    assert own >= worst(drawn(300, 2, seed=5)).max() - 1e-4


def test_models_that_join_are_computed_at_every_ridge():
    models = bx.CandidateModels.growing(matern(1.0), 0.8, LAM, 2, growth=lambda t: 1 + t / 4)
    strategy = bx.algorithms.he_gp_ucb(
        bx.FiniteSet(POINTS),
        models,
        noise_std=SIGMA,
        rkhs_bound=B,
        width=LADDER,
        delta=2 * DELTA,
        initial=(POINTS[:2], torch.tensor([0.1, 0.3], dtype=torch.float64)),
    )
    trials = [strategy.ask() for _ in range(9)]
    for trial in trials[:6]:
        strategy.tell(trial, f(trial.x))
    strategy.abandon(trials[6])
    X, y = data_of(strategy)
    X, y = torch.cat([POINTS[:2], X]), torch.cat([strategy.initial[1], y])
    mean, half_width = strategy.bands(POINTS)
    assert len(mean) > 2
    waiting = torch.stack([trial.x for trial in trials[7:]])
    for i, name in enumerate(strategy.names):
        kernel = matern(float(name.split()[-1]))
        told = oracle(kernel, X, y, POINTS, LADDER.ridges)
        plain = oracle(kernel, X, y, POINTS, LADDER.ridges, waiting)
        upper = np.min(
            [told.mean(a) + plain.width(a) * plain.std(a) for a in LAM * np.array(LADDER.ridges)],
            axis=0,
        )
        np.testing.assert_allclose(
            (mean + half_width)[i], np.minimum(upper, B), rtol=1e-3, atol=1e-3
        )


def test_a_fitted_model_is_computed_at_every_ridge():
    strategy = bx.algorithms.gp_ucb(bx.FiniteSet(POINTS), bx.Fitted(), width=LADDER, num_initial=4)
    for step in range(12):
        trial = strategy.ask()
        strategy.tell(trial, f(trial.x) + 0.05 * (-1) ** step)
    base, at_ridges = strategy._rows.posterior, strategy._at_ridges.posterior
    assert at_ridges.num_observations == base.num_observations
    torch.testing.assert_close(at_ridges.mean[0], base.mean[0], **CLOSE)
    torch.testing.assert_close(
        at_ridges.noise_variance,
        base.noise_variance * at_ridges.noise_variance.new_tensor(LADDER.ridges),
    )


@pytest.mark.parametrize("width", [LADDER, widths.PointwiseEnlarged(2.0, EPS)])
@pytest.mark.parametrize("method", ["insured_ucb", "bpe", "breadthwise_exploration", "certified"])
def test_methods_that_do_not_play_such_bounds_refuse_the_width(method, width):
    points, model = bx.FiniteSet(POINTS), bx.KernelGP(rbf(0.3), LAM)
    given = {"noise_variance": LAM, "rkhs_bound": B, "noise_std": SIGMA, "width": width}
    makers = {
        "insured_ucb": lambda: bx.algorithms.insured_ucb(points, rbf(0.3), **given),
        "bpe": lambda: bx.algorithms.bpe(points, rbf(0.3), horizon=20, **given),
        "breadthwise_exploration": lambda: bx.algorithms.breadthwise_exploration(
            BOX, rbf(0.3), horizon=20, **given
        ),
        "certified": lambda: bx.strategies.CertifiedElimination(points, model, 20, width, 2.0, 2.0),
    }
    with pytest.raises(ValueError, match=r"width must have one ridge"):
        makers[method]()


def test_widths_that_do_not_fit_the_models_are_refused():
    points, kernel = bx.FiniteSet(POINTS), rbf(0.3)
    several = bx.CandidateModels([kernel, rbf(0.5)], LAM)
    for other in (2.0, widths.Ladder(B, SIGMA, DELTA, (1,))):
        with pytest.raises(ValueError, match="ridges"):
            bx.strategies.BoundsStrategy(points, several, [LADDER, other])
    twins = bx.CandidateModels(kernel, LAM).with_nugget(0.2)
    with pytest.raises(ValueError, match="twins"):
        bx.strategies.BoundsStrategy(points, twins, widths.Dual(B, SIGMA, DELTA))
    dual = widths.Dual(B, SIGMA, DELTA, misspecification=EPS)
    with pytest.raises(ValueError, match="misspecification"):
        made(dual, None, kernel)
    with pytest.raises(ValueError, match="once"):
        widths.PointwiseEnlarged(widths.PointwiseEnlarged(dual, EPS), EPS)
    with pytest.raises(ValueError, match="pending"):
        made(widths.Dual(B, SIGMA, DELTA), None, kernel, pending="censor", minimum=-3.0)
    standardized = bx.KernelGP(kernel, LAM, outcome_transform=Standardize(1))
    with pytest.raises(ValueError, match="enlargement"):
        bx.strategies.OptimisticStrategy(BOX, standardized, widths.PointwiseEnlarged(2.0, EPS))


def test_pending_rows_of_a_given_model_have_no_values_at_any_ridge():
    model = bx.KernelGP(rbf(0.3), LAM)
    model.add(POINTS[:4], torch.tensor([0.1, 0.5, -0.2, 0.3], dtype=torch.float64))
    model.add(POINTS[4:6], None)
    strategy = bx.strategies.OptimisticStrategy(BOX, model, widths.PointwiseEnlarged(LADDER, EPS))
    mean, half_width = strategy.bands(POINTS)
    given = POINTS[:4], model.train_targets[:4], POINTS, LADDER.ridges
    told, plain = (oracle(rbf(0.3), *given, waiting) for waiting in (None, POINTS[4:6]))
    uppers = []
    for a in LAM * np.array(LADDER.ridges):
        norms = np.minimum(told.norms(a), np.sqrt(7 / a) * plain.std(a))
        uppers.append(told.mean(a) + plain.width(a) * plain.std(a) + EPS * norms)
    expected = np.minimum(np.min(uppers, axis=0), B)
    np.testing.assert_allclose((mean + half_width)[0], expected, rtol=1e-6, atol=1e-6)
    assert strategy.report()["refuted_at"] is None
    assert len(strategy.told_data()[0].y) == 4


def test_published_enlargement_of_dual_bounds_is_refused():
    with pytest.raises(ValueError, match="pointwise"):
        made(widths.Dual(B, SIGMA, DELTA), "published", rbf(0.3))
    with pytest.raises(ValueError, match="enlargement"):
        made(LADDER, "other", rbf(0.3))
    with pytest.raises(ValueError, match="ridges"):
        widths.Dual(B, SIGMA, DELTA)(1, bx.KernelGP(rbf(0.3), LAM))


def test_dual_bounds_of_a_float32_model_are_refused():
    strategy = made(
        widths.Dual(B, SIGMA, DELTA), None, rbf(0.3).float(), bx.FiniteSet(POINTS.float())
    )
    with pytest.raises(ValueError, match="float64"):
        strategy.ask()


def test_a_warning_where_the_pointwise_enlargement_drowns_the_rest():
    strategy = bx.algorithms.ec_gp_ucb(
        bx.FiniteSet(POINTS),
        rbf(0.3),
        noise_variance=1e-3,
        misspecification=1.0,
        enlargement="pointwise",
        width=0.5,
    )

    def play():
        for step in range(40):
            strategy.tell(strategy.ask(), (-1.0) ** step)

    with pytest.warns(bx.exceptions.EnlargementWarning, match="last 16 points"):
        play()
