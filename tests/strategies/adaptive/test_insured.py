"""Insured methods against their definition: every level, probe and price, replayed through plain
loops and dense algebra."""

import math
from dataclasses import replace

import pytest
import torch
from gpytorch.kernels import LinearKernel, RBFKernel

from botorch_ext import Box, CandidateModels, FiniteSet, algorithms, problems
from botorch_ext.exceptions import HorizonReached
from botorch_ext.strategies import Asked, Trial
from botorch_ext.strategies.adaptive.insurance import Insurance, Sight
from botorch_ext.strategies.adaptive.ledger import Ledger, Suspect, Terms
from tests.helpers import pairwise
from tests.oracles.insured import Insured, Model

B, SIGMA, DELTA = 1.0, 0.05, 0.1


quietly = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")


def rbf(lengthscale):
    kernel = RBFKernel().double()
    kernel.lengthscale = lengthscale
    return kernel


def linear():
    kernel = LinearKernel().double()
    kernel.variance = 1.0
    return kernel


def bent_line(N=25, seed=0, eps=0.0):
    """A function of the RKHS on a line, with a perturbation of size eps."""
    g = torch.Generator().manual_seed(seed)
    X = torch.linspace(0, 1, N, dtype=torch.float64).unsqueeze(-1)
    K = rbf(0.2)(X, X).to_dense().detach()
    weights = torch.randn(N, generator=g, dtype=torch.float64)
    f = K @ weights / math.sqrt(float(weights @ K @ weights))
    white = torch.rand(N, generator=g, dtype=torch.float64) * 2 - 1
    return X, f + eps * white, rbf(0.2)


def locked():
    """Three arms of which the linear model excludes the best."""
    problem = problems.lock_out()
    return problem.domain.points, problem(problem.domain.points), problem.kernel


CASES = {
    "right": (bent_line(), 1e-2, 0.05),
    "rough": (bent_line(seed=1, eps=0.3), 1e-2, 0.02),
    "locked": (locked(), 1e-3, 0.01),
}
# Numbers that make everything happen within few steps.
EAGER = Terms(alpha=0.5, beta=0.6, purse=0.4, max_follow_ups=3, override=1.0)


def run(strategy, oracle, f, steps, sigma, delay, offers=None, contexts=None, seed=3, sizes=1e-7):
    """Plays and compares; how often each kind was played, and the levels.

    With contexts, rows count the pairs of an action and a context, all actions of a context
    together.
    """
    g = torch.Generator().manual_seed(seed)
    kinds, levels, pending = [], [], []
    for t in range(1, steps + 1):
        N = strategy.domain.num_points
        offered = None if offers is None else offers(t)
        actions = None if offered is None else strategy.domain.points[offered]
        first, context = 0, None
        if contexts is not None:
            number = t * t % len(contexts)
            first, context = N * number, contexts[number]
            offered = (
                list(range(first, first + N)) if offered is None else [first + x for x in offered]
            )
        trial = strategy.ask(actions=actions, context=context)
        late = [row for _, _, row in pending]
        oracle.hint = trial.info.get("plan", {}).get("plan", [])
        expected = oracle.ask(t, late, offered)
        info = trial.info
        row = first + info["index"]
        assert (row, info["kind"]) == (expected["row"], expected["kind"]), (t, expected)
        if contexts is not None:
            joint = torch.cat(
                [strategy.domain.points.repeat(len(contexts), 1), contexts.repeat_interleave(N, 0)],
                -1,
            )
            for new in torch.tensor(info["watched"], dtype=joint.dtype):
                oracle.watched.add(int((joint == new).all(-1).nonzero()[0]))
            assert row in oracle.watched
        assert info["level"] == expected["level"]
        assert info["cost"] == pytest.approx(expected["cost"], abs=sizes)
        assert info.get("suspected") == expected["suspected"]
        kinds.append(info["kind"] + ("!" if info.get("purse") == "owed" else ""))
        kinds[-1] += "." if info.get("purse") == "small" else ""
        levels.append(info["level"])
        wait = int(torch.randint(0, delay + 1, (), generator=g)) if delay else 0
        oracle.asked(info["kind"], trial.id)
        pending.append((t + wait, trial.id, row))
        for entry in [entry for entry in pending if entry[0] <= t]:
            pending.remove(entry)
            noise = float(torch.randn((), generator=g, dtype=torch.float64)) * sigma
            value = float(f[entry[2]]) + noise
            strategy.tell(entry[1], value)
            oracle.tell(entry[2], value, entry[1])
    return kinds, levels


