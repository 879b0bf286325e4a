import pickle

import pytest

from botorch_ext.exceptions import (
    BotorchExtWarning,
    HorizonReached,
    HorizonWarning,
    WaitingForObservations,
)


def test_waiting_names_what_it_waits_for() -> None:
    error = WaitingForObservations([3, 5], 2)
    assert isinstance(error, ValueError)
    assert (error.ids, error.available) == ([3, 5], 2)
    assert str(error) == (
        "num_trials must be at most 2 until 2 pending trials are told or abandoned: 3, 5"
    )
    assert str(WaitingForObservations(range(500), 0)).endswith("0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...")


def test_the_horizon_is_named() -> None:
    error = HorizonReached(1000)
    assert isinstance(error, ValueError)
    assert error.horizon == 1000
    assert "horizon of 1000 trials" in str(error)
    assert issubclass(HorizonWarning, BotorchExtWarning)


@pytest.mark.parametrize("error", [WaitingForObservations([3, 5], 2), HorizonReached(1000)])
def test_errors_travel_between_processes(error) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert (str(copy), vars(copy)) == (str(error), vars(error))
