"""Typed errors and warnings.

Every error a caller can cause is a `ValueError` or a subclass of it, names the argument, says what
it was and what is allowed, and is raised before any state changes.
"""

import warnings

# How many rows or columns of a table a message names.
_MOST_NAMED = 5


def named(sentences: list[str]) -> str:
    """The first five sentences of a message, and how many more there are."""
    more = len(sentences) - _MOST_NAMED
    return "; ".join(sentences[:_MOST_NAMED]) + (f"; and {more} more" if more > 0 else "")


class BotorchExtWarning(UserWarning):
    """Base class of all warnings of this library."""


class JitterWarning(BotorchExtWarning):
    """A float32 factorisation lost positive definiteness and was repaired with jitter."""


class KernelBoundWarning(BotorchExtWarning):
    """The kernel exceeds 1 on the diagonal; the confidence widths assume k(x, x) <= 1."""


class EnlargementWarning(BotorchExtWarning):
    """The enlargement of a width for misspecification is several times the width itself: what is
    asked follows the standard deviation alone."""


class LengthscaleWarning(BotorchExtWarning):
    """A lengthscale is under a twentieth or over twenty times the side of the domain."""


class PriorScaleWarning(BotorchExtWarning):
    """Observations are many times too far from the prior mean for the scale of the prior, or too
    near."""


class PriorDrawsWarning(BotorchExtWarning):
    """Draws of hyperparameters are from the prior, or few of them bear what is known of the
    data."""


class TrialFailedWarning(BotorchExtWarning):
    """An objective kept failing and its trial was abandoned."""


class UntoldValueWarning(BotorchExtWarning):
    """A run computed a value and could not tell it, as others had answered its trial or the study
    could not be reached; the message has the value."""


class HorizonWarning(BotorchExtWarning):
    """The horizon is too short: it ends in the first round or before any cell is split, and nothing
    is ever eliminated."""


class CellLimitWarning(BotorchExtWarning):
    """Finer cells would be more than allowed: those that there are are evaluated further."""


class AllModelsRejectedWarning(BotorchExtWarning):
    """The data refute every candidate model; the last one stays."""


class IndependentSamplingWarning(BotorchExtWarning):
    """A sampler chose at random what its strategy was meant to choose."""


class VersionWarning(BotorchExtWarning):
    """A study was begun with another version of a library, or with other code of a function: its
    next question may be another one."""


class UndescribedWarning(BotorchExtWarning):
    """A strategy was made with something that a study cannot compare when it is opened again."""


class NetworkFileSystemWarning(BotorchExtWarning):
    """The file of a study lies on a network file system: only one machine may use it at a time."""


class TableWarning(BotorchExtWarning):
    """A table has columns that are not used, trials without values, or rows outside the space."""


class HostWarning(BotorchExtWarning):
    """Another tool keeps something else of a trial than its strategy needs, or cannot keep others
    from asking at the same time."""


class OutsideDomainError(ValueError):
    """A point lies outside the domain."""


class OutsideDomainWarning(BotorchExtWarning):
    """Predictions were asked for points outside the domain, where the model extrapolates."""


class UnknownTrialError(ValueError):
    """No pending trial has this id: it was never asked, or it is already told or abandoned."""


class NoObservationsError(ValueError):
    """An answer was requested that needs at least one observation."""


class NoModelError(ValueError):
    """A prediction was requested of a method that has no model of the objective."""


class ObjectiveError(ValueError):
    """The objective can never be evaluated: it cannot be called, returns no number, or cannot be
    sent to a process pool. Its trials stay pending."""


class RepeatedFailures(ValueError):
    """The objective failed too often in a row; its last failure is the ``__cause__``."""


class WaitingForObservations(ValueError):
    """The method must be told something before it can ask as much as it was asked for.

    Args:
        message: What for.
        ids: The pending trials it waits for.
        available: How many trials it can ask before it must wait.
    """

    def __init__(self, message: str, ids: list[int], available: int) -> None:
        # All of them, so that the error can be pickled.
        super().__init__(message, ids, available)
        self.ids = ids
        self.available = available

    def __str__(self) -> str:
        return self.args[0]


class HorizonReached(ValueError):
    """More trials were asked for than the horizon has left.

    Args:
        message: How many are left.
        horizon: The horizon.
    """

    def __init__(self, message: str, horizon: int) -> None:
        super().__init__(message, horizon)
        self.horizon = horizon

    def __str__(self) -> str:
        return self.args[0]


class TableError(ValueError):
    """A table that cannot be read as results of a study; the message names columns and rows, and
    nothing of the table was kept."""


class StudyError(ValueError):
    """A study cannot be used, and nothing of the call that failed was kept; the class of them
    all."""


class NoStudyError(StudyError):
    """A file or a database that is there and holds no study."""


class BrokenStudyError(StudyError):
    """A study that was truncated or changed by something else than this library."""


class NewerStudyError(StudyError):
    """A study that a newer version of this library wrote."""


class AnotherStrategyError(StudyError):
    """A study that was begun with other arguments than it is opened with."""


class MovedStudyError(StudyError):
    """A file that was moved, deleted or replaced while a study had it open, or whose log was. The
    last call may have been kept."""


class UnwritableStudyError(StudyError):
    """A study that may not be written, or whose disk is full."""


class UnreachableStudyError(StudyError):
    """A database that does not answer, or that others kept to themselves for too long. A call whose
    answer was lost on the way may have been kept."""


class ForkedStudyError(StudyError):
    """A `Study` that was opened before this process was forked: each process opens its own."""


class _NoTritonWarning(BotorchExtWarning):
    """What ``NoTritonWarning`` was; never issued."""


def __getattr__(name: str) -> type[Warning]:
    if name != "NoTritonWarning":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    warnings.warn(
        "NoTritonWarning is never issued, and will go: filter nothing in its place",
        DeprecationWarning,
        stacklevel=2,
    )
    return _NoTritonWarning
