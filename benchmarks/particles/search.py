"""Maxima of the averaged improvement: how many questions of `integrated_ei` miss them.

    python -m benchmarks.particles.search [--smoke] [--processes N]

Studies are played on boxes. The value of a question is compared with the best that 20,000 screened
points and 100 climbs find, and the time of its search with that of the search of 512 points and 4
climbs that was used before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from unittest.mock import patch

import torch
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.repeated_runs import column
from benchmarks.common.reports import write_report
from benchmarks.common.tables import Row, markdown_table
from botorch_ext.search import box as box_search
from botorch_ext.search.ascent import batched_lbfgsb
from botorch_ext.search.box import maximize_on_box
from botorch_ext.search.objectives import Objective
from botorch_ext.search.screening import near_points
from botorch_ext.strategies.adaptive import particle_strategy

_NOISE = 0.05
# A question is missed where the log of its improvement is lower by more.
_MISSED = 1e-6


@dataclass(frozen=True)
class Case:
    """One study.

    Args:
        dim: Of its box.
        kind: "plain", "mixed" (a column of whole numbers, one of codes) or "pending" (four trials
            are out).
        seed: Of everything random.
        num_given: Results that are there at first.
        num_raw: Points that the patient search screens.
    """

    dim: int
    kind: str
    seed: int
    num_given: int
    num_raw: int


def main(argv: list[str] | None = None) -> None:
    """Plays the studies and writes the table."""
    options = parse_options(
        "particles.search", "Missed maxima.", argv, full="eight seeds, not four", processes=True
    )
    small = options.smoke
    dims, num_seeds = ((1, 4), 1) if small else ((1, 2, 4, 6, 10), 8 if options.full else 4)
    # In one dimension a mixed box is a list of points.
    places = [
        (d, kind) for d in dims for kind in ("plain", "mixed", "pending")[:: 2 if d == 1 else 1]
    ]
    cases = [
        Case(dim, kind, options.seed + seed, (10, 20, 30, 45)[seed % 4], 512 if small else 20_000)
        for dim, kind in places
        for seed in range(num_seeds)
    ]
    rows = [row for own in in_processes(play, cases, options.processes, "studies") for row in own]
    table: list[Row] = []
    for dim, kind in places:
        own = partial(column, rows, dim=dim, kind=kind)
        table.append(
            {
                "d": dim,
                "": kind,
                "questions": len(own("behind")),
                "found": _share_found(own("behind")),
                "found before": _share_found(own("behind before")),
                "worst": f"{max(own('behind')):.1e}",
                "worst before": f"{max(own('behind before')):.1e}",
                "ms": f"{1e3 * sum(own('seconds')) / len(own('seconds')):.0f}",
                "ask, times before": f"{sum(own('ask')) / sum(own('ask before')):.2f}",
            }
        )
    text = (
        "# Missed maxima of the averaged improvement\n\n"
        "Questions of `integrated_ei` in studies of 10 to 53 results of random functions. *found*: "
        f"the share whose log improvement is within {_MISSED:g} of the best that is known; "
        "*worst*: the farthest from it; *before*: the same by 512 points, 40 near the best and 4 "
        "climbs; *ms*: of the search; the last column has the time of whole asks.\n\n"
    )
    write_report(options, text + markdown_table(table), f"{num_seeds} seeds")


def play(case: Case) -> list[Row]:
    """The questions of one study that are looked at."""
    box, function = _problem(case)
    generator = torch.Generator().manual_seed(case.seed)
    X = box.sample(case.num_given, case.seed)
    noise = torch.randn(case.num_given, generator=generator, dtype=torch.float64)
    Y = torch.stack([function(x) for x in X]) + _NOISE * noise
    strategy = bx.algorithms.integrated_ei(box, seed=case.seed, initial=(X, Y), num_initial=0)
    rows: list[Row] = []
    for step in range(3 if case.num_raw < 20_000 else 9):
        looked: list[Row] = []
        patient = partial(_compared, case, looked if step % 4 == 0 else None)
        began = time.perf_counter()
        with patch.object(particle_strategy, "maximize_on_box", patient):
            strategy.ask()
        if looked:
            row = looked[-1]
            row["ask"] = time.perf_counter() - began - row.pop("spent on checks")
            row["ask before"] = row["ask"] - row["seconds"] + row["seconds before"]
            rows.append(row)
        if case.kind != "pending" or step >= 4:
            told = strategy.pending[0]
            noise = float(torch.randn((), generator=generator))
            strategy.tell(told, float(function(strategy.history.trials[told].x)) + _NOISE * noise)
    return rows


def _compared(
    case: Case,
    looked: list[Row] | None,
    own: Objective,
    box: bx.Box,
    seed: int,
    num_raw: int,
    num_starts: int,
    extra: Tensor,
    tolerance: float,
    **how: bool,
) -> tuple[Tensor, Tensor]:
    """What the search finds; its row says how far that is from the best that is known."""
    began = time.perf_counter()
    found = maximize_on_box(own, box, seed, num_raw, num_starts, extra, tolerance, **how)
    seconds = time.perf_counter() - began
    if looked is None or box.listed is not None:
        return found
    best = extra[:5]
    near = torch.cat([best, near_points(best, box, 40, seed, (0.02, 0.1))])
    start = time.perf_counter()
    before = maximize_on_box(own, box, seed, 512, 4, near, tolerance)
    seconds_before = time.perf_counter() - start
    around = torch.cat([found[0][None], before[0][None]])
    more = torch.cat([around, near_points(around, box, 300, seed, (0.01, 0.03, 0.1))])
    with patch.object(box_search, "batched_lbfgsb", partial(batched_lbfgsb, race=False)):
        patient = maximize_on_box(own, box, seed + 1, case.num_raw, 100, more, 1e-11, again=True)
    top = max(float(value) for _, value in (found, before, patient))
    looked.append(
        {
            "seed": case.seed,
            "dim": case.dim,
            "kind": case.kind,
            "behind": top - float(found[1]),
            "behind before": top - float(before[1]),
            "seconds": seconds,
            "seconds before": seconds_before,
            "spent on checks": time.perf_counter() - began - seconds,
        }
    )
    return found


def _problem(case: Case) -> tuple[bx.Box, Callable[[Tensor], Tensor]]:
    """A box and a smooth random function of it."""
    d, generator = case.dim, torch.Generator().manual_seed(1000 * case.dim + case.seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    frequencies = normal(200, d) / (0.3 * math.sqrt(d) * (0.5 * normal(d)).exp())
    phases, weights = 2 * math.pi * normal(200), normal(200) / 10
    bounds = torch.stack([torch.zeros(d), torch.ones(d)]).double()
    box = bx.Box(bounds)
    if case.kind == "mixed":
        bounds[1, 0] = 9.0
        if d > 1:
            bounds[1, 1] = 2.0
        box = bx.Box(bounds, integer=[0], categories={1: [0, 1, 2]} if d > 2 else {})

    def function(x: Tensor) -> Tensor:
        return (weights * torch.cos(frequencies @ box.to_unit(x[None])[0] + phases)).sum()

    return box, function


def _share_found(behind: list[float]) -> str:
    return f"{sum(gap <= _MISSED for gap in behind) / len(behind):.0%}"


if __name__ == "__main__":
    main()
