"""Methods of the benchmark: each is told the loss and the outcomes of a setting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from botorch.acquisition.objective import GenericMCObjective
from optuna.samplers import GPSampler
from torch import Tensor

import botorch_ext as bx
from benchmarks.common.methods import Method
from benchmarks.limits.tasks import objective, sample
from benchmarks.real.peers.botorch_loop import BoTorchLoop
from benchmarks.real.peers.library import IntegratedEI
from benchmarks.real.peers.optuna_samplers import OptunaStudy
from benchmarks.real.spaces import Params
from benchmarks.real.tasks.task import Task


class _Ours(IntegratedEI):
    """`integrated_ei` with the limits as ``outcomes``."""

    def __init__(self, task: Task, seed: int) -> None:
        super().__init__(task.parameters, seed, task.evaluations)
        limits = {f"g{i}": bx.AtMost(0.0) for i in range(sample(task.name)[2])}
        box = self._strategy.domain
        self._strategy = bx.algorithms.integrated_ei(box, seed=seed, outcomes=limits, minimize=True)

    def tell_all(self, params: Params, loss: float, outcomes: Sequence[float]) -> None:
        named = {f"g{i}": g for i, g in enumerate(outcomes)}
        self._strategy.tell(self._strategy.pending[0], loss, named)


class _Penalty(IntegratedEI):
    """`integrated_ei` that is told the loss plus a penalty, as in `benchmarks.real`."""

    def __init__(self, task: Task, seed: int) -> None:
        super().__init__(task.parameters, seed, task.evaluations)
        self._task = task

    def tell_all(self, params: Params, loss: float, outcomes: Sequence[float]) -> None:
        self.tell(params, objective(self._task.name).true(params))


class _BoTorch(BoTorchLoop):
    """BoTorch's qLogNEI with ``constraints``, and an output of the model for each outcome."""

    def __init__(self, task: Task, seed: int) -> None:
        super().__init__(task.parameters, seed, task.evaluations)

    def tell_all(self, params: Params, loss: float, outcomes: Sequence[float]) -> None:
        self._Y.append((-loss, *outcomes))

    def _improvement(self, **more: Any) -> Any:
        def outcome(place: int) -> Callable[[Tensor], Tensor]:
            return lambda Y: Y[..., place]

        return super()._improvement(
            objective=GenericMCObjective(lambda Y, X=None: Y[..., 0]),
            constraints=[outcome(place) for place in range(1, len(self._Y[0]))],
        )


class _Optuna(OptunaStudy):
    """Optuna's `GPSampler` with its ``constraints_func``."""

    def __init__(self, task: Task, seed: int) -> None:
        sampler = GPSampler(seed=seed, constraints_func=lambda trial: trial.user_attrs["outcomes"])
        super().__init__(sampler, task.parameters)

    def tell_all(self, params: Params, loss: float, outcomes: Sequence[float]) -> None:
        self._trial.set_user_attr("outcomes", list(outcomes))
        self._study.tell(self._trial, loss)


OURS, PENALTY = "integrated_ei", "penalty"
METHODS = {
    OURS: Method(_Ours, "revision 2"),
    PENALTY: Method(_Penalty, "revision 1"),
    "qLogNEI": Method(_BoTorch, "botorch"),
    "GPSampler": Method(_Optuna, "optuna"),
}
