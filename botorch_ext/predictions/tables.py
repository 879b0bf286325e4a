"""Tables of points as pandas data frames, which are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor

from botorch_ext.domains import Domain, Space
from botorch_ext.domains.outside import params_outside

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


def columns_of(x: Tensor, contexts: Tensor | None, domain: Domain) -> dict[str, Any]:
    """The columns of ``n x d`` points of a domain and of ``n x d_z`` contexts, or None, by name: in
    a `Space` values of parameters, None where one does not count."""
    if isinstance(domain, Space):
        rows = [
            domain.params_of(row) if is_inside else params_outside(domain, row)
            for row, is_inside in zip(x, domain.contains(x).tolist(), strict=True)
        ]
        columns: dict[str, Any] = {
            name: [row.get(name) for row in rows] for name in domain.parameters
        }
    else:
        columns = dict(zip(domain.names, x.mT, strict=True))
    if contexts is not None:
        columns |= {f"context {j}": values for j, values in enumerate(contexts.mT)}
    return columns
