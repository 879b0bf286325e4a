"""Tables of points: as texts, and as pandas data frames, which are optional."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from botorch_ext.aligned import aligned, free_names
from botorch_ext.domains import Domain, Space
from botorch_ext.domains.outside_points import params_outside

if TYPE_CHECKING:
    import pandas as pd

# How many rows of a table are printed.
_MOST_ROWS = 10


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


def lines_of(columns: Mapping[str, Any], *domains: Domain | None) -> list[str]:
    """The lines of a table that people read: numbers of six digits, at most ten rows.

    Args:
        columns: From names to tensors or lists.
        *domains: The units of a `Space` stand beside the names of its parameters.
    """
    spaces = [each for each in domains if isinstance(each, Space)]
    units = {name: unit for space in spaces for name, unit in space.units.items()}
    heads = [f"{name} [{units[name]}]" if units.get(name) else name for name in columns]
    first = [values[:_MOST_ROWS] for values in columns.values()]
    rows = zip(*(v.tolist() if isinstance(v, Tensor) else v for v in first), strict=True)
    lines = aligned([heads, *([_shown(cell) for cell in row] for row in rows)])
    more = max(map(len, columns.values())) - _MOST_ROWS
    return [*lines, f"... and {more} more"] if more > 0 else lines


def _shown(cell: Any) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def columns_of(
    x: Tensor, contexts: Tensor | None, domain: Domain, context_domain: Domain | None
) -> dict[str, Any]:
    """The columns of a table of points, by name.

    Args:
        x: ``n x d`` points.
        contexts: ``n x d_z`` contexts, or None.
        domain: The domain of the points. In a `Space`, columns have the values of parameters, None
            where a parameter does not count.
        context_domain: The domain of the contexts, or None. In a `Space`, columns of contexts have
            names and values likewise.
    """
    columns = _columns_of(x, domain, domain.names)
    if contexts is not None:
        numbered = [f"context{j}" for j in range(contexts.shape[-1])]
        seen = _columns_of(contexts, context_domain, numbered)
        columns |= dict(zip(free_names(seen, columns), seen.values(), strict=True))
    return columns


def _columns_of(X: Tensor, domain: Domain | None, names: Sequence[str]) -> dict[str, Any]:
    """The columns of ``n x d`` points. The names are those of points that lie in no `Space`."""
    if not isinstance(domain, Space):
        return dict(zip(names, X.mT, strict=True))
    rows = [
        domain.params_of(row) if is_inside else params_outside(domain, row)
        for row, is_inside in zip(X, domain.contains(X).tolist(), strict=True)
    ]
    return {name: [row.get(name) for row in rows] for name in domain.parameters}
