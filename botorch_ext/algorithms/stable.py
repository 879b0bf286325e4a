"""Robust optimisation: StableOpt, and its form for unknown hyperparameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.algorithms.arguments import (
    DEFAULT_DELTA,
    Common,
    published_width,
    refuse_unknown,
)
from botorch_ext.algorithms.unknown_hyperparameters import (
    MultiModel,
    Setting,
    elimination_width,
    of_strategy,
)
from botorch_ext.checks import one_number
from botorch_ext.domains import Domain
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.robust.box_balls import Norm
from botorch_ext.strategies.adaptive.multi_model import MultiModelOptions
from botorch_ext.strategies.adaptive.stable import StableStrategy
from botorch_ext.widths import SelfNormalized

Radius = float | Sequence[float] | Tensor


class _OneModel(Common, MultiModelOptions, total=False):
    pass


def stable_opt(
    domain: Domain,
    kernel: Kernel,
    *,
    noise_variance: float,
    radius: Radius,
    norm: Norm = "l2",
    **options: Unpack[_OneModel],
) -> StableStrategy:
    """StableOpt: the point whose worst case within reach is best (Bogunovic et al. 2018, algorithm
    1). The width is `SelfNormalized`.

    Args:
        options: The arguments all methods share, described with the package.
    """
    refuse_unknown(options, _OneModel)
    ridge = one_number(noise_variance, "noise_variance")
    models = CandidateModels(
        kernel, ridge, means=options.get("mean"), dtype=domain.dtype, device=domain.device
    )
    width = published_width(SelfNormalized, options)
    known = MultiModelOptions.__optional_keys__
    kept = {name: value for name, value in options.items() if name in known}
    return StableStrategy(domain, models, width, radius=radius, norm=norm, **kept)  # pyright: ignore


def he_stable_opt(
    domain: Domain,
    models: CandidateModels,
    *,
    noise_std: float,
    radius: Radius,
    norm: Norm = "l2",
    setting: Setting = "frequentist",
    misspecification: float = 0.0,
    a: float | None = None,
    b: float | None = None,
    **options: Unpack[MultiModel],
) -> StableStrategy:
    """HE-StableOpt: StableOpt over points and models; a model goes when its own predictions are
    refuted, optimistic or pessimistic ones (Ziomek et al. 2024, algorithm 2).

    Args:
        noise_std: R, the sub-Gaussian constant of the noise; the tests need it, whatever the width.
        setting: As for `he_gp_ucb`.
        misspecification: As for `he_gp_ucb`.
        a: As for `he_gp_ucb`.
        b: As for `he_gp_ucb`.
        options: The arguments all methods share, described with the package; ``width`` may be a
            sequence with one for each model.
    """
    misspecification = one_number(misspecification, "misspecification")
    return StableStrategy(
        domain,
        models,
        elimination_width(domain, noise_std, setting, misspecification, a, b, options),
        radius=radius,
        norm=norm,
        noise_std=noise_std,
        delta=options.get("delta", DEFAULT_DELTA),
        misspecification=misspecification,
        **of_strategy(options),
    )
