"""Runs with delayed feedback: the methods, and one run of one of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

import botorch_ext as bx
from benchmarks.common.kernels import rbf
from benchmarks.common.tables import Row
from benchmarks.delayed_feedback.objectives import MODEL_LENGTHSCALE, NOISE_STD, Objective, minimum
from botorch_ext import delays
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import RandomSearch
from botorch_ext.widths import FixedDesignContinuous

DELTA = 0.01
_NOISE_VARIANCE = NOISE_STD**2
# The authors' constant, in place of every width.
_WIDTH = math.sqrt(6)
# The authors' parameters of sub-exponential delays.
_XI, _B = 9.0, 1.0

# Of the logarithm.
_SIGMA = 1.0
DELAYS: dict[str, delays.Delay] = {
    "Poisson(0)": delays.Poisson(0),
    "Poisson(25)": delays.Poisson(25),
    "Poisson(50)": delays.Poisson(50),
    "Geometric(50)": delays.Geometric(50),
    "LogNormal(50)": delays.LogNormal(50 * math.exp(-(_SIGMA**2) / 2), _SIGMA),
}
POISSON = ("Poisson(0)", "Poisson(25)", "Poisson(50)")
TAILS = ("Poisson(50)", "Geometric(50)", "LogNormal(50)")


def mean_delay(name: str) -> float:
    """Of the distribution, in steps, before rounding up."""
    return float(DELAYS[name].distribution.mean())


def exponential(name: str, printed: bool) -> delays.Allowance:
    """The allowance of the paper for sub-exponential delays, corrected or as printed."""
    return delays.SubExponential(mean_delay(name), _XI, _B, printed=printed)


# The allowances of BPE-Delay, from the name of the delay.
_ALLOWANCES: dict[str, Callable[[str], Any]] = {
    "BPE-Delay": partial(exponential, printed=False),
    "BPE-Delay, allowance as printed": partial(exponential, printed=True),
    "BPE-Delay, known distribution": lambda name: delays.Quantile(DELAYS[name]),
    "BPE-Delay, known 0.9 quantile": lambda name: float(DELAYS[name].distribution.ppf(0.9)),
    "BPE-Delay, observed": lambda name: delays.Observed(),
    "BPE-Delay, observed, level 0.99": lambda name: delays.Observed(0.99),
    "BPE-Delay, observed, level 0.9": lambda name: delays.Observed(0.9),
    "BPE": lambda name: None,
}
IGNORING = "GP-UCB, pending ignored"
IGNORING_RANDOM = "GP-UCB, pending ignored, random start"
OPTIMISTIC = ("GP-UCB-SDF", IGNORING, "GP-BUCB")
LEARNING = (
    "BPE-Delay, known 0.9 quantile",
    "BPE-Delay, observed",
    "BPE-Delay, observed, level 0.99",
    "BPE-Delay, observed, level 0.9",
)
POISSON_METHODS = (
    "BPE-Delay",
    "BPE-Delay, allowance as printed",
    "BPE-Delay, known distribution",
    "BPE",
    *OPTIMISTIC,
    IGNORING_RANDOM,
    "random",
)
BOX_METHODS = ("BPE-Delay", "BPE", *OPTIMISTIC, "random")
TAIL_METHODS = ("BPE-Delay, known distribution", *LEARNING, "BPE", *OPTIMISTIC, "random")


@dataclass(frozen=True)
class Case:
    """One run.

    Args:
        objective: f1 or f2.
        delay: A key of `DELAYS`.
        method: As it is called in the tables.
        width: "sqrt(6)", "theory", or "rigorous" for `FixedDesignContinuous`.
        seed: Of noise, delays and ties.
        horizon: T.
        side: Of the grid; 0 for the box.
    """

    objective: str
    delay: str
    method: str
    width: str
    seed: int
    horizon: int
    side: int


def run_cases(cases: Sequence[Case], objectives: tuple[Objective, ...]) -> list[Row]:
    """Plays one method on one objective with several seeds.

    Methods whose rounds are reported, and those on a box, are simulated one by one; all seeds of
    the others are moved forward together.

    Args:
        cases: Cases that differ in their seeds alone.
        objectives: Where their objective is looked up.

    Returns:
        For each case its scores, and ``curve``, the regret of each step.
    """
    case = cases[0]
    objective = next(one for one in objectives if one.name == case.objective)
    problem = objective.on_grid(case.side) if case.side else objective.on_box()
    bound, delay = rkhs_bound(objective), DELAYS[case.delay]
    strategy = _strategy(case, problem, bound)
    if case.side and not isinstance(strategy, bx.PhasedElimination):
        seeds = [case.seed for case in cases]
        options: dict[str, Any] = {"seeds": seeds, "delay": delay}
        traces = bx.replicate({"a": strategy}, problem, case.horizon, **options)["a"]
        seconds = traces.seconds / len(cases)
        played = [(strategy, regret, seconds) for regret in traces.regret]
    else:
        played = []
        for own in cases:
            one = _strategy(own, problem, bound)
            trace = bx.simulate(one, problem, own.horizon, delay=delay, seed=own.seed)
            played.append((one, trace.regret, trace.seconds))
    return [_row(own, problem, *of_run) for own, of_run in zip(cases, played, strict=True)]


def _row(
    case: Case, problem: RKHSFunction, strategy: bx.Strategy, regret: torch.Tensor, seconds: float
) -> Row:
    row = {name: getattr(case, name) for name in Case.__annotations__ if name != "side"}
    row |= {
        "domain": "grid" if case.side else "box",
        "mean_delay": mean_delay(case.delay),
        "cumulative_regret": float(regret.sum()),
        "simple_regret": float(regret.min()),
        "seconds": round(seconds, 3),
    }
    return row | _of_rounds(strategy, problem, regret) | {"curve": regret.tolist()}


def rkhs_bound(objective: Objective) -> float:
    """B of the theoretical widths: the true norm, rounded up to one digit."""
    return math.ceil(10 * objective.norm) / 10


def _strategy(case: Case, problem: RKHSFunction, bound: float) -> bx.Strategy:
    domain, kernel = problem.domain, rbf(MODEL_LENGTHSCALE)
    common: dict[str, Any] = {
        "noise_variance": _NOISE_VARIANCE,
        "noise_std": NOISE_STD,
        "delta": DELTA,
        "rkhs_bound": bound,
        "width": {"sqrt(6)": _WIDTH, "theory": None, "rigorous": None}[case.width],
        "seed": case.seed,
    }
    match case.method:
        case "random":
            return RandomSearch(domain, case.seed)
        case "GP-BUCB":
            return bx.algorithms.gp_bucb(domain, kernel, **common)
        case _ if case.method in (IGNORING, IGNORING_RANDOM):
            # Of equal candidates the library takes the first: without observations, always it.
            start = round(mean_delay(case.delay)) if case.method == IGNORING_RANDOM else 0
            return bx.algorithms.gp_ucb(
                domain, kernel, pending="ignore", num_initial=start, **common
            )
        case "GP-UCB-SDF":
            timeout = round(2 * mean_delay(case.delay))
            return bx.algorithms.gp_ucb_sdf(
                domain, kernel, minimum=minimum(problem), timeout=timeout, **common
            )
    allowance = delays.as_allowance(_ALLOWANCES[case.method](case.delay))
    if case.width == "rigorous":
        rounds = bx.rounds.DelayAware(bx.rounds.SquareRoot(case.horizon), allowance)
        num_rounds = rounds.count(case.horizon, DELTA)
        common["width"] = FixedDesignContinuous(bound, NOISE_STD, DELTA, num_rounds)
    return bx.algorithms.bpe_delay(domain, kernel, horizon=case.horizon, delay=allowance, **common)


def _of_rounds(strategy: bx.Strategy, problem: RKHSFunction, regret: torch.Tensor) -> Row:
    """What phased methods tell besides; the others decide anew at every step."""
    if not isinstance(strategy, bx.PhasedElimination):
        nothing = ("rounds", "arrived", "shares", "regrets", "outside", "maximizer_survives")
        return {"decisions": len(regret)} | dict.fromkeys(nothing, "")
    rounds = strategy.report()["rounds"]
    lengths = [round["length"] for round in rounds]
    outside = 0
    for round in strategy.rounds:
        if isinstance(round.survivors, bx.Region):
            inside = round.survivors.contains(round.points)
        else:
            inside = torch.isin(torch.tensor(round.choice.plan), round.survivors)
        outside += int((~inside).sum())
    last = strategy.rounds[-1].survivors
    if isinstance(last, bx.Region):
        survives = bool(last.contains(problem.optimizer).all())
    else:
        survives = int(problem(strategy.domain.like).argmax()) in last.tolist()
    return {
        "decisions": len(rounds),
        "rounds": _joined(lengths),
        # The last round is never judged.
        "arrived": _joined(round["arrived"] for round in rounds[:-1]),
        "shares": _joined(f"{round['volume']:.3g}" for round in rounds),
        "regrets": _joined(f"{float(part.sum()):.0f}" for part in regret.split(lengths)),
        "outside": outside,
        "maximizer_survives": survives,
    }


def _joined(parts: Iterable[Any]) -> str:
    return " ".join(map(str, parts))
