"""What tests read back from axes."""

import numpy as np
import torch
from matplotlib.collections import FillBetweenPolyCollection, PathCollection, QuadMesh

from tests.helpers import tolerance

CLOSE = tolerance(torch.float64)


def near(found, expected):
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected, **CLOSE)


def bands(ax):
    """Positions, lower and upper edges of the bands, in the order of drawing."""
    found = []
    for collection in ax.collections:
        if isinstance(collection, FillBetweenPolyCollection):
            vertices = collection.get_paths()[0].vertices
            across = np.unique(vertices[:, 0])
            edges = [np.sort(vertices[vertices[:, 0] == x, 1])[[0, -1]] for x in across]
            found.append((across, *np.array(edges).T))
    return found


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def lines(ax):
    """The lines by their labels."""
    return {line.get_label(): line for line in ax.lines}


def dots(ax):
    return [each for each in ax.collections if isinstance(each, PathCollection)]


def mesh(ax):
    (found,) = (each for each in ax.collections if isinstance(each, QuadMesh))
    return found


def heights(ax):
    """The values of a heat map."""
    return np.asarray(mesh(ax).get_array())
