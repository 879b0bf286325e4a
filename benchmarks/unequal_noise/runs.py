"""Runs with results that differ in noise: one method on one function, with one seed."""

from __future__ import annotations

import math
import time
import warnings
import zlib
from collections.abc import Iterator, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import torch
from botorch.exceptions import ModelFittingError
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.models.transforms import Standardize
from gpytorch.mlls import ExactMarginalLogLikelihood

from benchmarks.common.method_runs import MethodRun
from benchmarks.common.tables import Row
from benchmarks.real.peers.botorch_loop import BoTorchLoop
from benchmarks.real.peers.library import IntegratedEI
from benchmarks.real.spaces import Params, real
from benchmarks.real.tasks.functions import FUNCTIONS

PROBLEMS = ("Branin", "Hartmann3", "Ackley5")
# The seeds of the tables are this and above; those below are for trying things out.
FIRST_SEED = 100
EVALUATIONS, _SMOKE_EVALUATIONS = 40, 11
#: The base of the standard deviations, in ranges, and the largest factor of it.
BASE, FACTOR = 0.01, 10.0


class _Told(IntegratedEI):
    """`integrated_ei`, told the standard error of each result."""

    def tell(self, params: Params, loss: float, std: float) -> None:  # pyright: ignore
        self._strategy.tell(self._strategy.pending[0], -loss, std=std)


class _NotTold(IntegratedEI):
    """`integrated_ei`, which takes all results as equally noisy."""

    def tell(self, params: Params, loss: float, std: float) -> None:  # pyright: ignore
        super().tell(params, loss)


class _BoTorch(BoTorchLoop):
    """BoTorch's loop with `train_Yvar` and qLogNEI."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._variances: list[float] = []

    def tell(self, params: Params, loss: float, std: float) -> None:  # pyright: ignore
        super().tell(params, loss)
        self._variances.append(std**2)

    def _fitted(self) -> SingleTaskGP:
        X = torch.stack(self._X)
        Y, Yvar = (X.new_tensor(numbers)[:, None] for numbers in (self._Y, self._variances))
        model = SingleTaskGP(X, Y, Yvar, outcome_transform=Standardize(1))
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # as it was made: with the modes of its priors
            model.eval()
        return model


TOLD, NOT_TOLD, BOTORCH = "integrated_ei, told", "integrated_ei, not told", "qLogNEI, told"
METHODS: dict[str, Any] = {TOLD: _Told, NOT_TOLD: _NotTold, BOTORCH: _BoTorch}
# What decides their answers: a revision is raised when the method asks something else.
_SETTINGS = {
    TOLD: "revision 1",
    NOT_TOLD: "revision 1",
    BOTORCH: f"botorch {metadata.version('botorch')}",
}


class Case(MethodRun):
    """One run of a method on one of `PROBLEMS`."""

    @property
    def evaluations(self) -> int:
        """How many it has."""
        return _SMOKE_EVALUATIONS if self.smoke else EVALUATIONS

    @property
    def settings(self) -> tuple[Any, ...]:
        """The noise, the bounds and the settings of the method."""
        return BASE, FACTOR, FUNCTIONS[self.problem].bounds, _SETTINGS[self.method]


def cases(problems: Sequence[str], seeds: int, first: int, smoke: bool = False) -> Iterator[Case]:
    """All runs, the seeds outermost, so that what is there at any time is balanced."""
    for seed in range(first, first + seeds):
        for problem in problems:
            for method in METHODS:
                yield Case(method, problem, FIRST_SEED + seed, smoke)


def play(case: Case) -> Row:
    """The row of a run.

    Returns:
        The key and the digest of the case; ``log_regret``, log10 of the regret in ranges of the
        evaluated point with the largest posterior mean; ``seconds`` of one core for a question and
        its answer; ``wall`` seconds.
    """
    torch.set_num_threads(1)
    started, seconds = time.perf_counter(), 0.0
    function = FUNCTIONS[case.problem]
    rng = np.random.default_rng(zlib.crc32(repr((case.problem, case.seed)).encode()))
    # The same for all methods.
    stds = BASE * function.width * FACTOR ** (2 * rng.random(EVALUATIONS) - 1)
    noise = stds * rng.standard_normal(EVALUATIONS)
    parameters = [real(f"x{i}", *ends) for i, ends in enumerate(function.bounds)]

    def loss(params: Params) -> float:
        point = [params[p.name] for p in parameters]
        return -float(function(torch.tensor([point], dtype=torch.float64)))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        method = METHODS[case.method](parameters, case.seed, case.evaluations)
        for step in range(case.evaluations):
            before = time.process_time()
            params = method.ask()
            method.tell(params, loss(params) + float(noise[step]), float(stds[step]))
            seconds += time.process_time() - before
        best = -loss(method.best())
    return case.key | {
        "digest": case.digest,
        "log_regret": round(math.log10(function.regret(best) / function.width), 4),
        "seconds": round(seconds / case.evaluations, 4),
        "wall": round(time.perf_counter() - started, 2),
    }
