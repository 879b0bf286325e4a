"""What tests read back from axes."""

import numpy as np
import torch
from matplotlib.collections import (
    FillBetweenPolyCollection,
    PathCollection,
    PolyCollection,
    QuadMesh,
)

from tests.helpers import tolerance


def near(found, expected):
    found, expected = (np.asarray(values, dtype=float) for values in (found, expected))
    np.testing.assert_allclose(found, expected, **tolerance(torch.float64))


def of_kind(ax, kind):
    return [each for each in ax.collections if isinstance(each, kind)]


def bands(ax):
    """Positions, lower and upper edges of the bands, in the order of drawing."""
    found = []
    for collection in of_kind(ax, FillBetweenPolyCollection):
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
    return of_kind(ax, PathCollection)


def polygons(ax):
    return of_kind(ax, PolyCollection)


def mesh(ax):
    (found,) = of_kind(ax, QuadMesh)
    return found


def heights(ax):
    """The values of a heat map."""
    return np.asarray(mesh(ax).get_array())


def words(labels):
    """The texts of tick labels."""
    return [label.get_text() for label in labels]


def beside(ax):
    """The words to the right of the rows."""
    return words(ax.child_axes[0].get_yticklabels())


def color_label(ax):
    return [other.get_ylabel() for other in ax.get_figure().axes if other is not ax]
