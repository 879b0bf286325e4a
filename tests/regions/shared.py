"""Regions, constraints and models that several tests use."""

import torch

from botorch_ext import Box, KernelGP
from botorch_ext.search.region import Region
from botorch_ext.search.region_constraints import Constraint
from tests.helpers import rbf

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
CENTER = [3.0, -2.5]
NOISE = 0.01
AREA = 6.0


def kernel():
    return rbf(0.7)


def data(seed, num=30):
    X = BOX.sample(num, seed)
    return X, torch.sin(3 * X[:, 0]) + X[:, 1]


def model_of(seed, num=30, device="cpu", mean=None):
    X, y = data(seed, num)
    model = KernelGP(kernel().to(device), NOISE, mean=mean, device=device)
    model.add(X.to(device), y.to(device))
    return model


def two_rounds(device="cpu"):
    """A region of two constraints with its constraints as (seed of the data, width, offset,
    threshold); each holds on a good part of the box."""
    numbers = [(0, 2.0, 0.1, -1.6), (1, 1.5, 0.0, -1.4)]
    constraints = [Constraint(model_of(seed, device=device), *rest) for seed, *rest in numbers]
    return Region(BOX.to(device=device), tuple(constraints)), numbers


def known(function, threshold=0.0):
    """The constraint function(X) >= threshold: an empty model with that prior mean."""
    return Constraint(KernelGP(kernel(), NOISE, mean=function), 0.0, 0.0, threshold)


def distance(X, center):
    return (X - torch.as_tensor(center, dtype=X.dtype)).norm(dim=-1)


def ball(radius, center=CENTER):
    return lambda X: radius - distance(X, center)


def ring_and_ball(scale):
    """A ring around (3, -2.5) and a ball far from it, of areas 0.75 pi scale^2, pi scale^2 / 4."""
    return lambda X: torch.maximum(
        0.25 * scale - (distance(X, CENTER) - 0.75 * scale).abs(),
        0.5 * scale - distance(X, [4.6, -1.4]),
    )


def assert_sound(region, population, num_points):
    points = population.points
    assert points.shape == (num_points, region.dim)
    assert bool(region.contains(points).all())
    assert all(bool(region.contains(x)) for x in points[:: max(1, num_points // 50)])
    near = (points[:, None] == region.members).all(dim=-1).any(dim=0)
    assert bool(near.all())  # members are among them
