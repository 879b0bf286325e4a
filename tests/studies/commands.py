"""What the tests of the command line share: a week of a lab, and what a command answers."""

import csv
import io
import json

import botorch_ext as bx
from botorch_ext.command_line import main
from botorch_ext.studies import databases, journal
from tests.studies.kept import gp_bucb

COMMANDS = (["status"], ["trials"], ["trials", "--csv"])


def shown(capsys, *arguments):
    """What a command writes."""
    assert main([str(argument) for argument in arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def refused(capsys, *arguments):
    """The one line that a command ends with."""
    assert main([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("botorch-ext: ")
    assert captured.err.count("\n") == 1
    return captured.err


def week(path, clock, **options):
    """Five asked; one is told at once, one late, one fails, one is dropped and one pends; one more
    comes unasked, and one value was typed wrong."""
    study = bx.Study(path, gp_bucb(), **options)
    trials = study.ask(5)
    study.tell(trials[1], 71.0)
    clock.now += 7200
    study.abandon(trials[2], failed=True)
    study.abandon(trials[3])
    study.attach([0.5, 2.5], -0.25)
    study.tell(trials[0], 1 / 3)
    clock.now += 60
    study.correct(1, 0.71)
    clock.now += 86_400
    return trials


def with_events(path, bodies, description=None, name="study"):
    """A study of any events, as a broken or a hostile file may have them."""
    new = journal.Journal.begin(databases.Database(path), name, False, description or {})
    with new.writing() as connection:
        new.append(connection, new.start, [json.dumps(each) for each in bodies])


def rows_of(text):
    """Of CSV."""
    return list(csv.DictReader(io.StringIO(text, newline="")))
