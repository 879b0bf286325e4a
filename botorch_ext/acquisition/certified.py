"""The restriction of an acquisition function to points whose outcomes are certified to be safe."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_ext.acquisition.input_checks import as_batch, as_rows
from botorch_ext.checks import short, whole_number
from botorch_ext.domains import Box
from botorch_ext.domains.bounds import BoundsLike
from botorch_ext.domains.points import PointsLike, require_finite
from botorch_ext.exceptions import ModelRefutedWarning
from botorch_ext.limits import Limit
from botorch_ext.models.kernel_gp import KernelGP
from botorch_ext.search.certified import CertifiedBounds, CertifiedSet
from botorch_ext.widths.limits import checked_names, quantities


class CertifiedSafe(AcquisitionFunction):
    """A point is certified only as far as B, the kernel, sigma and eps are right; a wrong kernel
    can pass unnoticed and make certificates false; nothing here may stand between a machine and a
    person.

    The acquisition function has the values of another one at points that are certified to be safe,
    and -inf elsewhere. A point is certified if it is a seed, or if the confidence bounds of every
    outcome are within its limit there. If all models are right, then all points that are certified
    in a whole loop are safe, with probability at least 1 - delta. The bounds hold at all times
    together, so a loop makes a new `CertifiedSafe` after every result, with the same numbers and
    hyperparameters.

    The bounds are those of the data that the models have been told when this is made; as long as
    one of the models has no data, only seeds are certified. Pending
    points never count in them. The bounds of former data are not intersected with these: such
    running bounds would certify more, and the present ones are valid too.

    The data refute the model of an outcome if a lower bound of its RKHS norm exceeds B, or if its
    bounds contradict each other at a seed or an evaluated point. Then only seeds are certified.
    Former refutations are not remembered, so a loop should end at the first one. Source: the event
    of Flynn and Reeb 2025 (arXiv 2403.12732); the proof is on the page "Theory".

    Args:
        acqf: The acquisition function, any of BoTorch's or of this library.
        models: The models of the outcomes by name: single `KernelGP`s in float64 with their data
            (see `KernelGP.from_botorch`), without outcome transforms.
        thresholds: The limit of each outcome by name: `AtMost`, `AtLeast`, or a text such as
            ``"<= 5.0"`` or ``">= 0.3"``.
        safe_seed: The points that are known to be safe, ``n x d``, at least one.
        rkhs_bound: B, at least the RKHS norm of each outcome minus its prior mean, in its units:
            one number, or one for each outcome in the order of ``models``.
        noise_std: sigma, the sub-Gaussian constant of the noise, likewise.
        delta: The failure probability of all bounds together.
        misspecification: eps, the largest distance of each outcome to what its model can express,
            likewise.
        bounds: "mixture", the bounds of `Mixture`, or "ladder", those of `Ladder`.

    Raises:
        ValueError: If an argument has an impossible value. The message names the argument.

    Warns:
        ModelRefutedWarning: The data refute the model of an outcome.

    Example:
        >>> import torch
        >>> from botorch.acquisition import UpperConfidenceBound
        >>> from botorch_ext import KernelGP
        >>> from botorch_ext.acquisition import CertifiedSafe
        >>> from gpytorch.kernels import RBFKernel
        >>> model = KernelGP(RBFKernel(), noise_variance=0.01)
        >>> model.add([[0.2], [0.5]], [0.1, 0.4])
        >>> acqf = CertifiedSafe(
        ...     UpperConfidenceBound(model, beta=4.0), {"pressure": model}, {"pressure": "<= 1.0"},
        ...     safe_seed=[[0.2]], rkhs_bound=1.5, noise_std=0.1,
        ... )
        >>> X, values = acqf.optimize([[0.0], [2.0]])
        >>> bool(acqf.slack(X) >= 0)
        True
        >>> acqf([[[2.0]]]).tolist()
        [-inf]
    """

    def __init__(
        self,
        acqf: AcquisitionFunction,
        models: Mapping[str, KernelGP],
        thresholds: Mapping[str, str | Limit],
        *,
        safe_seed: PointsLike,
        rkhs_bound: float | Sequence[float],
        noise_std: float | Sequence[float],
        delta: float = 0.1,
        misspecification: float | Sequence[float] = 0.0,
        bounds: Literal["mixture", "ladder"] = "mixture",
    ) -> None:
        if not isinstance(acqf, AcquisitionFunction):
            raise ValueError(f"acqf must be a BoTorch acquisition function, got {short(acqf)}")
        super().__init__(model=acqf.model)
        self.acqf = acqf
        names = checked_names(models, thresholds, "models")
        for each in models.values():
            _check_model(each)
        self._like = models[names[0]]
        seeds = as_rows(safe_seed, self._like, "safe_seed")
        if seeds is None or not len(seeds):
            raise ValueError(f"safe_seed must have at least one point, got {short(safe_seed)}")
        self._seeds = seeds
        for each in models.values():
            each.require_takes(seeds)
        limits = [Limit.read(thresholds[name], f"thresholds[{name!r}]") for name in names]
        numbers = rkhs_bound, noise_std, delta, misspecification, bounds
        outcomes = [
            CertifiedBounds(models[name], quantity)
            for name, quantity in zip(names, quantities(limits, *numbers), strict=True)
        ]
        refuted = [
            repr(name)
            for name, each in zip(names, outcomes, strict=True)
            if each.is_refuted_at(seeds)
        ]
        #: Whether the data refute the model of an outcome.
        self.refuted = bool(refuted)
        self._set = CertifiedSet(outcomes, seeds, self.refuted)
        if refuted:
            warnings.warn(
                f"the model of {', '.join(refuted)} is refuted, so that only seeds are certified",
                ModelRefutedWarning,
                stacklevel=2,
            )

    @property
    def X_pending(self) -> Tensor | None:
        """The pending points of the acquisition function."""
        return getattr(self.acqf, "X_pending", None)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Sets the pending points of the acquisition function; they never count in the slack.

        Args:
            X_pending: The ``n x d`` pending points; None for no pending points.
        """
        self.acqf.set_X_pending(X_pending)

    # --- what is certified ------------------------------------------------------------------------

    def slack(self, X: Tensor) -> Tensor:
        """By how much the bounds are within the limits, in the units of the nearest outcome.

        Args:
            X: The points ``b x q x d``, as a tensor, an array or nested numbers.

        Returns:
            The least slack of all outcomes and of the q points, ``b``; inf at seeds, and -inf
            elsewhere once a model is refuted. It is differentiable in ``X``.

        Raises:
            ValueError: If points have another dtype, device or dimension than the seeds, or an
                entry that is not finite.
        """
        X = self._batch(X)
        require_finite({"X": X.detach()})
        return self._set.slack(X.flatten(0, -2)).view(X.shape[:-1]).amin(dim=-1)

    def forward(self, X: Tensor) -> Tensor:
        """The values of the acquisition function at certified points, and -inf elsewhere.

        Args:
            X: The points ``b x q x d``, as for `slack`.

        Returns:
            The ``b`` values; -inf if one of the q points is not certified.

        Raises:
            ValueError: If points have another dtype, device or dimension than the seeds.
        """
        X = self._batch(X)
        certified = self._set.contains(X.flatten(0, -2)).view(X.shape[:-1]).all(dim=-1)
        return torch.where(certified, self.acqf(X), -torch.inf)

    def constraints(self) -> list[tuple[Callable[[Tensor], Tensor], bool]]:
        """The constraints for ``optimize_acqf(nonlinear_inequality_constraints=...)``, with the
        starts of `initial_conditions`.

        An optimiser may leave the certified set all the same: compare `slack` with 0 before a point
        is used, or call ``optimize``, which also works where only seeds are certified.

        Returns:
            For each outcome a function of one point, ``d``, and True. The function is non-negative
            only at certified points.
        """
        return self._set.constraints()

    @property
    def X_baseline_certified(self) -> Tensor:
        """The evaluated points that are certified, ``n x d``."""
        told = [each.X for each in self._set.outcomes if len(each.X)]
        told = torch.cat(told or [self._seeds[:0]]).unique(dim=0)
        return told[self._set.contains(told)]

    # --- optimisation -----------------------------------------------------------------------------

    def initial_conditions(self, bounds: BoundsLike, num: int, q: int = 1, seed: int = 0) -> Tensor:
        """Certified points at which an optimisation may start, by hit-and-run from the seeds and
        the certified evaluated points.

        Args:
            bounds: The ``2 x d`` bounds.
            num: The number of batches.
            q: The number of points of each batch.
            seed: The seed of the random numbers.

        Returns:
            The points, ``num x q x d``.

        Raises:
            ValueError: If an argument has an impossible value, or if no seed and no certified
                evaluated point lies within the bounds.
        """
        box, num, q = self._box(bounds), whole_number(num, "num"), whole_number(q, "q")
        seed = whole_number(seed, "seed", least=0)
        return self._set.spread(box, self._known(box), num * q, seed).view(num, q, -1)

    def optimize(
        self,
        bounds: BoundsLike | None = None,
        choices: PointsLike | None = None,
        q: int = 1,
        num_restarts: int = 16,
        raw_samples: int = 256,
        seed: int = 0,
    ) -> tuple[Tensor, Tensor]:
        """The best certified points of a box or of a list of points, chosen one after the other,
        each with the points before it pending.

        Ascents that leave the certified set are dropped, so that the result is at least as good as
        the best certified start.

        Args:
            bounds: The ``2 x d`` bounds. None: ``choices`` are given.
            choices: The ``n x d`` points to choose from. None: ``bounds`` are given.
            q: The number of points; more than one only if the acquisition function takes pending
                points.
            num_restarts: The number of ascents for each point.
            raw_samples: The number of certified points of which the best are the starts.
            seed: The seed of the random numbers.

        Returns:
            The points, ``q x d``, and the ``q`` values of the acquisition function, each with the
            points before it pending.

        Raises:
            ValueError: If an argument has an impossible value, or if no certified point is known
                within the bounds or among the choices.
        """
        if (bounds is None) == (choices is None):
            both = "none" if bounds is None else "both"
            raise ValueError(f"bounds or choices must be given, and not both, got {both}")
        q, seed = whole_number(q, "q"), whole_number(seed, "seed", least=0)
        num_restarts = whole_number(num_restarts, "num_restarts")
        raw_samples = whole_number(raw_samples, "raw_samples")
        listed = as_rows(choices, self._like, "choices", self._seeds.shape[-1])
        before, points, values = self.X_pending, [], []
        try:
            for place in range(q):
                if place:
                    told = [] if before is None else [before]
                    self.set_X_pending(torch.cat([*told, *points]))
                if bounds is None:
                    x, value = self._set.best_of(
                        self._values, self._seeds[:0] if listed is None else listed
                    )
                    if not len(x):
                        raise ValueError("choices must have a certified point, got none")
                else:
                    box = self._box(bounds)
                    known = self._known(box)
                    spread = self._set.spread(box, known, raw_samples, seed + place)
                    starts = torch.cat([known, spread])
                    x, value = self._set.maximize(self._values, box, starts, num_restarts)
                points.append(x)
                values.append(value)
        finally:
            if q > 1:
                self.set_X_pending(before)
        return torch.cat(points), torch.cat(values)

    def _values(self, X: Tensor) -> Tensor:
        return self.acqf(X.unsqueeze(-2))

    def _box(self, bounds: BoundsLike) -> Box:
        return Box(bounds).to(self._seeds.dtype, self._seeds.device)

    def _known(self, box: Box) -> Tensor:
        """The seeds and the certified evaluated points in a box."""
        known = torch.cat([self._seeds, self.X_baseline_certified])
        known = known[box.contains(known)]
        if not len(known):
            raise ValueError(f"bounds must contain a certified point, got {short(box.bounds)}")
        return known

    def _batch(self, X: Any) -> Tensor:
        X = as_batch(X, self._like, dim=self._seeds.shape[-1])
        return X.unsqueeze(0) if X.ndim == 2 else X


def _check_model(model: Any) -> None:
    if not isinstance(model, KernelGP) or model.batch_shape or model.dtype != torch.float64:
        raise ValueError(
            "models must be single KernelGPs in float64 (see KernelGP.from_botorch), got "
            f"{short(model)}"
        )
    if hasattr(model, "outcome_transform"):
        raise ValueError(
            "models must have no outcome transform: rkhs_bound, noise_std and thresholds are in "
            "the units of the observations"
        )
