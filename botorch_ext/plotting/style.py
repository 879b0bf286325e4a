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
