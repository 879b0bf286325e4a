"""SQLite files: prepares, locks and finds them, and warns of network file systems."""

from __future__ import annotations

import os
import sqlite3
import stat
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from warnings import warn

from botorch_ext.exceptions import (
    BrokenStudyError,
    NetworkFileSystemWarning,
    NoStudyError,
    StudyError,
)

if sys.platform == "linux":
    import fcntl
if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

# The offset and the length of the bytes that SQLite locks while a file is open.
_SHARED = 0x40000002, 510
# How many pages of the log a copy of the file alone may lack. Each event writes one or two pages;
# with a smaller number, writing them back would take noticeable time.
_MOST_PAGES = 20
_MOUNTS = Path("/proc/self/mounts")
# The most bytes of a text; descriptions may hold all points of a set.
_LONGEST_TEXT = 2**28
# After how many seconds an empty file cannot be a study that is just begun.
_BEGINNING = 60.0
_NETWORK_FILE_SYSTEMS = (
    *("afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "smb3", "smbfs"),
)


class Hold:
    """A lock on a file, as another process that has the file open would hold it.

    If a process closes any descriptor of a file, for example after copying it, all its SQLite locks
    on the file are dropped. Another process would then delete the log, as if it were the last one
    to have the file open. This lock belongs to a descriptor of its own and is not dropped. Only
    Linux has such locks.

    Args:
        path: The path of the file, which may hold no study.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_study = False
        self._descriptor: int | None = None

    def prepare(self, connection: sqlite3.Connection, record: Any) -> None:
        """Sets that commits of a connection survive a power cut, and that readers never wait."""
        if self.is_study:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                # The statement blocks all writes until its answer is read.
                connection.execute("PRAGMA journal_mode = WAL").fetchall()
            connection.execute(f"PRAGMA wal_autocheckpoint = {_MOST_PAGES}")
        _require_one_name(self.path)
        bound_texts(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA trusted_schema = OFF")
        if self.is_study:
            connection.execute("PRAGMA schema_version").fetchone()  # opens the log
            self.take()
            record.info["files"] = _files_at(self.path)

    def moved(self, connection: Connection) -> str | None:
        """The path of the file or of its log if another one lies there now; None if neither was
        moved."""
        before, now = connection.info.get("files"), _files_at(self.path)
        if before is None or before == now:
            return None
        return self.path if before[0] != now[0] else str(log_of(self.path))

    @property
    def is_taken(self) -> bool:
        return self._descriptor is not None

    def take(self) -> None:
        """Locks the file that lies at the path now."""
        if self._descriptor is not None:
            if os.path.samestat(os.fstat(self._descriptor), os.stat(self.path)):
                self._lock(True)
                return
            self.drop()
        self._descriptor = os.open(self.path, os.O_RDONLY)
        self._lock(True)

    def release(self) -> None:
        """Releases the lock, so that the last connection writes the log back and deletes it."""
        if self._descriptor is not None:
            self._lock(False)

    def drop(self) -> None:
        """Closes the descriptor, and with it all locks of this process."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _lock(self, shared: bool) -> None:
        if sys.platform == "linux" and self._descriptor is not None:
            kind = fcntl.F_RDLCK if shared else fcntl.F_UNLCK
            lock = struct.pack("hhqqi0q", kind, os.SEEK_SET, *_SHARED, 0)
            # Not all file systems have such locks.
            with suppress(OSError):
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, lock)


def _files_at(path: str) -> tuple[tuple[int, int] | None, ...]:
    """The identities of the file at a path and of its log; None for a missing file."""
    found = []
    for each in (path, log_of(path)):
        try:
            status = os.stat(each)
        except OSError:
            found.append(None)
        else:
            found.append((status.st_dev, status.st_ino))
    return tuple(found)


def resolved(path: str) -> str:
    """The path of a file without symbolic links.

    Raises:
        StudyError: The links lead to each other, or the path is a device.
    """
    try:
        found = Path(path).resolve()
    except (RuntimeError, OSError) as error:  # RuntimeError: before Python 3.13
        raise StudyError(f"{path} must lead to a file, got a loop of symbolic links") from error
    if found.exists() and not (found.is_file() or found.is_dir()):
        raise StudyError(f"{found} must be a file, got a device")
    return str(found)


def require_not_cut(path: str) -> None:
    """Raises a BrokenStudyError if a file is empty and was not created just now."""
    try:
        status = os.stat(path)
    except OSError:
        return
    is_old = time.time() - status.st_mtime > _BEGINNING
    # Both times are equal if nothing was ever written to the file.
    was_written = status.st_mtime_ns > status.st_atime_ns
    if stat.S_ISREG(status.st_mode) and not status.st_size and (is_old or was_written):
        raise BrokenStudyError(
            f"{path} is empty, as a study that was cut off is: restore it from a backup, or delete "
            "the file to begin a new study"
        )


def bound_texts(connection: sqlite3.Connection) -> None:
    """Makes texts that are longer than those of any study an error, before they take memory."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)


def _require_one_name(path: str) -> None:
    """Raises a StudyError if a file has another name. Each name would have its own log, and studies
    opened by both names would overwrite each other."""
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        raise StudyError(
            f"{path} must have one name, got a file with {status.st_nlink} (hard links): copy it, "
            "and delete the others"
        )
    if any(folder == path for folder, _ in _mounts(_MOUNTS)):
        raise StudyError(
            f"{path} must not be a mount of a single file, which has another name: mount its folder"
        )


def only_read(path: Path) -> dict[str, Any]:
    """The database and the query of a URL that only reads a file."""
    if not path.is_file():
        raise NoStudyError(f"{path} must be the file of a study, got no file")
    query = {"mode": "ro", "uri": "true"}
    if not log_of(path).exists():
        # No process has the file open. SQLite would make a log that belongs to the user who reads,
        # which could lock out the owner of the study.
        query["immutable"] = "1"
    return {"database": path.as_uri(), "query": query}


def log_of(path: str | Path) -> Path:
    """The path of the log of a file, which has what was committed and is not yet in the file."""
    return Path(f"{path}-wal")


def warn_of_network_file_systems(path: str) -> None:
    """Warns if a file lies on a network file system, where locks fail between machines."""
    kind = _file_system_of(os.path.realpath(path), _MOUNTS)
    if kind in _NETWORK_FILE_SYSTEMS:
        warn(
            f"{path} lies on a network file system ({kind}), where several machines at once would "
            "destroy it: use PostgreSQL, or one machine alone",
            NetworkFileSystemWarning,
            stacklevel=5,
        )


def _file_system_of(path: str, mounts: Path) -> str | None:
    """The kind of the file system of a path; None if it is unknown."""
    found: tuple[str, str | None] = "", None
    above = {str(folder) for folder in (Path(path), *Path(path).parents)}
    for folder, kind in _mounts(mounts):
        # The last of several mounts at one place is the visible one.
        if folder in above and len(folder) >= len(found[0]):
            found = folder, kind
    return found[1]


def _mounts(mounts: Path) -> list[tuple[str, str]]:
    """The folders and kinds of all mounts; empty if they are unknown."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines]
    return [(folder.replace(r"\040", " "), kind) for _, folder, kind, *_ in fields]
