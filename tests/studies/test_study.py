"""A study on SQLite: what is kept, who sees it, and what is refused."""

import copy
import pickle
import threading
import warnings
from unittest.mock import patch

import pytest
import sqlalchemy as sa
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from benchmarks.studies.kills import lines
from benchmarks.studies.objectives import value_at
from botorch_ext.exceptions import (
    AnotherStrategyError,
    ForkedStudyError,
    StudyError,
    UnknownTrialError,
    UnreachableStudyError,
    VersionWarning,
)
from botorch_ext.reports.overview import read_overview
from botorch_ext.strategies import Asked, Corrected, Told
from botorch_ext.studies import description
from botorch_ext.studies.databases import Database
from botorch_ext.studies.description import describe
from botorch_ext.studies.journal import Journal
from tests.studies.kept import at_random, gp_bucb


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


def _played(study, number=6):
    for _ in range(number):
        a, b = study.ask(2)
        study.tell(b.id, value_at(b.x))
        if a.id % 4:
            study.tell(a.id, value_at(a.x))
        elif a.id % 8:
            study.abandon(a.id)
    return study


def test_a_study_that_is_opened_again_goes_on_bit_for_bit(path):
    study, alone = _played(bx.Study(path, gp_bucb())), _played(gp_bucb())
    assert [a.trial.x.tolist() for a in _asked(study)] == [
        a.trial.x.tolist() for a in _asked(alone)
    ]
    again = bx.Study(path, gp_bucb())
    assert lines(again) == lines(study)
    assert again.pending == study.pending == alone.pending != []
    assert again.report() == study.report()
    x, mean = again.best()
    assert torch.equal(x, alone.best()[0]) and mean == alone.best()[1]
    asked = again.ask()
    expected = alone.ask()
    assert torch.equal(asked.x, expected.x) and asked.info == expected.info
    assert torch.equal(study.strategy.history.trials[-1].x, expected.x)


def _asked(study):
    return [event for event in study.events if hasattr(event, "trial")]


def test_opening_optimises_nothing(path):
    _played(bx.Study(path, gp_bucb()))
    with patch.object(bx.OptimisticStrategy, "_decide", side_effect=AssertionError):
        study = bx.Study(path, gp_bucb())
        assert len(study.strategy.history.trials) == 12
        with pytest.raises(AssertionError):
            study.ask()


def test_two_studies_see_each_other(path):
    one, two = bx.Study(path, gp_bucb()), bx.Study(path, gp_bucb())
    first = one.ask()
    second = two.ask()
    assert second.id == 1 and not torch.equal(first.x, second.x)
    assert one.pending == two.pending == [0, 1]
    two.tell(0, 0.25)
    with pytest.raises(UnknownTrialError, match=r"already told \(0.25\)"):
        one.tell(0, 0.5)
    assert one.pending == [1] and lines(one) == lines(two)


def test_values_are_those_of_the_user(path):
    costs, gains = (
        bx.Study(path, gp_bucb(), name="costs", minimize=True),
        bx.Study(path, gp_bucb(), name="gains"),
    )
    for sign, study in ((-1.0, costs), (1.0, gains)):
        for trial in study.ask(5):
            study.tell(trial.id, sign * value_at(trial.x))
    again = bx.Study(path, gp_bucb(), name="costs")
    assert again.minimize and not gains.minimize
    assert torch.equal(again.ask().x, gains.ask().x)
    assert torch.equal(again.best()[0], gains.best()[0])
    assert again.best()[1] == -gains.best()[1]
    told = [event.value for event in again.events if hasattr(event, "value")]
    assert told == [-event.value for event in gains.events if hasattr(event, "value")]
    reports = again.report(), gains.report()
    assert reports[0]["name"] == "costs" and reports[0]["minimize"]
    assert reports[0]["best"]["mean"] == -reports[1]["best"]["mean"]
    assert reports[0]["best_observation"] == -reports[1]["best_observation"] == min(told)
    with pytest.raises(AnotherStrategyError, match="minimize is True in the study, got False"):
        bx.Study(path, gp_bucb(), name="costs", minimize=False)