def make(case, terms=None, **options):
    (X, f, kernel), ridge, sigma = CASES[case]
    numbers = {"rkhs_bound": B, "noise_std": sigma, "delta": DELTA}
    strategy = algorithms.insured_ucb(
        FiniteSet(X), kernel, noise_variance=ridge, **numbers, terms=terms, **options
    )
    constants = {} if terms is None else {k: v for k, v in vars(terms).items() if k != "num_levels"}
    width = options.get("width")
    oracle = Insured([Model(kernel(X, X).to_dense().detach(), ridge)], B, sigma, DELTA, width)
    oracle.c |= constants
    return strategy, oracle, f, sigma


def test_the_terms_are_those_that_were_measured():
    oracle = Insured([Model(torch.eye(1, dtype=torch.float64), 1.0)], 2.0, 1.0, DELTA)
    assert {name: getattr(Terms(), name) for name in oracle.c} == oracle.c
    assert Terms().levels(2.0) == oracle.eps


@pairwise(case=CASES, terms=[None, EAGER], delay=[0, 4])
def test_every_decision_is_that_of_the_definition(case, terms, delay):
    strategy, oracle, f, sigma = make(case, terms)
    run(strategy, oracle, f, 60, sigma, delay)


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("case", CASES)
def test_the_same_with_changing_actions_and_an_index_of_its_own(case, delay):
    strategy, oracle, f, sigma = make(case, EAGER, width=0.7)
    N = len(f)

    def offers(t):
        g = torch.Generator().manual_seed(t)
        return torch.randperm(N, generator=g)[: max(2 * N // 3, 2)].tolist()

    run(strategy, oracle, f, 60, sigma, delay, offers)


@pytest.mark.parametrize(("credibility", "width"), [(None, None), (0.5, None), (None, 30.0)])
@pytest.mark.parametrize(("case", "delay"), [("right", 4), ("rough", 0)])
def test_the_same_with_several_models_inside_what_they_leave(case, credibility, width, delay):
    (X, f, _), ridge, sigma = CASES[case]
    kernels = [rbf(lengthscale) for lengthscale in (0.6, 0.2, 0.05)]
    strategy = algorithms.safe_ucb(
        FiniteSet(X),
        CandidateModels(kernels, ridge),
        rkhs_bound=B,
        noise_std=sigma,
        credibility=credibility,
        width=width,
        terms=EAGER,
    )
    models = [Model(kernel(X, X).to_dense().detach(), ridge) for kernel in kernels]
    oracle = Insured(models, B, sigma, DELTA, width, restricted=True, credibility=credibility)
    oracle.c |= {name: value for name, value in vars(EAGER).items() if name in oracle.c}
    run(strategy, oracle, f, 50, sigma, delay)
    played = {trial.info["model"] for trial in strategy.history.trials}
    assert len(played) > 1


def test_a_second_plan_keeps_the_certificate_of_the_first():
    """Its points are of what was left then: the certificate has fallen since."""
    g = torch.Generator().manual_seed(2)
    X, kernel, sigma = torch.linspace(0, 1, 20, dtype=torch.float64).unsqueeze(-1), rbf(0.3), 0.02
    K = kernel(X, X).to_dense().detach()
    weights = torch.randn(20, generator=g, dtype=torch.float64)
    f = K @ weights / math.sqrt(float(weights @ K @ weights))
    models = CandidateModels([kernel], 1e-3)
    numbers = {"noise_std": sigma, "width": 0.7, "horizon": 70, "certificates": True}
    strategy, first, num_above = safe(FiniteSet(X), models, **numbers), {}, 0
    for t in range(70):
        trial = strategy.ask()
        info, value = trial.info, float(f[trial.info["index"]])
        if info["kind"] != "block":
            promise = info["certificate"]
        else:
            promise = first.setdefault(info["round"], info["certificate"])
            assert info["cost"] == promise
            num_above += float(f.max()) - value > info["certificate"]
        if info["kind"] in ("exploit", "block"):
            assert float(f.max()) - value <= promise
        if info["kind"] == "block" and t % 2:
            strategy.abandon(trial.id)
        else:
            noise = float(torch.randn((), generator=g, dtype=torch.float64)) * sigma
            strategy.tell(trial.id, value + noise)
    assert num_above  # so the certificate of now would have been wrong


@pytest.mark.slow
@pytest.mark.parametrize(("eps", "delay"), [(0.0, 4), (0.2, 0)])
def test_the_same_with_certificates(eps, delay):
    ridge, sigma, width = 0.05, 0.02, 0.1  # an index that hardly looks around
    horizon = 200
    X, f, _ = bent_line(eps=eps)
    kernels = [rbf(0.3), rbf(0.15)]
    strategy = algorithms.safe_ucb(
        FiniteSet(X),
        CandidateModels(kernels, ridge),
        rkhs_bound=B,
        noise_std=sigma,
        horizon=horizon,
        certificates=True,
        width=width,
        terms=EAGER,
    )
    models = [Model(kernel(X, X).to_dense().detach(), ridge) for kernel in kernels]
    oracle = Insured(models, B, sigma, DELTA, width, restricted=True, horizon=horizon)
    oracle.c |= {name: value for name, value in vars(EAGER).items() if name in oracle.c}
    kinds, _ = run(strategy, oracle, f, horizon, sigma, delay)
    infos = [trial.info for trial in strategy.history.trials]
    if not eps:
        assert kinds.count("block") >= 2
        assert sum("closed" in info for info in infos) >= 1
    best = float(f.max())
    for info in infos:
        promise = info["cost"] if info["kind"] == "block" else info["certificate"]
        if info["kind"] in ("exploit", "block") and strategy.levels[info["level"]] >= eps:
            assert best - float(f[info["index"]]) <= promise + 1e-9
    assert strategy.report()["certificates"] == [info["certificate"] for info in infos]


@pairwise(seed=[0, 1], changing=[False, True], delay=[0, 4])
def test_the_same_with_contexts(seed, changing, delay):
    N, sigma, ridge = 9, 0.02, 1e-2
    X, contexts = (torch.linspace(0, 1, n, dtype=torch.float64).unsqueeze(-1) for n in (N, 3))
    joint = torch.cat([X.repeat(3, 1), contexts.repeat_interleave(N, 0)], -1)
    g = torch.Generator().manual_seed(seed)
    kernel = rbf(0.3)
    K = kernel(joint, joint).to_dense().detach()
    weights = torch.randn(len(joint), generator=g, dtype=torch.float64)
    f = K @ weights / math.sqrt(float(weights @ K @ weights))
    f += 0.2 * (torch.rand(len(joint), generator=g, dtype=torch.float64) * 2 - 1)
    strategy = algorithms.insured_ucb(
        FiniteSet(X),
        kernel,
        noise_variance=ridge,
        rkhs_bound=B,
        noise_std=sigma,
        terms=EAGER,
        context_domain=FiniteSet(contexts),
    )
    oracle = Insured([Model(K, ridge)], B, sigma, DELTA, watched=set())
    oracle.c |= {name: value for name, value in vars(EAGER).items() if name in oracle.c}

    def offers(t):
        g = torch.Generator().manual_seed(t)
        return torch.randperm(N, generator=g)[: 2 * N // 3].tolist()

    kinds, _ = run(
        strategy, oracle, f, 50, sigma, delay, offers if changing else None, contexts=contexts
    )
    assert "probe" in kinds or "probe." in kinds


@quietly
@pytest.mark.slow
@pytest.mark.parametrize("delay", [0, 3])
def test_on_a_box_it_plays_gp_bucb_but_for_probes_within_the_budget(delay):
    box, ridge, sigma, steps = Box([[0.0, 0.0], [1.0, 1.0]]), 1e-2, 0.05, 40
    numbers = {"noise_variance": ridge, "rkhs_bound": B, "noise_std": sigma}

    def f(x):
        hill = torch.exp(-(x - 0.3).square().sum() / 0.08)
        return float(0.6 * hill + 0.5 * ((x - 0.85).abs().max() < 0.06))  # which no model expects

    def make():
        return algorithms.insured_ucb(box, rbf(0.5), terms=EAGER, **numbers)

    strategy, waiting = make(), []
    plain = algorithms.gp_bucb(box, rbf(0.5), **numbers)
    lost, large, small = 0.0, 0.0, 0.0
    for step in range(steps):
        trial = strategy.ask()
        info, budget = trial.info, EAGER.budget(lost, B, step + 1)
        if info["level"] == 0 and info["kind"] == "exploit":
            known = plain.clone().ask()
            assert torch.equal(known.x, trial.x)
        if info["kind"] == "exploit":
            lost += info["cost"]
            assert info["cost"] >= 0
        elif info["purse"] == "small":
            small += info["cost"]
            assert small <= EAGER.purse * budget + 1e-9
        else:
            large += info["cost"]
            assert (
                info["kind"] == "follow-up"
                or info["purse"] == "owed"
                or (large <= (1 - EAGER.purse) * budget + 1e-9)
            )
        entered = Asked(Trial(trial.id, trial.x, None, {key: info[key] for key in PREDICTED}))
        plain.replay([entered])
        waiting.append(trial)
        if len(waiting) > delay:
            done = waiting.pop(0)
            value = f(done.x)
            strategy.tell(done.id, value)
            plain.tell(done.id, value)
    kinds = [trial.info["kind"] for trial in strategy.history.trials]
    assert kinds.count("exploit") >= steps // 2
    assert kinds.count("probe") >= 2
    report = strategy.report()
    assert report["may_have_lost"] == pytest.approx(lost)
    assert sum(report["charged"]["large"]) == pytest.approx(large)
    assert sum(report["charged"]["small"]) == pytest.approx(small)


def seen(suspect=1, average=0.9, count=4.0):
    """Three points, of which the second was probed and does better than its bound of 0.5."""
    n, M = 3, 7
    upper = torch.tensor([1.0, 0.5, 0.4], dtype=torch.float64).expand(M, n)
    counts = torch.tensor([5.0, count, 0.0], dtype=torch.float64)
    return Sight(
        upper,
        upper - 0.3,
        upper,
        upper[0] + 1,
        upper[0] - 1,
        counts,
        counts * torch.tensor([0.9, average, 0.0], dtype=torch.float64),
        upper,
        suspect,
    )


@pytest.mark.parametrize(
    ("repeats", "level", "average", "is_repeated"),
    [(2, 0, 0.9, True), (3, 0, 0.9, False), (2, 6, 0.9, False), (2, 0, 0.54, False)],
)
def test_a_suspect_is_followed_up_so_often_below_the_last_level(
    repeats, level, average, is_repeated
):
    insurance = Insurance(Terms(max_follow_ups=3), B, 0.1)
    kept = Suspect(2, 0, repeats=repeats, absent=1)
    ledger = replace(Ledger.new(insurance.terms), suspect=kept, level=level)
    choice, _ = insurance.decide(seen(average=average), ledger, 10)
    assert (choice.kind == "follow-up") == is_repeated
    if is_repeated:
        assert (choice.row, choice.suspected) == (1, 2)
        assert choice.cost == pytest.approx(1.0 - 0.2)
        assert choice.suspect == Suspect(2, 0, repeats=3, absent=0)
        after = ledger.charged(choice, 7)
        assert after.large[2] == pytest.approx(0.8)
        assert after.suspect == choice.suspect
    else:
        assert choice.suspect is None


PREDICTED = ("model", "mean", "std", "width", "offset")


@quietly
@pytest.mark.parametrize("stays", [False, True])
@pytest.mark.parametrize("delay", [0, 4])
def test_the_same_where_even_the_last_level_is_refuted(delay, stays):
    X, f, kernel = bent_line()
    f, ridge, sigma = 10 * f, 1e-2, 0.02  # ten times what B allows
    make = algorithms.safe_ucb if stays else algorithms.insured_ucb
    numbers = {"noise_variance": ridge, "rkhs_bound": B, "noise_std": sigma}
    strategy = make(FiniteSet(X), kernel, **numbers)
    model = Model(kernel(X, X).to_dense().detach(), ridge)
    oracle = Insured([model], B, sigma, DELTA, restricted=stays)
    _, levels = run(strategy, oracle, f, 40, sigma, delay)
    assert levels[-1] == 6
    regrets = [float(f.max() - f[trial.info["index"]]) for trial in strategy.history.trials]
    assert sum(regrets[-10:]) < sum(regrets[:10])


@quietly
def test_certificates_go_on_where_even_the_last_level_is_refuted():
    X, f, kernel = bent_line()
    numbers = {"noise_variance": 1e-2, "rkhs_bound": B, "noise_std": 0.02, "horizon": 60}
    strategy = algorithms.safe_ucb(FiniteSet(X), kernel, certificates=True, **numbers)
    for _ in range(60):
        trial = strategy.ask()
        assert trial.info["certificate"] >= 0
        strategy.tell(trial.id, 10 * float(f[trial.info["index"]]))
    assert strategy.report()["level"] == 6


@pytest.mark.parametrize("num_initial", [0, 3])
def test_the_same_with_data_from_before_and_trials_given_up(num_initial):
    (X, f, kernel), ridge, sigma = CASES["rough"]
    before = torch.tensor([3, 17, 3])
    Y = f[before] + torch.tensor([0.02, -0.01, 0.0], dtype=torch.float64)
    strategy = algorithms.insured_ucb(
        FiniteSet(X),
        kernel,
        noise_variance=ridge,
        rkhs_bound=B,
        noise_std=sigma,
        terms=EAGER,
        initial=(X[before], Y),
        num_initial=num_initial,
    )
    oracle = Insured([Model(kernel(X, X).to_dense().detach(), ridge)], B, sigma, DELTA)
    oracle.c |= {name: value for name, value in vars(EAGER).items() if name in oracle.c}
    for row, value in zip(before.tolist(), Y.tolist(), strict=True):
        oracle.tell(row, value)
    waiting = []
    for step in range(50):
        trial = strategy.ask()
        row = trial.info["index"]
        if step >= num_initial:
            expected = oracle.ask(step + 4, [one.info["index"] for one in waiting])
            assert (row, trial.info["kind"]) == (expected["row"], expected["kind"])
            assert trial.info["cost"] == pytest.approx(expected["cost"], abs=1e-7)
        waiting.append(trial)
        if len(waiting) == 3:  # one is told, one is given up, one stays under way
            told, given_up = waiting.pop(1), waiting.pop(0)
            value = float(f[told.info["index"]]) + 0.01 * math.sin(7 * step)
            strategy.tell(told.id, value)
            oracle.tell(told.info["index"], value)
            strategy.abandon(given_up.id)


@quietly
def test_a_right_model_in_float32_is_not_refuted_by_rounding():
    X, f, kernel = bent_line()
    numbers = {"noise_variance": 1e-4, "rkhs_bound": B, "noise_std": 0.01}
    strategy = algorithms.insured_ucb(FiniteSet(X.float()), kernel.float(), **numbers)
    g = torch.Generator().manual_seed(0)
    for _ in range(120):
        trial = strategy.ask()
        noise = 0.01 * float(torch.randn((), generator=g))
        strategy.tell(trial.id, float(f[trial.info["index"]]) + noise)
    assert strategy.report()["level"] == 0


@quietly
def test_many_points_from_before_on_a_box():
    box = Box([[0.0], [1.0]])
    X = box.sample(300, seed=1)
    numbers = {"noise_variance": 0.01, "noise_std": 0.1, "rkhs_bound": B}
    strategy = algorithms.insured_ucb(box, rbf(0.3), initial=(X, X[:, 0]), **numbers)
    strategy.ask()
    assert len(strategy._told.watched.X) >= 300


def test_on_a_box_of_few_points_every_decision_is_that_of_the_definition():
    box = Box([[0.0], [8.0]], integer=[0])
    X = torch.arange(9, dtype=torch.float64).unsqueeze(-1)
    kernel, ridge, sigma = rbf(2.5), 1e-2, 0.02
    K = kernel(X, X).to_dense().detach()
    g = torch.Generator().manual_seed(4)
    f = K @ torch.randn(9, generator=g, dtype=torch.float64)
    f = f / f.abs().max() + 0.3 * (torch.rand(9, generator=g, dtype=torch.float64) - 0.5)
    numbers = {"noise_variance": ridge, "rkhs_bound": B, "noise_std": sigma}
    strategy = algorithms.insured_ucb(box, kernel, terms=EAGER, **numbers)
    oracle = Insured([Model(K, ridge)], B, sigma, DELTA, watched=set())
    oracle.c |= {name: value for name, value in vars(EAGER).items() if name in oracle.c}
    kinds = set()
    for t in range(1, 41):
        trial = strategy.ask()
        expected, row = oracle.ask(t, []), int(trial.x)
        assert trial.info["kind"] == expected["kind"]
        assert trial.info["cost"] == pytest.approx(expected["cost"], abs=1e-7)
        assert row == expected["row"]
        oracle.watched |= {int(x) for (x,) in trial.info["watched"]}
        kinds.add(trial.info["kind"])
        value = float(f[row]) + sigma * float(torch.randn((), generator=g))
        strategy.tell(trial.id, value)
        oracle.tell(row, value)
    assert "probe" in kinds


@pytest.mark.parametrize(
    "wrong",
    [
        {"cost": -1.0},
        {"cost": math.nan},
        {"kind": "guess"},
        {"level": 99},
        {"refuted": 5},
        {"refuted": [5]},
        {"suspect": {"level": 1}},
    ],
)
def test_a_record_that_can_not_be_is_refused(wrong):
    strategy, again = (make("right")[0] for _ in range(2))
    trial = strategy.ask()
    info = trial.info | wrong
    with pytest.raises(ValueError, match=next(iter(wrong))):
        again.replay([Asked(Trial(0, trial.x, None, info))])
    again.replay(strategy.events)


def insured(**options):
    numbers = {"noise_variance": 0.01, "noise_std": 0.1, "rkhs_bound": B}
    return algorithms.insured_ucb(Box([[0.0], [1.0]]), rbf(0.3), **(numbers | options))


def safe(domain=None, models=None, **options):
    models = CandidateModels([rbf(0.3)], 0.01) if models is None else models
    domain = Box([[0.0], [1.0]]) if domain is None else domain
    return algorithms.safe_ucb(domain, models, **({"noise_std": 0.1, "rkhs_bound": B} | options))


def test_a_trial_on_a_box_records_what_is_watched():
    trial = insured().ask()
    for wrong in ([[math.nan]], [[0.1, 0.2, 0.3]], ["all"], "all", 3, [], None):
        info = {key: value for key, value in trial.info.items() if key != "watched"}
        info |= {} if wrong is None else {"watched": wrong}
        with pytest.raises(ValueError, match=r"watched in the info|info of trial 0 must be what"):
            insured().replay([Asked(Trial(0, trial.x, None, info))])


def line():
    return FiniteSet(torch.linspace(0, 1, 5, dtype=torch.float64).unsqueeze(-1))


def test_certificates_end_with_the_horizon():
    strategy = safe(line(), certificates=True, horizon=3)
    strategy.ask(3)
    with pytest.raises(HorizonReached):
        strategy.ask()
