"""Points that are equal by symmetry are told apart by a rule, whatever the last digits are.

Processors round differently. Here each one is a kernel whose values are off by 1e-13 of themselves.
"""

from typing import Any

import pytest
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext import Box, CandidateModels, FiniteSet, algorithms
from botorch_ext.ranks import among_highest, first_highest, reach
from botorch_ext.strategies import Strategy
from tests.helpers import rbf

SIDE = torch.linspace(-1.0, 1.0, 5, dtype=torch.float64)
SQUARE = FiniteSet(torch.cartesian_prod(SIDE, SIDE))
BOX = Box([[-1.0, -1.0], [1.0, 1.0]])
PROCESSORS = (0.0, 1.0)


class Rounded(Kernel):
    """Another kernel as one processor computes it; 0 is exact."""

    def __init__(self, kernel: Kernel, processor: float) -> None:
        super().__init__()
        self.kernel, self.processor = kernel, processor

    def forward(self, x1: Tensor, x2: Tensor, diag: bool = False, **params: Any) -> Tensor:
        K = self.kernel.forward(x1, x2, diag=diag, **params)
        place = x1.new_tensor([12.9898, 78.233])
        a, b = (torch.sin(self.processor * (1 + x @ place)) for x in (x1, x2))
        return K * (1 + 5e-14 * (a + b if diag else a[..., :, None] + b[..., None, :]))


def kernel(processor: float, lengthscale: float = 0.7) -> Kernel:
    return Rounded(rbf(lengthscale), processor).double()


def models(processor: float) -> CandidateModels:
    return CandidateModels([kernel(processor, scale) for scale in (0.6, 1.2)], 0.01)


KNOWN = {"rkhs_bound": 1.0, "noise_std": 0.1}
RIDGE = {"noise_variance": 0.01}
METHODS = {
    "gp_ucb": lambda p: algorithms.gp_ucb(SQUARE, kernel(p), **RIDGE, width=2.0),
    "gp_bucb": lambda p: algorithms.gp_bucb(SQUARE, kernel(p), **RIDGE, width=2.0),
    "insured_ucb": lambda p: algorithms.insured_ucb(SQUARE, kernel(p), **RIDGE, **KNOWN),
    "he_gp_ucb": lambda p: algorithms.he_gp_ucb(SQUARE, models(p), **KNOWN),
    "credible_ucb": lambda p: algorithms.credible_ucb(SQUARE, models(p), **KNOWN),
    "expected_ucb": lambda p: algorithms.expected_ucb(SQUARE, models(p), width=2.0),
    "safe_ucb": lambda p: algorithms.safe_ucb(
        SQUARE, models(p), **KNOWN, certificates=True, horizon=30
    ),
    "stable_opt": lambda p: algorithms.stable_opt(
        SQUARE, kernel(p), **RIDGE, width=2.0, radius=0.5
    ),
    "bpe": lambda p: algorithms.bpe(SQUARE, kernel(p), **RIDGE, width=0.5, horizon=30),
    "bpe_delay": lambda p: algorithms.bpe_delay(
        SQUARE, kernel(p), **RIDGE, width=0.0, horizon=30, delay=3
    ),
    "phased_uncertainty_sampling": lambda p: algorithms.phased_uncertainty_sampling(
        SQUARE, kernel(p), **RIDGE, width=0.5, horizon=30
    ),
    "certified_bucb": lambda p: algorithms.certified_bucb(
        SQUARE, kernel(p), **RIDGE, width=0.5, horizon=30, buy="always"
    ),
    "breadthwise_exploration": lambda p: algorithms.breadthwise_exploration(
        BOX, kernel(p), **RIDGE, width=0.5, rkhs_bound=1.0, horizon=30, holder=(1.5, 1.0)
    ),
}


def played(strategy: Strategy) -> list[Any]:
    """What was asked on a symmetric function without noise, and what is best."""
    asked = []
    for _ in range(30):
        trial = strategy.ask()
        asked.append(trial.x.tolist())
        strategy.tell(trial.id, float(torch.cos(1.3 * trial.x.norm())))
    return [*asked, strategy.best()[0].tolist()]


@pytest.mark.parametrize("method", METHODS)
def test_decisions_are_the_same_on_all_processors(method):
    first, *others = (played(METHODS[method](processor)) for processor in PROCESSORS)
    for other in others:
        assert other == first


@pytest.mark.parametrize(("dtype", "noise"), [(torch.float64, 1e-11), (torch.float32, 1e-7)])
def test_the_rule(dtype, noise):
    values = torch.tensor([0.5, 2.0 - noise, 1.0, 2.0, -3.0, 1.0 + noise], dtype=dtype)
    assert first_highest(values).tolist() == [1]
    assert first_highest(torch.stack([values, -values])).tolist() == [[1], [4]]
    assert first_highest(values, 1.6).tolist() == [0]  # with an error of their own
    assert reach(values, 1.0 + noise).tolist() == [False, True, True, True, False, True]
    kept = {1: [1], 2: [1, 3], 3: [1, 2, 3], 4: [1, 2, 3, 5], 6: [0, 1, 2, 3, 4, 5]}
    for num, rows in kept.items():
        assert among_highest(values, num).nonzero().flatten().tolist() == rows
