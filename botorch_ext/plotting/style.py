"""Style of the pictures: colours, axes, numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from botorch_ext.palette import PALETTE as PALETTE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def to_numpy(values: Any) -> np.ndarray:
    """Numbers, a tensor of any device included, as an array of floats."""
    if isinstance(values, Tensor):
        values = values.detach().cpu().numpy()
    return np.asarray(values, dtype=float)


def axes_or_new(ax: Axes | None, size: tuple[float, float] = (6.4, 4.4)) -> Axes:
    """The axes, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plotting needs matplotlib: pip install 'botorch-ext[plot]'") from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def figure_of(num: int, most_columns: int, size: tuple[float, float] = (3.4, 2.8)) -> list[Axes]:
    """The axes of a new figure, each of a size in inches, in rows of at most so many."""
    columns = min(num, most_columns)
    rows = -(-num // columns)
    width, height = size
    first = axes_or_new(None, (columns * width, rows * height))
    figure: Any = first.figure
    first.remove()
    return [figure.add_subplot(rows, columns, place + 1) for place in range(num)]
