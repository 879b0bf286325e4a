"""Masters: what a base strategy sees, and what the events of a master are."""

import warnings

import pytest
import torch
from gpytorch.kernels import ScaleKernel

from botorch_ext import Box, FiniteSet, KernelGP, algorithms
from botorch_ext.domains.contexts import ContextSpace
from botorch_ext.exceptions import (
    AllModelsRejectedWarning,
    HorizonReached,
    KernelBoundWarning,
    NoObservationsError,
    WaitingForObservations,
)
from botorch_ext.strategies import (
    Abandoned,
    Asked,
    OptimisticStrategy,
    RandomSearch,
    Told,
    Trial,
)
from tests.strategies.adaptive import model_sessions
from tests.strategies.masters.master_sessions import (
    MIXTURES,
    InTurn,
    contextual,
    joint_kernel,
    snapshot,
)
from tests.strategies.sessions import (
    LAMBDA,
    InRounds,
    RowsInTurn,
    Stuck,
    both_domains,
    box,
    data,
    f,
    finite,
    kernel,
    make,
    plain,
    play,
    script,
    slow_on_a_box,
)

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
                assert torch.equal(trial.x, twin.x)
                assert trial.info["decision"] == twin.info
                assert trial.info.get("index") == twin.info.get("index")
                assert trial.context is None
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
    for base, twin in zip(master.bases, alone, strict=True):
        assert snapshot(base) == snapshot(twin)
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
    given.ask(3)
    assert len(master.history.trials) == 3


@both_domains
def test_what_comes_next_is_shown_without_asking_it(domain):
    master = MIXTURES["nested"](domain())
    play(master, script(25, seed=42))
    before = snapshot(master)
    choices = master._checked_choices(None, None)
    preview = master.successor().next_trial(choices)
    assert snapshot(master) == before
    assert plain(Asked(master.ask())) == plain(Asked(preview))


# --- contexts and actions -------------------------------------------------------------------------


@both_domains
def test_bases_that_take_no_contexts_are_given_none(domain):
    domain = domain()
    master = InTurn([make(domain), contextual(domain, context_domain=1), RandomSearch(domain)])
    assert master.context_space is master.bases[1].context_space
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
    master.best()
    replayed = InTurn([make(domain), contextual(domain, context_domain=1), RandomSearch(domain)])
    replayed.replay(master.events)
    assert snapshot(replayed) == snapshot(master)
    before = snapshot(master)
    for context, message in [
        (None, "context must be given"),
        ([0.1, 0.2], "context must have"),
        ([float("nan")], "context must be finite"),
    ]:
        with pytest.raises(ValueError, match=message):
            master.ask(context=context)
    with pytest.raises(ValueError, match="context must be None for InTurn"):
        InTurn([make(domain)]).ask(context=[0.1])
    assert snapshot(master) == before


def test_a_context_that_only_a_base_refuses_is_refused_before_anything_changes():
    bases = [
        contextual(finite(), context_domain=ContextSpace(tasks=((0, size),))) for size in (5, 3)
    ]
    master = InTurn(bases)
    with pytest.raises(ValueError, match="from 0 to 2"):  # the second one would be refused
        master.ask(2, context=[4.0])
    assert master.events == ()
    master.ask(context=[4.0])
    before = snapshot(master)
    with pytest.raises(ValueError, match="whole number from 0 to 2, got"):
        master.ask(context=[4.0])
    assert snapshot(master) == before
    assert master.ask(context=[2.0]).info["base"] == 1


def test_actions_need_bases_that_take_them():
    master = InTurn([RandomSearch(finite()), RowsInTurn(finite())])
    message = "actions must be None for InTurn with base 1: RowsInTurn, whose actions never change"
    with pytest.raises(ValueError, match=message):
        master.ask(actions=finite().points[:3])
    with pytest.raises(ValueError, match="for InTurn with base 0: InTurn with base 1: RowsInTurn"):
        InTurn([master]).ask(actions=finite().points[:3])
    assert master.ask().id == 0


# --- waiting, ends --------------------------------------------------------------------------------


