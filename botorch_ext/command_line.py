"""The command line: a look at a study that lasts.

It reads events alone: nothing is written but what ``-o`` names. A report makes the strategy again
from its description, where that can be done, to say what its model predicts; the other commands
make no strategy and compute nothing.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn

from botorch_ext.exceptions import StudyError
from botorch_ext.reports.overview import read_overview, read_overviews
from botorch_ext.reports.words import printable

_PLACE = "a file, or a URL such as postgresql+psycopg://user@host/database"
# What a SQLite file and each of those beside it begin with.
_DATABASES = (b"SQLite format 3\0", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: Those after the name of the program; None: those of this process.

    Returns:
        The exit status: 0, or 2 where something is wrong, which is said on one line.
    """
    given = _parser().parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            text, place = given.text(given)
        for warning in caught:
            if not issubclass(warning.category, DeprecationWarning):  # those of libraries
                _say(str(warning.message))
        _write(text, given.output, place)
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (StudyError, ImportError) as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # Of what was typed a password may hold anything.
        super().error(printable(re.sub(r"://.*@", "://***@", message, flags=re.DOTALL)))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="botorch-ext", description="Looks at a study that lasts.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    status = _command(commands, "status", _status, "what runs, what is pending, the best so far")
    status.set_defaults(output=None)
    trials = _command(commands, "trials", _trials, "all trials, one on a line")
    trials.add_argument("--csv", action="store_true", help="comma-separated values, all digits")
    trials.add_argument("-o", "--output", metavar="FILE", help="where to write instead")
    report = _command(commands, "report", _report, "one page with pictures, for a browser")
    report.add_argument("-o", "--output", metavar="FILE", required=True, help="the page")
    report.add_argument(
        "--without-model", action="store_true", help="from the events alone, in a few seconds"
    )
    return parser


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    text: Callable[[argparse.Namespace], tuple[str, str]],
    does: str,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=does, description=f"Shows {does}.")
    parser.add_argument("place", help=f"where the study is: {_PLACE}")
    parser.add_argument("--name", help="which study, where there are several")
    parser.set_defaults(text=text)
    return parser


def _status(given: argparse.Namespace) -> tuple[str, str]:
    from botorch_ext.reports.status import as_text

    found, now = read_overviews(given.place, given.name), time.time()
    return "\n".join(as_text(one, now) for one in found), found[0].place


def _trials(given: argparse.Namespace) -> tuple[str, str]:
    from botorch_ext.reports.tables import as_csv, as_text

    overview = read_overview(given.place, given.name)
    return as_csv(overview) if given.csv else as_text(overview), overview.place


def _report(given: argparse.Namespace) -> tuple[str, str]:
    from botorch_ext.reports.model_numbers import ModelNumbers
    from botorch_ext.reports.page import page

    overview, model = read_overview(given.place, given.name), ModelNumbers()
    if not given.without_model:
        from botorch_ext.reports.numbers_of_study import numbers_at

        model = numbers_at(given.place, overview.name)
    return page(overview, time.time(), model), overview.place


def _write(text: str, output: str | None, place: str) -> None:
    """Writes to a file, which is never one of a study, or to where output goes."""
    if output is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace", newline="")
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    target = Path(output).resolve()
    _require_no_study(target, place)
    try:
        # A pipe or a terminal stays one.
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8", newline="")
        else:
            _replace(target, text)
    except OSError as error:
        error.filename = output
        raise


def _require_no_study(target: Path, place: str) -> None:
    for studied in (Path(f"{place}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")):
        one = studied.exists() and target.exists() and studied.samefile(target)
        if one or studied.resolve() == target:
            raise StudyError(f"output must be another file than that of the study, got {target}")
    if target.is_file():
        with target.open("rb") as file:
            if file.read(16).startswith(_DATABASES):
                raise StudyError(f"output must be no database, got {target}")


def _replace(target: Path, text: str) -> None:
    """Puts a whole file in the place of the one before, which stays where that fails."""
    new = target.with_name(f".botorch-ext-{os.getpid()}")
    new.unlink(missing_ok=True)  # of a process that was killed
    try:
        with new.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def _failed(message: str) -> int:
    _say(message)
    return 2


def _say(message: str) -> None:
    line = " ".join(re.sub(r"://[^\s'\"]*@", "://***@", message).split())
    sys.stderr.write(f"botorch-ext: {printable(line)}\n")
