"""KernelGP: an exact Gaussian process with a fixed kernel, grown one observation at a time."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from copy import deepcopy
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.gpytorch import GPyTorchModel, MultiTaskGPyTorchModel
from botorch.models.model import FantasizeMixin, Model
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
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

from botorch_ext.domains import as_points, require_same_kind
from botorch_ext.exceptions import JitterWarning
from botorch_ext.kernel_functions import freeze
from botorch_ext.models.batching import selected_kernel, selected_mean
from botorch_ext.models.checks import (
    PriorMean,
    checked_noise_variance,
    checked_values,
    frozen_mean,
)
from botorch_ext.models.cholesky import GrowingCholesky

# A joint posterior over more points than this keeps its covariance unevaluated.
_LAZY_COVARIANCE = 512


class KernelGP(Model, FantasizeMixin):
    """An exact GP with a fixed kernel and a fixed noise variance that grows in O(n^2) per point.

    ``mean = k' (K + lambda I)^-1 y`` and ``std^2 = k(x, x) - k' (K + lambda I)^-1 k`` (around the
    prior mean, where there is one). Leading batch dimensions of the kernel or of the noise variance
    mean many models of the same data at once, with one batched factorisation.

    As in BoTorch, ``posterior`` takes ``t-batch x q x d`` and broadcasts the t-batch against the
    batch shape of the model: every model at the same points is ``t-batch x 1 x q x d``.

    Args:
        kernel: Any GPyTorch kernel; it is copied and frozen.
        noise_variance: The ridge lambda > 0: a float, or a ``*batch``-dim tensor.
        mean: The prior mean: a GPyTorch `Mean`, or a callable ``... x n x d`` to ``... x n``; zero
            if None.
        input_transform: A fitted BoTorch input transform, applied to all inputs.
        outcome_transform: A fitted BoTorch outcome transform, applied to observations and undone in
            the posterior. ``noise_variance``, ``mean`` and the kernel live in the transformed
            space.
        dtype: float64 unless asked otherwise.
        device: The device of all buffers.

    Raises:
        ValueError: A noise variance that is not positive and finite.
    """

    noise_variance: Tensor
    _inputs: Tensor

    def __init__(
        self,
        kernel: Kernel,
        noise_variance: float | Tensor,
        mean: PriorMean | None = None,
        input_transform: InputTransform | None = None,
        outcome_transform: OutcomeTransform | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> None:
        super().__init__()
        noise = checked_noise_variance(noise_variance, dtype, device)
        self.kernel = deepcopy(kernel).to(dtype=dtype, device=device).requires_grad_(False)
        self.kernel_function = freeze(self.kernel, dtype, noise.device)
        batch = torch.broadcast_shapes(self.kernel_function.batch_shape, noise.shape)
        self.register_buffer("noise_variance", noise.expand(batch).clone())
        self.likelihood = GaussianLikelihood(batch_shape=batch, noise_constraint=Positive())
        self.likelihood = self.likelihood.to(noise).requires_grad_(False)
        self.likelihood.noise = self.noise_variance.unsqueeze(-1)
        self.mean = frozen_mean(mean, noise)
        if input_transform is not None:
            self.input_transform = input_transform
        if outcome_transform is not None:
            self.outcome_transform = outcome_transform
        self.factor = GrowingCholesky(self.noise_variance)
        # In the extra state, with the factor: their number is no part of the model.
        self.register_buffer("_inputs", noise.new_zeros(0, 0), persistent=False)
        self._shares_modules = False
        self.eval()

    @classmethod
    def from_botorch(cls, model: GPyTorchModel) -> Self:
        """Freezes a fitted BoTorch GP: the same posterior, fixed hyperparameters, O(n^2) growth.

        Args:
            model: A single-output exact GP with homoskedastic Gaussian noise, such as
                `SingleTaskGP`; its input and outcome transforms are kept.

        Returns:
            A `KernelGP` with the data of ``model``.

        Raises:
            ValueError: No exact GP, several outputs or tasks, batched training data, or noise that
                differs between points.
        """
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
        if not bool((noise == noise[0]).all()):
            raise ValueError("model must have the same noise variance at every point")
        frozen = cls(
            model.covar_module,  # pyright: ignore
            noise[0].clone(),
            mean=model.mean_module,  # pyright: ignore
            input_transform=deepcopy(getattr(model, "input_transform", None)),
            outcome_transform=deepcopy(getattr(model, "outcome_transform", None)),
            dtype=X.dtype,
            device=X.device,
        )
        frozen._append(X, y)
        return frozen

    def select(self, index: int | list[int]) -> Self:
        """A copy of one model, or of several, of a batch with one dimension, with the data.

        Args:
            index: The position of a model, which makes a `KernelGP` without batch dimensions, or
                positions. A prior mean is one that all models share, or a `stacked_mean`.
        """
        new = type(self)(
            selected_kernel(self.kernel, index),
            self.noise_variance[index],
            mean=selected_mean(self.mean, index),
            input_transform=deepcopy(getattr(self, "input_transform", None)),
            outcome_transform=deepcopy(getattr(self, "outcome_transform", None)),
            dtype=self.dtype,
            device=self.device,
        )
        new._inputs = self._inputs.clone()
        new.factor = self.factor.select(index)
        return new

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        # What `to`, `double`, `cuda`, ... go through. They change modules in place.
        if self._shares_modules and fn(self.noise_variance) is not self.noise_variance:
            for name, module in self._modules.items():
                self._modules[name] = deepcopy(module)
            self._shares_modules = False
        super()._apply(fn, recurse)
        self.factor.map_tensors(fn)
        return self

    def get_extra_state(self) -> dict[str, Any]:
        """The data and their factor, for `state_dict`."""
        return {"inputs": self.train_inputs[0].clone(), "factor": self.factor.state_dict()}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Takes over the data of another model, however many there are."""
        self._inputs = state["inputs"].to(self.noise_variance, copy=True)
        self.factor = GrowingCholesky.from_state_dict(self.noise_variance, state["factor"])

    # Inputs are kept transformed: nothing to do when BoTorch switches between train and eval.
    def _set_transformed_inputs(self) -> None: ...

    def _revert_to_original_inputs(self) -> None: ...

    @property
    def num_outputs(self) -> int:
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        return self.factor.batch_shape

    @property
    def dtype(self) -> torch.dtype:
        return self.noise_variance.dtype

    @property
    def device(self) -> torch.device:
        return self.noise_variance.device

    @property
    def num_observations(self) -> int:
        """Rows, pending ones included."""
        return self.factor.num_points

    @property
    def dim(self) -> int:
        """d, the dimension of the inputs; 0 while there are none."""
        return self._inputs.shape[-1]

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """The (transformed) inputs so far, ``n x d``."""
        return (self._inputs[..., : self.num_observations, :],)

    @property
    def train_targets(self) -> Tensor:
        """The (transformed) observations, ``*batch x n``; of pending rows, the posterior mean."""
        (X,) = self.train_inputs
        return self.factor.y[..., : self.num_observations] + self._prior_mean(X)

    def information_gain(self) -> Tensor:
        """1/2 log det(I + K / lambda) of all rows, ``*batch``; from the factor, no new solve."""
        return self.factor.information_gain()

    @torch.no_grad()
    def largest_variance(self, X: Tensor) -> Tensor:
        """The largest prior variance k(x, x) at ``n x d`` points, ``*batch``.

        Raises:
            ValueError: Points that the kernel has no value at.
        """
        prior = self.kernel_function.diagonal(self.transform_inputs(X))
        largest = prior.expand(*self.batch_shape, len(X)).amax(dim=-1)
        _require_values(largest)
        return largest

    @torch.no_grad()
    def require_takes(self, like: Tensor) -> None:
        """A ValueError unless this is a single model that takes points like these, ``n x d``."""
        require_same_kind(self.noise_variance, like, "model")
        if self.batch_shape:
            raise ValueError(
                f"model must not be batched, got batch shape {tuple(self.batch_shape)}"
            )
        dim = like.shape[-1]
        X = like[:1].repeat(2, 1)
        Z = self._transformed(X)
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

    # --- data -----------------------------------------------------------------------------------

    def add(self, X: Tensor, Y: Tensor | None) -> None:
        """Adds observations in place, O(n^2) each.

        Args:
            X: ``n x d``.
            Y: ``n x 1`` or ``n``. None for points that were asked and not yet told: such *pending*
                rows count in every standard deviation and in the information gain and leave the
                mean alone.

        Raises:
            ValueError: Wrong shape, dtype or device, an entry that is not finite, or inputs that
                the input transform or the kernel does not take.
        """
        X, Z = self._checked_inputs(X)
        if Y is not None:
            Y = self._transform_values(checked_values(Y, len(X), self.noise_variance), X)
        with torch.no_grad():
            self._append(Z, Y)

    def set_targets(self, rows: list[int], Y: Tensor) -> None:
        """Gives rows new values: pending rows become known, known ones are replaced.

        Args:
            rows: Positions in the order of addition.
            Y: ``n x 1`` or ``n``, one for each row.

        Raises:
            ValueError: A row that does not exist, or a value that is not finite.
        """
        self._check_rows(rows)
        X = self._inputs[rows]
        # Outcome transforms that look at X look at a task, which input transforms leave alone: that
        # these inputs are transformed makes no difference.
        y = self._transform_values(checked_values(Y, len(rows), self.noise_variance), X)
        with torch.no_grad():
            self.factor.set_targets(rows, y - self._prior_mean(X))

    def remove(self, row: int) -> None:
        """Forgets one row; later rows move up by one and are factorised again.

        Raises:
            ValueError: A row that does not exist.
        """
        self._check_rows([row])
        later = list(range(row + 1, self.num_observations))
        X, Y = self._inputs[later], self.train_targets[..., later]
        known = [r for r in later if r not in self.factor.pending]
        with torch.no_grad():
            self.factor.truncate(row)
            if not later:
                return
            self._append(X, None)
            if known:
                kept = [r - row - 1 for r in known]
                y = Y[..., kept] - self._prior_mean(X[kept])
                self.factor.set_targets([r - 1 for r in known], y)

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> Self:
        """A new model with more observations; this one stays as it is. Differentiable.

        Args:
            X: ``batch_shape x n' x d``.
            Y: ``batch_shape' x n' x 1``; it may have more batch dimensions than ``X`` (fantasies).
            kwargs: ``noise`` is refused: the noise variance of this model is fixed.

        Returns:
            A `KernelGP` whose batch shape is the broadcast of all batch shapes.

        Raises:
            ValueError: ``noise`` is given, or ``X`` and ``Y`` do not match.
        """
        if kwargs.get("noise") is not None:
            raise ValueError("noise must not be given: a KernelGP has a fixed noise variance")
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

    def _append(self, X: Tensor, Y: Tensor | None) -> None:
        n = self.num_observations
        y = None if Y is None else Y - self._prior_mean(X)
        K = self.kernel_function(X, X)
        _require_values(K.diagonal(dim1=-2, dim2=-1))
        self.factor.append(self._cross(X), K, y)
        if self.factor.capacity > self._inputs.shape[-2]:
            grown = X.new_zeros(*self._inputs.shape[:-2], self.factor.capacity, X.shape[-1])
            if n:
                grown[..., :n, :] = self._inputs[..., :n, :]
            self._inputs = grown
        self._inputs[..., n : n + X.shape[-2], :] = X
        if self.dtype == torch.float32 and bool((self.factor.jitter[..., n:] > 0).any()):
            warnings.warn(
                f"the float32 factorisation lost positive definiteness at observation {n}; "
                "jitter was added to its diagonal entry (float64 is recommended)",
                JitterWarning,
                stacklevel=3,
            )

    @torch.no_grad()
    def _checked_inputs(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs as ``n x d``, and transformed, which may change d."""
        if not hasattr(self, "input_transform"):
            X = as_points(X, self.dim or X.shape[-1], self.noise_variance)
            return X, X
        X = as_points(X, X.shape[-1], self.noise_variance)
        Z = self._transformed(X)
        if self.dim not in (0, Z.shape[-1]):
            raise ValueError(
                f"X must have {self.dim} columns after the input transform, got {Z.shape[-1]} "
                f"from shape {tuple(X.shape)}"
            )
        return X, Z

    def _transformed(self, X: Tensor) -> Tensor:
        try:
            return self.transform_inputs(X)
        except Exception as error:
            raise ValueError(
                f"input_transform must take points of dimension {X.shape[-1]}, got {error!r}"
            ) from error

    def _check_rows(self, rows: list[int]) -> None:
        if not all(0 <= row < self.num_observations for row in rows):
            raise ValueError(f"rows must lie in [0, {self.num_observations}), got {rows}")

    def _transform_values(self, Y: Tensor, X: Tensor) -> Tensor:
        transform = getattr(self, "outcome_transform", None)
        return Y if transform is None else transform(Y.unsqueeze(-1), X=X)[0].squeeze(-1)

    # --- posterior ------------------------------------------------------------------------------

    def _prior_mean(self, X: Tensor) -> Tensor:
        return X.new_zeros(()) if self.mean is None else self.mean(X)

    def _cross(self, X: Tensor) -> Tensor:
        """L^-1 K(data, X) without padding: ``*batch x n x m``."""
        n = self.num_observations
        if n == 0:
            batch = torch.broadcast_shapes(self.factor.L.shape[:-2], X.shape[:-2])
            return X.new_zeros(*batch, 0, X.shape[-2])
        return self._solved_cross(X)[..., :n, :]

    def _solved_cross(self, X: Tensor) -> Tensor:
        return self.factor.solve(self.kernel_function(self.train_inputs[0], X))

    def _moments(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean and variance at ``*b x p x d`` (each ``*batch x p``), and the cross factor."""
        prior = self.kernel_function.diagonal(X)
        if self.num_observations == 0:
            shape = (*self.batch_shape, X.shape[-2])
            mean = self._prior_mean(X).expand(shape)
            return mean, prior.expand(shape), self._cross(X)
        V = self._solved_cross(X)
        mean = self._prior_mean(X) + (self.factor.z[..., None, : V.shape[-2]] @ V).squeeze(-2)
        return mean, prior - V.square().sum(dim=-2), V

    def mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Pointwise posterior mean and standard deviation of every model in the batch.

        Args:
            X: ``n x d``.

        Returns:
            Two ``*batch x n``-dim tensors, differentiable in ``X``.
        """
        if self.has_transforms:
            nb = len(self.batch_shape)
            posterior: Any = self.posterior(X.unsqueeze(-2)[(slice(None),) + (None,) * nb])
            mean, variance = (m[..., 0, 0] for m in (posterior.mean, posterior.variance))
            return mean.movedim(0, -1), variance.sqrt().movedim(0, -1)
        mean, variance, _ = self._moments(X)
        # Rounding can leave a known point a variance of -1e-17, whose root has no gradient.
        floor = torch.finfo(variance.dtype).eps ** 2
        return mean, variance.clamp_min(floor).sqrt()

    @property
    def has_transforms(self) -> bool:
        return hasattr(self, "input_transform") or hasattr(self, "outcome_transform")

    @property
    def has_closed_form_gradient(self) -> bool:
        """Whether `mean_std_and_gradients` works without autograd."""
        return self.kernel_function.has_closed_form_gradient and not self.has_transforms

    @torch.no_grad()
    def mean_std_and_gradients(self, X: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Mean and standard deviation with their input gradients in closed form (for
        kernels that have them); of a prior mean the gradient is autograd's.

        Args:
            X: ``n x d``, or ``*batch x n x d``: each model of the batch at its own points.

        Returns:
            Two ``*batch x n``-dim and two ``*batch x n x d``-dim tensors.
        """
        n = self.num_observations
        data = self.train_inputs[0] if n else X.new_zeros(0, X.shape[-1])
        k, pullback = self.kernel_function.value_and_pullback(data, X)  # *batch x n x m
        V = self.factor.solve(k)
        weights = self.factor.solve_transposed(V)[..., :n, :]
        alpha = self.factor.mean_weights[..., :n, None]
        mean, mean_gradient = (alpha * k).sum(dim=-2), pullback(alpha)
        variance = self.kernel_function.diagonal(X) - V.square().sum(dim=-2)
        std = variance.clamp_min(torch.finfo(X.dtype).eps ** 2).sqrt()
        std_gradient = -pullback(weights) / std.unsqueeze(-1)
        if self.mean is not None:
            prior, prior_gradient = self._prior_mean_and_gradient(X)
            mean, mean_gradient = mean + prior, mean_gradient + prior_gradient
        return mean, std, mean_gradient, std_gradient

    @torch.enable_grad()  # also where the caller has switched it off
    def _prior_mean_and_gradient(self, X: Tensor) -> tuple[Tensor, Tensor]:
        # One copy of the points for each model: the gradient of a sum over the batch would mix
        # their means.
        X = X.detach().expand(*self.batch_shape, *X.shape[-2:]).clone().requires_grad_()
        values = self._prior_mean(X)
        if not values.requires_grad:
            return values, torch.zeros_like(X)
        (gradient,) = torch.autograd.grad(values.sum(), X, materialize_grads=True)
        # At a cusp autograd may give NaN or infinity.
        return values.detach(), gradient.nan_to_num(0.0, 0.0, 0.0)

    def posterior(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Posterior:
        """The joint posterior of f over the q points of each t-batch.

        Args:
            X: ``t-batch x q x d``.
            output_indices: None or [0]: there is one output.
            observation_noise: True adds the noise variance; a tensor that broadcasts to
                ``t-batch x q x 1`` is added instead.
            posterior_transform: Applied last.

        Returns:
            A `GPyTorchPosterior` over ``broadcast(t-batch, batch_shape) x q x 1``, differentiable
            in ``X``; other posteriors where an outcome transform or ``posterior_transform`` makes
            them.
        """
        if output_indices not in (None, [0]):
            raise ValueError(f"output_indices must be None or [0], got {output_indices}")
        Z = self.transform_inputs(X)
        q, d = Z.shape[-2:]
        batch = self.batch_shape
        # The part of the t-batch that does not meet the batch of the model becomes more columns of
        # one solve; broadcasting would copy the factor once for each of its entries.
        t = (1,) * (len(batch) - Z.ndim + 2) + Z.shape[:-2]
        split = len(t) - len(batch)
        outer, inner = t[:split], t[split:]
        Z = Z.reshape(*t, q, d)
        columns = Z.reshape(-1, *inner, q, d).movedim(0, -3)  # *inner x prod(outer) x q x d
        mean, variance, V = self._moments(columns.flatten(-3, -2))
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
        if observation_noise is not False:
            covariance = covariance + self._noise_covariance(observation_noise, mean)
        distribution = MultivariateNormal(mean, to_linear_operator(covariance))
        posterior = GPyTorchPosterior(distribution)
        if hasattr(self, "outcome_transform"):
            posterior = self.outcome_transform.untransform_posterior(posterior, X=X)
        return posterior if posterior_transform is None else posterior_transform(posterior, X=X)

    def _noise_covariance(self, observation_noise: bool | Tensor, mean: Tensor) -> Any:
        if isinstance(observation_noise, Tensor):
            noise = observation_noise.squeeze(-1)
        else:
            noise = self.noise_variance.unsqueeze(-1)
        noise = DiagLinearOperator(noise.expand(mean.shape))
        return noise if mean.shape[-1] > _LAZY_COVARIANCE else noise.to_dense()

    def subset_output(self, idcs: list[int]) -> Self:
        """The model itself; there is one output.

        Raises:
            ValueError: ``idcs`` is not [0].
        """
        if idcs != [0]:
            raise ValueError(f"idcs must be [0], got {idcs}")
        return self


def _require_values(variances: Tensor) -> None:
    """A ValueError where a kernel has no value: away from the CPU it cannot say so itself."""
    if bool(variances.isnan().any()):
        raise ValueError("kernel must have a value at every point, got NaN")
