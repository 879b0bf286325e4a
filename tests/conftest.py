import os

import pytest
import torch

from tests.helpers import devices

os.environ.setdefault("MPLBACKEND", "Agg")  # no windows, also where there is a display


@pytest.fixture(params=devices())
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)
