"""Tables of points as pandas data frames, which are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    import pandas as pd


def frame(columns: dict[str, Any]) -> pd.DataFrame:
    """A data frame of columns: tensors, or lists.

    Raises:
        ImportError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas") from error
    return pd.DataFrame(
        {
            name: values.detach().cpu().numpy() if isinstance(values, Tensor) else values
            for name, values in columns.items()
        }
    )


def columns_of(x: Tensor, contexts: Tensor | None, names: tuple[str, ...]) -> dict[str, Any]:
    """The columns of ``n x d`` points and of ``n x d_z`` contexts, or None, by name."""
    columns: dict[str, Any] = dict(zip(names, x.mT, strict=True))
    if contexts is not None:
        columns |= {f"context {j}": values for j, values in enumerate(contexts.mT)}
    return columns
