"""The harness of the practice benchmark: pairs, schedules, rows that survive a kill, claims."""

import json
import math
import statistics

import numpy as np
import pytest
import torch

pytest.importorskip("optuna")

import botorch_ext as bx
from benchmarks.common.processes import as_they_finish, in_processes
from benchmarks.common.remaining import Remaining
from benchmarks.common.store import Store
from benchmarks.practice import methods, runs
from benchmarks.practice.__main__ import main
from benchmarks.practice.claims import CLAIMS, claim_rows
from benchmarks.practice.differences import Pair, estimate, paired
from benchmarks.practice.methods import METHODS, OURS, RANDOM, REFERENCE, Method
from benchmarks.practice.problems import FURTHER, TUNED, problems, scale_of
from benchmarks.practice.ranks import ranks, scores
from benchmarks.practice.report import report
from benchmarks.practice.runs import Case, attempt, cases, play
from benchmarks.practice.settings import (
    PRIMARY,
    SETTINGS,
    Setting,
    fails_at,
    num_initial,
    observations,
    schedule,
)
from botorch_ext.delays import Poisson


class Watched:
    """Random search that keeps what it was told."""

    def __init__(self, start):
        self.X, self.values, self.abandoned = list(start.initial), {}, []
        self._initial, self._box = start.initial, start.box
        self._generator = torch.Generator().manual_seed(start.seed)
        self._asked = 0

    def ask(self):
        self._asked += 1
        if self._asked > len(self._initial):
            share = torch.rand(self._box.shape[1], generator=self._generator, dtype=torch.float64)
            self.X.append(torch.lerp(*self._box, share))
        return self.X[self._asked - 1]

    def tell(self, which, value):
        self.values[which] = value

    def abandon(self, which):
        self.abandoned.append(which)

    def evaluated(self):
        return self.X[min(self.values)]

    def recommended(self):
        return None


@pytest.fixture
def watched(monkeypatch):
    made = []

    def make(start):
        made.append(Watched(start))
        return made[-1]

    for name in (OURS, REFERENCE):
        monkeypatch.setitem(methods.METHODS, name, Method(make, "watched", "evaluated"))
    return made


# --- problems -------------------------------------------------------------------------------------


def test_problems_are_many_and_split_in_advance():
    assert len(problems()) >= 14
    assert set(TUNED) < set(SETTINGS[PRIMARY].names)
    assert not set(FURTHER) & set(SETTINGS[PRIMARY].names)
    assert set(FURTHER) < set(problems())
    dims = {problem.dim for problem in problems().values()}
    assert min(dims) == 2
    assert max(dims) == 20


@pytest.mark.parametrize("name", [n for n, p in problems().items() if p.optimal_value is not None])
def test_nothing_is_above_the_optimal_value(name):
    problem, scale = problems()[name], scale_of(name)
    lower, upper = problem.box
    generator = torch.Generator().manual_seed(1)
    share = torch.rand(2000, problem.dim, generator=generator, dtype=torch.float64)
    x = torch.lerp(lower, upper, share)
    assert float(problem.function(x).max()) <= scale.best + 1e-6 * scale.width
    assert scale.least + scale.width <= scale.best + 1e-6 * scale.width


def test_the_best_points_are_worth_the_optimal_values():
    at = {
        "Goldstein-Price": [0.0, -1.0],
        "Cosine8": [0.0] * 8,
        "Griewank5": [0.0] * 5,
        "Ackley10": [0.0] * 10,
        "Levy4": [1.0] * 4,
        "Hartmann4": [0.18739527, 0.19415153, 0.55791778, 0.26477962],
        "Beale": [3.0, 0.5],
        "Three-hump camel": [0.0, 0.0],
        "DropWave": [0.0, 0.0],
        "Schwefel2": [420.968746] * 2,
        "Alpine3": [0.0] * 3,
        "Powell4": [0.0] * 4,
        "Dixon-Price4": [2.0 ** -(1 - 2.0**-i) for i in range(4)],
        "Shekel4": [4.000747, 3.99951, 4.00075, 3.99951],
        "Zakharov5": [0.0] * 5,
        "Trid6": [6.0, 10.0, 12.0, 12.0, 10.0, 6.0],
    }
    for name, x in at.items():
        value = float(problems()[name].function(torch.tensor([x], dtype=torch.float64)))
        assert value == pytest.approx(scale_of(name).best, abs=1e-6 * scale_of(name).width)


