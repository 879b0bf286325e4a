"""Optimism over the models whose marginal likelihood is nearly the largest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.judges import Credible
from botorch_ext.widths import Width


class CredibleBounds(BoundsStrategy):
    """Asks x_t, u_t in argmax over points and credible models of mean + w std.

    A model is credible if the log marginal likelihood of the told data is within c of the largest.
    No model is dropped; a model may become credible again. ``info`` of a trial is that of
    `BoundsStrategy`.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        models: The candidate models. On a finite set the first of several equally good points, and
            of equally good models, is chosen.
        width: The confidence width, or a number, for all models; or a sequence with one for each.
        delta: Sets c = ln(M / delta) with the number M of models at the time.
        credibility: c itself, at least 0. None: c is set by ``delta``.
        options: The keyword arguments of `BoundsStrategy`.

    Raises:
        ValueError: If `BoundsStrategy` raises it, or if ``delta`` or ``credibility`` is impossible.
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
        """A summary of the study, as plain numbers, strings, lists and dicts.

        Returns:
            A dict with the keys of `BoundsStrategy.report` and ``credibility``, which is c. The
            dict of a model also has ``log_evidence_below_best``, by how much its log marginal
            likelihood is below the largest, and ``credible``, whether it may play.
        """
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
