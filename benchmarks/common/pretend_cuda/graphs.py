"""Graphs of the pretended device: what is recorded, and not done, can be done again and again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, NamedTuple
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks.common.pretend_cuda.tally import Tally, count_replay, count_stop, no_stops
from benchmarks.common.pretend_cuda.tensor import RECORDERS


class _Recorded(NamedTuple):
    func: Any
    args: Sequence[Any]
    kwargs: dict[str, Any]
    outputs: list[Tensor]


class PretendGraph:
    """Stands for `torch.cuda.CUDAGraph`.

    As on CUDA, numbers of Python are those of the recording, tensors are places, what is recorded
    is not done, and a stop or an upload while recording is an error.
    """

    def __init__(self) -> None:
        self._recorded: list[_Recorded] = []
        self._tally = Tally()
        # Storages that were there before, with what they held.
        self._before: dict[int, tuple[torch.UntypedStorage, torch.UntypedStorage]] = {}
        self._made: set[int] = set()

    def replay(self) -> None:
        """Does it all again."""
        for func, args, kwargs, outputs in self._recorded:
            for old, new in zip(outputs, _tensors(func(*args, **kwargs)), strict=True):
                if old.data_ptr() != new.data_ptr():  # else written in place
                    old.copy_(new)
        count_replay(self._tally)

    def capture_begin(self, pool: object = None, capture_error_mode: str = "global") -> None:
        """Records from here on."""
        self._recording = ExitStack()
        self._tally = self._recording.enter_context(no_stops("a CUDA graph"))
        RECORDERS.append(self)

    def capture_end(self) -> None:
        """Ends the recording, and takes back what was done."""
        RECORDERS.remove(self)
        self._recording.close()
        for storage, held in self._before.values():
            storage.copy_(held)
        for _, _, _, outputs in self._recorded:
            for x in outputs:
                if x.is_floating_point() and x.untyped_storage().data_ptr() in self._made:
                    x.fill_(torch.nan)

    def run(
        self, launches: int, mutates: bool, func: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Does an operation, and remembers it unless it is a view."""
        inputs = _tensors((*args, *kwargs.values()))
        if mutates:
            for x in inputs:
                self._keep(x.untyped_storage())
        result = func(*args, **kwargs)
        if launches:
            outputs = _tensors(result)
            read = {x.untyped_storage().data_ptr() for x in inputs}
            places = {x.untyped_storage().data_ptr() for x in outputs}
            self._made |= places - read
            # The tensors themselves may get another shape later, in place.
            args, kwargs = _aliases(args), {name: _aliases(x) for name, x in kwargs.items()}
            self._recorded.append(_Recorded(func, args, kwargs, _aliases(outputs)))
        return result

    def _keep(self, storage: torch.UntypedStorage) -> None:
        place = storage.data_ptr()
        if place not in self._made and place not in self._before:
            self._before[place] = storage, storage.clone()


class _Stream:
    def __init__(self, device: object = None) -> None:
        pass

    def wait_stream(self, other: _Stream) -> None:
        pass

    def synchronize(self) -> None:
        count_stop("synchronize")


def graphs_pretended() -> AbstractContextManager[Any]:
    """Patches of ``torch.cuda``: it is there, with graphs and streams, while they last."""
    patches = ExitStack()
    for name, pretended in {
        "is_available": lambda: True,
        "Stream": _Stream,
        "current_stream": _Stream,
        "stream": lambda stream: nullcontext(),
        "CUDAGraph": PretendGraph,
    }.items():
        patches.enter_context(patch(f"torch.cuda.{name}", pretended))
    return patches


def _tensors(values: Any) -> list[Tensor]:
    """The tensors among values, and in lists among them."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, tuple | list):
        return [x for value in values for x in _tensors(value)]
    return []


def _aliases(values: Any) -> Any:
    """The same with other tensors of the same storages."""
    if isinstance(values, Tensor):
        return values.detach()
    if isinstance(values, tuple | list):
        return [_aliases(value) for value in values]
    return values