def test_errors_of_a_study_that_minimises_quote_the_values_of_the_user(path):
    study = bx.Study(path, gp_bucb(), minimize=True)
    study.ask(2)
    study.tell(0, 5.0)
    for opened in (study, bx.Study(path, gp_bucb())):
        with pytest.raises(UnknownTrialError, match=r"already told \(5.0\)"):
            opened.tell(0, 4.0)
        for call in (opened.tell, opened.correct):
            id = 1 if call == opened.tell else 0
            with pytest.raises(ValueError, match=f"value must be finite, got inf for trial {id}"):
                call(id, float("inf"))
        with pytest.raises(ValueError, match="value must be finite, got -inf"):
            opened.attach([0.5, 2.5], -float("inf"))
    study.correct(0, 4.5)
    with pytest.raises(UnknownTrialError, match=r"already told \(4.5\)"):
        study.tell(0, 4.0)


def test_bases_of_a_study_that_minimises_are_reported_in_the_sign_of_the_user(path):
    bases = [gp_bucb(seed=0), at_random()]
    bounds = [lambda n: float(n), lambda n: float(n)]
    master = bx.RegretBalancing(bases, bounds, reward_range=(-6.0, 0.0))
    with pytest.raises(ValueError, match="with reward_range, which are in the sign of what it max"):
        bx.Study(path, master, minimize=True)
    Journal.begin(Database(path), "study", True, describe(master))  # as versions before did
    study = bx.Study(path, master)
    assert study.report()["best"] is study.report()["bases"][0]["best"] is None
    study.ask(2)
    study.tell(0, 5.0)
    with pytest.raises(ValueError, match=r"from 0.0 to 6.0, got 7.0 for trial 1"):
        study.tell(1, 7.0)
    report = study.report()
    means = [own["best"]["mean"] for own in report["bases"] if own["best"]]
    assert means == [report["best"]["mean"]]
    assert 0.0 < means[0] < 5.0
    own = report["bases"][0]
    assert own["lower"] < own["mean_reward"] == 5.0 < own["upper"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"initial": (torch.zeros(1, 2).double(), torch.ones(1).double())}, "initial"),
        ({"mean": 3.0}, "mean of model"),
        ({"pending": "censor", "minimum": -2.0}, "minimum"),
    ],
)
def test_costs_do_not_meet_values_that_are_maximised(path, values, named):
    """Whose sign is not that of the user."""
    strategy = bx.algorithms.gp_ucb(
        bx.Box([(-1.0, 1.0), (0.0, 5.0)]), RBFKernel(), noise_variance=0.1, width=2.0, **values
    )
    message = rf"strategy with {named}, which are .*: attach results of before to the study"
    with pytest.raises(ValueError, match=message):
        bx.Study(path, strategy, minimize=True)
    with pytest.raises(ValueError, match=message):
        bx.run(strategy, lambda x: float(x[0]), 2, minimize=True, progress=False)
    assert not path.exists()
    assert not bx.Study(path, strategy).minimize
    with pytest.raises(ValueError, match=message):
        bx.Study(path, strategy, name="another", minimize=True)


def test_what_is_seen_of_a_study_that_minimises_is_in_the_sign_of_its_values(path):
    """Costs near 40: asks, events, reports and tables say so, whatever the strategy sees."""
    box = bx.Box([(0.0, 1.0)])
    study = bx.Study(
        path, bx.algorithms.gp_ucb(box, bx.Fitted(), width=2.0, num_initial=4), minimize=True
    )
    for _ in range(9):
        (trial,) = study.ask(1)
        study.tell(trial, 40.0 + 0.1 * float((trial.x - 0.3).square().sum()))
    trial = study.ask()
    said = [trial.info["mean"], study.events[-1].trial.info["mean"], study.best()[1]]
    report = study.report()
    said += [report["best"]["mean"], report["best_observation"], report["fit"]["mean"]]
    overview = read_overview(path)
    said += [overview.scalars(overview.stories[-1])["mean"], overview.best.value]
    assert all(39.0 < value < 41.0 for value in said), said
    assert trial.info["fit"]["mean"] > 39.0
    assert study.strategy.history.trials[-1].info["mean"] == -trial.info["mean"]


