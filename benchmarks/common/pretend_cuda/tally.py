"""Tally: what a piece of code would launch, wait for and move on a GPU, by line."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import torch
from torch import Tensor

import botorch_ext
from benchmarks.common.pretend_cuda.rules import Operation

_LIBRARY = str(Path(botorch_ext.__file__).parent) + "/"
_OWN, _TORCH = str(Path(__file__).parent) + "/", str(Path(torch.__file__).parent) + "/"


class OverBudget(AssertionError):
    """More launches, stops or uploads than allowed, with the lines that caused them."""


@dataclass
class Tally:
    """What was counted.

    Args:
        by_line: Whether to count launches by line too, which takes time.

    Attributes:
        launches: Of kernels, weighted.
        views: Operations without a kernel.
        operations: How often each operation with a kernel ran.
        lines: Launches by line, if asked for.
        stops: How often the host waited, by kind and line. An upload from ordinary memory is one.
        uploads: How often something went from host to device, by kind and line.
        nondeterministic: Operations whose last digits differ between runs, by name and line.
        num_bytes: Read and written by kernels.
        cdist_entries: Distances that `torch.cdist` was asked for, other than by products.
        solves: The shapes of both arguments of each triangular solve.
    """

    by_line: bool = False
    launches: int = 0
    views: int = 0
    operations: Counter[str] = field(default_factory=Counter)
    lines: Counter[str] = field(default_factory=Counter)
    stops: Counter[str] = field(default_factory=Counter)
    uploads: Counter[str] = field(default_factory=Counter)
    nondeterministic: Counter[str] = field(default_factory=Counter)
    num_bytes: int = 0
    cdist_entries: int = 0
    solves: list[tuple[torch.Size, torch.Size]] = field(default_factory=list)

    @property
    def num_stops(self) -> int:
        """How often the host waited."""
        return self.stops.total()

    @property
    def num_uploads(self) -> int:
        """How often something went from host to device."""
        return self.uploads.total()


@dataclass
class _Watch:
    tally: Tally
    forbidden: str = ""


_watches: list[_Watch] = []


def watched() -> bool:
    """Whether anybody counts."""
    return bool(_watches)


def count_launches(name: str, launches: int) -> None:
    """Adds an operation; views have no launches."""
    for watch in _watches:
        tally = watch.tally
        if not launches:
            tally.views += 1
            continue
        tally.launches += launches
        tally.operations[name] += 1
        if tally.by_line:
            tally.lines[cause()] += launches


def count_operation(
    operation: Operation, launches: int, inputs: list[Tensor], outputs: list[Tensor]
) -> None:
    """Adds an operation with what it read and wrote, all on the host."""
    if not _watches:
        return
    count_launches(operation.name, launches)
    if operation.stops:
        count_stop(operation.name)
    num_bytes = 0
    if launches:
        read = outputs if operation.picks else inputs
        num_bytes = sum(map(_extent, read)) + sum(map(_extent, outputs))
    for watch in _watches:
        tally = watch.tally
        tally.num_bytes += num_bytes
        if operation.nondeterministic:
            tally.nondeterministic[f"{operation.name} {cause()}"] += 1
        if operation.name == "_cdist_forward":
            tally.cdist_entries += outputs[0].numel()
        if operation.name == "linalg_solve_triangular":
            tally.solves.append((inputs[0].shape, inputs[1].shape))


def count_stop(kind: str) -> None:
    """Adds a wait of the host.

    Raises:
        OverBudget: Within `no_stops`.
    """
    _count("stops", kind, "stop the host")


def count_upload(kind: str, *, waits: bool = True) -> None:
    """Adds a copy from host to device, for which the host waits or not.

    Raises:
        OverBudget: Within `no_stops`.
    """
    if waits:
        count_stop(kind)
    _count("uploads", kind, "upload")


def _count(counter: str, kind: str, fault: str) -> None:
    if not _watches:
        return
    where = f"{kind} {cause()}"
    for watch in _watches:
        getattr(watch.tally, counter)[where] += 1
        if watch.forbidden:
            raise OverBudget(f"{watch.forbidden} must not {fault}, got {where}")


@contextmanager
def counting(tally: Tally | None = None) -> Iterator[Tally]:
    """Counts what happens within.

    Args:
        tally: What to add to; None starts a new one.

    Returns:
        What was counted so far, in a context manager.
    """
    watch = _Watch(Tally() if tally is None else tally)
    _watches.append(watch)
    try:
        yield watch.tally
    finally:
        _watches.remove(watch)


@contextmanager
def no_stops(what: str = "this") -> Iterator[Tally]:
    """Raises `OverBudget` at the first upload or wait within, naming its line."""
    with counting() as tally:
        _watches[-1].forbidden = what
        yield tally


@contextmanager
def budget(
    *, launches: float | None = None, stops: float | None = None, uploads: float | None = None
) -> Iterator[Tally]:
    """Raises `OverBudget` at the end if there were more, naming the lines with most of them.

    Args:
        launches: At most so many.
        stops: At most so many.
        uploads: At most so many.
    """
    with counting(Tally(by_line=launches is not None)) as tally:
        yield tally
    for what, allowed, reached, lines in (
        ("launches", launches, tally.launches, tally.lines),
        ("stops", stops, tally.num_stops, tally.stops),
        ("uploads", uploads, tally.num_uploads, tally.uploads),
    ):
        if allowed is not None and reached > allowed:
            most = "; ".join(f"{count} {where}" for where, count in lines.most_common(8))
            raise OverBudget(f"{what} must be at most {allowed:g}, got {reached}: {most}")


def cause() -> str:
    """The line of the library that is running, or, where none is, of whoever calls PyTorch."""
    frame: FrameType | None = sys._getframe(1)
    outside = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_LIBRARY):
            return f"{file.removeprefix(_LIBRARY)}:{frame.f_lineno}"
        if not outside and not file.startswith((_OWN, _TORCH)) and "contextlib" not in file:
            outside = f"{'/'.join(file.split('/')[-2:])}:{frame.f_lineno}"
        frame = frame.f_back
    return outside


def _extent(x: Tensor) -> int:
    """Bytes; what is expanded is read once."""
    count = x.element_size()
    for size, stride in zip(x.shape, x.stride(), strict=True):
        if stride != 0:
            count *= size
    return count
