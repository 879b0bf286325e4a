"""KernelGP: an exact Gaussian process with a fixed kernel, grown one observation at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.gpytorch import GPyTorchModel, MultiTaskGPyTorchModel
from botorch.models.model import FantasizeMixin, Model
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform, Standardize
from botorch.posteriors import GPyTorchPosterior, Posterior
from gpytorch import settings
from gpytorch.constraints import Positive
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.models import ExactGP
from linear_operator import to_linear_operator
from linear_operator.operators import DiagLinearOperator, MatmulLinearOperator
from torch import Tensor

from botorch_ext.domains import require_same_kind
from botorch_ext.domains.points import PointsLike, checked_like, require_finite
from botorch_ext.kernels.checks import require_kernel
from botorch_ext.kernels.frozen import KernelFunction
from botorch_ext.kernels.frozen.freezing import composed
from botorch_ext.models.checks import (
    PriorMean,
    checked_inputs,
    checked_noise_of,
    checked_noise_variance,
    checked_relative_noise,
    checked_values,
    frozen_mean,
    negative_mean,
    require_transform,
    transformed,
)
from botorch_ext.models.cholesky import GrowingCholesky
from botorch_ext.models.downdate import moments_without
from botorch_ext.models.posterior import GrowingPosterior
from botorch_ext.models.stacked_means import selected_mean

# A joint posterior over more points than this keeps its covariance as a lazy operator.
_LAZY_COVARIANCE = 512


class KernelGP(GrowingPosterior, Model, FantasizeMixin):
    """An exact GP with a fixed kernel and noise variance; adding an observation takes O(n^2).

    The posterior is ``mean = k' (K + lambda I)^-1 y`` and ``std^2 = k(x, x) - k' (K + lambda I)^-1
    k``, around the prior mean if there is one. Leading batch dimensions of the kernel or of the
    noise variance stand for several models of the same data, with one batched factorisation.

    As in BoTorch, ``posterior`` takes ``t-batch x q x d`` and broadcasts the t-batch against the
    batch shape of the model. To evaluate every model at the same points, pass
    ``t-batch x 1 x q x d``.

    Example:
        >>> import botorch_ext as bx
        >>> from gpytorch.kernels import RBFKernel
        >>> model = bx.KernelGP(RBFKernel(), noise_variance=0.01)
        >>> model.add([[0.0], [1.0]], [0.3, 0.8])
        >>> mean, std = model.mean_and_std([[0.0], [5.0]])
        >>> mean.round(decimals=2)
        tensor([0.3000, 0.0000], dtype=torch.float64)
        >>> std.round(decimals=2)
        tensor([0.1000, 1.0000], dtype=torch.float64)

    Args:
        kernel: Any GPyTorch kernel; it is copied and frozen. Or a kernel that is already frozen,
            with this dtype and on this device.
        noise_variance: The ridge lambda > 0: a float, or a ``*batch``-dim tensor; in squared units
            of the (transformed) observations.
        mean: The prior mean: a GPyTorch `Mean`, a callable ``... x n x d`` to ``... x n``, or a
            number; None for zero.
        input_transform: A fitted BoTorch input transform, applied to all inputs.
        outcome_transform: A fitted BoTorch outcome transform, applied to observations and undone in
            the posterior. ``noise_variance``, ``mean`` and the kernel live in the transformed
            space.
        dtype: float64 unless given.
        device: The device of all buffers.

    Raises:
        ValueError: If the noise variance is not positive and finite, or another argument has the
            wrong type.
    """

    noise_variance: Tensor
    mean: PriorMean | None
    _inputs: Tensor

    def __init__(
        self,
        kernel: Kernel | KernelFunction,
        noise_variance: float | Tensor,
        mean: PriorMean | float | None = None,
        input_transform: InputTransform | None = None,
        outcome_transform: OutcomeTransform | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        noise = checked_noise_variance(noise_variance, dtype, device)
        if isinstance(kernel, KernelFunction):
            self.kernel = self.kernel_function = kernel
        else:
            require_kernel(kernel)
            self.kernel = deepcopy(kernel).to(dtype=dtype, device=device).requires_grad_(False)
            self.kernel_function = composed(self.kernel).to(device=noise.device)
        batch = torch.broadcast_shapes(self.kernel_function.batch_shape, noise.shape)
        self.register_buffer("noise_variance", noise.expand(batch).clone())
        self.mean = frozen_mean(mean, noise)
        require_transform(input_transform, "input_transform", InputTransform)
        require_transform(outcome_transform, "outcome_transform", OutcomeTransform)
        if input_transform is not None:
            self.input_transform = input_transform
        if outcome_transform is not None:
            self.outcome_transform = outcome_transform
        self.factor = GrowingCholesky(self.noise_variance)
        # The inputs are saved in the extra state, with the factor, since their number may differ.
        self.register_buffer("_inputs", noise.new_zeros(0, 0), persistent=False)
        self._shares_modules = False
        self.eval()

    @classmethod
    def from_botorch(cls, model: GPyTorchModel) -> Self:
        """Freeze a fitted BoTorch GP: the same posterior with fixed hyperparameters.

        Args:
            model: A single-output exact GP with Gaussian noise, such as `SingleTaskGP`, also with
                ``train_Yvar``; its input and outcome transforms are kept.

        Returns:
            A `KernelGP` with the data of ``model``. If the noise of observations differs, its noise
            variance is their mean, as for BoTorch's predictions.

        Raises:
            ValueError: If it is not an exact GP, or has several outputs or tasks, or batched
                training data.
        """
        arguments, X, y, relative_noise = _frozen_parts(model)
        frozen = cls(**arguments)
        frozen._append(X, y, relative_noise=relative_noise)
        return frozen

    @property
    def has_values(self) -> bool:
        """Whether the model has a prior mean or data, which have the sign of f."""
        return self.mean is not None or self.num_observations > 0

    def negated(self) -> Self:
        """The model of -f: with the negative of the prior mean and of the data.

        Raises:
            ValueError: If the model has transforms, and a prior mean or data.
        """
        if not self.has_values:
            return self
        given = self.to_arguments()
        y = None if given["y"] is None else -given["y"]
        return self.of_arguments(**given | {"mean": negative_mean(self.mean), "y": y})

    def to_arguments(self) -> dict[str, Any]:
        """The arguments of `of_arguments`, by name.

        Raises:
            ValueError: If the model has transforms.
        """
        if self.has_transforms:
            raise ValueError("a model must have no transforms")
        has_data = self.num_observations > 0
        noise = self.relative_noise
        return {
            "kernel": self.kernel,
            "noise_variance": self.noise_variance,
            "mean": self.mean,
            "X": self.train_inputs[0] if has_data else None,
            "y": self.train_targets if has_data else None,
        } | ({} if noise is None else {"relative_noise": noise})

    @classmethod
    def of_arguments(
        cls,
        *,
        kernel: Kernel,
        noise_variance: Tensor,
        mean: PriorMean | None = None,
        X: Tensor | None = None,
        y: Tensor | None = None,
        relative_noise: Tensor | None = None,
    ) -> Self:
        """Make a model again, with its data.

        Args:
            kernel: As for the class.
            noise_variance: As for the class.
            mean: As for the class.
            X: The points of the data, ``n x d``; None without data.
            y: The observations, ``n``; None without data.
            relative_noise: As for `add`.

        Returns:
            The model.
        """
        model = cls(kernel, noise_variance, mean, dtype=noise_variance.dtype)
        if X is not None and y is not None:
            model._append(X, y, relative_noise=relative_noise)
        return model

    def fork(self) -> Self:
        new = self._shallow_copy()
        new._inputs, new.factor = self._inputs.clone(), self.factor.fork()
        return new

    def successor(self) -> Self:
        new = self._shallow_copy()
        new.factor = self.factor.successor()
        return new

    def keep(self, index: int | list[int]) -> None:
        super().keep(index)
        mean = selected_mean(self.mean, index)
        self._modules.pop("mean", None)  # torch lets only a module replace a module
        self.mean = mean

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # `to`, `double`, `cuda`, ... all call this method, and change modules in place.
        if self._shares_modules and fn(self.noise_variance) is not self.noise_variance:
            for name, module in self._modules.items():
                self._modules[name] = deepcopy(module)
            self._shares_modules = False
        super()._apply(fn, recurse)
        self.factor.map_tensors(fn)
        return self

    def get_extra_state(self) -> dict[str, Any]:
        """The data and their factorisation, for `state_dict`.

        Returns:
            A dict with the inputs and the state of the factor.
        """
        return {"inputs": self.train_inputs[0].clone(), "factor": self.factor.state_dict()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Load the data and their factorisation, for `load_state_dict`.

        Args:
            state: The dict that `get_extra_state` returned; it may have another number of
                observations.
        """
        self._inputs = state["inputs"].to(self.noise_variance, copy=True)
        self.factor = GrowingCholesky.from_state_dict(self.noise_variance, state["factor"])

    # Inputs are kept transformed: nothing to do when BoTorch switches between train and eval.
    def _set_transformed_inputs(self) -> None: ...

    def _revert_to_original_inputs(self) -> None: ...

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def dtype(self) -> torch.dtype:
        return self.noise_variance.dtype

    @property
    def device(self) -> torch.device:
        return self.noise_variance.device

    @property
    def likelihood(self) -> GaussianLikelihood:
        """The Gaussian likelihood of GPyTorch with this noise variance."""
        noise = self.noise_variance
        likelihood = GaussianLikelihood(batch_shape=noise.shape, noise_constraint=Positive())
        likelihood = likelihood.to(noise).requires_grad_(False)
        likelihood.noise = noise.unsqueeze(-1)
        return likelihood.eval()

    @property
    def dim(self) -> int:
        """d, the dimension of the inputs; 0 while there are none."""
        return self._inputs.shape[-1]

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The (transformed) inputs so far, a tuple of one tensor, ``n x d``."""
        return (self._inputs[..., : self.num_observations, :],)

    # --- data -----------------------------------------------------------------------------------

    def add(
        self, X: PointsLike, Y: PointsLike | None, relative_noise: PointsLike | None = None
    ) -> None:
        """Add observations in place, O(n^2) each.

        Args:
            X: Points, ``n x d``.
            Y: Observations, ``n x 1`` or ``n``; None for *pending* points, which were asked and not
                told yet. Pending points reduce every standard deviation, count in the information
                gain, and leave the mean alone.
            relative_noise: The noise variances of the observations in units of lambda, ``n`` or
                ``*batch x n``; None for ones.

        Raises:
            ValueError: If a shape, dtype or device is wrong, an entry is not finite, a noise
                variance is not positive, or the input transform or the kernel does not take such
                inputs.
        """
        transform = self.transform_inputs if hasattr(self, "input_transform") else None
        with torch.no_grad():
            X, Z = checked_inputs(X, self.dim, self.noise_variance, transform)
            noise = checked_relative_noise(relative_noise, len(X), self.noise_variance)
            K = self.kernel_function(Z, Z)
            given = {"X": X, "kernel at X": K.diagonal(dim1=-2, dim2=-1)}
            prior = None
            if Y is not None:
                Y = checked_values(Y, len(X), self.noise_variance, look=False)
                given["Y"] = Y
                if self.mean is not None:
                    given["mean at X"] = prior = self._prior_mean(Z)
            require_finite(given)
        if Y is not None:
            Y = self._transform_values(Y, X)
        with torch.no_grad():
            self._append(Z, Y, K, prior, relative_noise=noise)

    def set_targets(self, rows: Sequence[int], Y: PointsLike) -> None:
        """Give rows new values: pending rows become known, values of known rows are replaced.

        Args:
            rows: The rows, numbered in the order of addition.
            Y: One value for each row, ``n x 1`` or ``n``.

        Raises:
            ValueError: If a row does not exist, or a value is not finite.
        """
        rows = self._checked_rows(rows)
        X = self._inputs[rows]
        # These inputs are transformed already, which makes no difference: outcome transforms use
        # only the task column of X, which input transforms leave alone.
        y = self._transform_values(checked_values(Y, len(rows), self.noise_variance), X)
        with torch.no_grad():
            self._set_residuals(rows, y - self._prior_mean(X))

    def condition_on_observations(self, X: PointsLike, Y: PointsLike, **kwargs: Any) -> Self:
        """A new model with more observations; this model stays as it is.

        Args:
            X: Points, ``batch_shape x n' x d``.
            Y: Observations, ``batch_shape' x n' x 1``; they may have more batch dimensions than
                ``X`` (fantasies).
            **kwargs: For the signature of BoTorch; ``noise`` is refused, since the noise variance
                of this model is fixed.

        Returns:
            A `KernelGP` whose batch shape is the broadcast of all batch shapes. Its posterior is
            differentiable in ``X`` and ``Y``.

        Raises:
            ValueError: If ``noise`` is given, or ``X`` and ``Y`` do not match.
        """
        if kwargs.get("noise") is not None:
            raise ValueError("noise must not be given: a KernelGP has a fixed noise variance")
        X = self._checked_batches(X)
        Y = checked_like(Y, self.noise_variance, "Y")
        if Y.shape[-2:] != (X.shape[-2], 1):
            raise ValueError(f"Y must have shape (..., {X.shape[-2]}, 1), got {tuple(Y.shape)}")
        Y = self._transform_values(Y.squeeze(-1), X)
        X = self.transform_inputs(X)
        y = Y - self._prior_mean(X)
        (old,) = self.train_inputs
        if not len(old):
            old = X.new_zeros(0, X.shape[-1])
        new = self._shallow_copy()
        batch = torch.broadcast_shapes(old.shape[:-2], X.shape[:-2])
        parts = [part.expand(*batch, *part.shape[-2:]) for part in (old, X)]
        new._inputs = torch.cat(parts, dim=-2)
        new.factor = self.factor.extended(self._cross(X), self.kernel_function(X, X), y)
        return new

    def _shallow_copy(self) -> Self:
        self._shares_modules = True
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))
        for name in ("_buffers", "_modules", "_parameters"):
            vars(new)[name] = dict(vars(self)[name])
        return new

    def _append(
        self,
        X: Tensor,
        Y: Tensor | None,
        K: Tensor | None = None,
        prior: Tensor | None = None,
        *,
        relative_noise: Tensor | None = None,
    ) -> None:
        n = self.num_observations
        y = None
        if Y is not None:
            y = Y - (self._prior_mean(X) if prior is None else prior)
        covariance = self.kernel_function(X, X) if K is None else K
        self.factor.append(self._cross(X), covariance, y, relative_noise)
        if self.factor.capacity > self._inputs.shape[-2]:
            grown = X.new_zeros(*self._inputs.shape[:-2], self.factor.capacity, X.shape[-1])
            if n:
                grown[..., :n, :] = self._inputs[..., :n, :]
            self._inputs = grown
        self._inputs[..., n : n + X.shape[-2], :] = X
        self._warn_of_jitter(n)

    def _truncate(self, num_points: int) -> None:
        self.factor.truncate(num_points)
        self._inputs = self._inputs.clone()  # a predecessor has these rows

    def _set_residuals(self, rows: list[int], y: Tensor) -> None:
        self.factor.set_targets(rows, y)

    def _transform_values(self, Y: Tensor, X: Tensor) -> Tensor:
        transform = getattr(self, "outcome_transform", None)
        return Y if transform is None else transform(Y.unsqueeze(-1), X=X)[0].squeeze(-1)

    def _prior_mean(self, X: Tensor) -> Tensor:
        return self._mean_at(self.mean, X)

    # --- answers --------------------------------------------------------------------------------

    def posterior(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        X: PointsLike,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior of f over the q points of each t-batch.

        Args:
            X: Points, ``t-batch x q x d``.
            output_indices: None or [0], since the model has one output.
            observation_noise: Whether to add the noise variance; a tensor that broadcasts to
                ``t-batch x q x 1`` is added in place of it.
            posterior_transform: A transform of the posterior, applied last; None for none.

        Returns:
            A `GPyTorchPosterior` over ``broadcast(t-batch, batch_shape) x q x 1``, differentiable
            in ``X``; other posteriors where an outcome transform or ``posterior_transform`` makes
            them.
        """
        X = self._checked_batches(X)
        if not X.numel():
            raise ValueError(f"X must have at least one point, got shape {tuple(X.shape)}")
        if output_indices not in (None, [0]):
            raise ValueError(f"output_indices must be None or [0], got {output_indices}")
        Z = self.transform_inputs(X)
        noise = None
        if observation_noise is True:
            noise = self.noise_variance.unsqueeze(-1)
        elif observation_noise is not False:
            noise = checked_noise_of(observation_noise, self.noise_variance).squeeze(-1)
        distribution = self._joint_distribution(Z, noise)
        posterior = GPyTorchPosterior(distribution)
        if hasattr(self, "outcome_transform"):
            posterior = self.outcome_transform.untransform_posterior(posterior, X=X)
        return posterior if posterior_transform is None else posterior_transform(posterior, X=X)

    def _joint_distribution(self, Z: Tensor, noise: Tensor | None) -> MultivariateNormal:
        """The joint distribution of f, or of observations.

        Args:
            Z: Points, ``t-batch x q x d``, transformed as the data are.
            noise: The variance of the noise, which broadcasts to ``t-batch x q``; None for f
                itself.

        Returns:
            A distribution over ``broadcast(t-batch, batch_shape) x q``, differentiable in ``Z``.
        """
        q, d = Z.shape[-2:]
        batch = self.batch_shape
        # The leading part of the t-batch, which does not broadcast against the batch of the model,
        # becomes more columns of one solve; broadcasting would copy the factor for each entry.
        t = (1,) * (len(batch) - Z.ndim + 2) + Z.shape[:-2]
        split = len(t) - len(batch)
        outer, inner = t[:split], t[split:]
        Z = Z.reshape(*t, q, d)
        columns = Z.reshape(-1, *inner, q, d).movedim(0, -3)  # *inner x prod(outer) x q x d
        mean, variance, V = self.moments(columns.flatten(-3, -2))
        full = torch.broadcast_shapes(inner, batch)

        def unfold(A: Tensor) -> Tensor:  # *full x rows x (outer q) to *outer x *full x rows x q
            rows = A.shape[-2]
            A = A.expand(*full, rows, A.shape[-1]).reshape(*full, rows, math.prod(outer), q)
            return A.movedim(-2, 0).reshape(*outer, *full, rows, q)

        mean = unfold(mean.unsqueeze(-2)).squeeze(-2)  # *outer x *full x q
        if q == 1:
            floor = settings.min_variance.value(self.dtype)
            covariance = unfold(variance.clamp_min(floor).unsqueeze(-2))
        else:
            V = unfold(V)
            Z = Z.expand(*outer, *full, q, d)
            if q <= _LAZY_COVARIANCE:
                covariance = self.kernel_function(Z, Z) - V.mT @ V
            else:
                covariance = self.kernel(Z) + MatmulLinearOperator(-V.mT, V)
        if noise is not None:
            diagonal = DiagLinearOperator(noise.expand(mean.shape))
            covariance = covariance + (diagonal if q > _LAZY_COVARIANCE else diagonal.to_dense())
        return MultivariateNormal(mean, to_linear_operator(covariance))

    def subset_output(self, idcs: list[int]) -> Self:
        """The model itself, since it has one output.

        Args:
            idcs: The outputs; only [0] is possible.

        Returns:
            This model.

        Raises:
            ValueError: If ``idcs`` is not [0].
        """
        if idcs != [0]:
            raise ValueError(f"idcs must be [0], got {idcs}")
        return self

    # --- single points ----------------------------------------------------------------------------

    @property
    def has_transforms(self) -> bool:
        return hasattr(self, "input_transform") or hasattr(self, "outcome_transform")

    @torch.no_grad()
    def largest_variance(self, X: PointsLike) -> Tensor:
        """The largest prior variance k(x, x) over some points.

        Args:
            X: Points, ``n x d``.

        Returns:
            The largest variance of each model, ``*batch``.

        Raises:
            ValueError: If the kernel has no finite value at a point.
        """
        X = self._checked_batches(X)
        prior = self.kernel_function.diagonal(self.transform_inputs(X))
        largest = prior.expand(*self.batch_shape, len(X)).amax(dim=-1)
        require_finite({"kernel at X": largest})
        return largest

    @torch.no_grad()
    def require_takes(self, like: Tensor) -> None:
        """Check that this is a single model that takes points like these and has a finite prior
        mean at all of them.

        Args:
            like: Points, ``n x d``. If there are none, two points at the origin are tried.

        Raises:
            ValueError: If the model is batched, has another dtype, device or dimension, or its
                kernel or prior mean does not take the points.
        """
        require_same_kind(self.noise_variance, like, "model")
        if self.batch_shape:
            raise ValueError(
                f"model must not be batched, got batch shape {tuple(self.batch_shape)}"
            )
        dim = like.shape[-1]
        X = like[:1].repeat(2, 1) if len(like) else like.new_zeros(2, dim)
        Z = transformed(X, self.transform_inputs)
        if self.num_observations and self.dim != Z.shape[-1]:
            raise ValueError(f"model must have data of dimension {Z.shape[-1]}, got {self.dim}")
        for name, function, shape in (
            ("kernel", lambda: self.kernel_function(Z, Z), (2, 2)),
            ("mean", lambda: Z.new_zeros(2) if self.mean is None else self.mean(Z), (2,)),
        ):
            try:
                values = function()
            except Exception as error:
                raise ValueError(
                    f"{name} must take points of dimension {dim}, got {error!r}"
                ) from error
            got = (
                tuple(values.shape) if isinstance(values, Tensor) else f"a {type(values).__name__}"
            )
            if got != shape:
                raise ValueError(f"{name} must return shape {shape} at 2 points, got {got}")
        if self.mean is not None:
            everywhere = transformed(like, self.transform_inputs)
            if not bool(torch.isfinite(self._prior_mean(everywhere)).all()):
                raise ValueError("mean must be finite on the domain, got NaN or infinite values")

    def _checked_batches(self, X: Any) -> Tensor:
        """Check the shape, dtype and device of points, ``... x n x d``; not their entries."""
        X = checked_like(X, self.noise_variance, "X")
        d = X.shape[-1] if hasattr(self, "input_transform") else self.dim  # 0 before any data
        if X.ndim < 2 or (d and X.shape[-1] != d):
            raise ValueError(f"X must have shape (..., q, {d or 'd'}), got {tuple(X.shape)}")
        return X

    def mean_and_std(self, X: PointsLike) -> tuple[Tensor, Tensor]:
        """The pointwise posterior mean and standard deviation of every model in the batch.

        Args:
            X: Points, ``n x d``.

        Returns:
            The means and the standard deviations, ``*batch x n`` each, differentiable in ``X``.
        """
        X = self._checked_batches(X)
        if self.has_transforms:
            nb = len(self.batch_shape)
            posterior: Any = self.posterior(X.unsqueeze(-2)[(slice(None),) + (None,) * nb])
            mean, variance = (m[..., 0, 0] for m in (posterior.mean, posterior.variance))
            return mean.movedim(0, -1), variance.sqrt().movedim(0, -1)
        mean, variance, _ = self.moments(X)
        # Rounding can leave a known point a variance of -1e-17, whose root has no gradient.
        floor = torch.finfo(variance.dtype).eps ** 2
        return mean, variance.clamp_min(floor).sqrt()

    @torch.no_grad()
    def moments_without(self, rows: Sequence[int], x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The posterior at one point without some of the observations; only for a single model.

        Args:
            rows: The rows of the observations to leave out.
            x: The point, ``1 x d``.

        Returns:
            The mean, the standard deviation and the information gain of the other rows, all 0-dim.
        """
        mean, variance, cross = self.moments(self.transform_inputs(x))
        mean, std, gain = moments_without(self.factor, rows, cross[:, 0], mean[0], variance[0])
        outcome: OutcomeTransform | None = getattr(self, "outcome_transform", None)
        if outcome is not None:
            normal = MultivariateNormal(mean[None], DiagLinearOperator(std[None] ** 2))
            posterior: Any = outcome.untransform_posterior(GPyTorchPosterior(normal), X=x)
            mean, std = posterior.mean[0, 0], posterior.variance[0, 0].sqrt()
        return mean, std, gain

    @torch.no_grad()
    def mean_at(self, X: PointsLike) -> Tensor:
        """The posterior means without standard deviations, O(n) per point for n observations.

        Args:
            X: Points, ``n x d``.

        Returns:
            The means, ``*batch x n``.
        """
        X = self._checked_batches(X)
        outcome = getattr(self, "outcome_transform", None)
        if not isinstance(outcome, Standardize | None):  # the mean depends on the variance
            return self.mean_and_std(X)[0]
        mean = self.plain_means(self.transform_inputs(X))
        if outcome is None:
            return mean
        return outcome.untransform(mean.unsqueeze(-1), X=X)[0].squeeze(-1)

    @property
    def has_closed_form_gradient(self) -> bool:
        """Whether `mean_std_and_gradients` works without autograd."""
        return self.kernel_function.has_closed_form_gradient and not self.has_transforms

    @torch.no_grad()
    def mean_std_and_gradients(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The posterior mean and standard deviation with their gradients in closed form.

        The kernel must have closed-form gradients (`has_closed_form_gradient`); the gradient of a
        prior mean comes from autograd.

        Args:
            X: Points, ``n x d``; or ``*batch x n x d`` for own points of each model.

        Returns:
            The means and standard deviations, ``*batch x n`` each, and their gradients with respect
            to ``X``, ``*batch x n x d`` each.
        """
        return self._values_and_gradients(X)[:4]

    @torch.no_grad()
    def weight_norms_and_gradients(self, X: Tensor) -> tuple[Tensor, ...]:
        """The answers of `mean_std_and_gradients`, then `weight_norms` and their gradients.

        Args:
            X: Points, as for `mean_std_and_gradients`.

        Returns:
            The means, the standard deviations, their gradients, the norms, ``*batch x n``, and the
            gradients of these, ``*batch x n x d``.
        """
        *moments, weights, pullback = self._values_and_gradients(X)
        factor = self.factor
        told = factor.told_weights(weights)
        slopes = factor.told_weights(factor.solve_transposed(factor.solve(told.sign())))
        return *moments, told.abs().sum(dim=-2), pullback(slopes)

    def _values_and_gradients(self, X: Tensor) -> tuple[Any, ...]:
        """The answers of `mean_std_and_gradients`, the weights (L L')^-1 k, ``*batch x n x m``, and
        the pullback of k."""
        n = self.num_observations
        data = self.train_inputs[0] if n else X.new_zeros(0, X.shape[-1])
        k, pullback = self.kernel_function.value_and_pullback(data, X)  # *batch x n x m
        V = self.factor.solve(k)
        weights = self.factor.solve_transposed(V)
        alpha = self.factor.mean_weights.unsqueeze(-1)
        mean, mean_gradient = (alpha * k).sum(dim=-2), pullback(alpha)
        variance = self.kernel_function.diagonal(X) - V.square().sum(dim=-2)
        std = variance.clamp_min(torch.finfo(X.dtype).eps ** 2).sqrt()
        std_gradient = -pullback(weights) / std.unsqueeze(-1)
        if self.mean is not None:
            prior, prior_gradient = self._prior_mean_and_gradient(X)
            mean, mean_gradient = mean + prior, mean_gradient + prior_gradient
        return mean, std, mean_gradient, std_gradient, weights, pullback

    @torch.enable_grad()  # also where the caller has switched it off
    def _prior_mean_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        # One copy of the points for each model: the gradient of a sum over the batch would mix
        # their means.
        batch = torch.broadcast_shapes(self.batch_shape, X.shape[:-2])
        X = X.detach().expand(*batch, *X.shape[-2:]).clone().requires_grad_()
        values = self._prior_mean(X)
        if not values.requires_grad:
            return values, torch.zeros_like(X)
        (gradient,) = torch.autograd.grad(values.sum(), X, materialize_grads=True)
        # At a cusp, autograd may return NaN or infinity.
        return values.detach(), gradient.nan_to_num(0.0, 0.0, 0.0)


def _frozen_parts(
    model: GPyTorchModel,
) -> tuple[dict[str, Any], Tensor, Tensor, Tensor | None]:
    """The arguments of a `KernelGP` with the kernel, noise variance, prior mean and transforms of a
    fitted model; the model's transformed data, ``n x d`` and ``n``; and their relative noise, None
    for ones. Raises as `KernelGP.from_botorch` does."""
    if not isinstance(model, ExactGP) or isinstance(model, MultiTaskGPyTorchModel):
        raise ValueError(
            f"model must be an exact GP of a single task, got a {type(model).__name__}"
        )
    if model.num_outputs != 1:
        raise ValueError(f"model must have one output, got {model.num_outputs}")
    was_training = model.training
    model.eval()  # which transforms the inputs
    X, y = model.train_inputs[0].detach(), model.train_targets.detach()  # pyright: ignore
    model.train(was_training)
    if X.ndim != 2:
        raise ValueError(f"model must have unbatched training data, got shape {tuple(X.shape)}")
    noise = model.likelihood.noise.detach().reshape(-1)  # pyright: ignore
    is_equal = bool((noise == noise[0]).all())
    own = noise[0].clone() if is_equal else noise.mean()
    arguments = {
        "kernel": model.covar_module,
        "noise_variance": own,
        "mean": model.mean_module,
        "input_transform": deepcopy(getattr(model, "input_transform", None)),
        "outcome_transform": deepcopy(getattr(model, "outcome_transform", None)),
        "dtype": X.dtype,
        "device": X.device,
    }
    return arguments, X, y, None if is_equal else noise / own
