"""Studies on a PostgreSQL server that the tests start and restart."""

import os
import signal
import threading
import time
import traceback
from contextlib import contextmanager
from unittest.mock import patch

import pytest

pytest.importorskip("psycopg")

import psycopg
from hypothesis import given, settings

import botorch_ext as bx
from benchmarks.studies import many_processes, postgresql
from benchmarks.studies.kills import lines
from benchmarks.studies.postgresql import PASSWORD
from botorch_ext.command_line import main
from botorch_ext.exceptions import AnotherStrategyError, StudyError, UnreachableStudyError
from botorch_ext.studies import databases
from botorch_ext.studies.databases import Database
from tests.hosts.machine import ACTIONS, InStudy, Machine, quietly
from tests.hosts.methods import recipe
from tests.studies.kept import at_random, failing, gp_bucb

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not postgresql.is_installed(), reason="no PostgreSQL server here"),
]


@pytest.fixture(scope="module")
def server():
    with postgresql.served() as server:
        yield server


METHOD = recipe("gp_bucb", num_points=40)


@quietly
@settings(max_examples=4)
@given(actions=ACTIONS)
def test_it_asks_what_the_bare_strategy_asks(server, actions):
    Machine(InStudy(METHOD, server.new_database()), METHOD).run(actions)


def test_names_are_kept_and_compared(server):
    study = bx.Study(server.url(), at_random(), name="one", objective="coût", unit="€/kg")
    again = bx.Study(server.url(driver="postgresql+psycopg"), at_random(), name="one")
    assert (again.objective, again.unit) == ("coût", "€/kg")
    with pytest.raises(AnotherStrategyError, match="unit is '€/kg' in the study, got 'g'"):
        bx.Study(server.url(), at_random(), name="one", unit="g")
    (attached,) = again.attach([{"x0": 0.25, "x1": 2.25, "coût [€/kg]": 0.5}])
    assert study.to_pandas()["coût"][attached.id] == 0.5


def test_processes_go_on_when_the_server_does(server):
    def restart():
        time.sleep(0.1)
        server.stop(signal.SIGQUIT)
        server.start()

    row = postgresql.play(server.new_database(), at_random(), 3, 20, restart, 2)
    assert row["told"] == 60 and row["restarts"]
    assert not failing(row)


def test_a_server_that_is_restarted(server):
    study = bx.Study(server.url(), at_random(), name="restarted")
    trial = study.ask()
    for use in (lambda: study.tell(trial.id, 0.5), study.ask):
        server.stop()
        try:
            with pytest.raises(UnreachableStudyError, match="does not answer"):
                use()
            with pytest.raises(UnreachableStudyError, match="does not answer"):
                assert study.pending
        finally:
            server.start()
        before = len(study.events)
        use()
        assert len(study.events) == before + 1
    # Stopped and started between two calls: nobody notices.
    server.stop()
    server.start()
    study.ask()
    assert study.pending == [1, 2]
    assert lines(bx.Study(server.url(), at_random(), name="restarted")) == lines(study)


def test_two_studies_of_one_server_do_not_wait_for_each_other(server):
    one = bx.Study(server.url(), at_random(), name="not waiting")
    two = bx.Study(server.url(), at_random(), name="nor this one")
    with one._journal.writing():
        assert two.ask().id == 0


@contextmanager
def _settings_of_the_user(server, **settings):
    def alter(change):
        with psycopg.connect(server.url(), autocommit=True) as connection:
            connection.execute(f"ALTER ROLE lab {change}")

    for name, value in settings.items():
        alter(f"SET {name} = '{value}'")
    try:
        yield
    finally:
        alter("RESET ALL")


