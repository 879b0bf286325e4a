"""Testing: the laws of strategies, for methods of this library and of anybody else."""

from botorch_ext.testing.check import check_strategy

__all__ = ["check_strategy"]
