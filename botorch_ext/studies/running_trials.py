"""Running trials: claims of the runs of this machine to trials of a study."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir

from filelock import FileLock, Timeout

# For how many seconds a lock is tried, as another run may just remove its file.
_PATIENCE = 0.02


class Claims:
    """The trials that one run evaluates, while no other run of this machine evaluates them.

    A claim is the lock of an empty temporary file. It ends with its process, however that ends.
    The trial can then be evaluated again, and not before. Runs on other machines are unknown, and
    so are other runs where the file cannot be locked.

    Args:
        study: A text that identifies the study on this machine.
    """

    def __init__(self, study: str) -> None:
        digest = hashlib.blake2b(study.encode(), digest_size=12).hexdigest()
        self._stem = str(Path(gettempdir()) / f"botorch-ext-{digest}")
        self._held: dict[int, FileLock] = {}

    def take(self, id: int) -> bool:
        """Claims a trial, and returns whether it belongs to this run; False if another run has
        it."""
        if id in self._held:
            return True
        # Every user may lock it, and any thread may give it back.
        lock = FileLock(f"{self._stem}-{id}", mode=0o666, thread_local=False)
        try:
            lock.acquire(timeout=_PATIENCE, poll_interval=_PATIENCE / 4)
        except Timeout:
            return False
        except OSError:
            return True
        self._held[id] = lock
        return True

    def give_back(self, *ids: int) -> None:
        """Ends the claims to some trials, or to all trials if no id is given."""
        for id in ids or list(self._held):
            lock = self._held.pop(id, None)
            if lock is not None:
                with suppress(OSError):
                    os.unlink(lock.lock_file)
                lock.release()
