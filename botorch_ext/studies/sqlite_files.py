"""SQLite files: how they are prepared, held and found, and where they should not lie."""

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

# Where SQLite locks a file for as long as it is open: offset and length.
_SHARED = 0x40000002, 510
# Pages of the log that a copy of the file alone may lack. Each event writes one or two; with fewer
# the fsyncs of carrying them over would show.
_MOST_PAGES = 20
_MOUNTS = Path("/proc/self/mounts")
# Bytes of the longest text that is read or written: descriptions may hold all points of a set.
_LONGEST_TEXT = 2**28
# Seconds after which an empty file is no study that is just begun.
_BEGINNING = 60.0
_NETWORK_FILE_SYSTEMS = (
    *("afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "smb3", "smbfs"),
)


class Hold:
    """A file that a process has open, and a lock on it as of one more process that has it open.

    Whoever closes a descriptor of a file, as after a copy, drops all locks of his process on it.
    Another process would then take itself for the last one, and delete the log. This lock belongs
    to a descriptor of its own and stays; only Linux has such locks.

    Args:
        path: Of the file, which may be none of a study.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.is_study = False
        self._descriptor: int | None = None

    def prepare(self, connection: sqlite3.Connection, record: Any) -> None:
        """Whatever a connection commits survives a power cut; those who read wait for nobody."""
        if self.is_study:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                # Until its answer is read it is under way, and keeps all from being written.
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
        """What of a connection no longer lies at its path: the file, or its log; None where both
        do."""
        before, now = connection.info.get("files"), _files_at(self.path)
        if before is None or before == now:
            return None
        return self.path if before[0] != now[0] else str(log_of(self.path))

    @property
    def is_taken(self) -> bool:
        return self._descriptor is not None

    def take(self) -> None:
        """Locks the file, and no other one."""
        if self._descriptor is not None:
            if os.path.samestat(os.fstat(self._descriptor), os.stat(self.path)):
                self._lock(True)
                return
            self.drop()
        self._descriptor = os.open(self.path, os.O_RDONLY)
        self._lock(True)

    def release(self) -> None:
        """Lets the last connection carry over the log and delete it."""
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
            # Not all file systems have it.
            with suppress(OSError):
                fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, lock)


def _files_at(path: str) -> tuple[tuple[int, int] | None, ...]:
    """Which file lies at a path and which is its log; None for one that is not there."""
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
        StudyError: Links that lead to each other, or a device.
    """
    try:
        found = Path(path).resolve()
    except (RuntimeError, OSError) as error:  # RuntimeError: before Python 3.13
        raise StudyError(f"{path} must lead to a file, got a loop of symbolic links") from error
    if found.exists() and not (found.is_file() or found.is_dir()):
        raise StudyError(f"{found} must be a file, got a device")
    return str(found)


def require_not_cut(path: str) -> None:
    """A BrokenStudyError where a file is empty, and was not created just now."""
    try:
        status = os.stat(path)
    except OSError:
        return
    is_old = time.time() - status.st_mtime > _BEGINNING
    # Both times are equal in a file that nothing was ever written to.
    was_written = status.st_mtime_ns > status.st_atime_ns
    if stat.S_ISREG(status.st_mode) and not status.st_size and (is_old or was_written):
        raise BrokenStudyError(
            f"{path} is empty, as a study that was cut off is: restore it from a backup, or delete "
            "the file to begin a new study"
        )


def bound_texts(connection: sqlite3.Connection) -> None:
    """Longer texts than any study has are an error, and take no memory."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_TEXT)


def _require_one_name(path: str) -> None:
    """A StudyError where a file has another name: each would have a log of its own, and studies
    opened by both overwrite each other."""
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
    """Where a file is found to be looked at."""
    if not path.is_file():
        raise NoStudyError(f"{path} must be the file of a study, got no file")
    query = {"mode": "ro", "uri": "true"}
    if not log_of(path).exists():
        # Nobody has it open. SQLite would make a log, which would be that of the user who looks and
        # could lock out the one whose study it is.
        query["immutable"] = "1"
    return {"database": path.as_uri(), "query": query}


def log_of(path: str | Path) -> Path:
    """The log of a file: what was committed and is not in the file yet."""
    return Path(f"{path}-wal")


def warn_of_network_file_systems(path: str) -> None:
    """Warns where locks do not work between machines."""
    kind = _file_system_of(os.path.realpath(path), _MOUNTS)
    if kind in _NETWORK_FILE_SYSTEMS:
        warn(
            f"{path} lies on a network file system ({kind}), where several machines at once would "
            "destroy it: use PostgreSQL, or one machine alone",
            NetworkFileSystemWarning,
            stacklevel=5,
        )


def _file_system_of(path: str, mounts: Path) -> str | None:
    """The kind of the file system that a path lies on; None where the system does not say."""
    found: tuple[str, str | None] = "", None
    above = {str(folder) for folder in (Path(path), *Path(path).parents)}
    for folder, kind in _mounts(mounts):
        # Of mounts at one place the last one is seen.
        if folder in above and len(folder) >= len(found[0]):
            found = folder, kind
    return found[1]


def _mounts(mounts: Path) -> list[tuple[str, str]]:
    """Where file systems are, and their kinds; none where the system does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines]
    return [(folder.replace(r"\040", " "), kind) for _, folder, kind, *_ in fields]
