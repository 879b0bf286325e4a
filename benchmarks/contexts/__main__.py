"""Contexts: CGP-UCB on the sensors of a building and on peptides.

    python -m benchmarks.contexts [--smoke | --full] [--data FOLDER]

The two experiments of Krause and Ong 2011, section 6. Writes report.md, sensors.csv, peptides.csv
and three pictures. With --smoke the data are made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.reports import write_report
from benchmarks.common.tables import Row, write_csv
from benchmarks.contexts.figures import PICTURES, draw
from benchmarks.contexts.peptides import (
    PEPTIDE_SETTINGS,
    PeptideCase,
    peptide_data,
    run_peptides,
)
from benchmarks.contexts.report import peptide_report, sensor_report, verdict_report
from benchmarks.contexts.sensors import (
    MAIN,
    SENSOR_SETTINGS,
    other_sensor_models,
    run_sensor_fit,
    run_sensors,
    sensor_cases,
    sensor_data,
    sensor_fits,
)

# No columns of a table.
_LISTS = ("largest_curve", "mean_curve", "picks", "curve", "gaps")


@dataclass(frozen=True)
class Setting:
    """How large the experiment is.

    Args:
        seeds: Of everything random.
        trials: With each molecule.
        num_examples: That the models of the peptides are fitted to.
        sensors: Keys of `SENSOR_SETTINGS`, the main one first.
        peptides: Keys of `PEPTIDE_SETTINGS`, likewise.
    """

    seeds: int = 10
    trials: int = 50
    num_examples: int = 1000
    sensors: tuple[str, ...] = tuple(SENSOR_SETTINGS)
    peptides: tuple[str, ...] = tuple(PEPTIDE_SETTINGS)


def main(argv: list[str] | None = None) -> None:
    """Runs the experiment and writes its files."""
    options = parse_options(
        "contexts",
        "Contexts: CGP-UCB on sensors and peptides.",
        argv,
        full="50 seeds",
        data=True,
        processes=True,
    )
    torch.set_num_threads(1)
    setting = Setting()
    if options.smoke:
        setting = Setting(2, trials=4, num_examples=40, sensors=(MAIN,), peptides=(MAIN,))
    elif options.full:
        setting = Setting(seeds=50)
    # Both before anything takes long: a folder may be missing.
    data = sensor_data(options.data, options.smoke)
    affinities = peptide_data(options.data, options.smoke)
    seeds = range(options.seed, options.seed + setting.seeds)

    fits = sensor_fits(data, setting.sensors)
    fitted = in_processes(run_sensor_fit, fits, options.processes, "models of the sensors")
    models = {fit.name: model for fit, model in zip(fits, fitted, strict=True)}
    models |= other_sensor_models(models[fits[0].name], data)
    sensor_runs = sensor_cases(models, data, seeds, setting.sensors)
    sensor_rows = in_processes(run_sensors, sensor_runs, options.processes, "sensors")
    cases = [
        PeptideCase(affinities, seed, setting.num_examples, setting.trials, setting.peptides)
        for seed in seeds
    ]
    of_seeds = in_processes(run_peptides, cases, options.processes, "peptides")
    peptide_rows = [row for rows in of_seeds for row in rows]

    draw(sensor_rows, data, peptide_rows, affinities, options.output)
    text = (
        "# Contexts: CGP-UCB on sensors and peptides\n\n"
        "The two experiments of Krause and Ong 2011, *Contextual Gaussian Process Bandit "
        "Optimization*, section 6.\n\n"
    )
    if options.smoke:
        text += "**The data are made up.**\n\n"
    text += verdict_report(sensor_rows, peptide_rows)
    text += "\n" + sensor_report(sensor_rows, models, data)
    text += "\n" + peptide_report(peptide_rows, affinities, setting.trials)
    write_report(options, text, f"{setting.seeds} seeds", PICTURES)
    write_csv(options.output / "sensors.csv", _columns(sensor_rows))
    write_csv(options.output / "peptides.csv", _columns(peptide_rows))


def _columns(rows: Sequence[Row]) -> list[Row]:
    return [{key: value for key, value in row.items() if key not in _LISTS} for row in rows]


if __name__ == "__main__":
    main()
