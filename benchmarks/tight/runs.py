"""Runs with tight bounds: one strategy on one function of known norm, checked at every step."""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.tabled_runs import Table
from benchmarks.common.tables import Row
from botorch_ext import widths
from botorch_ext.problems import lock_out

KEY = ("table", "problem", "method", "seed")
#: The numbers that methods are told in all runs but those of the lock-out.
B, SIGMA, LAM, DELTA, EPS = 2.0, 0.1, 0.01, 0.1, 0.1
N = 300
FIRST_SEED = 5_000_000

PLAIN = ("SelfNormalized", "Mixture", "Ladder", "Dual", "2.0")
ENLARGED = (
    "published SelfNormalized",
    "pointwise SelfNormalized",
    "pointwise Mixture",
    "pointwise Ladder",
)
COVERED = ("Mixture", "Ladder", "Dual", *ENLARGED[2:], "pointwise Dual")
_FORMS = {"published": widths.Enlarged, "pointwise": widths.PointwiseEnlarged}
DIMS = (1, 2, 4)
TABLES = {
    "regret": Table(
        [f"d = {d}, norm {norm}" for d in DIMS for norm in ("B", "B/2")], PLAIN, 24, 200
    ),
    "misspecified": Table(
        [f"d = {d}, eps {eps}" for d in DIMS for eps in ("0", "0.1")],
        ("SelfNormalized", *ENLARGED),
        24,
        200,
    ),
    "coverage": Table([f"d = {d}" for d in DIMS], COVERED, 400, 200),
    "alarm": Table(
        [f"d = {d}, {wrong}" for d in DIMS for wrong in ("norm", "lengthscale", "noise")],
        ("SelfNormalized", "Ladder"),
        24,
        150,
    ),
    "unequal": Table(
        [f"d = {d}, standard errors {told}" for d in (1, 2) for told in ("told", "not told")],
        PLAIN,
        60,
        150,
    ),
    "lock-out": Table([f"d = {d}" for d in range(2, 7)], ("SelfNormalized", *ENLARGED), 3, 300),
}


