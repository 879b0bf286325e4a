"""Wrong calls of all that is public: each is refused by the name of the argument."""

from __future__ import annotations

import inspect
import re
import warnings
from dataclasses import is_dataclass
from typing import Any

import pytest

import botorch_ext as bx
from botorch_ext.exceptions import BotorchExtWarning
from tests.wrong_calls.rows import ROWS_OF_CALLS, Row, found
from tests.wrong_calls.scene import Scene, scene
from tests.wrong_calls.values import KINDS


def values_of(row: Row, argument: str, kind: str) -> list[Any]:
    """The wrong values of an argument, without None where it is the default."""
    known = row.parameters(scene()).get(argument)
    takes_none = known is not None and known.default is None
    values = [v for v in KINDS[kind] if not (takes_none and v is None)]
    return [*values[:-1:4], values[-1]] if row.few else values


def becomes(row: Row, given: dict[str, Any], argument: str) -> str | None:
    """What is wrong about what becomes of a wrong call; None if it is refused by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", BotorchExtWarning)
        try:
            row.call(scene())(**given)
        except Exception as error:  # noqa: BLE001 - whatever comes is judged
            text = str(error)
            # Of several an error may name one, and of one the list.
            name = re.escape(argument.removesuffix("s"))
            is_named = re.search(rf"(?<!\w){name}s?(?!\w)", text) is not None
            if isinstance(error, ValueError | TypeError) and is_named and len(text) < 600:
                return None
            return f"{error!r:.200}"
    scene.cache_clear()
    return "accepted"


@pytest.mark.parametrize("row", ROWS_OF_CALLS, ids=lambda row: row.name)
def test_wrong_values_are_refused_by_the_name_of_the_argument(row):
    before = scene().state()
    valid = row.arguments(scene())
    mistakes = []
    for argument, kind in row.wrong(scene()).items():
        for value in values_of(row, argument, kind):
            found = becomes(row, valid | {argument: value}, argument)
            if found is not None:
                mistakes.append(f"{argument}={value!r:.60}: {found}")
    assert mistakes == []
    assert scene().state() == before


def test_a_valid_call_works_and_a_misspelled_name_is_refused():
    """Or the wrong calls would prove nothing."""
    for row in ROWS_OF_CALLS:
        fresh = Scene() if row.is_of_scene else scene()
        valid, call = row.arguments(fresh), row.call(fresh)
        with pytest.raises((TypeError, ValueError), match=r"misspelled|argument"):
            call(**valid, misspelled=1)
        # A page takes seconds, and the place of the study cannot be written, so that none is made.
        if row.name not in ("Study", "report_page"):
            call(**valid)


# --- nothing is forgotten -------------------------------------------------------------------------

ROOMS = ("algorithms", "widths", "delays", "analysis", "kernels", "acquisition", "models")
ROOMS += ("strategies",)  # the numbers of problems are refused in their own tests
#: What has no row: classes that users subclass or read, and functions of which another row tries
#: the argument or of which an oracle has every argument (the costs of instances).
WITHOUT_ROWS = {
    *("Strategy", "MasterStrategy", "History", "Judge", "FiniteCandidates", "Delay"),
    *("as_width", "as_delay", "as_allowance", "as_tensor_like", "enlarged", "enlargement"),
    "enlarging",
    *("check_delta", "check_misspecification", "check_noise_std", "check_rkhs_bound", "require"),
    *("instance_cost", "least_regret", "lower_complexity", "regret_lower_bound"),
    *("upper_complexity", "with_delta", "allow_argument"),
}


def is_read(value: Any) -> bool:
    """Whether something is a base, a protocol, or a record that the library makes."""
    is_base = inspect.isabstract(value) or getattr(value, "_is_protocol", False)
    return is_base or is_dataclass(value) or (isinstance(value, type) and issubclass(value, tuple))


def test_all_that_is_public_has_a_row():
    tried = {id(found(row.name)) for row in ROWS_OF_CALLS if not row.is_of_scene}
    missing = {
        name
        for room in (bx, *(getattr(bx, name) for name in ROOMS))
        for name in room.__all__
        if callable(value := getattr(room, name)) and id(value) not in tried and not is_read(value)
    }
    # An alias of a type is no call.
    assert missing - {"InformationGainBound"} == WITHOUT_ROWS
