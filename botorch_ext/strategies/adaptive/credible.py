"""Credible models: optimism over those whose evidence is nearly the largest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.widths import Width


class CredibleBounds(BoundsStrategy):
    """x_t, u_t in argmax over points and credible models of mean + w std: those whose log evidence,
    of the told data alone, is within c of the largest.

    No model is dropped; one that is not credible now may be again.

    Args:
        domain: A `Box` or a `FiniteSet`.
        models: The candidates. On a finite set ties go to the first point and the first model.
        width: The confidence width, or a number, for all models, or one for each.
        delta: Gives c = ln(M / delta) for M models, those that have joined by then.
        credibility: c itself, in place of that.
        options: See `BoundsStrategy`.

    Raises:
        ValueError: What `BoundsStrategy` and `Credible` raise.
    """

    judge: Credible

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float | Sequence[Width | float],
        *,
        delta: float = 0.1,
        credibility: float | None = None,
        **options: Unpack[BoundsOptions],
    ) -> None:
        super().__init__(domain, models, width, judge=Credible(delta, credibility), **options)

    def report(self) -> dict[str, Any]:
        summary = super().report()
        lines = summary["models"]
        best, c = (
            max(line["log_marginal_likelihood"] for line in lines),
            self.judge.reach(len(lines)),
        )
        for line in lines:
            below = best - line["log_marginal_likelihood"]
            line |= {"log_evidence_below_best": below, "credible": below <= c}
        return summary | {"credibility": c}
