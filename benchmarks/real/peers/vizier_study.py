"""Vizier's default algorithm, in a study of its own process."""

# pyright: reportMissingImports=false

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import jax
from vizier import pyvizier as vz
from vizier.service import clients
from vizier.service import pyvizier as service

from benchmarks.real.spaces import Parameter, Params


class VizierStudy:
    """A study of the default algorithm, which takes no seed and no conditions: parameters that
    depend on others are always there.

    Args:
        parameters: The inputs of the task.
        seed: Not used.
        evaluations: How many the run has.
    """

    def __init__(self, parameters: Sequence[Parameter], seed: int, evaluations: int) -> None:
        jax.clear_caches()  # each run adds gigabytes of compiled programs
        self._parameters = parameters
        config = service.StudyConfig(algorithm="DEFAULT")
        root = config.search_space.root
        for p in parameters:
            scale = vz.ScaleType.LOG if p.log else vz.ScaleType.LINEAR
            if p.kind == "choice":
                root.add_categorical_param(p.name, [str(i) for i in range(len(p.choices))])
            elif p.kind == "integer":
                root.add_int_param(p.name, int(p.lower), int(p.upper), scale_type=scale)
            else:
                root.add_float_param(p.name, p.lower, p.upper, scale_type=scale)
        config.metric_information.append(
            vz.MetricInformation("loss", goal=vz.ObjectiveMetricGoal.MINIMIZE)
        )
        name = uuid.uuid4().hex  # two of one name would be one study
        self._study = clients.Study.from_study_config(config, owner="owner", study_id=name)
        self._asked: Any = None

    def ask(self) -> Params:
        """The next setting."""
        (self._asked,) = self._study.suggest(count=1)
        found = self._asked.parameters
        return {p.name: p.read(found[p.name]) for p in self._parameters}

    def tell(self, params: Params, loss: float) -> None:
        """Its loss."""
        self._asked.complete(vz.Measurement({"loss": loss}))

    def best(self) -> None:
        """Nothing: Vizier recommends the least value seen."""
