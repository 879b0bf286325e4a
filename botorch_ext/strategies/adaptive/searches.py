"""Searches, which choose a point and a model by the confidence bounds of all models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor

from botorch_ext.domains import Domain
from botorch_ext.domains.contexts import with_context
from botorch_ext.domains.ranks import rounding_of
from botorch_ext.domains.shards import Shard
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.search.box_balls import BoxBalls
from botorch_ext.search.models import best_in_box, best_pair
from botorch_ext.search.objectives import lowest_for_others
from botorch_ext.search.own_bounds import OwnBounds
from botorch_ext.search.perturbations import FiniteBalls
from botorch_ext.search.worst_case import lowest_bound, maximize_worst_case
from botorch_ext.state import Immutable
from botorch_ext.strategies.action_sets import Choices
from botorch_ext.strategies.adaptive.bounds import Bounds


@dataclass(eq=False, slots=True)
class Turn:
    """What a search is given at a step, besides the bounds.

    Args:
        domain: The domain of the actions.
        choices: The actions to choose from, and the context.
        seed: The seed of the step.
        incumbents: A function that gives ``n x d`` evaluated points for the search of a box.
        contenders: The positions of the models that may play, or a mask of shape ``(m,)``; None for
            all.
        weights: The ``m`` weights for an average of the bounds; None to play the highest bound.
        generator: The generator of random choices, on the CPU. It is made from ``seed``, so that a
            replayed strategy draws the same.
    """

    domain: Domain
    choices: Choices
    seed: int
    incumbents: Callable[[], Tensor]
    contenders: list[int] | Tensor | None = None
    weights: Tensor | None = None
    generator: torch.Generator = field(init=False)

    def __post_init__(self) -> None:
        # Not the stream of the points of a search, which are seeded with the seed itself.
        self.generator = torch.Generator().manual_seed(self.seed ^ 0x5DEECE66D)


@dataclass(eq=False, slots=True)
class Pick:
    """The choice of a search.

    Args:
        x: The ``d``-dim point; in a box its numbers may have more digits than can be set.
        model: The position of the model that it is chosen for.
        info: The entries of ``info`` that say where it is: its row in a finite set or among the
            actions, its centre.
        opponent: The position of the model with the lowest lower bound, if the search needs one.
        numbers: Its mean, standard deviation, width and offset, if the search has read them.
    """

    x: Tensor
    model: int
    info: dict[str, Any] = field(default_factory=dict)
    opponent: int | None = None
    numbers: list[float] | None = None


class Search(Immutable, ABC):
    """Chooses a point and a model by confidence bounds. A search keeps no state between steps."""

    #: Whether `ask` may be given ``actions``, which may change from step to step.
    takes_actions: bool = True
    #: Whether the search follows the contenders and the weights of a judge.
    takes_advice: bool = True
    #: Whether the domain may be a `ShardedSet`, which divides the candidates among processes.
    takes_shards: bool = False
    #: Whether a box may have whole numbers, codes of categories, constraints or other scales.
    takes_spaces: bool = False

    @abstractmethod
    def best(self, bounds: Bounds, turn: Turn) -> Pick:
        """The choice of this step.

        Args:
            bounds: The confidence bounds of all m models.
            turn: The domain, the actions, the seed, and the advice of the judge.

        Returns:
            A `Pick`, with the point, the position of its model, and where the point is.
        """


class Highest(Search):
    """Chooses the point and the model with the highest upper bound, or the point with the highest
    average of the upper bounds. On a finite set the first of several such points is chosen; bounds
    that differ by 1e-9 (1e-5 in float32) of their size or less count as equal."""

    takes_shards = True
    takes_spaces = True

    def best(self, bounds: Bounds, turn: Turn) -> Pick:
        contenders, weights, choices = turn.contenders, turn.weights, turn.choices
        points = choices.points(turn.domain)
        if points is None:
            box: Any = turn.domain  # a Box, since it has no points
            incumbents = turn.incumbents()
            x, model = best_in_box(bounds.upper(), box, turn.seed, incumbents, contenders, weights)
            return Pick(x, model)
        if bounds.of_candidates is None:
            values = lowest_for_others(bounds.upper().values(points))
            row, model = best_pair(values, contenders, weights)
            numbers: list[Any] = []
            if model is None:  # its numbers are read together with the row
                at = with_context(points.index_select(0, row)[0], bounds.context)
                numbers = bounds.numbers(0, at)
            row, model, *numbers = _read((row, model), numbers)
            known = numbers if numbers else None
            return Pick(points[row].clone(), model, dict(choices.places(row)), numbers=known)
        values = bounds.within_candidates(1)
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
    """Chooses the centre and the model whose upper bound is highest at its worst perturbation;
    then, among the perturbations of that centre, the point and the model with the lowest lower
    bound.

    All models play, and the whole domain is searched."""

    takes_actions = False
    takes_advice = False

    def __init__(self, balls: FiniteBalls | BoxBalls) -> None:
        self.balls = balls

    @property
    def moves(self) -> bool:
        """Whether a point has other perturbed points than itself."""
        return isinstance(self.balls, FiniteBalls) or self.balls.moves

    def best(self, bounds: Bounds, turn: Turn) -> Pick:
        if isinstance(self.balls, FiniteBalls):
            return self._in_set(bounds, self.balls)
        return self._in_box(bounds, turn, self.balls)

    def _in_set(self, bounds: Bounds, balls: FiniteBalls) -> Pick:
        worst, _ = balls.worst_case(bounds.within_candidates(1))
        center, model = _read(best_pair(worst))
        near = balls.neighbours(center)
        row, opponent = _read(best_pair(-bounds.within_candidates(-1)[:, near]))
        candidates, index = bounds.models.candidates, int(near[row])  # pyright: ignore
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
        """The lowest posterior means of one model among the perturbations of ``n x d`` centres,
        ``n``; on a finite set the centres are ``n`` rows."""
        if isinstance(self.balls, FiniteBalls):
            return self.balls.worst_case(models.mean[position])[0][centers]
        none = torch.zeros_like(centers[0, :1])
        means = Bounds(models.select([position]), none, none).upper()
        values, _ = self.balls.worst_case(OwnBounds.of(means), centers.unsqueeze(1))
        return values.squeeze(1)


def _read(pair: tuple[Tensor, Tensor | None], numbers: Sequence[Tensor] = ()) -> tuple[Any, ...]:
    """A row, the position of a model, and other numbers, read at once: the host waits once."""
    row, model = pair
    positions = [row] if model is None else [row, model]
    # Every row is exact in float64.
    read = torch.cat([*(position.double() for position in positions), *numbers]).tolist()
    whole = int(read[0]), 0 if model is None else int(read[1])
    return *whole, *read[len(positions) :]


def _value(values: Tensor, weights: Tensor | None, row: Tensor, model: Tensor | None) -> Tensor:
    """The largest value that `best_pair` found among ``m x N`` bounds, of shape ``(1,)``."""
    column = values.index_select(1, row)[:, 0]
    if weights is not None:
        return (weights @ column).view(1)
    return column[:1] if model is None else column[model]


def _read_highest(
    shard: Shard, pair: tuple[Tensor, Tensor | None], numbers: Sequence[Tensor]
) -> tuple[Any, ...]:
    """As `_read`, for the best choice of all processes, or the first of several equally good ones.

    Args:
        shard: The rows of this process.
        pair: The row in the shard, and the position of the model.
        numbers: The value that is compared; a checksum, which must be equal in all processes; then
            the numbers that are returned.

    Raises:
        RuntimeError: If the checksums differ, since the processes were told different events.
    """
    row, model = pair
    position = torch.zeros_like(row) if model is None else model
    own = torch.cat([(row + shard.start).double(), position.double(), *numbers])
    everybodys = shard.gathered(own).tolist()
    checksums = [read[3] for read in everybodys]
    if max(checksums) - min(checksums) > 1e-6 * max(map(abs, checksums)):
        raise RuntimeError("the processes of a ShardedSet must ask and be told the same")
    top = max(read[2] for read in everybodys)
    least = top - rounding_of(numbers[0].dtype) * abs(top)
    row, model, _, _, *rest = next(read for read in everybodys if read[2] >= least)
    return int(row), int(model), *rest
