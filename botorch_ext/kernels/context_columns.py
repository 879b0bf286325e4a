"""The contexts that a kernel on joint columns implies."""

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
    """The context space that a kernel on joint columns implies; contexts come after the actions.

    A column of the context with a `TaskKernel` or an `IndexKernel` is a column of tasks. The number
    of columns is that of a part with ``ard_num_dims`` (or groups) that sees all columns; or, if all
    parts name their columns, the last column that a part names. Otherwise it is unknown.

    Args:
        kernel: Any GPyTorch kernel.
        action_dim: d, the number of columns of the actions.

    Raises:
        ValueError: If it is not a kernel, its parts cannot be on the same columns, or no column is
            left for the contexts.
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
            f"kernel must have columns for contexts after the {action_dim} columns of the actions, "
            f"got a kernel on {num_columns} columns"
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
    """The information of the parts of a kernel about the joint columns.

    Args:
        numbers: The numbers of columns according to the parts that see all columns and know their
            number.
        named: The columns that some part names.
        tasks: The number of tasks of each column of tasks.
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
