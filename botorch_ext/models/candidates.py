"""Candidates, the models that a strategy chooses from, and the set of one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import torch
from botorch.models.gpytorch import GPyTorchModel
from gpytorch.kernels import AdditiveKernel, Kernel
from torch import Tensor

from botorch_ext.checks import one_number
from botorch_ext.domains import as_points
from botorch_ext.domains.shards import Shard
from botorch_ext.kernels import GroupAdditiveKernel, NuggetKernel
from botorch_ext.kernels.structure import plain_kernel, with_lengthscale, with_period
from botorch_ext.models.batches import ModelParts, Part
from botorch_ext.models.checks import PriorMean
from botorch_ext.models.decompositions import random_trees, set_partitions
from botorch_ext.models.finite import FinitePosterior
from botorch_ext.models.finite_models import FiniteCandidates
from botorch_ext.models.kernel_gp import KernelGP
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


class CandidateModels(ModelParts[KernelGP]):
    """Finitely many GP models of the same data: those of one form as one batched `KernelGP`, others
    side by side.

    Kernels of one form have the same structure of GPyTorch classes and the same settings (``nu``,
    ``ard_num_dims``, ``active_dims``, constraints) and differ in the values of their parameters.
    Kernels of classes unknown to this library are never batched, only put side by side.

    Args:
        kernels: GPyTorch kernels; they are copied and frozen. A kernel of batch shape ``(b,)``
            counts as b kernels.
        noise_variance: The ridge lambda > 0 of each model.
        means: Prior means: GPyTorch `Mean` without batch dimensions, callables ``... x n x d`` to
            ``... x n``, or numbers; None is zero.
        names: One for each model; made up if None.
        dtype: float64 unless asked otherwise.
        device: The device of everything.

    ``kernels``, ``noise_variance`` and ``means`` are one thing each or a sequence; what there is
    only one of is shared by all models.

    m models of n observations are m n^2 numbers, and up to 1.6 times as many with the room they
    have to grow; on N candidates m n N more, up to 1.5 times as many with that room. While they
    grow there are 2.6 m n^2 for a moment, and 2.5 m n N on candidates. On a GPU a search over a box
    copies a quarter of the models; what it evaluates besides takes some GiB there, however many
    models there are. So 512 models of 3500 observations in float64 take 50 GB, 63 GB in a search,
    and 129 GB for a moment when the room is used up.

    Raises:
        ValueError: No model, numbers of entries that do not match, a name that occurs twice, or a
            noise variance that is not positive and finite.
    """

    @torch.no_grad()
    def __init__(
        self,
        kernels: Kernel | Sequence[Kernel],
        noise_variance: float | Tensor | Sequence[float],
        means: PriorMean | float | Sequence[PriorMean | float | None] | None = None,
        names: Sequence[str] | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        self._build(candidate_list(kernels, noise_variance, means, names, dtype, device))

    @classmethod
    def of(cls, model: KernelGP, name: str = "model") -> Self:
        """The set of one model, which is this very `KernelGP`, with its data and transforms.

        Args:
            model: Without batch dimensions; it is not copied.
            name: What reports call it.

        Raises:
            ValueError: A batched model.
        """
        if model.batch_shape:
            raise ValueError(
                f"model must not be batched, got batch shape {tuple(model.batch_shape)}"
            )
        new = cls.__new__(cls)
        new._entries = [Candidate(name, model.kernel, model.noise_variance, model.mean)]
        new.parts = [Part(model, [0])]
        new._index()
        return new

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

    @torch.no_grad()
    def with_nugget(self, std: float) -> Self:
        """These models, and of each a twin with the kernel k(x, x') + s^2 1{x = x'}: the nugget
        belongs to f, not to the noise, so that f may be off by about s at every point.

        Misspecification as one more candidate, for `credible_ucb`: B/4 was s in every measurement.
        A twin's width is that of its plain model while that is there (the pending trials of
        ``inflate`` count as its own). Elsewhere than at evaluated points the nugget adds nothing
        but variance; on a box the best of those are looked at besides, since no ascent finds one.
        Whether k(x, x) <= 1 is asked of the plain models alone.

        It is an option, not a guarantee. Perturbations that are white, on 500 points, cost 2 to 5.5
        times the regret of GP-UCB, and where points that mislead have copies which mislead alike,
        the play stays locked out of the best ones.

        Args:
            std: s > 0, in units of f.

        Raises:
            ValueError: A number that is not positive and finite; or models that have data or
                transforms, or of a set that grows.
        """
        value = one_number(std, "std")
        if not 0 < value < math.inf:
            raise ValueError(f"std must be positive and finite, got {value}")
        if self.grows or self.num_observations or self.parts[0].model.has_transforms:
            raise ValueError("models must have no data, no transforms and not grow, to have twins")
        twins = [
            replace(
                entry,
                name=f"{entry.name}, nugget {value:.4g}",
                kernel=plain_kernel(
                    AdditiveKernel(entry.kernel, NuggetKernel(value**2)), entry.noise_variance
                ),
                lengthscale=None,
                twin_of=entry.twin_of or entry.name,
            )
            for entry in self._entries
        ]
        return self._of([*self._entries, *twins])

    @classmethod
    @torch.no_grad()
    def _of(cls, candidates: list[Candidate], family: GrowingFamily | None = None) -> Self:
        new = cls.__new__(cls)
        new._build(candidates)
        if family is not None:
            new._family, new._num_grown = family, len(candidates)
        return new

    def _model(self, kernel: Kernel, noise_variance: Tensor, mean: PriorMean | None) -> KernelGP:
        return KernelGP(
            kernel,
            noise_variance,
            mean=mean,
            dtype=noise_variance.dtype,
            device=noise_variance.device,
        )

    def mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Pointwise posterior mean and standard deviation of every model.

        Args:
            X: ``n x d``.

        Returns:
            Two ``m x n``-dim tensors, differentiable in ``X``.
        """
        moments = [map(part.each, part.model.mean_and_std(X)) for part in self.parts]
        mean, std = (self._in_order(list(values)) for values in zip(*moments, strict=True))
        return mean, std

    def means(self, position: int, X: Tensor) -> Tensor:
        """The posterior means of one model alone at ``n x d`` points, O(n) each: ``(n,)``."""
        return self.single(position).mean_at(X)

    @torch.no_grad()
    def moments_without(
        self, position: int, rows: Sequence[int], x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior of one model at one point if some rows were not there.

        Args:
            position: Of the model.
            rows: The rows to leave out.
            x: ``d``.

        Returns:
            Mean, standard deviation and the information gain of the other rows, all 0-dim.

        Raises:
            ValueError: A position or a row that does not exist, or a wrong shape of ``x``.
        """
        rows = self._checked_rows(rows)
        model = self.single(position)
        x = as_points(x, None, model.noise_variance, "x")[:1]
        return model.moments_without(rows, x)

    @torch.no_grad()
    def on(self, points: Tensor, shard: Shard | None = None) -> FiniteCandidates:
        """The models with their data on N points, ``N x d``, or on those of a shard."""
        finite = FiniteCandidates(
            list(self._entries),
            points,
            [
                Part(FinitePosterior.from_model(p.model, points, shard), list(p.positions))
                for p in self.parts
            ],
            shard,
        )
        finite._family, finite._num_grown = self._family, self._num_grown
        return finite

    @torch.no_grad()
    def largest_variances(self, X: Tensor) -> Tensor:
        """The largest prior variance k(x, x) of each model over ``n x d`` points, ``(m,)``; of a
        twin that of its plain model."""
        return self._of_plain(self._gather(lambda model: model.largest_variance(X)))

    @torch.no_grad()
    def require_takes(self, like: Tensor) -> None:
        """A ValueError naming the model unless all models take points like these, ``n x d``, and
        have finite prior means at all of them."""
        checked: set[int] = set()
        for part in self.parts:
            for i, position in enumerate(part.positions):
                mean = self._entries[position].mean
                if i and id(mean) in checked:
                    continue
                checked.add(id(mean))
                try:
                    self.single(position).require_takes(like)
                except ValueError as error:
                    raise ValueError(f"of model {self.names[position]!r}, {error}") from error

    def add(self, X: Tensor, Y: Tensor | None) -> None:
        """As for one `KernelGP`, in all models: see `ModelParts.add`."""
        if not self.dim:
            # Before any state changes: one part may take points that another does not.
            self.require_takes(as_points(X, None, self.parts[0].model.noise_variance))
        super().add(X, Y)


def _numbers(values: Any, name: str, kwargs: dict[str, Any]) -> Tensor:
    tensor = _values(values, name, kwargs)
    if tensor.ndim != 1:
        raise ValueError(f"{name} must be one number each, got shape {tuple(tensor.shape)}")
    return tensor


def _values(values: Any, name: str, kwargs: dict[str, Any]) -> Tensor:
    dtype, device = kwargs.get("dtype", torch.float64), kwargs.get("device", "cpu")
    return checked_positive(values, name, dtype, device)
