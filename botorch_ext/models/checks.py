"""Checks of the arguments of models, at the door."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean
from torch import Tensor
from torch.nn import Module

from botorch_ext.checks import amount, short, whole_number
from botorch_ext.domains import as_points, checked_like, checked_tensor
from botorch_ext.domains.kinds import checked_device, checked_dtype
from botorch_ext.domains.points import require_finite

PriorMean = Mean | Callable[[Tensor], Tensor]


def frozen_mean(
    mean: PriorMean | float | None, like: Tensor, name: str = "mean"
) -> PriorMean | None:
    """A copy of a GPyTorch `Mean` without gradients, of the dtype and on the device of ``like``; a
    number as such a mean, a function and None as they are; or a ValueError."""
    if isinstance(mean, Module) and not isinstance(mean, Kernel):
        return deepcopy(mean).to(like).requires_grad_(False)
    if mean is None or (callable(mean) and not isinstance(mean, type | Kernel)):
        return mean
    try:
        number = amount(mean, name, "finite")
    except ValueError:
        got = f"the class {mean.__name__}" if isinstance(mean, type) else short(mean)
        raise ValueError(
            f"{name} must be a GPyTorch Mean such as ConstantMean(), a function of points or one "
            f"finite number, got {got}"
        ) from None
    constant = ConstantMean().to(like)
    constant.constant = like.new_tensor(number)
    return constant.requires_grad_(False)


def prior_mean_at(mean: PriorMean, X: Tensor, most_dims: int) -> Tensor:
    """A prior mean at ``... x n x d`` points, ``... x n``; or a ValueError.

    Args:
        mean: A `Mean` or a function.
        X: The points.
        most_dims: How many dimensions what it returns has at most.
    """
    n = X.shape[-2]
    try:
        values = mean(X)
    except Exception as error:
        raise ValueError(
            f"mean must take points of dimension {X.shape[-1]}, got {error!r}"
        ) from error
    if not isinstance(values, Tensor) or values.shape[-1:] != (n,) or values.ndim > most_dims:
        got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else short(values)
        raise ValueError(f"mean must return shape (..., {n}) at {n} points, got {got}")
    return values


def checked_noise_variance(
    noise_variance: float | Tensor | Sequence[float],
    dtype: torch.dtype,
    device: torch.device | str,
) -> Tensor:
    """``noise_variance`` as a tensor, or a ValueError if it is not positive and finite."""
    dtype, place = checked_dtype(dtype), checked_device(device)
    noise = checked_tensor(noise_variance, dtype, place, "noise_variance").detach()
    if not bool((torch.isfinite(noise) & (noise > 0)).all()):
        raise ValueError(f"noise_variance must be positive and finite, got {noise_variance}")
    return noise


def checked_noise_of(observation_noise: Any, like: Tensor) -> Tensor:
    """The noise variance of what is predicted, or a ValueError."""
    if isinstance(observation_noise, bool | int | float | str):
        raise ValueError(
            "observation_noise must be True, False or variances that broadcast to (..., q, 1), got "
            f"{observation_noise!r}"
        )
    return checked_like(observation_noise, like, "observation_noise")


def require_transform(transform: Any, name: str, kind: type) -> None:
    """A ValueError unless this is a BoTorch transform of a kind, or None."""
    if not isinstance(transform, kind | None):
        raise ValueError(
            f"{name} must be a BoTorch {kind.__name__} or None, got {short(transform)}"
        )


def checked_values(
    Y: Any, num_points: int, like: Tensor, name: str = "Y", look: bool = True
) -> Tensor:
    """``n x 1`` or ``n`` observations, or one number for one point, as a ``n``-dim tensor; or a
    ValueError. ``look`` as for `as_points`."""
    Y = checked_like(Y, like, name)
    n = num_points
    if Y.shape not in ((n,), (n, 1)) and (n != 1 or Y.ndim):
        raise ValueError(f"{name} must have shape ({n}, 1) or ({n},), got {tuple(Y.shape)}")
    if look:
        require_finite({name: Y})
    return Y.reshape(n)


def checked_row_numbers(rows: Any, num_rows: int) -> list[int]:
    """Different positions of rows that there are, or a ValueError."""
    try:
        given = list(rows)
    except TypeError:
        given = None
    if given is None or isinstance(rows, str | bytes | dict):
        raise ValueError(f"rows must be positions of rows, as in [0, 2], got {short(rows)}")
    numbers = [whole_number(row, "each of rows") for row in given]
    if not all(0 <= row < num_rows for row in numbers):
        raise ValueError(f"rows must lie in [0, {num_rows}), got {numbers}")
    if len({*numbers}) < len(numbers):
        raise ValueError(f"rows must be different from each other, got {numbers}")
    return numbers


def checked_inputs(
    X: Any, dim: int, like: Tensor, transform: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Inputs as ``n x d``, and transformed, or a ValueError; their entries are not looked at.

    Args:
        X: ``n x d``.
        dim: How many columns the model has after the transform, which may change them; 0 while that
            is not known.
        like: Of the dtype and on the device that is expected.
        transform: None where inputs stay as they are.
    """
    if transform is None:
        X = as_points(X, dim or None, like, look=False)
        return X, X
    X = as_points(X, None, like, look=False)
    Z = transformed(X, transform)
    if dim not in (0, Z.shape[-1]):
        raise ValueError(
            f"X must have {dim} columns after the input transform, got {Z.shape[-1]} "
            f"from shape {tuple(X.shape)}"
        )
    return X, Z


def transformed(X: Tensor, transform: Callable[[Tensor], Tensor]) -> Tensor:
    """Transformed inputs, or a ValueError where the transform does not take them."""
    try:
        return transform(X)
    except Exception as error:
        raise ValueError(
            f"input_transform must take points of dimension {X.shape[-1]}, got {error!r}"
        ) from error
