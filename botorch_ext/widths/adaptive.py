"""Confidence widths for functions of the RKHS and points that were chosen adaptively."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from botorch_ext.checks import flag, short
from botorch_ext.widths.base import (
    ConfidenceModel,
    RKHSWidth,
    Width,
    as_tensor_like,
    check_delta,
    check_rkhs_bound,
)

# gamma_t as a function of t: what a width uses in place of the realised information gain.
InformationGainBound = Callable[[int], float]


def _require_function(max_information_gain: InformationGainBound | None) -> None:
    if not (max_information_gain is None or callable(max_information_gain)):
        raise ValueError(
            f"max_information_gain must be a function of t or None, got "
            f"{short(max_information_gain)}"
        )


@dataclass(frozen=True)
class SelfNormalized(RKHSWidth):
    """The width B + sigma sqrt(2 (ln(1/delta) + I_{t-1}) / lambda).

    It holds for f in the RKHS with norm at most B, for points chosen adaptively and for every
    lambda > 0.
    Source: Bogunovic and Krause 2021, lemma 1 (whose eq. 13 misprints s for s^2); Abbasi-Yadkori
    2013.

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1), over all steps and points together.

    Raises:
        ValueError: If an argument is out of its range.
    """

    takes_unequal_noise = True

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        gain = model.information_gain()
        radius = ((gain + math.log(1 / self.delta)) / model.noise_variance).sqrt()
        return math.sqrt(2) * self.noise_std * radius + self.rkhs_bound


@dataclass(frozen=True)
class ChowdhuryGopalan(RKHSWidth):
    """The width B + R/sqrt(lambda) sqrt(2 (gamma_{t-1} + 1 + ln(1/delta))).

    Source: Chowdhury and Gopalan 2017, theorem 2; Ziomek et al. 2024, theorem 3.1. The latter print
    R without the division by sqrt(lambda), which holds for lambda >= 1 only; ``printed=True`` is
    this printed form.

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: R, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1).
        printed: Whether to use the formula as Ziomek et al. print it.
        max_information_gain: gamma_t as a function of t. None uses the realised I_{t-1}, which is
            valid. A greedy value of gamma_t is not valid, only its upper end (see
            `max_information_gain`).

    Raises:
        ValueError: If an argument is out of its range, or ``max_information_gain`` is not a
            function.
    """

    printed: bool = False
    max_information_gain: InformationGainBound | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(printed=flag(self.printed, "printed"))
        _require_function(self.max_information_gain)

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        if self.max_information_gain is None:
            gain = model.information_gain()
        else:
            gain = as_tensor_like(self.max_information_gain(t - 1), model.noise_variance)
        radius = self.noise_std * (2 * (gain + 1 + math.log(1 / self.delta))).sqrt()
        if not self.printed:
            radius = radius / model.noise_variance.sqrt()
        return self.rkhs_bound + radius


@dataclass(frozen=True)
class SrinivasRKHS(Width):
    """The width sqrt(2 B^2 + 300 gamma_t ln^3(t / delta)).

    It holds for f in the RKHS and noise bounded by sqrt(lambda). Source: Krause and Ong 2011,
    theorem 1 (3).

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        delta: The failure probability, in (0, 1).
        max_information_gain: gamma_t as a function of t. None uses the realised gain plus the most
            that one more point can add, 1/2 ln(1 + 1/lambda). This sum is at most gamma_t plus
            that term, and it is a heuristic if it is less than gamma_t.

    Raises:
        ValueError: If an argument is out of its range, or ``max_information_gain`` is not a
            function.
    """

    rkhs_bound: float
    delta: float
    max_information_gain: InformationGainBound | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._keep(rkhs_bound=check_rkhs_bound(self.rkhs_bound), delta=check_delta(self.delta))
        _require_function(self.max_information_gain)

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        if self.max_information_gain is None:
            gain = model.information_gain() + 0.5 * torch.log1p(1 / model.noise_variance)
        else:
            gain = as_tensor_like(self.max_information_gain(t), model.noise_variance)
        return (2 * self.rkhs_bound**2 + 300 * gain * math.log(t / self.delta) ** 3).sqrt()
