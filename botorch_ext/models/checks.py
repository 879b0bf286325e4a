"""Checks of the arguments of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, cast

import torch
from gpytorch.kernels import Kernel
from gpytorch.means import ConstantMean, Mean, ZeroMean
from torch import Tensor
from torch.nn import Module

from botorch_ext.checks import amount, short, some_of, whole_number
from botorch_ext.domains import as_points, checked_like, checked_tensor
from botorch_ext.domains.dtypes_and_devices import checked_device, checked_dtype
from botorch_ext.domains.points import require_finite

PriorMean = Mean | Callable[[Tensor], Tensor]


def frozen_mean(
    mean: PriorMean | float | None, like: Tensor, name: str = "mean"
) -> PriorMean | None:
    """Freeze a prior mean.

    Args:
        mean: A GPyTorch `Mean`, a number, a function of points, or None.
        like: A tensor with the dtype and device of the result.
        name: The name of the argument, for the message.

    Returns:
        A copy of a `Mean` without gradients, a constant `Mean` for a number; a function or None as
        it is.

    Raises:
        ValueError: If it is anything else.
    """
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


def negative_mean(mean: PriorMean | None) -> PriorMean | None:
    """The negative of a prior mean.

    Args:
        mean: A frozen mean, or None for zero.

    Returns:
        A constant `Mean` for a constant one, else a `Mean` that calls the given one.
    """
    if mean is None or type(mean) is ZeroMean:
        return mean
    if type(mean) is not ConstantMean:
        return NegativeMean(mean)
    value: Tensor = cast(ConstantMean, mean).constant
    constant = ConstantMean(batch_shape=value.shape).to(value)
    constant.constant = -value
    return constant.requires_grad_(False)


class NegativeMean(Mean):
    """The negative of a prior mean.

    Args:
        mean: A `Mean`, or a function of points.
    """

    def __init__(self, mean: PriorMean) -> None:
        super().__init__()
        self.mean = mean

    def forward(self, x: Tensor) -> Tensor:
        """The negative means, ``... x n``.

        Args:
            x: Points, ``... x n x d``.
        """
        return -self.mean(x)


def prior_mean_at(mean: PriorMean, X: Tensor, most_dims: int) -> Tensor:
    """Evaluate a prior mean.

    Args:
        mean: A `Mean` or a function.
        X: Points, ``... x n x d``.
        most_dims: The largest number of dimensions that the result may have.

    Returns:
        The means, ``... x n``.

    Raises:
        ValueError: If the mean does not take the points, or returns another shape.
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
    """Check noise variances.

    Returns:
        The noise variances as a tensor.

    Raises:
        ValueError: If one is not positive and finite, or the dtype or device is not possible.
    """
    dtype, place = checked_dtype(dtype), checked_device(device)
    noise = checked_tensor(noise_variance, dtype, place, "noise_variance").detach()
    if not bool((torch.isfinite(noise) & (noise > 0)).all()):
        raise ValueError(f"noise_variance must be positive and finite, got {noise_variance}")
    return noise


def checked_noise_of(observation_noise: Any, like: Tensor) -> Tensor:
    """The noise variances of predicted observations, checked.

    Args:
        observation_noise: The variances, a tensor.
        like: A tensor with the dtype and device that they must have.

    Raises:
        ValueError: If they are anything else.
    """
    if isinstance(observation_noise, bool | int | float | str):
        raise ValueError(
            "observation_noise must be True, False or variances that broadcast to (..., q, 1), got "
            f"{observation_noise!r}"
        )
    return checked_like(observation_noise, like, "observation_noise")


def require_transform(transform: Any, name: str, kind: type) -> None:
    """Check that an argument is a BoTorch transform.

    Raises:
        ValueError: If it is anything else.
    """
    if not isinstance(transform, kind | None):
        raise ValueError(
            f"{name} must be a BoTorch {kind.__name__} or None, got {short(transform)}"
        )


def checked_values(
    Y: Any, num_points: int, like: Tensor, name: str = "Y", look: bool = True
) -> Tensor:
    """Check observations.

    Args:
        Y: Observations, ``n x 1`` or ``n``; one number is allowed for one point.
        num_points: n, the number of points.
        like: A tensor with the dtype and device that the observations must have.
        name: The name of the argument, for the message.
        look: Whether to check that entries are finite.

    Returns:
        The observations, ``n``.

    Raises:
        ValueError: If the shape, dtype or device is wrong, or an entry is not finite.
    """
    Y = checked_like(Y, like, name)
    n = num_points
    if Y.shape not in ((n,), (n, 1)) and (n != 1 or Y.ndim):
        raise ValueError(f"{name} must have shape ({n}, 1) or ({n},), got {tuple(Y.shape)}")
    if look:
        require_finite({name: Y})
    return Y.reshape(n)


def checked_relative_noise(relative_noise: Any, num_points: int, like: Tensor) -> Tensor | None:
    """Check noise variances of observations in units of lambda.

    Args:
        relative_noise: ``n`` numbers, or ``*batch x n`` for the models of a batch; None for ones.
        num_points: n, the number of points.
        like: The noise variances of the models, ``*batch``.

    Returns:
        The noise variances, ``n`` or ``*batch x n``; None for ones.

    Raises:
        ValueError: If the shape, dtype or device is wrong, or an entry is not positive and finite.
    """
    if relative_noise is None:
        return None
    noise = checked_like(relative_noise, like, "relative_noise")
    if noise.shape not in ((num_points,), (*like.shape, num_points)):
        raise ValueError(
            f"relative_noise must have shape ({num_points},), got {tuple(noise.shape)}"
        )
    if not bool(((noise > 0) & noise.isfinite()).all()):
        raise ValueError(f"relative_noise must be positive and finite, got {short(relative_noise)}")
    return noise


def checked_row_numbers(rows: Any, num_rows: int) -> list[int]:
    """Check row numbers.

    Returns:
        The rows as a list.

    Raises:
        ValueError: If they are not different numbers of existing rows.
    """
    try:
        given = list(rows)
    except TypeError:
        given = None
    if given is None or isinstance(rows, str | bytes | dict):
        raise ValueError(f"rows must be positions of rows, as in [0, 2], got {short(rows)}")
    numbers = [whole_number(row, "each of rows") for row in given]
    if not all(0 <= row < num_rows for row in numbers):
        raise ValueError(f"rows must lie in [0, {num_rows}), got {some_of(numbers)}")
    if len({*numbers}) < len(numbers):
        raise ValueError(f"rows must be different from each other, got {some_of(numbers)}")
    return numbers


def checked_inputs(
    X: Any, dim: int, like: Tensor, transform: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, Tensor]:
    """Check the shape, dtype and device of inputs, not their entries, and transform them.

    Args:
        X: Inputs, ``n x d``.
        dim: The number of columns after the transform, which may change it; 0 while it is not
            known.
        like: A tensor with the dtype and device that the inputs must have.
        transform: The input transform; None for none.

    Returns:
        The inputs, ``n x d``, and the transformed inputs.

    Raises:
        ValueError: If the shape, dtype or device is wrong, or the transform does not take them.
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
    """Transform inputs.

    Args:
        X: Inputs, ``... x n x d``.
        transform: The input transform.

    Raises:
        ValueError: If the transform does not take them.
    """
    try:
        return transform(X)
    except Exception as error:
        raise ValueError(
            f"input_transform must take points of dimension {X.shape[-1]}, got {error!r}"
        ) from error
