"""Planning in step: a batch on a box or region, point after point by the same operations.

What a point takes has the same shapes for many points, and the host looks at none of it: a form of
planning for a GPU, where it becomes a CUDA graph.
"""

from __future__ import annotations

import torch
from torch import Tensor

from botorch_ext.models.cholesky import least_pivot
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.regions.conditional_variance import ConditionalVariance
from botorch_ext.regions.landscapes import landscape
from botorch_ext.regions.region import Region
from botorch_ext.repeats import repeat
from botorch_ext.search.damped_steps import DampedSteps

# The population lies in so many cells. The best point of each climbs, one step for each point of
# the batch, and goes on from there for the next.
_NUM_CELLS = 64
# Shapes change after so many points.
_BUCKET = 128


def plan_in_step(
    region: Region, model: KernelGP, q: int, population: Tensor
) -> tuple[Tensor, Tensor]:
    """A batch of largest variance on a GPU, or anywhere.

    Args:
        region: Where to choose.
        model: Without batch dimensions; its data count as chosen.
        q: The size of the batch.
        population: ``m x d``, known to lie in the region.

    Returns:
        ``q x d`` points, and the ``q`` variances of them given those before.
    """
    batch = _Batch(region, model, q, population)
    n, left = model.num_observations, q
    if not n:
        # A stationary prior is the same everywhere. The first points of the population lie inside
        # the box; a first point on a face makes a worse batch.
        batch.look_at(1)
        batch.add(batch.first())
        n, left = 1, left - 1
    while left:
        times = min(left, _BUCKET)
        batch.look_at(n + times)
        repeat(batch.step, times, population.device, batch.landscape.is_recordable)
        n, left = n + times, left - times
    return batch.X[-q:], batch.chosen[-q:]


class _Batch:
    """What grows by a point at a time, on the device."""

    def __init__(self, region: Region, model: KernelGP, q: int, population: Tensor) -> None:
        box, like = region.box, region.like
        self.kernel = model.kernel_function
        self.transform_inputs, self.noise_variance = model.transform_inputs, model.noise_variance
        by_cell = cells(population, _NUM_CELLS)
        self.order, (self.num_cells, size) = by_cell.flatten(), by_cell.shape
        self.corner = size * torch.arange(self.num_cells, device=like.device)
        self.population = population[self.order]
        self.Z = model.transform_inputs(self.population)  # the same, where nothing is transformed
        self.variances = ConditionalVariance(model, box, q)
        n = model.num_observations
        self.variance, columns = self.variances.value_and_columns(self.population)
        self.V = torch.cat([columns, like.new_zeros(q, len(self.order))])
        self.X, self.chosen = like.new_empty(n + q, box.dim), like.new_empty(n + q)
        self.row = torch.full((1,), n, device=like.device)  # the next one of the factor
        self.steps = DampedSteps(box, region.extent(population), len(region.constraints))
        self.floor = least_pivot(self.kernel.diagonal(self.Z).max())
        self.landscape = landscape(region, self.variances)

    def look_at(self, num_points: int) -> None:
        """Makes room for so many points, those so far included."""
        self.variances.num_points = num_points

    def first(self) -> Tensor:
        """Where the variance is largest, the first such points in their old order first: rows."""
        old = self.order.argsort(stable=True)
        best = self.variance[old].argsort(descending=True, stable=True)
        return old[best[: self.num_cells]]

    def step(self) -> None:
        """Adds the point where the best point of a cell came highest."""
        self.add(self.variance.view(self.num_cells, -1).argmax(dim=1) + self.corner)

    def add(self, rows: Tensor) -> None:
        """Adds the highest of what some points of the population climb to."""
        ends, values, columns = self._climbed(self.population[rows])
        # Climbers stay where they came to: those not chosen now start there next time.
        self.population.index_copy_(0, rows, ends)
        if self.Z is not self.population:
            self.Z.index_copy_(0, rows, self.transform_inputs(ends))
        self.variance.index_copy_(0, rows, values)
        V = self.V[: len(columns)]
        V.index_copy_(1, rows, columns)
        value, top = values.max(dim=0, keepdim=True)
        x, v = ends[top], columns[:, top].mT
        z = self.transform_inputs(x)
        root = (value + self.noise_variance).maximum(self.floor).sqrt()
        # Of rows of L^-1, and those of V, the sign makes no difference: it is the other one here.
        inverse = self.variances.inverse[: len(V), : len(V)]
        inverse.index_copy_(0, self.row, (v @ inverse).index_fill_(1, self.row, -1).div_(root))
        self.variances.Z.index_copy_(0, self.row, z)
        new = torch.addmm(self.kernel(z, self.Z), v, V, beta=-1).div_(root)
        V.index_copy_(0, self.row, new)
        self.variance.addcmul_(new[0], new[0], value=-1)
        self.X.index_copy_(0, self.row, x)
        self.chosen.index_copy_(0, self.row, value)
        self.row += 1

    def _climbed(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Where points ``k x d`` come to in one step, the variances there, none lower than at the
        points, and the columns of V."""
        k, d = x.shape
        trials = self.steps.points(self.landscape.models, x).flatten(0, 1)
        values, inside, columns = self.landscape.look(trials)
        if inside is None:
            values = values.nan_to_num(-torch.inf, neginf=-torch.inf)
        else:  # NaN is not inside
            inside.view(k, -1)[:, 0].fill_(True)  # also where rounding says otherwise
            values = torch.where(inside, values, -torch.inf)
        best, which = values.view(k, -1).max(dim=1)
        ends = trials.view(k, -1, d).take_along_dim(which[:, None, None], 1)[:, 0]
        columns = columns.view(len(columns), k, -1).take_along_dim(which[None, :, None], 2)
        return ends, best, columns[..., 0]


def cells(X: Tensor, num: int) -> Tensor:
    """The rows of ``m x d`` points by cells of equal size, ``c x size``, some of them twice.

    The points are halved at the median of one coordinate after another, until there are as many
    cells as wanted or nearly as many as points.

    Args:
        X: The points.
        num: How many cells, a power of 2.
    """
    m, d = X.shape
    depth = min(num, m).bit_length() - 1
    size = -(-m >> depth)
    rows = torch.arange(size << depth, device=X.device).view(1, -1) % m
    for level in range(depth):
        order = X[:, level % d][rows].argsort(dim=1, stable=True)
        rows = rows.gather(1, order).view(2 * len(rows), -1)
    return rows
