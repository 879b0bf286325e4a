"""Batches of models of the same data, one for each form, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.kernels.batching import members_of, same_form, stacked_kernel
from botorch_ext.models.checks import PriorMean, checked_row_numbers, checked_values
from botorch_ext.models.downdate import log_evidence
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.kernel_variants import GrowingFamily
from botorch_ext.models.specification import Candidate
from botorch_ext.models.stacked_means import stacked_mean
from botorch_ext.state import shallow


class ModelWidth(Protocol):
    """What is asked of a width (`botorch_ext.widths.Width`)."""

    def __call__(self, t: int, model: Any) -> float | Tensor: ...

    def offset(self, t: int, model: Any) -> float | Tensor: ...


Model = TypeVar("Model", KernelGP, FinitePosterior)


@dataclass(frozen=True, eq=False)
class Part(Generic[Model]):
    """Models of one form as one batch.

    Args:
        model: Of batch shape ``(b,)``; of one alone, without batch dimensions.
        positions: Which b models of the set these are.
    """

    model: Model
    positions: list[int]

    def each(self, values: Tensor) -> Tensor:
        """What `model` answers as ``b x ...``."""
        return values if len(self.positions) > 1 else values.unsqueeze(0)

    def member(self, place: int) -> Model:
        """One of the models: a `fork`, or `model` itself where it is the only one."""
        return self.model.select(place) if len(self.positions) > 1 else self.model


class ModelParts(ABC, Generic[Model]):
    """What `CandidateModels` and `FiniteCandidates` share: everything that asks each part."""

    parts: list[Part[Model]]
    _family: GrowingFamily | None = None
    _num_grown = 0  # members of the family that came in so far
    _plain: list[int] | None = None  # see `plain`; None without twins

    def _build(self, candidates: list[Candidate]) -> None:
        """New parts without data for these models."""
        self._entries = candidates
        self.parts = []
        for group in grouped(candidates):
            members = [candidates[i] for i in group]
            if len(members) == 1:
                (one,) = members
                model = self._model(one.kernel, one.noise_variance, one.mean)
                self.parts.append(Part(model, group))
                continue
            noise = torch.stack([member.noise_variance for member in members])
            kernel = stacked_kernel([member.kernel for member in members])
            mean = stacked_mean([member.mean for member in members], noise)
            self.parts.append(Part(self._model(kernel, noise, mean), group))
        self._index()

    @abstractmethod
    def _model(self, kernel: Kernel, noise_variance: Tensor, mean: PriorMean | None) -> Model: ...

    def _index(self) -> None:
        order = [position for part in self.parts for position in part.positions]
        self._natural = order == list(range(len(order)))
        self._inverse = sorted(range(len(order)), key=order.__getitem__)
        self._places = {
            position: (place, member)
            for place, part in enumerate(self.parts)
            for member, position in enumerate(part.positions)
        }
        self._plain = None
        if any(entry.twin_of for entry in self._entries):
            by_name = {entry.name: i for i, entry in enumerate(self._entries)}
            self._plain = [
                by_name.get(entry.twin_of or entry.name, i) for i, entry in enumerate(self._entries)
            ]

    # --- what there is --------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """One name for each model."""
        return [entry.name for entry in self._entries]

    @property
    def num_models(self) -> int:
        return len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def plain(self, position: int) -> int:
        """The position of the model whose width a model takes: its own, but for a twin."""
        return position if self._plain is None else self._plain[position]

    @property
    def lengthscales_of(self) -> Tensor | None:
        """The lengthscales, ``(m,)``, of a set made of one lengthscale for each model."""
        values = [entry.lengthscale for entry in self._entries]
        if None in values:
            return None
        return torch.tensor(values, dtype=self.dtype, device=self.device)

    @property
    def grows(self) -> bool:
        """Whether models join with time."""
        return self._family is not None

    @property
    def noise_variance(self) -> Tensor:
        """The ridge lambda of each model, ``(m,)``."""
        return self._gather(lambda model: model.noise_variance)

    @property
    def num_observations(self) -> int:
        """Rows, pending ones included."""
        return self.parts[0].model.num_observations

    @property
    def pending(self) -> list[int]:
        """The rows that pend."""
        return list(self.parts[0].model.factor.pending)

    @property
    def dim(self) -> int:
        """d, the dimension of the inputs; 0 while it is not known."""
        return self.parts[0].model.dim

    @property
    def dtype(self) -> torch.dtype:
        return self.parts[0].model.noise_variance.dtype

    @property
    def device(self) -> torch.device:
        return self.parts[0].model.noise_variance.device

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The inputs so far, ``n x d``."""
        return self.parts[0].model.train_inputs

    # --- data -----------------------------------------------------------------------------------

    def add(self, X: Tensor, Y: Tensor | None) -> None:
        """Adds observations to all models, O(n^2) each.

        Args:
            X: ``n x d``.
            Y: ``n x 1`` or ``n``. None for points that were asked and not yet told: such *pending*
                rows count in every standard deviation and in the information gain and leave the
                mean alone.

        Raises:
            ValueError: Wrong shape, dtype or device, or an entry that is not finite.
        """
        n = self.num_observations
        for place, part in enumerate(self.parts):
            try:
                part.model.add(X, Y)
            except ValueError:  # of its kernel or its prior mean: no model keeps the rows
                for other in self.parts[:place]:
                    other.model._truncate(n)
                raise

    def set_targets(self, rows: list[int], Y: Tensor) -> None:
        """Gives rows new values in all models: pending rows become known, known ones are replaced.

        Args:
            rows: Positions in the order of addition.
            Y: One value for each row.

        Raises:
            ValueError: A row that does not exist, or a value that is not finite.
        """
        rows = self._checked_rows(rows)
        Y = checked_values(Y, len(rows), self.parts[0].model.noise_variance)
        for part in self.parts:
            part.model.set_targets(rows, Y)

    def remove(self, row: int) -> None:
        """Forgets one row in all models; later rows move up by one.

        Raises:
            ValueError: A row that does not exist.
        """
        (row,) = self._checked_rows([row])
        for part in self.parts:
            part.model.remove(row)

    def select(self, positions: Sequence[int]) -> Self:
        """A `fork` of some of the models, in this order.

        Raises:
            ValueError: No position, one that does not exist or one that occurs twice.
        """
        positions = [whole_number(position, "each of positions") for position in positions]
        allowed = set(self._places)
        if (
            not positions
            or not allowed.issuperset(positions)
            or len(set(positions)) < len(positions)
        ):
            raise ValueError(
                f"positions must be different numbers in [0, {len(self)}), at least one, "
                f"got {positions}"
            )
        new = shallow(self)
        new._entries = [self._entries[position] for position in positions]
        new.parts = []
        for part in self.parts:
            places = [i for i, position in enumerate(positions) if position in part.positions]
            index = [self._places[positions[i]][1] for i in places]
            if index == list(range(len(part.positions))):
                new.parts.append(Part(part.model.fork(), places))
            elif index:
                chosen = index if len(index) > 1 else index[0]
                new.parts.append(Part(part.model.select(chosen), places))
        new._index()
        return new

    def fork(self) -> Self:
        """A copy that goes its own way from here, with rows, targets and models; until either
        changes them both share the rows of their factors."""
        return self.select(range(len(self)))

    def successor(self) -> Self:
        """A copy that takes the place of this set, which stays as it is; see
        `GrowingPosterior.successor`."""
        new = shallow(self)
        new.parts = [Part(part.model.successor(), part.positions) for part in self.parts]
        return new

    def single(self, position: int) -> Model:
        """One model, not batched, with the data, to look at: what it shares with this set is not to
        be changed.

        Raises:
            ValueError: A position that does not exist.
        """
        part, place = self._place(position)
        return part.member(place)

    def drop(self, position: int) -> None:
        """Forgets one model in place; those behind it move up by one. Copies no factor.

        Raises:
            ValueError: A position that does not exist, or the only model.
        """
        part, place = self._place(position)
        if len(self) == 1:
            raise ValueError("position must not be that of the only model")
        kept = [i for i in range(len(part.positions)) if i != place]
        if kept:
            part.model.keep(kept if len(kept) > 1 else kept[0])
        self._entries = [*self._entries[:position], *self._entries[position + 1 :]]
        self.parts = [
            Part(one.model, left)
            for one in self.parts
            if (left := [p - (p > position) for p in one.positions if p != position])
        ]
        self._index()

    def grow(self, t: int) -> list[str]:
        """Adds the models of a growing family that are in at time t, with all data.

        Returns:
            Their names; none for a set that does not grow.
        """
        if self._family is None:
            return []
        added = self._family.candidates(self._num_grown, t)
        if not added:
            return []
        first, pending = self.parts[0], set(self.pending)
        known = [row for row in range(self.num_observations) if row not in pending]
        (X,), Y = first.model.train_inputs, first.each(first.model.train_targets)[0, known]
        self._num_grown += len(added)
        self._build([*self._entries, *added])
        if len(X):
            self.add(X, None)
        if known:
            self.set_targets(known, Y)
        return [candidate.name for candidate in added]

    # --- answers --------------------------------------------------------------------------------

    def prior(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of each model before any data at ``n x d`` points, ``m x n``
        each."""
        moments = [map(part.each, part.model.prior(X)) for part in self.parts]
        mean, std = (self._in_order(list(values)) for values in zip(*moments, strict=True))
        return mean, std

    def information_gain(self) -> Tensor:
        """1/2 log det(I + K / lambda) of all rows for each model, ``(m,)``."""
        return self._gather(lambda model: model.information_gain())

    def jittered_rows(self) -> Tensor:
        """How many rows of each model have jitter on their diagonal entry, ``(m,)``."""
        n = self.num_observations
        return self._gather(lambda model: (model.factor.jitter[..., :n] > 0).sum(dim=-1))

    def pending_information_gain(self) -> Tensor:
        """I(pending points; f | known points) for each model, ``(m,)``."""
        return self._gather(lambda model: model.factor.pending_information_gain())

    def log_marginal_likelihood(self, without: Sequence[int] = ()) -> Tensor:
        """log p(y) under each model, ``(m,)``.

        Args:
            without: Rows to leave out; pending rows have no value and are left out anyway.

        Raises:
            ValueError: A row that does not exist.
        """
        rows = self._checked_rows(without)
        return self._gather(lambda model: log_evidence(model.factor, rows))

    def width(self, width: ModelWidth | Sequence[ModelWidth], t: int) -> Tensor:
        """The width of each model before choosing the t-th point, ``(m,)``.

        Args:
            width: One for all models, or one for each.
            t: As in `botorch_ext.widths.Width`.

        Raises:
            ValueError: As many widths as there are models are needed, and were not given.
        """
        return self._each_width(width, lambda one, model: one(t, model))

    def offset(self, width: ModelWidth | Sequence[ModelWidth], t: int) -> Tensor:
        """What each model adds to the upper and takes from the lower bound besides ``width * std``,
        ``(m,)``; arguments as for `width`."""
        return self._each_width(width, lambda one, model: one.offset(t, model))

    def _each_width(
        self,
        width: ModelWidth | Sequence[ModelWidth],
        value: Callable[[ModelWidth, Model], float | Tensor],
    ) -> Tensor:
        def at(one: ModelWidth, model: Model) -> Tensor:
            number = value(one, model)
            if not isinstance(number, Tensor):
                number = like.new_full((), number)
            number = number.to(like)
            return number if number.ndim else number.expand(model.batch_shape)

        like = self.parts[0].model.noise_variance
        if not isinstance(width, Sequence):
            if len(self) == 1:  # each microsecond counts where a step takes few of them
                number = value(width, self.parts[0].model)
                if isinstance(number, Tensor):
                    return torch.as_tensor(number, dtype=like.dtype, device=like.device).view(1)
                return like.new_full((1,), number)
            return self._of_plain(self._gather(lambda model: at(width, model)))
        if len(width) != len(self):
            raise ValueError(
                f"width must be one width or one for each of {len(self)} models, got {len(width)}"
            )
        values = []
        for position in range(len(self)):
            part, member = self._place(self.plain(position))
            values.append(part.each(at(width[position], part.model))[member])
        return torch.stack(values)

    def _place(self, position: int) -> tuple[Part[Model], int]:
        """The part of a model and its place there."""
        if whole_number(position, "position") not in self._places:
            raise ValueError(f"position must lie in [0, {len(self)}), got {position}")
        place, member = self._places[position]
        return self.parts[place], member

    def _checked_rows(self, rows: Sequence[int]) -> list[int]:
        return checked_row_numbers(rows, self.num_observations)

    def _gather(self, function: Callable[[Model], Tensor]) -> Tensor:
        """What the model of each part answers as ``m x ...``, in the order of the models."""
        if len(self.parts) == 1 and self._natural:
            return self.parts[0].each(function(self.parts[0].model))
        return self._in_order([part.each(function(part.model)) for part in self.parts])

    def _of_plain(self, values: Tensor) -> Tensor:
        """Values of the models, ``(m,)``, those of twins replaced by their plain models'."""
        return values if self._plain is None else members_of(values, self._plain)

    def _in_order(self, values: list[Tensor]) -> Tensor:
        together = values[0] if len(values) == 1 else torch.cat(values)
        return together if self._natural else members_of(together, self._inverse)


def grouped(candidates: Sequence[Candidate]) -> list[list[int]]:
    """The positions of models that make one batch: same form, and all or none have a prior mean."""
    groups: list[list[int]] = []
    for i, candidate in enumerate(candidates):
        for group in groups:
            first = candidates[group[0]]
            if (first.mean is None) == (candidate.mean is None) and (
                first.kernel is candidate.kernel or same_form(first.kernel, candidate.kernel)
            ):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups
