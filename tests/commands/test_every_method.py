"""Studies of every method, begun in Python and continued by the command line alone."""

import csv
from contextlib import suppress

import pytest
import torch

import botorch_ext as bx
from benchmarks.studies import postgresql
from botorch_ext.command_line import main
from botorch_ext.exceptions import NoModelError, NoObservationsError, WaitingForObservations
from botorch_ext.testing.subjects import others
from tests.laws.registry import ENTRIES

# The first entry of each method, but for the one whose description has a function of the user.
ENTRY_OF = {entry.method: entry for entry in reversed(ENTRIES) if entry.method != "contextwise"}
ON_A_SERVER = ("gp_bucb", "integrated_ei")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("empty_pictures"),
    pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning"),
]


def named(context):
    """A context as the command line takes it."""
    values = [] if context is None else enumerate(context.tolist())
    return [part for j, value in values for part in ("--context", f"context{j}={value!r}")]


def filled(sheet, value, outcomes):
    """Fills in the result of the first trial of a sheet, and leaves the others empty."""
    with sheet.open(encoding="utf-8-sig", newline="") as file:
        heads, first, *others = csv.reader(file)
    for name, number in {"value": value, **outcomes}.items():
        first[heads.index(name)] = repr(number)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([heads, first, *others])


def play(entry, place, folder):
    """Begins a study, continues it by commands, and compares it with the strategy alone."""
    alone, study = entry.make(), bx.Study(place, entry.make())
    contexts = [entry.scenario.offer(step, 0).get("context") for step in range(3)]
    for context in contexts[:2]:
        with suppress(WaitingForObservations):
            study.ask(context=context)
            alone.ask(context=context)
    assert len(study.pending) == len(alone.pending)
    del study
    sheet = folder / "pending.csv"
    first = alone.pending[0]
    known = alone.history.trials[first]
    value = entry.value(known.x, known.context)
    outcomes = others(alone, value)
    assert main(["ask", place, "--pending", "--csv", str(sheet)]) == 0
    filled(sheet, value, outcomes)
    assert main(["tell", place, str(sheet)]) == 0
    alone.tell(first, value, outcomes)
    try:
        trial = alone.ask(context=contexts[2])
    except WaitingForObservations:
        assert main(["ask", place, *named(contexts[2])]) == 2
    else:
        assert main(["ask", place, *named(contexts[2])]) == 0
        again = bx.Study(place).strategy.history.trials
        assert torch.equal(again[trial.id].x, trial.x) and len(again) == trial.id + 1
    assert main(["status", place]) == 0
    page = folder / "page.html"
    assert main(["report", place, "--without-model", "-o", str(page)]) == 0
    assert "</html>" in page.read_text()
    context = contexts[0]
    try:
        alone.recommended(context=context)
    except (ValueError, NoModelError, NoObservationsError):
        assert main(["recommended", place, *named(context)]) == 2
    else:
        assert main(["recommended", place, *named(context)]) == 0


@pytest.mark.parametrize("method", ENTRY_OF)
def test_a_study_goes_on_by_commands_alone(method, tmp_path):
    play(ENTRY_OF[method], str(tmp_path / "lab.db"), tmp_path)


@pytest.mark.skipif(not postgresql.is_installed(), reason="no PostgreSQL server here")
def test_studies_on_postgresql_go_on_by_commands_alone(tmp_path):
    with postgresql.served() as server:
        for method in ON_A_SERVER:
            folder = tmp_path / method
            folder.mkdir()
            play(ENTRY_OF[method], server.new_database(), folder)
