"""Parts of a set of models: those of one form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

from botorch_ext.kernels.batching import same_form
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.models.specification import Candidate

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
