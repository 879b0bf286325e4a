"""Reading the bounds of a box as users write them: two rows, or a pair for each column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.checks import some_of
from botorch_ext.domains.points import as_floating

#: Two rows as a tensor, two lists or an array; or pairs as a list of tuples.
BoundsLike = Tensor | np.ndarray | Sequence[Sequence[float]]

#: The forms in which bounds can be written, for error messages.
FORMS = (
    "write the lower and the upper corner, as in Box(lower=[0, 1], upper=[20, 80]), or a pair for "
    "each column as a tuple, as in [(0, 20), (1, 80)]"
)


def as_bounds(
    bounds: BoundsLike | None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
    name: str = "bounds",
) -> Tensor:
    """The lower and the upper corner of a box.

    Args:
        bounds: A tensor, two lists or an array holds the lower corner, then the upper corner. A
            list of tuples holds the pair (lower, upper) of each column, also if there are two.
        dtype: float64 unless given here or by a floating-point tensor.
        device: The device of the result.
        name: The name of the argument, for error messages.

    Returns:
        The corners, ``2 x d``, as a copy.

    Raises:
        ValueError: If the bounds have another form, a number is not finite, or a lower bound is not
            below its upper bound; or if ``2 x 2`` numbers that are not a tensor could be rows as
            well as pairs.
    """
    are_pairs = False
    if isinstance(bounds, list | tuple):
        kinds = {isinstance(entry, tuple) for entry in bounds}
        if len(kinds) > 1:
            raise ValueError(f"{name} must not mix lists and tuples, got {bounds!r}: {FORMS}")
        are_pairs = kinds == {True}
    try:
        numbers = as_floating(bounds, dtype, device, name)
    except ValueError as error:
        is_of_bounds = str(error).startswith((name, f"the dtype of {name}"))
        if is_of_bounds or not isinstance(dtype, torch.dtype | str | type | None):
            raise ValueError(f"{error}: {FORMS}") from error  # also for Box(lower, upper)
        raise
    shape = tuple(numbers.shape)
    if are_pairs:
        if len(shape) != 2 or shape[1] != 2:
            raise ValueError(
                f"{name} must have shape (d, 2) as a list of tuples, got {shape}: {FORMS}"
            )
        numbers = numbers.T.contiguous()
    elif len(shape) != 2 or shape[0] != 2 or shape[1] == 0:
        raise ValueError(f"{name} must have shape (2, d), lower then upper, got {shape}: {FORMS}")
    if not bool(torch.isfinite(numbers).all()):
        raise ValueError(f"{name} must be finite, got {some_of(numbers)}: {FORMS}")
    if not bool((numbers[0] < numbers[1]).all()):
        raise ValueError(
            f"{name} must have lower < upper in every column, got {some_of(numbers)}: {FORMS}"
        )
    if not bool((numbers[1] - numbers[0]).isfinite().all()):
        raise ValueError(
            f"{name} must have upper - lower finite in every column, got {some_of(numbers)}"
        )
    has_two_readings = numbers.shape == (2, 2) and bool((numbers[:, 0] < numbers[:, 1]).all())
    if has_two_readings and not (are_pairs or _says_rows(bounds)):
        raise ValueError(
            f"{name} must say whether they are two corners or two pairs (lower, upper), got "
            f"{numbers.tolist()}, which could be both: {FORMS}"
        )
    return numbers


def as_corners(
    lower: Sequence[float] | Tensor,
    upper: Sequence[float] | Tensor,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> Tensor:
    """The bounds that two corners make.

    Args:
        lower: The lower corner, ``d``.
        upper: The upper corner, ``d``.
        dtype: float64 unless given here or by floating-point tensors.
        device: The device of the result.

    Returns:
        The corners, ``2 x d``, as a copy.

    Raises:
        ValueError: If the corners are not ``d`` numbers each, or as for `as_bounds`.
    """
    corners = [
        as_floating(corner, dtype, device, name)
        for corner, name in ((lower, "lower"), (upper, "upper"))
    ]
    if corners[0].ndim != 1 or corners[0].shape != corners[1].shape:
        shapes = tuple(tuple(corner.shape) for corner in corners)
        raise ValueError(f"lower and upper must have d numbers each, got shapes {shapes}")
    return as_bounds(torch.stack(corners), dtype, device, "lower and upper")


def _says_rows(bounds: Any) -> bool:
    """Whether bounds are a tensor, or two tensors: BoTorch's bounds are rows."""
    return isinstance(bounds, Tensor) or all(isinstance(row, Tensor) for row in bounds)
