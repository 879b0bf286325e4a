"""Random search, the baseline of all methods."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.base import Strategy, seed_of_step
from botorch_ext.strategies.events import Event
from botorch_ext.strategies.replicas import Replicas, Runs


class RandomSearch(Strategy):
    """Asks uniformly random points, whatever the observations and the context.

    It has no model: `best` compares observations, and ``info`` has at most ``index`` and
    ``action``.

    The other arguments are those of `Strategy`.

    Args:
        domain: The domain: a `Box`, its bounds, or a `FiniteSet`, whose members may repeat.
        seed: The seed of the points.

    Example:
        >>> import botorch_ext as bx
        >>> strategy = bx.strategies.RandomSearch(bx.FiniteSet([[0.0], [0.4], [1.0]]))
        >>> [trial.x.tolist() for trial in strategy.ask(3)]
        [[1.0], [0.4], [0.0]]
    """

    takes_actions = True
    takes_shards = True
    takes_spaces = True
    takes_outside = True
    refuses_std = None
    refuses_wider = None

    def _decide(self, choices: Choices) -> tuple[Tensor, dict[str, Any]]:
        seed = self._seed_of(len(self.history.trials))
        points = choices.points(self.domain)
        if points is None:
            box: Any = self.domain  # a Box, since it has no points
            if not box.is_plain:
                return box.settable(box.sample(1, seed)[0]), {}
            generator = torch.Generator().manual_seed(seed)
            share = host.rand(box.dim, generator=generator, dtype=torch.float64)
            return torch.lerp(box.lower, box.upper, share.to(box.lower)), {}
        row = _row(len(points), seed)
        return points[row].clone(), choices.places(row)

    def replicas(self, runs: Runs) -> Replicas:
        num_points, steps = len(self.domain.like), range(runs.first.shape[1], runs.horizon)
        rows = [
            [_row(num_points, seed_of_step(seed, step)) for step in steps] for seed in runs.seeds
        ]
        drawn = torch.tensor(rows, dtype=torch.long, device=runs.first.device)
        return Replicas(replace(runs, first=torch.cat([runs.first, drawn], dim=1)))

    def _absorb(self, event: Event) -> None:
        pass  # nothing to learn

    def evaluated_means(self) -> Tensor:
        # Without a model the observation itself is the best guess.
        return self._maximised()[1]

    def means_at(self, X: Tensor) -> Tensor:
        return self._maximised()[1]  # whatever the context


def _row(num_points: int, seed: int) -> int:
    return int(host.randint(num_points, (), generator=torch.Generator().manual_seed(seed)))