@pytest.mark.parametrize(
    ("name", "x", "value"),
    [
        ("Schwefel2", [4.0, -9.0], 4 * math.sin(2) - 9 * math.sin(3) - 2 * 418.9828872724338),
        (
            "Alpine3",
            [1.0, -2.0, 3.0],
            -(math.sin(1) + 0.1) - (2 * math.sin(2) - 0.2) - 3 * math.sin(3) - 0.3,
        ),
        ("Zakharov5", [1.0, 0.0, -2.0, 0.0, 1.0], -6.0),
        ("Zakharov5", [0.0, 2.0, 0.0, 0.0, 0.0], -(4.0 + 4.0 + 16.0)),
        ("Trid6", [1.0, 2.0, 3.0, 0.0, 0.0, -1.0], -(0 + 1 + 4 + 1 + 1 + 4) + 2 + 6),
    ],
)
def test_functions_that_botorch_has_not_are_as_in_the_books(name, x, value):
    at = torch.tensor([x], dtype=torch.float64)
    assert float(problems()[name].function(at)) == pytest.approx(value, abs=1e-9)


def test_where_evaluations_fail_there_is_no_maximum():
    maxima = {
        "Branin": [[-math.pi, 12.275], [math.pi, 2.275], [9.42478, 2.475]],
        "Hartmann6": [[0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]],
        "Levy4": [[1.0] * 4],
        "Hartmann4": [[0.18739527, 0.19415153, 0.55791778, 0.26477962]],
        "Styblinski-Tang4": [[-2.903534] * 4],
        "Rosenbrock4": [[1.0] * 4],
    }
    setting = SETTINGS["failing"]
    assert set(maxima) == set(setting.names)
    for name, points in maxima.items():
        fails = fails_at(setting, problems()[name])
        assert not any(fails(torch.tensor(x, dtype=torch.float64)) for x in points)
        assert fails(problems()[name].box[1])


# --- settings -------------------------------------------------------------------------------------


def test_one_worker_is_told_before_it_is_asked():
    events = schedule(Setting(), 3, 5)
    assert events == [(kind, i) for i in range(3) for kind in ("ask", "tell")]
    assert num_initial(schedule(Setting(), 40, 5)) == 8


@pytest.mark.parametrize(("workers", "first"), [(4, 8), (16, 17)])
def test_workers_are_always_busy(workers, first):
    events = schedule(Setting(workers=workers), 60, 3)
    under_way = 0
    for kind, which in events[: events.index(("ask", 59)) + 1]:
        under_way += 1 if kind == "ask" else -1
        assert under_way <= workers
        assert kind == "ask" or under_way == workers - 1
        assert kind == "tell" or which < workers or under_way == workers
    assert sorted(i for kind, i in events if kind == "tell") == list(range(60))
    assert [i for kind, i in events if kind == "tell"] != list(range(60))  # out of order
    assert num_initial(events) == first


def test_late_results_come_as_late_as_simulate_says():
    seed, n = 11, 60
    events = schedule(SETTINGS["late"], n, seed)
    delays = Poisson(10.0).sample(n, np.random.default_rng(seed))
    asked = 0
    for kind, which in events:
        if kind == "ask":
            assert which == asked
            asked += 1
        elif asked < n:
            assert asked == which + delays[which] + 1  # told before this ask, counted from 0
    assert 8 < statistics.fmean(delays) < 12


def test_disturbances_are_what_they_are_called():
    scale = scale_of("Branin")
    plain = observations(Setting(), scale, 0.05, 50, 7)
    noise = [(plain(i, 3.0) - 3.0) / scale.width for i in range(50)]
    assert statistics.stdev(noise) == pytest.approx(0.05, rel=0.35)
    low = observations(Setting(outliers=0.03), scale, 0.05, 50, 7)
    shifts = [(low(i, 3.0) - plain(i, 3.0)) / scale.width for i in range(50)]
    outliers = [shift for shift in shifts if shift]
    assert len(outliers) == 2  # 3 % of 50, rounded up
    assert all(-3 <= shift <= -1 for shift in outliers)
    stepped = observations(Setting(levels=20), scale, 0.05, 50, 7)
    levels = [stepped(i, 3.0 * i) / (scale.width / 20) for i in range(50)]
    assert levels == pytest.approx([round(level) for level in levels])


