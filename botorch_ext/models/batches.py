"""ModelParts: sets of models of the same data, computed in one batch for each form of kernel."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import host
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
    """The methods of a width (`botorch_ext.widths.Width`) that models call."""

    def __call__(self, t: int, model: Any) -> float | Tensor: ...

    def offset(self, t: int, model: Any) -> float | Tensor: ...


Model = TypeVar("Model", KernelGP, FinitePosterior)


@dataclass(frozen=True, eq=False)
class Part(Generic[Model]):
    """The models of a set whose kernels have the same form, as one batch.

    Args:
        model: The batched model, of batch shape ``(b,)``; without batch dimensions for one model.
        positions: The positions of these b models in the set.
    """

    model: Model
    positions: list[int]

    def each(self, values: Tensor) -> Tensor:
        """Values of `model` with a leading dimension for its members.

        Args:
            values: A result of `model`, ``b x ...``, or ``...`` if it is not batched.

        Returns:
            ``b x ...``.
        """
        return values if len(self.positions) > 1 else values.unsqueeze(0)

    def member(self, place: int) -> Model:
        """One of the models.

        Args:
            place: Its position within this part.

        Returns:
            A `fork` of the member; `model` itself if it is the only one.
        """
        return self.model.select(place) if len(self.positions) > 1 else self.model


class ModelParts(ABC, Generic[Model]):
    """Base class of `CandidateModels` and `FiniteCandidates`: a set of models in parts."""

    parts: list[Part[Model]]
    _family: GrowingFamily | None = None
    _num_grown = 0  # the number of members of the family that joined so far
    _plain: list[int] | None = None  # see `plain`; None without twins

    def _build(self, candidates: list[Candidate]) -> None:
        """Make new parts without data for these models."""
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
        """The names of the models."""
        return [entry.name for entry in self._entries]

    @property
    def num_models(self) -> int:
        return len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def plain(self, position: int) -> int:
        """The model whose width a model takes: a twin takes that of its plain model.

        Returns:
            The position of the other model, or its own.
        """
        return position if self._plain is None else self._plain[position]

    @property
    def has_twins(self) -> bool:
        """Whether a model takes the width of another one."""
        return self._plain is not None

    @property
    def lengthscales_of(self) -> Tensor | None:
        """The lengthscales, ``m``, on the CPU, if the set was made of one lengthscale for each
        model; otherwise None."""
        values = [entry.lengthscale for entry in self._entries]
        if None in values:
            return None
        return host.tensor(values, dtype=self.dtype)

    @property
    def grows(self) -> bool:
        """Whether models join the set over time."""
        return self._family is not None

    @property
    def noise_variance(self) -> Tensor:
        """The ridge lambda of each model, ``m``."""
        return self._gather(lambda model: model.noise_variance)

    @property
    def num_observations(self) -> int:
        """The number of rows, including pending ones."""
        return self.parts[0].model.num_observations

    @property
    def pending(self) -> list[int]:
        """The pending rows."""
        return list(self.parts[0].model.factor.pending)

    @property
    def dim(self) -> int:
        """d, the number of columns of the inputs; 0 while it is not known."""
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

    @property
    def relative_noise(self) -> Tensor | None:
        """The noise variances of the rows in units of those of each model, ``n``; None if none was
        given."""
        first = self.parts[0]
        noise = first.model.relative_noise
        return None if noise is None else first.each(noise)[0]

    # --- data -----------------------------------------------------------------------------------

    def total_precision(self, rows: list[int] | None = None) -> float | None:
        """As for `GrowingPosterior`."""
        return self.parts[0].model.total_precision(rows)

    def add(self, X: Tensor, Y: Tensor | None, relative_noise: Tensor | None = None) -> None:
        """Add observations to all models in place, O(n^2) per observation and model; arguments and
        errors are those of `KernelGP.add`."""
        n = self.num_observations
        for place, part in enumerate(self.parts):
            try:
                part.model.add(X, Y, relative_noise)
            except ValueError:  # raised by its kernel or prior mean: no model keeps the rows
                for other in self.parts[:place]:
                    other.model._truncate(n)
                raise

    def set_targets(self, rows: list[int], Y: Tensor) -> None:
        """Give rows new values in all models; arguments and errors are those of
        `KernelGP.set_targets`."""
        rows = self._checked_rows(rows)
        # The first part looks at the entries, before anything changes.
        Y = checked_values(Y, len(rows), self.parts[0].model.noise_variance, look=False)
        for part in self.parts:
            part.model.set_targets(rows, Y)

    def remove(self, row: int) -> None:
        """Remove one row from all models; later rows move up by one."""
        (row,) = self._checked_rows([row])
        for part in self.parts:
            part.model.remove(row)

    def select(self, positions: Sequence[int]) -> Self:
        """A `fork` of some of the models.

        Args:
            positions: The positions of the models, in their new order.

        Raises:
            ValueError: If there is no position, or one does not exist or occurs twice.
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

    def at_ridges(self, ridges: Sequence[float]) -> Self:
        """The models without data, each of them at several ridges.

        Args:
            ridges: R multiples of the ridge of each model.

        Returns:
            A set of ``m R`` models; those of one model follow each other.

        Raises:
            ValueError: If the models have transforms.
        """
        if any(getattr(part.model, "has_transforms", False) for part in self.parts):
            raise ValueError("models must not have input or outcome transforms with several ridges")
        new = shallow(self)
        new._family = None
        new._build(
            [
                replace(
                    entry,
                    name=f"{entry.name}, ridge {ridge:g}",
                    noise_variance=ridge * entry.noise_variance,
                    lengthscale=entry.lengthscale if ridge == 1.0 else None,
                    twin_of=f"{entry.twin_of}, ridge {ridge:g}" if entry.twin_of else None,
                )
                for entry in self._entries
                for ridge in ridges
            ]
        )
        return new

    def fork(self) -> Self:
        """An independent copy. Both sets share the rows of their factors until one changes them."""
        return self.select(range(len(self)))

    def successor(self) -> Self:
        """A copy that takes the place of this set, which stays as it is; see
        `GrowingPosterior.successor`."""
        new = shallow(self)
        new.parts = [Part(part.model.successor(), part.positions) for part in self.parts]
        return new

    def single(self, position: int) -> Model:
        """A single model with the data, for reading: it must not be changed, since it shares data
        with this set.

        Returns:
            The model, without batch dimensions.

        Raises:
            ValueError: If the position does not exist.
        """
        part, place = self._place(position)
        return part.member(place)

    def drop(self, position: int) -> None:
        """Remove one model in place, without copying a factor; later models move up by one.

        Raises:
            ValueError: If the position does not exist, or it is the only model.
        """
        part, place = self._place(position)
        if len(self) == 1:
            raise ValueError(
                f"position must leave a model in the set, got {position} of the only model"
            )
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
        """Add the models of a growing family that join by time t, with all data.

        Returns:
            The names of the new models; none for a set that does not grow.
        """
        if self._family is None:
            return []
        added = self._family.candidates(self._num_grown, t)
        if not added:
            return []
        first, pending = self.parts[0], set(self.pending)
        known = [row for row in range(self.num_observations) if row not in pending]
        (X,), Y = first.model.train_inputs, first.each(first.model.train_targets)[0, known]
        noise = self.relative_noise
        self._num_grown += len(added)
        self._build([*self._entries, *added])
        if len(X):
            self.add(X, None, noise)
        if known:
            self.set_targets(known, Y)
        return [candidate.name for candidate in added]

    # --- answers --------------------------------------------------------------------------------

    def prior(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The prior mean and standard deviation of each model at points.

        Args:
            X: Points, ``n x d``.

        Returns:
            The means and the standard deviations, ``m x n`` each.
        """
        moments = [map(part.each, part.model.prior(X)) for part in self.parts]
        mean, std = (self.in_order(list(values)) for values in zip(*moments, strict=True))
        return mean, std

    def information_gain(self) -> Tensor:
        """The information gain of all rows for each model, 1/2 log det(I + K / lambda), ``m``."""
        return self._gather(lambda model: model.information_gain())

    def quadratic_form(self) -> Tensor:
        """y' (K + lambda I)^-1 y of the known observations for each model, ``m``."""
        return self._gather(lambda model: model.quadratic_form())

    def jittered_rows(self) -> Tensor:
        """The number of rows of each model with jitter on their diagonal entry, ``m``."""
        n = self.num_observations
        return self._gather(lambda model: (model.factor.jitter[..., :n] > 0).sum(dim=-1))

    def pending_information_gain(self) -> Tensor:
        """The information gain of the pending points given the known ones,
        I(pending points; f | known points), for each model, ``m``."""
        return self._gather(lambda model: model.factor.pending_information_gain())

    def log_marginal_likelihood(self, without: Sequence[int] = ()) -> Tensor:
        """The log marginal likelihood log p(y) of each model.

        Args:
            without: The rows to leave out; pending rows are always left out.

        Returns:
            The log likelihoods, ``m``.

        Raises:
            ValueError: If a row does not exist.
        """
        rows = self._checked_rows(without)
        return self._gather(lambda model: log_evidence(model.factor, rows))

    def width(self, width: ModelWidth | Sequence[ModelWidth], t: int) -> Tensor:
        """The width of each model before the t-th point is chosen.

        Args:
            width: One width for all models, or a sequence with one for each.
            t: The step, as in `botorch_ext.widths.Width`.

        Returns:
            The widths, ``m``.

        Raises:
            ValueError: If ``width`` is a sequence whose length is not the number of models.
        """
        return self._each_width(width, lambda one, model: one(t, model))

    def offset(self, width: ModelWidth | Sequence[ModelWidth], t: int) -> Tensor:
        """The offset of each model, ``m``, in units of f, which widens its bounds on both sides
        besides ``width * std``; arguments are those of `width`."""
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
            if len(self) == 1:  # faster, which matters in steps of a few microseconds
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
        """The part of a model and its position there."""
        if whole_number(position, "position") not in self._places:
            raise ValueError(f"position must lie in [0, {len(self)}), got {position}")
        place, member = self._places[position]
        return self.parts[place], member

    def _checked_rows(self, rows: Sequence[int]) -> list[int]:
        return checked_row_numbers(rows, self.num_observations)

    def _gather(self, function: Callable[[Model], Tensor]) -> Tensor:
        """The results of a function for all models, ``m x ...``, in the order of the models."""
        if len(self.parts) == 1 and self._natural:
            return self.parts[0].each(function(self.parts[0].model))
        return self.in_order([part.each(function(part.model)) for part in self.parts])

    def _of_plain(self, values: Tensor) -> Tensor:
        """Values of the models, ``m``; twins have those of their plain models."""
        return values if self._plain is None else members_of(values, self._plain)

    def in_order(self, values: list[Tensor]) -> Tensor:
        """Values of the parts, one after the other, in the order of the models."""
        together = values[0] if len(values) == 1 else torch.cat(values)
        return together if self._natural else members_of(together, self._inverse)


def grouped(candidates: Sequence[Candidate]) -> list[list[int]]:
    """Group models that can be computed as one batch: their kernels have the same form, and all or
    none have a prior mean.

    Returns:
        The positions of the models of each group.
    """
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
