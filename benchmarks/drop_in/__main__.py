"""The drop-in acquisition function, with four evaluations under way at once.

    python -m benchmarks.drop_in [--smoke | --full]

Each decision fits a SingleTaskGP and chooses four points, which are evaluated together. Methods:

- *EnlargedUpperConfidenceBound*: points already chosen count as pending.
- *qLogExpectedImprovement* and *qLogNoisyExpectedImprovement*: BoTorch's Monte Carlo improvements
  of a batch, the usual choice in a BoTorch loop.
- *qUpperConfidenceBound*: BoTorch's Monte Carlo bound of a batch.
- *UpperConfidenceBound*: BoTorch's, which takes no pending points: four maximisations in a row.
- *Sobol*: quasi-random points.

Every bound has width 2 (beta = 4). Writes report.md and runs.csv.xz.
"""

from __future__ import annotations

from benchmarks.common.command_line import parse_options
from benchmarks.common.machine import describe_machine
from benchmarks.common.processes import in_processes
from benchmarks.common.tables import write_csv
from benchmarks.drop_in.report import report
from benchmarks.drop_in.runs import METHODS, Case, play, problems


def main(argv: list[str] | None = None) -> None:
    """Runs the comparison and writes its files."""
    options = parse_options(
        "drop_in",
        "Four points at a time, with and without counting what is pending.",
        argv,
        full="20 seeds, 20 batches",
        processes=True,
    )
    num_seeds, num_batches, restarts, raw = 6, 10, 4, 128
    if options.smoke:
        num_seeds, num_batches, restarts, raw = 2, 1, 2, 16
    elif options.full:
        num_seeds, num_batches, restarts, raw = 20, 20, 8, 256
    cases = [
        Case(problem, method, options.seed + i, 8, num_batches, restarts, raw)
        for problem in problems()
        for i in range(num_seeds)
        for method in METHODS
    ]
    processes = 1 if options.smoke else options.processes
    rows = in_processes(play, cases, processes, "drop-in")
    text = report(rows, cases[0], num_seeds)
    text += f"\n`python -m benchmarks.drop_in` on {describe_machine()}.\n"
    print(text)
    (options.output / "report.md").write_text(text)
    write_csv(options.output / "runs.csv.xz", rows)


if __name__ == "__main__":
    main()
