"""Repeats: a step that is recorded as a graph and replayed does what it does done anew."""

import pytest
import torch
from torch.testing import assert_close

import botorch_ext as bx
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.pretend_cuda import PretendCUDA, counting
from botorch_ext.repeats import repeat

CUDA = torch.device("cuda")


@pytest.mark.parametrize(("times", "replays"), [(1, 0), (9, 0), (10, 8), (40, 38)])
def test_a_step_is_done_so_often(times, replays):
    with PretendCUDA(graphs=True), counting() as tally:
        x = torch.zeros(3, device=CUDA)
        repeat(lambda: x.add_(1), times, x.device, True)
        assert tally.replays == replays
        repeat(lambda: x.add_(1), times, x.device, False)  # not recordable
        assert tally.replays == replays
        assert x.host.tolist() == [2 * times] * 3


def test_without_cuda_nothing_is_recorded():
    x = torch.zeros(3)
    repeat(lambda: x.add_(1), 20, x.device, True)
    assert x.tolist() == [20] * 3


@pytest.mark.parametrize("kernel", [rbf(0.4), matern(0.4)])
@pytest.mark.parametrize("constrained", [False, True])
def test_a_batch_is_the_same_by_graphs(kernel, constrained):
    plans = []
    for graphs in (False, True):
        with PretendCUDA(graphs=graphs):
            box = bx.Box([[0.0] * 3, [1.0] * 3], device=CUDA)
            X = box.sample(12, 0)
            model = bx.KernelGP(kernel, 1e-2, device=CUDA)
            model.add(X, X.sum(dim=-1, keepdim=True).sin())
            region = bx.Region(box)
            if constrained:
                region = region.restricted(model, 1.0, 0.0, 0.9, X)
            with counting() as tally:
                plan = bx.plan(region, model, 40)
            assert tally.replays == (38 if graphs else 0)
            plans.append((plan.X.host, plan.std.host))
    for one, other in zip(*plans, strict=True):
        assert_close(one, other, rtol=0, atol=0)
