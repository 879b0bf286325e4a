"""Searches: which point is chosen for which model, by the confidence bounds of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains import Domain
from botorch_ext.domains.shards import Shard
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.robust.box_balls import BoxBalls
from botorch_ext.robust.own_bounds import OwnBounds
from botorch_ext.robust.perturbations import FiniteBalls
from botorch_ext.robust.worst_case import lowest_bound, maximize_worst_case
from botorch_ext.search.models import best_in_box, best_pair
from botorch_ext.search.objectives import lowest_for_others
from botorch_ext.state import Immutable
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.bounds import Bounds


@dataclass(eq=False, slots=True)
class Turn:
    """What a search may look at besides the bounds.

    Args:
        domain: Where actions live.
        choices: The actions there are.
        seed: Seeds what is random.
        incumbents: Gives ``n x d`` points of a box that are looked at too.
        contenders: The positions of the models that may play, or of each whether it may, ``(m,)``;
            None for all.
        weights: ``m``: bounds are averaged with these; None where the highest counts.
        generator: What random choices draw from, on the CPU. It is made from the seed of the
            strategy and the step, so that a replayed strategy draws the same.
    """

    domain: Domain
    choices: Choices
    seed: int
    incumbents: Callable[[], Tensor]
    contenders: list[int] | Tensor | None = None
    weights: Tensor | None = None
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        # Another stream than that of the points of a search, which are seeded with the seed itself.
        self.generator = torch.Generator().manual_seed(self.seed ^ 0x5DEECE66D)


@dataclass(eq=False, slots=True)
class Pick:
    """What is chosen.

    Args:
        x: The ``d``-dim point.
        model: The position of the model it is chosen for.
        info: What a trial records of it: its row in a finite set or among the actions, its centre.
        opponent: The position of the model whose lower bound is the lowest, where one is sought.
        numbers: Mean, standard deviation, width and offset there, where they were read at once.
    """

    x: Tensor
    model: int
    info: dict[str, Any] = field(default_factory=dict)
    opponent: int | None = None
    numbers: list[float] | None = None


class Search(Immutable, ABC):
    """Chooses by confidence bounds; it owns every budget and keeps nothing."""

    #: Whether the actions may change from step to step.
    takes_actions: bool = True
    #: Whether it heeds the contenders and the weights of a judge.
    takes_advice: bool = True
    #: Whether the candidates may be divided among processes.
    takes_shards: bool = False
    #: Whether a box may have more than bounds.
    takes_spaces: bool = False

    @abstractmethod
    def best(self, bounds: Bounds, turn: Turn) -> Pick:
        """The choice of this turn."""


class Highest(Search):
    """The point and the model with the highest upper bound, or the point with the highest average
    of them. On finite sets ties go to the first point and the first model."""

    takes_shards = True
    takes_spaces = True

    def best(self, bounds: Bounds, turn: Turn) -> Pick:
        contenders, weights, choices = turn.contenders, turn.weights, turn.choices
        points = choices.points(turn.domain)
        if points is None:
            box: Any = turn.domain  # since it has no points
            incumbents = turn.incumbents()
            x, model = best_in_box(bounds.upper(), box, turn.seed, incumbents, contenders, weights)
            return Pick(x, model)
        if bounds.of_candidates is None:
            values = lowest_for_others(bounds.upper().values(points))
            row, model = _read(best_pair(values, contenders, weights))
            return Pick(points[row].clone(), model, dict(choices.places(row)))
        mean, _, half_width = bounds.of_candidates
        values = mean + half_width
        values = values if choices.rows is None else values[:, choices.rows]  # (m, N)
        row, model = best_pair(values, contenders, weights)
        at = row if choices.rows is None else choices.rows[row]
        numbers, candidates = bounds.at_candidate(model, at), cast(FiniteCandidates, bounds.models)
        if candidates.shard is None:
            row, model, *numbers = _read((row, model), numbers)
        else:
            value = _value(values, weights, row, model)
            own = [value, candidates.checksum(), *numbers]
            row, model, *numbers = _read_highest(candidates.shard, (row, model), own)
        return Pick(points[row].clone(), model, dict(choices.places(row)), numbers=numbers)


class WorstCase(Search):
    """The centre and the model whose upper bound is highest at its worst perturbation; then, among
    the perturbations of that centre, the point and the model with the lowest lower bound.

    All models play, over all of the domain.

    Args:
        balls: What is within reach of each point of the domain.
    """

    takes_actions = False
    takes_advice = False

    def __init__(self, balls: FiniteBalls | BoxBalls) -> None:
        self.balls = balls

    @property
    def moves(self) -> bool:
        """Whether there is anything within reach of a point but itself."""
        return isinstance(self.balls, FiniteBalls) or self.balls.moves

    def best(self, bounds: Bounds, turn: Turn) -> Pick:
        if isinstance(self.balls, FiniteBalls):
            return self._in_set(bounds, self.balls)
        return self._in_box(bounds, turn, self.balls)

    def _in_set(self, bounds: Bounds, balls: FiniteBalls) -> Pick:
        if bounds.of_candidates is None:
            raise TypeError("balls of a finite set need models of its candidates")
        mean, _, half_width = bounds.of_candidates
        worst, _ = balls.worst_case(mean + half_width)
        center, model = _read(best_pair(worst))
        near = balls.neighbours(center)
        place, opponent = _read(best_pair((half_width - mean)[:, near]))
        candidates, index = bounds.models.candidates, int(near[place])  # pyright: ignore
        info = {"index": index, "center_index": center, "center": candidates[center].tolist()}
        return Pick(candidates[index].clone(), model, info, opponent)

    def _in_box(self, bounds: Bounds, turn: Turn, balls: BoxBalls) -> Pick:
        upper, incumbents = bounds.upper(), turn.incumbents()
        if self.moves:
            center, model = maximize_worst_case(upper, balls, turn.seed, incumbents)
        else:
            center, model = best_in_box(upper, balls.box, turn.seed, incumbents)
        x, opponent = lowest_bound(bounds.negated_lower(), balls, center)
        return Pick(x, model, {"center": center.tolist()}, opponent)

    def worst_of_means(self, models: Any, position: int, centers: Tensor) -> Tensor:
        """The lowest posterior mean of one model within reach of each of ``n x d`` centres, ``n``;
        on a finite set of each of ``n`` rows."""
        if isinstance(self.balls, FiniteBalls):
            return self.balls.worst_case(models.mean[position])[0][centers]
        none = torch.zeros_like(centers[0, :1])
        means = Bounds(models.select([position]), none, none).upper()
        values, _ = self.balls.worst_case(OwnBounds.of(means), centers.unsqueeze(1))
        return values.squeeze(1)


def _read(pair: tuple[Tensor, Tensor | None], numbers: Sequence[Tensor] = ()) -> tuple[Any, ...]:
    """A row and the position of a model as whole numbers, then numbers; the host waits once."""
    row, model = pair
    places = [row] if model is None else [row, model]
    # Every row is exact in float64.
    read = torch.cat([*(place.double() for place in places), *numbers]).tolist()
    whole = int(read[0]), 0 if model is None else int(read[1])
    return *whole, *read[len(places) :]


def _value(values: Tensor, weights: Tensor | None, row: Tensor, model: Tensor | None) -> Tensor:
    """What `best_pair` compared at what it chose of ``m x N`` bounds, ``(1,)``."""
    column = values.index_select(1, row)[:, 0]
    if weights is not None:
        return (weights @ column).view(1)
    return column[:1] if model is None else column[model]


def _read_highest(
    shard: Shard, pair: tuple[Tensor, Tensor | None], numbers: Sequence[Tensor]
) -> tuple[Any, ...]:
    """As `_read`, without the first two numbers: the value by which the highest of all processes is
    found, of equal ones the first, and what must be the same in all of them.

    Raises:
        RuntimeError: The processes do not know the same.
    """
    row, model = pair
    place = torch.zeros_like(row) if model is None else model
    own = torch.cat([(row + shard.start).double(), place.double(), *numbers])
    everybodys = shard.gathered(own).tolist()
    checksums = [read[3] for read in everybodys]
    if max(checksums) - min(checksums) > 1e-6 * max(map(abs, checksums)):
        raise RuntimeError("the processes of a ShardedSet must ask and be told the same")
    row, model, _, _, *rest = max(everybodys, key=lambda read: read[2])
    return int(row), int(model), *rest
