"""SQLite files: how they are prepared, found to be looked at, and where they should not lie."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from warnings import warn

from botorch_ext.exceptions import NetworkFileSystemWarning, NoStudyError

_NETWORK_FILE_SYSTEMS = (
    *("afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "gpfs", "lustre"),
    *("ncpfs", "nfs", "nfs4", "smb3", "smbfs"),
)


def prepare_file(connection: Any, _: Any) -> None:
    """Whatever was committed survives a power cut, and those who read wait for nobody."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode")
    if cursor.fetchone()[0] != "wal":
        cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA trusted_schema = OFF")
    cursor.close()


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
    kind = _file_system_of(os.path.realpath(path), Path("/proc/self/mounts"))
    if kind in _NETWORK_FILE_SYSTEMS:
        warn(
            f"{path} lies on a network file system ({kind}), where several machines at once would "
            "destroy it: use PostgreSQL, or one machine alone",
            NetworkFileSystemWarning,
            stacklevel=5,
        )


def _file_system_of(path: str, mounts: Path) -> str | None:
    """The kind of the file system that a path lies on; None where the system does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return None
    found: tuple[str, str | None] = "", None
    for line in lines:
        _, folder, kind, *_ = line.split()
        folder = folder.replace(r"\040", " ")
        # Of mounts at one place the last one is seen.
        if Path(path).is_relative_to(folder) and len(folder) >= len(found[0]):
            found = folder, kind
    return found[1]
