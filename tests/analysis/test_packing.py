"""Greedy packing against the definition in loops, and against the bounds on any packing."""

import math

import numpy as np
import pytest
import torch

from botorch_ext.analysis import greedy_packing


def packed(points: np.ndarray, distance: float) -> list[int]:
    rows: list[int] = []
    for i, point in enumerate(points):
        if all(math.dist(point, points[j]) >= distance * (1 - 1e-9) for j in rows):
            rows.append(i)
    return rows


def grid(*axes: np.ndarray) -> np.ndarray:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


RNG = np.random.default_rng(5)
SETS = {
    "line": np.linspace(-3.0, -1.7, 40)[:, None],
    # Spacings that float arithmetic does not hit: neighbours are 0.1 and 0.3 apart up to rounding.
    "grid": grid(7 + 0.1 * np.arange(9), -2 + 0.3 * np.arange(6)),
    "plane": RNG.normal(size=(120, 2)) * [1.0, 0.3] + 40,
    "space": RNG.random(size=(90, 3)) - 5,
    "twice the same": RNG.integers(0, 4, size=(60, 2)) * 0.25 + 1,
    "one": np.array([[2.0, 3.0]]),
    "none": np.zeros((0, 2)),
}


@pytest.mark.parametrize("name", SETS)
def test_the_same_points_as_by_the_definition(name: str) -> None:
    points = SETS[name]
    for distance in (1e-3, 0.1, 0.2, 0.3, 0.31, 0.7, 1.3, 50.0):
        rows = greedy_packing(torch.from_numpy(points), distance)
        assert rows.dtype == torch.int64
        assert rows.tolist() == packed(points, distance)


def test_points_in_their_order() -> None:
    points = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    assert greedy_packing(points, 2.0).tolist() == [0, 2, 4]
    assert greedy_packing(list(reversed(points)), 2.5).tolist() == [0, 3]
    assert greedy_packing([[1.0], [0.0], [2.0], [3.0], [4.0]], 2.0).tolist() == [0, 3]


def test_five_times_less_than_the_largest_packing_can_happen_in_the_plane() -> None:
    angles = 2 * np.pi / 5 * np.arange(5)
    ring = 0.9 * np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    points = np.concatenate([np.zeros((1, 2)), ring])
    assert greedy_packing(torch.from_numpy(points), 1.0).tolist() == [0]
    assert greedy_packing(torch.from_numpy(points[1:]), 1.0).tolist() == [0, 1, 2, 3, 4]


def test_a_packed_square_has_the_number_that_areas_allow() -> None:
    points = grid(np.linspace(0, 2, 101), np.linspace(0, 1, 51))
    distance = 0.11
    num = len(greedy_packing(torch.from_numpy(points), distance))
    # Discs of the distance cover the square; half as large, they are disjoint and stay near it.
    assert num * math.pi * distance**2 >= 2 * 1
    assert num * math.pi * (distance / 2) ** 2 <= (2 + distance) * (1 + distance)


@pytest.mark.parametrize(
    ("points", "distance", "message"),
    [
        ([[0.0, 1.0]], 0.0, "distance must be positive, got 0"),
        ([[0.0, 1.0]], math.nan, "distance must be positive, got nan"),
        ([[0.0, 1.0]], [1.0, 2.0], "distance must be one number"),
        ([0.0, 1.0], 1.0, r"points must have shape \(n, d\), got \(2,\)"),
        ([[0.0, math.inf]], 1.0, "points must be finite"),
        ([[0.0], [1.0, 2.0]], 1.0, "points must be a tensor or nested numbers"),
    ],
)
def test_bad_input(points, distance, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        greedy_packing(points, distance)
