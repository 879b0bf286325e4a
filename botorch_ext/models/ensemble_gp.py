"""EnsembleGP: a batch of GPs that BoTorch treats as one model, a mixture of them."""

from __future__ import annotations

from typing import Any, NoReturn

from botorch.exceptions import UnsupportedError
from botorch.posteriors.fully_bayesian import GaussianMixturePosterior
from torch import Tensor

from botorch_ext.domains.points import PointsLike
from botorch_ext.models.kernel_gp import KernelGP


class EnsembleGP(KernelGP):
    """A `KernelGP` with one batch dimension of m models, as a BoTorch ensemble model.

    All models are evaluated at the same points, and the posterior is their mixture, with the batch
    dimension of the models before that of the points. The arguments are those of `KernelGP`.
    """

    _is_ensemble = True

    def posterior(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, X: Tensor, *args: Any, **kwargs: Any
    ) -> GaussianMixturePosterior:
        """The mixture of the posteriors of all models; arguments as for `KernelGP.posterior`.

        Args:
            X: Points, ``t-batch x q x d``.
            *args: Other arguments of `KernelGP.posterior`.
            **kwargs: Other arguments of `KernelGP.posterior`.

        Returns:
            The mixture over ``t-batch x m x q x 1``.
        """
        posterior: Any = super().posterior(X.unsqueeze(-3), *args, **kwargs)
        return GaussianMixturePosterior(distribution=posterior.distribution)

    def fantasize(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise an error, since only single models of a mixture have fantasies.

        Raises:
            UnsupportedError: Always.
        """
        raise UnsupportedError("EnsembleGP has no fantasies: call fantasize of one of its models")

    def mean_and_std(self, X: PointsLike) -> tuple[Tensor, Tensor]:
        X = self._checked_batches(X)
        posterior = self.posterior(X.unsqueeze(-2))  # n x m x 1 x 1
        return posterior.mean[..., 0, 0].mT, posterior.variance[..., 0, 0].sqrt().mT
