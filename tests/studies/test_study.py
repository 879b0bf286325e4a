"""What a study keeps, shows and refuses: all of a call or nothing, in the sign of the user."""

import copy
import pickle
import sqlite3
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from unittest.mock import patch

import pytest
import sqlalchemy as sa
import torch
from gpytorch.kernels import RBFKernel, ScaleKernel
from torch.testing import assert_close

import botorch_ext as bx
from benchmarks.studies.forks import in_a_fork, wait_for
from benchmarks.studies.kills import lines
from benchmarks.studies.objectives import value_at
from botorch_ext.exceptions import (
    AnotherStrategyError,
    ForkedStudyError,
    StudyError,
    TableWarning,
    UnknownTrialError,
    UnreachableStudyError,
    VersionWarning,
)
from botorch_ext.page.overview import read_overview
from botorch_ext.strategies import RandomSearch
from botorch_ext.studies import description
from tests.studies.kept import BOX, POINTS, at_random, gp_bucb, kernel, on_a_set


def test_what_returned_is_on_disk(path):
    study, kept = bx.Study(path, at_random()), []
    for call, number in [
        (lambda: study.ask(2), 2),
        (lambda: study.tell(0, 0.5), 3),
        (lambda: study.abandon(1), 4),
        (lambda: study.attach([0.5, 2.5], 0.25), 5),
        (lambda: study.correct(0, 0.75), 6),
        (lambda: study.attach([{"x0": 0.1, "x1": 3.0, "value": v} for v in (1.0, 2.0)]), 8),
        (lambda: study.tell_all({trial.id: 0.1 for trial in study.ask(2)}), 12),
        (lambda: study.withdraw(2), 13),
        (lambda: study.note(2, "in another unit"), 14),
    ]:
        call()
        with closing(sqlite3.connect(path)) as other:
            rows = other.execute("SELECT body FROM botorch_ext_events ORDER BY number").fetchall()
        assert len(rows) == number and rows[: len(kept)] == kept
        kept = rows
    settings = ("synchronous", "journal_mode")
    for begun in (study._journal.reading, study._journal.writing):
        with begun() as connection:
            found = [connection.exec_driver_sql(f"PRAGMA {each}").scalar() for each in settings]
        assert found == [2, "wal"]  # 2 is FULL: fsync before a commit returns


class Counts(RandomSearch):
    """Counts its decisions and the events it takes in."""

    decided = absorbed = 0

    def _decide(self, choices):
        Counts.decided += 1
        return super()._decide(choices)

    def _absorb(self, event):
        Counts.absorbed += 1
        super()._absorb(event)


def test_opening_decides_nothing_and_takes_each_event_once(path):
    study = bx.Study(path, Counts(BOX))
    for value in (0.1, 40.0, 30.0):
        study.tell(study.ask(), value)
    study.correct(1, 0.4)
    study.tell(study.ask(), 0.6)
    study.correct(2, 0.3)
    study.correct(1, 0.5)
    Counts.decided = Counts.absorbed = 0
    again = bx.Study(path, Counts(BOX))
    assert (Counts.decided, Counts.absorbed) == (0, len(again.events) - 3)
    assert again.report() == study.report() and again.report()["corrected"] == [1, 2]


@pytest.mark.parametrize("minimize", [False, True])
def test_a_withdrawn_result_and_a_note_are_kept(path, minimize):
    study = bx.Study(path, gp_bucb(), minimize=minimize)
    rows = [{"x0": 0.1, "x1": 3.0, "value": 0.5}, {"x0": 0.4, "x1": 4.0, "value": 80.0}]
    study.attach(rows)
    asked = study.ask()
    study.withdraw(1)
    for id, text in ((1, "in another unit"), (0, "=1+1\n"), (asked, "dull"), (asked, "")):
        study.note(id, text)
    frame = study.to_pandas()
    assert frame["state"].tolist() == ["attached", "withdrawn", "pending"]
    assert frame["note"].tolist() == ["=1+1\n", "in another unit", ""]
    assert frame["value"].isna().tolist() == [False, True, True]
    assert study.best()[0].tolist() == [0.1, 3.0]
    again = bx.Study(path, gp_bucb())
    assert again.report() == study.report() and again.report()["withdrawn"] == [1]
    assert again.strategy.history.notes == {1: "in another unit", 0: "=1+1\n"}
    assert again.to_pandas().equals(frame)
    (trial,) = study.attach(rows[1:])  # it is no repeat of the withdrawn one
    assert trial.id == 3
    other = bx.Study(path, gp_bucb(), name="other", minimize=minimize)
    with pytest.warns(TableWarning):
        other.attach(frame)
    assert other.strategy.history.notes == {0: "=1+1"}