# --- runs -----------------------------------------------------------------------------------------


def test_methods_of_a_cell_are_paired(watched):
    for method in (OURS, REFERENCE):
        play(Case("4 workers", "Levy4", 0.05, method, 3, smoke=True))
    ours, theirs = watched
    assert all(torch.equal(x, y) for x, y in zip(ours.X, theirs.X, strict=True))
    assert ours.values == theirs.values
    play(Case("4 workers", "Levy4", 0.005, OURS, 3, smoke=True))
    assert not torch.equal(ours.X[0], watched[-1].X[0])


def test_the_library_asks_the_same_first_points(watched):
    case = Case("sequential", "Levy4", 0.05, OURS, 3, smoke=True)
    play(case)
    loop, problem = watched[-1], problems()["Levy4"]
    initial = torch.stack(loop.X[:8])
    seed = runs.seed_of("method", case.setting, case.problem, case.noise, case.seed) % 2**31
    assert torch.equal(initial, bx.Box(problem.box).sample(8, seed))
    for name in ("random", "TPE", "qLogNEI, Matern"):
        made = METHODS[name].make(methods.Start(problem.box, initial, seed, True))
        for which, x in enumerate(initial):
            assert torch.allclose(made.ask(), x)
            made.tell(which, float(which))


def test_a_row_has_the_regret_of_what_was_recommended(watched):
    row = play(Case("sequential", "Branin", 0.05, OURS, 3, smoke=True))
    loop, scale = watched[-1], scale_of("Branin")
    values = [float(problems()["Branin"].function(x.unsqueeze(0))) for x in loop.X]
    assert row["told"] == [8, 9, 10]
    assert row["evaluated"] == pytest.approx([scale.best - values[0]] * 3, rel=1e-4)
    highest = max(loop.values, key=loop.values.__getitem__)
    assert row["observed"][-1] == pytest.approx(scale.best - values[highest], rel=1e-4)
    assert row["box"] == []
    assert len(row["seconds"]) == row["evaluations"] == 10


def test_failing_evaluations_are_abandoned_and_worth_nothing(watched):
    case = next(
        case
        for seed in range(20)
        for case in [Case("failing", "Branin", 0.005, OURS, seed, smoke=True)]
        if play(case)["failed"]
    )
    row, loop = play(case), watched[-1]
    assert len(loop.abandoned) == row["failed"]
    assert not set(loop.abandoned) & set(loop.values)
    record = runs._Record(
        problems()["Branin"], fails_at(SETTINGS["failing"], problems()["Branin"]), [], [], {}, {}
    )
    assert record.value_at(loop.X[loop.abandoned[0]]) == scale_of("Branin").least


def test_a_method_repeats_itself():
    case = Case("sequential", "Branin", 0.005, REFERENCE, 1, smoke=True)
    first, second = play(case), play(case)
    for name in ("evaluated", "box", "observed", "common"):
        assert first[name] == second[name]


def test_seeds_are_outermost():
    seeds = [case.seed for case in cases(list(SETTINGS), list(problems()), [OURS], [1000, 1001])]
    assert seeds == sorted(seeds)


# --- rows -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_started_again_it_does_only_what_is_missing(watched, tmp_path, capsys):
    argv = ["--smoke", "--only", OURS, "--output", str(tmp_path)]
    main(argv)
    assert len(watched) == 2  # two problems
    path = tmp_path / "runs" / f"{OURS}.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(lines[:-1]) + "\n" + lines[-1][:50])  # killed within a line
    main(argv)
    assert len(watched) == 3
    rows, stale = Store(path.parent).rows([_case_of(json.loads(lines[-1]))])
    assert len(rows) == 1
    assert stale == 0
    total = 2 * len(METHODS)
    assert f"{total - 2} of {total} runs are missing" in (tmp_path / "report.md").read_text()
    main(argv)
    assert len(watched) == 3


