"""Thompson sampling: the maximiser of a function that is drawn from the posterior."""

from __future__ import annotations

from typing import Any, Unpack, cast

import torch

from botorch_ext.domains import Box, Domain
from botorch_ext.hyperparameters.fitted import Fitted
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.models.joint_draws import JointDraw
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.draws import best_in_box, best_of_points
from botorch_ext.strategies.adaptive.bounds import Bounds
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.judges import Averaging
from botorch_ext.strategies.adaptive.searches import Pick, Search, Turn
from botorch_ext.widths import Width


class LargestOfDraw(Search):
    """The maximiser of a function that is drawn from the posterior of one model. The weights of the
    judge are the probabilities of the models."""

    takes_spaces = True

    @torch.no_grad()
    def best(self, bounds: Bounds, turn: Turn) -> Pick:
        position = 0
        if turn.weights is not None:
            weights = turn.weights.double().cpu()
            position = int(torch.multinomial(weights, 1, generator=turn.generator))
        model: Any = bounds.models.single(position)
        draw = JointDraw(model, turn.generator, bounds.widths[position], bounds.context)
        points = turn.choices.points(turn.domain)
        if points is None:
            x = best_in_box(draw, cast(Box, turn.domain), turn.seed, turn.incumbents())
            return Pick(x.clone(), position)
        row = best_of_points(draw, points, turn.seed)
        return Pick(points[row].clone(), position, dict(turn.choices.places(row)))


class ThompsonSampling(BoundsStrategy):
    """Asks the maximiser of a function that is drawn from the posterior.

    The deviation of the draw from the posterior mean is multiplied by the width. With several
    models, a model is drawn first from P(model | data), with a uniform prior. ``info`` and report
    are those of `BoundsStrategy`. Source: Thompson 1933; with a width Chowdhury and Gopalan 2017,
    algorithm 2.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        model: A `KernelGP`, `CandidateModels` or `Fitted`.
        width: The width, or a number. 1 draws from the posterior.
        options: The keyword arguments of `BoundsStrategy`; ``pending`` is "ignore" by default.
    """

    takes_ladders = False

    def __init__(
        self,
        domain: Domain,
        model: KernelGP | CandidateModels | Fitted,
        width: Width | float = 1.0,
        **options: Unpack[BoundsOptions],
    ) -> None:
        judge = Averaging() if isinstance(model, CandidateModels) else None
        options.setdefault("pending", "ignore")
        super().__init__(domain, model, width, search=LargestOfDraw(), judge=judge, **options)