#: The numbers of records that have the units and the sign of the values.
SIGNED = {"mean", "mean_reward", "lower", "upper", "threshold", "best_observation"}
RIDGE = {"kernel": kernel(), "noise_variance": 0.01}
RECORDING = {
    "gp_ucb": ({"kernel": bx.Fitted(), "width": 2.0, "num_initial": 3}, {"mean"}),
    "bpe": (RIDGE | {"horizon": 8, "width": 1.0}, {"threshold"}),
    "insured_ucb": (RIDGE | {"rkhs_bound": 0.3, "noise_std": 0.1}, {"lower", "upper"}),
}


def by_name(tree, name="", found=None):
    """The numbers in a record by their names."""
    found = {} if found is None else found
    for key, part in tree.items() if isinstance(tree, dict) else ():
        by_name(part, key, found)
    for part in tree if isinstance(tree, list) else ():
        by_name(part, name, found)
    if isinstance(tree, int | float) and not isinstance(tree, bool):
        found.setdefault(name, []).append(tree)
    return found


@pytest.mark.parametrize("name", RECORDING)
def test_all_that_is_said_of_costs_is_the_mirror_of_what_is_said_of_gains(tmp_path, name):
    arguments, expected = RECORDING[name]
    seen, strategy = [], getattr(bx.algorithms, name)(POINTS, **arguments)
    for sign in (-1, 1):
        path = tmp_path / f"{sign}.db"
        study, asked, told = bx.Study(path, strategy, minimize=sign == 1), [], []
        for _ in range(6):
            asked.append(study.ask())
            told.append(sign * (40.0 + float(asked[-1].x.square().sum())))
            study.tell(asked[-1], told[-1])
        assert [event.value for event in study.events if hasattr(event, "value")] == told
        infos, overview = [trial.info for trial in asked], read_overview(path)
        assert [event.trial.info for event in study.events if hasattr(event, "trial")] == infos
        assert [story.info for story in overview.stories] == infos
        assert (
            overview.best.value == study.report()["best_observation"] == sign * min(map(abs, told))
        )
        seen.append(by_name([*infos, study.report(), {"mean": study.best()[1]}]))
    gains, costs = seen
    assert expected <= gains.keys() == costs.keys()
    for key, numbers in gains.items():
        mirrored = {"lower": "upper", "upper": "lower"}.get(key, key)
        sign = -1 if key in SIGNED else 1
        assert costs[mirrored] == [sign * number for number in numbers], key


def test_bases_of_a_master_that_minimises(path):
    bases = [on_a_set(), RandomSearch(POINTS)]
    master = bx.RegretBalancing(bases, [float, float], reward_range=(0.0, 6.0), minimize=True)
    study = bx.Study(path, master)
    assert study.minimize
    study.ask(2)
    study.tell(0, 5.0)
    with pytest.raises(ValueError, match=r"from 0.0 to 6.0, got 7.0 for trial 1"):
        study.tell(1, 7.0)
    own = study.report()["bases"][0]
    assert own["lower"] < own["mean_reward"] == 5.0 < own["upper"]


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"initial": (torch.zeros(1, 2).double(), torch.ones(1).double())}, "initial"),
        ({"mean": 3.0}, "model"),
        ({"pending": "censor", "minimum": -2.0}, "minimum"),
        (None, "reward_range"),
    ],
)
def test_costs_do_not_meet_values_that_are_maximised(path, values, named):
    strategy = bx.RegretBalancing([at_random()], [float], reward_range=(0.0, 1.0))
    if values is not None:
        numbers = {"noise_variance": 0.1, "width": 2.0} | values
        strategy = bx.algorithms.gp_ucb(bx.Box([(-1.0, 1.0), (0.0, 5.0)]), RBFKernel(), **numbers)
    with pytest.raises(ValueError, match=named):
        bx.Study(path, strategy, minimize=True)
    with pytest.raises(ValueError, match=named):
        bx.run(strategy, lambda x: float(x[0]), 2, minimize=True, progress=False)
    assert not path.exists()


