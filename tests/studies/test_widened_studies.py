"""Studies whose space is widened: files, other processes, tables and the command line."""

import shutil
from unittest.mock import patch

import pytest

import botorch_ext as bx
from botorch_ext import plain_events
from botorch_ext.exceptions import AnotherStrategyError, BrokenStudyError
from botorch_ext.page.overview import read_overview
from botorch_ext.strategies import Widened
from botorch_ext.studies.journal import Journal
from botorch_ext.testing.interrupting import lines_of
from botorch_ext.testing.states import state
from tests.studies.commands import refused, rows_of, shown, with_events

pytest.importorskip("sqlalchemy")

TEMPERATURE = bx.Real(20, 120, unit="°C", digits=1)
SOLVENT = bx.Choice(["water", "ethanol", "dmso"])
HOT = {"temperature": 110.5, "solvent": "dmso"}


def space(**parameters):
    old = {
        "temperature": bx.Real(20, 80, unit="°C", digits=1),
        "solvent": bx.Choice(["water", "ethanol"]),
    }
    return bx.Space(old | parameters)


def made():
    return bx.algorithms.integrated_ei(space(), bx.Particles(8), num_initial=3)


def begun(path, strategy=None, **options):
    study = bx.Study(path, strategy or made(), objective="yield", unit="%", **options)
    for trial in study.ask(3):
        study.tell(trial, trial.params["temperature"] / 2)
    study.attach({"temperature": 95.0, "solvent": "water"}, 43.0, outside=True)
    return study


@pytest.mark.parametrize("strategy", [made, lambda: None])
def test_another_process_sees_the_wider_space_at_its_next_call(path, strategy):
    study = begun(path)
    other = bx.Study(path, strategy())
    pending = study.ask(2)
    study.widen({"temperature": TEMPERATURE}, solvent=SOLVENT)
    assert other.pending == [trial.id for trial in pending]
    assert other.heads.parameters == {"temperature": TEMPERATURE, "solvent": SOLVENT}
    assert other.strategy.domain.parameters == study.strategy.domain.parameters
    assert other.strategy.history.outside == set() and other.best()[1] == study.best()[1]
    with pytest.raises(ValueError, match="parameters must have one that is wider"):
        other.widen(solvent=SOLVENT)
    (hot,) = other.attach([HOT | {"yield": 71.0}])
    assert "outside" not in hot.info and hot.params == HOT
    assert study.best_params() == HOT
    assert study.predict([HOT]).mean > 50
    assert study.importance(num_samples=64).names == ("temperature", "solvent")
    assert study.recommended().params["temperature"] > 95
    frame = study.to_pandas()
    assert frame["solvent"].tolist()[-1] == "dmso" and frame["state"].tolist()[4:] == [
        *["pending"] * 2,
        "attached",
    ]
    asked = other.ask()
    assert asked.params["temperature"] > 95
    for opened in (bx.Study(path, made()), bx.Study(path), bx.Study.only_read(path)):
        assert state(opened.strategy) == state(study.strategy)
        assert opened.to_pandas().equals(study.to_pandas())
    assert study.strategy.ask().params == bx.Study(path).ask().params


def test_a_study_that_is_opened_with_a_wider_space_says_how_it_is_widened(path):
    begun(path)
    wider = bx.algorithms.integrated_ei(
        space(temperature=TEMPERATURE), bx.Particles(8), num_initial=3
    )
    with pytest.raises(AnotherStrategyError, match=r"high is 80 .* got 120; study.widen widens"):
        bx.Study(path, wider)


def test_a_study_that_minimises_and_is_corrected_after_it_was_widened(path):
    study = begun(path, minimize=True)
    study.widen(solvent=SOLVENT)
    study.ask()
    study.correct(1, 3.0)
    study.withdraw(3)
    study.widen(temperature=TEMPERATURE)
    study.ask()
    study.correct(2, 4.0)
    again = bx.Study(path)
    assert state(again.strategy) == state(study.strategy)
    kinds = [type(event) for event in again.events]
    assert kinds.count(Widened) == 2
    assert again.strategy.ask().params == study.ask().params


def test_a_call_broken_off_anywhere_is_made_or_not(path, tmp_path):
    study = begun(path)
    num = len(study.events)
    study._journal.database.carry_over()

    def copied(name):
        if not (tmp_path / name).exists():
            shutil.copy(path, tmp_path / name)
        return bx.Study(tmp_path / name)

    def call(own):
        own.widen(temperature=TEMPERATURE)

    whole = copied("whole.db")
    total = lines_of(lambda: call(whole))
    for number in range(1, 6):
        own = copied(f"{number}.db")
        last = int(total * (number * 0.6180339887 % 1.0))
        assert lines_of(lambda: call(own), last) == last  # noqa: B023
        fresh = copied(f"{number}.db")
        assert len(fresh.events) in (num, num + 1)
        assert state(own.strategy) == state(fresh.strategy)
    with (
        patch.object(Journal, "append", side_effect=OSError("full")),
        pytest.raises(OSError, match="full"),
    ):
        call(study)
    assert len(study.events) == num and study.strategy.domain.parameters == space().parameters
    study.ask()


class Mug:
    """A value that no file can keep."""


def test_what_a_file_cannot_keep_is_refused_before_it_is_written(path):
    study = begun(path)
    before = study.events
    with pytest.raises(ValueError, match="parameters"):
        study.widen(solvent=bx.Choice(["water", "ethanol", Mug()]))
    with pytest.raises(ValueError, match=r"must be .* with further values at the end"):
        study.widen(solvent=bx.Choice(["ethanol", "water"]))
    assert len(study.events) == len(before)
    assert bx.Study(path).strategy.domain.parameters == space().parameters


