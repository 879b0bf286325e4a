"""Masters: what a base sees, what is refused as a whole, and one instance for each context."""

import warnings

import pytest
import torch
from gpytorch.kernels import ScaleKernel
from gpytorch.means import ConstantMean

from botorch_ext import Box, CandidateModels, FiniteSet, KernelGP, algorithms
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import (
    AllModelsRejectedWarning,
    HorizonReached,
    KernelBoundWarning,
    NoObservationsError,
    WaitingForObservations,
)
from botorch_ext.strategies import (
    Asked,
    ContextwiseStrategy,
    MasterStrategy,
    OptimisticStrategy,
    RandomSearch,
    Trial,
)
from tests.helpers import rbf
from tests.strategies.sessions import (
    LAMBDA,
    InRounds,
    RowsInTurn,
    Stuck,
    both_domains,
    box,
    f,
    finite,
    kernel,
    make,
    plain,
    script,
    slow_on_a_box,
)


class InTurn(MasterStrategy):
    """Its bases play in turn, each ``length`` times."""

    def __init__(self, bases, length=1, **options):
        super().__init__(bases, **options)
        self.length = length

    def _choose(self, choices, given):
        return (len(self.history.trials) + sum(given)) // self.length % len(self.bases)


def of_lengthscales():
    """HE-GP-UCB whose models are rejected by large observations."""
    mean = ConstantMean().double()
    mean.initialize(constant=0.7)
    models = CandidateModels.lengthscales(rbf(1.0), [0.3, 0.8, 2.5, 6.0], LAMBDA, means=mean)
    return algorithms.he_gp_ucb(finite(), models, rkhs_bound=0.25, noise_std=0.03, delta=0.1)


def contextual(domain, kernel=None, **more):
    kernel = rbf(0.9, 0.5, 0.8) if kernel is None else kernel
    return OptimisticStrategy(domain, KernelGP(kernel, LAMBDA), 2.0, **more)


def snapshot(strategy):
    state = [[plain(event) for event in strategy.events], strategy.report(), strategy.warnings]
    return state + [snapshot(base) for base in getattr(strategy, "bases", [])]


# --- what a base sees -----------------------------------------------------------------------------


@slow_on_a_box
def test_a_base_learns_from_its_own_trials_and_knows_of_no_others(domain):
    domain = domain()
    master = InTurn([make(domain, "censor", num_initial=3), make(domain, seed=6)], length=2)
    alone = [make(domain, "censor", num_initial=3), make(domain, seed=6)]
    own = {}
    for kind, share, noise in script(70, seed=41):
        if kind.startswith("ask") or not master.pending:
            for trial in master.ask(3) if kind == "ask three" else [master.ask()]:
                base = trial.info["base"]
                twin = alone[base].ask()
                own[trial.id] = base, twin.id
                assert base == trial.id // 2 % 2
                assert torch.equal(trial.x, twin.x)
                assert trial.info["decision"] == twin.info
                assert trial.info.get("index") == twin.info.get("index")
            continue
        id = master.pending[int(share * len(master.pending))]
        base, twin_id = own[id]
        if kind == "tell":
            value = f(master.history.trials[id].x) + noise
            master.tell(id, value)
            alone[base].tell(twin_id, value)
        else:
            master.abandon(id)
            alone[base].abandon(twin_id)
    assert min(len(base.history.values) for base in alone) > 5
    for base, twin, told in zip(master.bases, alone, master.report()["bases"], strict=True):
        assert snapshot(base) == snapshot(twin)
        assert told["num_asked"] == twin.history.num_asked
        assert told["num_told"] == len(twin.history.values)
        assert told["best"]["mean"] == twin.best()[1]
    best = max((twin.best() for twin in alone), key=lambda pair: pair[1])
    assert master.best()[0].tolist() == best[0].tolist()
    assert master.best()[1] == best[1]


def test_the_given_strategies_stay_as_they_are():
    given = make(finite())
    master = InTurn([given, given])
    for value in (0.1, 0.3, -0.2):
        master.tell(master.ask().id, value)
    assert given.events == ()
    assert [len(base.history.trials) for base in master.bases] == [2, 1]


