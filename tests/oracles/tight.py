"""The tight bounds by dense algebra, as they are defined."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass
class Tight:
    """The bounds from n observations at N points.

    Args:
        K: The kernel matrix of the observed points, ``n x n``.
        k: That of the observed points and the points, ``n x N``.
        prior: k(x, x) of the points, ``N``.
        y: The observations, ``n``.
        lam: The ridge of the model.
        B: The bound on the RKHS norm.
        sigma: The sub-Gaussian constant of the noise.
        delta: The failure probability.
        ridges: Multiples of ``lam``.
    """

    K: Array
    k: Array
    prior: Array
    y: Array
    lam: float
    B: float = 1.0
    sigma: float = 0.1
    delta: float = 0.1
    ridges: tuple[float, ...] = (1.0,)

    def inverse(self, a: float) -> Array:
        return np.linalg.inv(self.K + a * np.eye(len(self.K)))

    def mean(self, a: float) -> Array:
        return self.k.T @ self.inverse(a) @ self.y

    def std(self, a: float) -> Array:
        less = np.einsum("ix,ij,jx->x", self.k, self.inverse(a), self.k)
        return np.sqrt(np.maximum(self.prior - less, 0))

    def gain(self, a: float) -> float:
        return 0.5 * np.linalg.slogdet(np.eye(len(self.K)) + self.K / a)[1]

    def g(self, a: float) -> float:
        return 2 * self.sigma**2 * (self.gain(a) + np.log(len(self.ridges) / self.delta))

    def width(self, a: float) -> float:
        return np.sqrt(self.B**2 + self.g(a) / a)

    def norms(self, a: float) -> Array:
        """The sums of the absolute weights zeta."""
        return np.abs(self.inverse(a) @ self.k).sum(axis=0)

    def fixed(self, union: float) -> tuple[Array, Array]:
        """The means and the half-widths of a fixed design, at each point those of the ridge with
        the least half-width; ``union`` is 4 R N."""
        means, halves = [], []
        for ridge in self.ridges:
            a = ridge * self.lam
            width = np.sqrt(self.B**2 + 2 * self.sigma**2 / a * np.log(union / self.delta))
            means.append(self.mean(a))
            halves.append(width * self.std(a))
        return np.choose(np.argmin(halves, axis=0), means), np.min(halves, axis=0)

    def q(self, a: float) -> float:
        return float(a * self.y @ self.inverse(a) @ self.y)

    def dual(self, eps: float = 0.0) -> list[float]:
        """The widths of `Dual` at the ridges, of known observations alone."""
        squares = [self._square(ridge * self.lam, eps) for ridge in self.ridges]
        if min(squares) < 0:
            return [self.width(ridge * self.lam) for ridge in self.ridges]
        return list(np.sqrt(squares))

    def _square(self, a: float, eps: float) -> float:
        ridges = [ridge * self.lam for ridge in self.ridges]
        if not eps:
            terms = [-self.gain(b) - self.q(b) / (2 * self.sigma**2) for b in ridges]
            total = np.logaddexp.reduce(terms) - np.log(len(ridges))
            radius = -2 * self.sigma**2 * (total + np.log(self.delta))
            return float(radius + a * self.B**2 - self.q(a)) / a
        squares = []
        for b in ridges:
            D = a * self.inverse(a) - b * self.inverse(b)
            c = abs(np.sqrt(a) - np.sqrt(b)) / (np.sqrt(a) + np.sqrt(b))
            error = np.sqrt(c * len(self.y)) * eps
            norm = np.sqrt(abs(self.y @ D @ self.y))
            part = -(max(norm - error, 0) ** 2) if a >= b else (norm + error) ** 2
            squares.append(self.g(b) + a * self.B**2 + part)
        return float(min(squares)) / a

    def bounds(
        self, eps: float = 0.0, clip: bool = True, dual: bool = False
    ) -> tuple[Array, Array]:
        """The lower and the upper bounds of the RKHS part of f."""
        uppers, lowers = [], []
        duals = self.dual(eps) if dual else []
        for i, ridge in enumerate(self.ridges):
            a = ridge * self.lam
            width = duals[i] if dual else self.width(a)
            half = width * self.std(a) + eps * self.norms(a)
            uppers.append(self.mean(a) + half)
            lowers.append(self.mean(a) - half)
        upper, lower = np.min(uppers, axis=0), np.max(lowers, axis=0)
        if clip:
            top = self.B * np.sqrt(self.prior)
            upper, lower = np.clip(upper, -top, top), np.clip(lower, -top, top)
        return lower, upper
