"""What an ask costs in Ax: strategies of the library beside Ax's own.

    python -m benchmarks.in_ax [--smoke]

CPU seconds for a trial, asked four at a time on Hartmann6, without the first points; and for
the imports in a new process. Writes report.md.
"""

from __future__ import annotations

import logging
import os
import statistics
import subprocess
import sys
import time
import warnings

import torch
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig
from botorch.test_functions import Hartmann

from benchmarks.common.command_line import parse_options
from benchmarks.common.machine import describe_machine
from benchmarks.common.tables import markdown_table
from botorch_ext.integrations.ax import generation_strategy

_FIRST, _AT_ONCE = 8, 4
_IMPORTS = """
import time
start = time.process_time()
import ax.api.client
middle = time.process_time()
import botorch_ext.integrations.ax
print(middle - start, time.process_time() - middle)
"""


def cost(name: str, num_trials: int) -> tuple[float, float]:
    """CPU seconds for a trial: of all, and of the last ask.

    Args:
        name: Of an algorithm; "Ax" is Ax's default.
        num_trials: More than the first points.
    """
    client = Client(random_seed=0)
    names = [f"x{i}" for i in range(6)]
    client.configure_experiment(
        [RangeParameterConfig(name=each, parameter_type="float", bounds=(0, 1)) for each in names]
    )
    client.configure_optimization(objective="-cost")
    if name == "Ax":
        client.configure_generation_strategy(
            initialization_budget=_FIRST, initialize_with_center=False
        )
    else:
        client.set_generation_strategy(generation_strategy(name, num_initial=_FIRST))
    function, seconds = Hartmann(), []
    while len(client._experiment.trials) < num_trials:
        start = time.process_time()
        trials = client.get_next_trials(_AT_ONCE)
        if min(trials) >= _FIRST:
            seconds.append((time.process_time() - start) / len(trials))
        for index, point in trials.items():
            x = torch.tensor([point[each] for each in names], dtype=torch.float64)
            client.complete_trial(index, {"cost": float(function(x.unsqueeze(0)))})
    return statistics.mean(seconds), seconds[-1]


def main(argv: list[str] | None = None) -> None:
    """Measures, and writes a table."""
    options = parse_options("in_ax", "What an ask costs in Ax.", argv)
    load = os.getloadavg()[0]
    num_trials = 12 if options.smoke else 40
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    rows = []
    for name in ("Ax", "gp_bucb", "integrated_ei"):
        each, last = cost(name, num_trials)
        numbers = {"CPU s a trial": each, f"at trial {num_trials}": last}
        rows.append({"strategy": name} | numbers)
    command = [sys.executable, "-W", "ignore", "-c", _IMPORTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs, ours = map(float, done.stdout.split()[-2:])
    text = (
        "# What an ask costs in Ax\n\n"
        "Hartmann6, four trials at a time, the first eight left out.\n\n"
        f"{markdown_table(rows)}\nA new process imports Ax in {theirs:.1f} s of CPU time, and "
        f"then `botorch_ext.integrations.ax` in {ours:.1f} s.\n\n"
        f"`python -m benchmarks.in_ax` on {describe_machine()}; {load:.1f} processes were running "
        "or waiting for a core when it began.\n"
    )
    print(text)
    (options.output / "report.md").write_text(text)


if __name__ == "__main__":
    main()
