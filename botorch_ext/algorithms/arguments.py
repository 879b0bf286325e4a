"""The arguments that the functions of this package share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, TypeVar

from gpytorch.kernels import Kernel

from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.widths import Width

DEFAULT_DELTA = 0.1


class Common(TypedDict, total=False):
    """What every method takes."""

    noise_std: float | None
    rkhs_bound: float | None
    delta: float
    width: Width | float | None
    mean: PriorMean | None
    seed: int


_Published = TypeVar("_Published", bound=Width | Sequence[Width])


def published_width(
    published: Callable[[float, float, float], _Published], options: Mapping[str, Any]
) -> _Published | Any:
    """The width the user gave, or the published one (or several) from rkhs_bound, noise_std and
    delta.

    Raises:
        ValueError: Neither the width nor what the published one needs.
    """
    if options.get("width") is not None:
        return options["width"]
    for name in ("rkhs_bound", "noise_std"):
        if options.get(name) is None:
            raise ValueError(f"{name} must be given unless width is, got None")
    delta = options.get("delta", DEFAULT_DELTA)
    return published(options["rkhs_bound"], options["noise_std"], delta)


def make_model(
    domain: Domain, kernel: Kernel, noise_variance: float, options: Mapping[str, Any]
) -> KernelGP:
    """The prior on the dtype and device of the domain.

    Raises:
        ValueError: A noise variance that is not positive and finite.
    """
    ridge = one_number(noise_variance, "noise_variance")
    mean = options.get("mean")
    return KernelGP(kernel, ridge, mean=mean, dtype=domain.dtype, device=domain.device)


def refuse_ignored(options: Mapping[str, Any]) -> None:
    """A ValueError for options of optimistic methods that one whose rounds start from the prior
    cannot heed."""
    for name in ("initial", "num_initial", "pending"):
        if name in options:
            raise ValueError(
                f"{name} must not be given: rounds start from the prior and decide without what is "
                f"pending, got {options[name]!r}"
            )


def refuse_unknown(options: Mapping[str, Any], known: Any) -> None:
    """A TypeError for an option that is not in a TypedDict: `Unpack` is for type checkers, Python
    itself lets any keyword through."""
    unknown = sorted(options.keys() - known.__optional_keys__)
    if unknown:
        raise TypeError(f"unexpected keyword arguments: {', '.join(unknown)}")
