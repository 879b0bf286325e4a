"""Cholesky factor of K + noise, grown a row at a time, with targets that may come late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from botorch_ext.kernels.batching import members_of
from botorch_ext.models.growing_rows import GrowingTriangle, identity
from botorch_ext.models.pending_columns import PendingColumns
from botorch_ext.state import shallow

_GROWTH = 1.25
_VECTORS = ("z", "y", "gains", "jitter")
# A pivot of less than this many units in the last place is rounding, not information.
_ROUNDING = 1000


class GrowingCholesky:
    """L with L L' = K + diag(noise variance + jitter), and z = L^-1 y for the residual targets y.

    A target may be unknown (*pending*). A pending row counts in L, hence in every variance, and its
    target is whatever leaves the posterior mean unmoved (hallucination: Desautels et al., 2014):
    the weights alpha = L^-T z of pending rows are zero, which makes z the part of L^-1 y orthogonal
    to the columns of L^-1 that belong to pending rows (`PendingColumns`).

    Args:
        noise_variance: ``*batch``; the ridge lambda.
        capacity: Rows to allocate at first.
    """

    # No torch.nn.Module: setting one's attributes takes longer than the arithmetic of a step.

    def __init__(self, noise_variance: Tensor, capacity: int = 64) -> None:
        self.num_points = 0
        self.pending: list[int] = []
        self._mean_weights: Tensor | None = None
        # Of the oldest pending rows; brought up to date by what changes z, so that looking at a
        # factor never changes the next digits.
        self._columns: PendingColumns | None = None
        self.noise_variance = noise_variance
        batch = noise_variance.shape
        self.triangle = GrowingTriangle(identity(noise_variance, *batch, capacity), _GROWTH)
        self.z, self.y, self.gains, self.jitter = (
            noise_variance.new_zeros(*batch, capacity) for _ in _VECTORS
        )

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> None:
        """Replaces every tensor, such as when a model moves to another device or dtype."""
        for name in ("noise_variance", *_VECTORS):
            setattr(self, name, function(getattr(self, name)))
        self.triangle.map(function)
        self._mean_weights = self._columns = None

    def state_dict(self) -> dict[str, Any]:
        """Copies of the rows in use and which of them pend: all but the noise variance."""
        n = self.num_points
        state: dict[str, Any] = {name: getattr(self, name)[..., :n].clone() for name in _VECTORS}
        return state | {"L": self.L.clone(), "pending": list(self.pending)}

    @classmethod
    def from_state_dict(cls, noise_variance: Tensor, state: dict[str, Any]) -> GrowingCholesky:
        """The factor of a `state_dict`, in the dtype and on the device of ``noise_variance``."""
        factor = cls(noise_variance, capacity=0)
        values = {name: state[name].to(noise_variance, copy=True) for name in ("L", *_VECTORS)}
        factor._take(values, state["pending"])
        return factor

    def _take(self, values: dict[str, Tensor], pending: list[int]) -> None:
        """All rows at once: ``L`` and the vectors."""
        for name in _VECTORS:
            setattr(self, name, values[name])
        self.triangle = GrowingTriangle(values["L"], _GROWTH)
        self.num_points = self.triangle.num_rows = values["L"].shape[-1]
        self.pending = list(pending)

    def fork(self) -> GrowingCholesky:
        """A copy that goes its own way from here; it shares the rows of L."""
        new = shallow(self)
        for name in _VECTORS:
            setattr(new, name, getattr(self, name).clone())
        new.triangle, new.pending = self.triangle.fork(), list(self.pending)
        return new

    def successor(self) -> GrowingCholesky:
        """A copy that takes the place of this one, whose rows stay as they are: see
        `GrowingRows.successor`."""
        new = shallow(self)
        new.triangle, new.pending = self.triangle.successor(), list(self.pending)
        return new

    def keep(self, index: int | list[int]) -> None:
        """Forgets the other members of a batch with one dimension; one alone loses it."""
        for name in ("noise_variance", *_VECTORS):
            setattr(self, name, members_of(getattr(self, name), index).clone())
        self.triangle.keep(index)
        if self._mean_weights is not None:
            self._mean_weights = members_of(self._mean_weights, index)
        if self._columns is not None:
            self._columns = self._columns.select(index)

    def select(self, index: int | list[int]) -> GrowingCholesky:
        """A `fork` of one member, or of several, of a batch with one dimension."""
        new = self.fork()
        new.keep(index)
        return new

    @property
    def batch_shape(self) -> torch.Size:
        return self.z.shape[:-1]

    @property
    def capacity(self) -> int:
        """Rows that the vectors have room for."""
        return self.z.shape[-1]

    @property
    def L(self) -> Tensor:
        """``*batch x n x n``, not to be changed."""
        return self.triangle.values

    def solve(self, R: Tensor) -> Tensor:
        """L^-1 R for ``*batch x n x m``."""
        return self.triangle.solve(R)

    def solve_from(self, start: int, R: Tensor) -> Tensor:
        """The rows from ``start`` of L^-1 applied to something that is zero before ``start``:
        ``*batch x n' x m``, from row ``start``."""
        later = slice(start, self.num_points)
        tail = self.triangle.block(later, later).contiguous()
        return torch.linalg.solve_triangular(tail, R, upper=False)

    def solve_transposed(self, V: Tensor) -> Tensor:
        """L^-T V for ``*batch x n x m``."""
        return self.triangle.solve_transposed(V)

    @property
    def mean_weights(self) -> Tensor:
        """alpha = (K + noise)^-1 y: ``*batch x n``."""
        if self._mean_weights is None:
            z = self.z[..., : self.num_points, None]
            self._mean_weights = self.solve_transposed(z).squeeze(-1)
        return self._mean_weights

    def information_gain(self) -> Tensor:
        """1/2 log det(I + K / noise): ``*batch``; with jitter, of the noise including it."""
        return self.gains[..., : self.num_points].sum(dim=-1)

    def _reserve(self, num_points: int) -> None:
        if num_points <= self.capacity:
            return
        capacity = max(num_points, self.triangle.capacity)
        for name in _VECTORS:
            old = getattr(self, name)
            setattr(self, name, pad(old, (0, capacity - old.shape[-1])))

    def predicted(self, cross: Tensor) -> Tensor:
        """The posterior mean of the residual where ``*batch x n x m`` L^-1 k(data, x) is given."""
        return (self.z[..., None, : cross.shape[-2]] @ cross).squeeze(-2)

    def _extension(self, cross: Tensor, covariance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The rows that m new points add, as a function: nothing is changed.

        Args:
            cross: ``*batch x n x m``: L^-1 K(old, new).
            covariance: ``*batch x m x m``: K(new, new).

        Returns:
            The lower triangular ``*batch x m x m`` corner of the new rows, the jitter that was
            added to each new diagonal entry and the information gain of each, both ``*batch x m``.
        """
        conditional = covariance - cross.mT @ cross
        floor = least_pivot(covariance.diagonal(dim1=-2, dim2=-1))
        corner, jitter = _cholesky_with_jitter(conditional, self.noise_variance, floor)
        noise_std = (self.noise_variance[..., None] + jitter).sqrt()
        return corner, jitter, (corner.diagonal(dim1=-2, dim2=-1) / noise_std).log()

    def append(
        self, cross: Tensor, covariance: Tensor, y: Tensor | None
    ) -> tuple[Tensor, int, Tensor]:
        """Adds m points in place.

        Args:
            cross: ``*batch x n x m``: L^-1 K(old, new).
            covariance: ``*batch x m x m``: K(new, new).
            y: ``*batch x m`` residual targets, or None when they are pending.

        Returns:
            The ``*batch x m x m`` corner of the new rows, the first row whose entry of z changed
            and the change of z from there: ``*batch x n'``.
        """
        n, m = cross.shape[-2:]
        corner, jitter, gains = self._extension(cross, covariance)
        predicted = self.predicted(cross)
        if y is None:
            z, target = torch.zeros_like(predicted), predicted
        else:
            z, target = _forward_solve(corner, y - predicted), y
        self.triangle.extend(cross.mT, corner)
        self._reserve(n + m)
        new = slice(n, n + m)
        self.z[..., new], self.y[..., new] = z, target
        self.gains[..., new], self.jitter[..., new] = gains, jitter
        self._count(m, y is None)
        if y is not None and self.pending:
            # What is now known moves the mean at the pending points, and with it their targets.
            self.z, self.y = self.z.clone(), self.y.clone()
            start, change = self._project()
            change[..., n - start :] += z
            return corner, start, change
        return corner, n, z

    def _count(self, num_new: int, pending: bool) -> None:
        n = self.num_points
        self.num_points = n + num_new
        self._mean_weights = None
        if pending:
            self.pending.extend(range(n, n + num_new))

    def extended(self, cross: Tensor, covariance: Tensor, y: Tensor) -> GrowingCholesky:
        """A new factor with m more points, differentiable in all arguments; this one stays as it
        is.

        Args:
            cross: ``*batch' x n x m``: L^-1 K(old, new).
            covariance: ``*batch' x m x m``: K(new, new).
            y: ``*batch'' x m`` residual targets; their batch may have more dimensions (fantasies),
                for which L is not repeated.

        Returns:
            The factor of n + m points.
        """
        n, m = cross.shape[-2:]
        corner, jitter, gains = self._extension(cross, covariance)
        z = _forward_solve(corner, y - self.predicted(cross))
        new = GrowingCholesky(self.noise_variance, capacity=0)
        batch = corner.shape[:-2]
        top = pad(self.L, (0, m)).expand(*batch, n, n + m)
        bottom = torch.cat([cross.mT, corner], dim=-1)
        values = {"L": torch.cat([top, bottom], dim=-2)}
        for name, tail in (("z", z), ("y", y), ("gains", gains), ("jitter", jitter)):
            head = getattr(self, name)[..., :n]
            shape = torch.broadcast_shapes(head.shape[:-1], tail.shape[:-1], batch)
            if name in ("gains", "jitter"):
                shape = batch
            parts = [head.expand(*shape, n), tail.expand(*shape, m)]
            values[name] = torch.cat(parts, dim=-1)
        new._take(values, self.pending)
        if self.pending:
            old = self._current_columns()
            columns = old.grown(cross.mT[..., old.start :], corner, [])
            shift, change = columns.correction(new.z[..., columns.start :])
            new.y = new.y.index_add(-1, torch.tensor(self.pending, device=new.y.device), shift)
            new.z = new.z + pad(change, (columns.start, 0))
            new._columns = columns
        return new

    def _current_columns(self) -> PendingColumns:
        """The columns of L^-1 of all pending rows, down to the last row."""
        columns = self._columns
        if columns is None:
            columns = PendingColumns.empty(self.pending[0], self.z, self.triangle.batch_shape)
        return columns.reaching_down(self.triangle, self.pending)

    def _project(self) -> tuple[int, Tensor]:
        """Takes z off the pending columns; returns its change and where that starts."""
        self._columns = columns = self._current_columns()
        z = self.z[..., columns.start : self.num_points]
        shift, change = columns.correction(z)
        z += change
        self.y[..., self.pending] += shift
        return columns.start, change

    def subtract_constant(self) -> Tensor:
        """Makes targets, all of them known, residuals of the constant that generalised least
        squares fits to them.

        Returns:
            The constants, ``*batch``.
        """
        n = self.num_points
        ones = self.solve(self.z.new_ones(*self.batch_shape, n, 1)).squeeze(-1)
        constant = (ones * self.z[..., :n]).sum(dim=-1) / ones.square().sum(dim=-1)
        self.z[..., :n] -= constant.unsqueeze(-1) * ones
        self.y[..., :n] -= constant.unsqueeze(-1)
        self._mean_weights = None
        return constant

    def set_targets(self, rows: list[int], y: Tensor) -> tuple[int, Tensor]:
        """Gives rows new targets: pending ones become known, known ones are replaced.

        Args:
            rows: Which rows.
            y: ``*batch x len(rows)`` residual targets.

        Returns:
            The first row whose entry of z changed, and the change of z from there: ``*batch x n'``.
        """
        n = self.num_points
        start = min([*rows, *self.pending[:1]], default=n)
        before = self.z[..., start:n]
        change = y - self.y[..., rows]
        self.z, self.y = self.z.clone(), self.y.clone()
        self.y[..., rows] = y
        # z moves along the columns of L^-1 of these rows: some are at hand, the others solved for.
        at_hand = [] if self._columns is None else self._columns.rows
        solved = [i for i, row in enumerate(rows) if row not in at_hand]
        if solved:
            first = min(rows[i] for i in solved)
            R = change.new_zeros(*self.batch_shape, n - first, 1)
            R[..., [rows[i] - first for i in solved], 0] = change[..., solved]
            self.z[..., first:n] += self.solve_from(first, R).squeeze(-1)
        told = [i for i, row in enumerate(rows) if row in at_hand]
        self.pending = [row for row in self.pending if row in at_hand or row not in rows]
        if told:
            columns = self._current_columns()
            z = self.z[..., columns.start : n]
            z += columns.combined(change[..., told], [rows[i] for i in told])
            self.pending = [row for row in self.pending if row not in rows]
            self._columns = columns.without(rows)
        if self.pending:
            self._project()
        self._mean_weights = None
        return start, self.z[..., start:n] - before

    def pending_information_gain(self) -> Tensor:
        """I(pending points; f | known points), what GP-BUCB inflates by: ``*batch``."""
        if not self.pending:
            return torch.zeros_like(self.noise_variance)
        gram = self._current_columns().gram
        precision = torch.linalg.cholesky(gram).diagonal(dim1=-2, dim2=-1)
        noise = self.noise_variance[..., None] + self.jitter[..., self.pending]
        return -(precision.log() + 0.5 * noise.log()).sum(dim=-1)

    def truncate(self, num_points: int) -> tuple[int, Tensor]:
        """Forgets all rows from ``num_points`` on.

        Returns:
            The first row whose entry of z changed (pending targets forget those rows, too), and
            the change of z from there: ``*batch x n'``.
        """
        n = self.num_points
        columns = self._columns
        old = slice(num_points, n)
        self.triangle.truncate(num_points)
        for name in _VECTORS:
            setattr(self, name, getattr(self, name).clone())
            getattr(self, name)[..., old] = 0
        self.pending = [row for row in self.pending if row < num_points]
        self.num_points = num_points
        self._mean_weights = None
        if not self.pending:
            self._columns = None
            return num_points, self.z[..., num_points:num_points]
        if columns is not None and columns.stop > num_points:
            self._columns = columns.truncated(num_points)
        return self._project()


def _forward_solve(corner: Tensor, residual: Tensor) -> Tensor:
    """corner^-1 residual for ``... x m x m`` and ``... x m``; a division when m = 1."""
    if corner.shape[-1] == 1:
        return residual / corner[..., 0]
    return torch.linalg.solve_triangular(corner, residual.unsqueeze(-1), upper=False).squeeze(-1)


def least_pivot(prior_variance: Tensor) -> Tensor:
    """The least pivot of a factorisation at points of this prior variance: less is rounding."""
    return _ROUNDING * torch.finfo(prior_variance.dtype).eps * prior_variance


def _cholesky_with_jitter(
    conditional: Tensor, noise_variance: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor]:
    """Cholesky of ``conditional + noise I`` with jitter on those diagonal entries that need it.

    A pivot below its ``... x m`` floor is raised to it, in its own diagonal entry only.
    """
    noise = noise_variance[..., None]
    variance = conditional.diagonal(dim1=-2, dim2=-1)
    m = conditional.shape[-1]
    if m == 1:
        pivot = variance.clamp_min(0) + noise
        raised = torch.maximum(pivot, floor)
        return raised.sqrt().unsqueeze(-1), raised - pivot
    eye = torch.eye(m, dtype=conditional.dtype, device=conditional.device)
    corner, info = torch.linalg.cholesky_ex(conditional + noise.unsqueeze(-1) * eye)
    high_enough = corner.diagonal(dim1=-2, dim2=-1).square() >= floor
    if bool(((info == 0) & high_enough.all(dim=-1)).all()):
        return corner, torch.zeros_like(variance)
    return _cholesky_by_columns(conditional, noise_variance, floor)


def _cholesky_by_columns(
    conditional: Tensor, noise_variance: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor]:
    S, columns, jitter = conditional, [], []
    for i in range(conditional.shape[-1]):
        pivot = S[..., i, i].clamp_min(0) + noise_variance
        raised = torch.maximum(pivot, floor[..., i])
        column = S[..., :, i] / raised.sqrt()[..., None]
        column = torch.cat(
            [torch.zeros_like(column[..., :i]), raised.sqrt()[..., None], column[..., i + 1 :]],
            dim=-1,
        )
        columns.append(column)
        jitter.append(raised - pivot)
        S = S - column[..., :, None] * column[..., None, :]
    return torch.stack(columns, dim=-1), torch.stack(jitter, dim=-1)
