"""SVCTuning: a real tuning task with the two hyperparameters of a support vector classifier."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.problems.base import pointwise

# Standard deviation of the mean accuracy over reshuffled 5-fold splits where the accuracy is high,
# measured over 40 seeds (digits: 12): 0.0031 to 0.0042, and 0.0008 to 0.0011.
_NOISE_STD = {"breast_cancer": 0.004, "digits": 0.001}


class SVCTuning:
    """The tuning of an RBF support vector classifier: its cross-validated accuracy as a function of
    log10 C and log10 gamma.

    The data are bundled with scikit-learn, and standardised. The box is [-2, 4] x [-6, 1]. With
    `fold_noise` the folds are shuffled anew for each point, from a seed derived from the point, so
    the values have real evaluation noise and are still reproducible. The object is small and can be
    sent to another process; data are loaded once per process, at the first evaluation.

    `optimal_value` and `optimizer` are None, since they are not known.

    Args:
        dataset: "breast_cancer" (569 x 30, two classes; 0.02 to 0.08 s an evaluation) or "digits"
            (1797 x 64, ten classes; 0.15 to 1 s).
        num_folds: The number of folds of the stratified cross-validation.
        seed: The seed of the folds, at least 0 and below 2^32.
        fold_noise: Whether the folds change from point to point.

    Attributes:
        noise_std: An estimate of the standard deviation of the accuracy over reshuffled folds,
            as a fraction of 1. With fixed folds the values have no noise of their own.

    Raises:
        ValueError: If the data set is unknown, there are fewer than two folds, or the seed is out
            of range.
    """

    optimal_value: None = None
    optimizer: None = None

    def __init__(
        self,
        dataset: str = "breast_cancer",
        num_folds: int = 5,
        seed: int = 0,
        fold_noise: bool = False,
    ) -> None:
        if dataset not in _NOISE_STD:
            raise ValueError(f"dataset must be one of {sorted(_NOISE_STD)}, got {dataset!r}")
        if num_folds < 2:
            raise ValueError(f"num_folds must be at least 2, got {num_folds}")
        if not 0 <= seed < 2**32:
            raise ValueError(f"seed must be at least 0 and below 2^32, got {seed}")
        self.dataset: str = dataset
        self.num_folds: int = num_folds
        self.seed: int = seed
        self.fold_noise: bool = fold_noise
        self.domain: Box = Box([[-2.0, -6.0], [4.0, 1.0]])
        self.noise_std: float = _NOISE_STD[dataset]

    def __call__(self, X: Tensor | Sequence[float] | Sequence[Sequence[float]]) -> Tensor:
        """The mean accuracies over the folds.

        Args:
            X: Points (log10 C, log10 gamma), ``n x 2``, or one point, ``2``.

        Returns:
            The accuracies, between 0 and 1, ``n``, or a 0-dim tensor for one point; not
            differentiable.

        Raises:
            ValueError: If ``X`` has the wrong shape or dtype, or lies outside the box.
            ImportError: If scikit-learn is not installed.
        """
        return pointwise(self._evaluate, X, self.domain, inside=True)

    def evaluate(self, x: Tensor | Sequence[float]) -> float:
        """The mean accuracy at one point, as a float: an objective for any executor.

        Args:
            x: The point (log10 C, log10 gamma), ``2``.

        Returns:
            The accuracy, between 0 and 1.

        Raises:
            ValueError: If ``x`` has the wrong shape or dtype, or lies outside the box.
            ImportError: If scikit-learn is not installed.
        """
        values = self(x)
        if values.numel() != 1:
            raise ValueError(f"x must be one point, got {values.numel()} points")
        return float(values)

    def _evaluate(self, X: Tensor) -> Tensor:
        values = [self._accuracy(x) for x in X.detach().cpu().numpy()]
        return torch.tensor(values, dtype=X.dtype, device=X.device)

    def _accuracy(self, x: np.ndarray) -> float:
        inputs, labels = _load(self.dataset)
        from sklearn.model_selection import StratifiedKFold, cross_val_score
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC

        classifier = make_pipeline(StandardScaler(), SVC(C=10.0 ** x[0], gamma=10.0 ** x[1]))
        folds = StratifiedKFold(self.num_folds, shuffle=True, random_state=self._fold_seed(x))
        return float(cross_val_score(classifier, inputs, labels, cv=folds).mean())

    def _fold_seed(self, x: np.ndarray) -> int:
        if not self.fold_noise:
            return self.seed
        digest = hashlib.blake2b(repr((self.seed, x.tolist())).encode(), digest_size=4)
        return int.from_bytes(digest.digest(), "big")

    def __repr__(self) -> str:
        return (
            f"SVCTuning(dataset={self.dataset!r}, num_folds={self.num_folds}, seed={self.seed}, "
            f"fold_noise={self.fold_noise})"
        )


@lru_cache(maxsize=2)
def _load(dataset: str) -> tuple[Any, Any]:
    try:
        from sklearn import datasets
    except ImportError as error:
        raise ImportError("SVCTuning needs scikit-learn: pip install scikit-learn") from error
    return getattr(datasets, f"load_{dataset}")(return_X_y=True)
