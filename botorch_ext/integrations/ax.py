"""Ax: experiments with this library's acquisition functions, saved and loaded.

Importing this module is enough, where an experiment is saved and in every process that loads it:
Ax then knows the classes by name.
"""

from __future__ import annotations

from ax.storage.botorch_modular_registry import register_acquisition_function

from botorch_ext import acquisition

for _name in acquisition.__all__:
    register_acquisition_function(getattr(acquisition, _name))
