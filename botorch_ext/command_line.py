"""The command line: a study from its beginning to its report, without Python code.

``trials`` reads events alone. The other commands make the strategy again from the description of
the study; ``report`` does so where it can, and ``status`` where data may refute an RKHS bound. A
command changes a study as a whole or not at all.
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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from typing import Any, NoReturn

from botorch_ext.aligned import printable
from botorch_ext.exceptions import StudyError
from botorch_ext.page.overview import Overview, read_overview, read_overviews
from botorch_ext.page.words import counted
from botorch_ext.plain_events import version_of
from botorch_ext.studies.sheets import require_openpyxl
from botorch_ext.studies.written_tables import WrittenTable, is_workbook

_PLACE = "a file, or a URL such as postgresql+psycopg://user@host/database"
_CONTEXT = "--context", "the context, for each of its columns"
# After how many seconds a command shows that it works, and how often it shows it.
_PATIENCE = 2.0
# What a SQLite file and each of those beside it begin with.
_DATABASES = (b"SQLite format 3\0", b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83", b"\xd9\xd5\x05\xf9")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command.

    Args:
        arguments: The arguments after the name of the program; None for those of this process.

    Returns:
        The exit status: 0, or 2 after an error, which is printed on one line.
    """
    given = _parser().parse_args(arguments)
    file = given.output or given.new_file
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for category in (DeprecationWarning, FutureWarning):  # those of other libraries
                warnings.simplefilter("ignore", category)
            _require_writable(given)
            with _seconds_shown(given.command):
                found, place = given.run(given)
        for warning in caught:
            _say(str(warning.message))
        if file is None:
            _print(found if isinstance(found, str) else found.csv(given.decimal_comma))
        else:
            _write(_content(found, file, given.decimal_comma), file, place)
            if Path(file).is_file():  # and no pipe
                _print(f"wrote {file} with {given.written}\n")
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, ImportError) as error:
        return _failed(str(error))
    except OSError as error:
        what = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        if given.new_file is not None:
            what += "; trials may have been asked, which ask --pending shows"
        return _failed(what)
    return 0


def _content(found: str | WrittenTable, file: str, decimal_comma: bool) -> bytes:
    """What a command found, as the content of a file."""
    if isinstance(found, str):
        return found.encode("utf-8")
    # Spreadsheets know CSV by the mark that it is UTF-8.
    return found.workbook() if is_workbook(file) else found.csv(decimal_comma).encode("utf-8-sig")


class _Parser(argparse.ArgumentParser):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # argparse takes -1e-2 and -7,1 for options.
        self._negative_number_matcher = re.compile(r"-[.,]?\d")

    def error(self, message: str) -> NoReturn:
        # A password may hold any characters.
        super().error(printable(re.sub(r"://.*@", "://***@", message, flags=re.DOTALL)))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="botorch-ext", description="Runs a study and shows it.")
    number = version_of("botorch-ext") or "is not installed, and has no version"
    does, shown = "show the version and end", f"botorch-ext {number}"
    parser.add_argument("--version", action="version", help=does, version=shown)
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")
    _command(commands, "status", _status, "what runs, what is pending, the best so far")
    trials = _command(commands, "trials", _trials, "all trials, one on a line")
    trials.add_argument("--csv", action="store_true", help="comma-separated values, all digits")
    does = "where to write instead; a workbook where its name ends in .xlsx"
    trials.add_argument("-o", "--output", metavar="FILE", help=does)
    report = _command(commands, "report", _report, "one page with pictures, for a browser")
    report.add_argument("-o", "--output", metavar="FILE", required=True, help="the page")
    report.add_argument(
        "--without-model", action="store_true", help="from the events alone, in a few seconds"
    )
    does = "copies a file with all of its studies, while others may work on them"
    copy = _command(commands, "copy", "copying", does)
    copy.add_argument("target", metavar="to", help="a file that does not exist yet")
    _add_changing(commands)
    _add_asking_model(commands)
    return parser


