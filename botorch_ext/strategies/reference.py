"""The baselines that the methods are compared with."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.strategies.base import Strategy
from botorch_ext.strategies.events import Event


class RandomSearch(Strategy):
    """Uniformly random points, whatever was observed.

    Args:
        domain: A `Box` or a `FiniteSet`; members of a set may repeat.
        seed: The same seed gives the same points.
        initial: ``(X, Y)`` the user already has.
        num_initial: Sobol points asked first.
    """

    def _decide(self) -> tuple[Tensor, dict[str, Any]]:
        generator = torch.Generator().manual_seed(self._seed_of(len(self.history.trials)))
        if isinstance(self.domain, Box):
            share = torch.rand(self.domain.dim, generator=generator, dtype=torch.float64)
            bounds = self.domain.bounds
            return torch.lerp(bounds[0], bounds[1], share.to(bounds)), {}
        index = int(torch.randint(self.domain.num_points, (), generator=generator))
        return self.domain.points[index].clone(), {"index": index}

    def _absorb(self, event: Event) -> None:
        pass  # nothing to learn

    def _evaluated_means(self) -> Tensor:
        # Without a model the observation itself is the best guess.
        return self._evaluated()[1]
