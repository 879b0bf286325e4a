"""Safe exploration in boxes and in contexts."""

import re

import numpy as np
import pytest
import torch
from gpytorch.kernels import LinearKernel

import botorch_ext as bx
from botorch_ext.exceptions import ModelRefutedWarning, NoCertifiedPointError
from botorch_ext.widths.tight import RIDGES
from tests.helpers import rbf
from tests.oracles.safe import Anywhere, ContextOracle

DELTA, SIGMA, LAMBDA, B = 0.1, 0.1, 0.01, (2.0, 2.0, 1.5)
NAMES = ("pressure", "purity")


class Problem:
    """A value and two outcomes of norms B on a box, and where they are safe."""

    def __init__(self, box, scales, seed=0):
        self.box, self.kernels = box, [rbf(*[s * c for c in scales]) for s in (1.0, 0.8, 1.3)]
        self.truths = [
            bx.problems.RKHSFunction.random(box, kernel, norm=norm, seed=3 * seed + place)
            for place, (kernel, norm) in enumerate(zip(self.kernels, B, strict=True))
        ]
        X = box.sample(256, seed=0)
        _, pressure, purity = (truth(X) for truth in self.truths)
        self.limits = float(pressure.quantile(0.85)), float(purity.quantile(0.15))
        self.seed = X[[int(self.margins(X).argmax())]]
        self.noise = torch.Generator().manual_seed(seed)

    def margins(self, X, eps=0.0):
        """How far the outcomes, which are eps above what their models can express, are within the
        limits."""
        _, pressure, purity = (truth(X) + eps for truth in self.truths)
        return torch.minimum(self.limits[0] - pressure, purity - self.limits[1])

    def made(self, domain=None, **given):
        models = [bx.KernelGP(kernel, LAMBDA) for kernel in self.kernels]
        numbers = {"rkhs_bound": B, "noise_std": SIGMA, "safe_seed": self.seed}
        return bx.algorithms.safe_exploration(
            self.box if domain is None else domain,
            models[0],
            outcome_models=dict(zip(NAMES, models[1:], strict=True)),
            thresholds={"pressure": f"<= {self.limits[0]!r}", "purity": f">={self.limits[1]!r}"},
            **numbers | given,
        )

    def results(self, x, eps=0.0):
        noise = SIGMA * torch.randn(3, generator=self.noise, dtype=x.dtype)
        return [
            float(truth(x[None])) + float(e) + eps
            for truth, e in zip(self.truths, noise, strict=True)
        ]

    def oracles(self, eps=0.0, ridges=(1.0,)):
        return [
            Anywhere(
                lambda X, Y, kernel=kernel: (
                    kernel(torch.as_tensor(X), torch.as_tensor(Y)).to_dense().detach().numpy()
                ),
                LAMBDA,
                norm,
                SIGMA,
                DELTA / 3,
                eps,
                ridges,
                limit,
            )
            for kernel, norm, limit in zip(
                self.kernels, B, [None, (-1, self.limits[0]), (1, self.limits[1])], strict=True
            )
        ]


def told(strategy, id, values):
    strategy.tell(id, values[0], dict(zip(NAMES, values[1:], strict=True)))


# --- boxes ----------------------------------------------------------------------------------------

LINE = bx.Box([(2.0, 5.0)])
PLANE = bx.Box([(2.0, 5.0), (-3.0, -2.0)])