@both_domains
def test_bases_that_take_no_contexts_are_given_none(domain):
    domain = domain()
    master = InTurn([make(domain), contextual(domain, context_domain=1), RandomSearch(domain)])
    for step in range(9):
        trial = master.ask(context=[0.1 * step], actions=domain.sample(5, step))
        assert trial.context.tolist() == [0.1 * step]
        assert trial.info["action"] == trial.info["decision"]["action"]
        assert torch.equal(domain.sample(5, step)[trial.info["action"]], trial.x)
        master.tell(trial.id, f(trial.x))
    for base in (0, 2):
        assert all(trial.context is None for trial in master.bases[base].history.trials)
    contexts = [trial.context.item() for trial in master.bases[1].history.trials]
    assert contexts == pytest.approx([0.1, 0.4, 0.7])
    answers = [master.bases[0].best(), master.bases[1].best(context=[0.2]), master.bases[2].best()]
    assert master.best(context=[0.2])[1] == max(mean for _, mean in answers)
    before = snapshot(master)
    for context in (None, [0.1, 0.2], [float("nan")]):
        with pytest.raises(ValueError, match="context must"):
            master.ask(context=context)
    assert snapshot(master) == before
    with pytest.raises(ValueError, match="context must be None"):
        InTurn([make(domain)]).ask(context=[0.1])


def test_a_context_that_only_a_base_refuses_is_refused_before_anything_changes():
    spaces = (ContextSpace(tasks=((0, size),)) for size in (5, 3))
    master = InTurn([contextual(finite(), context_domain=space) for space in spaces])
    with pytest.raises(ValueError, match="from 0 to 2"):  # the second one would be refused
        master.ask(2, context=[4.0])
    assert master.events == ()
    master.ask(context=[4.0])
    assert master.ask(context=[2.0]).info["base"] == 1


def test_actions_need_bases_that_take_them():
    master = InTurn([RandomSearch(finite()), RowsInTurn(finite())])
    for strategy in (master, InTurn([master])):
        with pytest.raises(ValueError, match=r"actions must be None .*base 1: RowsInTurn"):
            strategy.ask(actions=finite().points[:3])


# --- waiting, ends, warnings ----------------------------------------------------------------------


def test_a_base_that_waits_makes_the_master_wait():
    def refused(master, num):
        with pytest.raises(WaitingForObservations) as error:
            master.ask(num)
        return error.value.ids, error.value.available

    plainly = InTurn([RandomSearch(finite()), InRounds(finite(), size=2)])
    nested = InTurn([InTurn([RandomSearch(finite()), InRounds(finite(), size=2)])])
    for master in (plainly, nested):
        assert refused(master, 6) == ([], 5)
        master.ask(3)
        assert refused(master, 4) == ([1], 2)  # known by its id here
        master.ask(2)
        assert refused(master, None) == ([1, 3], 0)
        master.tell(1, 0.2)
        master.abandon(3)
        assert master.ask().id == 5
    assert refused(InTurn([Stuck(finite())]), None) == ([], 0)


def test_a_horizon_ends_the_master():
    master = InTurn([RandomSearch(finite()), InRounds(finite(), size=9, horizon=2)])
    master.ask(4)
    with pytest.raises(HorizonReached) as ends:
        master.ask(2)
    assert ends.value.horizon == 2
    assert master.ask().info["base"] == 0
    with pytest.raises(HorizonReached):
        master.ask()


def test_warnings_of_a_base_come_after_the_event():
    inner = InTurn([of_lengthscales()])
    master = InTurn([inner])
    for step in range(60):
        trial = master.ask()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            master.tell(trial.id, 50.0 * (-1) ** step)
        if caught:
            break
    assert [each.category for each in caught] == [AllModelsRejectedWarning]
    (message,) = master.report()["warnings"]
    assert message.startswith("base 0: base 0: every model is rejected")
    large = ScaleKernel(rbf(0.9, 0.5, 0.8)).double()
    large.outputscale = torch.tensor(1.5, dtype=torch.float64)
    master = InTurn([contextual(finite(), large, context_domain=ContextSpace())])
    with pytest.warns(KernelBoundWarning, match="got 1.5"):
        master.ask(context=[0.3])
    assert len(master.bases[0].events) == len(master.events) == 1
    large = ScaleKernel(kernel()).double()
    large.outputscale = torch.tensor(1.5, dtype=torch.float64)
    with pytest.warns(KernelBoundWarning):
        base = OptimisticStrategy(finite(), KernelGP(large, LAMBDA), 2.0)
    (message,) = InTurn([RandomSearch(finite()), base]).report()["warnings"]
    assert message.startswith("base 1: kernel must have")


