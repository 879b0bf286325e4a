"""check_strategy: a conformance suite for strategies."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from torch import Tensor

from botorch_ext.exceptions import BotorchExtWarning
from botorch_ext.strategies import Strategy
from botorch_ext.testing.machine import drawn_session, put_through
from botorch_ext.testing.subjects import Subject

# Of calls in different orders.
_NUM_SESSIONS = 3


def check_strategy(
    make: Callable[..., Strategy],
    *,
    objective: Callable[[Tensor, Tensor | None], float] | None = None,
    num_actions: int | None = None,
    is_random: bool = False,
    refits_after_correction: bool = False,
) -> None:
    """Test a strategy for the laws that every strategy obeys.

    The laws cover asking and telling in any order, abandoned and failed trials, results that are
    attached, corrected and withdrawn, notes, spaces that are widened, replay bit for bit from every
    prefix, copies, reports, refusals that leave the state unchanged, and calls that Ctrl-C
    interrupts. They are tried in sessions of calls of all kinds in random orders, which are the
    same each time. The check takes a few seconds. It does not prove that a method is right.

    Args:
        make: A function that makes the strategy, without events, from a seed or from no argument.
            It must make the same strategy each time.
        objective: A function from a point and its context (or None) to an observation between -2
            and 2; None for a smooth function.
        num_actions: The number of asks, tells and other calls of a session; None for a quick one.
        is_random: Whether the seed decides what is asked, even on a finite set. The check then
            requires that another seed asks something else.
        refits_after_correction: Whether a correction to the same value may change the next trial,
            as it does where hyperparameters are fitted anew. The check then allows it.

    Raises:
        AssertionError: If a law does not hold; a note of the error names it.
        ValueError: If ``make`` does not make a strategy without events.

    Example:
        >>> import botorch_ext as bx
        >>> from botorch_ext.testing import check_strategy
        >>> box = bx.Box([[2.0], [5.0]])
        >>> check_strategy(lambda seed: bx.strategies.RandomSearch(box, seed), is_random=True)
    """
    strategy = make(0) if Subject.takes_a_seed(make) else make()
    if not isinstance(strategy, Strategy) or strategy.events:
        raise ValueError(f"make must make a Strategy without events, got {type(strategy).__name__}")
    subject = Subject(make, objective, num_actions, is_random, refits_after_correction)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BotorchExtWarning)
        for seed in range(_NUM_SESSIONS):
            put_through(subject, drawn_session(subject.num_actions, seed), seed)
