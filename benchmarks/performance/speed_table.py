"""Speed table: its rows and its files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence

import torch
from botorch.exceptions.warnings import InputDataWarning
from tqdm import tqdm

from benchmarks.common.command_line import Options, parse_options
from benchmarks.common.machine import describe_machine
from benchmarks.common.tables import Row, markdown_table, write_csv


def ratio_row(
    what: str,
    against: str,
    ours: float,
    reference: float,
    *,
    unit: str = "s",
    at_most: float | None = None,
    at_least: float | None = None,
) -> Row:
    """A measurement beside its reference.

    Args:
        what: What was measured.
        against: What it is compared with.
        ours: The measurement.
        reference: The other one.
        unit: Of both.
        at_most: The bound on ours/reference.
        at_least: The bound on reference/ours, which is then the ratio that is shown.

    Returns:
        The row.
    """
    ratio, required, holds = ours / reference, "", ""
    if at_most is not None:
        required, holds = f"ours/reference <= {at_most:g}", ratio <= at_most
    if at_least is not None:
        ratio = reference / ours
        required, holds = f"reference/ours >= {at_least:g}", ratio >= at_least
    return {
        "what": what,
        "against": against,
        "ours": ours,
        "reference": reference,
        "unit": unit,
        "ratio": ratio,
        "required": required,
        "holds": holds,
    }


def fact_row(what: str, against: str, ours: float, required: str, holds: bool | str) -> Row:
    """A measurement that stands alone."""
    row = {"what": what, "against": against, "ours": ours, "reference": "", "unit": "", "ratio": ""}
    return row | {"required": required, "holds": holds}


def _readable(row: Row) -> Row:
    """The row as it is shown: times with their units."""

    def with_unit(value: float | str) -> float | str:
        if row["unit"] != "s" or isinstance(value, str):
            return value
        for size, unit in ((1.0, "s"), (1e-3, "ms")):
            if value >= size:
                return f"{value / size:.3g} {unit}"
        return f"{value / 1e-6:.3g} us"

    shown = {name: value for name, value in row.items() if name != "unit"}
    return shown | {name: with_unit(row[name]) for name in ("ours", "reference")}


def measure(
    name: str,
    title: str,
    parts: Sequence[Callable[[Options], list[Row]]],
    argv: Sequence[str] | None,
    *,
    device: bool = True,
) -> None:
    """Measures all parts with one thread, prints the table and writes ``name``.md and .csv
    (``name``-cuda on a GPU).

    Args:
        name: The module under ``benchmarks.performance``.
        title: Of the table.
        parts: What to measure.
        argv: The command line; None takes that of the process.
        device: Whether there is ``--device``.
    """
    options = parse_options("performance", f"{title}.", argv, device=device)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", category=InputDataWarning)
    load = os.getloadavg()[0]
    rows: list[Row] = []
    for part in tqdm(parts, unit="part"):
        rows += part(options)
    if options.smoke:  # what is required is required of the real sizes
        rows = [row | {"required": "", "holds": ""} for row in rows]
    text = (
        f"# {title}\n\n"
        f"`python -m benchmarks.performance.{name}`{' (smoke)' if options.smoke else ''} on "
        f"{describe_machine(options.device)}; float64; {load:.1f} processes were running or "
        "waiting for a core when it began. Each reference is measured in the same run; times are "
        "medians. The ratio is ours/reference unless the requirement says otherwise.\n\n"
        + markdown_table([_readable(row) for row in rows])
    )
    print(text)
    if options.device.type != "cpu":
        name = f"{name}-{options.device.type}"
    (options.output / f"{name}.md").write_text(text)
    write_csv(options.output / f"{name}.csv", rows)
