"""Methods of the benchmark: each is a peer of `benchmarks.real`, and what its users do when an
evaluation fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from optuna.trial import TrialState

from benchmarks.common.methods import Method
from benchmarks.real.peers import optuna_samplers
from benchmarks.real.peers.ax_client import AxClient
from benchmarks.real.peers.library import IntegratedEI
from benchmarks.real.spaces import Parameter, Params


class _Ours(IntegratedEI):
    """`integrated_ei`, told which trials fail."""

    def tell(self, params: Params, loss: float) -> None:
        self._strategy.tell(self._strategy.pending[-1], -loss)

    def fail(self) -> None:
        self._strategy.abandon(self._strategy.pending[-1], failed=True)


class _Pending(_Ours):
    """`integrated_ei`, told nothing of a trial that fails: it is pending for ever."""

    def fail(self) -> None:
        pass


class _Ax(AxClient):
    """Ax's client, which marks the trial as failed."""

    def fail(self) -> None:
        self._client.mark_trial_failed(self._index)


class _Optuna:
    """A study of Optuna, in which the trial has the state FAIL."""

    def __init__(self, study: Any) -> None:
        self._of_study = study
        self.ask, self.tell = study.ask, study.tell

    def fail(self) -> None:
        self._of_study._study.tell(self._of_study._trial, state=TrialState.FAIL)


def _optuna(make: Callable[..., Any]) -> Callable[..., _Optuna]:
    def made(parameters: Sequence[Parameter], seed: int, evaluations: int) -> _Optuna:
        return _Optuna(make(parameters, seed, evaluations))

    return made


OURS, PENDING = "integrated_ei", "pending for ever"
METHODS = {
    OURS: Method(_Ours, "revision 3"),
    PENDING: Method(_Pending, "revision 1"),
    "Ax": Method(_Ax, "ax-platform"),
    "GPSampler": Method(_optuna(optuna_samplers.gp), "optuna"),
    "random": Method(_optuna(optuna_samplers.random), "optuna"),
}
