"""Masters: what a base sees is what it would see alone; and one instance for each context."""

import warnings

import pytest
import torch

from botorch_ext import Box, CandidateModels, FiniteSet, KernelGP, algorithms, exceptions
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.strategies import (
    Asked,
    ContextwiseStrategy,
    MasterStrategy,
    OptimisticStrategy,
    RandomSearch,
    Told,
    Trial,
)
from botorch_ext.testing.states import state
from tests.helpers import rbf
from tests.strategies import sessions
from tests.strategies.sessions import box, f, finite, make


class InTurn(MasterStrategy):
    """Its bases play in turn, each ``length`` times."""

    def __init__(self, bases, length=1, **options):
        super().__init__(bases, **options)
        self.length = length

    def _choose(self, choices, given):
        return (len(self.history.trials) + sum(given)) // self.length % len(self.bases)


def of_lengthscales():
    """HE-GP-UCB whose models are rejected by large observations."""
    scales = [0.3, 0.8, 2.5, 6.0]
    models = CandidateModels.lengthscales(
        rbf(1.0), scales, sessions.LAMBDA, means=sessions.level(0.7)
    )
    return algorithms.he_gp_ucb(finite(), models, rkhs_bound=0.25, noise_std=0.03, delta=0.1)


def contextual(domain, kernel=None, **more):
    kernel = rbf(0.9, 0.5, 0.8) if kernel is None else kernel
    return OptimisticStrategy(domain, KernelGP(kernel, sessions.LAMBDA), 2.0, **more)


@sessions.slow_on_a_box
def test_a_base_learns_from_its_own_trials_and_knows_of_no_others(domain):
    domain, own = domain(), {}
    bases, alone = ([make(domain, "censor", num_initial=3), make(domain, seed=6)] for _ in range(2))
    master = InTurn(bases, length=2)
    for kind, share, noise in sessions.script(70, seed=41):
        if kind.startswith("ask") or not master.pending:
            for trial in master.ask(3 if kind == "ask three" else 1):
                base = trial.info["base"]
                twin = alone[base].ask()
                own[trial.id] = base, twin.id
                assert base == trial.id // 2 % 2
                assert torch.equal(trial.x, twin.x)
                assert trial.info["decision"] == twin.info
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
    assert all(base.events == () for base in bases)  # those that were given stay as they are
    for base, twin, told in zip(master.bases, alone, master.report()["bases"], strict=True):
        assert state(base) == state(twin)
        assert (told["num_asked"], told["num_told"]) == (
            twin.history.num_asked,
            len(twin.history.values),
        )
        assert told["best"]["mean"] == twin.best()[1]
    x, mean = max((twin.best() for twin in alone), key=lambda pair: pair[1])
    assert torch.equal(master.best()[0], x) and master.best()[1] == mean


@sessions.both_domains
def test_bases_that_take_no_contexts_are_given_none(domain):
    domain = domain()
    master = InTurn([make(domain), contextual(domain, context_domain=1), RandomSearch(domain)])
    for step in range(9):
        trial = master.ask(context=[0.1 * step], actions=domain.sample(5, step))
        assert trial.info["action"] == trial.info["decision"]["action"]
        master.tell(trial.id, f(trial.x))
    for base in (0, 2):
        assert all(trial.context is None for trial in master.bases[base].history.trials)
    contexts = [trial.context.item() for trial in master.bases[1].history.trials]
    assert contexts == pytest.approx([0.1, 0.4, 0.7])
    answers = [master.bases[0].best(), master.bases[1].best(context=[0.2]), master.bases[2].best()]
    assert master.best(context=[0.2])[1] == max(mean for _, mean in answers)


def test_what_only_a_base_refuses_is_refused_before_anything_changes():
    spaces = (ContextSpace(tasks=((0, size),)) for size in (5, 3))
    master = InTurn([contextual(finite(), context_domain=space) for space in spaces])
    with pytest.raises(ValueError, match="from 0 to 2"):  # the second one would be refused
        master.ask(2, context=[4.0])
    assert master.events == ()
    master.ask(context=[4.0])
    assert master.ask(context=[2.0]).info["base"] == 1
    master = InTurn([RandomSearch(finite()), sessions.RowsInTurn(finite())])
    for strategy in (master, InTurn([master])):
        with pytest.raises(ValueError, match=r"actions must be None .*base 1: RowsInTurn"):
            strategy.ask(actions=finite().points[:3])
    master = InTurn([of_lengthscales(), RandomSearch(finite())])
    master.ask(3)
    before, x = state(master), finite().points[1]
    # The right record is that of base 1; this one lacks what base 0 records.
    wrong = Asked(Trial(3, x, None, {"base": 0, "decision": {"index": 1}, "index": 1}))
    with pytest.raises(ValueError, match="info of trial 2 must") as error:
        master.replay([Told(0, 0.2), wrong])
    assert error.value.__notes__ == ["It is trial 2 of base 0, here 3."]
    assert state(master) == before


