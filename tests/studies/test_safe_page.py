"""The page of a study loads nothing, believes nobody, and is made of large studies and without what
is not installed."""

import json
import random
import sys
import time

import pytest

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.studies import databases, journal
from tests.studies.kept import at_random, gp_bucb
from tests.studies.pages import HOSTILE, made, played, require_harmless


@pytest.fixture
def path(tmp_path):
    return tmp_path / "lab.db"


def test_hostile_text_is_shown_and_not_obeyed(path):
    names = [HOSTILE, r"$\frac{", "a & b"]
    description = {
        "versions": {HOSTILE: HOSTILE},
        "strategy": {
            "class": HOSTILE,
            HOSTILE: HOSTILE,
            "models": {"names": names, "models": []},
        },
    }
    bodies = []
    for id in range(4):
        info = {
            "model": id,
            "kind": f"{HOSTILE}{id % 2}",
            "phase": f"$\\frac{{{id % 2}",
            "refuted": [{"level": HOSTILE}],
            "level": id,
            "fit": {HOSTILE: HOSTILE},
            "opening": {"volume": HOSTILE},
        }
        record = {"event": "asked", "id": id, "x": [0.1 * id, 1.0], "context": None, "info": info}
        bodies += [json.dumps(record), f'{{"event":"told","id":{id},"value":1e300}}']
    new = journal.Journal.begin(databases.Database(path), HOSTILE, False, description)
    with new.writing() as connection:
        new.append(connection, new.start, bodies)
    text = made(path)
    parsed = require_harmless(text)
    assert "<script" not in text and "<img" not in text
    assert parsed.text.count("<script>alert('x')</script>") >= 5
    assert HOSTILE[:39] in parsed.text and r"$\frac{" in parsed.text


def test_without_matplotlib_the_page_says_what_to_install(path, monkeypatch):
    played(bx.Study(path, gp_bucb()), 5)
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    parsed = require_harmless(made(path))
    assert "pip install 'botorch-ext[plot]'" in parsed.text
    assert parsed.having("figure") == [] and len(parsed.table("trial", "state")) == 5


def test_without_jinja_the_command_says_what_to_install(path, monkeypatch, capsys):
    bx.Study(path, at_random()).ask()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert main(["report", str(path), "-o", str(path.with_suffix(".html"))]) == 2
    assert "pip install 'botorch-ext[studies]'" in capsys.readouterr().err
    assert not path.with_suffix(".html").exists()


def test_five_thousand_trials(path):
    number, rng, bodies = 5000, random.Random(0), []
    for id in range(number):
        info = {"model": id % 3, "mean": rng.random(), "std": rng.random()}
        x = [rng.uniform(-1, 1) for _ in range(6)]
        bodies.append(
            json.dumps({"event": "asked", "id": id, "x": x, "context": None, "info": info})
        )
        if id % 20:
            bodies.append(f'{{"event":"told","id":{id},"value":{rng.gauss(0, 1)!r}}}')
    new = journal.Journal.begin(databases.Database(path), "large", False, {})
    with new.writing() as connection:
        new.append(connection, new.start, bodies)
    started = time.process_time()
    text = made(path)
    assert time.process_time() - started < 30
    assert len(text) < 5_000_000
    parsed = require_harmless(text)
    assert [row[0] for row in parsed.table("trial", "state")] == [str(id) for id in range(number)]
    assert "open" not in parsed.having("details")[-1]
    assert "The oldest 50 of 250 are shown" in parsed.text
