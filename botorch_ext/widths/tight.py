"""Confidence widths that keep the promise of `SelfNormalized` and are narrower."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from botorch_ext.checks import amount, short
from botorch_ext.widths.base import (
    ConfidenceModel,
    RKHSWidth,
    check_misspecification,
)

#: The multiples of the ridge of a model at which `Ladder` computes bounds unless told otherwise.
RIDGES = (1.0, 4.0, 16.0, 64.0, 256.0)


class FittedModel(ConfidenceModel, Protocol):
    """The properties of a model that a width reads which looks at the observations."""

    @property
    def num_told(self) -> int: ...

    def told_information_gain(self) -> Tensor: ...

    def quadratic_form(self) -> Tensor: ...


@dataclass(frozen=True)
class Mixture(RKHSWidth):
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

    takes_unequal_noise = True

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
    bounds, and the lower bound is the greatest of the lower ones. Where observations are dense and
    the function is smooth, large ridges give the narrower bounds.

    It holds under the assumptions of `SelfNormalized`, with the same probability. With the ridges
    ``(1,)`` it is `Mixture`. A step costs about 2 to 5 times that of one ridge. A
    model with input or outcome transforms is refused.
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


@dataclass(frozen=True)
class Dual(Ladder):
    """The widths sqrt(rho^2 / a) with rho^2 = R^2 + a B^2 - q_a, which look at the observations.

    q_a = a y' (K + a I)^-1 y, and R^2 = -2 sigma^2 ln(1/m sum_a exp(-I(a) - q_a / (2 sigma^2))) +
    2 sigma^2 ln(1/delta), over the m ridges a, whose bounds are intersected as those of `Ladder`.
    Pending trials do not count in rho^2. If f is only within eps of the RKHS ball, the width is
    put into `PointwiseEnlarged`, and rho^2 is then larger.

    It holds under the assumptions of `SelfNormalized`, with the same probability, and is never
    wider than `Ladder`. It is narrowest where the norm of f is close to B. Where B, the kernel or
    the noise are wrong, it is over-confident sooner than the other widths, so it must not decide
    about safety. At steps at which rho^2 is negative for one of the ridges, the observations refute
    the model, and the widths are those of `Ladder`.
    The other arguments are those of `Ladder`.
    Source: Flynn and Reeb 2025 (arXiv 2403.12732); the proof is on the page "Proofs".

    Args:
        misspecification: eps, the largest error of an observation besides its noise, in units of f.
            `PointwiseEnlarged` sets it, and no strategy takes it without that.

    Raises:
        ValueError: If an argument is out of its range; when called, if the model is not a batch of
            models at all ridges, or not in float64, as rho^2 is a small difference.
    """

    misspecification: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(misspecification=check_misspecification(self.misspecification))
        # The form with errors counts observations.
        self._keep(takes_unequal_noise=not self.misspecification)

    def __call__(self, t: int, model: FittedModel) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        num, shape = len(self.ridges or ()), model.noise_variance.shape
        if shape.numel() % num:
            raise ValueError(f"model must be a batch of models at {num} ridges, got {shape}")
        if model.noise_variance.dtype != torch.float64:
            raise ValueError(f"model must be in float64, got {model.noise_variance.dtype}")
        twice, a = 2 * self.noise_std**2, model.noise_variance.view(-1, num)
        gain = model.told_information_gain().view(-1, num) + math.log(num)
        q = a * model.quadratic_form().view(-1, num)
        log_delta = math.log(1 / self.delta)
        if self.misspecification:
            limit = self._at_level(a, q, twice * (gain + log_delta), model.num_told)
        else:
            limit = twice * (log_delta - (-gain - q / twice).logsumexp(dim=-1, keepdim=True)) - q
        square = limit + a * self.rkhs_bound**2
        refuted = (square < -1e-9 * (square.abs() + q)).any(dim=-1, keepdim=True)
        plain = super().__call__(t, model).view(-1, num)
        return torch.where(refuted, plain, (square.clamp_min(0) / a).sqrt()).view(shape)

    def _at_level(self, a: Tensor, q: Tensor, g: Tensor, num_told: int) -> Tensor:
        """rho^2 - a B^2 if observations have errors of at most eps, the least over the ridges."""
        root = a.sqrt()
        difference = root[:, :, None] - root[:, None, :]  # of a and a_i
        c = (difference.abs() / (root[:, :, None] + root[:, None, :])).sqrt()
        error = c * self.misspecification * math.sqrt(num_told)
        norm = (q[:, :, None] - q[:, None, :]).abs().sqrt()
        less, more = (norm - error).clamp_min(0).square(), (norm + error).square()
        return (g[:, None, :] + torch.where(difference >= 0, -less, more)).amin(dim=-1)


def checked_ridges(ridges: Iterable[float]) -> tuple[float, ...]:
    """Return ridges in ascending order, or raise a ValueError unless they are different positive
    numbers with 1 among them."""
    if isinstance(ridges, str) or not isinstance(ridges, Iterable):
        raise ValueError(f"ridges must be multiples of lambda, got {short(ridges)}")
    checked = sorted(amount(ridge, "ridges", "positive and finite") for ridge in ridges)
    if len(set(checked)) < len(checked) or 1.0 not in checked:
        raise ValueError(f"ridges must be different numbers with 1 among them, got {checked}")
    return tuple(checked)