def test_a_strategy_that_minimises_makes_a_study_that_does(path):
    X, Y = BOX.sample(3, seed=1), torch.tensor([4.0, 3.0, 6.0], dtype=torch.float64)
    numbers = {"noise_variance": 0.1, "width": 2.0, "mean": 5.0, "initial": (X, Y)}
    made = bx.algorithms.gp_ucb(BOX, RBFKernel(), minimize=True, **numbers)
    study = bx.Study(path, made)
    study.tell(study.ask(), 3.5)
    made.tell(made.ask(), 3.5)
    again = bx.Study(path)  # made again from its description
    assert study.minimize and again.minimize and again.strategy.minimize
    assert again.report()["best_observation"] == 3.0 and study.best()[1] == made.best()[1]
    assert again.events[0].trial.info == made.events[0].trial.info
    assert torch.equal(again.ask().x, made.ask().x)
    with pytest.raises(AnotherStrategyError, match="minimize is True in the study, got False"):
        bx.Study(path, bx.algorithms.gp_ucb(BOX, RBFKernel(), minimize=False, **numbers))
    with pytest.raises(ValueError, match="where the strategy is made, with its model and initial"):
        bx.Study(path, bx.algorithms.gp_ucb(BOX, RBFKernel(), **numbers))
    with pytest.raises(ValueError, match="minimize must be True"):
        bx.Study(
            path.with_name("other.db"),
            bx.algorithms.gp_ucb(BOX, RBFKernel(), minimize=True, **numbers),
            minimize=False,
        )


def test_predictions_of_a_study_are_in_the_sign_of_its_values(tmp_path):
    """One study maximises f, the other one minimises -f."""
    up, down = (
        bx.Study(tmp_path / f"{minimize}.db", gp_bucb(), minimize=minimize)
        for minimize in (False, True)
    )
    for x in BOX.sample(8, seed=3):
        up.attach(x, value_at(x))
        down.attach(x, -value_at(x))
    X, levels = BOX.sample(4, seed=6), (0.05, 0.5, 0.9)
    gains, costs = up.predict(X, levels=(0.1, 0.5, 0.95)), down.predict(X, levels=levels)
    assert costs.levels == levels
    assert_close(costs.mean, -gains.mean)
    assert_close(costs.std, gains.std)
    for name in ("quantiles", "observation_quantiles"):
        expected = -getattr(gains, name).flip(-1)
        assert_close(getattr(costs, name), expected, rtol=1e-9, atol=1e-9)
    assert_close(up.predict(X).mean, up.strategy.predict(X).mean)
    high, low = up.recommended(), down.recommended()
    assert_close(low.x, high.x)
    assert_close(low.prediction.mean, -high.prediction.mean)
    assert low.probability == pytest.approx(high.probability)
    assert low.shortfall == pytest.approx(high.shortfall) and high.shortfall >= 0
    assert down.expected_gain(2).gain == pytest.approx(up.expected_gain(2).gain)
    assert up.expected_gain(2).gain >= 0
    numbers = {"num_samples": 64}
    assert_close(down.importance(**numbers).total, up.importance(**numbers).total)
    x, mean = down.best()
    assert_close(float(down.predict(x).mean), mean)
    assert down.best_params() == dict(zip(("x0", "x1"), x.tolist(), strict=True))
    assert len(down.events) == 8  # nothing was asked


