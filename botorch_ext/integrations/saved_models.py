"""Forms of candidate models: columns of a table, with each prior mean once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor, nn

from botorch_ext.integrations.saved_forms import Form
from botorch_ext.models import CandidateModels
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.kernel_variants import GrowingFamily
from botorch_ext.models.specification import Candidate


def forms_of_models() -> Iterator[Form]:
    """Of sets of models, and of the families by which they grow."""
    family = Form.of_fields(GrowingFamily)
    # Its mean is that of the models.
    own = {name: hint for name, hint in family.parts.items() if name != "mean"}
    yield Form.of_attributes(GrowingFamily, own)
    yield Form(
        CandidateModels,
        "CandidateModels",
        {
            "names": list[str],
            "kernels": list[Kernel],
            "noise_variances": list[Tensor],
            "means": list[PriorMean | None],
            "mean_of": list[int],
            "lengthscales": list[float | None],
            "twin_of": list[str | None],
            "family": GrowingFamily | None,
        },
        _taken,
        _made,
    )


def _taken(models: CandidateModels) -> dict[str, Any]:
    if models.num_observations or any(part.model.has_transforms for part in models.parts):
        raise ValueError("models must have no data and no transforms")
    entries, family = models._entries, models._family
    # What is one object is shared by the models of a batch.
    means = {id(entry.mean): entry.mean for entry in entries}
    if family is not None and list(means) != [id(family.mean)]:
        raise ValueError("models of a family must have its mean")
    return {
        "names": [entry.name for entry in entries],
        "kernels": [entry.kernel for entry in entries],
        "noise_variances": [entry.noise_variance for entry in entries],
        "means": list(means.values()),
        "mean_of": [list(means).index(id(entry.mean)) for entry in entries],
        "lengthscales": [entry.lengthscale for entry in entries],
        "twin_of": [entry.twin_of for entry in entries],
        "family": family,
    }


def _made(
    means: list[PriorMean | None],
    mean_of: list[int],
    family: GrowingFamily | None,
    **columns: list[Any],
) -> CandidateModels:
    names, twin_of = columns["names"], columns["twin_of"]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"names must be different from each other, got {len(names)} of them")
    if any(len(column) != len(names) for column in (mean_of, *columns.values())):
        raise ValueError(f"each column must have {len(names)} entries, as names has")
    if sorted(set(mean_of)) != list(range(len(means))):
        raise ValueError(f"mean_of must have all numbers below {len(means)}, those of means")
    plain = {name for name, twin in zip(names, twin_of, strict=True) if twin is None}
    if not plain.issuperset(twin for twin in twin_of if twin is not None):
        raise ValueError("twin_of must have names of models that are no twins")
    if not all(value is None or 0 < value < math.inf for value in columns["lengthscales"]):
        raise ValueError("lengthscales must be positive and finite")
    noise = columns["noise_variances"]
    parts = (*columns["kernels"], *means)
    if family is not None:
        noise, parts = [*noise, family.noise_variance], (*parts, family.kernel)
        if len(means) > 1 or None in columns["lengthscales"]:
            raise ValueError("models of a family must have one mean, and a lengthscale each")
        family = replace(family, mean=means[0])
    _require_plain(noise, [part for part in parts if isinstance(part, nn.Module)])
    rows = zip(
        names,
        columns["kernels"],
        columns["noise_variances"],
        (means[i] for i in mean_of),
        columns["lengthscales"],
        twin_of,
        strict=True,
    )
    return CandidateModels._of([Candidate(*row) for row in rows], family)


def _require_plain(noise_variances: list[Tensor], modules: list[Any]) -> None:
    """A ValueError unless numbers are those of models without batch dimensions, of one dtype."""
    dtype = noise_variances[0].dtype
    for value in noise_variances:
        if value.ndim or dtype not in (torch.float64, torch.float32) or not 0 < value < math.inf:
            raise ValueError(f"noise_variances must be positive and finite, got {dtype}")
    held = [tensor.dtype for module in modules for tensor in module.parameters()]
    if {dtype, *held, *(value.dtype for value in noise_variances)} != {dtype}:
        raise ValueError(f"models must have one dtype, got {dtype} and others")
    for module in modules:
        if isinstance(module, Kernel) and module.batch_shape:
            raise ValueError(f"kernels must not be batched, got {tuple(module.batch_shape)}")
