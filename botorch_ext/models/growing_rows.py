"""Matrices that grow by rows; copies share the rows until one of the copies changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.kernels.batching import members_of
from botorch_ext.models.triangular import solve_triangular
from botorch_ext.state import shallow

# The most own rows of a copy before it gets its own buffer.
_MOST_LATE = 4


class GrowingRows:
    """A matrix, ``*batch x n x width``, to which rows are appended.

    A `fork` reads the rows that it shares with its original from the buffer of the original. Shared
    rows are never changed in place: they are copied first. New rows of the original go into its
    buffer; new rows of a fork are stored beside the buffer.

    Args:
        buffer: The buffer, ``*batch x capacity x width``.
        growth: The factor by which a full buffer grows.
    """

    def __init__(self, buffer: Tensor, growth: float) -> None:
        self.num_rows = 0
        self._buffer = buffer
        self._growth = growth
        # The remaining members of a batch with one dimension; None for all.
        self._members: list[int] | None = None
        self._is_lent = False
        # The own rows of a fork, which follow those in the buffer, ``*batch x r x width``.
        self._late: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Stored and deeply copied rows have only the remaining members. They compute exactly as
        # before, to the last bit.
        state = vars(self) | {"_is_lent": False}
        if self._members is not None:
            state |= {"_buffer": self._buffer[self._members]}
            state |= {"_members": list(range(len(self._members)))}
        elif self._holds_others:
            state["_buffer"] = self._buffer.clone()
        return state

    @property
    def batch_shape(self) -> torch.Size:
        if self._members is None:
            return self._buffer.shape[:-2]
        return torch.Size([len(self._members)])

    @property
    def capacity(self) -> int:
        """The number of rows that fit the buffer."""
        return self._buffer.shape[-2]

    @property
    def values(self) -> Tensor:
        """All rows, ``*batch x n x width``."""
        return self.block(slice(0, self.num_rows), self._columns)

    @property
    def _columns(self) -> slice:
        return slice(None)

    @property
    def _num_shared(self) -> int:
        return self.num_rows if self._late is None else self.num_rows - self._late.shape[-2]

    def block(self, rows: slice, columns: slice = slice(None)) -> Tensor:
        """Some rows and columns, which must not be changed in place.

        Returns:
            ``*batch x m x k``.
        """
        shared = self._num_shared
        if self._late is None or rows.stop <= shared:
            return self._buffer[(*self._batch_index, rows, columns)]
        late = self._late[..., max(rows.start - shared, 0) : rows.stop - shared, columns]
        if rows.start >= shared:
            return late
        early = self._buffer[(*self._batch_index, slice(rows.start, shared), columns)]
        return torch.cat([pad(early, (0, late.shape[-1] - early.shape[-1])), late], dim=-2)

    def combined(self, weights: Tensor, start: int) -> Tensor:
        """Weighted sums of the rows from ``start`` on.

        Args:
            weights: The weights, ``*batch x m x n'``.
            start: The first row.

        Returns:
            The product of the weights and the rows, ``*batch x m x width``.
        """
        stop, shared = start + weights.shape[-1], self._num_shared
        if stop > shared:
            split = max(shared - start, 0)
            late = weights[..., split:] @ self.block(slice(start + split, stop))
            return late + self.combined(weights[..., :split], start) if split else late
        rows = self._buffer[..., start:stop, :]
        if self._members is None:
            return weights @ rows
        return torch.stack([weights[i] @ rows[j] for i, j in enumerate(self._members)])

    def append(self, rows: Tensor) -> None:
        """Append rows.

        Args:
            rows: The rows, ``*batch x m x width``.
        """
        n, m = self.num_rows, rows.shape[-2]
        if self._late is not None or n + m > self._buffer.shape[-2]:
            if self._has_room_beside(m):
                self._add_beside(rows)
                return
            vars(self).update(vars(self._owned(n + m)))
        self._buffer[(*self._batch_index, slice(n, n + m), slice(None))] = rows
        self.num_rows = n + m

    def truncate(self, num_rows: int) -> None:
        """Remove all rows from ``num_rows`` on."""
        if self._is_lent or self._late is not None:
            members = self._members
            if self._late is None:
                self.num_rows = num_rows  # so that only the remaining rows are copied
            vars(self).update(vars(self._owned()))
            if members is not None:  # then rows compute exactly as in a buffer that is not shared
                self._members = list(range(len(members)))
        self.num_rows = num_rows

    def map(self, function: Callable[[Tensor], Tensor]) -> None:
        """Replace the buffer, for example when it moves to another device or dtype."""
        if self._late is not None:
            vars(self).update(vars(self._owned()))
        buffer = function(self._buffer)
        self._is_lent = self._is_lent and buffer is self._buffer
        self._buffer = buffer

    # --- copies -----------------------------------------------------------------------------------

    def fork(self) -> Self:
        """An independent copy, which shares the present rows."""
        new = shallow(self)
        if self._late is None:
            self._is_lent, new._is_lent = True, False
            new._late = self.block(slice(self.num_rows, self.num_rows)).clone()
        return new

    def successor(self) -> Self:
        """A copy that takes the place of this matrix. Its new rows go into the same buffer, behind
        the present rows, which stay as they are; so only one successor may be used."""
        new = shallow(self)
        new._is_lent = True
        return new

    def keep(self, index: int | list[int]) -> None:
        """Keep some members of a batch with one dimension; the rows of the others are freed when
        the buffer grows.

        Args:
            index: The position of one member, which loses the batch dimension, or positions.
        """
        places = range(len(self._buffer)) if self._members is None else self._members
        if isinstance(index, int):
            self._buffer, self._members = self._buffer[places[index]], None
        else:
            self._members = [places[i] for i in index]
        if self._late is not None:
            self._late = members_of(self._late, index)

    def _shed(self) -> None:
        """Free the rows of the other members."""
        if self._members is not None or self._holds_others:
            vars(self).update(vars(self._owned()))

    @property
    def _holds_others(self) -> bool:
        """Whether the buffer is only a part of its storage."""
        return self._buffer.untyped_storage().nbytes() > self._buffer.nbytes

    # --- room -------------------------------------------------------------------------------------

    @property
    def _batch_index(self) -> tuple[Any, ...]:
        return (...,) if self._members is None else (self._members,)

    def _has_room_beside(self, num_rows: int) -> bool:
        """Whether a fork may store so many rows beside the buffer."""
        return self._late is not None and self._late.shape[-2] + num_rows <= _MOST_LATE

    def _add_beside(self, rows: Tensor) -> None:
        late: Any = self._late
        self._late = torch.cat([pad(late, (0, rows.shape[-1] - late.shape[-1])), rows], dim=-2)
        self.num_rows += rows.shape[-2]

    def _owned(self, num_rows: int = 0) -> Self:
        """A copy with its own buffer for so many rows, which has only the remaining members."""
        n, capacity = self.num_rows, self.capacity
        if max(num_rows, n) > capacity:
            capacity = max(num_rows, n, int(self._growth * capacity))
            capacity = -(-capacity // 32) * 32  # so that rows stay aligned
        new = shallow(self)
        new._buffer = self._room((*self.batch_shape, capacity, self._buffer.shape[-1]))
        # One part after the other, so that no third copy of all rows exists meanwhile.
        shared = slice(0, self._num_shared)
        width = self._buffer[..., self._columns].shape[-1]
        for own, other in [(..., ...)] if self._members is None else enumerate(self._members):
            new._buffer[own, shared, :width] = self._buffer[other, shared, :width]
        if self._late is not None:
            new._buffer[..., shared.stop : n, : self._late.shape[-1]] = self._late
        new._members, new._late, new._is_lent = None, None, False
        return new

    def _room(self, shape: tuple[int, ...]) -> Tensor:
        return self._buffer.new_empty(shape)


class GrowingTriangle(GrowingRows):
    """A lower triangular matrix L, ``*batch x n x n``, to which rows are appended.

    The unused diagonal of the buffer is 1, so the whole buffer is a triangular matrix against which
    one can solve without a copy.

    Args:
        buffer: Identity matrices, ``*batch x capacity x capacity``.
        growth: The factor by which a full buffer grows.
    """

    @property
    def _columns(self) -> slice:
        return slice(0, self.num_rows)

    @property
    def diagonal(self) -> Tensor:
        """The diagonal, ``*batch x n``."""
        shared = slice(0, self._num_shared)
        entries = self._buffer.diagonal(dim1=-2, dim2=-1)[(*self._batch_index, shared)]
        if shared.stop == self.num_rows:
            return entries
        late = self._beside()[1].diagonal(dim1=-2, dim2=-1)
        return torch.cat([entries, late], dim=-1)

    def keep(self, index: int | list[int]) -> None:
        super().keep(index)
        if self._members is not None and self._buffer.is_cuda:
            self._shed()  # a buffer with other members would be solved member by member

    def extend(self, left: Tensor, corner: Tensor) -> None:
        """Append m rows.

        Args:
            left: The new rows without their last m columns, ``*batch x m x n``.
            corner: Their last m columns, lower triangular, ``*batch x m x m``.
        """
        n, m = self.num_rows, corner.shape[-1]
        if self._late is not None or n + m > self._buffer.shape[-2]:
            if self._has_room_beside(m):
                self._add_beside(torch.cat([left, corner], dim=-1))
                return
            vars(self).update(vars(self._owned(n + m)))
        rows = (*self._batch_index, slice(n, n + m))
        self._buffer[(*rows, slice(0, n))] = left
        self._buffer[(*rows, slice(n, n + m))] = corner
        self.num_rows = n + m

    def truncate(self, num_rows: int) -> None:
        n = self.num_rows
        super().truncate(num_rows)
        unused = slice(num_rows, n)
        self._buffer[..., unused, :n] = 0
        self._buffer[..., unused, unused].diagonal(dim1=-2, dim2=-1).fill_(1)

    def solve(self, R: Tensor) -> Tensor:
        """Solve L x = R.

        Args:
            R: The right-hand sides, ``*batch x n x m``.

        Returns:
            L^-1 R, ``*batch x n x m``.
        """
        shared = self._num_shared
        V = self._solve(R[..., :shared, :])
        if shared == self.num_rows:
            return V
        left, corner = self._beside()
        late = solve_triangular(corner, R[..., shared:, :] - left @ V)
        return torch.cat([V, late], dim=-2)

    def solve_transposed(self, V: Tensor) -> Tensor:
        """Solve L' x = V.

        Args:
            V: The right-hand sides, ``*batch x n x m``.

        Returns:
            L^-T V, ``*batch x n x m``.
        """
        shared = self._num_shared
        if shared == self.num_rows:
            return self._solve(V, upper=True)
        left, corner = self._beside()
        late = solve_triangular(corner.mT, V[..., shared:, :], upper=True)
        early = self._solve(V[..., :shared, :] - left.mT @ late, upper=True)
        return torch.cat([early, late], dim=-2)

    def _beside(self) -> tuple[Tensor, Tensor]:
        rows = self.block(slice(self._num_shared, self.num_rows))
        return rows[..., : self._num_shared], rows[..., self._num_shared :]

    def _solve(self, R: Tensor, upper: bool = False) -> Tensor:
        """L^-1 R, or L^-T R, for the shared rows of the buffer; later rows of the buffer are
        multiplied by zeros."""
        n, m = R.shape[-2:]
        L = self._buffer
        if 2 * m > n:  # copying a corner of L costs less than padding R
            L = L[..., :n, :n]
        else:
            R = pad(R, (0, 0, 0, self.capacity - n))
        L = L.mT if upper else L
        if self._members is None:
            return solve_triangular(L, R, upper=upper)[..., :n, :]
        batch = torch.broadcast_shapes(R.shape[:-2], (len(self._members),))
        R = R.expand(*batch, *R.shape[-2:])
        solved = [
            solve_triangular(L[j], R[..., i, :, :], upper=upper)
            for i, j in enumerate(self._members)
        ]
        return torch.stack(solved, dim=-3)[..., :n, :]

    def _room(self, shape: tuple[int, ...]) -> Tensor:
        return identity(self._buffer, *shape[:-1])


def identity(like: Tensor, *shape: int) -> Tensor:
    """Identity matrices.

    Args:
        like: A tensor with the dtype and device of the result.
        *shape: The shape without its last dimension, ``*batch x size``.

    Returns:
        ``*batch x size x size``.
    """
    eye = like.new_zeros(*shape, shape[-1])
    eye.diagonal(dim1=-2, dim2=-1).fill_(1)
    return eye
