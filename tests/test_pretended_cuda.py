"""Pretended CUDA says what a GPU would, and names the line of what mixes, stops or uploads."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import botorch_ext
from benchmarks.common.pretend_cuda import (
    OverBudget,
    PretendCUDA,
    PretendTensor,
    Tally,
    budget,
    counting,
    following_memory,
    no_stops,
)
from tests.helpers import tolerance

HOST = torch.tensor([[3.0, 1.0, 2.0], [1.0, 5.0, 0.5], [2.0, 0.5, 4.0]], dtype=torch.float64)
TOL = tolerance(torch.float64)


@pytest.fixture
def x():
    with PretendCUDA():
        yield HOST.to("cuda")


def planted(body):
    """A function of x that the library could have: its second line does what is not wanted."""
    file = str(Path(botorch_ext.__file__).parent / "models" / "planted.py")
    space = {"torch": torch}
    exec(compile(f"def act(x):\n    {body}\n", file, "exec"), space)
    return space["act"]


ON_CUDA = [
    *(lambda x: x @ x.mT, lambda x: x[1:].mT, lambda x: x.add_(1), lambda x: x.float()),
    *(lambda x: x.new_zeros(3), torch.ones_like, lambda x: torch.zeros(3, device="cuda")),
    *(lambda x: torch.rand(3, device="cuda"), lambda x: torch.tensor([1.0], device=x.device)),
    *(lambda x: x.new_tensor([1.0]), lambda x: HOST.to("cuda"), lambda x: HOST.to(x)),
    *(lambda x: HOST.to(dtype=torch.float32, device="cuda"), lambda x: HOST.cuda(), HOST.type_as),
    *(torch.as_tensor, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))),
    *(
        lambda x: x[torch.tensor([0, 1])],
        lambda x: torch.where(x > 1, x, torch.tensor(0.0).double()),
    ),
    lambda x: x * torch.tensor(2.0),
]
ON_CPU = [
    *(lambda x: x.cpu(), lambda x: x.to("cpu"), lambda x: x.to(HOST), lambda x: HOST + 1),
    *(lambda x: x.new_zeros(3, device="cpu"), lambda x: torch.zeros_like(x, device="cpu")),
    lambda x: torch.as_tensor(x, device="cpu"),
]


def test_all_that_is_made_says_where_it_is(x):
    for make in ON_CUDA:
        made = make(x)
        assert made.device == torch.device("cuda", 0) and made.is_cuda and not made.is_cpu
        assert isinstance(made, PretendTensor)
    for make in ON_CPU:
        made = make(x)
        assert made.device.type == "cpu" and not made.is_cuda and type(made) is torch.Tensor


MIXES = [
    "return x + torch.zeros(3)",
    "return torch.zeros(3) + x",
    "return torch.addcmul(x, torch.ones(()), torch.ones(()))",
    "return torch.cat([x, torch.zeros(1, 3)])",
    "return torch.stack([x[0, 0], torch.tensor(1.0)])",
    "return torch.zeros(()).add_(x.sum())",
    "return torch.arange(3)[x.argmax(0)]",
    "x[0] = torch.zeros(3).double()[None]; x[[0]] = torch.zeros(3).double()",
    "return torch.linalg.solve_triangular(x, torch.zeros(3, 1), upper=False)",
    "return x.uniform_(generator=torch.Generator())",
    "return torch.rand(3, device='cuda', generator=torch.Generator())",
]


@pytest.mark.parametrize("body", MIXES)
def test_mixed_devices_are_refused_as_by_cuda(body, x):
    what = "indexed tensor" if "arange" in body else "same device|generator"
    with pytest.raises(RuntimeError, match=what) as error:
        planted(body)(x)
    assert any(str(entry.path).endswith("planted.py") for entry in error.traceback)
    assert "generator" in body or "models/planted.py:2" in str(error.value)


def test_numpy_takes_no_tensor_of_cuda_and_there_is_one_gpu(x):
    for convert in (np.asarray, lambda x: x.numpy(), lambda x: x.detach().numpy()):
        with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
            convert(x)
    with pytest.raises(RuntimeError, match="invalid device ordinal 1"):
        torch.zeros(3, device="cuda:1")


STOPS = {
    "float(x[0, 0])": "_local_scalar_dense",
    "bool((x > 0).all())": "_local_scalar_dense",
    "x.tolist()": "tolist",
    "x.cpu()": "download",
    "torch.zeros(3, 3).copy_(x)": "download by copy_",
    "x.nonzero()": "nonzero",
    "torch.where(x > 1)": "nonzero",
    "x[x > 1]": "index by a mask",
    "x[x > 1] = x.sum()": "index by a mask",
    "x.masked_select(x > 1)": "masked_select",
    "x[x.argmax() // 9]": "_local_scalar_dense",
    "torch.linalg.cholesky(x)": "_linalg_check_errors",
    "x.equal(x)": "equal",
    "x.unique()": "_unique2",
}
UPLOADS = {
    "torch.tensor([1.0, 2.0], device=x.device)": "upload by tensor",
    "x.new_tensor([1.0, 2.0])": "upload by new_tensor",
    "torch.zeros(3).to(x)": "upload by to",
    "x.copy_(torch.zeros(3, 3))": "upload by copy_",
    "x[0, 0] = 1.0": "upload by copy_",
    "x[[0, 1]]": "upload of an index",
    "x[torch.tensor([True, False, True])]": "upload of an index",
}
QUIET = [
    *("x[0] = 1.0", "x[x > 1] = 1.0", "x[x.argmax(0)]", "x * 2.0 + torch.tensor(1.0)"),
    *("torch.zeros(3, device=x.device)", "torch.linalg.cholesky_ex(x)", "x.to('cuda').float()"),
]


@pytest.mark.parametrize("body", [*STOPS, *UPLOADS])
def test_stops_and_uploads_are_counted_and_fail_with_their_line(body, x):
    kind = (STOPS | UPLOADS)[body]
    with counting() as tally:
        planted(body)(x)
    assert tally.stops == {f"{kind} models/planted.py:2": 1}
    assert tally.uploads == ({} if body in STOPS else tally.stops)
    with pytest.raises(OverBudget, match=f"{kind} models/planted.py:2"), no_stops():
        planted(body)(x)
    with pytest.raises(OverBudget, match=r"at most 0, got 1: 1 .*planted.py:2"), budget(stops=0):
        planted(body)(x)


def test_the_rest_stops_nothing(x):
    with no_stops() as tally:
        for body in QUIET:
            planted(body)(x)
    assert not tally.num_stops and not tally.num_uploads


def test_an_upload_that_nobody_waits_for_is_no_stop(x):
    with counting() as tally:
        HOST.to("cuda", non_blocking=True)
        x.copy_(HOST, non_blocking=True)
    assert (tally.num_uploads, tally.num_stops) == (2, 0)
    with pytest.raises(OverBudget, match="must not upload"), no_stops():
        HOST.to("cuda", non_blocking=True)


def test_launches_are_weighted_and_named_and_bytes_are_counted(x):
    with counting(Tally(by_line=True)) as tally:
        planted(
            "x[:1].mT; x + 1; x.sort(); torch.linalg.solve_triangular(x, x[:, :1], upper=False)"
        )(x)
        torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
        x.cumsum(0)
    assert tally.launches == 1 + 3 + 3 + 1 + 2
    assert tally.lines.pop("models/planted.py:2") == 7 and tally.lines.total() == 3
    assert tally.solves == [((3, 3), (3, 1))] and tally.cdist_entries == 9
    assert [name.split()[0] for name in tally.nondeterministic] == ["cumsum"]
    with pytest.raises(OverBudget, match=r"at most 2, got 3: 3 .*planted.py:2"), budget(launches=2):
        planted("x.sort()")(x)
    first = torch.zeros(1, dtype=torch.long, device="cuda")
    # What is read, of an expanded row once, and what is written.
    for act, num in ((lambda: x[:1].expand(100, 3) + 1, 3 + 300), (lambda: x[first], 3 + 3)):
        with counting() as tally:
            act()
        assert tally.num_bytes == 8 * num


def test_equal_values_are_ranked_in_another_order_than_on_the_cpu():
    with PretendCUDA():
        x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 2.0]], device="cuda")
        for values, rows in (x.topk(2), x.sort(descending=True), torch.sort(x, 1, True)):
            assert_close(x.gather(1, rows).cpu(), values.cpu(), rtol=0, atol=0)
            assert rows[:, :2].tolist() == [[2, 1], [2, 0]]
        assert x.T.topk(1, dim=0).indices.tolist() == [[2, 2]]
        assert x.topk(1, largest=False).indices.tolist() == [[0], [1]]
        assert x.argsort(descending=True, stable=True).tolist() == [[1, 2, 0], [0, 2, 1]]


def test_memory_is_what_lives_at_once():
    with PretendCUDA():
        before = torch.zeros(1000, device="cuda")
        with following_memory() as memory:
            first = torch.zeros(1000, device="cuda")
            part = first[:10]
            del first, before
            assert memory.now == memory.before
            del part
            second = torch.zeros(500, device="cuda")
            assert memory.growth == 4000
            both = torch.cat([second, second])
            del second
        assert memory.growth == 4000 and memory.now - memory.before == 0
        assert len(both) == 1000