def test_a_base_that_waits_makes_the_master_wait():
    master = InTurn([RandomSearch(finite()), InRounds(finite(), size=2)])
    master.ask(3)
    before = snapshot(master)
    with pytest.raises(
        WaitingForObservations, match="num_trials must be at most 2, got 4"
    ) as waits:
        master.ask(4)  # to the second base: one that it has, and one for which it must wait
    assert waits.value.available == 2
    assert waits.value.ids == [1]  # known by its id here
    assert snapshot(master) == before
    with pytest.raises(WaitingForObservations, match="base 1, which must first be told of those"):
        InTurn([RandomSearch(finite()), InRounds(finite(), size=2)]).ask(6)
    nested = InTurn([InTurn([RandomSearch(finite()), InRounds(finite(), size=2)])])
    nested.ask(3)
    with pytest.raises(WaitingForObservations) as waits:
        nested.ask(4)
    assert (waits.value.available, waits.value.ids) == (2, [1])
    assert [trial.info["base"] for trial in master.ask(2)] == [1, 0]
    with pytest.raises(WaitingForObservations, match=r"base 1, .*told of the trials \[1, 3\]"):
        master.ask()
    master.tell(1, 0.2)
    master.abandon(3)
    assert master.ask().info["base"] == 1


def test_a_horizon_ends_the_master():
    master = InTurn([RandomSearch(finite()), InRounds(finite(), size=9, horizon=2)])
    master.ask(4)
    before = snapshot(master)
    with pytest.raises(HorizonReached, match="num_trials must be at most 1, got 2: base 1") as ends:
        master.ask(2)
    assert ends.value.horizon == 2
    assert snapshot(master) == before
    assert master.ask().info["base"] == 0
    with pytest.raises(HorizonReached, match="num_trials must be at most 0, got 1"):
        master.ask()
    with pytest.raises(WaitingForObservations):
        InTurn([Stuck(finite())]).ask()


def test_phased_elimination_is_a_base():
    def fresh():
        options = {"noise_variance": LAMBDA, "rkhs_bound": 1.5, "noise_std": 0.1, "seed": 2}
        phased = algorithms.phased_uncertainty_sampling(finite(), kernel(), horizon=15, **options)
        return InTurn([phased, make(finite())])

    master = fresh()
    for _ in range(30):
        trial = master.ask()
        master.tell(trial.id, f(trial.x))
    with pytest.raises(HorizonReached):
        master.ask()
    replayed = fresh()
    replayed.replay(master.events)
    assert snapshot(replayed) == snapshot(master)


# --- warnings -------------------------------------------------------------------------------------


def test_a_warning_of_a_base_comes_after_the_event():
    def fresh():
        return InTurn([InTurn([model_sessions.make("he_gp_ucb", finite(), name="lengthscales")])])

    def all_rejected(master):
        for step in range(60):
            trial = master.ask()
            master.tell(trial.id, 50.0 * (-1) ** step)

    master = fresh()
    with pytest.warns(AllModelsRejectedWarning, match="every model is rejected") as caught:
        all_rejected(master)
    assert len(caught) == 1
    (message,) = master.report()["warnings"]
    assert message.startswith("base 0: base 0: every model is rejected")
    strict = fresh()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(AllModelsRejectedWarning):
            all_rejected(strict)
    # It has happened in the base and in both masters alike.
    innermost = strict.bases[0].bases[0]
    assert len(innermost.events) == len(strict.events) == len(strict.bases[0].events)
    assert [plain(e) for e in strict.events] == [
        plain(e) for e in master.events[: len(strict.events)]
    ]


def test_a_warning_while_asking_comes_after_the_event():
    large = ScaleKernel(joint_kernel()).double()
    large.outputscale = torch.tensor(1.5, dtype=torch.float64)
    base = OptimisticStrategy(finite(), KernelGP(large, LAMBDA), 2.0, context_domain=ContextSpace())
    master = InTurn([base])
    with pytest.warns(KernelBoundWarning, match="got 1.5"):
        trial = master.ask(context=[0.3])
    assert trial.id == 0
    assert "got 1.5" in master.report()["warnings"][0]
    assert len(master.bases[0].events) == len(master.events) == 1


# --- events ---------------------------------------------------------------------------------------


def asked(id, x, base=0, decision=None, **info):
    info |= {"base": base, "decision": {} if decision is None else decision}
    return Asked(Trial(id, torch.tensor(x, dtype=torch.float64), None, info))