@pytest.mark.slow
def test_rows_of_other_settings_are_stale(watched, tmp_path, monkeypatch, capsys):
    argv = ["--smoke", "--only", OURS, "--output", str(tmp_path)]
    main(argv)
    monkeypatch.setitem(methods.METHODS, OURS, Method(METHODS[OURS].make, "changed", "evaluated"))
    main(argv)
    assert len(watched) == 4
    assert "2 rows are stale" in capsys.readouterr().err


def test_a_failing_run_ends_no_others(watched, tmp_path, monkeypatch, capsys):
    def broken(start):
        raise RuntimeError("broken method")

    monkeypatch.setitem(methods.METHODS, REFERENCE, Method(broken, "broken", "box"))
    with pytest.raises(SystemExit, match="2 runs failed"):
        main(["--smoke", "--only", REFERENCE, OURS, "--output", str(tmp_path)])
    assert len(watched) == 2
    assert "broken method" in capsys.readouterr().err
    assert not (tmp_path / "runs" / f"{REFERENCE}.jsonl").exists()


@pytest.mark.slow
def test_processes_send_rows_back():
    to_run = [Case("sequential", "Branin", noise, "TPE", 1, smoke=True) for noise in (0.005, 0.05)]
    found = dict(as_they_finish(attempt, to_run, processes=2))
    assert set(found) == set(to_run)
    in_order = in_processes(attempt, to_run, 2, "runs")
    for case, row in (*found.items(), *zip(to_run, in_order, strict=True)):
        assert row["digest"] == case.digest


def test_remaining_time_is_that_of_like_runs():
    def case(method, seed):
        return Case("sequential", "Branin", 0.005, method, seed)

    found = {case(REFERENCE, 0): {"wall": 10.0}}
    missing = [case(REFERENCE, 1), case(REFERENCE, 2), case(OURS, 0)]
    remaining = Remaining(found, missing, processes=2)
    assert remaining.seconds() == (10 + 10 + 10) / 2
    remaining.add(case(OURS, 0), 2.0)
    assert remaining.seconds() == (10 + 10) / 2


def _case_of(row):
    return Case(*(row[name] for name in runs.KEY), smoke=True)


# --- differences and claims -----------------------------------------------------------------------


def _row(method, problem, seed, log_regret, *, noise=0.005, setting="sequential"):
    row = {"setting": setting, "problem": problem, "noise": noise, "method": method, "seed": seed}
    regret = 10**log_regret
    return row | {"observed": [regret], "evaluated": [regret], "box": [regret], "common": regret}


def test_pairs_are_of_the_same_cell_and_seed():
    rows = [_row(OURS, "Branin", 0, -1.0), _row(OURS, "Branin", 1, -2.0)]
    rows += [_row(REFERENCE, "Branin", 1, -1.5), _row(REFERENCE, "Levy4", 0, -9.0)]
    (pair,) = paired(rows, OURS, REFERENCE, "box")
    assert (pair.problem, pair.seed) == ("Branin", 1)
    assert pair.value == pytest.approx(-0.5)


def test_users_of_each_method_get_what_it_recommends():
    rows = [_row(OURS, "Branin", 0, -1.0), _row(REFERENCE, "Branin", 0, -0.5)]
    rows[0] |= {"evaluated": [1.0]}
    rows[1] |= {"evaluated": [1e-3], "common": 1e-2, "box": []}
    (pair,) = paired(rows, OURS, REFERENCE, "own")  # the box argmax, the evaluated point
    assert pair.value == pytest.approx(2.0)
    assert not paired(rows, OURS, REFERENCE, "box")
    (pair,) = paired(rows, OURS, REFERENCE, "common")
    assert pair.value == pytest.approx(1.0)


def test_standard_errors_are_clustered_by_problem():
    values = {"Branin": [-1.0, -2.0, -3.0], "Levy4": [0.0, 1.0], "Ackley5": [3.0, 5.0]}
    pairs = [
        Pair("sequential", problem, 0.005, seed, value)
        for problem, few in values.items()
        for seed, value in enumerate(few)
    ]
    found = estimate(pairs)
    means = [-2.0, 0.5, 4.0]
    assert found.mean == pytest.approx(statistics.fmean(means))
    assert found.error == pytest.approx(statistics.stdev(means) / math.sqrt(3))
    assert found.error_of_runs == pytest.approx(math.sqrt(1.0 / 3 + 0.5 / 2 + 2.0 / 2) / 3)
    assert found.wins == pytest.approx(3.5 / 7)
    assert (found.problems, found.runs) == (3, 7)
    assert math.isnan(estimate(pairs[:1]).error_of_runs)
    assert math.isnan(estimate(pairs[:1]).error)


