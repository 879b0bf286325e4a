"""Studies that many processes share, and processes that are killed."""

import json
import os
import random
import signal
import time

import torch

import botorch_ext as bx
from botorch_ext.strategies import Asked, Attached, Told
from tests.studies.kept import gp_bucb, in_a_fork, lines, value_at, wait_for


def _ask_and_tell(place, number, seed):
    """Asks, and tells in another order; a trial is left pending now and then."""
    study, rng, mine = bx.Study(place, gp_bucb()), random.Random(seed), []
    for _ in range(number):
        mine.append(study.ask())
        if len(mine) > 2:
            trial = mine.pop(rng.randrange(len(mine)))
            study.tell(trial.id, value_at(trial.x))
    for trial in mine[1:]:
        study.tell(trial.id, value_at(trial.x))


def require_sound(study, num_asked, num_told):
    """Every id once, no two pending trials at one point, and a log that replays."""
    points, told = {}, []
    for event in study.events:
        if isinstance(event, Asked):
            assert event.trial.id == len(points) + len(told)
            assert not any(torch.equal(event.trial.x, x) for x in points.values())
            points[event.trial.id] = event.trial.x
        elif isinstance(event, Told):
            del points[event.id]
            told.append(event.id)
    assert len(told) == len(set(told)) == num_told
    assert sorted(points) == study.pending and len(points) + len(told) == num_asked
    alone = gp_bucb()
    alone.replay(study.events)
    asked, expected = study.ask(), alone.ask()
    assert torch.equal(asked.x, expected.x) and asked.info == expected.info


def test_eight_processes_ask_and_tell_at_once(tmp_path):
    path, number = tmp_path / "lab.db", 10
    # Which of them makes the file is left open.
    children = [in_a_fork(lambda seed=seed: _ask_and_tell(path, number, seed)) for seed in range(8)]
    for child in children:
        wait_for(child)
    study = bx.Study(path, gp_bucb())
    require_sound(study, 8 * number, 8 * (number - 1))


def _anything(path, seed, acknowledge):
    """Calls of every kind, each acknowledged once it has returned, until it is killed."""
    study, rng = bx.Study(path, gp_bucb()), random.Random(seed)
    while True:
        pending, kind, value = study.pending, rng.random(), rng.uniform(-1.0, 1.0)
        told = sorted(study.strategy.history.values)
        if kind < 0.4 or not pending:
            for trial in study.ask(rng.choice([1, 2])):
                acknowledge("Asked", trial.id)
        elif kind < 0.75:
            id = rng.choice(pending)
            study.tell(id, value)
            acknowledge("Told", id, value)
        elif kind < 0.85:
            id = rng.choice(pending)
            study.abandon(id, failed=rng.random() < 0.5)
            acknowledge("Abandoned", id)
        elif kind < 0.93:
            acknowledge("Attached", study.attach([rng.uniform(-1.0, 1.0), 3.0], value).id, value)
        elif told:
            id = rng.choice(told)
            study.correct(id, value)
            acknowledge("Corrected", id, value)


def _killed_at_random(path, seed, rng):
    """What a process was told that it is kept, before it was killed."""
    reader, writer = os.pipe()

    def work():
        def acknowledge(kind, id, value=None):
            os.write(writer, (json.dumps([kind, id, value]) + "\n").encode())

        _anything(path, seed, acknowledge)

    child = in_a_fork(work)
    os.close(writer)
    time.sleep(rng.uniform(0.0, 0.4))
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    with open(reader) as pipe:
        return [tuple(json.loads(line)) for line in pipe]


def _record(event):
    id = event.trial.id if isinstance(event, Asked | Attached) else event.id
    return type(event).__name__, id, getattr(event, "value", None)


def test_kills_lose_nothing_that_was_acknowledged(tmp_path):
    path, rng, acknowledged, before = tmp_path / "lab.db", random.Random(0), [], []
    for kill in range(50):
        acknowledged += _killed_at_random(path, kill, rng)
        if kill % 10 == 9:
            study = bx.Study(path, gp_bucb())
            assert lines(study)[: len(before)] == before
            before = lines(study)
    records = [_record(event) for event in study.events]
    # In this order; a call that was under way may have been kept, and nobody told so.
    left = iter(records)
    assert all(record in left for record in acknowledged)
    assert len(records) - len(acknowledged) <= 2 * 50
    assert {kind for kind, _, _ in acknowledged} >= {"Asked", "Told", "Attached", "Corrected"}
    new = [id for kind, id, _ in records if kind in ("Asked", "Attached")]
    ended = [id for kind, id, _ in records if kind in ("Told", "Abandoned")]
    assert new == list(range(len(new))) and len(ended) == len(set(ended))
    alone = gp_bucb()
    alone.replay(study.events)
    asked, expected = study.ask(), alone.ask()
    assert torch.equal(asked.x, expected.x) and asked.info == expected.info
