"""The marks of the laws: the entries they are tried for, and the warnings they do not look at."""

import pytest

from tests.laws.registry import PLAYED

every_entry = pytest.mark.parametrize("entry", PLAYED, ids=lambda entry: entry.name)
# The last model left warns when it would be rejected.
quietly = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
