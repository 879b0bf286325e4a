"""Bounds of the insured methods beside those of the plain ones: at which horizon they say a thing.

    python -m benchmarks.insured.bounds [--smoke]

Each bound on the cumulative regret divided by 2 B T, which every method can promise: a bound of 1
or more is vacuous. RBF kernel of lengthscale 0.3 sqrt(d) on 500 Sobol points of [0, 1]^d, B = 2,
sigma = 0.1, lambda = sigma^2, delta = 0.1, as in the tables of regret. Prints the table and writes
bounds.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import botorch_ext as bx
from benchmarks.common.command_line import parse_options
from benchmarks.common.kernels import rbf
from benchmarks.common.reports import write_report
from benchmarks.common.tables import Row, markdown_table
from benchmarks.misspecification.runs import NOISE_STD, RKHS_BOUND
from botorch_ext import analysis

_POINTS = 500
_TOLD = (RKHS_BOUND, NOISE_STD, NOISE_STD**2)
# From the horizon and gamma_T.
_BOUNDS: dict[str, Callable[[int, float], float]] = {
    "GP-UCB": lambda T, gain: analysis.ec_gp_ucb_bound(T, gain, *_TOLD),
    "insured_ucb": lambda T, gain: analysis.insured_ucb_bound(T, gain, *_TOLD),
    "BPE": lambda T, gain: analysis.bpe_bound(T, gain, *_TOLD, _POINTS),
    "certified_bucb": lambda T, gain: analysis.certified_bucb_bound(T, gain, *_TOLD, _POINTS),
    "certified_bucb, u = 100": lambda T, gain: analysis.certified_bucb_bound(
        T, gain, *_TOLD, _POINTS, delay=100
    ),
    "EC-GP-UCB, eps = 0.1": lambda T, gain: analysis.ec_gp_ucb_bound(
        T, gain, *_TOLD, misspecification=0.1
    ),
}


def main(argv: list[str] | None = None) -> None:
    """Prints and writes the table."""
    options = parse_options("insured.bounds", "Which bounds are vacuous.", argv)
    rows: list[Row] = []
    for dim in (1,) if options.smoke else (1, 2, 4):
        points = bx.Box([[0.0] * dim, [1.0] * dim]).sample(_POINTS, 0)
        gram = rbf(0.3 * math.sqrt(dim))(points).to_dense()
        for power in (3, 4) if options.smoke else range(3, 10):
            T = 10**power
            gain = analysis.information_gain_bound(gram, T, NOISE_STD**2)
            row: Row = {"d": dim, "T": f"10^{power}", "gamma_T at most": gain}
            shares = {
                name: bound(T, gain) / (2 * RKHS_BOUND * T) for name, bound in _BOUNDS.items()
            }
            rows.append(row | shares)
    write_report(options, f"# Bounds divided by 2 B T\n\n{markdown_table(rows)}", "delta = 0.1")


if __name__ == "__main__":
    main()
