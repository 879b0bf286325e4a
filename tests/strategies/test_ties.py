"""Points that are equal by symmetry are told apart by a rule, whatever the last digits are.

Processors round differently. Here each one is a kernel whose values are off by 1e-13 of themselves.
"""

from typing import Any

import pytest
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext import Box, CandidateModels, FiniteSet, algorithms
from botorch_ext.domains.ranks import among_highest, first_highest, reach
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


KNOWN = {"rkhs_bound": 1.0, "noise_std": 0.1}
ONE_MODEL = {
    "gp_ucb": {"width": 2.0},
    "gp_bucb": {"width": 2.0},
    "insured_ucb": KNOWN,
    "stable_opt": {"width": 2.0, "radius": 0.5},
    "bpe": {"width": 0.5, "horizon": 30},
    "bpe_delay": {"width": 0.0, "horizon": 30, "delay": 3},
    "phased_uncertainty_sampling": {"width": 0.5, "horizon": 30},
    "certified_bucb": {"width": 0.5, "horizon": 30, "buy": "always"},
    "breadthwise_exploration": {
        "width": 0.5,
        "rkhs_bound": 1.0,
        "horizon": 30,
        "holder": (1.5, 1.0),
    },
}
SEVERAL = {
    "he_gp_ucb": KNOWN,
    "credible_ucb": KNOWN,
    "expected_ucb": {"width": 2.0},
    "safe_ucb": {**KNOWN, "certificates": True, "horizon": 30},
}


def make(method: str, processor: float) -> Strategy:
    function = getattr(algorithms, method)
    if method in SEVERAL:
        models = [kernel(processor, scale) for scale in (0.6, 1.2)]
        return function(SQUARE, CandidateModels(models, 0.01), **SEVERAL[method])
    domain = BOX if method == "breadthwise_exploration" else SQUARE
    return function(domain, kernel(processor), noise_variance=0.01, **ONE_MODEL[method])


def played(strategy: Strategy) -> list[Any]:
    """What was asked on a symmetric function without noise, and what is best."""
    asked = []
    for _ in range(30):
        trial = strategy.ask()
        asked.append(trial.x.tolist())
        strategy.tell(trial.id, float(torch.cos(1.3 * trial.x.norm())))
    return [*asked, strategy.best()[0].tolist()]


@pytest.mark.parametrize("method", [*ONE_MODEL, *SEVERAL])
def test_decisions_are_the_same_on_all_processors(method):
    first, *others = (played(make(method, processor)) for processor in PROCESSORS)
    for other in others:
        assert other == first


def test_of_models_that_are_equal_by_symmetry_the_first_is_the_likeliest():
    X = torch.cat([SQUARE.points, SQUARE.points.flip(-1)])
    scales = [(0.6, 1.2), (1.2, 0.6)]
    for order in (scales, scales[::-1]):
        models = CandidateModels([Rounded(rbf(*scale), 1.0).double() for scale in order], 0.1)
        initial = X, torch.cos(1.3 * X.norm(dim=-1))
        strategy = algorithms.mle_ucb(SQUARE, models, width=2.0, initial=initial)
        evidence = [each["log_marginal_likelihood"] for each in strategy.report()["models"]]
        assert 0 < abs(evidence[0] - evidence[1]) < 1e-8
        assert strategy.ask().info["model"] == 0


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
