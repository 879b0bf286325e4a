"""Confidence widths: the multiplier w of the posterior standard deviation in ``mean +- w std``.

A width is called with the step t (one more than the observations the posterior has seen) and the
model, and returns a float or a tensor with one entry per batched model. ``offset(t, model)`` is
what is added to the upper and taken from the lower bound besides; it is 0 for most widths. Widths
compose: ``Scaled(Enlarged(SelfNormalized(2.0, 0.1, 0.05), 0.1), 0.5)``.

``rkhs_bound``, ``noise_std`` and ``misspecification`` are in the units of the observations the
model sees. The formulas assume k(x, x) <= 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor


class ConfidenceModel(Protocol):
    """What a width asks of a model."""

    @property
    def noise_variance(self) -> Tensor: ...

    @property
    def num_observations(self) -> int: ...

    @property
    def dim(self) -> int: ...

    def information_gain(self) -> Tensor: ...


class Width(ABC):
    """A confidence width."""

    @abstractmethod
    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        """The width before choosing the t-th point, t = 1, 2, ..."""

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        """What is added to the upper and taken from the lower bound besides ``width * std``."""
        return 0.0


def as_width(width: Width | float) -> Width:
    """A float becomes a `Constant`."""
    return width if isinstance(width, Width) else Constant(width)


def as_tensor_like(value: float | Tensor, like: Tensor) -> Tensor:
    """A number or tensor in the dtype and on the device of ``like``, a number without rounding."""
    return torch.as_tensor(value, dtype=like.dtype, device=like.device)


def _require(condition: bool, name: str, value: float, allowed: str) -> None:
    if not condition:
        raise ValueError(f"{name} must be {allowed}, got {value}")


def check_rkhs_bound(value: float) -> None:
    """A ValueError unless ``rkhs_bound`` is possible."""
    _require(0 <= value < math.inf, "rkhs_bound", value, "non-negative and finite")


def check_noise_std(value: float) -> None:
    """A ValueError unless ``noise_std`` is possible."""
    _require(0 < value < math.inf, "noise_std", value, "positive and finite")


def check_delta(value: float) -> None:
    """A ValueError unless ``delta`` is possible."""
    _require(0 < value < 1, "delta", value, "in (0, 1)")


def check_misspecification(value: float) -> None:
    """A ValueError unless ``misspecification`` is possible."""
    _require(0 <= value < math.inf, "misspecification", value, "non-negative and finite")


def _check_count(name: str, value: int) -> None:
    _require(value >= 1, name, value, "at least 1")


# gamma_t as a function of t: what a width uses in place of the realised information gain.
InformationGainBound = Callable[[int], float]


@dataclass(frozen=True)
class SelfNormalized(Width):
    """sigma/sqrt(lambda) sqrt(2 ln(1/delta) + 2 I_{t-1}) + B.

    Valid for f in the RKHS with norm at most B, points chosen adaptively, any lambda > 0.
    Source: Bogunovic and Krause 2021, lemma 1 (whose eq. 13 misprints s for s^2); Abbasi-Yadkori
        2013.

    Args:
        rkhs_bound: B, at least the RKHS norm of f.
        noise_std: sigma, the sub-Gaussian constant of the noise.
        delta: Failure probability, over all steps and points together.
    """

    rkhs_bound: float
    noise_std: float
    delta: float

    def __post_init__(self) -> None:
        check_rkhs_bound(self.rkhs_bound)
        check_noise_std(self.noise_std)
        check_delta(self.delta)

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        gain = model.information_gain()
        radius = (2 * math.log(1 / self.delta) + 2 * gain).sqrt()
        return self.noise_std / model.noise_variance.sqrt() * radius + self.rkhs_bound


@dataclass(frozen=True)
class ChowdhuryGopalan(Width):
    """B + R/sqrt(lambda) sqrt(2 (gamma_{t-1} + 1 + ln(1/delta))).

    Source: Chowdhury and Gopalan 2017, theorem 2; Ziomek et al. 2024, theorem 3.1, who print R
    without the division by sqrt(lambda), which holds for lambda >= 1 only: ``printed=True`` is that
    form.

    Args:
        rkhs_bound: B, at least the RKHS norm of f.
        noise_std: R, the sub-Gaussian constant of the noise.
        delta: Failure probability.
        printed: The formula as printed.
        max_information_gain: gamma_t as a function of t. None uses the realised I_{t-1}, which is
            valid; a greedy value is not, only its upper end (see `max_information_gain`).
    """

    rkhs_bound: float
    noise_std: float
    delta: float
    printed: bool = False
    max_information_gain: InformationGainBound | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_rkhs_bound(self.rkhs_bound)
        check_noise_std(self.noise_std)
        check_delta(self.delta)

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
    """sqrt(2 B^2 + 300 gamma_t ln^3(t / delta)).

    Valid for f in the RKHS and noise bounded by sqrt(lambda). Source: Krause and Ong 2011, theorem
    1 (3).

    Args:
        rkhs_bound: B, at least the RKHS norm of f.
        delta: Failure probability.
        max_information_gain: gamma_t as a function of t. None uses the realised gain plus the most
            that one more point can add, 1/2 ln(1 + 1/lambda): at most gamma_t plus that, and a
            heuristic where it is less than gamma_t.
    """

    rkhs_bound: float
    delta: float
    max_information_gain: InformationGainBound | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_rkhs_bound(self.rkhs_bound)
        check_delta(self.delta)

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        if self.max_information_gain is None:
            gain = model.information_gain() + 0.5 * torch.log1p(1 / model.noise_variance)
        else:
            gain = as_tensor_like(self.max_information_gain(t), model.noise_variance)
        return (2 * self.rkhs_bound**2 + 300 * gain * math.log(t / self.delta) ** 3).sqrt()


@dataclass(frozen=True)
class BayesFinite(Width):
    """sqrt(2 ln(N pi^2 t^2 / (6 delta))).

    Valid for f drawn from the GP on a finite set. Source: Srinivas et al. 2010, theorem 1; Krause
    and Ong 2011, theorem 1 (1).

    Args:
        num_points: N, the size of the set.
        delta: Failure probability.
    """

    num_points: int
    delta: float

    def __post_init__(self) -> None:
        _check_count("num_points", self.num_points)
        check_delta(self.delta)

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        return math.sqrt(2 * math.log(self.num_points * math.pi**2 * t**2 / (6 * self.delta)))


@dataclass(frozen=True)
class BayesContinuous(Width):
    """sqrt(2 ln(2 pi^2 t^2 / (3 delta)) + 2 d ln(t^2 d b r sqrt(ln(4 d a / delta)))).

    Valid for f drawn from the GP on [0, r]^d, if sup |df/dx_j| > L has probability at most a
    exp(-(L/b)^2). Holds at the nearest point of a grid with t^2 d b r sqrt(ln(4 d a / delta))
    points per axis, plus 1/t^2. Source: Srinivas et al. 2010, theorem 2; Krause and Ong 2011,
    theorem 1 (2).

    Args:
        dim: d.
        a: Tail constant of the derivatives.
        b: Tail scale of the derivatives, in units of f per unit of x.
        r: Side of the cube.
        delta: Failure probability.
    """

    dim: int
    a: float
    b: float
    r: float
    delta: float

    def __post_init__(self) -> None:
        _check_count("dim", self.dim)
        check_delta(self.delta)
        for name, value in (("a", self.a), ("b", self.b), ("r", self.r)):
            _require(0 < value < math.inf, name, value, "positive and finite")
        # Otherwise the grid of the proof is empty and the logarithms below have no meaning.
        _require(4 * self.dim * self.a > self.delta, "a", self.a, "more than delta / (4 dim)")

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        grid = (
            t**2
            * self.dim
            * self.b
            * self.r
            * math.sqrt(math.log(4 * self.dim * self.a / self.delta))
        )
        union = 2 * math.log(2 * math.pi**2 * t**2 / (3 * self.delta))
        # A grid of less than one point per axis still has one.
        return math.sqrt(union + 2 * self.dim * math.log(max(grid, 1.0)))


@dataclass(frozen=True)
class FixedDesign(Width):
    """B + sigma/sqrt(lambda) sqrt(2 ln(1/delta')) with delta' = delta / (4 R N).

    Valid for f in the RKHS and points chosen without looking at the observations; the union is over
    N points, R rounds and two sides. Source: Vakili et al. 2023, lemma 4.1 and theorem 6.1 (who
    write lambda for our sqrt(lambda)).

    Args:
        rkhs_bound: B, at least the RKHS norm of f.
        noise_std: sigma, the sub-Gaussian constant of the noise.
        delta: Failure probability.
        num_points: N, the points the bound must hold at.
        num_rounds: R, the rounds of the whole horizon.
    """

    rkhs_bound: float
    noise_std: float
    delta: float
    num_points: int
    num_rounds: int

    def __post_init__(self) -> None:
        check_rkhs_bound(self.rkhs_bound)
        check_noise_std(self.noise_std)
        check_delta(self.delta)
        _check_count("num_points", self.num_points)
        _check_count("num_rounds", self.num_rounds)

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        share = self.delta / (4 * self.num_rounds * self.num_points)
        radius = self.noise_std * math.sqrt(2 * math.log(1 / share))
        return self.rkhs_bound + radius / model.noise_variance.sqrt()


@dataclass(frozen=True)
class FixedDesignContinuous(Width):
    """U = mean + 2/q + w' (s + 2/sqrt(q)), L = mean - 2/q - w' (s + 2/sqrt(q)).

    w' = B + sigma/sqrt(lambda) sqrt(2 ln(2 Gamma / delta')), Gamma = c C~^d q^d, C~ = B +
    max(sigma, k_max) sqrt(q)/sqrt(lambda) sqrt(2 ln(4 q / delta')), delta' = delta / (4 R), and q
    the number of observations of the round that arrived; the parts without s are the `offset`.
    Rigorous on a box, and so wide that nothing is eliminated at practical horizons.
    Source: Vakili et al. 2023, theorem 6.2 and eq. 26 (eq. 9 prints U twice and u_r for q_r).

    Args:
        rkhs_bound: B, at least the RKHS norm of f.
        noise_std: sigma, the sub-Gaussian constant of the noise.
        delta: Failure probability.
        num_rounds: R, the rounds of the whole horizon.
        c: Discretisation constant.
        max_kernel: k_max, the largest k(x, x).
    """

    rkhs_bound: float
    noise_std: float
    delta: float
    num_rounds: int
    c: float = 1.0
    max_kernel: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        check_rkhs_bound(self.rkhs_bound)
        check_noise_std(self.noise_std)
        check_delta(self.delta)
        _check_count("num_rounds", self.num_rounds)
        _require(0 < self.c < math.inf, "c", self.c, "positive and finite")
        _require(
            0 < self.max_kernel < math.inf, "max_kernel", self.max_kernel, "positive and finite"
        )

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        q = max(model.num_observations, 1)
        share = self.delta / (4 * self.num_rounds)
        ridge = model.noise_variance.sqrt()
        amplitude = max(self.noise_std, self.max_kernel) * math.sqrt(q) / ridge
        lipschitz = self.rkhs_bound + amplitude * math.sqrt(2 * math.log(4 * q / share))
        log_points = math.log(self.c) + model.dim * (lipschitz.log() + math.log(q))
        radius = (2 * (math.log(2 / share) + log_points)).sqrt()
        return self.rkhs_bound + self.noise_std / ridge * radius

    def offset(self, t: int, model: ConfidenceModel) -> Tensor:
        q = max(model.num_observations, 1)
        return 2 / q + self(t, model) * (2 / math.sqrt(q))


@dataclass(frozen=True)
class Constant(Width):
    """The same width at every step.

    Args:
        value: Non-negative.
    """

    value: float

    def __post_init__(self) -> None:
        _require(0 <= self.value < math.inf, "value", self.value, "non-negative and finite")

    def __call__(self, t: int, model: ConfidenceModel) -> float:
        return self.value


@dataclass(frozen=True)
class Scaled(Width):
    """``factor`` times another width: the theory is conservative. Its offset is scaled as well.

    Args:
        width: The width to scale; a float is a `Constant`.
        factor: Positive.
    """

    width: Width | float
    factor: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_width(self.width))
        _require(0 < self.factor < math.inf, "factor", self.factor, "positive and finite")

    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return self.factor * as_width(self.width)(t, model)

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return self.factor * as_width(self.width).offset(t, model)


@dataclass(frozen=True)
class Enlarged(Width):
    """w + eps sqrt(t)/sqrt(lambda): keeps a width valid when f is only within eps of the RKHS ball.

    The bounds then hold for the RKHS part of f; for f itself add eps on each side.
    Source: Bogunovic and Krause 2021, eq. 15 and lemma 2.

    Args:
        width: A width that is valid for functions of the RKHS; a float is a `Constant`.
        misspecification: eps, the max-norm distance of f to the RKHS ball, in the units of f.
    """

    width: Width | float
    misspecification: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_width(self.width))
        check_misspecification(self.misspecification)

    def __call__(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return as_width(self.width)(t, model) + enlargement(
            self.misspecification, t, model.noise_variance
        )

    def offset(self, t: int, model: ConfidenceModel) -> float | Tensor:
        return as_width(self.width).offset(t, model)


def enlargement(misspecification: float, t: int, noise_variance: Tensor) -> Tensor:
    """eps sqrt(t)/sqrt(lambda): Bogunovic and Krause 2021, eq. 15."""
    return misspecification * math.sqrt(t) / noise_variance.sqrt()
