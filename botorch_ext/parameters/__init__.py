"""Parameters: what can be set, by name, with units. They need neither torch nor a domain."""

from botorch_ext.parameters.choices import Choice, Fixed, Ordered
from botorch_ext.parameters.ranges import ALL_DIGITS, Integer, Parameter, Real

__all__ = ["ALL_DIGITS", "Choice", "Fixed", "Integer", "Ordered", "Parameter", "Real"]