def test_settings_of_the_user_that_would_break_a_study(server):
    decide, deciding = bx.strategies.RandomSearch._decide, threading.Event()

    def slowly(*given):
        deciding.set()
        time.sleep(1.5)  # longer than what the server allows
        return decide(*given)

    with _settings_of_the_user(
        server,
        default_transaction_isolation="repeatable read",
        # A connection must be prepared within these times before they are set aside.
        idle_in_transaction_session_timeout="1s",
        statement_timeout="1s",
        synchronous_commit="off",
    ):
        study, other = (bx.Study(server.url(), at_random(), name="settings") for _ in range(2))
        with study._journal.writing() as connection:  # it waits for the disk
            assert connection.exec_driver_sql("SHOW synchronous_commit").scalar() == "on"
        with patch.object(bx.strategies.RandomSearch, "_decide", slowly):
            asking = threading.Thread(target=study.ask)
            asking.start()
            assert deciding.wait(60.0)
            assert other.ask().id == 1  # it waits
            asking.join()
        row = many_processes.play(server.new_database(), gp_bucb(), 4, 6)
    assert study.pending == [0, 1]
    assert row["trials"] == 24 and not failing(row)


def test_whoever_waits_for_another_waits_not_for_ever(server, monkeypatch):
    monkeypatch.setattr(databases, "_LONGEST_WAIT", 0.3)
    study = bx.Study(server.url(), at_random(), name="held")
    with psycopg.connect(server.url()) as other:
        other.execute("SELECT FROM botorch_ext_studies WHERE name = 'held' FOR UPDATE")
        with pytest.raises(UnreachableStudyError, match=r"/postgres was in use for 0\.3 s"):
            study.ask()
    assert study.ask().id == 0
    with study._journal.reading() as connection:
        shown = {
            name: connection.exec_driver_sql(f"SHOW {name}").scalar()
            for name in ("tcp_keepalives_idle", "tcp_keepalives_interval", "tcp_keepalives_count")
        }
    assert list(shown.values()) == ["30", "10", "3"]


def test_an_interrupt_is_heard_while_a_call_waits(server):
    study = bx.Study(server.url(), at_random(), name="waits")
    with psycopg.connect(server.url()) as other:
        other.execute("SELECT FROM botorch_ext_studies WHERE name = 'waits' FOR UPDATE")
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        before = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            study.ask()
        assert time.monotonic() - before < 3.0
        timer.join()
    assert study.ask().id == 0 and study.pending == [0]


def test_passwords_are_never_stored_or_shown(server):
    study = bx.Study(server.url(), gp_bucb(), name="secret")
    study.ask()
    shown = [repr(study), str(study.report()), *lines(study)]
    with study._journal.reading() as connection:
        for table in ("studies", "descriptions", "events"):
            rows = connection.exec_driver_sql(f"SELECT * FROM botorch_ext_{table}").all()
            shown += map(str, rows)
    assert len(shown) > 4
    wrong = "another " + PASSWORD
    for url in (
        server.url(wrong),
        server.url().replace("127.0.0.1", "127.0.0.1:x"),
        server.url().replace("postgresql", "postgresql+psycopg2"),
        server.url(driver="mysql"),
    ):
        with pytest.raises(StudyError) as caught:
            bx.Study(url, at_random())
        shown += traceback.format_exception(caught.value)
    assert not [text for text in shown if "horse" in text or "battery" in text]


def test_the_command_line_reads_it(server, capsys):
    study = bx.Study(server.url(), at_random(), name="looked at")
    study.tell(study.ask(), 0.5)
    other = bx.Study(server.url(), at_random(), name="looked at")
    with other._journal.writing():  # nobody is waited for
        assert main(["status", server.url(), "--name", "looked at"]) == 0
    shown = capsys.readouterr().out
    assert "1 told" in shown and f"127.0.0.1:{server.port}/postgres" in shown
    assert main(["status", server.url("another " + PASSWORD)]) == 2
    assert main(["status", server.url(), "--name", "nobody"]) == 2
    shown += capsys.readouterr().err
    assert "horse" not in shown and "battery" not in shown
    only_read = Database(server.url(), read_only=True)
    with pytest.raises(StudyError, match="read-only"), only_read.writing() as connection:
        connection.exec_driver_sql("DELETE FROM botorch_ext_events")
    assert len(study.events) == 2
