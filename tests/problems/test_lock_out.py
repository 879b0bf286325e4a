import math
import pickle

import pytest
import torch

from botorch_ext.problems import LockOut, lock_out
from tests.helpers import tolerance

CLOSE = tolerance(torch.float64)


def test_the_numbers_of_the_specification() -> None:
    problem = lock_out()
    along = math.sqrt(1 - 0.25**2)
    arms = torch.tensor([[along, 0.25], [along, -0.25], [0.65, 0.6]], dtype=torch.float64)
    torch.testing.assert_close(problem.domain.points, arms, **CLOSE)
    linear = torch.tensor(
        [0.28 * along + 0.24, 0.28 * along - 0.24, 0.28 * 0.65 + 0.96 * 0.6], dtype=torch.float64
    )
    torch.testing.assert_close(problem.rkhs_part(arms), linear, **CLOSE)
    m = torch.tensor([-0.25, 0.25, 0.25], dtype=torch.float64)
    torch.testing.assert_close(problem(arms), linear + m, **CLOSE)
    assert [round(value, 3) for value in problem(arms).tolist()] == [0.261, 0.281, 1.008]
    assert problem.optimal_value == pytest.approx(1.008, abs=1e-12)
    torch.testing.assert_close(problem.optimizer, arms[2], **CLOSE)


def test_the_parameters_to_run_it() -> None:
    problem = lock_out()
    assert isinstance(problem, LockOut)
    X = problem.domain.points
    torch.testing.assert_close(problem.kernel(X, X).to_dense(), X @ X.T, **CLOSE)
    assert float(problem.kernel(X, X).to_dense().diagonal().max()) <= 1 + 1e-12
    assert problem.rkhs_part.norm == pytest.approx(1.0, abs=1e-12)
    assert problem.rkhs_bound == 1.0
    assert problem.misspecification == 0.25
    assert problem.noise_std == 0.01
    assert problem.noise_variance == 1e-3
    assert problem.delta == 0.1
    assert problem.horizon == 300
    assert torch.equal(pickle.loads(pickle.dumps(problem))(X), problem(X))


def test_the_linear_fit_to_the_bad_arms_excludes_the_best() -> None:
    # Noiseless, many plays of the two bad arms: the fit is theta = (0.28, -0.04), so that the best
    # arm looks worth 0.158, and a width of 1 or 2 times a vanishing std does not reach 0.28.
    problem = lock_out()
    bad = problem.domain.points[:2]
    theta = torch.linalg.solve(bad, problem(bad))
    assert float(problem.domain.points[2] @ theta) < 0.2
    assert float(problem(problem.domain.points[2])) > 1.0
