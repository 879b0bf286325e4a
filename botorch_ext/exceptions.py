"""Typed errors and warnings.

Every error a caller can cause is a `ValueError` or a subclass of it, names the argument, says what
it was and what is allowed, and is raised before any state changes.
"""


class BotorchExtWarning(UserWarning):
    """Base class of all warnings of this library."""


class JitterWarning(BotorchExtWarning):
    """A float32 factorisation lost positive definiteness and was repaired with jitter."""


class KernelBoundWarning(BotorchExtWarning):
    """The kernel exceeds 1 on the diagonal; the confidence widths assume k(x, x) <= 1."""


class TrialFailedWarning(BotorchExtWarning):
    """An objective kept failing and its trial was abandoned."""


class OutsideDomainError(ValueError):
    """A point lies outside the domain."""


class UnknownTrialError(ValueError):
    """No pending trial has this id: it was never asked, or it is already told or abandoned."""


class NoObservationsError(ValueError):
    """An answer was requested that needs at least one observation."""
