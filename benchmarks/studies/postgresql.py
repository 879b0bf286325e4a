"""PostgreSQL: a server of our own that is stopped and started while processes ask and tell."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import IO, Any

import psycopg
import sqlalchemy as sa
from psycopg import sql

import botorch_ext as bx
from benchmarks.common.command_line import Options
from benchmarks.common.tables import Row, Tables
from benchmarks.studies.forks import in_a_fork, is_alive, wait_for
from benchmarks.studies.many_processes import checked
from benchmarks.studies.objectives import value_at
from benchmarks.studies.strategies import box
from botorch_ext.exceptions import UnreachableStudyError
from botorch_ext.strategies import Strategy, Trial

PASSWORD = "correct-horse/battery@staple"


def program(name: str) -> str | None:
    """The path of a program of PostgreSQL, also where Debian puts it; None where there is none."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(found[-1]) if found else None)


def is_installed() -> bool:
    """Whether a server can be started here."""
    return program("postgres") is not None and program("initdb") is not None


@dataclass
class Server:
    """A server on the loopback address.

    Args:
        folder: Of its files.
        port: Of the address.
    """

    folder: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Returns once it answers."""
        arguments = ["-D", self.folder / "data", "-k", self.folder, "-p", self.port]
        with (self.folder / "log").open("ab") as log:
            self.process = _started("postgres", *arguments, "-h", "127.0.0.1", output=log)
        for _ in range(600):
            try:
                psycopg.connect(self.url()).close()
            except psycopg.OperationalError as error:  # it is starting up
                if self.process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from error
                time.sleep(0.1)
            else:
                return
        raise TimeoutError("the server does not start")

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Ends it.

        Args:
            how: SIGINT cuts off whoever is connected, SIGQUIT leaves the rest to the next start.
        """
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)

    def url(
        self, password: str = PASSWORD, driver: str = "postgresql", database: str = "postgres"
    ) -> str:
        """What a study is opened with."""
        url = sa.URL.create(driver, "lab", password, "127.0.0.1", self.port, database)
        return url.render_as_string(hide_password=False)

    def new_database(self) -> str:
        """The URL of one without studies."""
        name = f"lab_{time.monotonic_ns()}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.url(database=name)


@contextmanager
def served() -> Iterator[Server]:
    """A new server, which is gone afterwards."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "password").write_text(PASSWORD)
        if os.getuid() == 0:
            for path in (folder, folder / "password"):
                shutil.chown(path, "nobody")
        options = ["--auth=scram-sha-256", "--username=lab", f"--pwfile={folder / 'password'}"]
        with (folder / "log").open("wb") as log:
            begun = _started(
                *("initdb", "-D", folder / "data", *options, "--no-sync", "-E", "UTF8"),
                output=log,
            )
        if begun.wait():
            raise RuntimeError((folder / "log").read_text())
        server = Server(folder, port)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _started(name: str, *arguments: Any, output: IO[bytes]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [program(name) or name, *map(str, arguments)],
        stdout=output,
        stderr=output,
        user="nobody" if os.getuid() == 0 else None,  # a server refuses to run as root
    )


# --- a server that is stopped and started ---------------------------------------------------------


def play(
    place: str,
    strategy: Strategy,
    processes: int,
    number: int,
    restart: Callable[[], Any],
    most_restarts: int,
) -> Row:
    """Processes that ask and tell that many trials each while the server goes and comes.

    Args:
        place: Of the study.
        strategy: Of the study, without events.
        processes: How many.
        number: Of trials that each tells.
        restart: Stops the server and starts it; called again and again.
        most_restarts: How often at most.
    """
    start, (errors, writer), restarts = time.perf_counter(), os.pipe(), 0
    children = [
        in_a_fork(lambda: _patiently(place, strategy, number, writer)) for _ in range(processes)
    ]
    os.close(writer)
    while restarts < most_restarts and any(map(is_alive, children)):
        restart()
        restarts += 1
    for child in children:
        wait_for(child)
    with os.fdopen(errors, "rb") as pipe:
        failed = len(pipe.read())
    study = bx.Study(place, strategy)
    lost = len(study.pending)
    told = len(study.strategy.history.values)
    return {
        "processes": processes,
        "told": told,
        "restarts": restarts,
        "calls that failed": failed,
        "of these, asks that were kept": lost,
        # Each process is in one call when the server goes.
        "no more than can be": lost <= min(failed, processes * restarts),
        "all told": told == processes * number,
        **checked(study, strategy.clone(), lost),
        "seconds": time.perf_counter() - start,
    }


def _patiently(place: str, strategy: Strategy, number: int, errors: int) -> None:
    """Asks and tells; a call that fails is made again, unless it turns out to be kept."""

    def answered(call: Callable[[], Any]) -> Any:
        while True:
            try:
                return call()
            except UnreachableStudyError:
                os.write(errors, b".")
                time.sleep(0.05)

    def tell(trial: Trial) -> None:
        if trial.id in study.pending:
            study.tell(trial.id, value_at(trial.x))

    study = answered(lambda: bx.Study(place, strategy))
    for _ in range(number):
        trial = answered(study.ask)
        answered(lambda trial=trial: tell(trial))


def tables(options: Options, folder: Path) -> Tables:
    """A server that is stopped every second, by turns in an orderly way and as if it crashed."""
    if not is_installed():
        raise FileNotFoundError("a server of PostgreSQL, postgres and initdb, must be installed")
    ways = cycle([signal.SIGINT, signal.SIGQUIT])
    with served() as server:

        def restart() -> None:
            time.sleep(1.0)
            server.stop(next(ways))
            server.start()

        row = play(
            server.url(), box(), *((2, 4, restart, 1) if options.smoke else (4, 50, restart, 20))
        )
    text = (
        "Asking and telling, a server of PostgreSQL stopped a second after it answers, by turns in "
        "an orderly way and at once, and started again. A call that cannot reach it is an error, "
        "and made again."
    )
    return [(text, [row])]
