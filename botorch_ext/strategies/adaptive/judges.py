"""Judges, which decide what an observation says about the models and which of them may play."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains.ranks import first_highest
from botorch_ext.models.kernel_variants import shrunk_lengthscale
from botorch_ext.state import State
from botorch_ext.strategies.adaptive.bounds import Models
from botorch_ext.strategies.adaptive.prediction_tests import RunningTests
from botorch_ext.strategies.events import Trial
from botorch_ext.strategies.replicas import NotReplicatedError
from botorch_ext.widths import check_delta, require
from botorch_ext.widths.told_data import ToldData


class Standing(Protocol):
    """The part of a `BoundsStrategy` that a judge may read."""

    alive: list[int]
    """The positions among the candidates of the models that are not eliminated."""
    names: list[str]
    """The names of all models so far."""

    @property
    def num_known(self) -> Sequence[int]:
        """The number of models when each trial was asked."""
        ...

    @property
    def models(self) -> Models:
        """The posteriors of the models in ``alive``, in its order."""
        ...

    @property
    def num_data(self) -> int:
        """The number of observations so far, initial ones included."""
        ...

    @property
    def next_step(self) -> int:
        """t of the next ask: one more than the number of steps so far, initial ones included."""
        ...

    def times_played(self) -> list[int]:
        """How often each model was played."""
        ...

    def relative_noise_of(self, id: int) -> float:
        """The noise variance of the result of a trial in units of that of one observation."""
        ...

    def told_data(self) -> list[ToldData]:
        """The told data as each model sees them, in the order of ``alive``."""
        ...

    def evidence(self) -> Tensor:
        """The log marginal likelihoods of the told data, ``m``, in the order of ``alive``; of R
        runs that are moved forward together ``R x m``."""
        ...


class Judge(State):
    """Decides which models may play and which ones an observation refutes.

    This class lets all models play and refutes none; subclasses override its methods. A method is
    given ``standing``, a `BoundsStrategy`, of which it may read ``alive`` (the positions of the m
    models that are not eliminated), ``names``, ``num_known``, `models`, `num_data`, `next_step`,
    `times_played`, `told_data` and `evidence`.
    """

    #: Whether ``info`` of a trial records the prediction of its model from told data alone.
    needs_predictions: bool = False
    #: Whether `contenders` or `weights` is overridden.
    advises: bool = False
    #: The standard deviation of the noise that the judge assumes, or None.
    noise_std: float | None = None

    def contenders(self, standing: Standing) -> list[int] | Tensor | None:
        """The models that may play.

        Args:
            standing: The state of the strategy.

        Returns:
            Positions in ``standing.alive``, or a mask of shape ``(m,)``; None for all models.
        """
        return None

    def weights(self, standing: Standing) -> Tensor | None:
        """The weights for an average of the upper bounds.

        Args:
            standing: The state of the strategy.

        Returns:
            The ``m`` weights, in the order of ``standing.alive``; None to play the highest bound.
        """
        return None

    def learn(self, trial: Trial, value: float, standing: Standing) -> list[int]:
        """Learns from the observation of a trial that a model chose.

        Args:
            trial: The trial, with the prediction of its model in ``info``.
            value: The observation.
            standing: The state of the strategy, to whose models the observation was added.

        Returns:
            The positions among the candidates of the models that are refuted.
        """
        return []

    def tests_of_runs(self) -> RunningTests | None:
        """The tests that eliminate models in R runs which are moved forward together; None if there
        are none. Contenders and weights are then asked for with evidence of shape ``R x m``.

        Raises:
            NotReplicatedError: If the judge does not decide for several runs.
        """
        if type(self) not in (Judge, Likeliest, Credible, Averaging, Schedule):
            raise NotReplicatedError(f"a {type(self).__name__} judge")
        return None

    def complete(self, report: dict[str, Any]) -> dict[str, Any]:
        """The report of the strategy with the entries that a judge adds.

        Args:
            report: What `BoundsStrategy.report` returns, which may be changed; ``models`` has a
                dict for each candidate.

        Returns:
            A dict of plain numbers, strings, lists and dicts.
        """
        return report


class Likeliest(Judge):
    """A judge that lets the model with the highest marginal likelihood play, or the first of
    several such models."""

    advises = True

    def contenders(self, standing: Standing) -> list[int] | Tensor:
        evidence = standing.evidence()
        best = first_highest(evidence)
        if evidence.ndim == 1:
            return [int(best)]
        return torch.zeros_like(evidence, dtype=torch.bool).scatter(-1, best, True)


class Credible(Judge):
    """A judge that lets the models play whose log marginal likelihood is within c of the largest.

    It refutes no model: a model that is not credible now may become credible again. It adds
    ``credibility``, which is c, to the report, and to the dict of a model
    ``log_evidence_below_best``, by how much its log marginal likelihood is below the largest, and
    ``credible``, whether it may play.

    Args:
        delta: Sets c = ln(M / delta) with the number M of models at the time.
        credibility: c itself. None: c is set by ``delta``. 0: only the likeliest model plays.

    Raises:
        ValueError: If ``delta`` is not in (0, 1), or if ``credibility`` is negative or not finite.
    """

    advises = True

    def __init__(self, delta: float = 0.1, credibility: float | None = None) -> None:
        self.delta = check_delta(delta)
        if credibility is not None:
            credibility = one_number(credibility, "credibility")
            require(0 <= credibility < math.inf, "credibility", credibility, ">= 0 and finite")
        self.credibility = credibility

    def reach(self, num_models: int) -> float:
        """c, for this number of models."""
        return math.log(num_models / self.delta) if self.credibility is None else self.credibility

    def contenders(self, standing: Standing) -> Tensor | None:
        if len(standing.alive) == 1:
            return None
        evidence = finite_evidence(standing)
        # A mask, so that on a finite set the host does not wait.
        best = evidence.amax(dim=-1, keepdim=True)
        return best - evidence <= self.reach(len(standing.names))

    def complete(self, report: dict[str, Any]) -> dict[str, Any]:
        lines = report["models"]
        best, c = max(line["log_marginal_likelihood"] for line in lines), self.reach(len(lines))
        for line in lines:
            below = best - line["log_marginal_likelihood"]
            line |= {"log_evidence_below_best": below, "credible": below <= c}
        return report | {"credibility": c}


class Averaging(Judge):
    """A judge that weighs models by P(model | data), with a uniform prior."""

    advises = True

    def weights(self, standing: Standing) -> Tensor:
        return finite_evidence(standing).softmax(dim=-1)


class Schedule(Judge):
    """A judge that shrinks the lengthscale as lengthscale_0 / g(t), whatever is observed."""

    advises = True

    def __init__(self, lengthscale_0: float, growth: Callable[[int], float]) -> None:
        self.lengthscale_0, self.growth = lengthscale_0, growth
        shrunk_lengthscale(lengthscale_0, growth, 1)

    def contenders(self, standing: Standing) -> list[int]:
        target = shrunk_lengthscale(self.lengthscale_0, self.growth, standing.next_step)
        return [int((require_lengthscales(standing.models) - target).abs().argmin())]


def finite_evidence(standing: Standing) -> Tensor:
    """The log marginal likelihoods; the lowest finite number where the computation overflows."""
    evidence = standing.evidence()
    return evidence.clamp_min(torch.finfo(evidence.dtype).min)


def require_lengthscales(models: Models) -> Tensor:
    """The lengthscales, on the CPU, of models that differ in one lengthscale; raises a ValueError
    for others."""
    scales = getattr(models, "lengthscales_of", None)
    if not isinstance(scales, Tensor):
        raise ValueError(
            "models must be told apart by one lengthscale each, such as "
            "CandidateModels.lengthscales or CandidateModels.growing make them"
        )
    return scales
