"""check_strategy: a conformance suite for strategies."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from torch import Tensor

from botorch_ext.exceptions import BotorchExtWarning
from botorch_ext.strategies import Strategy
from botorch_ext.testing.machine import drawn_session, put_through
from botorch_ext.testing.subjects import Subject

# The traits by which a strategy declares that a law does not hold for it, and why.
_TRAITS = {
    "refuses_attached": "takes results that were not asked for",
    "refits_after_correction": "knows the same after a correction that changes no value",
    "depends_on_trial_number": "asks the same after the same data, however many trials there were",
    "separates_contexts": "has a best point in every context once there are results",
}
# Of calls in different orders.
_NUM_SESSIONS = 3


def check_strategy(
    make: Callable[..., Strategy],
    *,
    objective: Callable[[Tensor, Tensor | None], float] | None = None,
    num_actions: int | None = None,
) -> dict[str, str]:
    """Test a strategy for the laws that every strategy obeys.

    The laws cover asking and telling in any order, abandoned and failed trials, attached results
    and corrections, replay bit for bit from every prefix, copies, reports, refusals that leave the
    state unchanged, and calls that Ctrl-C interrupts. They are tried in sessions of calls of all
    kinds in random orders, which are the same each time. The check takes a few seconds. It does
    not prove that a method is right.

    Args:
        make: A function that makes the strategy, without events, from a seed or from no argument.
            It must make the same strategy each time.
        objective: A function from a point and its context (or None) to an observation between -2
            and 2; None for a smooth function.
        num_actions: The number of asks, tells and other calls of a session; None for a quick one.

    Returns:
        The laws that do not hold for this strategy, with the reasons that its class declares.

    Raises:
        AssertionError: If a law does not hold; a note of the error names it.
        ValueError: If ``make`` does not make a strategy without events.

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchExtWarning)
        for seed in range(_NUM_SESSIONS):
            put_through(subject, drawn_session(subject.num_actions, seed), seed)
    reasons = {law: getattr(strategy, trait) for trait, law in _TRAITS.items()}
    return {law: why for law, why in reasons.items() if why is not None}
