"""Confidence widths for functions of the RKHS and points that were chosen without looking at the
observations.
"""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Iterable
from dataclasses import dataclass, field

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import amount, one_number, whole_number
from botorch_ext.domains import Box
from botorch_ext.domains.reading import as_box
from botorch_ext.kernels.smoothness import holder_constants
from botorch_ext.widths.base import (
    ConfidenceModel,
    RKHSWidth,
    require,
)
from botorch_ext.widths.tight import RIDGES, checked_ridges

# By how much numbers that are computed may differ from whole numbers, relatively.
_ROUNDING = 1e-12


class _FixedDesignWidth(RKHSWidth, ABC):
    """A width B + r, where r bounds the share of the noise."""

    def _at(self, log_union: float, model: ConfidenceModel) -> Tensor:
        """The width with r = sigma/sqrt(lambda) sqrt(2 ln(1/delta')) and ``log_union`` =
        ln(1/delta')."""
        radius = self.noise_std * math.sqrt(2 * log_union)
        return self._with(radius / model.noise_variance.sqrt())

    def _with(self, radius: Tensor) -> Tensor:
        return self.rkhs_bound + radius


class _MixedWidth(_FixedDesignWidth, ABC):
    """The width sqrt(B^2 + r^2).

    For a design and a point x that do not depend on the noise, with zeta = (K + lambda I)^-1 k(x):
    |f - mean| <= B s_b + sigma beta ||zeta||, where s_b is the norm of k_x - sum zeta_i k_i. As
    s^2 = s_b^2 + lambda ||zeta||^2, the sum is at most s sqrt(B^2 + sigma^2 beta^2 / lambda).
    """

    def _with(self, radius: Tensor) -> Tensor:
        return (self.rkhs_bound**2 + radius.square()).sqrt()


@dataclass(frozen=True)
class FixedDesign(_FixedDesignWidth):
    """The width B + sigma/sqrt(lambda) sqrt(2 ln(1/delta')) with delta' = delta / (4 R N).

    It holds for f in the RKHS and points chosen without looking at the observations. The union
    bound is over N points, R rounds and two sides. Source: Vakili et al. 2023, lemma 4.1 and
    theorem 6.1 (who write lambda for our sqrt(lambda)).

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1).
        num_points: N, the number of points at which the bound must hold.
        num_rounds: R, the number of rounds in the whole horizon.

    Raises:
        ValueError: If an argument is out of its range.
    """

    num_points: int
    num_rounds: int

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(
            num_points=whole_number(self.num_points, "num_points", least=1),
            num_rounds=whole_number(self.num_rounds, "num_rounds", least=1),
        )

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        share = self.delta / (4 * self.num_rounds * self.num_points)
        return self._at(math.log(1 / share), model)


@dataclass(frozen=True)
class AnytimeFixedDesign(_FixedDesignWidth):
    """The width B + sigma/sqrt(lambda) sqrt(2 ln(1/delta')) with delta' = delta / (N pi^2 t^2 / 3).

    It is `FixedDesign` for a bound that is used at every step t = 1, 2, ..., at the N candidates
    that the model has at that step. The union bound is over steps, candidates and two sides.
    Source: Shekhar and Javidi 2022, algorithm 1 with lemma 3 (eq. 35 divides by t, and takes n^3
    for the union bound).

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1).

    Raises:
        ValueError: If an argument is out of its range; when called, if the model has no finite set
            of candidates.
    """

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        candidates = getattr(model, "candidates", None)
        if candidates is None:
            raise ValueError(
                "model must have finitely many candidates, such as a FinitePosterior, got a "
                f"{type(model).__name__}"
            )
        share = 3 * self.delta / (len(candidates) * math.pi**2 * t**2)
        return self._at(math.log(1 / share), model)


