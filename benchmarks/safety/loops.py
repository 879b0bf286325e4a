"""BoTorch loops with `CertifiedSafe` around other acquisition functions, in boxes."""

from __future__ import annotations

import math
import warnings

import torch
from botorch.acquisition import (
    AcquisitionFunction,
    UpperConfidenceBound,
    qLogNoisyExpectedImprovement,
)
from botorch.sampling import SobolQMCNormalSampler
from linear_operator.utils.warnings import NumericalWarning

import botorch_ext as bx
from benchmarks.common.tables import Row
from benchmarks.safety.anywhere import functions_in_box
from benchmarks.tight.runs import DELTA, LAM, SIGMA, B, Case

#: The acquisition functions.
AROUND = ("UCB", "qLogNEI", "IntegratedLogEI")


def play_loop(case: Case) -> Row:
    """The least slack of the points of a loop from one seed, its first unsafe trial, and when the
    model of the outcome was refuted."""
    box, kernel, truths = functions_in_box(None, case.seed)
    points = box.sample(256, seed=0)
    outcomes = truths[1](points)
    limit = float(outcomes.quantile(0.3))
    seed = points[(outcomes - outcomes.quantile(0.95)).abs().argmin()].unsqueeze(0)
    models = [bx.KernelGP(kernel, LAM) for _ in truths]
    generator = torch.Generator().manual_seed(case.seed)
    row: Row = {"slack": math.inf, "unsafe": None, "refuted": None}
    x = seed
    for t in range(case.horizon):
        for truth, model in zip(truths, models, strict=True):
            noise = torch.randn(1, generator=generator, dtype=torch.float64)
            model.add(x, truth(x) + SIGMA * noise)
        acqf = bx.acquisition.CertifiedSafe(
            _around(case.problem, models[0]),
            {"outcome": models[1]},
            {"outcome": f">= {limit!r}"},
            safe_seed=seed,
            rkhs_bound=B,
            noise_std=SIGMA,
            delta=DELTA,
            bounds=case.method,  # pyright: ignore[reportArgumentType]
        )
        if row["refuted"] is None and acqf.refuted:
            row["refuted"] = t + 1
        with warnings.catch_warnings():
            # qLogNEI adds jitter at points that were evaluated.
            warnings.simplefilter("ignore", NumericalWarning)
            x, _ = acqf.optimize(box.bounds, num_restarts=2, raw_samples=64, seed=t)
        row["slack"] = min(row["slack"], float(acqf.slack(x)))
        is_safe = torch.equal(x, seed) or bool(truths[1](x) >= limit)
        if row["unsafe"] is None and not is_safe:
            row["unsafe"] = t + 1
    return row


def _around(name: str, model: bx.KernelGP) -> AcquisitionFunction:
    (X,) = model.train_inputs
    if name == "UCB":
        return UpperConfidenceBound(model, beta=4.0)
    if name == "IntegratedLogEI":
        return bx.acquisition.IntegratedLogEI(model, X_baseline=X)
    sampler = SobolQMCNormalSampler(torch.Size([32]), seed=0)
    return qLogNoisyExpectedImprovement(model, X.unique(dim=0), sampler, prune_baseline=False)