@pytest.mark.parametrize(
    ("box", "scales", "options"),
    [
        (LINE, (1.2,), {"bounds": "ladder"}),
        (PLANE, (2.0, 0.7), {"misspecification": 0.02}),
    ],
)
def test_steps_in_a_box_are_those_of_dense_algebra_on_a_grid(box, scales, options):
    """Bounds, the certified set and the maxima of each step; what is certified is also certified by
    the running bounds of a fine set with the same results."""
    problem = Problem(box, scales)
    strategy, eps = problem.made(**options), options.get("misspecification", 0.0)
    oracles = problem.oracles(eps, RIDGES if options.get("bounds") == "ladder" else (1.0,))
    X = box.sample(10_000, seed=1)
    grid = X.numpy()[:2000]
    kinds, asked, gaps = set(), [], []
    for _ in range(20):
        trial = strategy.ask()
        kinds.add(trial.info["kind"])
        assert strategy.domain.contains(trial.x).all()
        assert problem.margins(trial.x[None], eps) >= 0
        bounds = [each.bounds(grid) for each in oracles]
        pairs = list(zip(oracles[1:], bounds[1:], strict=True))
        S = np.all([q.slack(low, up) >= q.tolerance() for q, (low, up) in pairs], axis=0)
        possible = np.all([q.slack(up, low) >= 0 for q, (low, up) in pairs], axis=0)
        x, upper = trial.x.numpy(), bounds[0][1]
        target = np.array(trial.info.get("target_point", trial.x.tolist()))
        if trial.info["kind"] == "seed":
            assert torch.equal(trial.x, problem.seed[0])
        else:
            gaps.append(upper[possible].max() - oracles[0].bounds(target[None])[1][0])
        if trial.info["kind"] == "exploit":
            assert oracles[0].bounds(x[None])[1][0] >= upper[S].max(initial=-9) - 1e-4
        if trial.info["kind"] == "expand":
            ends = [(q, *q.bounds(target[None])) for q in oracles[1:]]
            nearest = min(ends, key=lambda end: end[0].slack(*end[1:])[0] / (end[2] - end[1])[0])[0]
            gains = [nearest.gain(z, target, asked) or 0.0 for z in [x, *grid[S][:200]]]
            assert gains[0] >= max(gains) * 0.999
        asked.append(trial.x.numpy())
        values = problem.results(trial.x, eps=eps)
        told(strategy, trial, values)
        for each, value in zip(oracles, values, strict=True):
            each.X.append(trial.x.numpy())
            each.y.append(value)
    assert kinds == {"seed", "exploit", "expand"}
    assert max(gaps) <= 1e-7
    grid = X.numpy()
    pairs = [(each, each.bounds(grid)) for each in oracles[1:]]
    slack = np.min([each.slack(*bounds) for each, bounds in pairs], axis=0)
    np.testing.assert_allclose(strategy.slack(X).numpy(), slack, atol=1e-8)
    certified = strategy.slack(X) >= 1e-8
    fine = problem.made(
        bx.FiniteSet(torch.cat([X, problem.seed, torch.as_tensor(np.array(asked))])), **options
    )
    for x, *values in zip(asked, *(each.y for each in oracles), strict=True):
        fine.attach(x, values[0], outcomes=dict(zip(NAMES, values[1:], strict=True)))
    assert certified.sum() > 100
    assert not (certified & ~fine.certified[: len(X)]).any()
    assert (strategy.slack(torch.as_tensor(np.array(asked))) >= 0).all()
    inside, outside = strategy.certificate()
    x, worst = strategy.recommend()
    S = slack >= 1e-8
    lower, upper = oracles[0].bounds(grid)
    assert strategy.slack(x) >= 0
    assert worst >= lower[S].max() - 1e-4
    assert worst + inside >= upper[S].max() - 1e-4
    assert worst + outside >= upper[S].max() - 1e-4


def test_no_rule_leaves_what_is_safe_in_a_box():
    sizes = []
    for seed in range(12):
        problem = Problem(LINE, (1.0,), seed)

        def nearest_limit(X, strategy, seed, problem=problem):
            return X[problem.margins(X).argmin()]

        strategy = problem.made(rule=nearest_limit, seed=seed)
        for step in range(8):
            trial = strategy.ask()
            assert trial.info["kind"] == ("rule" if step else "seed")
            assert problem.margins(trial.x[None]) >= 0
            told(strategy, trial, problem.results(trial.x))
        assert strategy.refuted_at is None
        sizes.append(int((strategy.slack(LINE.sample(100, seed=0)) >= 0).sum()))
    assert sum(size > 10 for size in sizes) > 6


def test_asked_points_stay_certified_unless_a_result_is_corrected():
    problem = Problem(LINE, (1.0,))
    strategy = problem.made()
    for _ in range(6):
        trial = strategy.ask()
        slack = strategy.slack(trial.x)
        told(strategy, trial, problem.results(trial.x))
        assert strategy.slack(trial.x) >= slack
    assert strategy.report()["uncertified"] == []
    strategy = problem.made()
    value, pressure, purity = problem.results(problem.seed[0])
    told(strategy, strategy.ask(), [value, pressure, purity])
    strategy.ask()
    strategy.correct(0, outcomes={"pressure": pressure + 0.6, "purity": purity - 0.6})
    assert strategy.report()["uncertified"] == [1]
    again, X = problem.made(), LINE.sample(50, seed=0)
    again.replay(strategy.events)
    torch.testing.assert_close(again.slack(X), strategy.slack(X))


def test_a_seed_that_is_given_twice_counts_once():
    problem = Problem(LINE, (1.0,))
    strategy = problem.made(safe_seed=[[3.0], [2.5], [3.0]])
    assert [float(strategy.ask().x) for _ in range(4)] == [3.0, 2.5, 3.0, 2.5]


def test_a_rule_in_a_box_must_return_a_certified_point():
    problem = Problem(LINE, (1.0,))
    for x, message in ((4.9999, "must return a certified point"), (9.0, "must lie in the box")):
        strategy = problem.made(rule=lambda *_, x=x: [x])
        told(strategy, strategy.ask(), problem.results(problem.seed[0]))
        with pytest.raises(ValueError, match=f"rule {message}"):
            strategy.ask()


