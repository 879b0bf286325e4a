"""Commands that begin a study, ask with contexts, and open strategies that cannot be made again."""

import json
import re
import shlex
from pathlib import Path

import pytest

import botorch_ext as bx
from botorch_ext.strategies import RandomSearch
from tests.studies.commands import refused, rows_of, shown

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text(encoding="utf-8")
TIME = '[parameters.time]\ntype = "real"\nlow = 1\nhigh = 9\nunit = "s"\n'
SPACES = {
    "no TOML": ("parameters = {", "is no TOML in UTF-8"),
    "a name without quotes": (
        TIME.replace("time", "Äquivalente"),
        'put quotes around "Äquivalente"',
    ),
    "a blank in a name": ("[parameters]\nreaction time = 5\n", 'put quotes around "reaction time"'),
    "an unknown entry": ("minimise = true\n" + TIME, "got 'minimise'"),
    "no type": (
        "[parameters.time]\nlow = 1\nhigh = 9\n",
        "type of time must be one of real, integer",
    ),
    "another type": (TIME.replace("real", "float"), "choice, ordered, got 'float'"),
    "no end": (TIME.replace("high = 9\n", ""), "time: .*missing.*'high'"),
    "a misspelt end": (TIME.replace("high", "hihg"), "got 'hihg'; did you mean 'high'?"),
    "ends in the wrong order": (TIME.replace("9", "0"), "time: low must be at most high"),
    "a constraint of nothing": ('constraints = ["tiem <= 5"]\n' + TIME, "tiem"),
    "an unknown method": ('method = "integrated_ie"\n' + TIME, "did you mean 'integrated_ei'?"),
    "an unknown argument": (TIME + "[arguments]\nsead = 4\n", "sead"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("mistake", SPACES)
def test_spaces_that_are_none(folder, capsys, mistake):
    text, message = SPACES[mistake]
    (folder / "space.toml").write_text(text, encoding="utf-8")
    said = refused(capsys, "new", "lab.db", "space.toml")
    assert all(part in said for part in message.split(".*"))
    assert not (folder / "lab.db").exists()


def test_files_that_are_there_or_not(folder, capsys):
    (folder / "space.toml").write_text(TIME, encoding="utf-8")
    assert "no.toml: No such file" in refused(capsys, "new", "lab.db", "no.toml")
    shown(capsys, "new", "lab.db", "space.toml")
    content = (folder / "lab.db").read_bytes()
    assert "lab.db is there already" in refused(capsys, "new", "lab.db", "space.toml")
    assert (folder / "lab.db").read_bytes() == content


def test_a_study_of_a_method_with_arguments(folder, capsys):
    space = {
        "parameters": {
            "time": {"type": "real", "low": 1, "high": 9, "log": True},
            "dose": {"type": "integer", "low": 1, "high": 5},
            "size": {"type": "ordered", "values": ["S", "M", "L"]},
            "kind": {"type": "choice", "values": ["a", "b"], "descriptors": [[0], [1]]},
        },
        "constraints": ["time + dose <= 12"],
        "method": "integrated_ei",
        "arguments": {"seed": 7, "num_initial": 3},
    }
    (folder / "space.json").write_text(json.dumps(space), encoding="utf-8")
    said = shown(capsys, "new", "lab.db", "space.json", "--minimize", "--objective", "cost")
    assert "smallest cost" in said
    study = bx.Study("lab.db")
    assert study.minimize and study.objective == "cost" and study.strategy.seed == 7
    assert study.strategy.domain.names == ("time", "dose", "size", "kind")
    assert study.strategy.report()["num_initial"] == 3
    sheet = shown(capsys, "ask", "lab.db", "-n", "2", "--decimal-comma")
    assert sheet.splitlines()[0] == "trial;time;dose;size;kind;cost"
    assert sheet == shown(capsys, "ask", "lab.db", "--pending", "--decimal-comma")


def test_contexts_on_the_line(capsys):
    strategy = RandomSearch(bx.Box([(0, 1)]), context_domain=bx.Space(humidity=bx.Real(0, 1)))
    bx.Study("lab.db", strategy)
    sheet = shown(capsys, "ask", "lab.db", "--context", "humidity=0.25")
    assert sheet.splitlines()[0] == "trial,x0,humidity,value" and ",0.25," in sheet
    for given, message in (
        ([], "context must be given for RandomSearch"),
        (["--context", "humidty=1"], "did you mean 'humidity'?"),
        (["--context", "humidity=wet"], "humidity must be a number, got 'wet'"),
        (["--context", "humidity=2"], "humidity must be a number from 0 to 1"),
        (["--context", "humidity=0", "--context", "x0=1"], "x0 is no context"),
        (["--context", "humidity=0", "--context", "foo=1"], "foo is no context"),
        (["--context", "humidity=0", "--context", "humidity=1"], "humidity is there twice"),
    ):
        assert message in refused(capsys, "ask", "lab.db", *given)


@pytest.mark.parametrize(
    ("typed", "value"),
    [("7.1", 7.1), ("-1e-2", -0.01), ("-1,5E3", -1500.0), ("-,5", -0.5), ("-7", -7.0)],
)
def test_values_on_the_line_are_written_as_people_write_them(capsys, typed, value):
    study = bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])))
    study.tell(study.ask(), 1.0)
    assert shown(capsys, "correct", "lab.db", "0", typed) == f"corrected trial 0 to {value}\n"
    assert study.strategy.history.values == {0: value}