SECOND = [2.0, -2.7]  # row 1 of the set
NUMBERS = {"mean": 0.1, "std": 0.2, "width": 2.0, "offset": 0.0}
HE = {"index": 1, "model": 0, **NUMBERS, "told": NUMBERS}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (asked(3, SECOND, 2, {"index": 1}, index=1), "base in the info of trial 3 .* 2, got 2"),
        (asked(3, SECOND, -1, {"index": 1}, index=1), "base in the info of trial 3 .*got -1"),
        (asked(3, SECOND, True, {"index": 1}, index=1), "base in the info of trial 3 .*got True"),
        (asked(3, SECOND, None, {"index": 1}, index=1), "base in the info of trial 3 .*got None"),
        (asked(3, SECOND, 1, [1], index=1), "decision in the info of trial 3 must be a dict"),
        (asked(3, SECOND, 1, {"index": 2}, index=1), "x of trial 3 must be the point of its index"),
        (asked(3, SECOND, 1, {"index": 1}, index=2), "x of trial 3 must be the point of its index"),
        (
            asked(3, SECOND, 1, {}, index=1),
            "x of trial 3 must be the point of its index, got index None",
        ),
        (asked(3, SECOND, 0, {"index": 1}, index=1), "info of trial 2 must be a dict with"),
        (asked(3, SECOND, 0, {**HE, "model": 9}, index=1), "model .* must be one of 6"),
        (asked(2, SECOND, 0, HE, index=1), "id must be 3, the next one, got 2"),
        (Told(1, 0.1), "id must be one of the pending trials, got 1: already told"),
        (Abandoned(7), "id must be one of the pending trials, got 7: never asked"),
        (Told(2, float("nan")), "value must be finite, got nan for trial 2"),
    ],
)
def test_what_a_base_refuses_is_refused_as_a_whole(event, message):
    def fresh():
        return InTurn([model_sessions.make("he_gp_ucb", finite()), RandomSearch(finite())])

    master, twin = fresh(), fresh()
    for strategy in (master, twin):
        strategy.ask(3)
        strategy.tell(1, 0.3)
    before = snapshot(master)
    with pytest.raises(ValueError, match=message):
        master.replay([Told(0, 0.2), event])
    assert snapshot(master) == before
    for strategy in (master, twin):  # nor anything that does not show
        strategy.tell(0, 0.2)
        strategy.ask()
    assert snapshot(master) == snapshot(twin)


def test_an_error_of_a_base_says_where():
    master = InTurn([model_sessions.make("he_gp_ucb", finite()), RandomSearch(finite())])
    master.ask(2)
    with pytest.raises(ValueError, match="info of trial 1 must be a dict with") as error:
        master.replay([asked(2, SECOND, 0, {"index": 1}, index=1)])
    assert error.value.__notes__ == ["It is trial 1 of base 0, here 2."]


# --- making one -----------------------------------------------------------------------------------


def used():
    strategy = make(finite())
    strategy.ask()
    return strategy


@pytest.mark.parametrize(
    ("bases", "message"),
    [
        ([], "bases must be a sequence of at least one strategy, got"),
        (None, "bases must be a sequence of at least one strategy, got None"),
        (
            make(finite()),
            "bases must be a sequence of at least one strategy, got Opt",
        ),
        ([make(finite()), "GP-UCB"], "bases must be strategies, got a str at 1"),
        ([make(finite()), used()], "base 1 must have no trials, got 1"),
        ([make(finite()), make(box())], r"the domain of base 1 must be that of base 0, got Box\("),
        (
            [make(box()), make(Box([[2.0, -3.0], [5.0, -1.4]]))],
            "the domain of base 1 must be that of base 0",
        ),
        (
            [make(finite()), make(FiniteSet(finite().points[:-1]))],
            "the domain of base 1 must be that of base 0",
        ),
        (
            [make(finite()), RandomSearch(finite(dtype=torch.float32))],
            "the domain of base 1 must be torch.float64 on cpu, got torch.float32",
        ),
    ],
)
def test_impossible_bases_are_refused(bases, message):
    with pytest.raises(ValueError, match=message):
        InTurn(bases)


def test_warnings_from_before_the_study_are_in_the_report():
    large = ScaleKernel(kernel()).double()
    large.outputscale = torch.tensor(1.5, dtype=torch.float64)
    with pytest.warns(KernelBoundWarning, match="got 1.5"):
        base = OptimisticStrategy(finite(), KernelGP(large, LAMBDA), 2.0)
    (message,) = InTurn([RandomSearch(finite()), base]).report()["warnings"]
    assert message.startswith("base 1: kernel must have")


def test_equal_domains_need_not_be_one_object():
    master = InTurn([make(finite()), RandomSearch(FiniteSet(finite().points))])
    assert master.domain is master.bases[0].domain


def test_nothing_evaluated_has_no_best_point():
    master = InTurn([make(finite()), make(finite())])
    assert master.report()["best"] is None
    with pytest.raises(NoObservationsError, match="at least one evaluated point"):
        master.best()
    X, Y = data(finite(), 4)
    master = InTurn([make(finite()), make(finite(), initial=(X, Y))])
    assert master.best()[1] == master.bases[1].best()[1]
    assert master.report()["best_observation"] == float(Y.max())
