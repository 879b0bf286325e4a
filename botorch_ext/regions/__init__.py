"""Regions: the part of a domain where the maximum can still be, and batches planned in it."""

from botorch_ext.regions.planning import Plan, plan
from botorch_ext.regions.region import Region

__all__ = ["Plan", "Region", "plan"]
