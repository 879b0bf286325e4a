"""What the tests of studies that are kept share: strategies, and what is done to studies."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

import botorch_ext as bx
from botorch_ext.strategies import Strategy
from botorch_ext.studies.records import as_text

BOX = bx.Box([[-1.0, 2.0], [1.0, 5.0]])


def kernel(lengthscale: float = 0.7) -> ScaleKernel:
    inner = MaternKernel(nu=2.5, ard_num_dims=2)
    inner.lengthscale = torch.tensor([[lengthscale, 1.3]])
    outer = ScaleKernel(inner)
    outer.outputscale = 0.9
    return outer


def gp_bucb(lengthscale: float = 0.7, **options: Any) -> Strategy:
    numbers = {"noise_variance": 0.01, "width": 2.0} | options
    return bx.algorithms.gp_bucb(BOX, kernel(lengthscale), **numbers)


def at_random(seed: int = 0) -> Strategy:
    """Asks that cost nothing."""
    return bx.strategies.RandomSearch(BOX, seed=seed)


def value_at(x: torch.Tensor) -> float:
    return float(torch.sin(3.0 * x).sum())


def lines(study: bx.Study) -> list[str]:
    """The events, every bit of them."""
    return [as_text(event, 1.0) for event in study.events]


def in_a_fork(work: Callable[[], Any], num_threads: int | None = 1) -> int:
    """The id of a process that works and ends, with 0 unless something was raised; None: with as
    many threads of torch as it is born with."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    try:
        if num_threads is not None:
            torch.set_num_threads(num_threads)
        work()
        os._exit(0)
    except BaseException:  # noqa: BLE001 - the child must not go on as if it were the test
        traceback.print_exc()
        sys.stderr.flush()
    os._exit(1)


def wait_for(child: int) -> None:
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def answer_of_a_fork(work: Callable[[], Any], folder: Path) -> Any:
    """What ``work`` returns in a process of its own, through JSON."""
    path = folder / "answer.json"
    wait_for(in_a_fork(lambda: path.write_text(json.dumps(work()))))
    return json.loads(path.read_text())