def test_attached_results_and_failures_are_kept(path):
    study = bx.Study(path, gp_bucb(), minimize=True)
    study.abandon(study.ask(), failed=True)
    attached = study.attach([0.5, 2.5], 0.75)
    assert attached.id == 1
    again = bx.Study(path, gp_bucb())
    assert lines(again) == lines(study)
    assert again.strategy.history.values == {1: -0.75}
    assert again.strategy.history.failed == {0}
    alone = gp_bucb()
    alone.abandon(alone.ask().id, failed=True)
    alone.attach([0.5, 2.5], -0.75)
    assert torch.equal(again.ask().x, alone.ask().x)


def test_a_corrected_value_is_kept(path):
    study, alone = bx.Study(path, gp_bucb(), minimize=True), gp_bucb()
    for one, sign in ((study, 1.0), (alone, -1.0)):
        for trial in one.ask(4):
            one.tell(trial.id, sign * value_at(trial.x))
        one.attach([0.5, 2.5], sign * 17.0)
    other = bx.Study(path, gp_bucb())
    study.correct(2, 0.17)
    study.correct(4, 0.17)
    alone.correct(2, -0.17)
    alone.correct(4, -0.17)
    again = bx.Study(path, gp_bucb())
    for one in (study, other, again):
        assert one.strategy.history.values == alone.history.values
        assert lines(one) == lines(study)
    # Also where the study was opened before, and where one was not there at its beginning.
    again.correct(0, 0.5)
    alone.correct(0, -0.5)
    assert again.report()["corrected"] == [0, 2, 4]
    asked, expected = other.ask(), alone.ask()
    assert torch.equal(asked.x, expected.x)
    assert asked.info == expected.info | {"mean": -expected.info["mean"]}
    with pytest.raises(UnknownTrialError):
        study.correct(5, 0.5)


def test_opening_a_corrected_study_folds_each_event_once(path):
    study, folded = bx.Study(path, gp_bucb()), []
    for value in (0.1, 40.0, 30.0, 0.2):
        study.ask(2)
        study.tell(study.pending[0], value)
    study.correct(1, 0.4)
    study.ask()
    study.correct(2, 0.3)
    study.correct(1, 0.5)
    study.tell(study.ask(), 0.6)
    absorb = bx.OptimisticStrategy._absorb

    def counted(self, event):
        folded.append(event)
        absorb(self, event)

    with patch.object(bx.OptimisticStrategy, "_absorb", counted):
        again = bx.Study(path, gp_bucb())
    assert len(folded) == len(again.events) - 3
    assert lines(again) == lines(study)
    assert again.report() == study.report()
    asked, expected = again.strategy.clone().ask(), study.ask()
    assert torch.equal(asked.x, expected.x) and asked.info == expected.info


def test_an_event_that_cannot_be_is_found_before_a_correction():
    strategy, events = gp_bucb(), [Asked(at_random().ask()), Told(0, 1.0), Told(7, 1.0)]
    events[0].trial.info.update(gp_bucb().ask().info)
    with pytest.raises(UnknownTrialError, match="got 7: never asked"):
        strategy.follow([*events, Corrected(0, 0.5)])
    assert len(strategy.events) == 2
    with pytest.raises(UnknownTrialError, match="trials that have a value, got 1: never asked"):
        strategy.follow([Corrected(1, 0.5), Corrected(0, 0.5)])
    assert strategy.history.values == {0: 1.0}