@dataclass(frozen=True)
class FixedDesignContinuous(_FixedDesignWidth):
    """The width w' of bounds that are mean + 2/q + w' (s + 2/sqrt(q)), and likewise below.

    w' = B + sigma/sqrt(lambda) sqrt(2 ln(2 Gamma / delta')), Gamma = c C~^d q^d, C~ = B +
    max(sigma, k_max) sqrt(q)/sqrt(lambda) sqrt(2 ln(4 q / delta')), delta' = delta / (4 R), and q
    is the number of observations of the round that arrived. The parts without s are the `offset`.
    The bound is rigorous on a box, and so wide that nothing is eliminated at practical horizons.
    Source: Vakili et al. 2023, theorem 6.2 and eq. 26 (eq. 9 prints U twice and u_r for q_r).

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1).
        num_rounds: R, the number of rounds in the whole horizon.
        c: The discretisation constant.
        max_kernel: k_max, the largest k(x, x).

    Raises:
        ValueError: If an argument is out of its range.
    """

    num_rounds: int
    c: float = 1.0
    max_kernel: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(num_rounds=whole_number(self.num_rounds, "num_rounds", least=1))
        for name in ("c", "max_kernel"):
            self._keep(**{name: amount(getattr(self, name), name, "positive and finite")})

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        q = max(model.num_observations, 1)
        share = self.delta / (4 * self.num_rounds)
        ridge = model.noise_variance.sqrt()
        amplitude = max(self.noise_std, self.max_kernel) * math.sqrt(q) / ridge
        lipschitz = self.rkhs_bound + amplitude * math.sqrt(2 * math.log(4 * q / share))
        log_points = math.log(self.c) + model.dim * (lipschitz.log() + math.log(q))
        radius = (2 * (math.log(2 / share) + log_points)).sqrt()
        return self._with(self.noise_std / ridge * radius)

    def offset(self, t: int, model: ConfidenceModel) -> Tensor:
        q = max(model.num_observations, 1)
        return 2 / q + self(t, model) * (2 / math.sqrt(q))


@dataclass(frozen=True)
class FixedDesignNet(_FixedDesignWidth):
    """The width B + sigma/sqrt(lambda) sqrt(2 ln(4 R N / delta)) with offset 1/sqrt(q), for boxes.

    It is `FixedDesign` on a net of N points. From any point of the box to the nearest point of the
    net f moves by at most 1/sqrt(q): N = prod_j ceil(side_j sqrt(d) / (2 rho)), rho = (B C_k
    sqrt(q))^(-1/xi), and q the number of observations of the round that arrived. Off the net it is
    a heuristic: the offset covers how far f moves, but nothing covers how far the mean and the
    standard deviation move. `FixedDesignContinuous` is rigorous, and too wide to eliminate
    anything at practical horizons.

    Args:
        rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
        noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
        delta: The failure probability, in (0, 1).
        num_rounds: R, the number of rounds in the whole horizon.
        sides: The sides of the box, each in lengthscales of its column.
        constant: C_k, the least number with sqrt(2 (k(0) - k(r))) <= C_k r^xi, where r is in
            lengthscales; see `botorch_ext.kernels.smoothness.holder_constants`.
        exponent: xi, in (0, 1].

    Raises:
        ValueError: If an argument is out of its range.
    """

    num_rounds: int
    sides: tuple[float, ...]
    constant: float
    exponent: float

    def __post_init__(self) -> None:
        super().__post_init__()
        self._keep(num_rounds=whole_number(self.num_rounds, "num_rounds", least=1))
        if isinstance(self.sides, str) or not isinstance(self.sides, Iterable):
            raise ValueError(f"sides must be one number for each column, got {self.sides!r}")
        sides = [amount(side, "sides", "non-negative and finite") for side in self.sides]
        if not sides:
            raise ValueError("sides must be at least one, got none")
        self._keep(sides=tuple(sides))
        self._keep(constant=amount(self.constant, "constant", "positive and finite"))
        self._keep(exponent=one_number(self.exponent, "exponent"))
        require(0 < self.exponent <= 1, "exponent", self.exponent, "in (0, 1]")

    @classmethod
    def on_box(
        cls,
        rkhs_bound: float,
        noise_std: float,
        delta: float,
        num_rounds: int,
        box: Box,
        kernel: Kernel,
    ) -> FixedDesignNet:
        """Make the width for a box and a kernel: RBF, Matern, or sums and products of such kernels.

        Args:
            rkhs_bound: B, an upper bound on the RKHS norm of f, in units of f.
            noise_std: sigma, the sub-Gaussian constant of the noise, in units of f.
            delta: The failure probability, in (0, 1).
            num_rounds: R, the number of rounds in the whole horizon.
            box: The box, or its bounds.
            kernel: The kernel, with its lengthscales.

        Returns:
            The width, with the sides of the box in lengthscales.

        Raises:
            ValueError: If the smoothness of the kernel is not known, or a parameter is out of its
                range.
        """
        box = as_box(box)
        holder = holder_constants(kernel, box.dim)
        sides = zip((box.upper - box.lower).tolist(), holder.lengthscales, strict=True)
        return cls(
            rkhs_bound,
            noise_std,
            delta,
            num_rounds,
            tuple(side / lengthscale for side, lengthscale in sides),
            holder.constant,
            holder.exponent,
        )

    def __call__(self, t: int, model: ConfidenceModel) -> Tensor:
        log_union = math.log(4 * self.num_rounds / self.delta) + self._log_points(model)
        return self._at(log_union, model)

    def offset(self, t: int, model: ConfidenceModel) -> float:
        return 1 / math.sqrt(max(model.num_observations, 1))

    def _log_points(self, model: ConfidenceModel) -> float:
        """ln N, whose N may be beyond any float."""
        if self.rkhs_bound == 0:
            return 0.0
        q = max(model.num_observations, 1)
        log_change = math.log(self.rkhs_bound) + math.log(self.constant) + 0.5 * math.log(q)
        log_scale = 0.5 * math.log(len(self.sides)) - math.log(2) + log_change / self.exponent
        total = 0.0
        for side in self.sides:
            log_ratio = math.log(side) + log_scale if side > 0 else -math.inf
            # From 2^53 on, rounding up changes nothing.
            if log_ratio < 53 * math.log(2):
                # A whole number may be a little more here, as machines round.
                count = math.ceil(math.exp(log_ratio) * (1 - _ROUNDING))
                log_ratio = math.log(max(count, 1))
            total += log_ratio
        return total