# --- what is refused ------------------------------------------------------------------------------


def asked(id, base, decision, x=(2.0, -2.7), **info):
    info |= {"base": base, "decision": decision}
    return Asked(Trial(id, torch.tensor(x, dtype=torch.float64), None, info))


ROW = {"index": 1}


def used():
    strategy = make(finite())
    strategy.ask()
    return strategy


@pytest.mark.parametrize(
    ("bases", "name"),
    [
        ([], "bases"),
        (None, "bases"),
        (make(finite()), "bases"),
        ([make(finite()), "GP-UCB"], "bases"),
        ([make(finite()), used()], "base 1"),
        ([make(finite()), make(box())], "the domain of base 1"),
        ([make(box()), make(Box([[2.0, -3.0], [5.0, -1.4]]))], "the domain of base 1"),
        ([make(finite()), make(FiniteSet(finite().points[:-1]))], "the domain of base 1"),
        ([make(finite()), RandomSearch(finite(dtype=torch.float32))], "the domain of base 1"),
    ],
)
def test_impossible_bases_are_refused(bases, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        InTurn(bases)


# --- one instance for each context ----------------------------------------------------------------


def by_hour(context):
    return int(context[0] // 6)


def test_each_context_has_its_own_instance():
    bases = [make(finite(), seed=seed) for seed in range(4)]
    together = ContextwiseStrategy(bases, by_hour, context_domain=Box([[0.0], [24.0]]))
    alone = [make(finite(), seed=seed) for seed in range(4)]
    for hour in (1.0, 13.5, 7.0, 2.0, 8.0, 23.0, 1.5, 14.0, 3.0):
        trial, twin = together.ask(context=[hour]), alone[int(hour // 6)].ask()
        assert trial.info["base"] == int(hour // 6)
        assert torch.equal(trial.x, twin.x)
        value = f(trial.x) + 0.01 * hour
        together.tell(trial.id, value)
        alone[int(hour // 6)].tell(twin.id, value)
    for own, twin in zip(together.bases, alone, strict=True):
        assert snapshot(own) == snapshot(twin)
    X = finite().points[:5]
    for hour in (2.0, 9.0, 15.0, 20.0):
        own = alone[int(hour // 6)]
        assert together.best(context=[hour])[0].tolist() == own.best()[0].tolist()
        found, expected = together.predict(X, context=[hour]), own.predict(X)
        assert torch.equal(found.mean, expected.mean) and torch.equal(found.std, expected.std)
    assert together.best()[1] == max(base.best()[1] for base in alone)
    # What was measured elsewhere belongs to the base of its context.
    together.attach(X[0], 0.4, context=[13.0])
    alone[2].attach(X[0], 0.4)
    own, twin = together.bases[2].report(), alone[2].report()
    assert own == twin and len(together.bases[2].history.attached) == 1


def by_quarter(key=by_hour, **options):
    bases = [RandomSearch(finite(), seed=seed) for seed in range(4)]
    return ContextwiseStrategy(bases, key, **{"context_domain": Box([[0.0], [30.0]]), **options})


def test_an_impossible_context_changes_nothing():
    strategy = by_quarter()
    strategy.tell(strategy.ask(context=[3.0]).id, 0.3)
    before = snapshot(strategy)
    for call, message in (
        (lambda: strategy.ask(), "context must be given"),
        (lambda: strategy.ask(context=[1.0, 2.0]), "context must"),
        (lambda: strategy.ask(context=[31.0]), "context must"),
        (lambda: strategy.ask(context=[29.0]), "key of the context must be one of 4"),
        (lambda: strategy.best(context=[29.0]), "key of the context must be one of 4"),
        (lambda: strategy.predict(finite().points[:2]), "context must be given"),
        (lambda: strategy.replay([asked(1, 0, ROW, **ROW)]), "context of trial 1 must"),
        (lambda: by_quarter(lambda z: 0.5).ask(context=[1.0]), "key of the context must"),
        (lambda: by_quarter(3), "key must be a function"),
        (lambda: by_quarter(context_domain=None), "context_domain must be given"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    assert snapshot(strategy) == before
    assert strategy.best(context=[2.0])[1] == 0.3
    with pytest.raises(NoObservationsError):
        strategy.best(context=[7.0])
    inherited = ContextwiseStrategy([contextual(finite(), context_domain=1)], lambda z: 0)
    assert inherited.ask(context=[0.2]).context.tolist() == [0.2]
