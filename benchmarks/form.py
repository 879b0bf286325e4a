"""The form of the library: what there is to read, and what one ask and one tell go through.

    python -m benchmarks.form [--smoke]

Counts lines, lines of code, files and classes of each room, and the rooms that it imports. Traces
one ask and one tell of GP-UCB on a set and in a box: calls, files, changes of file, and tensor
operations. Writes form.md.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import botorch_ext as bx
from benchmarks.common.command_line import parse_options
from benchmarks.common.kernels import matern
from benchmarks.common.tables import Row, markdown_table

_PACKAGE = Path(bx.__file__).parent


@dataclass
class _Room:
    """What a folder, or the files beside the folders, hold.

    Args:
        lines: The number of lines.
        code: The number of lines without blank lines, comments and docstrings.
        files: The number of files.
        classes: The number of classes.
        imports: The other rooms that it imports.
    """

    lines: int = 0
    code: int = 0
    files: int = 0
    classes: int = 0
    imports: set[str] = field(default_factory=set)

    def add(self, path: Path, own: str) -> None:
        """Counts one more file."""
        text = path.read_text()
        tree = ast.parse(text)
        self.files += 1
        self.lines += len(text.splitlines())
        self.code += len(_lines_of_code(text, tree))
        for node in ast.walk(tree):
            self.classes += isinstance(node, ast.ClassDef)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("botorch_ext."):
                self.imports.add(_room_of(_PACKAGE.joinpath(*node.module.split(".")[1:])))  # pyright: ignore
        self.imports.discard(own)


def _room_of(path: Path) -> str:
    """The folder below the package that a path lies in; "beside the rooms" for other files."""
    first = path.relative_to(_PACKAGE).parts[0]
    return first if (_PACKAGE / first).is_dir() else "beside the rooms"


def _lines_of_code(text: str, tree: ast.Module) -> set[int]:
    """The numbers of the lines that are neither blank nor part of a comment or docstring."""
    kept = {
        number
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.strip().startswith("#")
    }
    for node in ast.walk(tree):
        match node:
            case ast.Expr(ast.Constant(str())):
                kept -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return kept


def rooms() -> dict[str, _Room]:
    """The rooms of the package by name."""
    found: dict[str, _Room] = {}
    for path in sorted(_PACKAGE.rglob("*.py")):
        own = _room_of(path)
        found.setdefault(own, _Room()).add(path, own)
    return found


class _Operations(TorchDispatchMode):
    """Counts tensor operations."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.number += 1
        return func(*args, **(kwargs or {}))


def _traced(what: str, act: Callable[[], Any], again: Callable[[], Any]) -> Row:
    """The calls of functions of the library, the files that they lie in, how often a call leads
    from one file to another, and the tensor operations, which are counted when it happens again."""
    files: list[str] = []
    changes = 0

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal changes
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(_PACKAGE)):
            files.append(file)
            caller = frame.f_back
            changes += caller is not None and caller.f_code.co_filename != file

    sys.setprofile(profile)
    try:
        act()
    finally:
        sys.setprofile(None)
    with _Operations() as operations:
        again()
    counts = {"calls": len(files), "files": len(set(files)), "changes of file": changes}
    return {"what": what} | counts | {"tensor operations": operations.number}


def _traces(where: str, domain: bx.Box | bx.FiniteSet, num_trials: int) -> list[Row]:
    """An ask and a tell after so many trials."""
    strategy = bx.algorithms.gp_ucb(domain, matern(0.2), noise_variance=0.01, width=2.0)
    for _ in range(num_trials):
        trial = strategy.ask()
        strategy.tell(trial, float(trial.x.sum().sin()))
    twin, id = strategy.clone(), num_trials
    return [
        _traced(f"ask {where}", strategy.ask, twin.ask),
        _traced(f"tell {where}", lambda: strategy.tell(id, 0.3), lambda: twin.tell(id, 0.3)),
    ]


def main(argv: list[str] | None = None) -> None:
    """Counts, traces, prints and writes."""
    options = parse_options("form", "The form of the library.", argv)
    torch.set_num_threads(1)
    found = rooms()
    table: list[Row] = [
        {
            "room": name,
            "lines": room.lines,
            "code": room.code,
            "files": room.files,
            "classes": room.classes,
            "imports rooms": len(room.imports),
        }
        for name, room in found.items()
    ]
    columns = list(table[0])[1:]
    table.append({"room": "all"} | {name: sum(int(row[name]) for row in table) for name in columns})  # pyright: ignore
    num_trials = 3 if options.smoke else 100
    grid = torch.cartesian_prod(*2 * [torch.linspace(0, 1, 50, dtype=torch.float64)])
    traces = _traces("on a set", bx.FiniteSet(grid), num_trials)
    traces += _traces("in a box", bx.Box([[0.0, 0.0], [1.0, 1.0]]), num_trials)
    text = (
        "# The form of the library\n\n`python -m benchmarks.form`. Code is without blank lines, "
        f"comments and docstrings.\n\n{markdown_table(table)}\n\n"
        "One ask and one tell of GP-UCB after 100 trials, on 2,500 points and in a box with d = 2. "
        "Calls are of functions of the library.\n\n"
        f"{markdown_table(traces)}\n"
    )
    print(text)
    (options.output / "form.md").write_text(text)


if __name__ == "__main__":
    main()