@dataclass(frozen=True)
class FixedDesignMixture(_MixedWidth, FixedDesign):
    """The width sqrt(B^2 + (2 sigma^2 / lambda) ln(1/delta')) with delta' = delta / (4 R N).

    It holds under the assumptions of `FixedDesign`, with the same probability. It is never wider,
    and at least 0.7 times as wide.
    Source: none; the proof is on the page "Proofs".

    The arguments are those of `FixedDesign`, and so are the errors.
    """


@dataclass(frozen=True)
class FixedDesignLadder(FixedDesignMixture):
    """The widths of `FixedDesignMixture` at several ridges, of which each point has the one with
    the least half-width.

    Every ridge a is a multiple of the ridge lambda of the model and has a mean and a standard
    deviation of its own. The half-width at x is the least of std_a(x) sqrt(B^2 + (2 sigma^2 / a)
    ln(1/delta')), and the mean is that of this ridge. The ridge of a point follows from the design
    alone, so there is no union bound over ridges. The bounds are never wider than those of
    `FixedDesignMixture`, and much narrower where observations are dense and the function is smooth.

    Methods of rounds compute these bounds on a `FiniteSet`. Elsewhere the width is that of
    `FixedDesignMixture`. The other arguments are those of `FixedDesign`.
    Source: none; as for `FixedDesignMixture`, at each ridge.

    Args:
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


@dataclass(frozen=True)
class AnytimeFixedDesignMixture(_MixedWidth, AnytimeFixedDesign):
    """The width sqrt(B^2 + (2 sigma^2 / lambda) ln(1/delta')) with the delta' of
    `AnytimeFixedDesign`.

    It holds whenever `AnytimeFixedDesign` does, and is never wider.
    Source: as for `FixedDesignMixture`.

    The arguments are those of `AnytimeFixedDesign`, and so are the errors.
    """


@dataclass(frozen=True)
class FixedDesignContinuousMixture(_MixedWidth, FixedDesignContinuous):
    """The width w' of `FixedDesignContinuous` with sqrt(B^2 + r^2) in place of the sum B + r of the
    first formula.

    The offset has the new w'. It holds whenever `FixedDesignContinuous` does, and is never wider.
    Source: as for `FixedDesignMixture`.

    The arguments are those of `FixedDesignContinuous`, and so are the errors.
    """


@dataclass(frozen=True)
class FixedDesignNetMixture(_MixedWidth, FixedDesignNet):
    """The width sqrt(B^2 + (2 sigma^2 / lambda) ln(4 R N / delta)) with the net and the offset of
    `FixedDesignNet`.

    Off the net it is a heuristic, as `FixedDesignNet` is. It is never wider.
    Source: as for `FixedDesignMixture`.

    The arguments are those of `FixedDesignNet`, and so are the errors.
    """
