"""Wrong calls of all that is public: each is refused by the name of the argument."""

from __future__ import annotations

import inspect
import re
import warnings
from functools import cache
from typing import Any

import pytest

import botorch_ext as bx
from botorch_ext.exceptions import BotorchExtWarning
from tests.wrong_calls.rows import ROWS_OF_CALLS, Row, found
from tests.wrong_calls.scene import Scene
from tests.wrong_calls.values import KINDS

scene = cache(Scene)


def values_of(row: Row, argument: str) -> list[Any]:
    """The wrong values of an argument, without None where it is the default."""
    try:
        parameters = inspect.signature(row.call(scene())).parameters
    except ValueError:
        parameters = {}
    known = parameters.get(argument)
    takes_none = known is not None and known.default is None
    values = [v for v in KINDS[row.wrong[argument]] if not (takes_none and v is None)]
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
    valid = dict(row.valid(scene()))
    mistakes = []
    for argument in row.wrong:
        for value in values_of(row, argument):
            found = becomes(row, valid | {argument: value}, argument)
            if found is not None:
                mistakes.append(f"{argument}={value!r:.60}: {found}")
    assert mistakes == []
    assert scene().state() == before


def test_a_valid_call_works_and_a_misspelled_name_is_refused():
    """Or the wrong calls would prove nothing."""
    for row in ROWS_OF_CALLS:
        fresh = scene() if row.what is None else Scene()
        valid, call = dict(row.valid(fresh)), row.call(fresh)
        with pytest.raises((TypeError, ValueError), match=r"misspelled|argument"):
            call(**valid, misspelled=1)
        # A page takes seconds, and the place of the study cannot be written, so that none is made.
        if row.name not in ("Study", "report_page"):
            call(**valid)


# --- nothing is forgotten -------------------------------------------------------------------------

ROOMS = ("algorithms", "widths", "delays", "analysis", "kernels", "acquisition", "models")
ROOMS += ("strategies", "problems", "rounds", "information_gain", "estimates")
#: What has no row, by the reason.
WITHOUT_ROWS = {
    "a base, a protocol or a type, which users subclass or read": (
        *("Strategy", "Width", "Allowance", "Rounds", "Problem", "ContextualProblem", "Judge"),
        *("Search", "InformationGainBound", "ConfidenceModel", "HyperparameterProblem", "History"),
        *("KnownFunction", "ContextualFunction", "MasterStrategy", "Immutable", "Kernel"),
    ),
    "made by the library, and read by users": (
        *("Trial", "Asked", "Told", "Abandoned", "Attached", "Corrected", "Plan", "SeenDelays"),
        *("Level", "Refinement", "BalancingTest", "Complexity", "ComplexityTerm", "InstanceCost"),
        *("Slope", "FiniteCandidates", "Scaling", "FittedModel", "Temperatures"),
        *("BindingAffinities",),
    ),
    "a function of one argument that is a row elsewhere": (
        *("as_width", "as_delay", "as_allowance", "enlarged", "with_delta", "enlargement"),
        *("as_tensor_like", "check_delta", "check_misspecification", "check_noise_std"),
        *("check_rkhs_bound", "require", "amount", "one_number", "whole_number", "as_domain"),
        *("short", "as_points", "as_floating", "checked_values", "require_unbatched", "freeze"),
        *("dataclass", "abstractmethod", "ABC", "Any", "Tensor", "plan_on_set", "clock"),
        *("screening_points", "rkhs_norm_lower_estimate", "Search"),
    ),
    "needs many processes": ("ShardedSet",),
    "made by as_allowance, which names the delay": ("FixedAllowance",),
    "a problem or a perturbation, whose arguments are numbers that its tests refuse": (
        *("BestBinder", "ContextualRKHSFunction", "CorrelatedMode", "GrowthFunction"),
        *("HighestHill", "HillMean", "HottestSensor", "LengthscalePeak", "LinearArms", "LockOut"),
        *("NoisyLockOut", "RepeatedSignal", "SVCTuning", "TwoPeaks", "adversarial", "hidden_arm"),
        *("lock_out", "random_linear", "rough", "white", "time_of_day_kernel"),
        *("fit_binding_affinities", "fit_kernel", "fit_temperatures", "synthetic_temperatures"),
        *("load_binding_affinities", "load_temperatures", "synthetic_binding_affinities"),
    ),
    "costs of instances, whose arguments are those of lower_exponent and of problems": (
        *("instance_cost", "least_regret", "lower_complexity", "upper_complexity"),
        *("regret_lower_bound",),
    ),
}


def test_all_that_is_public_has_a_row():
    tried = {id(found(row.name)) for row in ROWS_OF_CALLS if row.what is None}
    excused = {name for names in WITHOUT_ROWS.values() for name in names}
    missing = []
    for room in (bx, *(getattr(bx, name) for name in ROOMS)):
        for name in getattr(room, "__all__", None) or vars(room):
            value = getattr(room, name)
            if name.startswith("_") or not callable(value) or id(value) in tried:
                continue
            if name not in excused:
                missing.append(name)
    assert missing == []
    named = {row.name.rpartition(".")[2] for row in ROWS_OF_CALLS if row.what is None}
    assert not excused & named
