"""Candidate sets by name: grids, decompositions, draws, and one that grows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import torch
from botorch.models.gpytorch import GPyTorchModel
from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_ext.kernels import GroupAdditiveKernel
from botorch_ext.kernels.structure import with_lengthscale, with_period
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.decompositions import random_trees, set_partitions
from botorch_ext.models.kernel_variants import (
    GrowingFamily,
    checked_positive,
    default_growth,
    value_names,
)
from botorch_ext.models.posterior_samples import hyperparameter_draws
from botorch_ext.models.specification import (
    Candidate,
    candidate_list,
    group_name,
    mean_names,
)


class NamedSets(ABC):
    """The constructors of `CandidateModels`."""

    @classmethod
    @abstractmethod
    def _of(cls, candidates: list[Candidate], family: GrowingFamily | None = None) -> Self:
        """The set of these models; they are the first of a family where one is given."""

    @classmethod
    def lengthscales(
        cls,
        kernel: Kernel,
        values: Tensor | Sequence[float] | Sequence[Sequence[float]],
        noise_variance: float | Tensor | Sequence[float],
        **kwargs: Any,
    ) -> Self:
        """One kernel with several lengthscales.

        Args:
            kernel: Exactly one part of it has a lengthscale.
            values: m lengthscales in units of the inputs, or ``m x d``: one for each column.
            noise_variance: As for `CandidateModels`, and so are ``kwargs``.

        Raises:
            ValueError: A lengthscale that is not positive and finite or that the constraint of the
                kernel rules out, or no or several parts with a lengthscale.
        """
        tensor = _values(values, "values", kwargs)
        kernels = [with_lengthscale(kernel, value) for value in tensor]
        kwargs.setdefault("names", value_names("lengthscale", tensor.tolist()))
        candidates = candidate_list(kernels, noise_variance, **kwargs)
        if tensor.ndim == 1:
            pairs = zip(candidates, tensor.tolist(), strict=True)
            candidates = [replace(each, lengthscale=value) for each, value in pairs]
        return cls._of(candidates)

    @classmethod
    def periods(
        cls,
        kernel: Kernel,
        values: Tensor | Sequence[float],
        noise_variance: float | Tensor | Sequence[float],
        **kwargs: Any,
    ) -> Self:
        """One kernel with several periods.

        Args:
            kernel: Exactly one part of it is a `PeriodicKernel`.
            values: m periods in units of the inputs.
            noise_variance: As for `CandidateModels`, and so are ``kwargs``.

        Raises:
            ValueError: A period that is not positive and finite or that the constraint of the
                kernel rules out, or no or several periodic parts.
        """
        tensor = _numbers(values, "values", kwargs)
        kernels = [with_period(kernel, value) for value in tensor]
        kwargs.setdefault("names", value_names("period", tensor.tolist()))
        return cls._of(candidate_list(kernels, noise_variance, **kwargs))

    @classmethod
    def noise_variances(
        cls, kernel: Kernel, values: Tensor | Sequence[float], **kwargs: Any
    ) -> Self:
        """One kernel with several noise variances, in squared units of the observations; ``kwargs``
        as for `CandidateModels`."""
        tensor = _numbers(values, "values", kwargs)
        kwargs.setdefault("names", value_names("noise variance", tensor.tolist()))
        return cls._of(candidate_list(kernel, tensor, **kwargs))

    @classmethod
    def prior_means(
        cls,
        kernel: Kernel,
        means: Sequence[PriorMean | float | None],
        noise_variance: float | Tensor | Sequence[float],
        **kwargs: Any,
    ) -> Self:
        """One kernel with several prior means.

        Args:
            kernel: Of all models.
            means: As for `CandidateModels`; a number is a constant mean.
            noise_variance: As for `CandidateModels`, and so are ``kwargs``.
        """
        kwargs.setdefault("names", mean_names(means))
        return cls._of(candidate_list(kernel, noise_variance, list(means), **kwargs))

    @classmethod
    def additive(
        cls,
        kernel: Kernel,
        decompositions: Literal["all", "trees"] | Sequence[Sequence[Sequence[int]]],
        noise_variance: float | Tensor | Sequence[float],
        dim: int,
        num: int | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> Self:
        """Sums of a kernel over groups of columns, divided by the number of groups.

        Args:
            kernel: A stationary kernel on all columns (see `botorch_ext.kernels.AdditiveKernel`).
            decompositions: ``"all"`` partitions of the columns, ``"trees"``: the edges of random
                trees on the columns, or lists of groups of columns.
            noise_variance: As for `CandidateModels`, and so are ``kwargs``.
            dim: d, the number of columns.
            num: How many trees.
            seed: Of the trees.

        Raises:
            ValueError: More than 7 columns for ``"all"``, more trees than there are, ``num``
                without trees or trees without ``num``, or groups that are not possible.
        """
        if (num is None) == (decompositions == "trees"):
            raise ValueError(f'num must be given for "trees" and only for them, got {num}')
        if decompositions == "all":
            decompositions = set_partitions(dim)
        elif decompositions == "trees":
            decompositions = random_trees(dim, num or 0, seed)
        elif isinstance(decompositions, str):
            raise ValueError(
                f'decompositions must be "all", "trees" or a list, got {decompositions!r}'
            )
        kernels = [GroupAdditiveKernel(kernel, groups, dim) for groups in decompositions]
        kwargs.setdefault("names", [group_name(each.groups) for each in kernels])
        return cls._of(candidate_list(kernels, noise_variance, **kwargs))

    @classmethod
    def from_posterior_samples(
        cls,
        model: GPyTorchModel,
        num_models: int | None = None,
        seed: int = 0,
        conditioned: bool = True,
    ) -> Self:
        """One model for each draw of the hyperparameters of a BoTorch model, without data: kernel,
        noise variance and constant prior mean.

        Everything is in the units of the untransformed inputs and observations: `Normalize` and
        `InputStandardize` stretch the lengthscales, `Standardize` the output scale, the noise and
        the prior mean. The data of ``model`` stay behind; a strategy takes them as its initial
        ones.

        Args:
            model: A fully Bayesian model fitted by MCMC, such as `SaasFullyBayesianSingleTaskGP`,
                or a model with priors on its hyperparameters, such as `SingleTaskGP`, which are
                then drawn from these priors (given their constraints) and resampled by the marginal
                likelihood of its data, whatever it was fitted to: some draws may come twice.
            num_models: Draws to use: of MCMC draws, evenly thinned, all if None; of others 16 if
                None.
            seed: Of the draws from priors.
            conditioned: False for draws from the priors alone, as a prior over models should be
                that is told the same data again.

        Warns:
            PriorDrawsWarning: A model with priors and without data; or so few draws bear its data
                that those used are worth less than a quarter of their number.

        Raises:
            ValueError: A model that is not fitted, without draws and priors, with several outputs,
                a mean that is not constant, noise that differs between points, other transforms
                (or input transforms with kernels other than RBF and Matern), or fewer draws than
                ``num_models``.
        """
        draws = hyperparameter_draws(model, num_models, seed, conditioned)
        kernels, noise, constants = zip(*draws, strict=True)
        candidates = candidate_list(
            list(kernels),
            torch.stack(noise),
            [float(constant) for constant in constants],
            names=[f"draw {i}" for i in range(len(draws))],
            dtype=noise[0].dtype,
            device=noise[0].device,
        )
        return cls._of(candidates)

    @classmethod
    def growing(
        cls,
        kernel: Kernel,
        lengthscale_0: float,
        noise_variance: float,
        dim: int,
        growth: Callable[[int], float] = default_growth,
        mean: PriorMean | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> Self:
        """Lengthscales l_i = lengthscale_0 exp(-i / d), Matern exp(-i / (d + 2 nu)), of which
        `grow` adds smaller and smaller ones; the set starts with i = 0.

        Source: length-scale balancing, arXiv 2410.10384.

        Args:
            kernel: Its only part with a lengthscale is an RBF or a Matern kernel.
            lengthscale_0: The largest, in units of the inputs.
            noise_variance: Of all models.
            dim: d.
            growth: g: ``grow(t)`` adds the l_i above lengthscale_0 / g(t); t^0.9 by default.
            mean: The prior mean of all models.
            dtype: float64 unless asked otherwise.
            device: The device of everything.

        Raises:
            ValueError: Another kernel, or a lengthscale that is not positive and finite.
        """
        (first,) = candidate_list(kernel, noise_variance, mean, dtype=dtype, device=device)
        family = GrowingFamily(
            first.kernel, lengthscale_0, first.noise_variance, dim, growth, first.mean
        )
        return cls._of(family.candidates(0, None), family)


def _numbers(values: Any, name: str, kwargs: dict[str, Any]) -> Tensor:
    tensor = _values(values, name, kwargs)
    if tensor.ndim != 1:
        raise ValueError(f"{name} must be one number each, got shape {tuple(tensor.shape)}")
    return tensor


def _values(values: Any, name: str, kwargs: dict[str, Any]) -> Tensor:
    dtype, device = kwargs.get("dtype", torch.float64), kwargs.get("device", "cpu")
    return checked_positive(values, name, dtype, device)
