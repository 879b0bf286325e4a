"""The tests of what was touched: `python -m tests.touched` prints their paths.

A test file stands for itself, a module of the package for the tests of its room, and a page or the
README for the tests of the documentation.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[1]

# Where the tests of a room lie, if not in the folder of its name in tests/ alone.
ELSEWHERE = {
    "algorithms": ["strategies", "wrong_calls"],
    "analysis": ["formulas"],
    "commands": ["commands", "tables"],
    "command_line.py": ["commands"],
    "delays": ["formulas"],
    "integrations": ["hosts"],
    "kernels": ["kernels", "kernel_functions"],
    "parameters": ["domains", "tables"],
    "search": ["search", "regions", "robust"],
    "strategies": ["strategies", "predictions"],
    "studies": ["studies", "tables"],
    "testing": ["laws"],
    "widths": ["formulas"],
}
# What lies at the top of the package is used everywhere: the laws of all methods see it.
EVERYWHERE = ["laws"]


def paths_of_tests(paths: Iterable[str]) -> list[str]:
    """The tests of changed files, as paths below the root of the repository."""
    found = {test for path in paths for test in _paths_of_tests(Path(path))}
    folders = {test for test in found if not test.suffix}
    return sorted(str(t) for t in found if not any(f in t.parents for f in folders))


def _paths_of_tests(path: Path) -> list[Path]:
    tests = Path("tests")
    if path.parts[0] == "tests":
        if path.name.startswith("test_"):
            return [path] if (ROOT / path).exists() else []
        return [path.parent] if len(path.parts) > 2 else []
    if path.suffix == ".md":
        return [tests / "documentation"]
    if path.parts[0] == "benchmarks":
        return [tests / "benchmarks"]
    if path.parts[0] != "botorch_ext" or path.suffix != ".py":
        return []
    if path.name == "__init__.py":
        return [tests / "test_package.py"]
    room = path.parts[1]
    same = [room] if (ROOT / tests / room).is_dir() else EVERYWHERE
    return [tests / name for name in ELSEWHERE.get(room, same)]


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
