"""The benchmark of failures: its tasks, what its methods are told, and its tables."""

import math

import pytest

pytest.importorskip("optuna")
pytest.importorskip("ax")

from benchmarks.failures.methods import METHODS, OURS, PENDING
from benchmarks.failures.report import report
from benchmarks.failures.runs import Case, cases, play
from benchmarks.failures.tasks import TASKS, reference

# The best settings that were published, or that follow from the formula, and their losses.
BEST = {
    "Branin without a disc": ((-math.pi, 12.275), 0.397887),
    "Styblinski-Tang2 with a band around its optimum": ((-2.903534, -2.903534), -78.33233),
    "training that diverges": (("b", 10 ** (-1.2 - math.pi / 6), math.pi / 6, 0.3), -0.042),
    "a sum behind a sine": ((0.1954, 0.4044), 0.5998),
    "simulation 1 of Gardner": ((1.5 * math.pi, 0.0), -2.0),
    "Townsend in a heart": ((2.0052938, 1.1944509), -2.0239884),
    "pressure vessel": ((0.778169, 0.384649, 40.319619, 200.0), 5885.333),
    "Branin": ((math.pi, 2.275), 0.397887),
    "Hartmann3": ((0.114614, 0.555649, 0.852547), -3.86278),
}


@pytest.mark.parametrize("name", BEST)
def test_the_least_losses_are_those_that_were_published(name):
    task, (point, least) = TASKS[name], BEST[name]
    params = {p.name: value for p, value in zip(task.parameters, point, strict=True)}
    assert task.value(params) == pytest.approx(least, rel=1e-3)
    assert reference()[name]["least"] == pytest.approx(least, rel=1e-4)


def test_between_a_tenth_and_six_tenths_of_the_boxes_fail():
    shares = [reference()[name]["failing"] for name in TASKS]
    assert shares[-2:] == [0, 0] and all(0.1 < share < 0.6 for share in shares[:-2])
    assert [bool(task.source) for task in TASKS.values()] == [False] * 4 + [True] * 4 + [False] * 2


def test_regret_is_in_ranges():
    task, known = TASKS["Branin"], reference()["Branin"]
    assert task.regret([None, None]) == 1
    assert task.regret([None, known["greatest"], known["least"]]) == 1e-6
    middle = 0.5 * (known["greatest"] + known["least"])
    assert task.regret([middle, known["greatest"]]) == pytest.approx(0.5)


def test_methods_are_told_which_trials_fail():
    for name in (OURS, PENDING, "Ax", "GPSampler"):
        task = TASKS["Branin without a disc"]
        method = METHODS[name].make(task.parameters, 0, 9)
        method.tell(method.ask(), 1.0)
        method.ask()
        method.fail()
        method.tell(method.ask(), 2.0)
        match name:
            case "Ax":
                states = [trial.status.name for trial in method._client._experiment.trials.values()]
            case "GPSampler":
                states = [trial.state.name for trial in method._of_study._study.trials]
            case _:
                history = method._strategy.history
                assert history.values == {0: -1.0, 2: -2.0}
                states = ["", "FAILED" if 1 in history.failed else "RUNNING", ""]
        assert states[1] == {PENDING: "RUNNING", "GPSampler": "FAIL"}.get(name, "FAILED")


def test_a_run_has_a_row_and_a_report():
    rows = [play(Case(method, "Branin without a disc", 3, True)) for method in (OURS, "random")]
    assert [len(row["losses"]) for row in rows] == [12, 12]
    assert any(None in row["losses"] for row in rows)
    text = report(rows)
    assert "| Branin without a disc | own | 33% | " in text and "integrated_ei - random" in text
    wanted = list(cases(2, 0))
    assert len(set(wanted)) == len(wanted) == 2 * (8 * 5 + 2 * 2)
    assert [case.seed for case in wanted] == [100] * 44 + [101] * 44
