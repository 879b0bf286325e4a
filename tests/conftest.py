import os
import signal

import pytest
import torch

from tests.helpers import devices

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows, also where there is a display
# Shells start background jobs with Ctrl-C switched off, and the tests of Ctrl-C with them.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(params=devices())
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)
