"""Rules of CUDA: what an operation costs there, and where its tensors must live.

Launches of an operation are those of PyTorch's own kernels on an NVIDIA GPU, rounded; whatever is
not listed is one launch. Composite operations are seen as the parts they are made of.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch._ops import OpOverload


def _names(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


_VIEWS = _names(
    "view _unsafe_view slice select expand permute transpose t unsqueeze squeeze diagonal alias "
    "detach split split_with_sizes unbind as_strided _reshape_alias unfold lift_fresh lift empty "
    "empty_like new_empty new_empty_strided empty_strided sym_size sym_stride sym_numel "
    "is_same_size reshape view_as_real chunk _local_scalar_dense"
)

_LAUNCHES = {
    "linalg_solve_triangular": 3,
    "linalg_cholesky_ex": 4,
    "cholesky_solve": 3,
    "sort": 3,
    "topk": 3,
    "argsort": 3,
    "nonzero": 3,
    "masked_select": 4,
    "_unique2": 8,
    "unique_dim": 10,
    "cumsum": 2,
    "_linalg_eigh": 20,
    "equal": 3,
    "bincount": 4,
}
MASK_LAUNCHES = 3  # an index by a boolean mask is a nonzero first

_STOPS = _names(
    "_local_scalar_dense nonzero masked_select _unique2 unique_dim unique_consecutive equal "
    "_linalg_check_errors bincount _linalg_eigh is_nonzero"
)

_NONDETERMINISTIC = _names(
    "index_add index_add_ scatter_add scatter_add_ cumsum _cdist_backward bincount histc put_ "
    "scatter_reduce scatter_reduce_ kthvalue median"
)

_INDEXING = _names("index index_put index_put_ _index_put_impl_ _unsafe_index")

_RANKS = (torch.ops.aten.topk.default, torch.ops.aten.sort.default)

# What reads no more than it writes, however large the tensor it reads from.
_PICKS = _names("index _unsafe_index index_select gather take masked_select embedding")

# Beside the pointwise ones: a value without dimensions may lie on the CPU.
_TAKES_SCALARS = _names("fill fill_ masked_fill masked_fill_ index_fill index_fill_ rsub")


@dataclass(frozen=True)
class Operation:
    """An operation of PyTorch as CUDA knows it.

    Args:
        name: Without its namespace and overload.
        launches: Of kernels; 0 for a view.
        stops: Whether the host waits for its result.
        nondeterministic: Whether its last digits differ between runs on CUDA.
        picks: Whether it reads a part of its arguments, as large as its result.
        indexes: Whether its second argument is a list of indices.
        scalars: How many tensors without dimensions may lie on the CPU.
        in_place: Whether its first argument is written.
        reshapes: Whether it changes the shape of its first argument in place.
        ranks: Whether it puts equal values in any order.
    """

    name: str
    launches: int
    stops: bool
    nondeterministic: bool
    picks: bool
    indexes: bool
    scalars: int
    in_place: bool
    reshapes: bool
    ranks: bool


@cache
def rules_of(func: OpOverload) -> Operation:
    """What CUDA makes of an operation."""
    name = func._schema.name.split("::")[1]
    reshapes = torch.Tag.inplace_view in func.tags
    scalars = int(torch.Tag.pointwise in func.tags or name in _TAKES_SCALARS)
    return Operation(
        name=name,
        launches=0 if name in _VIEWS or reshapes else _LAUNCHES.get(name, 1),
        stops=name in _STOPS,
        nondeterministic=name in _NONDETERMINISTIC,
        picks=name in _PICKS,
        indexes=name in _INDEXING,
        scalars=3 if name == "where" else scalars,
        in_place=name.endswith("_") and not name.startswith("__"),
        reshapes=reshapes,
        ranks=func in _RANKS,
    )
