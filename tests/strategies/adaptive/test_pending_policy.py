import pytest

from botorch_ext.strategies.adaptive.pending import PendingPolicy


@pytest.mark.parametrize("bad", [1, 0.5, "yes", None])
def test_inflate_is_true_or_false(bad):
    with pytest.raises(ValueError, match="inflate must be True or False, got"):
        PendingPolicy(inflate=bad)
