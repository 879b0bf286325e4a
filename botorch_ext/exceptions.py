"""The errors and warnings of the library.

Every error that a caller can cause is a `ValueError` or a subclass of it. Its message names the
argument, what was given and what is allowed. It is raised before any state changes.
"""


class BotorchExtWarning(UserWarning):
    """Base class of all warnings of this library."""


class JitterWarning(BotorchExtWarning):
    """A float32 factorisation lost positive definiteness and was repaired with jitter."""


class KernelBoundWarning(BotorchExtWarning):
    """The variance of the kernel exceeds 1, but the confidence widths assume k(x, x) <= 1."""


class EnlargementWarning(BotorchExtWarning):
    """The enlargement of a width for misspecification is several times the width itself, so the
    method chooses points by their standard deviation alone."""


class LengthscaleWarning(BotorchExtWarning):
    """A lengthscale is below a twentieth of the side of the domain or above twenty times it."""


class PriorScaleWarning(BotorchExtWarning):
    """Observations are much too far from the prior mean, or much too near to it, for the scale of
    the prior."""


class TrialFailedWarning(BotorchExtWarning):
    """An objective kept failing and its trial was abandoned."""


class UntoldValueWarning(BotorchExtWarning):
    """A run computed a value but could not tell it, since another process had answered the trial or
    the study could not be reached. The message has the value."""


class HorizonWarning(BotorchExtWarning):
    """The horizon is too short: it ends in the first round or before any cell is split, so nothing
    is ever eliminated."""


class CellLimitWarning(BotorchExtWarning):
    """Finer cells would exceed the allowed number, so the method goes on with the present cells."""


class AllModelsRejectedWarning(BotorchExtWarning):
    """The data reject every candidate model; the last one is kept."""


class ModelRefutedWarning(BotorchExtWarning):
    """The data refute the RKHS bound, the kernel, the noise or the misspecification that the
    confidence bounds assume."""


class IndependentSamplingWarning(BotorchExtWarning):
    """A sampler chose a value at random that its strategy should have chosen."""


class VersionWarning(BotorchExtWarning):
    """A study was begun with another version of a library, or with other code of a function, so its
    next trial may differ."""


class UndescribedWarning(BotorchExtWarning):
    """A strategy has an argument that a study cannot compare when it is opened again."""


class NetworkFileSystemWarning(BotorchExtWarning):
    """The file of a study is on a network file system, where only one machine at a time may use
    it."""


class TableWarning(BotorchExtWarning):
    """A table has columns that are not used, trials without values, or rows outside the space."""


class HostWarning(BotorchExtWarning):
    """Another tool does not keep what a strategy needs of a trial, or cannot prevent two processes
    from asking at the same time."""


class OutsideDomainError(ValueError):
    """A point lies outside the domain."""


class OutsideDomainWarning(BotorchExtWarning):
    """Predictions were asked for points outside the domain, where the model extrapolates."""


class UnknownTrialError(ValueError):
    """No pending trial has this id: it was never asked, or was already told or abandoned."""


class NoObservationsError(ValueError):
    """A question was asked that needs at least one observation."""


class NoModelError(ValueError):
    """A prediction was requested from a method that has no model of the objective."""


class ObjectiveError(ValueError):
    """The objective can never be evaluated: it cannot be called, returns no number, or cannot be
    sent to a process pool. Its trials stay pending."""


class RepeatedFailures(ValueError):
    """The objective failed too often in a row; the last failure is the ``__cause__``."""


class WaitingForObservations(ValueError):
    """The method needs results of pending trials before it can ask for as many trials as requested.

    Args:
        message: The message.
        ids: The ids of the pending trials that it waits for.
        available: The number of trials that it can ask for without waiting.
    """

    def __init__(self, message: str, ids: list[int], available: int) -> None:
        # All arguments, so that the error can be pickled.
        super().__init__(message, ids, available)
        self.ids = ids
        self.available = available

    def __str__(self) -> str:
        return self.args[0]


class HorizonReached(ValueError):
    """More trials were requested than the horizon has left.

    Args:
        message: The message, which says how many are left.
        horizon: The horizon, in trials.
    """

    def __init__(self, message: str, horizon: int) -> None:
        super().__init__(message, horizon)
        self.horizon = horizon

    def __str__(self) -> str:
        return self.args[0]


class ModelRefutedError(ValueError):
    """The data refute a model that certifies points, so that nothing more is asked."""


class NoCertifiedPointError(ValueError):
    """No point is known to be certified in the context of this step, so that nothing is asked in
    it."""


class TableError(ValueError):
    """A table cannot be read as results of a study. The message names columns and rows; nothing of
    the table was kept."""


class StudyError(ValueError):
    """Base class of errors of studies that cannot be used; nothing of the failed call was kept."""


class NoStudyError(StudyError):
    """A file or a database exists but holds no study."""


class BrokenStudyError(StudyError):
    """A study was truncated, or changed by something other than this library."""


class NewerStudyError(StudyError):
    """A study was written by a newer version of this library."""


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
