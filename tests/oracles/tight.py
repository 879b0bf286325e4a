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

    def bounds(self, eps: float = 0.0, clip: bool = True) -> tuple[Array, Array]:
        """The lower and the upper bounds of the RKHS part of f."""
        uppers, lowers = [], []
        for ridge in self.ridges:
            a = ridge * self.lam
            half = self.width(a) * self.std(a) + eps * self.norms(a)
            uppers.append(self.mean(a) + half)
            lowers.append(self.mean(a) - half)
        upper, lower = np.min(uppers, axis=0), np.max(lowers, axis=0)
        if clip:
            top = self.B * np.sqrt(self.prior)
            upper, lower = np.clip(upper, -top, top), np.clip(lower, -top, top)
        return lower, upper
