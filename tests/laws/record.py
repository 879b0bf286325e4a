"""Recorded sessions of every entry of the registry, and how many of them go on as they did.

    python -m tests.laws.record --new --commit NAME                    records what is not held yet
    python -m tests.laws.record --seeds 3 --commit NAME OUT.json.gz    plays and writes
    python -m tests.laws.record --check IN.json.gz                     asks every question again

Numbers are bit-equal only on the kind of processor that a recording is from.
"""

from __future__ import annotations

import argparse
import gzip
import json
import platform
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from botorch_ext.testing.sessions import Session, best, plain, question
from tests.laws import recorded_names
from tests.laws.registry import ENTRIES, Entry

RECORDED = Path(__file__).with_name("recorded.json.gz")
BY_NAME = {entry.name: entry for entry in ENTRIES}


def record(entry: Entry, seed: int) -> dict[str, Any]:
    """Plays a session; an asked event also has the step whose context and actions it was given."""
    session = Session(entry, seed)
    session.play()
    strategy, steps = session.strategy, iter(session.offered)
    events = [
        [*event, next(steps)] if event[0] == "asked" else event
        for event in map(plain, strategy.events)
    ]
    return {
        "entry": entry.name,
        "seed": seed,
        "events": events,
        "report": strategy.report(),
        "best": best(strategy),
        "next": question(strategy, session.offer()),
    }


def write(path: Path, sessions: list[dict[str, Any]], commit: str) -> None:
    processor = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    about = {"commit": commit, "torch": torch.__version__, "processor": processor}
    text = json.dumps({"about": about, "sessions": sessions}, separators=(",", ":"))
    # Without the time, so that the same sessions make the same file.
    path.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))


def read(path: Path = RECORDED) -> dict[str, Any]:
    """``about`` and ``sessions``."""
    return json.loads(gzip.decompress(path.read_bytes()))


def differences(recorded: dict[str, Any]) -> list[str]:
    """Of a session, which questions are now others, and why nothing could be asked where nothing
    can: each is asked after the recorded events before it."""
    entry, seed = BY_NAME[recorded["entry"]], recorded["seed"]
    method, scenario = entry.method, entry.scenario
    events = [recorded_names.event(method, record) for record in recorded["events"]]
    strategy, found, num_asked = entry.make(seed), [], 0
    for done, (event, of) in enumerate(zip(events, recorded["events"], strict=True)):
        if of[0] != "asked":
            strategy.replay([event])
            continue
        now = question(strategy, scenario.offer(of[5], seed))
        num_asked += 1
        expected = {"x": of[2], "info": recorded_names.info(method, dict(of[4]))}
        now, expected = _comparable(method, now), _comparable(method, expected)
        if now != expected:
            found.append(f"question {of[1]}: {_difference(expected, now)}")
            strategy = entry.make(seed)
            strategy.replay(events[: done + 1])
    report = json.loads(json.dumps(strategy.report()))
    found += [
        f"report, {name}: {value} was, {report.get(name)} is"
        for name, value in recorded_names.report(recorded["report"]).items()
        if not _holds(report.get(name), value)
    ]
    if best(strategy) != recorded["best"]:
        found.append(f"best: {recorded['best']} was, {best(strategy)} is")
    now = question(strategy, scenario.offer(num_asked, seed))
    expected = recorded["next"]
    if "info" in expected:
        expected = {**expected, "info": recorded_names.info(method, dict(expected["info"]))}
    now, expected = _comparable(method, now), _comparable(method, expected)
    if now != expected:
        found.append(f"next question: {_difference(expected, now)}")
    return found


def _comparable(method: str, asked: dict[str, Any]) -> dict[str, Any]:
    if "info" not in asked:
        return asked
    return {**asked, "info": recorded_names.comparable(method, asked["info"])}


def _holds(now: Any, then: Any) -> bool:
    """Whether all that was said is said now, besides keys that are new."""
    if isinstance(then, dict) and isinstance(now, dict):
        return all(name in now and _holds(now[name], then[name]) for name in then)
    if isinstance(then, list) and isinstance(now, list):
        return len(now) == len(then) and all(map(_holds, now, then))
    return now == then


def _difference(expected: Any, now: Any) -> str:
    if "x" not in now or "x" not in expected:
        return f"{expected} was, {now} is"
    parts = []
    if now["x"] != expected["x"]:
        apart = max(abs(a - b) for a, b in zip(now["x"], expected["x"], strict=True))
        parts.append(f"x {apart:.1e} apart")
    was, is_ = expected["info"], now["info"]
    names = [name for name in sorted(was.keys() | is_.keys()) if was.get(name) != is_.get(name)]
    return ", ".join(parts + [f"{name} {was.get(name)} was, {is_.get(name)} is" for name in names])


def _check(path: Path) -> None:
    held = read(path)
    equal: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for recorded in held["sessions"]:
        try:
            found = differences(recorded)
        except Exception as error:  # noqa: BLE001 - the others are checked all the same
            found = [f"{type(error).__name__}: {error}"]
        entry = BY_NAME[recorded["entry"]]
        kind = f"{entry.method}, {'box' if entry.scenario.is_box else 'set'}"
        total[kind] += 1
        equal[kind] += not found
        if found:
            print(f"{entry.name}, seed {recorded['seed']}: {len(found)} differences")
            for line in found[:3]:
                print(f"    {line[:300]}")
    print(f"recorded from {held['about']}")
    for kind in total:
        print(f"{equal[kind]:4d} of {total[kind]:4d} bit-equal: {kind}")
    print(f"{equal.total():4d} of {total.total():4d} bit-equal in every question, report and best")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", type=Path, nargs="?", default=RECORDED)
    parser.add_argument("--check", action="store_true", help="ask the recorded questions again")
    parser.add_argument("--new", action="store_true", help="record entries that have no session")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--commit", default="unknown", help="of the code that plays")
    parser.add_argument("--only", default="", help="entries whose names begin so")
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    if args.check:
        _check(args.path)
        return
    # New sessions go behind those that are held, which stay as they are.
    held = read(args.path) if args.new else {"sessions": [], "about": {"commit": args.commit}}
    sessions, known = held["sessions"], {each["entry"] for each in held["sessions"]}
    for entry in ENTRIES:
        if entry.name not in known and entry.name.startswith(args.only):
            start = time.perf_counter()
            sessions += [record(entry, seed) for seed in args.seeds]
            print(f"{entry.name}: {time.perf_counter() - start:.1f} s", flush=True)
    write(args.path, sessions, held["about"]["commit"] if args.new else args.commit)


if __name__ == "__main__":
    main()
