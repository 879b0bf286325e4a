"""Judges: what an observation teaches about the models, and which of them may play."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.models.kernel_variants import shrunk_lengthscale
from botorch_ext.state import State
from botorch_ext.strategies.adaptive.bounds import Models
from botorch_ext.strategies.events import Trial
from botorch_ext.widths import check_delta, require


class Standing(Protocol):
    """What a judge may look at: a `BoundsStrategy`."""

    alive: list[int]
    """The models that are not eliminated, their places among the candidates."""
    names: list[str]
    """Of all models so far."""

    @property
    def num_known(self) -> Sequence[int]:
        """How many models there were when each trial was asked."""
        ...

    @property
    def models(self) -> Models:
        """The posteriors of the models alive, in this order."""
        ...

    @property
    def num_data(self) -> int:
        """Observations so far, initial ones included."""
        ...

    @property
    def next_step(self) -> int:
        """t of the next ask: one more than the steps so far, initial ones included."""
        ...

    def times_played(self) -> list[int]:
        """How often each model was played."""
        ...

    def evidence(self) -> Tensor:
        """The log marginal likelihood of the told data under the models alive."""
        ...


class Judge(State):
    """A judge that learns nothing and lets all models play."""

    #: Whether trials record what their model predicts from told data alone.
    needs_predictions: bool = False
    #: Whether it says which models may play, or how they are weighed.
    advises: bool = False

    def contenders(self, standing: Standing) -> list[int] | Tensor | None:
        """The positions among those alive of the models that may play, or of each of them whether
        it may, ``(m,)``; None for all."""
        return None

    def weights(self, standing: Standing) -> Tensor | None:
        """The weights with which upper bounds are averaged; None where the highest counts."""
        return None

    def learn(self, trial: Trial, value: float, standing: Standing) -> list[int]:
        """Learns from a trial that a model asked, a datum by now; the models it refutes."""
        return []

    def summary(self, model: int) -> dict[str, Any]:
        """What the report says of a model."""
        return {}


class Likeliest(Judge):
    """A judge that lets the model with the highest marginal likelihood play; of equal ones the
    first."""

    advises = True

    def contenders(self, standing: Standing) -> list[int]:
        return [int(standing.evidence().argmax())]


class Credible(Judge):
    """A judge that lets the models play whose log evidence is within c of the largest.

    None is refuted: one that falls behind plays again when the data bring it back.

    Args:
        delta: Gives c = ln(M / delta) with M, the number of models at the moment.
        credibility: c itself, in place of that; 0 leaves the likeliest alone.

    Raises:
        ValueError: A delta outside (0, 1), or a credibility that is negative or not finite.
    """

    advises = True

    def __init__(self, delta: float = 0.1, credibility: float | None = None) -> None:
        self.delta = check_delta(delta)
        if credibility is not None:
            credibility = one_number(credibility, "credibility")
            require(0 <= credibility < math.inf, "credibility", credibility, ">= 0 and finite")
        self.credibility = credibility

    def reach(self, num_models: int) -> float:
        """c, with so many models."""
        return math.log(num_models / self.delta) if self.credibility is None else self.credibility

    def contenders(self, standing: Standing) -> Tensor | None:
        if len(standing.alive) == 1:
            return None
        evidence = finite_evidence(standing)
        # A mask: on a finite set the host need not know.
        return evidence.max() - evidence <= self.reach(len(standing.names))


class Averaging(Judge):
    """A judge that weighs models by P(model | data), from a uniform prior."""

    advises = True

    def weights(self, standing: Standing) -> Tensor:
        return finite_evidence(standing).softmax(dim=0)


class Schedule(Judge):
    """A judge that shrinks the lengthscale as lengthscale_0 / g(t), whatever is observed.

    Args:
        lengthscale_0: The first lengthscale.
        growth: g, of the step t.
    """

    advises = True

    def __init__(self, lengthscale_0: float, growth: Callable[[int], float]) -> None:
        self.lengthscale_0, self.growth = lengthscale_0, growth
        shrunk_lengthscale(lengthscale_0, growth, 1)

    def contenders(self, standing: Standing) -> list[int]:
        target = shrunk_lengthscale(self.lengthscale_0, self.growth, standing.next_step)
        return [int((require_lengthscales(standing.models) - target).abs().argmin())]


def finite_evidence(standing: Standing) -> Tensor:
    """The evidence of the models alive; the lowest number where values have no square."""
    evidence = standing.evidence()
    return evidence.clamp_min(torch.finfo(evidence.dtype).min)


def require_lengthscales(models: Models) -> Tensor:
    """The lengthscales of models, or a ValueError where they are not told apart by one."""
    scales = getattr(models, "lengthscales_of", None)
    if scales is None:
        raise ValueError(
            "models must be told apart by one lengthscale each, such as "
            "CandidateModels.lengthscales or CandidateModels.growing make them"
        )
    return scales
