"""The conformance suite finds what is wrong with a strategy, and says why what does not hold."""

import pytest
import torch

import botorch_ext as bx
from botorch_ext.strategies import RandomSearch
from botorch_ext.testing import check_strategy


def box():
    return bx.Box([[2.0], [5.0]])


def test_a_right_strategy_passes_with_reasons():
    reasons = check_strategy(lambda seed: RandomSearch(box(), seed))
    assert list(reasons.values()) == ["its points depend on the number of the trial alone"]


class Forgetful(RandomSearch):
    """Draws from the global generator."""

    def _decide(self, choices):
        x, info = super()._decide(choices)
        return x if choices.actions is not None else 2 + 3 * torch.rand_like(x), info


class Telling(RandomSearch):
    """Refuses only after it has changed."""

    def tell(self, id, value):
        self.warnings.append("told")
        super().tell(id, value)


class Counting(RandomSearch):
    """Counts its asks where no event says so."""

    asked = 0

    def report(self):
        self.asked += 1
        return super().report() | {"asked": self.asked}


class Torn(RandomSearch):
    """Is not itself while it is told, and forgets to return when that is broken off."""

    is_told = False

    def tell(self, id, value):
        self.is_told = True
        try:
            super().tell(id, value)
        except Exception:
            self.is_told = False
            raise
        self.is_told = False

    def report(self):
        return super().report() | {"is_told": self.is_told}


@pytest.mark.parametrize(
    ("wrong", "law"),
    [
        (Forgetful, "the seed decides"),
        (Telling, "a session goes on from every prefix"),
        (Counting, "a session goes on from every prefix"),
        (Torn, "calls broken off anywhere are made or not"),
    ],
)
def test_a_wrong_strategy_is_found(wrong, law):
    with pytest.raises(AssertionError) as found:
        check_strategy(lambda seed: wrong(box(), seed))
    assert f"this law does not hold: {law}" in found.value.__notes__[0]


def test_what_is_no_strategy_is_refused():
    with pytest.raises(ValueError, match="make must make a Strategy without events"):
        check_strategy(lambda: 3)
