"""Boosting: a real tuning task, five hyperparameters of gradient-boosted trees."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

# log10 of the learning rate, log10 of the number of trees, the share of the data and the share of
# the inputs that a tree sees, log10 of the least number of data in a leaf.
BOUNDS = ((-2.5, 0.0), (0.7, 2.0), (0.3, 1.0), (0.1, 1.0), (0.0, 2.0))


def boosting(X: Tensor) -> Tensor:
    """Minus the cross-validated error of gradient-boosted trees on scikit-learn's diabetes data.

    Three fixed folds and a fixed seed, so that a point has one value: the root mean squared error,
    in the units of the data. About 0.06 s a point.

    Args:
        X: ``n x 5`` points within `BOUNDS`; numbers of trees and of data are rounded.

    Returns:
        ``n`` values.
    """
    return torch.tensor([_negative_error(x) for x in X.tolist()], dtype=X.dtype)


def _negative_error(x: list[float]) -> float:
    from sklearn.ensemble import GradientBoostingRegressor
    from sklearn.model_selection import KFold, cross_val_score

    inputs, outcomes = _data()
    trees = GradientBoostingRegressor(
        learning_rate=10 ** x[0],
        n_estimators=round(10 ** x[1]),
        subsample=x[2],
        max_features=x[3],
        min_samples_leaf=round(10 ** x[4]),
        random_state=0,
    )
    folds = KFold(3, shuffle=True, random_state=0)
    scoring = "neg_root_mean_squared_error"
    return float(cross_val_score(trees, inputs, outcomes, cv=folds, scoring=scoring).mean())


@lru_cache(maxsize=1)
def _data() -> tuple[Any, Any]:
    from sklearn.datasets import load_diabetes

    return load_diabetes(return_X_y=True)
