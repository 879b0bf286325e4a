"""Growing rows of a matrix, which copies share until one of them changes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.kernels.batching import members_of
from botorch_ext.models.triangular import solve_triangular
from botorch_ext.state import shallow

# Own rows of a copy before it takes a buffer of its own.
_MOST_LATE = 4


class GrowingRows:
    """The rows of a ``*batch x n x width`` matrix; new ones come at the end.

    A `fork` reads the rows it has in common with its original from the buffer of the original,
    where nobody changes rows that are lent: who wants to copies them first. New rows of the
    original go into its buffer, those of a fork lie beside it.

    Args:
        buffer: ``*batch x capacity x width``.
        growth: By what factor the buffer grows where there is no more room.
    """

    def __init__(self, buffer: Tensor, growth: float) -> None:
        self.num_rows = 0
        self._buffer = buffer
        self._growth = growth
        # The members of a batch with one dimension that live; None for all.
        self._members: list[int] | None = None
        self._is_lent = False
        # Of a fork: its own rows, after those in the buffer, ``*batch x r x width``.
        self._late: Tensor | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is stored or copied deeply takes no members along that it does not have, and goes on
        # computing the way it did, to the last bit.
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
        """Rows that there is room for."""
        return self._buffer.shape[-2]

    @property
    def values(self) -> Tensor:
        """All rows."""
        return self.block(slice(0, self.num_rows), self._columns)

    @property
    def _columns(self) -> slice:
        return slice(None)

    @property
    def _num_shared(self) -> int:
        return self.num_rows if self._late is None else self.num_rows - self._late.shape[-2]

    def block(self, rows: slice, columns: slice = slice(None)) -> Tensor:
        """Some rows and columns, not to be changed in place."""
        shared = self._num_shared
        if self._late is None or rows.stop <= shared:
            return self._buffer[(*self._batch_index, rows, columns)]
        late = self._late[..., max(rows.start - shared, 0) : rows.stop - shared, columns]
        if rows.start >= shared:
            return late
        early = self._buffer[(*self._batch_index, slice(rows.start, shared), columns)]
        return torch.cat([pad(early, (0, late.shape[-1] - early.shape[-1])), late], dim=-2)

    def combined(self, weights: Tensor, start: int) -> Tensor:
        """``weights @ rows`` of the rows from ``start`` on: ``*batch x m x n'`` to ``*batch x m x
        width``."""
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
        """Adds ``*batch x m x width`` rows."""
        n, m = self.num_rows, rows.shape[-2]
        if self._late is not None or n + m > self._buffer.shape[-2]:
            if self._has_room_beside(m):
                self._add_beside(rows)
                return
            vars(self).update(vars(self._owned(n + m)))
        self._buffer[(*self._batch_index, slice(n, n + m), slice(None))] = rows
        self.num_rows = n + m

    def truncate(self, num_rows: int) -> None:
        """Forgets all rows from ``num_rows`` on."""
        if self._is_lent or self._late is not None:
            members = self._members
            if self._late is None:
                self.num_rows = num_rows  # those that stay are copied, and no others
            vars(self).update(vars(self._owned()))
            if members is not None:  # as in a buffer that nobody was lent, to the last bit
                self._members = list(range(len(members)))
        self.num_rows = num_rows

    def map(self, function: Callable[[Tensor], Tensor]) -> None:
        """Replaces the buffer, such as when it moves to another device or dtype."""
        if self._late is not None:
            vars(self).update(vars(self._owned()))
        buffer = function(self._buffer)
        self._is_lent = self._is_lent and buffer is self._buffer
        self._buffer = buffer

    # --- copies -----------------------------------------------------------------------------------

    def fork(self) -> Self:
        """A copy that goes its own way from here."""
        new = shallow(self)
        if self._late is None:
            self._is_lent, new._is_lent = True, False
            new._late = self.block(slice(self.num_rows, self.num_rows)).clone()
        return new

    def successor(self) -> Self:
        """A copy that takes the place of this one: its new rows go into the same buffer, behind
        the rows of this one, which stay as they are. Of two successors only one may be used."""
        new = shallow(self)
        new._is_lent = True
        return new

    def keep(self, index: int | list[int]) -> None:
        """Forgets the other members of a batch with one dimension; one alone loses it. Their rows
        are freed when the buffer grows."""
        places = range(len(self._buffer)) if self._members is None else self._members
        if isinstance(index, int):
            self._buffer, self._members = self._buffer[places[index]], None
        else:
            self._members = [places[i] for i in index]
        if self._late is not None:
            self._late = members_of(self._late, index)

    def _shed(self) -> None:
        """Frees the rows of members that are forgotten."""
        if self._members is not None or self._holds_others:
            vars(self).update(vars(self._owned()))

    @property
    def _holds_others(self) -> bool:
        """Whether the buffer is a part of what it lies in."""
        return self._buffer.untyped_storage().nbytes() > self._buffer.nbytes

    # --- room -------------------------------------------------------------------------------------

    @property
    def _batch_index(self) -> tuple[Any, ...]:
        return (...,) if self._members is None else (self._members,)

    def _has_room_beside(self, num_rows: int) -> bool:
        """Whether these rows of a fork are few enough to lie beside the buffer."""
        return self._late is not None and self._late.shape[-2] + num_rows <= _MOST_LATE

    def _add_beside(self, rows: Tensor) -> None:
        late: Any = self._late
        self._late = torch.cat([pad(late, (0, rows.shape[-1] - late.shape[-1])), rows], dim=-2)
        self.num_rows += rows.shape[-2]

    def _owned(self, num_rows: int = 0) -> Self:
        """A copy with a buffer of its own, with room for so many rows, of the living alone."""
        n, capacity = self.num_rows, self.capacity
        if max(num_rows, n) > capacity:
            capacity = max(num_rows, n, int(self._growth * capacity))
            capacity = -(-capacity // 32) * 32  # so that rows stay aligned
        new = shallow(self)
        new._buffer = self._room((*self.batch_shape, capacity, self._buffer.shape[-1]))
        # One part after the other: there is no third copy of all rows while the second is made.
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
    """A lower triangular matrix L, ``*batch x n x n``, that grows by rows.

    The unused diagonal of the buffer is 1, so that the whole square is a valid triangular matrix
    and is solved against without a copy.

    Args:
        buffer: ``*batch x capacity x capacity``, an identity.
        growth: As for `GrowingRows`.
    """

    @property
    def _columns(self) -> slice:
        return slice(0, self.num_rows)

    @property
    def diagonal(self) -> Tensor:
        """``*batch x n``."""
        shared = slice(0, self._num_shared)
        entries = self._buffer.diagonal(dim1=-2, dim2=-1)[(*self._batch_index, shared)]
        if shared.stop == self.num_rows:
            return entries
        late = self._beside()[1].diagonal(dim1=-2, dim2=-1)
        return torch.cat([entries, late], dim=-1)

    def keep(self, index: int | list[int]) -> None:
        super().keep(index)
        if self._members is not None and self._buffer.is_cuda:
            self._shed()  # members of a larger batch are solved for one by one

    def extend(self, left: Tensor, corner: Tensor) -> None:
        """Adds m rows: ``*batch x m x n`` and their lower triangular end, ``*batch x m x m``."""
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
        """L^-1 R for ``*batch x n x m``."""
        shared = self._num_shared
        V = self._solve(R[..., :shared, :])
        if shared == self.num_rows:
            return V
        left, corner = self._beside()
        late = solve_triangular(corner, R[..., shared:, :] - left @ V)
        return torch.cat([V, late], dim=-2)

    def solve_transposed(self, V: Tensor) -> Tensor:
        """L^-T V for ``*batch x n x m``."""
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
        """L^-1 R, or L^-T R, for the rows in the buffer. Whatever the owner has behind them meets
        zeros only."""
        n, m = R.shape[-2:]
        L = self._buffer
        if 2 * m > n:  # to copy a corner of L costs less than to pad R
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
    """``*batch x size x size``, of the shape up to the last dimension."""
    eye = like.new_zeros(*shape, shape[-1])
    eye.diagonal(dim1=-2, dim2=-1).fill_(1)
    return eye
