"""The tests of what was touched: `python -m tests.touched` prints their paths.

A test file stands for itself, a module of the package for the tests of its room (the folder of the
same name, or ``test_<module>.py``), and a page or the README for the tests of their examples.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]


def paths_of_tests(paths: Iterable[str]) -> list[str]:
    """The tests of changed files, as paths below the root of the repository."""
    found = {test for path in paths for test in _paths_of_tests(Path(path))}
    folders = {test for test in found if not test.suffix}
    return sorted(str(t) for t in found if not any(f in t.parents for f in folders))


def _paths_of_tests(path: Path) -> list[Path]:
    if path.parts[:2] == ("tests", "wrong_calls"):
        return [Path("tests/wrong_calls")]
    if path.parts[0] == "tests":
        if path.name.startswith("test_"):
            return [path] if (ROOT / path).exists() else []
        return [path.parent] if len(path.parts) > 2 else []
    if path.suffix == ".md":
        return [Path("tests/test_readme.py")]
    if path.parts[0] == "benchmarks":
        return [Path("tests/benchmarks")]
    if path.parts[0] != "botorch_ext" or path.suffix != ".py":
        return []
    if path.name == "__init__.py":
        return [Path("tests/test_layering.py"), Path("tests/test_names_in_words.py")]
    below = Path(*path.parts[1:])
    if below.parts[0] == "integrations":
        return [Path("tests/hosts")]
    alone = Path("tests", below.parent, f"test_{below.stem}.py")
    if (ROOT / alone).exists():
        return [alone]
    room = Path("tests", below.parent)
    while not (ROOT / room).is_dir():
        room = room.parent
    # What lies at the top of the package is used everywhere: the laws of all methods see it.
    return [room if room != Path("tests") else Path("tests/laws")]


def _changed() -> list[str]:
    """Files that differ from the main branch, those that git does not know yet included."""
    base = _git("merge-base", "HEAD", "main") or ["HEAD"]
    return [
        *_git("diff", "--name-only", base[0]),
        *_git("ls-files", "--others", "--exclude-standard"),
    ]


def _git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    sys.stdout.write(" ".join(paths_of_tests(_changed())))