def test_an_older_library_names_the_event_that_it_does_not_know(path, monkeypatch):
    begun(path).widen(solvent=SOLVENT)
    entries = {kind: own for kind, own in plain_events._ENTRIES.items() if kind != "widened"}
    monkeypatch.setattr(plain_events, "_ENTRIES", entries)
    with pytest.raises(BrokenStudyError, match="unknown kind 'widened'"):
        bx.Study(path)


def test_sheets_have_the_new_choice(path, tmp_path, capsys, empty_pictures):
    begun(path)
    sheet = tmp_path / "more.csv"
    sheet.write_text("temperature [°C],solvent,yield\n110.5,dmso,71\n")
    assert "solvent must be one of ['water', 'ethanol'], got 'dmso'" in refused(
        capsys, "attach", path, sheet
    )
    said = shown(capsys, "widen", path, "--high", "Temperature=120", "--add", "solvent=dmso")
    assert said == (
        "widened temperature to Real(20, 120, digits=1, unit='°C')\n"
        "widened solvent to Choice(['water', 'ethanol', 'dmso'])\n"
    )
    assert shown(capsys, "attach", path, sheet) == "attached 1 trial: 4\n"
    rows = rows_of(shown(capsys, "trials", path, "--csv"))
    assert [rows[-1][name] for name in ("trial", "temperature [°C]", "solvent")] == [
        "4",
        "110.5",
        "dmso",
    ]
    assert "best so far  71 %, trial 4 at temperature 110.5 °C, solvent dmso" in shown(
        capsys, "status", path
    )
    status = shown(capsys, "status", path)
    assert "widened      temperature Real(low=20, high=120, digits=1, unit=°C), solvent C" in status
    page = tmp_path / "page.html"
    shown(capsys, "report", path, "--without-model", "-o", page)
    text = page.read_text()
    assert "<h2>Wider space</h2>" in text and ">dmso</td>" in text
    overview = read_overview(path)
    assert [story.id for story in overview.eligible] == [0, 1, 2, 3, 4]
    ((_, first, parameters),) = overview.widened
    assert first == 4 and list(parameters) == ["temperature", "solvent"]
    out = shown(capsys, "ask", path)
    assert out.startswith("trial,temperature [°C],solvent,yield [%]")


def test_the_command_widens_numbers_and_refuses_by_name(path, capsys):
    own = space(
        rinses=bx.Integer(1, 3),
        vessel=bx.Choice([1, 2]),
        acid=bx.Choice({"a": 1, "b": 2}),
    )
    bx.Study(path, bx.algorithms.integrated_ei(own))
    shown(capsys, "widen", path, "--low", "rinses=0", "--high", "rinses=5", "--add", "vessel=3")
    shown(
        capsys, "widen", path, "--low=temperature=-10,5", "--add=solvent=a b=c", "--add=solvent=2"
    )
    found = bx.Study(path).strategy.domain.parameters
    assert found["rinses"] == bx.Integer(0, 5) and found["vessel"] == bx.Choice([1, 2, 3])
    assert found["temperature"].low == -10.5
    assert list(found["solvent"].values) == ["water", "ethanol", "a b=c", "2"]
    for arguments, message in (
        ([], "parameters must have one that is wider"),
        (["--high", "temperature=70"], "with a lower low or a higher high on the same steps"),
        (["--high", "temperature"], "temperature must be a number, got ''"),
        (["--high", "temperature=hot"], "temperature must be a number, got 'hot'"),
        (["--high", "temprature=90"], "--high must only have names of"),
        (["--high", "solvent=90"], "--high must name a range, got solvent"),
        (["--add", "temperature=90"], "--add must name a choice, got temperature"),
        (
            ["--add", "solvent=water"],
            "solvent cannot be widened by --add water: values must differ",
        ),
        (["--high", "rinses=7.5"], "rinses cannot be widened by --high 7.5: high must be a whole"),
        (["--add", "acid=c"], "acid has descriptors: widen it in Python, with study.widen"),
    ):
        assert message in refused(capsys, "widen", path, *arguments)
    assert len(bx.Study(path).events) == 2


def test_a_study_on_a_box_refuses_the_command(path, capsys):
    bx.Study(path, bx.strategies.RandomSearch(bx.Box([(0, 1)])))
    assert "--high must only have names of []" in refused(capsys, "widen", path, "--high", "x0=2")


ASKED = {"event": "asked", "id": 0, "x": [30.0, 0.0], "context": None, "info": {}}
WIDER = {"event": "widened", "id": 0, "parameters": {"dict": {}}, "inside": []}


@pytest.mark.parametrize(
    "bodies",
    [
        [WIDER | {"id": 1}],
        [WIDER | {"id": "0"}],
        [WIDER | {"parameters": []}],
        [WIDER | {"parameters": 3}],
        [WIDER | {"inside": [0]}],
        [WIDER | {"inside": [-1]}],
        [WIDER | {"inside": None}],
        [ASKED, WIDER],
    ],
)
def test_commands_refuse_widened_spaces_that_cannot_follow(path, capsys, bodies):
    with_events(path, bodies)
    assert "event" in refused(capsys, "trials", path)


@pytest.mark.parametrize(
    "parameters", [{}, {"dict": {}}, {"dict": {"solvent": 3}}, {"class": "os.X"}]
)
def test_events_of_strangers_are_broken_studies(path, parameters):
    study = bx.Study(path, made())
    with study._journal.writing() as connection:
        body = plain_events.to_json(WIDER | {"parameters": parameters})
        study._journal.append(connection, study._journal.start, [body])
    with pytest.raises(BrokenStudyError, match="event"):
        bx.Study(path, made())
    read_overview(path)  # reads events alone