@pytest.mark.parametrize("context_domain", [None, 1])
def test_refuted_models_leave_the_seeds(context_domain):
    problem = Problem(
        LINE if context_domain is None else PLANE, (1.0, 0.5)[: 1 + (context_domain or 0)]
    )
    seeds = torch.tensor([[2.5], [3.0]], dtype=torch.float64)
    strategy = problem.made(
        LINE, rkhs_bound=(2.0, 0.01, 2.0), safe_seed=seeds, context_domain=context_domain
    )
    z = {} if context_domain is None else {"context": [-2.5]}
    strategy.attach(seeds[0], 0.3, **z, outcomes={"pressure": 0.0, "purity": 0.0})
    with pytest.warns(ModelRefutedWarning, match="of 'pressure' was refuted after 2"):
        strategy.attach(seeds[1], 0.5, **z, outcomes={"pressure": -3.0, "purity": 0.0})
    trial = strategy.ask(**z)
    assert trial.info == {"kind": "seed"}
    assert torch.equal(trial.x, seeds[1])
    X = torch.cat([LINE.sample(3, seed=0), seeds])
    assert strategy.report()["uncertified"] == []
    assert strategy.slack(X, **z).tolist() == [-torch.inf] * 3 + [torch.inf] * 2
    assert strategy.certificate(**z) is None
    assert torch.equal(strategy.recommend(**z)[0], seeds[1])


# --- contexts -------------------------------------------------------------------------------------

ACTIONS = bx.FiniteSet(torch.linspace(2, 5, 25, dtype=torch.float64)[:, None])
CONTEXTS = bx.Box([(-3.0, -2.0)])


@pytest.mark.parametrize(
    ("options", "eps", "lag"),
    [
        ({}, 0.0, 0),
        ({"bounds": "ladder", "radius": 0.2}, 0.0, 3),
        ({"misspecification": 0.05, "rule": "widest"}, 0.05, 1),
    ],
)
def test_decisions_in_contexts_are_those_of_plain_loops(options, eps, lag):
    problem = Problem(PLANE, (1.5, 0.8))
    seeds = ACTIONS.points[(ACTIONS.points - problem.seed[0, 0]).abs().argmin(dim=0)]
    strategy = problem.made(ACTIONS, safe_seed=seeds, context_domain=CONTEXTS, **options)
    X = ACTIONS.points.numpy()
    oracle = ContextOracle(
        X,
        problem.oracles(eps, RIDGES if options.get("bounds") == "ladder" else (1.0,)),
        seeds.numpy(),
        np.abs(X - X.T) <= options.get("radius", 0.0),
        options.get("rule", "goal"),
    )
    joints, kinds = [], set()
    for step, z in enumerate(CONTEXTS.sample(30, seed=3)[torch.arange(30) % 12]):
        trial = strategy.ask(context=z)
        info = trial.info
        assert (info["index"], info["kind"], info.get("target")) == oracle.ask(z.numpy())
        assert info["certified"] == len(oracle.at(z.numpy())[2])
        assert "slack" not in info or problem.margins(trial.point[None], eps) >= 0
        kinds.add(info["kind"])
        joints.append(trial.point)
        if step >= lag:
            values = problem.results(joints[step - lag], eps=eps)
            told(strategy, step - lag, values)
            oracle.tell(joints[step - lag].numpy(), values)
    assert strategy.refuted_at is None
    assert kinds == {"seed", "exploit", "expand"}
    asked = strategy.history.trials
    left = [t.id for t in asked if t.info["index"] not in oracle.at(t.context.numpy())[2]]
    assert strategy.report()["uncertified"] == left
    _, bounds, S = oracle.at(z.numpy())
    worst = strategy.recommend(z)[1]
    assert worst == pytest.approx(max(bounds[0][0][x] for x in S))
    inside, outside = strategy.certificate(z)
    assert inside == pytest.approx(max(bounds[0][1][x] for x in S) - worst)
    assert outside >= inside


@pytest.mark.parametrize("domain", [ACTIONS, LINE])
def test_seeds_that_are_joint_rows_are_safe_in_their_context_alone(domain):
    problem = Problem(PLANE, (1.5, 0.3))
    x = ACTIONS.points[[7]]
    seeds = torch.cat([x, torch.full_like(x, -2.5)], dim=-1)
    strategy = problem.made(domain, safe_seed=seeds, context_domain=1, rkhs_bound=9.0)
    with pytest.raises(NoCertifiedPointError, match="a certified point is known"):
        strategy.ask(context=[-2.1])
    assert not strategy.history.events
    trial = strategy.ask(context=[-2.5])
    assert torch.equal(trial.x, x[0])
    for _ in range(30):
        strategy.attach(x[0], 0.0, [-2.5], outcomes={"pressure": -4.0, "purity": 4.0})
    assert strategy.ask(context=[-2.49]).info["slack"] > 0
    with pytest.raises(NoCertifiedPointError):
        strategy.recommend([-2.1])


