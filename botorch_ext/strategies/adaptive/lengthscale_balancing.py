"""LB-GP-UCB, which plays the lengthscale with the smallest suspected regret bound."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

import torch
from torch import Tensor

from botorch_ext.checks import amount
from botorch_ext.domains import Domain, host
from botorch_ext.domains.contexts import ContextLike
from botorch_ext.models.candidates import CandidateModels
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsOptions, BoundsStrategy
from botorch_ext.strategies.adaptive.judges import Judge, Standing, require_lengthscales
from botorch_ext.strategies.adaptive.prediction_tests import noise_scale
from botorch_ext.strategies.adaptive.predictions import Interval
from botorch_ext.strategies.events import Attached, Event, Told, Trial
from botorch_ext.widths import Width, check_delta, check_noise_std, check_rkhs_bound
from botorch_ext.widths.base import RKHSWidth


class SuspectedRegret(Judge):
    """A judge that lets the lengthscale with the smallest suspected regret bound play, and refutes
    one whose rewards are too low for its bound: see `LengthscaleBalancing`.

    Args:
        noise_std: R, the sub-Gaussian constant of the noise.
        delta: The failure probability.
        rkhs_bound: B in the suspected bound.
        constant: C in the suspected bound.
        dim: d, the dimension of the actions.
    """

    needs_predictions = True
    advises = True

    def __init__(
        self, noise_std: float, delta: float, rkhs_bound: float, constant: float, dim: int
    ) -> None:
        self.rkhs_bound = check_rkhs_bound(rkhs_bound)
        self._noise_std, self.delta = check_noise_std(noise_std), check_delta(delta)
        self.constant, self.dim = amount(constant, "constant", "positive and finite"), dim
        # For each model: the number of its told plays, and the sums of their observations and of
        # their half-widths.
        self._sums: dict[int, tuple[int, float, float]] = {}

    def contenders(self, standing: Standing) -> list[int]:
        played = standing.times_played()
        n = host.tensor([1 + played[id] for id in standing.alive], dtype=torch.float64)
        scale = require_lengthscales(standing.models).to(n)
        gain = scale**-self.dim * n.log() ** (self.dim + 1)
        suspected = self.constant * (n * gain).sqrt() * (gain.sqrt() + self.rkhs_bound)
        return [int(suspected.argmin())]

    def learn(self, trial: Trial, value: float, standing: Standing) -> list[int]:
        model, half_width = trial.info["model"], Interval(**trial.info["told"]).half_width
        count, total, half_widths = self._sums.get(model, (0, 0.0, 0.0))
        self._sums[model] = count + 1, total + value, half_widths + half_width
        # A model that joins with the next trial does not count before.
        known = standing.num_known[trial.id]
        present = [id for id in standing.alive if id < known or id in self._sums]
        if not all(id in self._sums for id in present):
            return []
        num_models = max(known, 1 + max(self._sums))
        xi = noise_scale(self._noise_std, self.delta, standing.num_data, num_models)
        upper, lower = {}, {}
        for id in present:
            count, total, half_widths = self._sums[id]
            noise = math.sqrt(xi / count)
            upper[id] = (total + half_widths) / count + noise
            lower[id] = total / count - noise
        best = max(lower.values())
        return [id for id, value_at_most in upper.items() if value_at_most < best]


class LengthscaleBalancing(BoundsStrategy):
    """LB-GP-UCB: plays the lengthscale with the smallest suspected regret bound after one more
    play, and eliminates a lengthscale whose rewards are too low for its bound.

    The suspected bound of n plays with lengthscale l is C sqrt(n g) (sqrt(g) + B) with g = l^-d
    ln(n)^(d+1), the growth of the information gain of the RBF kernel. Once all have played, u is
    eliminated when mean(y over S_u) + mean(w s over S_u) + sqrt(xi_t / |S_u|) is less than the
    largest mean(y over S_v) - sqrt(xi_t / |S_v|). ``info`` of a trial is that of `BoundsStrategy`,
    with ``told``; the report is that of `BoundsStrategy`. Source: Ziomek et al. 2024, arXiv
    2410.10384.

    Args:
        domain: The domain of the actions: a `Box`, its bounds, or a `FiniteSet`.
        models: The candidate models, which differ in one lengthscale; they may be
            `CandidateModels.growing`.
        width: The confidence width, or a number, for all models.
        noise_std: R, the sub-Gaussian constant of the noise, in units of the observations.
        delta: The failure probability.
        rkhs_bound: B in the suspected bound.
        constant: C in the suspected bound.
        standardize: Whether the models see standardised observations: minus their mean so far,
            divided by their standard deviation so far. ``width`` must then have a ``noise_std``,
            which is divided too. ``info`` and `best` stay in units of the observations.
        options: The keyword arguments of `BoundsStrategy`.

    Raises:
        ValueError: If `BoundsStrategy` raises it, if contexts are given, if the models do not
            differ in one lengthscale, or if a number is impossible. With ``standardize`` also if
            models have data, if ``width`` has no ``noise_std``, or if pending trials are censored.
    """

    takes_ladders = False
    refuses_std = "its regret bounds count observations as equally noisy"

    def __init__(
        self,
        domain: Domain,
        models: CandidateModels,
        width: Width | float,
        *,
        noise_std: float,
        delta: float = 0.1,
        rkhs_bound: float = 1.0,
        constant: float = 1.0,
        standardize: bool = False,
        **options: Unpack[BoundsOptions],
    ) -> None:
        if options.get("context_domain") is not None:
            raise ValueError(
                "context_domain must be None: the bounds of LengthscaleBalancing know no contexts"
            )
        judge = SuspectedRegret(noise_std, delta, rkhs_bound, constant, domain.dim)
        require_lengthscales(models)
        if standardize and models.num_observations:
            raise ValueError(
                "models must have no data if outputs are standardised: pass it as initial"
            )
        if standardize and not isinstance(width, RKHSWidth):
            raise ValueError(
                f"width must have a noise_std if outputs are standardised, got {width!r}"
            )
        if standardize and options.get("pending") == "censor":
            raise ValueError('pending must not be "censor" if outputs are standardised')
        self.standardize = standardize
        self._shift, self._scale = 0.0, 1.0
        super().__init__(domain, models, width, judge=judge, **options)
        if standardize:
            self._retarget()

    def bands(self, X: Tensor, context: ContextLike | None = None) -> tuple[Tensor, Tensor]:
        mean, half_width = super().bands(X, context)
        shift = self.history.sign * self._shift
        return shift + self._scale * mean, self._scale * half_width

    def _current_width(self) -> Width | list[Width]:
        width = super()._current_width()
        if self.standardize and isinstance(width, RKHSWidth):
            return replace(width, noise_std=width.noise_std / self._scale)
        return width

    def _in_units(self, interval: Interval) -> Interval:
        return Interval(
            self._shift + self._scale * interval.mean,
            self._scale * interval.std,
            interval.width,
            self._scale * interval.offset,
        )

    def _absorb(self, event: Event) -> None:
        super()._absorb(event)
        if self.standardize and isinstance(event, Told | Attached):
            self._retarget()

    def _retarget(self) -> None:
        """Standardises all observations again."""
        self._rows.catch_up()
        told = self.history.values
        before = [] if self._initial is None else self._initial[1].tolist()
        rows, values = [], []
        for row, id in enumerate(self._rows.ids):
            if id is None or id in told:
                rows.append(row)
                values.append(before[row] if id is None else told[id])
        if not rows:
            return
        Y = host.tensor(values, dtype=self.domain.dtype)
        self._shift = float(Y.mean())
        spread = float(Y.std()) if len(values) > 1 else 0.0
        self._scale = spread if spread > 0 else 1.0
        self._rows.posterior = self._rows.posterior.successor()
        targets = (Y - self._shift) / self._scale
        self._rows.posterior.set_targets(rows, targets.to(self.domain.device, non_blocking=True))

    def _restored(self, values: Tensor) -> tuple[Tensor, Tensor]:
        return self._shift + self._scale * values, torch.full_like(values, self._scale)

    def evaluated_means(self) -> Tensor:
        return self._shift + self._scale * super().evaluated_means()