def test_the_error_of_runs_leaves_out_what_differs_between_noises():
    pairs = [
        Pair("sequential", "Branin", noise, s, 10 * noise) for noise in (0.0, 1.0) for s in (0, 1)
    ]
    assert estimate(pairs).error_of_runs == 0


@pytest.mark.parametrize(("gain", "holds"), [(-0.5, True), (-0.1, False), (0.3, False)])
def test_claims_hold_where_they_should(gain, holds):
    rows = []
    for number, problem in enumerate(SETTINGS[PRIMARY].names):
        for noise in (0.005, 0.05):
            for setting in ("sequential", "4 workers"):
                shift = 0.02 * (number % 3 - 1)
                same = {"noise": noise, "setting": setting}
                rows.append(_row(OURS, problem, 0, gain + shift, **same))
                rows.append(_row(REFERENCE, problem, 0, 0.0, **same))
    found = {row["claim"]: row["holds"] for row in claim_rows(rows, "box")}
    assert len(found) == len(CLAIMS)
    pooled = next(holds for claim, holds in found.items() if claim.startswith("pooled:"))
    assert pooled is holds
    late = next(holds for claim, holds in found.items() if claim.startswith("5 % noise:"))
    assert late is (gain < 0)


def test_a_mean_below_its_bound_that_is_unsure_does_not_hold():
    rows = []
    for number, problem in enumerate(SETTINGS[PRIMARY].names):
        rows.append(_row(OURS, problem, 0, -20.0 if number == 0 else 0.0))
        rows.append(_row(REFERENCE, problem, 0, 0.0))
    assert not any(row["holds"] for row in claim_rows(rows, "box"))


def test_all_problems_of_one_question_at_a_time_are_a_group_together():
    rows = []
    for problem, setting, gain in (
        ("Branin", "sequential", -1.0),
        ("Hartmann4", "sequential", -0.5),
        ("Beale", "further", 0.3),
        ("Hartmann4", "4 workers", 9.0),
    ):
        rows += [
            _row(method, problem, 0, value, setting=setting) | {"seconds": [1.0], "initial": 0}
            for method, value in ((OURS, gain), (REFERENCE, 0.0))
        ]
    lines = [line.split(" | ") for line in report(rows, 0).split("## Where")[0].splitlines()]
    found = {line[0]: line[1:4] for line in lines if "sequential and further" in line[0]}
    assert [value[:5] for value in found["| sequential and further, both noises"]] == [
        "3",
        "3",
        "-0.40",
    ]
    few = found["| sequential and further, 0.5% noise, only reported"]
    assert few[:2] == ["2", "2"] and few[2].startswith("-0.10 ")
    (ours,) = (line for line in lines if line[0] == f"| {OURS}")
    assert ours[1:3] == ["2", "2"] and ours[3].startswith("-0.75 ± 0.25 (-)")


def test_claims_without_runs_do_not_hold():
    assert not any(row["holds"] for row in claim_rows([], "own"))


def test_scores_are_multiples_of_random_search_with_the_same_seeds():
    of_cell = {RANDOM: {0: 0.0, 1: 2.0, 2: 5.0}, OURS: {0: -1.0, 1: 0.5}}
    assert scores(of_cell)[OURS] == pytest.approx(-0.25 - math.log10((1 + 100) / 2))


def test_a_cell_with_few_seeds_is_not_listed():
    rows = [
        _row(method, problem, seed, value) | {"seconds": [1.0], "initial": 0}
        for method, value in ((OURS, -1.0), (REFERENCE, 0.0))
        for problem, seeds in (("Branin", 3), ("Levy4", 2))
        for seed in range(seeds)
    ]
    assert "worse in 0 of 1 cells" in report(rows, 0)


def test_equal_methods_share_their_ranks():
    assert ranks({"a": -1.0, "b": 0.0, "c": 0.0}) == {"a": 1.0, "b": 2.5, "c": 2.5}