def _add_changing(commands: argparse._SubParsersAction[_Parser]) -> None:
    new = _command(commands, "new", "telling", "begins a study")
    new.add_argument("space", help="a TOML or JSON file that names the parameters")
    does = "propose the space from a table of results: write the file of it, and begin nothing"
    new.add_argument("--from", metavar="RESULTS", dest="from_results", help=does)
    _add_signs(new)
    does = "with --from: a column that is measured with the result, and has a limit"
    new.add_argument("--outcome", metavar="NAME", action="append", default=[], help=does)
    new.add_argument("--objective", help="the name of the values")
    new.add_argument("--unit", help="the unit of the values")
    new.add_argument("--minimize", action="store_true", help="small values are good")
    ask = _command(commands, "ask", "telling", "asks for trials, as a sheet to fill in")
    ask.add_argument("-n", "--number", type=int, default=1, help="how many trials; 1 unless given")
    ask.add_argument("--pending", action="store_true", help="the pending trials, and no new ones")
    _add_csv(ask)
    _add_named(ask, *_CONTEXT)
    tell = _command(commands, "tell", "telling", "tells the results that were filled in")
    _add_sheet(tell, "sheet", "the CSV file of ask, with results and notes, or a workbook (.xlsx)")
    does = "results may differ from those told before, and replace them"
    tell.add_argument("--correct", action="store_true", help=does)
    attach = _command(commands, "attach", "telling", "adds earlier results")
    _add_sheet(attach, "sheet", "a CSV file or workbook: parameters and the objective by name")
    attach.add_argument("--repeat", action="store_true", help="rows may be results that are there")
    does = "all rows may lie outside the space, without a warning"
    attach.add_argument("--outside", action="store_true", help=does)
    correct = _command(commands, "correct", "telling", "replaces a wrong value")
    correct.add_argument("trial", type=int, help="its id")
    correct.add_argument("value", nargs="?", help="the right one; unless another number is wrong")
    correct.add_argument("--std", help="the right standard error of the value")
    _add_named(correct, "--outcome", "the right number of an outcome that was wrong")
    abandon = _command(commands, "abandon", "telling", "abandons a trial")
    abandon.add_argument("trial", type=int, help="its id")
    abandon.add_argument("--failed", action="store_true", help="its evaluation failed")
    does = "takes back an attached result or a failure"
    withdraw = _command(commands, "withdraw", "telling", does)
    withdraw.add_argument("trial", type=int, help="its id")
    note = _command(commands, "note", "telling", "keeps a note with a trial")
    note.add_argument("trial", type=int, help="its id")
    note.add_argument("text", help="in place of the note before; an empty one removes it")
    does = "widens parameters of the space, for the trials that follow"
    widen = _command(commands, "widen", "telling", does)
    _add_named(widen, "--low", "the new least value of a range")
    _add_named(widen, "--high", "the new largest value of a range")
    _add_named(widen, "--add", "a further value of a choice")


def _add_asking_model(commands: argparse._SubParsersAction[_Parser]) -> None:
    predict = _command(commands, "predict", "predicting", "predicts at points")
    _add_sheet(predict, "points", "a CSV file or workbook: the parameters by name")
    _add_csv(predict)
    does = "the recommended point, with its prediction"
    recommended = _command(commands, "recommended", "predicting", does)
    _add_named(recommended, *_CONTEXT)
    does = "what the next trials are expected to gain: is another batch worth it?"
    stop = _command(commands, "stop", "predicting", does)
    stop.add_argument("-n", "--number", type=int, default=1, help="how many trials; 1 unless given")
    _add_named(stop, *_CONTEXT)


def _add_sheet(command: argparse.ArgumentParser, called: str, does: str) -> None:
    """Adds the sheet that a command reads, and how it is written."""
    command.add_argument("sheet", metavar=called, help=does)
    _add_signs(command)


def _add_signs(command: argparse.ArgumentParser) -> None:
    """Adds the options that say how a sheet is written."""
    does = "the sign between the cells of the sheet; found from it unless given"
    command.add_argument("--separator", metavar="SIGN", help=does)
    does = "the decimal sign of the sheet, . or ,; found from it unless given"
    command.add_argument("--decimal", choices=[".", ","], metavar="SIGN", help=does)


def _add_csv(command: argparse.ArgumentParser) -> None:
    """Adds the options of commands that write a sheet, to a file that does not exist yet."""
    does = "where to write the sheet; a workbook where its name ends in .xlsx"
    command.add_argument("--csv", metavar="FILE", dest="new_file", help=does)
    does = "write decimal commas, between semicolons"
    command.add_argument("--decimal-comma", action="store_true", help=does)


def _add_named(command: argparse.ArgumentParser, option: str, does: str) -> None:
    """Adds an option that may be given for several names."""
    command.add_argument(option, metavar="NAME=VALUE", action="append", default=[], help=does)


