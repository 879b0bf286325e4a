"""Check: a conformance suite of strategies."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from torch import Tensor

from botorch_ext.exceptions import BotorchExtWarning
from botorch_ext.strategies import Strategy
from botorch_ext.testing import correcting, states
from botorch_ext.testing.laws import LAWS
from botorch_ext.testing.subjects import Subject

# Traits of a strategy that say why something does not hold for it.
_TRAITS = {
    "refuses_attached": "takes results that were not asked for",
    "refits_after_correction": "knows the same after a correction that changes no value",
    "depends_on_trial_number": "asks the same after the same data, however many trials there were",
    "separates_contexts": "has a best point in every context once there are results",
}


def check_strategy(
    make: Callable[..., Strategy],
    *,
    objective: Callable[[Tensor, Tensor | None], float] | None = None,
    num_actions: int | None = None,
) -> dict[str, str]:
    """The laws that every strategy obeys, tried on one: asking and telling in any order, abandoned
    and failed trials, attached results and corrections, replay bit for bit from every prefix,
    copies, reports, refusals that leave the state as it was, and calls that Ctrl-C breaks off.

    It takes a few seconds. The laws do not prove that a method is right.

    Args:
        make: From a seed, or from nothing, to a strategy without events. It must make the same
            strategy each time.
        objective: From a point and its context (or None) to what is observed, between -2 and 2; a
            smooth function if None.
        num_actions: How many asks, tells and so on a session has; None for a quick one.

    Returns:
        What does not hold for this strategy, and the reason that its class declares.

    Raises:
        AssertionError: A law does not hold; a note says which.
        ValueError: ``make`` makes no strategy without events.

    Example:
        >>> import botorch_ext as bx
        >>> from botorch_ext.testing import check_strategy
        >>> box = bx.Box([[2.0], [5.0]])
        >>> check_strategy(lambda seed: bx.strategies.RandomSearch(box, seed))  # doctest: +SKIP
        {'asks the same after ...': 'its points depend on the number of the trial alone'}
    """
    strategy = make(0) if Subject.takes_a_seed(make) else make()
    if not isinstance(strategy, Strategy) or strategy.events:
        raise ValueError(f"make must make a Strategy without events, got {type(strategy).__name__}")
    subject = Subject(make, objective, num_actions)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BotorchExtWarning)
            for law in LAWS:
                try:
                    law(subject)
                except Exception as error:
                    error.add_note(f"this law does not hold: {law.__name__.replace('_', ' ')}")
                    raise
    finally:
        states.played.cache_clear()
        correcting.played.cache_clear()
    reasons = {law: getattr(strategy, trait) for trait, law in _TRAITS.items()}
    return {law: why for law, why in reasons.items() if why is not None}
