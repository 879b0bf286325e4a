"""Claims about the practical default, fixed before the runs and checked on their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.common.tables import Row
from benchmarks.practice.differences import Pair, estimate, paired
from benchmarks.practice.methods import OURS, REFERENCE
from benchmarks.practice.problems import TUNED
from benchmarks.practice.settings import NOISES, PRIMARY

_LOW, _HIGH = NOISES


@dataclass(frozen=True)
class Claim:
    """A mean difference to the reference that is to be below a bound.

    Args:
        group: Whose mean.
        keep: Which pairs belong to it.
        below: The bound on the mean.
        surely: Whether the mean plus two standard errors is to be below 0 too.
    """

    group: str
    keep: Callable[[Pair], bool]
    below: float
    surely: bool

    def row(self, pairs: Sequence[Pair]) -> Row:
        """What is claimed, what was measured, and whether it holds."""
        kept = [pair for pair in pairs if self.keep(pair)]
        text = f"{self.group}: mean difference below {self.below:g}"
        if self.surely:
            text += ", plus two standard errors below 0"
        if not kept:
            return {"claim": text, "measured": "no runs", "holds": False}
        found = estimate(kept)
        holds = found.mean < self.below
        if self.surely:
            holds = holds and found.mean + 2 * found.error < 0
        measured = f"{found}, {found.problems} problems, {found.runs} runs"
        return {"claim": text, "measured": measured, "holds": holds}


def _is_sequential(pair: Pair) -> bool:
    """Whether it belongs to the primary table."""
    return pair.setting == PRIMARY


def _is_held_out(pair: Pair) -> bool:
    return _is_sequential(pair) and pair.problem not in TUNED


CLAIMS = (
    Claim("0.5 % noise", lambda p: _is_sequential(p) and p.noise == _LOW, -0.2, True),
    Claim("5 % noise", lambda p: _is_sequential(p) and p.noise == _HIGH, 0.0, False),
    Claim("pooled", _is_sequential, -0.15, True),
    Claim(
        "0.5 % noise, problems it was not tuned on",
        lambda p: _is_held_out(p) and p.noise == _LOW,
        -0.2,
        True,
    ),
    Claim(
        "5 % noise, problems it was not tuned on",
        lambda p: _is_held_out(p) and p.noise == _HIGH,
        0.0,
        False,
    ),
    Claim("pooled, problems it was not tuned on", _is_held_out, -0.15, True),
    Claim("four workers", lambda p: p.setting == "4 workers", 0.0, True),
)


def claim_rows(rows: Sequence[Row], kind: str) -> list[Row]:
    """The claims about the regret of what is recommended, of a kind of `final_regret`."""
    pairs = paired(rows, OURS, REFERENCE, kind)
    return [claim.row(pairs) for claim in CLAIMS]
