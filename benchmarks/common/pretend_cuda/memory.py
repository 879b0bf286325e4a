"""Memory that tensors on the pretended device hold."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.common.pretend_cuda.tensor import BIRTHS, PretendTensor


class LivingBytes:
    """Bytes of the storages that some tensor on the device holds.

    Attributes:
        before: At the start.
        now: At present.
        peak: At most.
    """

    def __init__(self) -> None:
        self._owners: Counter[int] = Counter()
        self.now = 0
        self.peak = 0
        for x in gc.get_objects():
            if type(x) is PretendTensor:
                self.add(x)
        self.before = self.now

    @property
    def growth(self) -> int:
        """By how much the peak lies above the start."""
        return self.peak - self.before

    def add(self, x: PretendTensor) -> None:
        """A tensor that lives, until it does not."""
        storage = x.host.untyped_storage()
        place, size = storage.data_ptr(), storage.nbytes()
        if not size:
            return
        if not self._owners[place]:
            self.now += size
            self.peak = max(self.peak, self.now)
        self._owners[place] += 1
        weakref.finalize(x, self._remove, place, size).atexit = False

    def _remove(self, place: int, size: int) -> None:
        self._owners[place] -= 1
        if not self._owners[place]:
            self.now -= size


@contextmanager
def following_memory() -> Iterator[LivingBytes]:
    """Follows the bytes of the tensors on the device, but for buffers inside of operations."""
    living = LivingBytes()
    BIRTHS.append(living.add)
    try:
        yield living
    finally:
        BIRTHS.remove(living.add)
