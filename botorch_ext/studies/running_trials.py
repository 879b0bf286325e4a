"""Running trials: claims of the runs of this machine to trials of a study."""

from __future__ import annotations

import hashlib
import os
import weakref
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

try:
    import fcntl
except ModuleNotFoundError:  # no such locks on Windows
    fcntl = None


class Claims:
    """The trials that one run evaluates, while no other run of this machine evaluates them.

    A claim is the lock of an empty temporary file. It ends with its process, however that ends.
    The trial can then be evaluated again, and not before. On a system without such locks, other
    runs are unknown, as are runs on other machines.

    Args:
        study: A text that identifies the study on this machine.
    """

    def __init__(self, study: str) -> None:
        digest = hashlib.blake2b(study.encode(), digest_size=12).hexdigest()
        self._stem = str(Path(gettempdir()) / f"botorch-ext-{digest}")
        self._held: dict[int, int] = {}
        _all.add(self)

    def take(self, id: int) -> bool:
        """Claims a trial, and returns whether it belongs to this run; False if another run has
        it."""
        if fcntl is None or id in self._held:
            return True
        path = self._path(id)
        while True:
            try:
                file = _opened(path)
            except OSError:
                return True
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(path, file):
                    self._held[id] = file
                    return True
            except BlockingIOError:
                os.close(file)
                return False
            except OSError:
                os.close(file)
                return True
            os.close(file)  # another run has just removed the file

    def give_back(self, *ids: int) -> None:
        """Ends the claims to some trials, or to all trials if no id is given."""
        for id in ids or list(self._held):
            file = self._held.pop(id, None)
            if file is not None and fcntl is not None:
                with suppress(OSError):
                    os.unlink(self._path(id))
                fcntl.flock(file, fcntl.LOCK_UN)
                os.close(file)

    def _path(self, id: int) -> str:
        return f"{self._stem}-{id}"

    def drop(self) -> None:
        """Leaves the claims to the process that this one was forked from."""
        while self._held:
            os.close(self._held.popitem()[1])


def _opened(path: str) -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        # Not in the first attempt: some systems refuse to create the file of another user.
        return os.open(path, flags | os.O_CREAT, 0o644)


def _is_at(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


# --- forks ----------------------------------------------------------------------------------------

_all: weakref.WeakSet[Claims] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    """Drops the claims of the parent, which workers that outlive it would keep."""
    for claims in list(_all):
        claims.drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
