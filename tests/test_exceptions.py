"""Errors that carry more than a message."""

import pickle

import pytest

from botorch_ext import exceptions
from botorch_ext.exceptions import BotorchExtWarning, HorizonReached, WaitingForObservations


@pytest.mark.parametrize(
    ("error", "attributes"),
    [
        (WaitingForObservations("not yet", [3, 5], 2), {"ids": [3, 5], "available": 2}),
        (HorizonReached("no more", 1000), {"horizon": 1000}),
    ],
)
def test_errors_travel_between_processes(error: ValueError, attributes: dict) -> None:
    copy = pickle.loads(pickle.dumps(error))
    for each in (error, copy):
        assert isinstance(each, ValueError) and type(each) is type(error)
        assert vars(each) == attributes
        assert str(each) in ("not yet", "no more") and str(each) == str(error)


def test_a_name_that_is_to_go_warns() -> None:
    with pytest.warns(DeprecationWarning, match="NoTritonWarning is never issued"):
        assert issubclass(exceptions.NoTritonWarning, BotorchExtWarning)
    with pytest.raises(AttributeError, match="no attribute 'NoSuchWarning'"):
        _ = exceptions.NoSuchWarning
