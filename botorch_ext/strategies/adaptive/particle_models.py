"""The particles of one measured quantity, and its models given the told data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from botorch_ext.domains import host
from botorch_ext.hyperparameters.density import Density, RowNoise
from botorch_ext.hyperparameters.ensemble import Ensemble
from botorch_ext.hyperparameters.inputs import Inputs
from botorch_ext.hyperparameters.outcomes import Outcomes
from botorch_ext.hyperparameters.particles import Cloud, Particles, telling
from botorch_ext.limits import Limit
from botorch_ext.state import State


@dataclass(frozen=True, eq=False)
class ParticleData:
    """The told data of one quantity.

    Args:
        inputs: The map from joint rows to features.
        joint: The joint rows, ``n x (d + d_z)``.
        values: The ``n`` observations, on the CPU.
        noise: Their noise, on the CPU; None if they are equally noisy.
    """

    inputs: Inputs
    joint: Tensor
    values: Tensor
    noise: RowNoise | None = None


class ParticleModels(State):
    """The particles of one quantity that were recorded last, and the models of the data so far.

    Args:
        particles: The settings of the particles.
        bends: Whether low observations are compressed by a transform if the data make it likely.
        limit: The limit of the quantity, if it has one: its margin is modelled then.
    """

    def __init__(
        self, particles: Particles, bends: bool = False, limit: Limit | None = None
    ) -> None:
        self._particles, self._bends, self._limit = particles, bends, limit
        #: The particles that were recorded last.
        self.cloud: Cloud | None = None
        # The number of observations that they are given, and a cache: their models.
        self._num_absorbed = 0
        self._absorbed: Ensemble | None = None
        # Another cache that follows from the events: the particles and models of the data so far.
        self._known: tuple[tuple[int, int | None], Cloud, Ensemble] | None = None

    def current(
        self, num: int, step: int, columns: int, data: Callable[[], ParticleData], seed: int
    ) -> tuple[Cloud, Ensemble]:
        """The particles given the data so far, and their models.

        Args:
            num: The number n of observations.
            step: The number of trials so far.
            columns: The number of columns of joint rows.
            data: Gives the data.
            seed: The seed of the particles.
        """
        cloud = self.cloud
        stays = cloud is not None and not self._particles.are_due(self._num_absorbed, num)
        key = num, None if stays else step
        known = self._known
        if known is None or known[0] != key or (not num and known[2].joint.shape[-1] != columns):
            told = data()
            if cloud is None or not stays:
                cloud = self._fitted(told, seed)
                ensemble = self._ensemble(cloud, told)
            else:
                before = self._num_absorbed
                if self._absorbed is None:
                    self._absorbed = self._ensemble(cloud, _first(told, before))
                ensemble = self._absorbed
                if num > before:  # always from there, so that a resumed study has the same digits
                    outcomes = self._outcomes(told, cloud.bend)
                    ensemble = ensemble.extended(told.inputs, told.joint, outcomes)
            known = key, cloud, ensemble
            self._known = known
        return known[1:]

    def adopt(self, cloud: Cloud, num: int) -> None:
        """Goes on with particles that were updated for the next trial, given ``num``
        observations."""
        self.cloud, self._num_absorbed, self._absorbed = cloud, num, None
        if self._known is not None and self._known[1] is cloud:  # its models stay valid
            self._known = (num, None), *self._known[1:]
            self._absorbed = self._known[2]

    def forget(self) -> None:
        """Forgets the particles, which are drawn anew for the next trial."""
        self.cloud = self._known = self._absorbed = None
        self._num_absorbed = 0

    def _outcomes(self, told: ParticleData, bend: float = 0.0) -> Outcomes:
        device = told.joint.device
        if self._limit is not None:
            return Outcomes.of_margins(self._limit.margin(told.values), device)
        return Outcomes.of(told.values, device, bend, told.noise)

    def _ensemble(self, cloud: Cloud, told: ParticleData) -> Ensemble:
        outcomes = self._outcomes(told, cloud.bend)
        return Ensemble.of(cloud.parameters, told.inputs, told.joint, outcomes)

    def _fitted(self, told: ParticleData, seed: int) -> Cloud:
        """The particles given all observations, moved from earlier particles if there are any."""
        X, Y, noise = told.inputs.features(told.joint), told.values, told.noise
        outcomes, cloud, groups = self._outcomes(told), self.cloud, told.inputs.groups
        if cloud is None:
            cloud = self._particles.started(X, outcomes.values, groups, seed, outcomes.noise)
        if self._bends:
            rows = telling(X, outcomes.values)
            some, own = outcomes.some(rows), rows.to(Y.device)
            density = Density(X[rows], some.values, self._particles.prior, groups, some.noise)
            of_rows = None if noise is None else noise.of(own)
            bend = Outcomes.likeliest(Y[own], density, cloud.parameters, of_rows).bend
            outcomes = self._outcomes(told, bend)
        if self.cloud is not None:
            cloud = self._particles.moved(cloud, X, outcomes.values, groups, seed, outcomes.noise)
        elif outcomes.bend:
            cloud = self._particles.started(X, outcomes.values, groups, seed, outcomes.noise)
        return replace(cloud, bend=outcomes.bend)


def _first(told: ParticleData, num: int) -> ParticleData:
    """The first observations alone."""
    noise = None if told.noise is None else told.noise.of(host.arange(num))
    return replace(told, joint=told.joint[:num], values=told.values[:num], noise=noise)


def numbers_of(cloud: Cloud) -> Tensor:
    """The numbers of particles, in one dimension, for `recorded`."""
    return torch.cat([cloud.values, cloud.parameters.flatten()])


def recorded(cloud: Cloud, numbers: Iterator[float]) -> dict[str, Any]:
    """The record of particles as plain values, which takes those of `numbers_of` from an
    iterator."""
    values = list(islice(numbers, len(cloud.values)))
    rows = [list(islice(numbers, cloud.parameters.shape[-1])) for _ in values]
    bend = {"bend": cloud.bend} if cloud.bend else {}
    return {"parameters": rows, "values": values} | bend