def test_numbers_come_back_bit_for_bit_in_float32_and_with_contexts(path):
    def make():
        domain = bx.FiniteSet(torch.rand(9, 2, generator=torch.Generator().manual_seed(1)))
        contexts = bx.Box([[0.0], [1.0]], dtype=torch.float32)
        return bx.strategies.RandomSearch(domain, context_domain=contexts)

    study = bx.Study(path, make())
    for i in range(4):
        trial = study.ask(context=torch.tensor([1 / (i + 3)]))
        study.tell(trial, 0.1 * i)
    again = bx.Study(path, make()).strategy.history
    for mine, kept in zip(study.strategy.history.trials, again.trials, strict=True):
        assert kept.x.dtype == kept.context.dtype == torch.float32
        assert torch.equal(mine.x, kept.x) and torch.equal(mine.context, kept.context)
        assert mine.info == kept.info


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"lengthscale": 0.8}, r": kernel.base_kernel.lengthscale.values\[0\]\[0\] is 0.7"),
        ({"noise_variance": 0.02}, ": noise_variance is 0.01 in the study, got 0.02"),
        ({"width": 3.0}, "width is 2.0 in the study, got 3.0"),
        ({"seed": 4}, "seed is 0 in the study, got 4"),
        ({"inflate": True}, "inflate is False in the study, got True"),
        ({"initial": (torch.tensor([[0.0, 3.0]]).double(), torch.zeros(1).double())}, "initial is"),
        ({"mean": lambda X: X.sum(-1)}, ": mean is None in the study"),
    ],
)
def test_another_strategy_is_refused_with_the_argument_that_differs(path, other, message):
    bx.Study(path, gp_bucb()).ask()
    with pytest.raises(AnotherStrategyError, match=message):
        bx.Study(path, gp_bucb(**other))
    message = "class is 'OptimisticStrategy' in the study, got 'RandomSearch'$"
    with pytest.raises(AnotherStrategyError, match=message):
        bx.Study(path, at_random())
    assert bx.Study(path, gp_bucb()).pending == [0]


def test_another_version_is_a_warning(path):
    bx.Study(path, at_random())
    newer = description.versions() | {"torch": "99.0"}
    with patch.object(description, "versions", return_value=newer):
        message = "torch is .* in the study, got '99.0'"
        with pytest.warns(VersionWarning, match=message) as caught:
            bx.Study(path, at_random())
    assert caught[0].filename == __file__


def test_a_trial_of_another_study_is_refused(path):
    one = bx.Study(path, at_random(1), name="one")
    two = bx.Study(path, at_random(2), name="two")
    trial, _ = two.ask(2)
    with pytest.raises(UnknownTrialError, match="got 0: never asked"):
        one.tell(0, 1.0)
    one.ask()
    for refused in (lambda: one.tell(trial, 1.0), lambda: one.abandon(trial)):
        with pytest.raises(UnknownTrialError, match="which is none of this strategy or study"):
            refused()
    with pytest.raises(UnknownTrialError, match="got 1: never asked"):
        one.tell(1, 1.0)
    assert one.pending == [0] and two.pending == [0, 1]


def test_what_is_refused_leaves_the_study_as_it_was(path):
    study = bx.Study(path, gp_bucb())
    study.ask()
    before = lines(study)
    for value in (float("nan"), float("inf"), "0.5", None):
        with pytest.raises(ValueError, match="value must be"):
            study.tell(0, value)
    with pytest.raises(ValueError, match="num_trials"):
        study.ask(0)
    assert lines(study) == before == lines(bx.Study(path, gp_bucb()))
    with pytest.raises(ValueError, match="strategy must have no trials"):
        bx.Study(path, study.strategy)
    with pytest.raises(ValueError, match="strategy must be a Strategy, got a str"):
        bx.Study(path, "gp_ucb")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="name must be a text"):
        bx.Study(path, gp_bucb(), name="")
    for minimize in ("no", 0, 1.0):
        with pytest.raises(ValueError, match="minimize must be True, False or None, got"):
            bx.Study(path, gp_bucb(), minimize=minimize)  # type: ignore[arg-type]
    for duplicate in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(StudyError, match=r"study 'study' cannot be copied or pickled"):
            duplicate(study)