def test_a_base_that_waits_or_ends_makes_the_master_wait_or_end():
    def refused(master, num):
        with pytest.raises(exceptions.WaitingForObservations) as error:
            master.ask(num)
        return error.value.ids, error.value.available

    plainly = InTurn([RandomSearch(finite()), sessions.InRounds(finite(), size=2)])
    nested = InTurn([InTurn([RandomSearch(finite()), sessions.InRounds(finite(), size=2)])])
    for master in (plainly, nested):
        assert refused(master, 6) == ([], 5)
        master.ask(3)
        assert refused(master, 4) == ([1], 2)  # known by its id here
        master.ask(2)
        assert refused(master, None) == ([1, 3], 0)
        master.tell(1, 0.2)
        master.abandon(3)
        assert master.ask().id == 5
    assert refused(InTurn([sessions.Stuck(finite())]), None) == ([], 0)
    master = InTurn([RandomSearch(finite()), sessions.InRounds(finite(), size=9, horizon=2)])
    master.ask(4)
    with pytest.raises(exceptions.HorizonReached) as ends:
        master.ask(2)
    assert ends.value.horizon == 2
    assert master.ask().info["base"] == 0


def test_warnings_of_a_base_come_after_the_event():
    master, caught = InTurn([InTurn([of_lengthscales()])]), []
    while not caught:
        trial = master.ask()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            master.tell(trial.id, 50.0 * (-1) ** trial.id)
    assert [each.category for each in caught] == [exceptions.AllModelsRejectedWarning]
    (message,) = master.report()["warnings"]
    assert message.startswith("base 0: base 0: every model is rejected")
    large = sessions.scaled(rbf(0.9, 0.5, 0.8), 1.5)
    base = contextual(finite(), large, context_domain=ContextSpace())
    master = InTurn([RandomSearch(finite()), base], length=1)
    master.ask(context=[0.3])
    with pytest.warns(exceptions.KernelBoundWarning, match="got 1.5"):
        master.ask(context=[0.3])
    assert len(master.events) == 2
    (message,) = master.report()["warnings"]
    assert message.startswith("base 1: kernel must have")


def used():
    base = make(finite())
    base.ask()
    return base


@pytest.mark.parametrize(
    ("bases", "name"),
    [
        ([], "bases"),
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
    X = finite().points[:5]
    for hour in (2.0, 9.0, 15.0, 20.0):
        own = alone[int(hour // 6)]
        assert torch.equal(together.best(context=[hour])[0], own.best()[0])
        found, expected = together.predict(X, context=[hour]), own.predict(X)
        assert torch.equal(found.mean, expected.mean) and torch.equal(found.std, expected.std)
    assert together.best()[1] == max(base.best()[1] for base in alone)
    # What was measured elsewhere belongs to the base of its context.
    together.attach(X[0], 0.4, context=[13.0])
    alone[2].attach(X[0], 0.4)
    for own, twin in zip(together.bases, alone, strict=True):
        assert state(own) == state(twin)


def test_a_context_without_an_instance_changes_nothing():
    def by_quarter(key=by_hour):
        bases = [RandomSearch(finite(), seed=seed) for seed in range(4)]
        return ContextwiseStrategy(bases, key, context_domain=Box([[0.0], [30.0]]))

    strategy = by_quarter()
    strategy.tell(strategy.ask(context=[3.0]).id, 0.3)
    before = state(strategy)
    for call in (
        lambda: strategy.ask(context=[29.0]),
        lambda: strategy.best(context=[29.0]),
        lambda: by_quarter(lambda z: 0.5).ask(context=[1.0]),
    ):
        with pytest.raises(ValueError, match="key of the context must"):
            call()
    with pytest.raises(ValueError, match="context must be given"):
        strategy.predict(finite().points[:2])
    assert state(strategy) == before
    with pytest.raises(exceptions.NoObservationsError):
        strategy.best(context=[7.0])
    with pytest.raises(ValueError, match="context_domain must be given"):
        ContextwiseStrategy([RandomSearch(finite())], by_hour)
    inherited = ContextwiseStrategy([contextual(finite(), context_domain=1)], lambda z: 0)
    assert inherited.ask(context=[0.2]).context.tolist() == [0.2]
