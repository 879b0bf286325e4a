"""Context columns: what a kernel on joint columns says of its contexts."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpytorch.kernels import Kernel

from botorch_ext.checks import whole_number
from botorch_ext.domains import ContextSpace
from botorch_ext.kernels.additive import GroupAdditiveKernel
from botorch_ext.kernels.checks import require_kernel
from botorch_ext.kernels.structure import Columns, leaves
from botorch_ext.kernels.tasks import task_covariance


def context_space_of(kernel: Kernel, action_dim: int) -> ContextSpace:
    """What a kernel on joint columns says of its contexts, which come after the actions.

    A `TaskKernel` or an `IndexKernel` on a column of the context makes it one of tasks. The number
    of columns is that of a part with ``ard_num_dims`` (or groups) that sees all of them, or the
    last column that any part names where all parts name theirs; otherwise it stays unknown.

    Args:
        kernel: Any GPyTorch kernel.
        action_dim: d, how many columns the actions have.

    Raises:
        ValueError: No kernel, parts that cannot be on the same columns, or no column left for the
            contexts.
    """
    require_kernel(kernel)
    action_dim = whole_number(action_dim, "action_dim", least=1)
    found = _Found()
    for part, columns in leaves(kernel):
        found.note(part, columns)
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
class _Found:
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

    def note(self, kernel: Kernel, columns: Columns) -> None:
        covariance = task_covariance(kernel)
        number = kernel.ard_num_dims if covariance is None else 1
        if isinstance(kernel, GroupAdditiveKernel):
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