class FailsAtTheSecond(RandomSearch):
    """Memory ends at the second trial of the first batch."""

    calls = 0

    def _decide(self, choices):
        FailsAtTheSecond.calls += 1
        if FailsAtTheSecond.calls == 2:
            raise RuntimeError("out of memory")
        return super()._decide(choices)


def test_a_call_that_fails_half_way_is_undone(path):
    FailsAtTheSecond.calls = 0
    study = bx.Study(path, FailsAtTheSecond(BOX))
    with pytest.raises(RuntimeError, match="out of memory"):
        study.ask(3)
    assert study.pending == [] and [trial.id for trial in study.ask(3)] == [0, 1, 2]
    before = lines(study)
    rows = [{"x0": 0.1, "x1": 3.0, "value": 1.0}, {"x0": 0.1, "x1": "three", "value": 1.0}]
    for call in (
        lambda: study.tell_all({0: 1.0, 7: 2.0}),
        lambda: study.tell_all({0: 1.0, 1: float("nan")}),
        lambda: study.attach(rows),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()
        assert lines(study) == before == lines(bx.Study(path, FailsAtTheSecond(BOX)))


def test_what_is_refused_leaves_the_study_as_it_was(path):
    study = bx.Study(path, on_a_set(), minimize=True)
    trial = study.ask()
    study.tell(study.ask(), 5.0)
    before = lines(study)
    for call, error, message in [
        (lambda: study.tell(1, 4.0), UnknownTrialError, r"already told \(5.0\)"),
        (lambda: study.abandon(1), UnknownTrialError, "1"),
        (lambda: study.correct(0, 4.0), UnknownTrialError, "0"),
        (lambda: study.withdraw(0), UnknownTrialError, "0"),
        (lambda: study.note(9, "dull"), UnknownTrialError, "9"),
        (lambda: study.attach(POINTS.points[3], -float("inf")), ValueError, "got -inf"),
        (lambda: study.attach([0.5, 2.5], 1.0), ValueError, "one of the 40 points"),
        (lambda: study.attach(POINTS.points[3], 1.0, repeat=True), ValueError, "repeat"),
        (lambda: study.ask(0), ValueError, "num_trials"),
        (lambda: study.tell(bx.Trial(0, trial.x + 1, None, {}), 1.0), UnknownTrialError, "none of"),
        (lambda: bx.Study(path, study.strategy), ValueError, "strategy must"),
        (lambda: bx.Study(path, on_a_set(), name="\ud800"), ValueError, "name must"),
        (lambda: bx.Study(path, on_a_set(), objective=" "), ValueError, "objective must"),
        (lambda: copy.copy(study), StudyError, "cannot be copied or pickled"),
        (lambda: copy.deepcopy(study), StudyError, "cannot be copied or pickled"),
        (lambda: pickle.dumps(study), StudyError, "cannot be copied or pickled"),
    ]:
        with pytest.raises(error, match=message):
            call()
        assert lines(study) == before
    study.strategy.tell(0, 1.0)  # a copy
    assert lines(study) == before == lines(bx.Study(path, on_a_set()))


def test_a_call_whose_answer_is_lost_may_have_been_kept(path):
    study, alone = bx.Study(path, on_a_set()), on_a_set()
    for one in (study, alone):
        one.tell(one.ask(), 0.25)
    commit = sa.Connection.commit

    def answers_nobody(connection):
        commit(connection)
        raise sa.exc.OperationalError("COMMIT", {}, OSError("the server closed the connection"))

    with patch.object(sa.Connection, "commit", answers_nobody):
        for call in (study.ask, lambda: study.tell(1, 0.5)):
            with pytest.raises(UnreachableStudyError, match="the server closed the connection"):
                call()
    alone.tell(alone.ask(), 0.5)
    with pytest.raises(UnknownTrialError, match=r"already told \(0.5\)"):
        study.tell(1, 0.5)
    assert lines(study) == lines(alone)
    assert torch.equal(study.ask().x, alone.ask().x)


def test_warnings_that_are_errors_have_happened(path):
    loud = ScaleKernel(RBFKernel())
    loud.outputscale = 4.0

    def make():
        numbers = {"noise_variance": 0.01, "width": 2.0, "context_domain": bx.ContextSpace()}
        return bx.algorithms.gp_bucb(POINTS, loud, **numbers)

    study = bx.Study(path, make())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(bx.exceptions.KernelBoundWarning):
            study.ask(3, context=[0.5])
    assert study.pending == bx.Study(path, make()).pending == [0, 1, 2]


def test_a_call_inside_a_call_is_refused_and_the_outer_one_goes_on(path):
    study, decide = bx.Study(path, at_random()), RandomSearch._decide

    def decides(self, choices):  # as a mean function, or a signal handler meanwhile
        for call in (lambda: study.attach([0.5, 2.5], 0.25), lambda: study.pending):
            with pytest.raises(StudyError, match="from inside one of its own calls"):
                call()
        return decide(self, choices)

    with patch.object(RandomSearch, "_decide", decides):
        assert study.ask().id == 0
    assert len(study.events) == 1 and study.ask().id == 1


def test_the_objective_and_its_unit_are_those_the_study_was_begun_with(path):
    study = bx.Study(path, at_random(), objective="yield", unit="%")
    again = bx.Study(path, at_random())
    assert (again.objective, again.unit) == (study.objective, study.unit) == ("yield", "%")
    for other in ({"objective": "cost"}, {"unit": "g"}, {"minimize": True}):
        with pytest.raises(AnotherStrategyError, match=f"{next(iter(other))} is "):
            bx.Study(path, at_random(), **other)
    assert f"Study 'study' in '{path}'" in repr(study)
    bare = bx.Study(path, at_random(), name="bare")
    assert (bare.name, bare.objective, bare.unit) == ("bare", "value", None)


def test_another_version_is_a_warning(path):
    bx.Study(path, at_random())
    newer = description.versions() | {"torch": "99.0"}
    message = "torch is .* in the study, got '99.0'"
    with (
        patch.object(description, "versions", return_value=newer),
        pytest.warns(VersionWarning, match=message) as caught,
    ):
        bx.Study(path, at_random())
    assert caught[0].filename == __file__


def test_a_study_is_opened_by_its_place_alone_or_only_read(path):
    study = bx.Study(path, bx.algorithms.integrated_ei(BOX, seed=4), minimize=True)
    trial = study.ask()
    again, reader = bx.Study(path), bx.Study.only_read(path)
    assert again.minimize and again.pending == [0]
    assert torch.equal(again.strategy.ask().x, study.strategy.ask().x)
    again.tell(trial, 3.0)
    assert study.best()[1] == reader.best()[1] == 3.0
    with pytest.raises(StudyError):
        reader.ask()
    assert len(study.events) == 2
    for call in (lambda: bx.Study.only_read(path, "other"), lambda: bx.Study(path, name="other")):
        with pytest.raises(StudyError, match="holds no study 'other'"):
            call()


def test_threads_share_a_study(path):
    study = bx.Study(path, at_random())

    def work(_):
        for _ in range(4):
            trial = study.ask()
            study.tell(trial.id, value_at(trial.x))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    asked = [event.trial.id for event in study.events if hasattr(event, "trial")]
    assert asked == list(range(16)) and lines(bx.Study(path, at_random())) == lines(study)
    assert study.pending == []


@pytest.mark.slow
def test_a_forked_process_must_open_the_study_itself(path):
    study = bx.Study(path, at_random())
    study.ask()

    def in_the_child():
        for refused in (study.ask, lambda: study.tell(0, 1.0), lambda: study.pending):
            with pytest.raises(ForkedStudyError, match="open it again"):
                refused()
        assert bx.Study(path, at_random()).ask().id == 1

    wait_for(in_a_fork(in_the_child))
    study.tell(1, 0.5)
    assert study.pending == [0]
