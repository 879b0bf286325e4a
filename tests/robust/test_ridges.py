import numpy as np
import pytest
import torch

from botorch_ext import Box
from botorch_ext.robust.ridges import along_ridges

BOX = Box([[2.0, -3.0], [5.0, -1.0]])
STARTS = np.array([[2.2, -2.9], [2.3, -1.2], [4.7, -2.6]])


def cones(tops, heights):
    """Of each top the four planes of a pyramid; the least of four, the highest pyramid of each
    point: a function ``r x d`` to ``4 x r`` values and their gradients."""
    tops, heights, slopes = (
        torch.tensor(a, dtype=torch.float64)
        for a in (tops, heights, [[1.0, 0.3], [-0.4, 1.0], [-1.0, -0.5], [0.3, -1.0]])
    )

    def cuts(X):
        values = heights - ((X[:, None] - tops) @ slopes.mT).movedim(-1, 0)
        best = values.amin(dim=0).argmax(dim=-1)  # of each point
        values = values.gather(2, best.expand(4, -1).unsqueeze(-1)).squeeze(-1)
        return values, -slopes[:, None].expand(4, len(X), 2)

    return cuts


def test_climbs_end_at_the_tops_of_pyramids():
    heights, X = along_ridges(cones([[3.0, -2.0]], [1.5]), BOX, STARTS, 1e-10, 60)
    # One of them goes to the end, the others stop where it is higher and near.
    assert heights.max() == pytest.approx(1.5, abs=1e-9)
    np.testing.assert_allclose(X[heights.argmax()], [3.0, -2.0], atol=1e-8)
    # Of two tops far apart each is climbed.
    tops, starts = [[2.4, -2.5], [4.6, -1.5]], np.array([[2.2, -2.9], [4.9, -1.1]])
    heights, X = along_ridges(cones(tops, [1.0, 2.0]), BOX, starts, 1e-10, 60)
    np.testing.assert_allclose(heights, [1.0, 2.0], atol=1e-9)
    np.testing.assert_allclose(X, tops, atol=1e-8)


def test_a_top_outside_ends_at_the_face():
    heights, X = along_ridges(cones([[6.0, -2.0]], [0.0]), BOX, STARTS, 1e-10, 60)
    x, first = torch.as_tensor(X), torch.as_tensor(STARTS)
    cuts = cones([[6.0, -2.0]], [0.0])
    np.testing.assert_allclose(heights, cuts(x)[0].amin(dim=0))
    assert (heights >= cuts(first)[0].amin(dim=0).numpy()).all()
    assert X[heights.argmax()][0] == pytest.approx(5.0)
    assert bool(BOX.contains(x).all())
