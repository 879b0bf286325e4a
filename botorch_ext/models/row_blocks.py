"""Row blocks: the rows of a very wide matrix, in blocks of which only the last one grows."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import Self

import torch
from torch import Tensor

from botorch_ext.models.growing_rows import GrowingRows

# A million candidates in float64 have 67 rows in a block, and 269 blocks at 18,000 observations:
# 134 GiB of rows and less than one block without any, within the 139 GiB of an H200.
_MOST_BYTES = 2**29
_GROWTH = 1.5


class RowBlocks:
    """The rows of a ``*batch x n x width`` matrix; new ones come at the end.

    The first block grows by copies of itself up to a number of bytes. From there on nothing is
    copied: a new block of that size is opened. Copies share rows as those of `GrowingRows` do.

    Args:
        like: Gives dtype and device.
        shape: ``*batch x capacity x width``; the capacity is what is asked for at first.
    """

    def __init__(self, like: Tensor, shape: tuple[int, ...]) -> None:
        *batch, capacity, width = shape
        row_bytes = torch.Size([*batch, width]).numel() * like.element_size()
        # Of a block.
        self.most_rows = max(_MOST_BYTES // max(row_bytes, 1), 1)
        buffer = like.new_empty(*batch, min(capacity, self.most_rows), width)
        self._blocks = [GrowingRows(buffer, _GROWTH, self.most_rows)]

    @property
    def num_rows(self) -> int:
        return sum(block.num_rows for block in self._blocks)

    @property
    def values(self) -> Tensor:
        """All rows."""
        return self.block(slice(0, self.num_rows))

    def block(self, rows: slice, columns: slice = slice(None)) -> Tensor:
        """Some rows and columns, not to be changed in place."""
        if len(self._blocks) == 1:
            return self._blocks[0].block(rows, columns)
        pieces = [piece for _, piece in self.pieces(rows, columns)]
        return pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-2)

    def pieces(self, rows: slice, columns: slice = slice(None)) -> Iterator[tuple[slice, Tensor]]:
        """What `block` is made of: which rows, and their entries; one piece at least."""
        for block, own, part in self._parts(rows.start, rows.stop):
            yield part, block.block(own, columns)

    def combined(self, weights: Tensor, start: int) -> Tensor:
        """``weights @ rows`` of the rows from ``start`` on: ``*batch x m x n'`` to ``*batch x m x
        width``."""
        if len(self._blocks) == 1:
            return self._blocks[0].combined(weights, start)
        parts = self._parts(start, start + weights.shape[-1])
        block, own, part = next(parts)
        total = block.combined(weights[..., : part.stop - start], own.start)
        for block, own, part in parts:
            total += block.combined(weights[..., part.start - start : part.stop - start], own.start)
        return total

    def append(self, rows: Tensor) -> None:
        """Adds ``*batch x m x width`` rows."""
        last = self._blocks[-1]
        room = self.most_rows - last.num_rows
        if rows.shape[-2] <= room:
            last.append(rows)
            return
        if room:
            last.append(rows[..., :room, :])
        self._open(rows)
        self.append(rows[..., room:, :])

    def truncate(self, num_rows: int) -> None:
        """Forgets all rows from ``num_rows`` on."""
        while len(self._blocks) > 1 and self.num_rows - self._blocks[-1].num_rows >= num_rows:
            self._blocks.pop()
        last = self._blocks[-1]
        last.truncate(last.num_rows - (self.num_rows - num_rows))

    def fork(self) -> Self:
        """A copy that goes its own way from here."""
        new = copy(self)
        new._blocks = [block.fork() for block in self._blocks]
        return new

    def keep(self, index: int | list[int]) -> None:
        """Forgets the other members of a batch with one dimension; one alone loses it. Their rows
        are freed when the first block grows, or another one is opened."""
        for block in self._blocks:
            block.keep(index)

    def _open(self, like: Tensor) -> None:
        for block in self._blocks:
            block.shed()
        shape = *like.shape[:-2], self.most_rows, like.shape[-1]
        self._blocks.append(GrowingRows(like.new_empty(shape), _GROWTH, self.most_rows))

    def _parts(self, start: int, stop: int) -> Iterator[tuple[GrowingRows, slice, slice]]:
        """The blocks that some rows lie in, one at least: which rows of the block, and of all."""
        first = 0
        for block in self._blocks:
            end = first + block.num_rows
            if end > start or block is self._blocks[-1]:
                part = slice(max(start, first), min(stop, end))
                yield block, slice(part.start - first, part.stop - first), part
                if end >= stop:
                    return
            first = end
