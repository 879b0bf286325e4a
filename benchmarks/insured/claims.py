"""Claims about the insured methods and their known failures, fixed before the runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.common.repeated_runs import column, standard_error
from benchmarks.common.tables import Row
from benchmarks.delayed_feedback.runs import POISSON
from benchmarks.insured import methods as m
from benchmarks.insured.problems import BOX_LOCK_OUT, CONTEXTS_LOCK_OUT
from benchmarks.insured.tables import (
    CHANGING,
    HYPERPARAMETERS,
    IN_CONTEXTS,
    LATE,
    LOCKED,
    LONG,
    NOISY,
    SEQUENTIAL,
    SMOOTH,
)

# From the rows of a table to what was measured and whether the claim holds.
Check = Callable[[Sequence[Row]], tuple[str, bool]]
_FEW = f"{m.SAFE}, models"


@dataclass(frozen=True)
class Claim:
    """What is claimed of a table, and how it is checked."""

    text: str
    table: str
    check: Check

    def row(self, rows: Sequence[Row]) -> Row:
        """The claim, what was measured, and whether it holds."""
        measured, holds = self.check([row for row in rows if row["table"] == self.table])
        return {"claim": self.text, "measured": measured, "holds": holds}


def pairs(rows: Sequence[Row], ours: str, theirs: str) -> list[tuple[float, float]]:
    """The regrets of two methods in one cell, of the seeds that both have."""
    a, b = (
        {row["seed"]: row["regret"] for row in rows if row["method"] == method}
        for method in (ours, theirs)
    )
    return [(a[seed], b[seed]) for seed in sorted(a.keys() & b.keys())]


def ratio(rows: Sequence[Row], ours: str, theirs: str) -> tuple[float, float]:
    """The ratio of mean regrets of two methods in one cell over the seeds that both have, and its
    standard error: of the paired differences a - r b, divided by the mean of b."""
    paired = pairs(rows, ours, theirs)
    mean = statistics.fmean(b for _, b in paired)
    found = statistics.fmean(a for a, _ in paired) / mean
    return found, standard_error([a - found * b for a, b in paired]) / mean


def cells(rows: Sequence[Row], **where: Sequence[Any]) -> dict[str, list[Row]]:
    """The rows of each problem, setting and horizon, of those whose columns are among these."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        if all(row[name] in values for name, values in where.items()):
            name = f"{row['problem']}, {row['setting']}, T = {row['horizon']}"
            found.setdefault(name, []).append(row)
    return found


def _compared(ours: str, *theirs: str, most: float, least: float = 0.0, **where: Any) -> Check:
    """The ratio to the best of others is below a number in every cell, or above one in some."""

    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        found, fewest = {}, None
        for name, cell in cells(rows, **where).items():
            count = min(len(pairs(cell, ours, other)) for other in theirs)
            if not count:
                continue
            fewest = count if fewest is None else min(fewest, count)
            best = min(
                theirs, key=lambda other: statistics.fmean(b for _, b in pairs(cell, ours, other))
            )
            found[name] = ratio(cell, ours, best)
        if not found:
            return "no runs", False
        worst = max(found, key=lambda name: found[name][0])
        value, error = found[worst]
        text = f"up to {value:.2f} ± {error:.2f} ({worst})"
        over = sum(value > most for value, _ in found.values())
        if math.isfinite(most):
            near = sum(most - error < value <= most for value, error in found.values())
            text += (
                f"; above {most:g} in {over} of {len(found)} cells, within an error of it in {near}"
            )
        return f"{text}; at least {fewest} pairs", over == 0 and value >= least

    return check


def _above(ours: str, theirs: str, least: float, **where: Any) -> Check:
    """A known cost: the ratio is at least a number in some cell."""
    return _compared(ours, theirs, most=float("inf"), least=least, **where)


