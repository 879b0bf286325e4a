"""The mark of tests that do not look at warnings."""

import pytest

# The last model left warns when it would be rejected.
quietly = pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
