"""Repeats: a step that is recorded as a graph and replayed does what it does done anew."""

from contextlib import nullcontext
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import botorch_ext as bx
from benchmarks.common.kernels import matern, rbf
from benchmarks.common.pretend_cuda import PretendCUDA, counting
from botorch_ext.repeats import loop, repeat

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


class Counting:
    """A CUDA that does nothing while it records and once more at each replay."""

    def __init__(self, monkeypatch):
        self.done = self.replays = self.recorded = 0
        self.recording = False
        self.order = []
        stream = type("Stream", (), {"__init__": lambda self, device: None})
        for name in ("wait_stream", "synchronize"):
            setattr(stream, name, lambda _, *other, name=name: self.order.append(name))
        for name, fake in {
            "is_available": lambda: True,
            "stream": lambda stream: nullcontext(),
            "Stream": stream,
            "current_stream": stream,
            "CUDAGraph": lambda: self,
        }.items():
            monkeypatch.setattr(torch.cuda, name, fake)

    def capture_begin(self, capture_error_mode):
        assert capture_error_mode == "thread_local"
        self.recording = True

    def capture_end(self):
        self.recording = False

    def step(self):
        if self.recording:
            self.recorded += 1
        else:
            self.done += 1
            self.order.append("done")

    def replay(self):
        self.replays += 1
        self.order.append("replayed")


@pytest.mark.parametrize("times", [0, 1, 9, 10, 40])
def test_what_is_recorded_is_replayed_for_all_other_times(times, monkeypatch):
    cuda = Counting(monkeypatch)
    repeat(cuda.step, times, CUDA, recordable=True)
    assert cuda.done + cuda.replays == times
    assert cuda.recorded == (times >= 10) and (cuda.replays > 0) == (times >= 10)
    if cuda.replays:
        # Aside after what came before, and nothing is let go before it is done.
        warm_up = ["wait_stream", "done", "done", "wait_stream"]
        assert cuda.order == [*warm_up, *["replayed"] * (times - 2), "synchronize"]


def test_what_cuda_does_not_record_is_done_each_time(monkeypatch):
    cuda = Counting(monkeypatch)

    def step():
        if cuda.recording:
            raise RuntimeError("operation not permitted when stream is capturing")
        cuda.step()

    def invalid():
        cuda.recording = False
        raise RuntimeError("operation failed due to a previous error during capture")

    cuda.capture_end = invalid
    with pytest.warns(RuntimeWarning, match="not recorded: operation not permitted"):
        repeat(step, 40, CUDA, recordable=True)
    assert (cuda.done, cuda.replays) == (40, 0)


class State(NamedTuple):
    x: Tensor
    total: Tensor
    rate: Tensor


def body(now):
    x = now.rate * now.x + 1
    return now._replace(x=x, total=now.total + now.x)


@pytest.mark.parametrize("graphs", [False, True])
@pytest.mark.parametrize("recordable", [False, True])
def test_a_loop_goes_on_from_where_it_was(graphs, recordable):
    first = State(*torch.tensor([[1.0, 2.0], [0.0, 0.0], [0.5, 0.25]]))
    expected = first
    for _ in range(11):
        expected = body(expected)
    with PretendCUDA(graphs=graphs), counting() as tally:
        state = State(*(part.to(CUDA) for part in first))
        run = loop(body, state, recordable, 11)
        for times in (1, 4, 6):  # the second one records
            state = run(times)
        assert tally.replays == (8 if graphs and recordable else 0)
        for got, wanted in zip(state, expected, strict=True):
            assert_close(got.host, wanted, rtol=0, atol=0)