def _small(
    method: str,
    most: float,
    growth: float,
    problems: Sequence[str],
    setting: str = SEQUENTIAL,
    horizons: Sequence[int] = (300, 2000),
) -> Check:
    """The mean regret is at most a number, and grows by at most a factor from the first horizon to
    the last."""

    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        texts, holds = [], True
        for problem in problems:
            where = {"problem": problem, "setting": setting, "method": method}
            means = [
                statistics.fmean(column(rows, "regret", horizon=horizon, **where) or [float("inf")])
                for horizon in horizons
            ]
            texts.append(f"{problem}: {', '.join(f'{mean:.1f}' for mean in means)}")
            holds = holds and max(means) <= most and means[-1] <= growth * means[0]
        return "; ".join(texts), holds

    return check


def _lost(method: str, share: float) -> Check:
    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        lost = [bool(value) for value in column(rows, "lost", method=method) if value is not None]
        return f"{sum(lost)} of {len(lost)} runs", len(lost) > 0 and sum(lost) <= share * len(lost)

    return check


def _runs_with(test: Callable[[Row, Row], bool], ours: str, least: int, **where: Any) -> Check:
    """In at least so many pairs of runs with GP-UCB's something is so."""

    def check(rows: Sequence[Row]) -> tuple[str, bool]:
        pairs = []
        for cell in cells(rows, **where).values():
            plain, mine = (
                {row["seed"]: row for row in cell if row["method"] == method}
                for method in (m.GP_UCB, ours)
            )
            pairs += [(plain[seed], mine[seed]) for seed in plain.keys() & mine.keys()]
        found = sum(test(*pair) for pair in pairs)
        return f"{found} of {len(pairs)} runs", found >= least

    return check