def test_what_others_do_to_the_strategy_is_forgotten(path):
    study = bx.Study(path, gp_bucb())
    study.ask()
    study.strategy.tell(0, 1.0)
    assert study.pending == [0]
    study.tell(0, 2.0)
    assert bx.Study(path, gp_bucb()).strategy.history.values == {0: 2.0}


def test_a_call_that_fails_half_way_is_undone(path):
    study = bx.Study(path, at_random())
    study.ask()
    decide, calls = type(study.strategy)._decide, []

    def fails_at_the_second(self, choices):
        calls.append(choices)
        if len(calls) == 2:
            raise RuntimeError("out of memory")
        return decide(self, choices)

    with patch.object(type(study.strategy), "_decide", fails_at_the_second):
        with pytest.raises(RuntimeError, match="out of memory"):
            study.ask(3)
        assert study.pending == [0]
        assert [trial.id for trial in study.ask(2)] == [1, 2]
    assert bx.Study(path, at_random()).pending == [0, 1, 2]


def test_a_call_whose_answer_is_lost_may_have_been_kept(path):
    study, alone = bx.Study(path, gp_bucb()), gp_bucb()
    for one in (study, alone):
        for trial in one.ask(2):
            one.tell(trial.id, value_at(trial.x))
    commit = sa.Connection.commit

    def answers_nobody(connection):
        commit(connection)
        raise sa.exc.OperationalError("COMMIT", {}, OSError("the server closed the connection"))

    with patch.object(sa.Connection, "commit", answers_nobody):
        with pytest.raises(UnreachableStudyError, match="the server closed the connection"):
            study.ask()
        with pytest.raises(UnreachableStudyError):
            study.tell(2, 0.5)
    trial = alone.ask()
    alone.tell(trial.id, 0.5)
    with pytest.raises(UnknownTrialError, match=r"already told \(0.5\)"):
        study.tell(2, 0.5)
    assert lines(study) == lines(alone)
    assert torch.equal(study.ask().x, alone.ask().x)


def test_warnings_that_are_errors_have_happened(path):
    def make():
        return bx.algorithms.gp_bucb(
            bx.Box([[0.0, 0.0], [1.0, 1.0]]),
            _loud(),
            noise_variance=0.01,
            width=2.0,
            context_domain=bx.ContextSpace(),
        )

    study = bx.Study(path, make())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bx.exceptions.KernelBoundWarning):
            study.ask(3, context=[0.5])
    assert study.pending == bx.Study(path, make()).pending == [0, 1, 2]


def test_of_several_warnings_made_errors_each_is_told():
    strategy = at_random()
    for text in ("one", "two", "three"):
        strategy._note(text, bx.exceptions.PriorScaleWarning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bx.exceptions.PriorScaleWarning, match="one") as caught:
            strategy.ask()
    assert caught.value.__notes__ == ["two", "three"]
    assert strategy.pending == [0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strategy.ask()


def _loud():
    import gpytorch

    kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    kernel.outputscale = 4.0
    return kernel


def test_threads_share_a_study(path):
    study, failed = bx.Study(path, at_random()), []

    def work():
        try:
            for _ in range(5):
                trial = study.ask()
                study.tell(trial.id, value_at(trial.x))
        except Exception as error:  # noqa: BLE001 - raised in the thread of the test
            failed.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [a.trial.id for a in _asked(study)] == list(range(30)) and study.pending == []


def test_a_forked_process_must_open_the_study_itself(path):
    study = bx.Study(path, gp_bucb())
    study.ask()

    def in_the_child():
        for refused in (study.ask, lambda: study.tell(0, 1.0), lambda: study.pending):
            with pytest.raises(ForkedStudyError, match="open it again"):
                refused()
        assert bx.Study(path, gp_bucb()).ask().id == 1

    wait_for(in_a_fork(in_the_child))
    study.tell(1, 0.5)
    assert study.pending == [0]
