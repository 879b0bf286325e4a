"""Repeats, on the CPU and with a CUDA that only keeps count."""

from contextlib import contextmanager, nullcontext

import pytest
import torch

from botorch_ext.repeats import repeat

CPU, CUDA = torch.device("cpu"), torch.device("cuda", 0)


@pytest.mark.parametrize("recordable", [True, False])
@pytest.mark.parametrize("times", [0, 1, 30])
def test_a_step_is_done_so_many_times_elsewhere(times, recordable):
    done = []
    for device in (CPU, CUDA):  # there is none
        repeat(lambda: done.append(1), times, device, recordable)
    assert len(done) == 2 * times


class Counting:
    """A CUDA that does nothing while it records and once more at each replay."""

    def __init__(self, monkeypatch):
        self.done = self.replays = self.recorded = 0
        self.recording = False
        self.order = []
        stream = type("Stream", (), {})
        for name in ("wait_stream", "synchronize"):
            setattr(stream, name, lambda _, *other, name=name: self.order.append(name))
        for name, fake in {
            "is_available": lambda: True,
            "device": lambda device: nullcontext(),
            "stream": lambda stream: nullcontext(),
            "Stream": stream,
            "current_stream": stream,
            "CUDAGraph": lambda: self,
            "graph": self.graph,
        }.items():
            monkeypatch.setattr(torch.cuda, name, fake)

    @contextmanager
    def graph(self, graph, stream):
        self.recording = True
        yield
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


def test_what_cannot_be_recorded_is_done_each_time(monkeypatch):
    cuda = Counting(monkeypatch)
    repeat(cuda.step, 40, CUDA, recordable=False)
    repeat(cuda.step, 40, CPU, recordable=True)
    assert (cuda.done, cuda.recorded) == (80, 0)
