"""Confidence widths that keep the promise of `SelfNormalized` and are narrower."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor

from botorch_ext.checks import amount, short
from botorch_ext.widths.base import (
    ConfidenceModel,
    Width,
    check_delta,
    check_noise_std,
    check_rkhs_bound,
)

#: The multiples of the ridge of a model at which `Ladder` computes bounds unless told otherwise.
RIDGES = (1.0, 4.0, 16.0, 64.0, 256.0)


@dataclass(frozen=True)
class Mixture(Width):
    """The width sqrt(B^2 + (2 sigma^2 / lambda) (ln(1/delta) + I_{t-1})).

    It holds under the assumptions of `SelfNormalized`, with the same probability, for points chosen
    adaptively and for every lambda > 0. It is never wider, and at least 0.7 times as wide.
    Source: Flynn and Reeb 2025 (arXiv 2403.12732); the proof is on the page "Proofs".

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1), over all steps and points together.

    Raises:
        ValueError: If an argument is out of its range.
    """

    rkhs_bound: float
    noise_std: float
    delta: float

    def __post_init__(self) -> None:
        self._keep(
            rkhs_bound=check_rkhs_bound(self.rkhs_bound),
            noise_std=check_noise_std(self.noise_std),
            delta=check_delta(self.delta),
        )

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        return self._width(model, 1)

    def _width(self, model: ConfidenceModel, num_ridges: int) -> Tensor:
        gain = model.information_gain() + math.log(num_ridges / self.delta)
        return (self.rkhs_bound**2 + 2 * self.noise_std**2 / model.noise_variance * gain).sqrt()


@dataclass(frozen=True)
class Ladder(Mixture):
    """The widths sqrt(B^2 + (2 sigma^2 / a) (ln(m/delta) + I_{t-1}(a))) of m ridges a, whose bounds
    are intersected.

    Every ridge a is a multiple of the ridge lambda of the model and has a mean and a standard
    deviation of its own. All m bounds hold together, so the upper bound is the least of the m upper
    bounds, and the lower bound is the greatest of the lower ones. Both are kept within the prior
    mean +- B sqrt(k(x, x)). Where observations are dense and the function is smooth, large ridges
    give the narrower bounds.

    It holds under the assumptions of `SelfNormalized`, with the same probability. With the ridges
    ``(1,)`` it is `Mixture`. A step costs about 2 to 5 times that of one ridge.
    Source: the event of Flynn and Reeb 2025 (arXiv 2403.12732), mixed over ridges; the proof is on
    the page "Proofs".

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1), over all steps, points and ridges together.
        ridges: Multiples of the ridge lambda of the model, fixed before any data; 1 must be among
            them. None: 1, 4, 16, 64 and 256.

    Raises:
        ValueError: If an argument is out of its range, if a ridge is given twice, or if 1 is not
            among the ridges.
    """

    ridges: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(ridges=RIDGES if self.ridges is None else checked_ridges(self.ridges))

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        return self._width(model, len(self.ridges or ()))


def checked_ridges(ridges: Iterable[float]) -> tuple[float, ...]:
    """Return ridges in ascending order, or raise a ValueError unless they are different positive
    numbers with 1 among them."""
    if isinstance(ridges, str) or not isinstance(ridges, Iterable):
        raise ValueError(f"ridges must be multiples of lambda, got {short(ridges)}")
    checked = sorted(amount(ridge, "ridges", "positive and finite") for ridge in ridges)
    if len(set(checked)) < len(checked) or 1.0 not in checked:
        raise ValueError(f"ridges must be different numbers with 1 among them, got {checked}")
    return tuple(checked)
