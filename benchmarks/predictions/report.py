"""The tables: calibration, expected gains, when to stop, importance."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from benchmarks.common.repeated_runs import standard_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.predictions.runs import BANDS, BATCH

_LOOKS = (20, 40, 60)
# A study stops when the next gain is expected to be below this share of the noise, or, without
# noise, of the range of the values seen.
_OF_NOISE, _OF_RANGE = 0.1, 0.01
# What may be lost by a stop that was right, in ranges of the problem.
_LOSS = 0.01
_RUN = ("problem", "noise", "seed")


def report(studies: Sequence[Row], importance: Sequence[Row]) -> str:
    """All tables as Markdown."""
    noises = sorted({row["noise"] for row in studies})
    return "\n".join(
        [
            "# Predictions, expected gains and importance\n",
            "`integrated_ei` in batches of four on test functions, noise in shares of the range "
            "of a function. Means ± standard errors over runs, each of one problem, noise and "
            "seed.\n",
            *_calibration(studies, noises),
            *_gains(studies, noises),
            *_stops(studies, noises),
            *_recommendations(studies),
            *_importance(importance),
        ]
    )


# --- calibration ----------------------------------------------------------------------------------


def _calibration(rows: Sequence[Row], noises: Sequence[float]) -> Iterable[str]:
    yield (
        "## Calibration\n\nThe share of values of f, and of observations, inside the central 50 % "
        "and 95 % bands of `predict`. *Space*: 256 Sobol points of the box, after so many trials. "
        "*Asked*: the four points that are asked next, of all batches from there to the next row "
        "(after 60 trials: of one batch). **Bold**: more than .1 from nominal.\n"
    )
    table: list[Row] = []
    furthest: dict[float, float] = {}
    for noise in noises:
        for look in _LOOKS:
            here = [row for row in rows if row["noise"] == noise and row["trials"] == look]
            until = [row for row in rows if row["noise"] == noise and look <= row["trials"]]
            until = [row for row in until if row["trials"] < look + 20]
            if here:
                for where, kept in (("space", here), ("asked", until)):
                    for band, gap in _gaps(kept, where).items():
                        furthest[band] = max(furthest.get(band, gap), gap, key=abs)
                table.append(
                    {"noise": noise, "after trials": look}
                    | _shares(here, "space")
                    | _shares(until, "asked")
                )
    yield markdown_table(table)
    said = (f"{100 * band:g} % bands {gap:+.2f}" for band, gap in furthest.items())
    yield f"The share that is furthest from nominal, of all rows: {', '.join(said)}.\n"
    yield "Each problem, at the points of the space, all looks at 20, 40 and 60 together:\n"
    table = []
    for problem in _in_order(rows, "problem"):
        for noise in noises:
            kept = [row for row in rows if row["problem"] == problem and row["noise"] == noise]
            kept = [row for row in kept if row["trials"] in _LOOKS]
            if kept:
                table.append({"problem": problem, "noise": noise} | _shares(kept, "space"))
    yield markdown_table(table)


def _shares(rows: Sequence[Row], where: str) -> Row:
    cells = {}
    for what in ("f", "y"):
        for band in BANDS:
            shares = _inside(rows, where, what, band)
            mean = statistics.fmean(shares)
            cell = f"{mean:.2f} ± {standard_error(shares):.2f}"
            label = f"{where}: {'f' if what == 'f' else 'observation'} in {100 * band:g} %"
            cells[label] = f"**{cell}**" if abs(mean - band) > 0.1 else cell
    return cells


def _gaps(rows: Sequence[Row], where: str) -> dict[float, float]:
    """For each band the share less the nominal one that is furthest from 0."""
    return {
        band: max(
            (statistics.fmean(_inside(rows, where, what, band)) - band for what in ("f", "y")),
            key=abs,
        )
        for band in BANDS
    }


def _inside(rows: Sequence[Row], where: str, what: str, band: float) -> list[float]:
    """The share inside a band in each run."""
    column = f"{where} {what} {band:g}"
    return _of_runs(rows, lambda run: statistics.fmean(row[column] for row in run))


# --- gains and stops ------------------------------------------------------------------------------


def _gains(rows: Sequence[Row], noises: Sequence[float]) -> Iterable[str]:
    yield (
        "## Expected gain of the next batch of four\n\nIn thousandths of the range of the problem: "
        "what `expected_gain` said, and by how much the best value of f among the points that were "
        "tried grew by that batch.\n"
    )
    table = []
    for problem in [*_in_order(rows, "problem"), "all"]:
        for noise in noises:
            row: Row = {"problem": problem, "noise": noise}
            for first, last in ((20, 36), (40, 60)):
                kept = [r for r in rows if r["noise"] == noise and first <= r["trials"] <= last]
                kept = [r for r in kept if problem in ("all", r["problem"])]
                if kept:
                    for name, label in (("gain", "expected"), ("gained", "gained")):
                        means = _of_runs(
                            kept, lambda run, n=name: 1e3 * statistics.fmean(r[n] for r in run)
                        )
                        cell = f"{statistics.fmean(means):.1f} ± {standard_error(means):.1f}"
                        row[f"{label}, trials {first} to {last}"] = cell
            table.append(row)
    yield markdown_table(_rectangular(table))


def _stops(rows: Sequence[Row], noises: Sequence[float]) -> Iterable[str]:
    yield (
        "## Stopping\n\nStop before the first batch from 20 trials on whose expected gain is below "
        f"{_OF_NOISE:g} of the noise that the model estimates; without noise below {_OF_RANGE:g} "
        "of the range of the values seen. Regret of the recommended point, in thousandths of the "
        "range of the problem, at the stop and after 60 trials. A stop was *right* if it lost less "
        f"than {_LOSS:g} of the range against going on.\n"
    )
    table = []
    for noise in noises:
        for problem in [*_in_order(rows, "problem"), "all"]:
            kept = [row for row in rows if row["noise"] == noise]
            kept = [row for row in kept if problem in ("all", row["problem"])]
            runs = _runs(kept)
            if not runs:
                continue
            last = max(row["trials"] for row in kept)
            stopped = [(_stop_of(run), run[-1]) for run in runs]
            early = [(stop, end) for stop, end in stopped if stop is not None]
            row = {"noise": noise, "problem": problem, "runs": len(runs), "stopped": len(early)}
            names = ("mean trials at the stop", "regret there", f"after {last:g}", "right")
            cells: list[str] = ["", "", "", ""]
            if early:
                at, then = ([1e3 * row["regret"] for row in pair] for pair in zip(*early))  # noqa: B905
                lost = [a - b for a, b in zip(at, then, strict=True)]
                cells = [
                    f"{statistics.fmean(stop['trials'] for stop, _ in early):.0f}",
                    f"{statistics.fmean(at):.1f} ± {standard_error(at):.1f}",
                    f"{statistics.fmean(then):.1f} ± {standard_error(then):.1f}",
                    f"{sum(loss < 1e3 * _LOSS for loss in lost)} of {len(lost)}",
                ]
            table.append(row | dict(zip(names, cells, strict=True)))
    yield markdown_table(table)


def _stop_of(run: Sequence[Row]) -> Row | None:
    """The first look before the last at which the rule stops."""
    for row in run[:-1]:
        most = _OF_NOISE * row["noise_std"] if row["noise"] else _OF_RANGE * row["seen"]
        if row["gain"] < most:
            return row
    return None


# --- recommendations ------------------------------------------------------------------------------


def _recommendations(rows: Sequence[Row]) -> Iterable[str]:
    yield (
        "## How sure the recommended point is the best\n\nLooks by the probability that "
        "`recommended` gave that no evaluated point is better, and in which share of them none "
        "was.\n"
    )
    table = []
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.01)):
        kept = [row for row in rows if low <= row["probability"] < high]
        if kept:
            given = _of_runs(kept, lambda run: statistics.fmean(r["probability"] for r in run))
            were = _of_runs(kept, lambda run: statistics.fmean(r["is_best"] for r in run))
            table.append(
                {
                    "probability": f"{low:g} to {min(high, 1):g}",
                    "looks": len(kept),
                    "mean probability": f"{statistics.fmean(given):.2f}",
                    "none was better": f"{statistics.fmean(were):.2f} ± {standard_error(were):.2f}",
                }
            )
    yield markdown_table(table)


# --- importance -----------------------------------------------------------------------------------


def _importance(rows: Sequence[Row]) -> Iterable[str]:
    yield (
        "## Importance after 60 trials\n\nSobol indices of the posterior mean against those of the "
        "function, without noise: the points asked by the method, which looks for the maximum, and "
        f"as many Sobol points. Studies in batches of {BATCH}.\n"
    )
    summary = []
    for function in _in_order(rows, "function"):
        for points in _in_order(rows, "points"):
            kept = [r for r in rows if r["function"] == function and r["points"] == points]
            errors, found = [], []
            for _, run in groupby(kept, key=lambda row: row["seed"]):
                own = list(run)
                errors.append(max(abs(r["total"] - r["true total"]) for r in own))
                matter = {r["parameter"] for r in own if r["true total"] > 0.05}
                top = sorted(own, key=lambda r: -r["total"])[: len(matter)]
                found.append(f"{len(matter & {r['parameter'] for r in top})} of {len(matter)}")
            summary.append(
                {
                    "function": function,
                    "points": points,
                    "largest error of a total index": ", ".join(f"{e:.2f}" for e in errors),
                    "that matter (true total above .05) on top": ", ".join(found),
                }
            )
    yield markdown_table(summary)
    table = []
    for function in _in_order(rows, "function"):
        of_function = [row for row in rows if row["function"] == function]
        for parameter in _in_order(of_function, "parameter"):
            own = [row for row in of_function if row["parameter"] == parameter]
            if own[0]["true total"] < 1e-3 and all(row["total"] < 0.03 for row in own):
                continue
            cells: Row = {"function": function, "parameter": parameter}
            for kind in ("first", "total"):
                cells[f"true {kind}"] = f"{own[0][f'true {kind}']:.2f}"
                for points in _in_order(own, "points"):
                    values = [row[kind] for row in own if row["points"] == points]
                    cells[f"{kind}, {points}"] = ", ".join(f"{value:.2f}" for value in values)
            table.append(cells)
    yield (
        "Each seed; parameters that do not matter and are not said to (total below .03) are left "
        "out.\n"
    )
    yield markdown_table(table)


# --- rows -----------------------------------------------------------------------------------------


def _runs(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows of each run, in order of trials."""

    def key(row: Row) -> tuple:
        return tuple(row[name] for name in _RUN)

    ordered = sorted(rows, key=lambda row: (key(row), row["trials"]))
    return [list(run) for _, run in groupby(ordered, key=key)]


def _of_runs(rows: Sequence[Row], statistic: Callable[[list[Row]], float]) -> list[float]:
    return [statistic(run) for run in _runs(rows)]


def _in_order(rows: Sequence[Row], column: str) -> list:
    return list(dict.fromkeys(row[column] for row in rows))


def _rectangular(rows: Sequence[Row]) -> list[Row]:
    """Rows with the columns of all."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name, "") for name in names} for row in rows]
