"""torch's default device: methods work under it, and nothing in the package forgets a device."""

import ast
from pathlib import Path

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from benchmarks.common.pretend_cuda import PretendCUDA
from botorch_ext import algorithms

PACKAGE = Path(bx.__file__).parent
FACTORIES = {
    *("arange", "as_tensor", "asarray", "empty", "eye", "full", "linspace", "logspace", "normal"),
    *("ones", "rand", "randint", "randn", "randperm", "scalar_tensor", "tensor", "zeros"),
}


def test_every_factory_names_its_device():
    """`like.new_zeros` follows a tensor, and `host.zeros` stays on the host; the bare `torch.zeros`
    follows whatever the user has set."""
    bare = [
        f"{path.relative_to(PACKAGE)}:{node.lineno} torch.{node.func.attr}"
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "torch"
        and node.func.attr in FACTORIES
        and not any(keyword.arg == "device" for keyword in node.keywords)
    ]
    assert not bare, bare


DOMAINS = {
    "set": lambda: bx.FiniteSet(torch.linspace(2.0, 5.0, 12, dtype=torch.float64).unsqueeze(-1)),
    "box": lambda: bx.Box([[2.0], [5.0]]),
    "CPU": lambda: bx.Box([[2.0], [5.0]], device="cpu"),
}
NUMBERS = {"noise_variance": 0.01, "width": 2.0}
MADE = {
    "gp_ucb": lambda domain: algorithms.gp_ucb(domain, RBFKernel(), **NUMBERS),
    "thompson_sampling": lambda domain: algorithms.thompson_sampling(
        domain, RBFKernel(), noise_variance=0.01
    ),
    "integrated_ei": algorithms.integrated_ei,
    "random": bx.strategies.RandomSearch,
    "credible_ucb": lambda domain: algorithms.credible_ucb(
        domain,
        bx.CandidateModels.lengthscales(RBFKernel(), [0.4, 1.0], 0.01, device=domain.device),
        width=2.0,
    ),
    "stable_opt": lambda domain: algorithms.stable_opt(domain, RBFKernel(), radius=0.3, **NUMBERS),
    "bpe": lambda domain: algorithms.bpe(domain, RBFKernel(), horizon=8, **NUMBERS),
    "insured_ucb": lambda domain: algorithms.insured_ucb(
        domain, RBFKernel(), noise_variance=0.01, rkhs_bound=2.0, noise_std=0.1
    ),
}


@pytest.mark.parametrize("domain", DOMAINS)
@pytest.mark.parametrize("method", MADE)
def test_a_method_works_under_a_default_device(method, domain):
    with PretendCUDA(), torch.device("cuda"):
        strategy = MADE[method](DOMAINS[domain]())
        for _ in range(3):
            trial = strategy.ask()
            assert trial.x.device.type == ("cpu" if domain == "CPU" else "cuda")
            strategy.tell(trial, float(trial.x.sin()))
        strategy.ask(2)
        strategy.report()
