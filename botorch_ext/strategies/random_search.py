"""Random search, the baseline that all methods are compared with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Event


class RandomSearch(Strategy):
    """Uniformly random points, whatever was observed and in whatever context.

    Args:
        domain: A `Box` or a `FiniteSet`; members of a set may repeat.
        seed: The same seed gives the same points.
        initial: ``(X, Y)`` the user already has.
        num_initial: Sobol points asked first.
        context_domain: The contexts that every ask then needs.
    """

    takes_actions = True
    is_random = True
    depends_on_trial_number = "its points depend on the number of the trial alone"
    takes_shards = True
    takes_spaces = True
    takes_outside = True

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        generator = torch.Generator().manual_seed(self._seed_of(len(self.history.trials)))
        points = choices.points(self.domain)
        if points is None:
            if not self.domain.is_plain:  # pyright: ignore - a Box, since it has no points
                return self.domain.sample(1, self._seed_of(len(self.history.trials)))[0], {}
            share = torch.rand(self.domain.dim, generator=generator, dtype=torch.float64)
            lower, upper = self.domain.bounds  # pyright: ignore - a Box, since it has no points
            return torch.lerp(lower, upper, share.to(lower)), {}
        row = int(torch.randint(len(points), (), generator=generator))
        return points[row].clone(), choices.places(row)

    def _absorb(self, event: Event) -> None:
        pass  # nothing to learn

    def evaluated_means(self) -> Tensor:
        # Without a model the observation itself is the best guess.
        return self.evaluated()[1]

    def means_at(self, X: Tensor) -> Tensor:
        return self.evaluated()[1]  # whatever the context