@pytest.mark.parametrize("contexts", [False, True])
def test_a_study_makes_the_same_decisions_again(tmp_path, contexts):
    problem = Problem(PLANE, (1.5, 0.8))
    seeds, given = problem.seed, {}
    if contexts:
        seeds, given = ACTIONS.points[[3]], {"context_domain": CONTEXTS}
    domain = ACTIONS if contexts else PLANE
    study = bx.Study(tmp_path / "s.db", problem.made(domain, safe_seed=seeds, **given))
    offer = {"context": [-2.4]} if contexts else {}
    for _ in range(4):
        trial = study.ask(**offer)
        told(study, trial, problem.results(trial.point))
    again = bx.Study(tmp_path / "s.db")
    X = domain.sample(20, seed=0)
    assert torch.equal(again.strategy.slack(X, **offer), study.strategy.slack(X, **offer))
    other = study.strategy.clone().ask(**offer)
    one = again.ask(**offer)
    assert torch.equal(one.x, other.x)
    assert one.info == other.info


# --- arguments ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "given", "message"),
    [
        (LINE, {"radius": 0.1}, "radius must be 0 in a box, got 0.1"),
        (bx.Box([(2.0, 5.0)], integer=[0]), {}, "must be a Box with nothing but bounds"),
        (bx.Box([(2.0, 5.0)], dtype=torch.float32), {}, "domain must be in float64"),
        (LINE, {"safe_seed": [[9.0]]}, "safe_seed must lie in the box"),
        (
            LINE,
            {"safe_seed": [[3.0, 9.0]], "context_domain": CONTEXTS},
            "context of row 0 of safe_",
        ),
        (LINE, {"safe_seed": [[3.0, -2.1, 0.0]], "context_domain": CONTEXTS}, "safe_seed"),
        (LINE, {"safe_seed": []}, "safe_seed"),
    ],
)
def test_impossible_arguments_are_refused(domain, given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Problem(LINE, (1.0,)).made(domain, **given)


def test_what_is_certified_anywhere_is_a_question_of_slack():
    problem = Problem(LINE, (1.0,))
    with pytest.raises(ValueError, match="use slack"):
        _ = problem.made().certified
    assert problem.made().slack(problem.seed).tolist() == [torch.inf]
    assert problem.made().slack([[4.9]]).tolist() == [-torch.inf]
    inside, outside = problem.made().certificate()
    assert (inside, outside) == pytest.approx((4.0, 4.0))  # twice B


def with_pressure(domain, kernel, limit, **given):
    """A strategy whose value and one outcome have the same model."""
    model = bx.KernelGP(kernel, noise_variance=0.01)
    return bx.algorithms.safe_exploration(
        domain,
        model,
        outcome_models={"pressure": model},
        thresholds={"pressure": f"<= {limit}"},
        noise_std=0.1,
        **given,
    )


def test_models_are_tested_after_every_result_on_sets_and_in_boxes():
    points = torch.linspace(0.0, 1.0, 21, dtype=torch.float64)[:, None]

    def refuted_at(domain):
        strategy = with_pressure(domain, rbf(0.1), 9, safe_seed=[[0.0]], rkhs_bound=1.0)
        for i in range(45):
            outcome = 0.0 if i < 33 else 0.75 * (-1) ** i
            strategy.attach(points[(8 * i) % 21], 0.0, outcomes={"pressure": outcome})
            if strategy.refuted_at is not None:
                return strategy.refuted_at
        return None

    with pytest.warns(ModelRefutedWarning):
        found = [refuted_at(domain) for domain in (bx.FiniteSet(points), bx.Box([(0.0, 1.0)]))]
    assert found[0] == found[1] > 33


def test_where_the_prior_is_certain_nothing_is_wide():
    domain = bx.FiniteSet(torch.linspace(0.0, 1.0, 11, dtype=torch.float64)[:, None])
    given = {"safe_seed": [[0.1]], "rkhs_bound": 2.0, "rule": "widest"}
    strategy = with_pressure(domain, LinearKernel(), 2, **given)
    asked = []
    for _ in range(8):
        trial = strategy.ask()
        asked.append(float(trial.x))
        strategy.tell(trial, float(trial.x), {"pressure": float(trial.x)})
    assert 0.0 not in asked
