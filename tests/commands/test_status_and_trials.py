"""The command line: what it shows of a study."""

import json

import botorch_ext as bx
from botorch_ext.reports.words import duration
from botorch_ext.studies import databases, journal
from tests.studies.commands import rows_of, shown, week
from tests.studies.kept import at_random, gp_bucb


def test_status_says_what_runs(path, clock, capsys):
    trials = week(path, clock, name="yeast")
    lines = shown(capsys, "status", path).splitlines()
    assert lines[0] == f"study 'yeast' in {path}"
    said = {line[2:15].strip(): line[15:].strip() for line in lines[1:]}
    assert said["strategy"] == "gp_bucb"
    assert said["looks for"] == "the largest value"
    assert said["began"] == "2026-11-18 11:06:40 UTC, 26 h ago"
    counts = "5 asked: 2 told, 1 pending, 1 failed, 1 abandoned; 1 attached; 1 corrected"
    assert said["trials"] == counts
    x = ", ".join(f"{part:.6g}" for part in trials[4].x.tolist())
    assert said["pending"] == f"trial 4 at ({x}), for 26 h"
    assert said["best so far"].startswith("0.71, trial 1 at (")
    assert said["last result"] == "0.333333, trial 0, 2026-11-18 13:06:40 UTC, 24 h ago"


def test_a_study_that_minimises_is_shown_in_its_own_sign(path, clock, capsys):
    week(path, clock, minimize=True)
    text = shown(capsys, "status", path)
    assert "the smallest value" in text and "best so far  -0.25, trial 5 at (0.5, 2.5)" in text
    study = bx.Study(path, gp_bucb())
    mean = study.ask().info["mean"]
    row = rows_of(shown(capsys, "trials", path, "--csv"))[-1]
    assert float(row["info_mean"]) == mean != 0.0
    assert abs(float(row["info_mean"]) - study.best()[1]) < 1.0


def test_all_studies_and_those_without_trials_are_shown(path, clock, capsys):
    week(path, clock, name="first")
    bx.Study(path, at_random(), name="second")
    both = shown(capsys, "status", path)
    assert both.index("study 'first'") < both.index("study 'second'")
    alone = shown(capsys, "status", path, "--name", "second")
    assert "first" not in alone and "none yet" in alone
    assert shown(capsys, "trials", path, "--name", "second").split()[:2] == ["trial", "state"]
    assert rows_of(shown(capsys, "trials", path, "--name", "second", "--csv")) == []


def test_the_table_of_trials_has_all_of_them(path, clock, capsys):
    week(path, clock)
    head, *lines = shown(capsys, "trials", path).splitlines()
    assert head.split()[:5] == ["trial", "state", "x0", "x1", "value"]
    told = ["told", "told", "failed", "abandoned", "pending", "attached"]
    assert [line.split()[:2] for line in lines] == [[str(i), state] for i, state in enumerate(told)]
    assert lines[1].endswith("2026-11-18 11:06:40  2026-11-18 11:06:40   71")
    assert len({len(line) for line in (head, lines[1])}) == 1


def test_csv_goes_to_a_file(path, clock, capsys, tmp_path):
    week(path, clock)
    text = shown(capsys, "trials", path, "--csv")
    assert shown(capsys, "trials", path, "--csv", "-o", tmp_path / "lab.csv") == ""
    assert (tmp_path / "lab.csv").read_bytes() == text.encode("utf-8-sig")


def test_durations_in_words():
    assert [duration(s) for s in (-1, 0.5, 61, 119, 120, 7199, 7200, 172_799, 172_800)] == [
        *("less than 1 s", "less than 1 s", "61 s", "119 s", "2 min", "119 min", "2 h", "47 h"),
        "2 days",
    ]


def test_text_of_others_computes_and_steers_nothing(path, capsys):
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\x1b[31m", "plain", "\ud800"]
    info = {f"={i}": formula for i, formula in enumerate(formulas)} | {"number": -1.5}
    body = {"event": "asked", "id": 0, "x": [-1.0], "context": None, "info": info}
    new = journal.Journal.begin(databases.Database(path), "=\x1b[2J", False, {})
    with new.writing() as connection:
        new.append(connection, new.start, [json.dumps(body)])
    text = shown(capsys, "trials", path, "--csv")
    row = rows_of(text)[0]
    cells = [row[f"info_={i}"] for i in range(len(formulas))]
    escaped = ["'=1+1", "'+1", "'-1", "'@SUM(A1)", r"\t=1", r"\r=1", r"\x1b[31m", "plain"]
    assert cells == [*escaped, r"\ud800"]
    assert (row["info_number"], row["x0"]) == ("-1.5", "-1.0")
    assert "\x1b" not in text + shown(capsys, "status", path) + shown(capsys, "trials", path)
