"""KernelGP: an exact Gaussian process with a fixed kernel, grown one observation at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Self

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.gpytorch import GPyTorchModel
from botorch.models.model import FantasizeMixin, Model
from botorch.models.transforms.input import InputTransform
from botorch.models.transforms.outcome import OutcomeTransform
from botorch.posteriors import GPyTorchPosterior, Posterior
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from gpytorch.likelihoods import GaussianLikelihood
from torch import Tensor

from botorch_ext.domains.points import PointsLike, checked_like, require_finite
from botorch_ext.kernel_functions import KernelFunction, freeze
from botorch_ext.models.checks import (
    PriorMean,
    checked_inputs,
    checked_noise_of,
    checked_noise_variance,
    checked_values,
    frozen_mean,
    require_transform,
)
from botorch_ext.models.cholesky import GrowingCholesky
from botorch_ext.models.freezing import frozen_parts
from botorch_ext.models.joint_posterior import joint_distribution
from botorch_ext.models.predictions import Predictions
from botorch_ext.models.stacked_means import selected_mean


class KernelGP(Predictions, Model, FantasizeMixin):
    """An exact GP with a fixed kernel and a fixed noise variance that grows in O(n^2) per point.

    ``mean = k' (K + lambda I)^-1 y`` and ``std^2 = k(x, x) - k' (K + lambda I)^-1 k`` (around the
    prior mean, where there is one). Leading batch dimensions of the kernel or of the noise variance
    mean many models of the same data at once, with one batched factorisation.

    As in BoTorch, ``posterior`` takes ``t-batch x q x d`` and broadcasts the t-batch against the
    batch shape of the model: every model at the same points is ``t-batch x 1 x q x d``.

    Args:
        kernel: Any GPyTorch kernel; it is copied and frozen. Or one that is frozen already, of this
            dtype and on this device.
        noise_variance: The ridge lambda > 0: a float, or a ``*batch``-dim tensor.
        mean: The prior mean: a GPyTorch `Mean`, a callable ``... x n x d`` to ``... x n``, or a
            number; zero if None.
        input_transform: A fitted BoTorch input transform, applied to all inputs.
        outcome_transform: A fitted BoTorch outcome transform, applied to observations and undone in
            the posterior. ``noise_variance``, ``mean`` and the kernel live in the transformed
            space.
        dtype: float64 unless asked otherwise.
        device: The device of all buffers.

    Raises:
        ValueError: A noise variance that is not positive and finite, or another argument that is
            not what it should be.
    """

    noise_variance: Tensor
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
            self.kernel_function = freeze(kernel, dtype, noise.device)
            self.kernel = deepcopy(kernel).to(dtype=dtype, device=device).requires_grad_(False)
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
        arguments, X, y = frozen_parts(model)
        frozen = cls(**arguments)
        frozen._append(X, y)
        return frozen

    def fork(self) -> Self:
        new = self._shallow_copy()
        new._inputs, new.factor = self._inputs.clone(), self.factor.fork()
        return new

    def keep(self, index: int | list[int]) -> None:
        super().keep(index)
        mean = selected_mean(self.mean, index)
        self._modules.pop("mean", None)  # which only a module could take the place of
        self.mean = mean

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
    def dtype(self) -> torch.dtype:
        return self.noise_variance.dtype

    @property
    def device(self) -> torch.device:
        return self.noise_variance.device

    @property
    def likelihood(self) -> GaussianLikelihood:
        """The noise as GPyTorch has it."""
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
        """The (transformed) inputs so far, ``n x d``."""
        return (self._inputs[..., : self.num_observations, :],)

    # --- data -----------------------------------------------------------------------------------

    def add(self, X: PointsLike, Y: PointsLike | None) -> None:
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
        transform = self.transform_inputs if hasattr(self, "input_transform") else None
        with torch.no_grad():
            X, Z = checked_inputs(X, self.dim, self.noise_variance, transform)
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
            self._append(Z, Y, K, prior)

    def set_targets(self, rows: Sequence[int], Y: PointsLike) -> None:
        """Gives rows new values: pending rows become known, known ones are replaced.

        Args:
            rows: Positions in the order of addition.
            Y: ``n x 1`` or ``n``, one for each row.

        Raises:
            ValueError: A row that does not exist, or a value that is not finite.
        """
        rows = self._checked_rows(rows)
        X = self._inputs[rows]
        # Outcome transforms that look at X look at a task, which input transforms leave alone: that
        # these inputs are transformed makes no difference.
        y = self._transform_values(checked_values(Y, len(rows), self.noise_variance), X)
        with torch.no_grad():
            self._set_residuals(rows, y - self._prior_mean(X))

    def condition_on_observations(self, X: PointsLike, Y: PointsLike, **kwargs: Any) -> Self:
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
    ) -> None:
        n = self.num_observations
        y = None
        if Y is not None:
            y = Y - (self._prior_mean(X) if prior is None else prior)
        covariance = self.kernel_function(X, X) if K is None else K
        self.factor.append(self._cross(X), covariance, y)
        if self.factor.capacity > self._inputs.shape[-2]:
            grown = X.new_zeros(*self._inputs.shape[:-2], self.factor.capacity, X.shape[-1])
            if n:
                grown[..., :n, :] = self._inputs[..., :n, :]
            self._inputs = grown
        self._inputs[..., n : n + X.shape[-2], :] = X
        self._warn_of_jitter(n)

    def _truncate(self, num_points: int) -> None:
        self.factor.truncate(num_points)

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
        distribution = joint_distribution(self, Z, noise)
        posterior = GPyTorchPosterior(distribution)
        if hasattr(self, "outcome_transform"):
            posterior = self.outcome_transform.untransform_posterior(posterior, X=X)
        return posterior if posterior_transform is None else posterior_transform(posterior, X=X)

    def subset_output(self, idcs: list[int]) -> Self:
        """The model itself; there is one output.

        Raises:
            ValueError: ``idcs`` is not [0].
        """
        if idcs != [0]:
            raise ValueError(f"idcs must be [0], got {idcs}")
        return self