def test_several_studies_in_one_place(capsys):
    for name in ("first", "second"):
        bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])), name=name).ask()
    assert "say which by name" in refused(capsys, "abandon", "lab.db", "0")
    assert shown(capsys, "abandon", "lab.db", "0", "--name", "second") == "abandoned trial 0\n"
    assert bx.Study("lab.db", name="first").pending == [0]
    assert bx.Study("lab.db", name="second").pending == []


def test_a_sheet_is_never_written_over_a_file(folder, capsys):
    study = bx.Study("lab.db", RandomSearch(bx.Box([(0, 1)])))
    said = shown(capsys, "ask", "lab.db", "-n", "2", "--csv", "new.csv")
    assert said == "wrote new.csv with 2 trials: 0, 1\n"
    said = shown(capsys, "ask", "lab.db", "--pending", "--csv", "again.csv")
    assert said == "wrote again.csv with 2 trials: 0, 1\n"
    assert (folder / "new.csv").read_bytes() == (folder / "again.csv").read_bytes()
    (folder / "to_do.csv").write_text("filled in")
    assert "may be filled in: name another file" in refused(
        capsys, "ask", "lab.db", "--csv", "to_do.csv"
    )
    assert (folder / "to_do.csv").read_text() == "filled in" and study.pending == [0, 1]


def words_and_numbers(text):
    number = r"-?\d+(?:\.\d+)?"
    return re.sub(number, "#", text), [float(each) for each in re.findall(number, text)]


@pytest.mark.slow
def test_the_page_is_followed_in_an_empty_folder(folder, capsys):
    files = iter(["old.csv", "to_do.csv", "to_do.csv", "points.csv"])
    asked = None
    walk = PAGE[PAGE.index("Describe the parameters") : PAGE.index("### More entries")]
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```$", walk, re.DOTALL | re.MULTILINE):
        if kind == "toml":
            (folder / "space.toml").write_text(block, encoding="utf-8")
        elif kind == "none":
            file = folder / next(files)
            if asked is None and file.exists():
                asked = file.read_text(encoding="utf-8-sig")
                assert asked.splitlines() == block.splitlines()
            file.write_text(block, encoding="utf-8")
        elif kind == "sh":
            said = "".join(shown(capsys, *shlex.split(line)[1:]) for line in block.splitlines())
        else:
            said = re.sub(r"(Space\(temperature=[^)]*\)).*", r"\1, ...)", said)
            words, numbers = words_and_numbers(said)
            shown_words, rounded = words_and_numbers(block)
            assert words.split() == shown_words.split()
            assert numbers == pytest.approx(rounded, rel=0.02)
    assert next(files, None) is None
    rows = rows_of((folder / "all.csv").read_text(encoding="utf-8-sig"))
    states = ["attached", "attached", "told", "told", "pending", "failed"]
    assert [row["state"] for row in rows] == states


def test_the_entries_of_the_page(folder, capsys):
    parameters, entries = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1:]
    more = TIME.replace("time", '"reaction time"') + (
        TIME.replace("time", "temperature")
        + '[parameters]\ncatalyst = { type = "choice", values = ["none", "Pd", "Ni"] }\n'
        + 'loading = { type = "real", low = 1, high = 9 }\n'
    )
    (folder / "space.toml").write_text(f"{entries}{more}{parameters}", encoding="utf-8")
    shown(capsys, "new", "other.db", "space.toml")
    strategy = bx.Study("other.db").strategy
    assert strategy.domain.named_conditions == {"loading": ("catalyst", ["Pd", "Ni"])}
    assert bx.Fitted() in strategy.arguments.given.values()
    kinds = [type(strategy.domain.parameters[name]).__name__ for name in ("size", "solvent")]
    assert kinds == ["Ordered", "Choice"]
    assert len(strategy.domain.parameters["solvent"].descriptors) == 3