@dataclass(frozen=True)
class Case:
    """One run: its columns of `KEY`, and its length."""

    table: str
    problem: str
    method: str
    seed: int
    horizon: int

    @property
    def key(self) -> Row:
        """What names its row."""
        return {name: getattr(self, name) for name in KEY}

    @property
    def digest(self) -> str:
        """The digest of everything that decides the outcome of the run."""
        decides = (*asdict(self).values(), B, SIGMA, LAM, DELTA, EPS, N)
        return hashlib.blake2b(repr(decides).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class Problem:
    """A function on a set, and what a method is told.

    Args:
        points: The set, ``N x d``.
        kernel: The kernel that the method is told.
        values: The RKHS part of f, ``N``.
        errors: What is added to the RKHS part at each point, ``N``.
        noise: The noise of each step, ``T``.
        errors_follow_noise: Whether the error of an observation has the sign of its noise.
        stds: The standard error of each step that the method is told, ``T``; None for none.
    """

    points: Tensor
    kernel: Kernel
    values: Tensor
    errors: Tensor
    noise: Tensor
    errors_follow_noise: bool = False
    stds: Tensor | None = None


def play(case: Case) -> Row:
    """What a run found."""
    return _lock_out(case) if case.table == "lock-out" else _play(case, _problem(case))


def width_of(method: str) -> widths.Width | float:
    """The width of a method, with the enlargement that its name begins with."""
    form, _, name = method.rpartition(" ")
    if name == "2.0":
        return 2.0
    width = getattr(widths, name)(B, SIGMA, DELTA)
    return _FORMS[form](width, EPS) if form else width


def _play(case: Case, problem: Problem) -> Row:
    """The regret of a run, whether a bound failed, and when the alarm came."""
    domain = bx.FiniteSet(problem.points)
    width = width_of(case.method)
    strategy = bx.algorithms.gp_ucb(domain, problem.kernel, noise_variance=LAM, width=width)
    truth = problem.values if problem.errors_follow_noise else problem.values + problem.errors
    best, regret, failed = float(truth.max()), 0.0, False
    is_checked = case.method != "2.0"
    for t in range(case.horizon):
        if is_checked:
            mean, half_width = strategy.bands(problem.points)
            off = (mean[0] - problem.values).abs() - half_width[0]
            failed = failed or bool((off > 1e-9).any())
        trial = strategy.ask()
        row, noise = trial.info["index"], problem.noise[t]
        error = EPS * noise.sign() if problem.errors_follow_noise else problem.errors[row]
        regret += best - float(truth[row])
        std = None if problem.stds is None else float(problem.stds[t])
        strategy.tell(trial, float(problem.values[row] + error + noise), std=std)
    report = strategy.report()
    return {"regret": regret, "failed": failed, "refuted": report.get("refuted_at")}


def _problem(case: Case) -> Problem:
    """The problem of a case, the same for all methods."""
    generator = generator_of(case)
    d = int(case.problem[4])
    points = uniform(generator, N, d)
    lengthscale, kernel_of, norm, law = 0.3 * math.sqrt(d), rbf, B, "gaussian"
    wrong = case.problem.partition(", ")[2]
    if case.table == "coverage":
        kernel_of = (rbf, matern)[case.seed % 2]
        norm = B / (1, 2, 4)[case.seed // 2 % 3]
        law = ("gaussian", "uniform", "two-point")[case.seed // 6 % 3]
    elif case.table == "regret":
        norm = B / 2 if wrong == "norm B/2" else B
    told = kernel_of(lengthscale)
    true = kernel_of(lengthscale / 3) if wrong == "lengthscale" else told
    if wrong == "norm":
        norm = 2 * B
    values = function_of_norm(true, points, norm, generator)
    std = 2 * SIGMA if wrong == "noise" else SIGMA
    noise = std * _noise(law, case.horizon, generator)
    errors, follow, stds = torch.zeros(N, dtype=torch.float64), False, None
    if case.table == "unequal":  # from a tenth of sigma to ten times sigma
        ratios = 10 ** (2 * uniform(generator, case.horizon) - 1)
        noise = noise * ratios
        stds = SIGMA * ratios if wrong == "standard errors told" else None
    if wrong == "eps 0.1":
        errors = EPS * uniform(generator, N).sub(0.5).sign()
    if case.table == "coverage" and case.method.startswith("pointwise"):
        kind = case.seed % 4
        other = function_of_norm(told, points, 1.0, generator)
        signs = (uniform(generator, N) - 0.5, values, -values, other)[kind].sign()
        errors, follow = EPS * signs, case.seed % 5 == 0
    return Problem(points, told, values, errors, noise, follow, stds)


def generator_of(case: Case) -> torch.Generator:
    """A generator that is the same for all methods."""
    problem = case.problem.replace("not told", "told")  # the same functions and noise
    text = f"{case.table} {problem} {case.seed}".encode()
    seed = int.from_bytes(hashlib.blake2b(text, digest_size=6).digest())
    return torch.Generator().manual_seed(seed)


def uniform(generator: torch.Generator, *shape: int) -> Tensor:
    """Uniform numbers in [0, 1]."""
    return torch.rand(shape, generator=generator, dtype=torch.float64)


def _noise(law: str, num: int, generator: torch.Generator) -> Tensor:
    """Noise with the sub-Gaussian constant 1."""
    if law == "gaussian":
        return torch.randn(num, generator=generator, dtype=torch.float64)
    spread = 2 * uniform(generator, num) - 1
    # A uniform variable on [-a, a] is a / sqrt(3) sub-Gaussian.
    return spread.sign() if law == "two-point" else math.sqrt(3) * spread


def function_of_norm(
    kernel: Kernel, points: Tensor, norm: float, generator: torch.Generator
) -> Tensor:
    """The values at the points of a random function of the RKHS with this norm."""
    centers = uniform(generator, 30, points.shape[-1])
    weights = torch.randn(30, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        own, cross = kernel(centers).to_dense(), kernel(points, centers).to_dense()
    return cross @ weights * (norm / float(weights @ own @ weights) ** 0.5)


def _lock_out(case: Case) -> Row:
    """The regret on the lock-out instance, and the last step with a regret."""
    problem = lock_out(int(case.problem[4]))
    form, _, name = case.method.rpartition(" ")
    width = getattr(widths, name)(problem.rkhs_bound, problem.noise_std, problem.delta)
    options = {"noise_variance": problem.noise_variance, "width": width}
    if form:
        options["width"] = _FORMS[form](width, problem.misspecification)
    strategy = bx.algorithms.gp_ucb(problem.domain, problem.kernel, **options)
    trace = bx.simulate(strategy, problem, case.horizon, seed=case.seed)
    regrets = trace.regret.tolist()
    last = max((t + 1 for t, regret in enumerate(regrets) if regret > 1e-9), default=0)
    return {"regret": math.fsum(regrets), "failed": False, "refuted": None, "last": last}
