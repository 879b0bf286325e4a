"""Points as tensors: checks of what users pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.checks import one_number, short
from botorch_ext.domains.dtypes_and_devices import checked_device, checked_dtype

#: Values by name.
Params = Mapping[str, Any]
#: Tensors, arrays, objects that become arrays, and nested lists; for points of a box also dicts of
#: values by name.
PointsLike = Tensor | np.ndarray | Sequence[Any] | Params | float


def numbered(x: Tensor) -> dict[str, Any]:
    """The numbers of a point by the default names of its columns.

    Args:
        x: A point, ``d``.

    Returns:
        A dict such as ``{"x0": 0.3, "x1": 2.0}``.
    """
    return {f"x{j}": number for j, number in enumerate(x.tolist())}


def as_points(
    X: PointsLike,
    dim: int | None,
    like: Tensor,
    name: str = "X",
    look: bool = True,
) -> Tensor:
    """Check points that a user gave.

    Args:
        X: A tensor, an array or nested numbers of shape ``n x d`` or ``d``.
        dim: The expected ``d``; None accepts any.
        like: A tensor whose dtype and device the points must share.
        name: The name of the argument, for the error message.
        look: Whether to check that entries are finite; otherwise the caller checks it with
            `require_finite`.

    Returns:
        The points as a tensor, ``n x d``.

    Raises:
        ValueError: If the shape, dtype or device is wrong, or an entry is not finite.
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
    """Check that all entries of tensors are finite, with one synchronisation of the device.

    Args:
        arguments: Tensors by the names that messages call them.

    Raises:
        ValueError: If an entry is NaN or infinite; the message names the first such tensor.
    """
    # A sum is finite where all entries are, unless it overflows.
    sums = [values.sum() for values in arguments.values()]
    if bool(torch.stack(sums).isfinite().all()):
        return
    for name, values in arguments.items():
        if not bool(torch.isfinite(values).all()):
            raise ValueError(f"{name} must be finite, got NaN or infinite entries")


def checked_rows(values: Any, dim: int, like: Tensor, name: str = "X") -> Tensor:
    """Check the shape, dtype and device of points in any batches; entries are not checked.

    Args:
        values: A tensor, an array or nested numbers of shape ``... x d``.
        dim: The expected ``d``.
        like: A tensor whose dtype and device the points must share.
        name: The name of the argument, for the error message.

    Returns:
        The points as a tensor, ``... x d``.

    Raises:
        ValueError: If the shape, dtype or device is wrong.
    """
    X = checked_like(values, like, name)
    if X.ndim == 0 or X.shape[-1] != dim:
        raise ValueError(f"{name} must have shape (..., {dim}), got {tuple(X.shape)}")
    return X


def checked_like(values: Any, like: Tensor, name: str) -> Tensor:
    """Check real numbers of any shape; entries are not checked.

    Args:
        values: A tensor, an array or nested numbers. A floating-point tensor must have the dtype
            and device of ``like`` already; anything else is converted.
        like: A tensor with the dtype and device of the result.
        name: The name of the argument, for the error message.

    Returns:
        The numbers as a tensor of the same shape.

    Raises:
        ValueError: If they are not real numbers of one shape, or the dtype or device is wrong.
    """
    if not isinstance(values, Tensor):
        return checked_tensor(values, like.dtype, like.device, name)
    _require_real(values, name)
    if values.dtype.is_floating_point or values.device != like.device:
        require_same_kind(values, like, name)
        return values
    return values.to(like.dtype)


def require_same_kind(X: Tensor, like: Tensor, name: str) -> None:
    """Check that two tensors have the same dtype and device.

    Args:
        X: The tensor to check.
        like: A tensor with the expected dtype and device.
        name: The name of ``X``, for the error message.

    Raises:
        ValueError: If the dtype or the device differs.
    """
    if X.dtype != like.dtype or X.device != like.device:
        raise ValueError(
            f"{name} must be {like.dtype} on {like.device}, got {X.dtype} on {X.device}"
            f"{_cure(X, like)}"
        )


def _cure(X: Tensor, like: Tensor) -> str:
    """How to give numbers of a floating-point dtype another one; empty for other differences."""
    ways = {torch.float32: "float()", torch.float64: "double()"}
    if X.device != like.device or not {X.dtype, like.dtype} <= set(ways):
        return ""
    return (
        f": convert it with .{ways[like.dtype]}, or compute in {str(X.dtype).split('.')[-1]} "
        f"on a domain of that dtype, as with bx.Box(bounds.{ways[X.dtype]})"
    )


def checked_tensor(
    values: Any, dtype: torch.dtype, device: torch.device | str | None, name: str
) -> Tensor:
    """Convert real numbers to a tensor; entries are not checked.

    Args:
        values: A tensor, an array or nested numbers.
        dtype: The dtype of the result.
        device: The device of the result; None leaves a tensor where it is.
        name: The name of the argument, for the error message.

    Returns:
        The numbers as a tensor of the same shape.

    Raises:
        ValueError: If they are not real numbers of one shape.
    """
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
    """Copy real numbers to a floating-point tensor without gradients.

    Args:
        values: A tensor, an array or nested numbers.
        dtype: The dtype of the result; None takes that of a floating-point tensor, and float64 for
            anything else.
        device: The device of the result; None leaves a tensor where it is.
        name: The name of the argument, for the error message.

    Returns:
        A copy of the same shape.

    Raises:
        ValueError: If they are not real numbers of one shape, or dtype or device is not possible.
    """
    if dtype is not None:
        dtype = checked_dtype(dtype)
    elif isinstance(values, Tensor) and values.is_floating_point():
        dtype = checked_dtype(values.dtype, f"the dtype of {name}")
    device = checked_device(device)
    return checked_tensor(values, dtype or torch.float64, device, name).detach().clone()


def _require_real(values: Tensor, name: str) -> None:
    """Raise a ValueError if a tensor is sparse or holds bools or complex numbers."""
    dtype = values.dtype
    if values.layout is not torch.strided:
        raise ValueError(f"{name} must be dense, got {values.layout}")
    if dtype is torch.bool or dtype.is_complex:
        raise ValueError(f"{name} must be real numbers, got {dtype}")


def _as_tensor(values: Any, dtype: torch.dtype, device: torch.device | str | None) -> Tensor:
    """Convert an object that is not a tensor to one; raises various errors if that fails."""
    if isinstance(values, list | tuple | range):
        if _are_plain(values):
            return torch.tensor(values, dtype=dtype, device=device)
        return torch.stack([checked_tensor(value, dtype, device, "entries") for value in values])
    if not hasattr(values, "__array__"):
        return torch.tensor(one_number(values, "entries"), dtype=dtype, device=device)
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"entries must all be real numbers, got {array.dtype}")
    # A copy: torch reads neither negative strides nor bytes in another order.
    return torch.from_numpy(np.array(array, dtype=np.float64)).to(dtype=dtype, device=device)


def _are_plain(values: Sequence[Any]) -> bool:
    """Whether all entries are Python numbers, or rows of them: torch converts these directly."""
    kinds = {*map(type, values)}
    if kinds and kinds <= {list, tuple}:
        kinds = {*map(type, chain.from_iterable(values))}
    return kinds <= {int, float}