_PRICED = {"setting": ("sequential", "four workers", LATE, CHANGING), "horizon": (300,)}
CLAIMS = (
    *(
        Claim(
            f"eps = 0, T = 300, d = 1, 2, 4, four settings: {method} at most 1.25 of GP-UCB",
            "price",
            _compared(method, m.GP_UCB, most=1.25, problem=SMOOTH[:3], **_PRICED),
        )
        for method in (m.INSURED, m.SAFE)
    ),
    Claim(
        "the same at d = 6",
        "price",
        _compared(m.INSURED, m.GP_UCB, most=1.25, problem=SMOOTH[3:], **_PRICED),
    ),
    Claim(
        "the same at T = 1000 and 2000",
        "price",
        _compared(m.INSURED, m.GP_UCB, most=1.25, horizon=(1000, 2000)),
    ),
    Claim(
        "generic perturbations: insured at most 1.25 of the better of GP-UCB and EC-GP-UCB",
        "generic",
        _compared(m.INSURED, m.GP_UCB, m.EC_GP_UCB, most=1.25),
    ),
    Claim(
        "lock-outs: insured at most 40 at T = 300 and 2000, and at most 1.25 times as much then",
        "worst",
        _small(m.INSURED, 40, 1.25, LOCKED),
    ),
    Claim(
        "lock-outs under Poisson(10): insured at most 40 at T = 300",
        "worst",
        _small(m.INSURED, 40, 1.0, LOCKED, LATE, (300,)),
    ),
    Claim(
        "lock-outs of changing sets: insured at most 40 at T = 300",
        "worst",
        _small(m.INSURED, 40, 1.0, LOCKED, CHANGING, (300,)),
    ),
    Claim(
        "a lock-out on a box: insured at most 40 at T = 300 and 1000, and at most 1.25 times as "
        "much then",
        "boxes",
        _small(m.INSURED, 40, 1.25, [BOX_LOCK_OUT], horizons=LONG),
    ),
    Claim(
        "a lock-out on a box under Poisson(10): insured at most 40 at T = 300",
        "boxes",
        _small(m.INSURED, 40, 1.0, [BOX_LOCK_OUT], LATE, (300,)),
    ),
    Claim(
        "a lock-out in contexts: insured at most 40 at T = 300 and 1000, and at most 1.25 times as "
        "much then",
        "boxes",
        _small(IN_CONTEXTS[1], 40, 1.25, [CONTEXTS_LOCK_OUT], horizons=LONG),
    ),
    Claim(
        "wrong scales and a lock-out: the same of safe",
        "scales",
        _small(_FEW, 40, 1.25, ["wrong scales"]),
    ),
    Claim(
        "certified, useful: at most 1.3 of GP-BUCB in every Poisson cell",
        "delays",
        _compared(m.USEFUL, m.GP_BUCB, most=1.3, setting=POISSON),
    ),
    Claim(
        "certified, useful: below BPE-Delay in every Poisson cell",
        "delays",
        _compared(m.USEFUL, m.BPE_DELAY, most=1.0, setting=POISSON),
    ),
    *(
        Claim(
            f"{method}: the maximiser is lost in at most a tenth of the runs",
            "lost",
            _lost(method, 0.1),
        )
        for method in (
            m.USEFUL,
            m.ORACLE_USEFUL,
            m.ORACLE,
            f"{m.USEFUL}{m.THEORY}",
            f"{m.ORACLE}{m.THEORY}",
        )
    ),
    Claim(
        "credible at most 1.2 of the best of HE, MLE and Expected in (a) to (d)",
        "hyperparameters",
        _compared(m.CREDIBLE, *HYPERPARAMETERS[:-1], most=1.2),
    ),
    Claim(
        "boxes: insured at most 1.25 of the better of GP-UCB and EC-GP-UCB",
        "boxes",
        _compared(m.INSURED, m.GP_UCB, m.EC_GP_UCB, most=1.25, horizon=(150,)),
    ),
    Claim(
        "contexts: insured at most 1.25 of CGP-UCB",
        "boxes",
        _compared(IN_CONTEXTS[1], IN_CONTEXTS[0], most=1.25, problem=("contexts",)),
    ),
)
KNOWN_FAILURES = (
    Claim(
        "the premium is absolute: at noise 0.02 insured costs more than 1.25 of GP-UCB",
        "failures",
        _above(m.INSURED, m.GP_UCB, 1.25, problem=("d = 1, noise 0.02",)),
    ),
    Claim(
        "lock-outs below the noise are missed: the best arm is never played, T = 300",
        "worst",
        _runs_with(lambda a, b: b["best"] == 0, m.INSURED, 1, problem=NOISY, horizon=(300,)),
    ),
    Claim(
        "a probe pushes GP-UCB into a lock-out it would have missed (more than 10 worse)",
        "worst",
        _runs_with(
            lambda a, b: b["regret"] > a["regret"] + 10, m.INSURED, 1, problem=("random linear",)
        ),
    ),
    Claim(
        "in six dimensions lock-outs are found late: regret above half of GP-UCB's at T = 300",
        "worst",
        _runs_with(
            lambda a, b: a["best"] == 0 and b["regret"] > 0.5 * a["regret"],
            m.INSURED,
            1,
            problem=("random linear, d = 6",),
            horizon=(300,),
        ),
    ),
    Claim(
        "an insurance told 0.3 of B and of sigma costs more than 1.1 of GP-UCB",
        "failures",
        _above(f"{m.INSURED}, narrow tests", m.GP_UCB, 1.1),
    ),
    Claim(
        "index at 0.3 of the theory, T = 2000: more than 1.25",
        "failures",
        _above(f"{m.INSURED}, 0.3", f"{m.GP_UCB}, 0.3", 1.25),
    ),
    Claim(
        "a nugget on a white perturbation costs more than twice GP-UCB",
        "worst",
        _above(m.NUGGET, m.GP_UCB, 2.0, problem=("white",)),
    ),
    Claim(
        "a hidden arm among decoys stays hidden from the nugget in some run",
        "worst",
        _runs_with(lambda a, b: b["best"] == 0, m.NUGGET, 1, problem=("hidden arm",)),
    ),
    Claim(
        "and from insured, whose budget buys a few probes among 100 points, in some run",
        "worst",
        _runs_with(lambda a, b: b["best"] == 0, m.INSURED, 1, problem=("hidden arm",)),
    ),
    Claim(
        "credible alone stays locked out with wrong scales: more than 10 times safe",
        "scales",
        _above(m.CREDIBLE, _FEW, 10.0),
    ),
    Claim(
        "theoretical widths, T = 4000: certified loses to GP-BUCB",
        "delays",
        _above(f"{m.USEFUL}{m.THEORY}", f"{m.GP_BUCB}{m.THEORY}", 1.0, horizon=(4000,)),
    ),
    Claim(
        "the worst free rule costs more than three times BPE",
        "delays",
        _above(m.ORACLE, m.BPE_DELAY, 3.0),
    ),
)
