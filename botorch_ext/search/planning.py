"""Batches of largest posterior standard deviation, in which each point counts those before it.

The standard deviation does not depend on observations, so a whole batch can be planned, and handed
out, before any of it is observed. Its information gain is at least 1 - 1/e of the largest possible
one (Nemhauser et al. 1978).
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import torch
from botorch.models.gpytorch import GPyTorchModel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import Box, FiniteSet, as_points, host
from botorch_ext.domains.points import PointsLike
from botorch_ext.domains.ranks import are_highest, highest_first
from botorch_ext.domains.reading import DomainLike, as_domain
from botorch_ext.domains.shards import Shard
from botorch_ext.models.cholesky import least_pivot
from botorch_ext.models.conditioning import condition
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.triangular import solve_triangular
from botorch_ext.search.objectives import FunctionObjective
from botorch_ext.search.region import Region
from botorch_ext.search.region_constraints import inverse_factor
from botorch_ext.search.screening import best_apart
from botorch_ext.search.sliding import sliding_ascent

# On a box: points whose standard deviations are kept up to date; how many of the best climb, with
# none of them so near to a better one, relative to the extent of all; and their steps.
POPULATION_SIZE = 2048
_NUM_STARTS = 48
_NUM_STEPS = 8
_NEAR = 0.03
# Covariances of data and points that are computed at once.
_MOST_SCREENED = 2**24


@dataclass(frozen=True, eq=False)
class Plan:
    """A batch of points in the order they were chosen.

    Args:
        X: The ``q x d`` points.
        std: ``q`` posterior standard deviations, each given the data of the model and the earlier
            points of the batch. If the model has an outcome transform, ``std`` and
            ``noise_variance`` are in the units of the transformed observations.
        noise_variance: lambda, the noise variance of the model.
        indices: ``q`` rows of the `FiniteSet`; None on a box or a region.
    """

    X: Tensor
    std: Tensor
    noise_variance: Tensor
    indices: Tensor | None = None

    @property
    def gains(self) -> Tensor:
        """The ``q`` shares of the points in the information gain, given the data of the model."""
        return 0.5 * (self.std.square() / self.noise_variance).log1p()

    @property
    def information_gain(self) -> float:
        """The information gain of the whole batch, given the data of the model."""
        return float(self.gains.sum())


@torch.no_grad()
def plan(
    domain: DomainLike | Region,
    model: KernelGP | GPyTorchModel,
    q: int,
    *,
    X_pending: PointsLike | None = None,
    population: PointsLike | None = None,
    seed: int | None = 0,
) -> Plan:
    """Plan a batch of points with the largest posterior standard deviation.

    Each point maximises the posterior standard deviation given the data of the model and the points
    chosen before it. Use it for batch active learning; the rounds of phased elimination use it too.

    On a finite set every point is an exact maximiser, and ties are broken at random. On a box or a
    region a few of the best screened points climb, along faces and constraints if they reach them,
    and never leave the region; the best one is chosen.

    Args:
        domain: The set of points to choose from: a `FiniteSet`, a `Region`, a `Box` or its bounds.
        model: A `KernelGP`, or a fitted BoTorch GP that `KernelGP.from_botorch` accepts.
        q: The size of the batch.
        X_pending: ``n x d`` pending points, which count as chosen.
        population: ``m x d`` points of the box or region to screen; None draws them. A finite set
            is always screened as a whole.
        seed: The seed of the ties and of the screening points. On a finite set None takes the first
            of equal points.

    Returns:
        A `Plan` with the points, their standard deviations and their information gain.

    Raises:
        ValueError: If ``q`` is less than 1, the model has batch dimensions, its inputs have another
            dimension, dtype or device than the domain, or the population is empty or given for a
            finite set.
        OutsideDomainError: If a point of the population lies outside the box or region.
    """
    q = whole_number(q, "q", least=1)
    if not isinstance(domain, Region):
        domain = as_domain(domain)
    if population is not None and isinstance(domain, FiniteSet):
        raise ValueError("population must be None on a finite set: all its points are screened")
    if not isinstance(model, KernelGP):
        model = KernelGP.from_botorch(model)
    like = domain.like
    model.require_takes(like)
    if X_pending is not None:
        model = deepcopy(model)
        model.add(as_points(X_pending, like.shape[-1], like, "X_pending"), None)
    if isinstance(domain, FiniteSet):
        return plan_on_set(domain, model, q, None if seed is None else whole_number(seed, "seed"))
    seed = whole_number(seed, "seed")
    if isinstance(domain, Box):
        domain.require_plain("plan")
    region = Region(domain) if isinstance(domain, Box) else domain
    if population is None:
        population = region.population(POPULATION_SIZE, seed).points
    else:
        population = region.require_contains(population, "population")
        if not len(population):
            raise ValueError("population must have at least one point, got none")
    return plan_in_region(region, model, q, population)


@torch.no_grad()
def plan_on_set(domain: FiniteSet, model: KernelGP, q: int, seed: int | None) -> Plan:
    """Plan a batch on a finite set, as `plan` does, without any checks.

    Nothing is copied to the host: on a GPU the whole batch is planned without waiting for it.

    Args:
        domain: The set of points to choose from.
        model: A model without batch dimensions, whose data count as chosen.
        q: The size of the batch.
        seed: The seed of the ties; None takes the first of equal points.

    Returns:
        A `Plan`.
    """
    kernel, Z, shard = model.kernel_function, model.transform_inputs(domain.points), domain.shard
    own = slice(None) if shard is None else slice(shard.start, shard.stop)
    V, variance = _screened(model, Z[own], q)
    if seed is None:
        ranks = torch.arange(len(Z) - 1, -1, -1, device=Z.device)
    else:
        ranks = host.randperm(len(Z), generator=torch.Generator().manual_seed(seed)).to(Z.device)
    floor = least_pivot(kernel.diagonal(Z))
    error = floor.max()
    indices = ranks.new_empty(q)
    chosen = Z.new_empty(q)
    for i, n in enumerate(range(model.num_observations, len(V))):
        index, value = _highest(variance, ranks[own], error, shard)
        indices[i], chosen[i] = index[0], value[0]
        pivot = torch.maximum(chosen[i].clamp_min(0) + model.noise_variance, floor[index][0])
        column = V[:n].index_select(1, index) if shard is None else shard.columns(V[:n], index)
        condition(V, variance, n, kernel(Z[index], Z[own])[0], column[:, 0], pivot.sqrt())
    std = chosen.clamp_min(0).sqrt()
    return Plan(domain.points[indices], std, model.noise_variance, indices)


def highest_by_rank(variance: Tensor, ranks: Tensor, error: Tensor) -> Tensor:
    """The row of the largest variance, ``... x 1``; of variances that are equal up to their
    rounding error, the row of the highest rank."""
    return torch.where(are_highest(variance, error), ranks, -1).argmax(dim=-1, keepdim=True)


def _highest(
    variance: Tensor, ranks: Tensor, error: Tensor, shard: Shard | None
) -> tuple[Tensor, Tensor]:
    """The row of the largest variance and that variance, ``(1,)`` each; of variances that are equal
    up to their rounding error, the row of the highest rank."""
    index = highest_by_rank(variance, ranks, error)
    if shard is None:
        return index, variance[index]
    places = [ranks[index], index + shard.start]
    best = torch.cat([variance[index].double(), *(place.double() for place in places)])
    values, ranks, rows = shard.gathered(best).unbind(-1)
    top, _ = _highest(values, ranks, error, None)
    return rows[top].long(), values[top].to(variance)


def _screened(model: KernelGP, Z: Tensor, q: int) -> tuple[Tensor, Tensor]:
    """L^-1 K(data, Z) with room for q more rows, and the posterior variance at Z."""
    n = model.num_observations
    V = Z.new_empty(n + q, len(Z))
    variance = model.kernel_function.diagonal(Z).clone()
    at_once = max(_MOST_SCREENED // max(n, 1), 1)
    for start in range(0, len(Z) if n else 0, at_once):
        some = slice(start, start + at_once)
        cross = model.kernel_function(model.train_inputs[0], Z[some])
        V[:n, some] = solve_triangular(model.factor.L[:n, :n], cross)
        variance[some].sub_(V[:n, some].square().sum(dim=0))
    return V, variance


@torch.no_grad()
def plan_in_region(region: Region, model: KernelGP, q: int, population: Tensor) -> Plan:
    """Plan a batch in a region, as `plan` does, without any checks.

    Args:
        region: The region to choose from.
        model: A model without batch dimensions, whose data count as chosen.
        q: The size of the batch.
        population: ``m x d`` points of the region to screen.

    Returns:
        A `Plan`.
    """
    box = region.box
    variances = _ConditionalVariance(model, box, q)
    kernel, Z = model.kernel_function, model.transform_inputs(population).clone()
    V, variance = _screened(model, Z, q)
    feasible = region.meets if region.constraints else None
    slacks = [constraint.slack_and_gradient for constraint in region.constraints]
    population = population.clone()
    scale = region.extent(population)
    X = population.new_empty(q, box.dim)
    chosen = population.new_empty(q)
    for i, n in enumerate(range(model.num_observations, len(V))):
        if n:
            among = (_NUM_STARTS, 6 * _NUM_STARTS, _NEAR)
            best = best_apart(variance, population, lambda X: X / scale, *among)
        else:
            # A stationary prior is the same everywhere. The first points of the population lie
            # inside the box; a first point on a face makes a worse batch.
            best = highest_first(variance, _NUM_STARTS)
        ends, values = sliding_ascent(
            variances, slacks, feasible, box, population[best], scale, _NUM_STEPS
        )
        # Climbers stay where they came to: those not chosen now start there next time.
        population[best], variance[best] = ends, values
        V[:n, best] = variances.value_and_columns(ends)[1]
        top = values.argmax(dim=0, keepdim=True)
        x = ends[top]
        row, X[i], chosen[i] = variances.add(x), x[0], values[top][0]
        Z[best] = model.transform_inputs(ends)
        covariances = kernel(model.transform_inputs(x), Z)[0]
        condition(V, variance, n, covariances, row[:-1], row[-1])
    return Plan(X, chosen.clamp_min(0).sqrt(), model.noise_variance)


class _ConditionalVariance:
    """The posterior variance given the data of a model and the points added since, with gradients
    in closed form where the kernel has them.

    Keeps the inverse of the Cholesky factor, which grows by a row without being solved against.

    Args:
        model: Without batch dimensions.
        box: Where the points lie.
        capacity: How many points can be added.
    """

    def __init__(self, model: KernelGP, box: Box, capacity: int) -> None:
        self.model, self.box = model, box
        n = self.num_points = model.num_observations
        like = box.like
        self.Z = model.transform_inputs(like[:1]).repeat(n + capacity, 1)
        self.inverse = like.new_zeros(n + capacity, n + capacity)
        if n:
            self.Z[:n] = model.train_inputs[0]
            self.inverse[:n, :n] = inverse_factor(model)
        self._through_autograd = FunctionObjective(lambda X: self.value_and_columns(X)[0])

    def value(self, X: Tensor) -> Tensor:
        return self.value_and_columns(X)[0]

    def value_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``m x d`` to ``m`` variances and ``m x d`` gradients."""
        kernel, n = self.model.kernel_function, self.num_points
        if not kernel.has_closed_form_gradient or hasattr(self.model, "input_transform"):
            return self._through_autograd.value_and_gradient(X)
        Z, inverse = self.Z[:n], self.inverse[:n, :n]
        k, pullback = kernel.value_and_pullback(Z, X)
        # With the few points as rows in memory, products take a third of the time.
        v = k.mT.contiguous() @ inverse.mT  # m x n
        gradient = -2 * pullback((v @ inverse).mT)
        return kernel.diagonal(X) - v.square().sum(dim=-1), gradient

    def value_and_columns(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """``m x d`` to ``m`` variances and L^-1 K(points, X)."""
        kernel, n = self.model.kernel_function, self.num_points
        Z = self.model.transform_inputs(X)
        columns = self.inverse[:n, :n] @ kernel(self.Z[:n], Z)
        return kernel.diagonal(Z) - columns.square().sum(dim=0), columns

    def add(self, x: Tensor) -> Tensor:
        """Conditions on one more point ``1 x d``; returns its new row of the Cholesky factor."""
        kernel, n = self.model.kernel_function, self.num_points
        z = self.model.transform_inputs(x)
        inverse = self.inverse[:n, :n]
        v = (inverse @ kernel(self.Z[:n], z))[:, 0]
        prior = kernel.diagonal(z)[0]
        variance = (prior - v.square().sum()).clamp_min(0)
        pivot = torch.maximum(variance + self.model.noise_variance, least_pivot(prior)).sqrt()
        self.inverse[n, :n] = -(v @ inverse) / pivot
        self.inverse[n, n] = 1 / pivot
        self.Z[n] = z[0]
        self.num_points += 1
        return torch.cat([v, pivot[None]])
