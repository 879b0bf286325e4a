"""A watch over what Python is about to run, load or write, for texts and files of strangers."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RUNS = ("exec", "os.system", "os.exec", "os.posix_spawn", "subprocess.", "socket.")
RUNS += ("pickle.", "marshal.", "ctypes.", "code.", "builtins.input", "urllib.")
LOADS_OR_WRITES = ("import", "compile", "open", "os.", "shutil.")
# SciPy runs a text of its own where a distribution gets its numbers.
_OF_SCIPY = "_attach_argparser_methods"
_seen: list[str] = []
_forbidden: list[tuple[str, ...]] = [()]


def _watch(event: str, given: Any) -> None:
    if event.startswith(_forbidden[0]):
        frame = sys._getframe(1)
        while frame is not None and frame.f_code.co_name != _OF_SCIPY:
            frame = frame.f_back
        if frame is None:
            _seen.append(f"{event} {given}")


@contextmanager
def nothing_may(*forbidden: str) -> Iterator[None]:
    """Fails if Python announces an event with one of these beginnings within the block."""
    if not hasattr(nothing_may, "is_there"):
        sys.addaudithook(_watch)  # for ever
        nothing_may.is_there = True
        _forbidden[0] = ("exec",)
        exec("1")
        assert _seen, "the watch sees nothing"
    del _seen[:]
    _forbidden[0] = forbidden
    try:
        yield
    finally:
        _forbidden[0] = ()
    assert not _seen, _seen
