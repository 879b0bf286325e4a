"""The tuning task: scikit-learn's own numbers, folds, and what it needs."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from botorch_ext.problems import SVCTuning
from botorch_ext.problems.real_data import svc


@pytest.mark.parametrize(
    ("dataset", "load", "num_folds", "seed", "points"),
    [
        ("breast_cancer", load_breast_cancer, 5, 0, [[1.0, -2.0], [-1.5, 0.5], [3.0, -5.5]]),
        ("breast_cancer", load_breast_cancer, 3, 7, [[1.0, -2.0]]),
        pytest.param("digits", load_digits, 5, 0, [[1.0, -2.0]], marks=pytest.mark.slow),
    ],
)
def test_the_value_is_that_of_scikit_learn(dataset, load, num_folds, seed, points):
    inputs, labels = load(return_X_y=True)
    folds = StratifiedKFold(n_splits=num_folds, shuffle=True, random_state=seed)
    expected = []
    for c, gamma in points:
        own = Pipeline([("scale", StandardScaler()), ("svc", SVC(C=10**c, gamma=10**gamma))])
        expected.append(float(np.mean(cross_val_score(own, inputs, labels, cv=folds))))
    task = SVCTuning(dataset, num_folds=num_folds, seed=seed)
    assert task(points).tolist() == pytest.approx(expected, abs=1e-12)
    assert task.evaluate(points[0]) == pytest.approx(expected[0], abs=1e-12)


@pytest.mark.slow
def test_fixed_folds_are_deterministic_and_fold_noise_is_real_and_reproducible():
    fixed, noisy = SVCTuning(), SVCTuning(fold_noise=True)
    # Two settings so close that the classifiers agree: what differs is the folds.
    points = [[1.0, -2.0 + 1e-9 * i] for i in range(12)]
    assert len(set(fixed(points).tolist())) == 1
    values = noisy(points)
    assert torch.equal(values, noisy(points))
    assert len(set(values.tolist())) > 3
    assert 0.3 * noisy.noise_std < float(values.std()) < 3 * noisy.noise_std
    assert not torch.equal(values, SVCTuning(seed=1, fold_noise=True)(points))


@pytest.mark.slow
def test_it_travels_without_its_data_and_loads_them_at_the_first_evaluation():
    task = SVCTuning(fold_noise=True)
    here, pickled = task.evaluate([1.0, -2.0]), pickle.dumps(task)
    assert len(pickled) < 2000
    code = (
        f"import pickle, sys; task = pickle.loads({pickled!r})\n"
        "assert 'sklearn' not in sys.modules\n"
        "print(repr(task.evaluate([1.0, -2.0])))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) == here


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    svc._load.cache_clear()
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        SVCTuning()([1.0, -2.0])


def test_one_fold_is_refused():
    with pytest.raises(ValueError, match="num_folds"):
        SVCTuning(num_folds=1)
