"""Wrong and odd calls as users write them: refused by name before anything changes, or right.

``python -m tests.test_wrong_calls`` counts what becomes of them.
"""

import sys
from collections import Counter
from functools import cache

import pytest

from tests.wrong_calls.algorithm_calls import CALLS as ALGORITHM_CALLS
from tests.wrong_calls.beginner_calls import CALLS as BEGINNER_CALLS
from tests.wrong_calls.calls import Call, Scene, changing, outcome
from tests.wrong_calls.domain_calls import CALLS as DOMAIN_CALLS
from tests.wrong_calls.kernel_calls import CALLS as KERNEL_CALLS
from tests.wrong_calls.model_calls import CALLS as MODEL_CALLS
from tests.wrong_calls.number_calls import CALLS as NUMBER_CALLS
from tests.wrong_calls.plan_calls import CALLS as PLAN_CALLS
from tests.wrong_calls.run_calls import CALLS as RUN_CALLS
from tests.wrong_calls.strategy_calls import CALLS as STRATEGY_CALLS

CALLS = [
    *DOMAIN_CALLS,
    *NUMBER_CALLS,
    *KERNEL_CALLS,
    *MODEL_CALLS,
    *PLAN_CALLS,
    *STRATEGY_CALLS,
    *RUN_CALLS,
    *ALGORITHM_CALLS,
    *BEGINNER_CALLS,
]


REFUSED = [call for call in CALLS if call.proper is None]

scene = cache(Scene)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.name)
def test_a_call_is_refused_by_name_or_works(call):
    assert what_becomes_of(call) == ("refused" if call.proper is None else "works")


@pytest.mark.parametrize("first", range(0, len(REFUSED), 100))
def test_refused_calls_change_nothing(first):
    assert changing(REFUSED[first : first + 100]) == []


def test_a_call_that_changes_something_is_named():
    def add(s):
        s.gp.add(s.X, s.Y)
        raise ValueError("Y must be other values, got these")

    worst = Call("adds first", add, "Y")
    assert changing([*REFUSED[:9], worst, *REFUSED[9:19]]) == ["adds first"]


def what_becomes_of(call: Call) -> str:
    found = outcome(call, scene())
    if found.startswith("silent"):
        scene.cache_clear()
    return found


def counted() -> Counter[tuple[bool, str]]:
    """How many calls there are by whether they must be refused and what becomes of them."""
    return Counter((call.proper is None, what_becomes_of(call).partition(":")[0]) for call in CALLS)


if __name__ == "__main__":
    for (must_be_refused, found), number in sorted(counted().items()):
        kind = "to be refused" if must_be_refused else "to work"
        sys.stdout.write(f"{kind}, {found}: {number}\n")
