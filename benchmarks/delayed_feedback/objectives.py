"""Objectives with delayed feedback: interpolants of 25 random values, on a grid and on a box."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.kernels import rbf
from botorch_ext.problems import RKHSFunction, global_maximum

NOISE_STD = 0.02
# Of the kernel of the methods; the objectives are smoother.
MODEL_LENGTHSCALE = 1.0

_SIDE = 5.0
# Added to the diagonal when the authors' data were interpolated.
_JITTER = 1e-10
# Of the process that the 25 values were drawn from.
_LENGTHSCALES = {"f1": 0.8, "f2": 1.0}
OBJECTIVES = tuple(_LENGTHSCALES)


@dataclass(frozen=True)
class Objective:
    """The interpolant of given values, by a Gaussian process with an RBF kernel and no noise.

    Args:
        name: f1 or f2.
        points: ``m x 2``, in [-5, 5]^2.
        values: ``m``, at the points.
        lengthscale: Of the interpolating kernel.
    """

    name: str
    points: Tensor
    values: Tensor
    lengthscale: float

    @classmethod
    def fitted(cls, name: str, points: Tensor, values: Tensor) -> Objective:
        """The interpolant whose lengthscale is the most likely one, for zero mean and unit
        variance."""

        def deviance(lengthscale: float) -> float:
            K = _gram(points, lengthscale)
            return float(values @ torch.linalg.solve(K, values) + torch.logdet(K))

        found = minimize_scalar(deviance, bounds=(1.0, 3.0), options={"xatol": 1e-9})
        return cls(name, points, values, float(found.x))

    @property
    def weights(self) -> Tensor:
        """``m``, the weights of the kernel expansion."""
        return torch.linalg.solve(_gram(self.points, self.lengthscale), self.values)

    @property
    def norm(self) -> float:
        """The norm in the RKHS of the methods' kernel, exactly.

        An RBF expansion of lengthscale L lies in the RKHS of each lengthscale l < sqrt(2) L, and
        the inner product of k_L(x, .) and k_L(y, .) there is (L^2 / (l m))^d k_m(x, y), with m^2 =
        2 L^2 - l^2: a Gaussian integral over frequencies. An analytic function is determined by
        its values on the box, so that no extension of them has a smaller norm.
        """
        spread = (2 * self.lengthscale**2 - MODEL_LENGTHSCALE**2) ** 0.5
        scale = (self.lengthscale**2 / (MODEL_LENGTHSCALE * spread)) ** 2
        K = rbf(spread)(self.points).to_dense().detach()
        return float((scale * self.weights @ K @ self.weights).sqrt())

    def on_grid(self, side: int) -> RKHSFunction:
        """The objective on a grid of side x side points."""
        axis = torch.linspace(-_SIDE, _SIDE, side, dtype=torch.float64)
        return self._on(bx.FiniteSet(torch.cartesian_prod(axis, axis)))

    def on_box(self) -> RKHSFunction:
        """The objective on the box."""
        return self._on(bx.Box([[-_SIDE, -_SIDE], [_SIDE, _SIDE]]))

    def _on(self, domain: bx.FiniteSet | bx.Box) -> RKHSFunction:
        return RKHSFunction(rbf(self.lengthscale), self.points, self.weights, domain, NOISE_STD)


def minimum(problem: RKHSFunction) -> float:
    """The least value on the domain."""
    if isinstance(problem.domain, bx.FiniteSet):
        return float(problem(problem.domain.points).min())
    return -global_maximum(lambda X: -problem(X), problem.domain, seed=0)[1]


def load(folder: Path) -> list[Objective]:
    """f1 and f2 of the kind of Vakili et al. 2023, from the data files.

    How they were interpolated is not written down: by the Gaussian process with the most likely
    lengthscale, which agrees with the files of grid values to 1e-6.

    Args:
        folder: It holds ``delayed_feedback/f1_points.csv`` and so on.

    Raises:
        FileNotFoundError: It does not.
        ValueError: The interpolant is not the function on the grid.
    """
    folder = folder / "delayed_feedback"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"no data in {folder}: pass --data FOLDER, where FOLDER holds "
            "delayed_feedback/f1_points.csv and f1_grid.csv, and the same for f2; or pass --smoke, "
            "which does without"
        )
    return [_checked(folder, name) for name in _LENGTHSCALES]


def _checked(folder: Path, name: str) -> Objective:
    points, grid = (
        torch.from_numpy(np.loadtxt(folder / f"{name}_{part}.csv", delimiter=",", skiprows=1))
        for part in ("points", "grid")
    )
    objective = Objective.fitted(name, points[:, :2], points[:, 2])
    error = float((objective.on_box()(grid[:, :2]) - grid[:, 2]).abs().max())
    if not error < 1e-5:
        raise ValueError(
            f"{name}_grid.csv must hold the interpolant of {name}_points.csv to 1e-5, got a "
            f"deviation of {error:.3g}"
        )
    return objective


def generate(seed: int) -> list[Objective]:
    """Functions drawn as f1 and f2 were, for where there are no data files."""
    rng = np.random.default_rng(seed)
    axis = torch.linspace(-_SIDE, _SIDE, 5, dtype=torch.float64)
    points = torch.cartesian_prod(axis, axis)
    objectives = []
    for name, lengthscale in _LENGTHSCALES.items():
        factor = torch.linalg.cholesky(_gram(points, lengthscale))
        values = factor @ torch.from_numpy(rng.standard_normal(len(points)))
        objectives.append(Objective.fitted(name, points, values))
    return objectives


def _gram(points: Tensor, lengthscale: float) -> Tensor:
    K = rbf(lengthscale)(points).to_dense().detach()
    return K + _JITTER * torch.eye(len(points), dtype=K.dtype)
