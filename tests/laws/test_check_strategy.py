"""The conformance suite finds what is wrong with a strategy, and says why what does not hold."""

import pytest
import torch

import botorch_ext as bx
from botorch_ext.strategies import OptimisticStrategy, RandomSearch
from botorch_ext.strategies.events import Corrected
from botorch_ext.testing import check_strategy
from tests.helpers import rbf


def box():
    return bx.Box([[2.0], [5.0]])


class Forgetful(RandomSearch):
    """Draws from the global generator."""

    def _decide(self, choices):
        x, info = super()._decide(choices)
        return x if choices.actions is not None else 2 + 3 * torch.rand_like(x), info


class Seedless(RandomSearch):
    """Asks the same with every seed."""

    def _seed_of(self, step):
        return step


class Outside(RandomSearch):
    """Asks beside the box, and does not look."""

    def _decide(self, choices):
        x, info = super()._decide(choices)
        return x + 3.0, info


class Telling(RandomSearch):
    """Refuses only after it has changed."""

    def tell(self, id, value, outcomes=None):
        self.warnings.append("told")
        try:
            super().tell(id, value, outcomes)
        finally:
            self.warnings = self.warnings[:-1] if id in self.history.values else self.warnings


class Counting(RandomSearch):
    """Counts its reports where no event says so."""

    asked = 0

    def report(self):
        self.asked += 1
        return super().report() | {"asked": self.asked}


class Same(RandomSearch):
    """Is its own copy."""

    def __deepcopy__(self, memo):
        return self


class Trusting(RandomSearch):
    """Takes any trial of a log."""

    def check_recorded(self, trial, is_member=False):
        pass


class Torn(RandomSearch):
    """Is not itself while it is told, and forgets to return when that is broken off."""

    is_told = False

    def tell(self, id, value, outcomes=None):
        self.is_told = True
        try:
            super().tell(id, value, outcomes)
        except Exception:
            self.is_told = False
            raise
        self.is_told = False

    def report(self):
        return super().report() | {"is_told": self.is_told}


class Optimist(OptimisticStrategy):
    def __init__(self, domain, seed=0):
        super().__init__(domain, bx.KernelGP(rbf(0.8), 0.01), 2.0, seed=seed)


class Open(Optimist):
    """Hands out the posterior that it uses."""

    @property
    def posterior(self):
        return self._rows.current().posterior.parts[0].model


class Stubborn(Optimist):
    """Keeps what it learned from wrong values."""

    def _apply(self, event):
        if isinstance(event, Corrected):
            self.history = self.history.after(event)
        else:
            super()._apply(event)


def test_a_right_strategy_passes():
    check_strategy(lambda seed: RandomSearch(box(), seed), is_random=True)
    grid = bx.FiniteSet(torch.linspace(2.0, 5.0, 7).double()[:, None])
    check_strategy(lambda: Optimist(grid), num_actions=12)


GOES_ON = "a session goes on from every prefix"


@pytest.mark.parametrize(
    ("wrong", "laws"),
    [
        (Forgetful, ["a list is asked one after another", GOES_ON]),
        (Seedless, ["the seed decides"]),
        (Outside, ["trials are some of what there is"]),
        (Telling, ["impossible calls are refused as a whole", GOES_ON, "calls broken off"]),
        (Counting, ["a copy goes its own way", "reading changes nothing", GOES_ON]),
        (Same, ["a copy goes", "what comes after", "report and best say", "calls broken", GOES_ON]),
        (Trusting, ["tampered events are refused", "a record in any form"]),
        (Torn, ["calls broken off anywhere are made or not"]),
        (Open, ["reading changes nothing"]),
        (Stubborn, ["a value that was corrected", "a correction that changes nothing", GOES_ON]),
    ],
)
def test_a_wrong_strategy_is_found(wrong, laws):
    with pytest.raises(Exception) as found:  # noqa: PT011 - the note says what is looked for
        check_strategy(lambda seed: wrong(box(), seed), is_random=issubclass(wrong, RandomSearch))
    (note,) = found.value.__notes__
    assert any(f"this law does not hold: {law}" in note for law in laws), note


def test_what_is_no_strategy_is_refused():
    with pytest.raises(ValueError, match="make must make a Strategy without events"):
        check_strategy(lambda: 3)


def test_it_needs_nothing_that_only_tests_have(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "hypothesis", None)
    check_strategy(lambda seed: RandomSearch(box(), seed), num_actions=6)
