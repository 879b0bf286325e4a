"""Contexts: what is seen before each choice and is not chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from gpytorch.kernels import AdditiveKernel, Kernel, ProductKernel, ScaleKernel
from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import Box, Domain, FiniteSet, as_points, checked_like
from botorch_ext.kernels import ActionContextKernel
from botorch_ext.kernels import AdditiveKernel as GroupKernel
from botorch_ext.kernels.tasks import task_covariance

# A context, or what becomes one: d_z numbers, or one number where d_z is 1.
ContextLike = Tensor | Sequence[float] | float


def with_context(X: Tensor, context: Tensor | None) -> Tensor:
    """Joint rows: actions first, then the context.

    Args:
        X: ``... x d`` actions.
        context: ``d_z``, or None, which leaves the actions as they are.

    Returns:
        ``... x (d + d_z)``.
    """
    if context is None:
        return X
    return torch.cat([X, context.expand(*X.shape[:-1], -1)], dim=-1)


@dataclass(frozen=True, eq=False)
class ContextSpace:
    """Which contexts there are.

    Args:
        domain: A `Box` they lie in, or the `FiniteSet` of all of them. None: anything finite.
        dim: d_z. None: that of the domain or, without one, of the first context seen.
        tasks: Pairs (column, number of tasks): those columns hold whole numbers from 0 to one less
            than the number of tasks.

    Raises:
        ValueError: A dimension less than 1 or another than the domain's, or tasks that are no such
            pairs.
    """

    domain: Domain | None = None
    dim: int | None = None
    tasks: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.domain is not None and not isinstance(self.domain, Box | FiniteSet):
            raise ValueError(f"domain must be a Box, a FiniteSet or None, got {self.domain!r}")
        if self.dim is not None:
            whole_number(self.dim, "dim of the contexts", least=1)
        if self.domain is not None:
            if self.dim not in (None, self.domain.dim):
                raise ValueError(f"dim must be {self.domain.dim}, the domain's, got {self.dim}")
            object.__setattr__(self, "dim", self.domain.dim)
        for column, number in self.tasks:
            whole_number(column, "column of a task", least=0)
            whole_number(number, "number of tasks", least=1)
            if self.dim is not None and column >= self.dim:
                raise ValueError(f"column of a task must be less than {self.dim}, got {column}")

    def checked(
        self, context: ContextLike, like: Tensor, dim: int | None = None, name: str = "context"
    ) -> Tensor:
        """A copy of a context, ``d_z``.

        Args:
            context: What was given.
            like: Gives dtype and device.
            dim: d_z where this space does not know it.
            name: For the message.

        Raises:
            ValueError: The wrong size, dtype or device, an entry that is not finite, or none of the
                contexts there are.
        """
        is_tensor = isinstance(context, Tensor)
        context = checked_like(context, like, name)
        context = context if is_tensor else torch.atleast_1d(context)
        dim = self.dim or dim or max(context.numel(), 1)
        if context.shape != (dim,):
            raise ValueError(f"{name} must have shape ({dim},), got {tuple(context.shape)}")
        point = as_points(context, dim, like, name)
        if self.domain is not None:
            self.domain.require_contains(point, name)
        for column, number in self.tasks:
            task = float(point[0, column]) if column < dim else -1.0
            if not (0 <= task < number and task.is_integer()):
                raise ValueError(
                    f"{name} must have a task in column {column}, a whole number from 0 to "
                    f"{number - 1}, got {point[0].tolist()}"
                )
        return point[0].detach().clone()

    def probes(self, like: Tensor, num_points: int, seed: int) -> Tensor:
        """Contexts where models are checked: all of a finite set unless there are too many, a
        sample and two corners of a box; one context where nothing but the dimension is known, and
        none where not even that is.

        Args:
            like: Gives dtype and device.
            num_points: At most so many, or a few more.
            seed: Of the sample.

        Returns:
            ``n x d_z``.
        """
        if isinstance(self.domain, FiniteSet):
            few = self.domain.num_points <= num_points
            return self.domain.points if few else self.domain.sample(num_points, seed)
        if self.domain is not None:
            return torch.cat([self.domain.bounds, self.domain.sample(num_points, seed)])
        if self.dim is None:
            return like.new_zeros(0, 0)
        if not self.tasks:
            return like.new_zeros(1, self.dim)
        most = min(max(number for _, number in self.tasks), num_points)
        rows = like.new_zeros(most, self.dim)
        for column, number in self.tasks:
            rows[:, column] = torch.arange(most).to(like) % number
        return rows


def as_context_space(value: Domain | int | ContextSpace | None) -> ContextSpace | None:
    """A `ContextSpace` from a domain or the number of dimensions; None stays None: no contexts.

    Raises:
        ValueError: Something else, or a dimension less than 1.
    """
    if value is None or isinstance(value, ContextSpace):
        return value
    if isinstance(value, Box | FiniteSet):
        return ContextSpace(value)
    return ContextSpace(dim=whole_number(value, "context_domain", least=1))


def context_space_of(kernel: Kernel, action_dim: int) -> ContextSpace:
    """What a kernel on joint columns says of its contexts, which come after the actions.

    A `TaskKernel` or an `IndexKernel` on a column of the context makes it one of tasks. The number
    of columns is that of a part with ``ard_num_dims`` (or groups) that sees all of them, or the
    last column that any part names where all parts name theirs; otherwise it stays unknown.

    Args:
        kernel: Any GPyTorch kernel.
        action_dim: d, how many columns the actions have.

    Raises:
        ValueError: Parts that cannot be on the same columns, or no column left for the contexts.
    """
    action_dim = whole_number(action_dim, "action_dim", least=1)
    found = _Columns()
    found.visit(kernel, 0)
    num_columns = max(found.numbers, default=None)
    if len(found.numbers) > 1 or (num_columns is not None and max(found.named) >= num_columns):
        raise ValueError(
            "kernel must have parts for the same number of columns, got parts for "
            f"{sorted(found.numbers)} of them and for the columns {sorted(found.named)}"
        )
    if num_columns is not None and num_columns <= action_dim:
        raise ValueError(
            f"kernel must have columns for contexts after the {action_dim} of the actions, got one "
            f"on {num_columns}"
        )
    if num_columns is None and found.named and not found.sees_all:
        num_columns = max(found.named) + 1
    tasks = sorted((column - action_dim, number) for column, number in found.tasks.items())
    return ContextSpace(
        dim=None if num_columns is None or num_columns <= action_dim else num_columns - action_dim,
        tasks=tuple((column, number) for column, number in tasks if column >= 0),
    )


@dataclass
class _Columns:
    """What the parts of a kernel say of the joint columns.

    Args:
        numbers: Of columns, by the parts that see all of them and know how many there are.
        named: Columns that some part names.
        tasks: The number of tasks in a column.
        sees_all: Whether a part sees all columns, however many there are.
    """

    numbers: set[int] = field(default_factory=set)
    named: set[int] = field(default_factory=set)
    tasks: dict[int, int] = field(default_factory=dict)
    sees_all: bool = False

    def visit(self, kernel: Kernel, columns: Sequence[int] | int, taken: bool = False) -> None:
        """Looks at a part and what it is made of.

        Args:
            kernel: The part.
            columns: The joint columns it is given, or the first one, where it is given all from
                there on.
            taken: Whether its ``active_dims`` are already taken out of these.
        """
        if kernel.active_dims is not None and not taken:
            columns = _chosen(columns, kernel.active_dims.reshape(-1).tolist())
        if isinstance(kernel, ActionContextKernel):
            self.visit(kernel.action_kernel, _chosen(columns, kernel.action_columns))
            self.visit(kernel.context_kernel, _contexts(columns, kernel))
        elif isinstance(kernel, AdditiveKernel | ProductKernel):
            for part in kernel.kernels:
                self.visit(part, columns)
        elif isinstance(kernel, ScaleKernel):  # which takes over the columns of its base
            self.visit(kernel.base_kernel, columns, taken=True)
        else:
            self._note(kernel, columns)

    def _note(self, kernel: Kernel, columns: Sequence[int] | int) -> None:
        covariance = task_covariance(kernel)
        number = kernel.ard_num_dims if covariance is None else 1
        if isinstance(kernel, GroupKernel):
            number = kernel.masks.shape[-1]
        if isinstance(columns, int):
            if number is None:
                self.sees_all = True
                return
            columns = range(columns, columns + number)
            self.numbers.add(columns.stop)
        self.named.update(columns)
        if covariance is not None:
            most = covariance.shape[-1]
            for column in columns:
                self.tasks[column] = min(most, self.tasks.get(column, most))


def _chosen(columns: Sequence[int] | int, places: Sequence[int]) -> list[int]:
    """The joint columns that a part with these columns of its own sees."""
    if isinstance(columns, int):
        return [columns + place for place in places]
    if max(places) >= len(columns):
        raise ValueError(
            f"kernel must have parts on columns that there are, got one on {list(places)} of "
            f"{len(columns)} columns"
        )
    return [columns[place] for place in places]


def _contexts(columns: Sequence[int] | int, kernel: ActionContextKernel) -> Sequence[int] | int:
    if kernel.context_columns is not None:
        return _chosen(columns, kernel.context_columns)
    first = len(kernel.action_columns)
    return columns + first if isinstance(columns, int) else columns[first:]