def _command(
    commands: argparse._SubParsersAction[_Parser],
    name: str,
    run: str | Callable[[argparse.Namespace], tuple[str | WrittenTable, str]],
    does: str,
) -> argparse.ArgumentParser:
    """Adds a command: a function, or that of its name in a module of ``commands``, which is
    imported when the command runs, since that takes seconds."""

    def later(given: argparse.Namespace) -> tuple[str | WrittenTable, str]:
        module = import_module(f"botorch_ext.commands.{run}")
        return getattr(module, name)(given), given.place

    about = f"{does[0].upper()}{does[1:]}{'' if does.endswith('?') else '.'}"
    parser = commands.add_parser(name, help=does, description=about)
    parser.add_argument("place", help=f"where the study is: {_PLACE}")
    parser.add_argument("--name", help="which study, where there are several")
    parser.set_defaults(command=name, run=later if isinstance(run, str) else run)
    parser.set_defaults(output=None, new_file=None, written="", csv=False, decimal_comma=False)
    return parser


def _status(given: argparse.Namespace) -> tuple[str, str]:
    from botorch_ext.page.status import as_text

    def warning(one: Overview) -> str | None:
        if not (one.has_rkhs_bound and one.observed):
            return None  # without making the strategy
        from botorch_ext.page.model_summary import refuted_in_words

        return refuted_in_words(given.place, one.name)

    found, now = read_overviews(given.place, given.name), time.time()
    return "\n".join(as_text(one, now, warning(one)) for one in found), found[0].place


def _trials(given: argparse.Namespace) -> tuple[str | WrittenTable, str]:
    from botorch_ext.page.tables import as_table, as_text

    overview = read_overview(given.place, given.name)
    given.written = counted(len(overview.stories), "trial")
    file = given.output or ""
    is_table = given.csv or file.lower().endswith(".csv") or is_workbook(file)
    return as_table(overview) if is_table else as_text(overview), overview.place


def _report(given: argparse.Namespace) -> tuple[str, str]:
    from botorch_ext.page.model_summary import ModelSummary, summary_at
    from botorch_ext.page.page import page

    overview = read_overview(given.place, given.name)
    model = ModelSummary() if given.without_model else summary_at(given.place, overview.name)
    given.written = f"the page of {counted(len(overview.stories), 'trial')}"
    return page(overview, time.time(), model), overview.place


def _require_writable(given: argparse.Namespace) -> None:
    """Raises an error, before anything is asked, where a workbook cannot be written, or where a
    sheet would replace a file, which may be filled in."""
    file = given.new_file or given.output or ""
    if is_workbook(file):
        require_openpyxl()
    if file.lower().endswith((".ods", ".xls")):
        raise StudyError(f"{file} must be named as .csv or as .xlsx, which can be written")
    if given.new_file is None:
        return
    target = Path(given.new_file)
    if target.exists():
        raise StudyError(f"{target} is there already, and may be filled in: name another file")
    if not target.resolve().parent.is_dir():
        raise StudyError(f"{target} must lie in a folder that is there")


def _print(text: str) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace", newline="")
    sys.stdout.write(text)
    sys.stdout.flush()


def _write(content: bytes, output: str, place: str) -> None:
    """Writes to a file, never to one of a study."""
    target = Path(output).resolve()
    _require_no_study(target, place)
    try:
        # A pipe or a terminal stays one.
        if target.exists() and not target.is_file():
            target.write_bytes(content)
        else:
            _replace(target, content)
    except OSError as error:
        error.filename = output
        if isinstance(error, PermissionError):
            error.strerror = f"the folder {target.parent} must be writable"
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


def _replace(target: Path, content: bytes) -> None:
    """Replaces a file as a whole. The file before stays where that fails."""
    new = target.with_name(f".botorch-ext-{os.getpid()}")
    new.unlink(missing_ok=True)  # of a process that was killed
    try:
        with new.open("xb") as file:
            file.write(content)
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


@contextmanager
def _seconds_shown(command: str) -> Iterator[None]:
    """Shows on a terminal that a command still works, and for how long, from two seconds on."""
    if not sys.stderr.isatty():
        yield
        return
    began, has_ended = time.monotonic(), Event()

    def show() -> None:
        while not has_ended.wait(_PATIENCE):
            sys.stderr.write(f"\r{command}: {time.monotonic() - began:.0f} s")
            sys.stderr.flush()

    shows = Thread(target=show, daemon=True)
    shows.start()
    try:
        yield
    finally:
        has_ended.set()
        shows.join()
        if time.monotonic() - began >= _PATIENCE:
            sys.stderr.write("\r\x1b[K")  # clears the line


def _failed(message: str) -> int:
    _say(message)
    return 2


def _say(message: str) -> None:
    line = " ".join(re.sub(r"://[^\s'\"]*@", "://***@", message).split())
    sys.stderr.write(f"botorch-ext: {printable(line)}\n")
