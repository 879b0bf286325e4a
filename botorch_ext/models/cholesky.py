"""GrowingCholesky: the Cholesky factor of K + noise, which grows by rows, with targets that may be
pending."""

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
_VECTORS = ("z", "y", "gains", "jitter", "relative_noise")
# A pivot of fewer units in the last place than this is rounding error and no information.
_ROUNDING = 1000


def as_block(rows: list[int]) -> slice | list[int]:
    """Rows as a slice if they follow each other, so that no index has to be copied to a GPU."""
    is_block = rows == list(range(rows[0], rows[0] + len(rows))) if rows else False
    return slice(rows[0], rows[-1] + 1) if is_block else rows


class GrowingCholesky:
    """L with L L' = K + diag(lambda r + jitter), and z = L^-1 y for the residual targets y.

    The noise variance of row i is lambda r_i, where its relative noise r_i is 1 unless it is given.

    A target may be unknown (*pending*). A pending row counts in L, and so in every variance. Its
    target is the value that leaves the posterior mean unchanged (hallucination: Desautels et al.,
    2014): the weights alpha = L^-T z of pending rows are zero, which makes z the part of L^-1 y
    that is orthogonal to the columns of L^-1 of the pending rows (`PendingColumns`).

    Args:
        noise_variance: The ridge lambda, ``*batch``.
        capacity: The number of rows for which memory is reserved at first.
    """

    # Not a torch.nn.Module: setting an attribute of one takes longer than the arithmetic of a step.

    def __init__(self, noise_variance: Tensor, capacity: int = 64) -> None:
        self.num_points = 0
        self.pending: list[int] = []
        #: Whether a row was added with a relative noise.
        self.has_unequal_noise = False
        self._mean_weights: Tensor | None = None
        # The columns of the oldest pending rows. Only methods that change z update them, so that
        # reading a factor never changes later digits.
        self._columns: PendingColumns | None = None
        self.noise_variance = noise_variance
        batch = noise_variance.shape
        self.triangle = GrowingTriangle(identity(noise_variance, *batch, capacity), _GROWTH)
        self.z, self.y, self.gains, self.jitter, self.relative_noise = (
            noise_variance.new_zeros(*batch, capacity) for _ in _VECTORS
        )

    def map_tensors(self, function: Callable[[Tensor], Tensor]) -> None:
        """Replace every tensor, for example when a model moves to another device or dtype."""
        for name in ("noise_variance", *_VECTORS):
            setattr(self, name, function(getattr(self, name)))
        self.triangle.map(function)
        self._mean_weights = self._columns = None

    def state_dict(self) -> dict[str, Any]:
        """Copies of all data except the noise variance, for `from_state_dict`."""
        n = self.num_points
        state: dict[str, Any] = {name: getattr(self, name)[..., :n].clone() for name in _VECTORS}
        return state | {"L": self.L.clone(), "pending": list(self.pending)}

    @classmethod
    def from_state_dict(cls, noise_variance: Tensor, state: dict[str, Any]) -> GrowingCholesky:
        """Restore a factor.

        Args:
            noise_variance: The ridge lambda, ``*batch``; it determines the dtype and the device.
            state: A `state_dict`.
        """
        factor = cls(noise_variance, capacity=0)
        state = {"relative_noise": torch.ones_like(state["jitter"]), **state}  # older states
        values = {name: state[name].to(noise_variance, copy=True) for name in ("L", *_VECTORS)}
        factor._take(values, state["pending"])
        factor.has_unequal_noise = bool((factor.relative_noise != 1).any())
        return factor

    def _take(self, values: dict[str, Tensor], pending: list[int]) -> None:
        """Set all rows at once: ``L`` and the vectors."""
        for name in _VECTORS:
            setattr(self, name, values[name])
        self.triangle = GrowingTriangle(values["L"], _GROWTH)
        self.num_points = self.triangle.num_rows = values["L"].shape[-1]
        self.pending = list(pending)

    def fork(self) -> GrowingCholesky:
        """An independent copy, which shares the rows of L."""
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
        """Keep some members of a batch with one dimension.

        Args:
            index: The position of one member, which loses the batch dimension, or positions.
        """
        for name in ("noise_variance", *_VECTORS):
            setattr(self, name, members_of(getattr(self, name), index).clone())
        self.triangle.keep(index)
        if self._mean_weights is not None:
            self._mean_weights = members_of(self._mean_weights, index)
        if self._columns is not None:
            self._columns = self._columns.select(index)

    def select(self, index: int | list[int]) -> GrowingCholesky:
        """A `fork` of some members of a batch with one dimension.

        Args:
            index: The position of one member, which loses the batch dimension, or positions.
        """
        new = self.fork()
        new.keep(index)
        return new

    @property
    def batch_shape(self) -> torch.Size:
        return self.z.shape[:-1]

    @property
    def capacity(self) -> int:
        """The number of rows for which the vectors have memory."""
        return self.z.shape[-1]

    @property
    def L(self) -> Tensor:
        """The factor, ``*batch x n x n``; it must not be changed."""
        return self.triangle.values

    def solve(self, R: Tensor) -> Tensor:
        """Solve L x = R.

        Args:
            R: The right-hand sides, ``*batch x n x m``.

        Returns:
            L^-1 R, ``*batch x n x m``.
        """
        return self.triangle.solve(R)

    def solve_from(self, start: int, R: Tensor) -> Tensor:
        """The product L^-1 R for R whose rows before ``start`` are zero.

        Args:
            start: The first row.
            R: The rows of R from ``start`` on, ``*batch x n' x m``.

        Returns:
            The rows of the product from ``start`` on, ``*batch x n' x m``.
        """
        later = slice(start, self.num_points)
        tail = self.triangle.block(later, later).contiguous()
        return torch.linalg.solve_triangular(tail, R, upper=False)

    def solve_transposed(self, V: Tensor) -> Tensor:
        """Solve L' x = V.

        Args:
            V: The right-hand sides, ``*batch x n x m``.

        Returns:
            L^-T V, ``*batch x n x m``.
        """
        return self.triangle.solve_transposed(V)

    @property
    def mean_weights(self) -> Tensor:
        """The weights alpha = (K + noise)^-1 y, ``*batch x n``."""
        if self._mean_weights is None:
            z = self.z[..., : self.num_points, None]
            self._mean_weights = self.solve_transposed(z).squeeze(-1)
        return self._mean_weights

    def told_weights(self, weights: Tensor) -> Tensor:
        """The weights of the known targets in posterior means.

        Args:
            weights: The weights (L L')^-1 k of all rows, ``*batch x n x m``.

        Returns:
            The weights if no row were pending, ``*batch x n x m``, with zeros in pending rows.
        """
        if not self.pending:
            return weights
        pending = self._current_columns()
        columns = pad(pending.columns, (pending.start, 0)).mT
        share = torch.cholesky_solve(
            weights[..., pending.rows, :], torch.linalg.cholesky(pending.gram)
        )
        return weights - self.solve_transposed(columns) @ share

    def weight_norms(self, V: Tensor) -> Tensor:
        """The sums of the absolute weights of the known targets in posterior means.

        Args:
            V: The columns L^-1 k of all rows, ``*batch x n x m``.

        Returns:
            ``*batch x m``.
        """
        return self.told_weights(self.solve_transposed(V)).abs().sum(dim=-2)

    def information_gain(self) -> Tensor:
        """The information gain 1/2 log det(I + K / noise), ``*batch``, where noise includes
        jitter."""
        return self.gains[..., : self.num_points].sum(dim=-1)

    def _reserve(self, num_points: int) -> None:
        if num_points <= self.capacity:
            return
        capacity = max(num_points, self.triangle.capacity)
        for name in _VECTORS:
            old = getattr(self, name)
            setattr(self, name, pad(old, (0, capacity - old.shape[-1])))

    def predicted(self, cross: Tensor) -> Tensor:
        """The posterior mean of the residual at m points.

        Args:
            cross: L^-1 k(data, x), ``*batch x n x m``.

        Returns:
            The means, ``*batch x m``.
        """
        return (self.z[..., None, : cross.shape[-2]] @ cross).squeeze(-2)

    @property
    def noise(self) -> Tensor:
        """The noise variance of each row, with jitter, ``*batch x n``."""
        n = self.num_points
        own = self.noise_variance.unsqueeze(-1) * self.relative_noise[..., :n]
        return own + self.jitter[..., :n]

    def _extension(
        self, cross: Tensor, covariance: Tensor, noise: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the rows that m new points add, without changing anything.

        Args:
            cross: L^-1 K(old, new), ``*batch x n x m``.
            covariance: K(new, new), ``*batch x m x m``.
            noise: The noise variances of the new points, ``*batch x m`` or ``*batch x 1``.

        Returns:
            The lower triangular corner of the new rows, ``*batch x m x m``; the jitter of each new
            diagonal entry and the information gain of each new point, ``*batch x m`` each.
        """
        conditional = covariance - cross.mT @ cross
        floor = least_pivot(covariance.diagonal(dim1=-2, dim2=-1))
        corner, jitter = _cholesky_with_jitter(conditional, noise, floor)
        noise_std = (noise + jitter).sqrt()
        return corner, jitter, (corner.diagonal(dim1=-2, dim2=-1) / noise_std).log()

    def append(
        self,
        cross: Tensor,
        covariance: Tensor,
        y: Tensor | None,
        relative_noise: Tensor | None = None,
    ) -> tuple[Tensor, int, Tensor]:
        """Add m points in place.

        Args:
            cross: L^-1 K(old, new), ``*batch x n x m``.
            covariance: K(new, new), ``*batch x m x m``.
            y: The residual targets, ``*batch x m``; None if they are pending.
            relative_noise: The noise variances in units of lambda, ``m``; None for ones.

        Returns:
            The corner of the new rows, ``*batch x m x m``; the first row whose entry of z changed;
            and the change of z from there on, ``*batch x n'``.
        """
        n, m = cross.shape[-2:]
        noise = self.noise_variance.unsqueeze(-1)
        if relative_noise is not None:
            noise, self.has_unequal_noise = noise * relative_noise, True
        corner, jitter, gains = self._extension(cross, covariance, noise)
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
        self.relative_noise[..., new] = 1 if relative_noise is None else relative_noise
        self._count(m, y is None)
        if y is not None and self.pending:
            # The new values move the mean at the pending points, and with it their targets.
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
        """A new factor with m more points; this factor stays as it is.

        Args:
            cross: L^-1 K(old, new), ``*batch' x n x m``.
            covariance: K(new, new), ``*batch' x m x m``.
            y: The residual targets, ``*batch'' x m``; they may have more batch dimensions
                (fantasies), for which L is not repeated.

        Returns:
            The factor of n + m points, differentiable in all arguments.
        """
        n, m = cross.shape[-2:]
        corner, jitter, gains = self._extension(
            cross, covariance, self.noise_variance.unsqueeze(-1)
        )
        z = _forward_solve(corner, y - self.predicted(cross))
        new = GrowingCholesky(self.noise_variance, capacity=0)
        batch = corner.shape[:-2]
        top = pad(self.L, (0, m)).expand(*batch, n, n + m)
        bottom = torch.cat([cross.mT, corner], dim=-1)
        values = {"L": torch.cat([top, bottom], dim=-2)}
        new_rows = (z, y, gains, jitter, torch.ones_like(jitter))
        for name, tail in zip(_VECTORS, new_rows, strict=True):
            head = getattr(self, name)[..., :n]
            shape = torch.broadcast_shapes(head.shape[:-1], tail.shape[:-1], batch)
            if name not in ("z", "y"):
                shape = batch
            parts = [head.expand(*shape, n), tail.expand(*shape, m)]
            values[name] = torch.cat(parts, dim=-1)
        new._take(values, self.pending)
        new.has_unequal_noise = self.has_unequal_noise
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
        """Make z orthogonal to the pending columns, and return the first changed row and the
        change."""
        self._columns = columns = self._current_columns()
        z = self.z[..., columns.start : self.num_points]
        shift, change = columns.correction(z)
        z += change
        self.y[..., self.pending] += shift
        return columns.start, change

    def subtract_constant(self) -> Tensor:
        """Subtract from the targets, all of them known, the constant that generalised least squares
        fits to them.

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
        """Give rows new targets: pending rows become known, targets of known rows are replaced.

        Args:
            rows: The rows.
            y: The residual targets, ``*batch x len(rows)``.

        Returns:
            The first row whose entry of z changed, and the change of z from there on,
            ``*batch x n'``.
        """
        n = self.num_points
        start = min([*rows, *self.pending[:1]], default=n)
        before = self.z[..., start:n]
        change = y - self.y[..., as_block(rows)]
        self.z, self.y = self.z.clone(), self.y.clone()
        self.y[..., as_block(rows)] = y
        # z moves along the columns of L^-1 of these rows. Some columns are stored, the others are
        # solved for.
        at_hand = [] if self._columns is None else self._columns.rows
        solved = [i for i, row in enumerate(rows) if row not in at_hand]
        if solved:
            first = min(rows[i] for i in solved)
            R = change.new_zeros(*self.batch_shape, n - first, 1)
            R[..., as_block([rows[i] - first for i in solved]), 0] = change[..., as_block(solved)]
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
        """The information gain of the pending points given the known ones,
        I(pending points; f | known points), ``*batch``, by which GP-BUCB inflates its width."""
        if not self.pending:
            return torch.zeros_like(self.noise_variance)
        gram = self._current_columns().gram
        precision = torch.linalg.cholesky(gram).diagonal(dim1=-2, dim2=-1)
        noise = self.noise[..., self.pending]
        return -(precision.log() + 0.5 * noise.log()).sum(dim=-1)

    def truncate(self, num_points: int) -> tuple[int, Tensor]:
        """Remove all rows from ``num_points`` on.

        Returns:
            The first row whose entry of z changed, since targets of pending rows may depend on the
            removed ones; and the change of z from there on, ``*batch x n'``.
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
    """The product corner^-1 residual, ``... x m``; a division if m = 1."""
    if corner.shape[-1] == 1:
        return residual / corner[..., 0]
    return torch.linalg.solve_triangular(corner, residual.unsqueeze(-1), upper=False).squeeze(-1)


def least_pivot(prior_variance: Tensor) -> Tensor:
    """The least pivot of a factorisation that is not rounding error.

    Args:
        prior_variance: The prior variances of points, of any shape.

    Returns:
        The least pivots, in the same shape.
    """
    return _ROUNDING * torch.finfo(prior_variance.dtype).eps * prior_variance


def _cholesky_with_jitter(
    conditional: Tensor, noise: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor]:
    """The Cholesky factor of ``conditional + diag(noise)``, with noise of shape ``... x m`` or
    ``... x 1`` and jitter on the diagonal entries that need it: a pivot below its floor,
    ``... x m``, is raised to the floor."""
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
    return _cholesky_by_columns(conditional, noise.expand_as(variance), floor)


def _cholesky_by_columns(
    conditional: Tensor, noise: Tensor, floor: Tensor
) -> tuple[Tensor, Tensor]:
    S, columns, jitter = conditional, [], []
    for i in range(conditional.shape[-1]):
        pivot = S[..., i, i].clamp_min(0) + noise[..., i]
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
