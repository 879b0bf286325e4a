"""Models of several tasks, and models whose transforms are not linear or change the columns."""

import math

import pytest
import torch
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.transforms import Log
from torch.testing import assert_close

from botorch_ext.acquisition import EnlargedUpperConfidenceBound
from tests.acquisition.places import draw

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:Data .* is not:botorch.exceptions.warnings.InputDataWarning"
    ),
    pytest.mark.filterwarnings("ignore:Sparse invariant checks:UserWarning"),
]
NOISES = 0.5, 1e-3


def multi_task_gp(tasks, output_tasks, n=10, yvar=None):
    """A MultiTaskGP of ``draw(n, 0)`` whose second column is the task, in raw units."""
    X, y = draw(n, 0)
    task = torch.tensor(tasks, dtype=torch.float64).repeat(n)[:n, None]
    model = MultiTaskGP(
        torch.cat([X[:, :1], task, X[:, 1:]], -1),
        y[:, None],
        1,
        yvar,
        output_tasks=output_tasks,
        outcome_transform=None,
    )
    if yvar is None:
        model.likelihood.noise = torch.tensor(NOISES, dtype=torch.float64).view(-1, 1)
    return model.eval()


def log_gp(reverse=False, n=10):
    """A SingleTaskGP of the logarithm of positive outcomes."""
    X, y = draw(n, 0)
    y = y.exp()[:, None]
    if reverse:
        X, y = X.flip(0), y.flip(0)
    model = SingleTaskGP(X, y, outcome_transform=Log())
    model.likelihood.noise = torch.tensor(0.04, dtype=torch.float64)
    return model.eval()


# --- the noise that a misspecification is divided by ---------------------------------------------


@pytest.mark.parametrize("tasks", [[0, 1], [1, 0]])
@pytest.mark.parametrize("output", [0, 1])
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.EnlargementWarning")
def test_the_noise_is_that_of_the_output_task(tasks, output):
    acqf = EnlargedUpperConfidenceBound(multi_task_gp(tasks, [output]), 0.0, misspecification=0.1)
    assert acqf.width.item() == pytest.approx(0.1 * math.sqrt(11 / NOISES[output]), rel=1e-6)


def test_noise_that_differs_between_points_must_be_given():
    for reverse in (False, True):
        with pytest.raises(ValueError, match=r"noise_variance must be given: .* differs"):
            EnlargedUpperConfidenceBound(log_gp(reverse), 2.0, misspecification=0.1)
    acqf = EnlargedUpperConfidenceBound(log_gp(), 2.0, misspecification=0.1, noise_variance=0.25)
    assert_close(acqf.width.item(), 2.0 + 0.1 * math.sqrt(11) / 0.5)
