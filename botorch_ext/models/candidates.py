"""CandidateModels: the GP models among which a strategy chooses."""

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
from botorch_ext.models.checks import PriorMean, negative_mean
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
    """Finitely many GP models of the same data, such as candidates for unknown hyperparameters.

    Models whose kernels have the same form are computed together as one batched `KernelGP`, other
    models one after the other. Kernels have the same form if they have the same structure of
    GPyTorch classes and the same settings (``nu``, ``ard_num_dims``, ``active_dims``, constraints)
    and differ only in the values of their parameters. Kernels of classes unknown to this library
    are never batched.

    ``kernels``, ``noise_variance`` and ``means`` may be a single value, which all models share, or
    a sequence with one entry for each model.

    Memory: m models of n observations take m n^2 numbers, up to 1.6 times as many with their
    reserve for growth; on N candidates m n N more, up to 1.5 times as many with the reserve. While
    they grow they take 2.6 m n^2 numbers for a moment, and 2.5 m n N on candidates. On a GPU a
    search over a box copies a quarter of the models; the rest of the search takes a few GiB,
    however many models there are. For example, 512 models of 3500 observations in float64 take
    50 GB, 63 GB during a search, and 129 GB for a moment when they grow.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import MaternKernel
        >>> models = bx.CandidateModels.lengthscales(
        ...     MaternKernel(nu=2.5), [0.5, 1.0, 2.0], noise_variance=0.01
        ... )
        >>> models.names
        ['lengthscale 0.5', 'lengthscale 1', 'lengthscale 2']
        >>> models.add([[0.0], [1.0]], [0.3, 0.8])
        >>> mean, std = models.mean_and_std(models.noise_variance.new_tensor([[0.5]]))
        >>> mean.shape
        torch.Size([3, 1])

    Args:
        kernels: GPyTorch kernels; they are copied and frozen. A kernel of batch shape ``(b,)``
            counts as b kernels.
        noise_variance: The ridge lambda > 0 of each model, in squared units of the observations.
        means: Prior means: GPyTorch `Mean` without batch dimensions, callables ``... x n x d`` to
            ``... x n``, or numbers; None for zero.
        names: One name for each model; if None they are made from what differs between the models.
        dtype: float64 unless given.
        device: The device of everything.

    Raises:
        ValueError: If there is no model, the numbers of entries do not match, a name occurs twice,
            or a noise variance is not positive and finite.
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
        """Make a set of one model, with its data and transforms.

        Args:
            model: The model, without batch dimensions; the set holds this object, not a copy.
            name: The name of the model in reports.

        Returns:
            The set.

        Raises:
            ValueError: If the model is batched.
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
        """Make one model for each lengthscale of a kernel.

        Args:
            kernel: A kernel of which exactly one part has a lengthscale.
            values: The lengthscales in units of the inputs: ``m``, or ``m x d`` with one for each
                column.
            noise_variance: The ridge lambda > 0, one for all models or one for each.
            **kwargs: ``names``, ``means``, ``dtype`` and ``device`` of `CandidateModels`.

        Returns:
            The m models.

        Raises:
            ValueError: If a lengthscale is not positive and finite or violates the constraint of
                the kernel, or not exactly one part of the kernel has a lengthscale.
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
        """Make one model for each period of a periodic kernel.

        Args:
            kernel: A kernel of which exactly one part is a `PeriodicKernel`.
            values: The periods in units of the inputs, ``m``.
            noise_variance: The ridge lambda > 0, one for all models or one for each.
            **kwargs: ``names``, ``means``, ``dtype`` and ``device`` of `CandidateModels`.

        Returns:
            The m models.

        Raises:
            ValueError: If a period is not positive and finite or violates the constraint of the
                kernel, or not exactly one part of the kernel is periodic.
        """
        tensor = _numbers(values, "values", kwargs)
        kernels = [with_period(kernel, value) for value in tensor]
        kwargs.setdefault("names", value_names("period", tensor.tolist()))
        return cls._of(candidate_list(kernels, noise_variance, **kwargs))

    @classmethod
    def noise_variances(
        cls, kernel: Kernel, values: Tensor | Sequence[float], **kwargs: Any
    ) -> Self:
        """Make one model for each noise variance.

        Args:
            kernel: The kernel of all models.
            values: The noise variances in squared units of the observations, ``m``.
            **kwargs: ``names``, ``means``, ``dtype`` and ``device`` of `CandidateModels`.

        Returns:
            The m models.

        Raises:
            ValueError: If a noise variance is not positive and finite.
        """
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
        """Make one model for each prior mean.

        Args:
            kernel: The kernel of all models.
            means: The prior means, as for `CandidateModels`; a number is a constant mean.
            noise_variance: The ridge lambda > 0, one for all models or one for each.
            **kwargs: ``names``, ``dtype`` and ``device`` of `CandidateModels`.

        Returns:
            The models, one for each mean.
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
        """Make one additive model for each decomposition of the columns into groups.

        The kernel of a model is the sum of a kernel over the groups, divided by their number.

        Args:
            kernel: A stationary kernel on all columns (see `botorch_ext.kernels.AdditiveKernel`).
            decompositions: ``"all"`` for all partitions of the columns; ``"trees"`` for random
                trees on the columns, whose edges are the groups; or a list of decompositions, each
                a list of groups of columns.
            noise_variance: The ridge lambda > 0, one for all models or one for each.
            dim: d, the number of columns.
            num: The number of trees; only for ``"trees"``.
            seed: The seed of the trees.
            **kwargs: ``names``, ``means``, ``dtype`` and ``device`` of `CandidateModels`.

        Returns:
            The models, one for each decomposition.

        Raises:
            ValueError: If there are more than 7 columns for ``"all"``, fewer different trees than
                ``num``, ``num`` without ``"trees"`` or the reverse, or groups that are not
                possible.
        """
        if (num is None) == (decompositions == "trees"):
            raise ValueError(
                f'num must be given if decompositions are "trees", and only then, got {num} with '
                f"{decompositions!r}"
            )
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
    def from_posterior_samples(cls, model: GPyTorchModel, num_models: int | None = None) -> Self:
        """Make one model for each hyperparameter sample of a fully Bayesian BoTorch model.

        Each model has the kernel, noise variance and constant prior mean of its sample, in the
        units of the untransformed inputs and observations: `Normalize` and `InputStandardize`
        rescale the lengthscales; `Standardize` rescales the output scale, the noise and the prior
        mean. The models have no data; pass the data of ``model`` to a strategy as its initial data.

        Args:
            model: A fully Bayesian model fitted by MCMC, such as `SaasFullyBayesianSingleTaskGP`.
            num_models: The number of samples, which are thinned evenly. None: all of them.

        Returns:
            The models, one for each sample.

        Raises:
            ValueError: If the model is not fitted, has no samples, has several outputs, a mean that
                is not constant, noise that differs between points or other transforms (or input
                transforms with kernels other than RBF and Matern), or has fewer samples than
                ``num_models``.
        """
        draws = hyperparameter_draws(model, num_models)
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
        """Make a set of lengthscales to which `grow` adds smaller and smaller ones.

        The lengthscales are l_i = lengthscale_0 exp(-i / d), i = 0, 1, ...; for a Matern kernel
        they are l_i = lengthscale_0 exp(-i / (d + 2 nu)). The set starts with l_0 alone.

        Source: length-scale balancing, arXiv 2410.10384.

        Args:
            kernel: A kernel whose only part with a lengthscale is an RBF or a Matern kernel.
            lengthscale_0: The largest lengthscale, in units of the inputs.
            noise_variance: The noise variance of all models, in squared units of the observations.
            dim: d, the number of columns.
            growth: The function g: ``grow(t)`` adds the l_i above lengthscale_0 / g(t); by default
                g(t) = t^0.9.
            mean: The prior mean of all models; None for zero.
            dtype: float64 unless given.
            device: The device of everything.

        Returns:
            The set, with its first model.

        Raises:
            ValueError: If it is another kernel, or a lengthscale is not positive and finite.
        """
        (first,) = candidate_list(kernel, noise_variance, mean, dtype=dtype, device=device)
        family = GrowingFamily(
            first.kernel, lengthscale_0, first.noise_variance, dim, growth, first.mean
        )
        return cls._of(family.candidates(0, None), family)

    @torch.no_grad()
    def with_nugget(self, std: float) -> Self:
        """Add to each model a twin whose kernel has a nugget: k(x, x') + s^2 1{x = x'}.

        The nugget belongs to f and not to the noise, so f may deviate from the model by about s at
        every point. This makes misspecification one more candidate, for `credible_ucb`. All
        measurements used s = B/4.

        A twin takes the width of its plain model as long as that model is in the set (the pending
        trials of ``inflate`` count as the twin's own). Away from evaluated points the nugget adds
        only variance. On a box the search therefore checks the best evaluated points as well, since
        no gradient ascent finds them. The check k(x, x) <= 1 applies only to the plain models.

        The nugget is an option, not a guarantee. White perturbations, on 500 points, cost 2 to 5.5
        times the regret of GP-UCB. If misleading points have copies that mislead in the same way,
        the method stays locked out of the best points.

        Args:
            std: s > 0, in units of f.

        Returns:
            A new set with the models and their twins.

        Raises:
            ValueError: If ``std`` is not positive and finite; or if the models have data or
                transforms, or belong to a growing set.
        """
        value = one_number(std, "std")
        if not 0 < value < math.inf:
            raise ValueError(f"std must be positive and finite, got {value}")
        if self.grows or self.num_observations or self.parts[0].model.has_transforms:
            raise ValueError(
                "models must have no data, no transforms and not grow: with_nugget adds twins only "
                "to such a set"
            )
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

    @property
    def has_values(self) -> bool:
        """Whether the models have prior means or data, which have the sign of f."""
        return self.num_observations > 0 or any(each.mean is not None for each in self._entries)

    def negated(self) -> Self:
        """The models of -f: with the negative of the prior means.

        Raises:
            ValueError: If the models have data, or prior means and transforms.
        """
        if not self.has_values:
            return self
        given = self.to_arguments()
        given["means"] = list(map(negative_mean, given["means"]))
        return self.of_arguments(**given)

    def to_arguments(self) -> dict[str, Any]:
        """The arguments of `of_arguments`, by name.

        Raises:
            ValueError: If the models have data or transforms.
        """
        if self.num_observations or any(part.model.has_transforms for part in self.parts):
            raise ValueError("models must have no data and no transforms")
        means = {id(entry.mean): entry.mean for entry in self._entries}
        places = {each: i for i, each in enumerate(means)}
        return {
            "names": [entry.name for entry in self._entries],
            "kernels": [entry.kernel for entry in self._entries],
            "noise_variances": torch.stack([entry.noise_variance for entry in self._entries]),
            "means": list(means.values()),
            "mean_of": [places[id(entry.mean)] for entry in self._entries],
            "lengthscales": [entry.lengthscale for entry in self._entries],
            "twin_of": [entry.twin_of for entry in self._entries],
            "family": self._family,
        }

    @classmethod
    def of_arguments(
        cls,
        *,
        names: Sequence[str],
        kernels: Sequence[Kernel],
        noise_variances: Tensor,
        means: Sequence[PriorMean | None],
        mean_of: Sequence[int],
        lengthscales: Sequence[float | None],
        twin_of: Sequence[str | None],
        family: GrowingFamily | None = None,
    ) -> Self:
        """Make a set again.

        Args:
            names: The name of each model.
            kernels: The kernel of each model.
            noise_variances: The noise variance of each model, ``m``.
            means: The different prior means, which models share.
            mean_of: The position of the mean of each model.
            lengthscales: The lengthscale of each model, if it was made for one.
            twin_of: The name of the model that a model is the twin of.
            family: The family whose further models may join.

        Returns:
            The set.

        Raises:
            ValueError: If the arguments do not fit each other.
        """
        shared = [means[i] for i in mean_of]
        found = candidate_list(
            list(kernels), noise_variances, shared, list(names), noise_variances.dtype
        )
        rows = zip(found, lengthscales, twin_of, strict=True)
        entries = [replace(each, lengthscale=number, twin_of=twin) for each, number, twin in rows]
        single = {each.name for each in entries if each.twin_of is None}
        if not single.issuperset(each.twin_of for each in entries if each.twin_of is not None):
            raise ValueError("twin_of must have names of models that are no twins")
        if not all(each.lengthscale is None or 0 < each.lengthscale < math.inf for each in entries):
            raise ValueError("lengthscales must be positive and finite")
        if family is not None:
            if len(means) > 1 or None in lengthscales:
                raise ValueError("models of a family must have one mean, and a lengthscale each")
            (first,) = candidate_list(
                family.kernel, family.noise_variance, dtype=noise_variances.dtype
            )
            own = {"kernel": first.kernel, "noise_variance": first.noise_variance}
            family = replace(family, **own, mean=entries[0].mean)
        return cls._of(entries, family)

    def _model(self, kernel: Kernel, noise_variance: Tensor, mean: PriorMean | None) -> KernelGP:
        return KernelGP(
            kernel,
            noise_variance,
            mean=mean,
            dtype=noise_variance.dtype,
            device=noise_variance.device,
        )

    def mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The pointwise posterior mean and standard deviation of every model.

        Args:
            X: Points, ``n x d``.

        Returns:
            The means and the standard deviations, ``m x n`` each, differentiable in ``X``.
        """
        moments = [map(part.each, part.model.mean_and_std(X)) for part in self.parts]
        mean, std = (self.in_order(list(values)) for values in zip(*moments, strict=True))
        return mean, std

    def weight_norms(self, X: Tensor) -> Tensor:
        """The sums of the absolute weights of the known observations in the mean of every model.

        Args:
            X: Points, ``n x d``.

        Returns:
            The sums, ``m x n``, differentiable in ``X``; see `KernelGP.weight_norms`.
        """
        return self._gather(lambda model: model.weight_norms(model.transform_inputs(X)))

    def means(self, position: int, X: Tensor) -> Tensor:
        """The posterior means of a single model, O(n) per point for n observations.

        Args:
            position: The position of the model in the set.
            X: Points, ``n x d``.

        Returns:
            The means, ``n``.
        """
        return self.single(position).mean_at(X)

    @torch.no_grad()
    def moments_without(
        self, position: int, rows: Sequence[int], x: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior of one model at one point without some of its observations.

        Args:
            position: The position of the model in the set.
            rows: The rows of the observations to leave out.
            x: The point, ``d``.

        Returns:
            The mean, the standard deviation and the information gain of the other rows, all 0-dim.

        Raises:
            ValueError: If the position or a row does not exist, or ``x`` has the wrong shape.
        """
        rows = self._checked_rows(rows)
        model = self.single(position)
        x = as_points(x, None, model.noise_variance, "x", look=False)[:1]
        return model.moments_without(rows, x)

    @torch.no_grad()
    def on(self, points: Tensor, shard: Shard | None = None) -> FiniteCandidates:
        """The models with their data, evaluated and kept up to date on finitely many points.

        Args:
            points: The points, ``N x d``.
            shard: The part of the points that this process keeps; None for all points.

        Returns:
            The posteriors of all models on the points.
        """
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
        """The largest prior variance k(x, x) of each model over some points.

        Args:
            X: Points, ``n x d``.

        Returns:
            The largest variances, ``m``; a twin has that of its plain model.
        """
        return self._of_plain(self._gather(lambda model: model.largest_variance(X)))

    @torch.no_grad()
    def require_takes(self, like: Tensor) -> None:
        """Check that all models take points like these and have finite prior means there.

        Args:
            like: Points, ``n x d``.

        Raises:
            ValueError: If a model does not; the message names the model.
        """
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
                    raise ValueError(f"model {self.names[position]!r}: {error}") from error

    def add(self, X: Tensor, Y: Tensor | None, relative_noise: Tensor | None = None) -> None:
        """Add observations to all models in place, O(n^2) per observation and model.

        Args:
            X: Points, ``n x d``.
            Y: Observations, ``n x 1`` or ``n``; None for pending points, which reduce every
                standard deviation and leave the means alone.
            relative_noise: The noise variances of the observations in units of those of each model,
                ``n``; None for ones.

        Raises:
            ValueError: If a shape, dtype or device is wrong, an entry is not finite, or a model
                does not take such points.
        """
        if not self.dim:
            # Before any state changes: one part may take points that another does not.
            self.require_takes(as_points(X, None, self.parts[0].model.noise_variance))
        super().add(X, Y, relative_noise)


def _numbers(values: Any, name: str, kwargs: dict[str, Any]) -> Tensor:
    tensor = _values(values, name, kwargs)
    if tensor.ndim != 1:
        raise ValueError(
            f"{name} must be one number for each model, got shape {tuple(tensor.shape)}"
        )
    return tensor


def _values(values: Any, name: str, kwargs: dict[str, Any]) -> Tensor:
    dtype, device = kwargs.get("dtype", torch.float64), kwargs.get("device", "cpu")
    return checked_positive(values, name, dtype, device)
