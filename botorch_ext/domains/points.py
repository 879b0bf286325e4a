"""Points as tensors: what is checked at the door."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains.kinds import checked_device, checked_dtype

#: Values by name.
Params = Mapping[str, Any]
#: Tensors, arrays or what becomes one, and nested lists; where a box is to have them, params too.
PointsLike = Tensor | np.ndarray | Sequence[Any] | Params | float


def numbered(x: Tensor) -> dict[str, Any]:
    """The numbers of a point, ``d``, by the names of columns that have none: ``x0``, ``x1``."""
    return {f"x{j}": number for j, number in enumerate(x.tolist())}


def as_points(
    X: PointsLike,
    dim: int | None,
    like: Tensor,
    name: str = "X",
    look: bool = True,
) -> Tensor:
    """Checks points at the door.

    Args:
        X: A ``n x d`` or ``d``-dim tensor, an array, or nested numbers of that shape.
        dim: The expected ``d``; None where any will do.
        like: A tensor whose dtype and device the points must share.
        name: The name of the argument, for the error message.
        look: Whether entries are looked at; else the caller does, with `require_finite`.

    Returns:
        A ``n x d``-dim tensor.

    Raises:
        ValueError: Wrong shape, dtype or device, or an entry that is not finite.
    """
    X = checked_like(X, like, name)
    if X.ndim == 1:
        X = X.unsqueeze(0)
    if X.ndim != 2 or dim not in (None, X.shape[-1]):
        d = "d" if dim is None else dim
        raise ValueError(f"{name} must have shape (n, {d}) or ({d},), got {tuple(X.shape)}")
    if look:
        require_finite({name: X})
    return X


def require_finite(arguments: Mapping[str, Tensor]) -> None:
    """A ValueError that names the first of the arguments with an entry that is not finite. One look
    at the device does for all of them."""
    # A sum is finite where all entries are, unless it overflows.
    sums = [values.sum() for values in arguments.values()]
    if bool(torch.stack(sums).isfinite().all()):
        return
    for name, values in arguments.items():
        if not bool(torch.isfinite(values).all()):
            raise ValueError(f"{name} must be finite, got NaN or infinite entries")


def checked_rows(values: Any, dim: int, like: Tensor, name: str = "X") -> Tensor:
    """Points in any batches, ``... x d``, of the dtype and on the device of ``like``; their entries
    are not looked at. Else a ValueError that names the argument."""
    X = checked_like(values, like, name)
    if X.ndim == 0 or X.shape[-1] != dim:
        raise ValueError(f"{name} must have shape (..., {dim}), got {tuple(X.shape)}")
    return X


def checked_like(values: Any, like: Tensor, name: str) -> Tensor:
    """Real numbers as a tensor of the dtype and on the device of ``like``; a tensor of
    floating-point numbers must be so already. Else a ValueError that names the argument."""
    if not isinstance(values, Tensor):
        return checked_tensor(values, like.dtype, like.device, name)
    _require_real(values, name)
    if values.dtype.is_floating_point or values.device != like.device:
        require_same_kind(values, like, name)
        return values
    return values.to(like.dtype)


def require_same_kind(X: Tensor, like: Tensor, name: str) -> None:
    """Raises a ValueError unless ``X`` has the dtype and the device of ``like``."""
    if X.dtype != like.dtype or X.device != like.device:
        raise ValueError(
            f"{name} must be {like.dtype} on {like.device}, got {X.dtype} on {X.device}"
        )


def checked_tensor(
    values: Any, dtype: torch.dtype, device: torch.device | str | None, name: str
) -> Tensor:
    """Real numbers as a tensor, or a ValueError that names the argument."""
    if isinstance(values, Tensor):
        _require_real(values, name)
        return values.to(dtype=dtype, device=device)
    try:
        return _as_tensor(values, dtype, device)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(
            f"{name} must be a tensor or nested numbers of one shape, got {short(values)}"
        ) from error


def as_floating(
    values: Any,
    dtype: torch.dtype | None,
    device: torch.device | str | None,
    name: str,
) -> Tensor:
    """A floating-point copy without gradients: of the dtype asked for, else the tensor's, else
    float64; or a ValueError that names the argument."""
    if dtype is not None:
        dtype = checked_dtype(dtype)
    elif isinstance(values, Tensor) and values.is_floating_point():
        dtype = checked_dtype(values.dtype, f"the dtype of {name}")
    device = checked_device(device)
    return checked_tensor(values, dtype or torch.float64, device, name).detach().clone()


def _require_real(values: Tensor, name: str) -> None:
    """Raises a ValueError where a tensor is sparse, or of bools or complex numbers."""
    dtype = values.dtype
    if values.layout is not torch.strided:
        raise ValueError(f"{name} must be dense, got {values.layout}")
    if dtype is torch.bool or dtype.is_complex:
        raise ValueError(f"{name} must be real numbers, got {dtype}")


def _as_tensor(values: Any, dtype: torch.dtype, device: torch.device | str | None) -> Tensor:
    """What is no tensor as one; some error where that cannot be."""
    if isinstance(values, list | tuple | range):
        if _are_plain(values):
            return torch.tensor(values, dtype=dtype, device=device)
        return torch.stack([checked_tensor(value, dtype, device, "entries") for value in values])
    if not hasattr(values, "__array__"):
        return torch.tensor(one_number(values, "entries"), dtype=dtype, device=device)
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"must hold real numbers, all of them, got {array.dtype}")
    # A copy: torch reads neither negative strides nor bytes in another order.
    return torch.from_numpy(np.array(array, dtype=np.float64)).to(dtype=dtype, device=device)


def _are_plain(values: Sequence[Any]) -> bool:
    """Whether all are numbers of Python, or rows of such: a tensor is made of these at once."""
    kinds = {*map(type, values)}
    if kinds and kinds <= {list, tuple}:
        kinds = {*map(type, chain.from_iterable(values))}
    return kinds <= {int, float}
