"""The tree of cells against splitting intervals one by one."""

import math

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import Box
from botorch_ext.domains.cells import CellTree

BOXES = [
    ([[1.0], [3.0]], [0.5]),
    ([[1.0, -2.0], [2.0, 1.0]], [0.5, 0.5]),
    ([[1.0, -2.0], [2.0, 1.0]], [0.2, 1.7]),
    ([[10.0, -1.0, 0.5], [17.0, 0.0, 0.7]], [3.0, 0.3, 0.3]),
    ([[10.0, -1.0], [17.0, 0.0]], [math.inf, 0.3]),
]


def split(lower, upper, scales):
    """The two halves of one cell, as lists of corners."""
    sides = [(b - a) / s for a, b, s in zip(lower, upper, scales, strict=True)]
    j = max(range(len(sides)), key=lambda j: (sides[j], -j))
    middle = (lower[j] + upper[j]) / 2
    left, right = list(upper), list(lower)
    left[j] = right[j] = middle
    return (lower, left), (right, upper)


@pytest.mark.parametrize(("bounds", "scales"), BOXES)
def test_cells_are_what_splitting_gives(bounds, scales):
    tree = CellTree(Box(bounds), scales)
    cells = [tuple(bounds)]
    for level in range(9):
        codes = torch.arange(2**level)
        lower, upper = (torch.tensor(c, dtype=torch.float64) for c in zip(*cells, strict=True))
        assert_close(tree.lower(level, codes), lower)
        assert_close(tree.upper(level, codes), upper)
        assert_close(tree.centers(level, codes), (lower + upper) / 2)
        scaled = (upper - lower) / torch.tensor(scales, dtype=torch.float64)
        assert_close(tree.sides(level), (upper - lower)[-1])
        assert tree.half_diagonal(level) == pytest.approx(float(scaled[-1].norm()) / 2)
        cells = [half for cell in cells for half in split(*cell, scales)]
    depths, d = range(50), sum(scale < math.inf for scale in scales)
    assert tree.rho == pytest.approx(2 ** (-1 / d))
    assert tree.outer == pytest.approx(max(tree.half_diagonal(h) * 2 ** (h / d) for h in depths))
    least = [min(side for side in tree.scaled_sides(h) if side) / 2 for h in depths]
    assert tree.inner == pytest.approx(min(least[h] * 2 ** (h / d) for h in depths))


def test_deep_codes_keep_their_place():
    tree = CellTree(Box([[1.0, -2.0], [2.0, 1.0]]))
    codes, x = torch.zeros(1, dtype=torch.long), torch.tensor([1.3, 0.77], dtype=torch.float64)
    for level in range(1, 60):
        codes = torch.cat([2 * codes, 2 * codes + 1])
        inside = (tree.lower(level, codes) <= x) & (x <= tree.upper(level, codes))
        codes = codes[inside.all(dim=-1)][:1]
    assert_close(tree.centers(59, codes)[0], x, rtol=0, atol=1e-8)


def test_cells_that_are_none_are_refused():
    box = Box([[1.0, -2.0], [2.0, 1.0]])
    for scales in ([1.0], [1.0, 0.0], [1.0, -1.0], [math.inf, math.inf]):
        with pytest.raises(ValueError, match="lengthscales must"):
            CellTree(box, scales)
    tree, none = CellTree(box), torch.tensor([0])
    for codes in (torch.tensor([1, 4]), torch.tensor([-1]), torch.tensor([1.0]), [1, 2]):
        with pytest.raises(ValueError, match="codes must"):
            tree.centers(2, codes)
    for level in (-1, 1.5, 63):
        with pytest.raises(ValueError, match="level must"):
            tree.lower(level, none)
