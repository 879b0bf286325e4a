import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, settings

from benchmarks.common.pretend_cuda import PretendCUDA
from tests.helpers import devices

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows, also where there is a display
pytest.register_assert_rewrite("botorch_ext.testing")
# Shells start background jobs with Ctrl-C switched off, and the tests of Ctrl-C with them.
signal.signal(signal.SIGINT, signal.default_int_handler)
# A study asks with one thread where that is faster; more threads round differently.
torch.set_num_threads(2 if os.environ.get("OMP_NUM_THREADS") == "2" else 1)
# The same examples everywhere and each time; none is kept in a folder.
settings.register_profile(
    "tests",
    derandomize=True,
    max_examples=25,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("tests")

# The tests that took more than half a second of an idle core; `make test-all` runs them. They are
# measured, not judged: `make test-all PYTEST_ARGS=--durations=0` lists what takes long.
SLOW = frozenset((Path(__file__).parent / "slow_tests.txt").read_text().splitlines())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid in SLOW:
            item.add_marker(pytest.mark.slow)


def pytest_runtest_setup() -> None:
    torch.manual_seed(0)  # some functions of BoTorch draw without a seed of their own


@pytest.fixture(params=devices())
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    if request.param == "pretended-cuda":
        with PretendCUDA():
            yield torch.device("cuda")
    else:
        yield torch.device(request.param)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without pictures, which take most of their time and are tested in ``tests/page``."""
    monkeypatch.setattr("botorch_ext.page.page.pictures", lambda *_: [])


@pytest.fixture
def empty_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages whose pictures are made, but not written as SVG, which takes most of their time."""
    monkeypatch.setattr("botorch_ext.page.drawing._svg", lambda *_: "<svg></svg>")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The time of studies and commands, which stands still until it is moved."""

    class Clock:
        now = 1_795_000_000.25

        def time(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr("botorch_ext.studies.journal.time", clock)
    monkeypatch.setattr("botorch_ext.command_line.time", clock)
    return clock


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a study that is not there yet."""
    return tmp_path / "lab.db"
