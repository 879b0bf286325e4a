"""Best known values of the real tasks, by random search and then local search.

    python -m benchmarks.practice.best_known [--smoke]

Writes best_known.json, beside this file unless it is a smoke run: the largest value found, and the
range of the values of the Sobol points that the search begins with.
"""

from __future__ import annotations

import json

import torch
from torch import Tensor
from tqdm import tqdm

from benchmarks.common.command_line import parse_options
from benchmarks.practice.problems import BEST_KNOWN, Problem, problems, sobol

# Standard deviations of the local steps, in sides of the box.
_STEPS = (0.1, 0.05, 0.02, 0.01)


def main(argv: list[str] | None = None) -> None:
    """Searches every real task and writes what was found."""
    options = parse_options("practice", "Best known values of the real tasks.", argv)
    torch.set_num_threads(1)
    num_sobol, num_starts, num_local = (16, 1, 1) if options.smoke else (2048, 5, 30)
    found = {
        name: _search(problem, num_sobol, num_starts, num_local, options.seed)
        for name, problem in problems().items()
        if problem.optimal_value is None
    }
    text = json.dumps(found, indent=2) + "\n"
    print(text)
    path = options.output / BEST_KNOWN.name if options.smoke else BEST_KNOWN
    path.write_text(text)


def _search(
    problem: Problem, num_sobol: int, num_starts: int, num_local: int, seed: int
) -> dict[str, float]:
    X = sobol(problem, num_sobol)
    values = torch.cat([problem.function(x) for x in tqdm(X.split(1), desc=problem.name)])
    generator = torch.Generator().manual_seed(seed)
    best = -torch.inf
    for row in values.topk(num_starts).indices.tolist():
        x, value = X[row], float(values[row])
        for step in _STEPS:
            for _ in range(num_local):
                other = _near(x, problem.box, step, generator)
                other_value = float(problem.function(other.unsqueeze(0)))
                if other_value >= value:
                    x, value = other, other_value
        best = max(best, value)
    least, largest = float(values.min()), float(values.max())
    return {"least": least, "width": largest - least, "best": best}


def _near(x: Tensor, box: Tensor, step: float, generator: torch.Generator) -> Tensor:
    shift = step * torch.randn(x.shape, generator=generator, dtype=x.dtype)
    return (x + shift * (box[1] - box[0])).clamp(box[0], box[1])


if __name__ == "__main__":
    main()
