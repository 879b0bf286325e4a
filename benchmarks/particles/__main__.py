"""Particles of a study against a long run: how far the few trajectories of every ask are behind.

    python -m benchmarks.particles [--smoke] [--processes N]

Studies of `integrated_ei` are played, and at their end the particles are compared with those of a
long run on the same data, and what they predict with what those do.
"""

from __future__ import annotations

from benchmarks.common.command_line import parse_options
from benchmarks.common.processes import in_processes
from benchmarks.common.repeated_runs import column, mean_and_error
from benchmarks.common.reports import write_report
from benchmarks.common.tables import markdown_table
from benchmarks.particles.runs import FUNCTIONS, Case, play


def main(argv: list[str] | None = None) -> None:
    """Plays the studies and writes the report."""
    options = parse_options("particles", "Particles against a long run.", argv, processes=True)
    small = options.smoke
    num_trials, num_seeds, num_long, num_halves = (10, 2, 16, 4) if small else (40, 12, 256, 120)
    functions = list(FUNCTIONS)[: 1 if small else None]
    cases = [
        Case(function, num_trials, options.seed + seed, num_long, num_halves)
        for function in functions
        for seed in range(num_seeds)
    ]
    rows = in_processes(play, cases, options.processes, "particles")
    names = [name for name in rows[0] if name not in ("function", "method", "seed")]
    table = [
        {"": name}
        | {
            function: mean_and_error(column(rows, name, function=function))
            for function in functions
        }
        for name in names
    ]
    text = (
        "# Particles against a long run\n\n"
        f"After {num_trials} evaluations by `integrated_ei`, with noise of a tenth of the standard "
        f"deviation of the function: the 32 particles of the study against {num_long} of a run of "
        f"{num_halves // 2} trajectories each on the same data, started from all of it. "
        "Differences of means in standard deviations of the long run, averaged over lengthscales "
        "with their sign; ratios of standard deviations; of predictions at 256 points the mean "
        "absolute difference, in predicted standard deviations, and the ratio of those. "
        "Mean ± standard error of "
        f"{num_seeds} studies.\n\n"
    )
    write_report(options, text + markdown_table(table), f"{num_seeds} seeds")


if __name__ == "__main__":
    main()
