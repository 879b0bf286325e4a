"""The command that copies the file of a study."""

from __future__ import annotations

import argparse
import sqlite3
from contextlib import closing
from pathlib import Path

from botorch_ext.exceptions import StudyError
from botorch_ext.page.overview import read_overviews
from botorch_ext.page.words import counted
from botorch_ext.studies.addresses import url_of


def copy(given: argparse.Namespace) -> str:
    """Copies a file with all of its studies, while other processes may work on them.

    The last events may lie in a log beside the file, so that a copy of the file alone may lack
    them.
    """
    if url_of(given.place).get_backend_name() != "sqlite":
        raise StudyError(f"{given.place} must be a file, got a server, which pg_dump copies")
    source, target = Path(read_overviews(given.place)[0].place), Path(given.target)
    for suffix in ("", "-wal", "-shm", "-journal"):
        if (taken := Path(f"{target}{suffix}")).exists():
            raise StudyError(f"{taken} is there already: name another file")
    if not target.absolute().parent.is_dir():
        raise StudyError(f"{target} must lie in a folder that is there")
    try:
        with (
            closing(sqlite3.connect(f"{source.as_uri()}?mode=rw", uri=True)) as study,
            closing(sqlite3.connect(target)) as new,
        ):
            study.backup(new)
    except sqlite3.Error as error:
        target.unlink(missing_ok=True)
        raise StudyError(f"{source} cannot be copied to {target}: {error}") from error
    copied = read_overviews(target)
    lines = (
        f"copied the study {overview.name!r} with {counted(len(overview.stories), 'trial')} to "
        f"{target}\n"
        for overview in copied
    )
    return "".join(lines)
