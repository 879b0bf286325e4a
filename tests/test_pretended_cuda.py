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

CUDA = torch.device("cuda")
HOST = torch.tensor([[3.0, 1.0, 2.0], [1.0, 5.0, 0.5], [2.0, 0.5, 4.0]], dtype=torch.float64)
TOL = tolerance(torch.float64)


@pytest.fixture(autouse=True)
def pretended():
    with PretendCUDA():
        yield


@pytest.fixture
def x():
    return HOST.to("cuda")


def planted(body):
    """A function of x that the library could have: its second line does what is not wanted."""
    file = str(Path(botorch_ext.__file__).parent / "models" / "planted.py")
    space = {"torch": torch}
    exec(compile(f"def act(x):\n    {body}\n", file, "exec"), space)
    return space["act"]


ON_CUDA = {
    "a result": lambda x: x @ x.mT,
    "a view": lambda x: x[1:].mT,
    "written in place": lambda x: x.add_(1),
    "made new": lambda x: x.new_zeros(3),
    "made like it": lambda x: torch.ones_like(x),
    "made from nothing": lambda x: torch.zeros(3, device="cuda"),
    "made at random": lambda x: torch.rand(3, device=CUDA),
    "of data": lambda x: torch.tensor([1.0, 2.0], device=x.device),
    "of data of its kind": lambda x: x.new_tensor([1.0, 2.0]),
    "moved": lambda x: HOST.to("cuda"),
    "moved with a dtype": lambda x: HOST.to(dtype=torch.float32, device=CUDA),
    "moved to a tensor": lambda x: HOST.to(x),
    "moved by name": lambda x: HOST.cuda(),
    "of its type": lambda x: HOST.type_as(x),
    "kept": lambda x: torch.as_tensor(x),
    "of another dtype": lambda x: x.float(),
    "copied deeply": lambda x: copy.deepcopy(x),
    "stored": lambda x: pickle.loads(pickle.dumps(x)),
    "indexed from the CPU": lambda x: x[torch.tensor([0, 1])],
    "with a number": lambda x: torch.where(x > 1, x, torch.tensor(0.0).double()),
    "times a number of the CPU": lambda x: x * torch.tensor(2.0),
}
ON_CPU = {
    "fetched": lambda x: x.cpu(),
    "moved": lambda x: x.to("cpu"),
    "moved to a tensor": lambda x: x.to(HOST),
    "made new": lambda x: x.new_zeros(3, device="cpu"),
    "made like it": lambda x: torch.zeros_like(x, device="cpu"),
    "of data": lambda x: torch.as_tensor(x, device="cpu"),
    "never moved": lambda x: HOST + 1,
}


@pytest.mark.parametrize("make", ON_CUDA.values(), ids=ON_CUDA)
def test_it_says_that_it_is_on_cuda(make, x):
    made = make(x)
    assert made.device == torch.device("cuda", 0) and made.is_cuda and not made.is_cpu
    assert isinstance(made, PretendTensor)


@pytest.mark.parametrize("make", ON_CPU.values(), ids=ON_CPU)
def test_what_is_on_the_cpu_says_so(make, x):
    made = make(x)
    assert made.device.type == "cpu" and not made.is_cuda and type(made) is torch.Tensor


def test_numbers_shapes_and_gradients_are_those_of_the_cpu(x):
    def loss(X):
        values = torch.linalg.cholesky(X @ X.mT) @ X[0]
        values[1] = 2.0
        return (X[0] @ X + values.flip(0)).exp().sum() - X.cumsum(0).mean()

    host, moved = HOST.clone().requires_grad_(), HOST.clone().requires_grad_()
    on_device = x.clone().requires_grad_()
    value = loss(host * 0.1)
    value.backward()
    for start, leaf in ((on_device, on_device), (moved.to("cuda"), moved)):
        got = loss(start * 0.1)
        got.backward()
        assert got.is_cuda and leaf.grad.device == leaf.device
        assert_close(got.cpu(), value, **TOL)
        assert_close(leaf.grad.cpu(), host.grad, **TOL)


def test_modules_move_are_copied_and_are_stored(tmp_path):
    module = torch.nn.Linear(3, 2).double()
    expected = module(HOST)
    module.to("cuda")
    torch.save(module.state_dict(), tmp_path / "state.pt")
    loaded = torch.nn.Linear(3, 2).double().to(HOST.to("cuda"))
    loaded.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for each in (module, copy.deepcopy(module), pickle.loads(pickle.dumps(module)), loaded):
        assert isinstance(each.weight, torch.nn.Parameter) and each.weight.requires_grad
        assert_close(each(HOST.to("cuda")).cpu(), expected, **TOL)
    assert type(module.to("cpu").weight) is torch.nn.Parameter


MIXES = {
    "a sum": "return x + torch.zeros(3)",
    "a sum from the other side": "return torch.zeros(3) + x",
    "two numbers": "return torch.addcmul(x, torch.ones(()), torch.ones(()))",
    "a product": "return x @ torch.zeros(3, 3)",
    "a row of numbers": "return torch.cat([x, torch.zeros(1, 3)])",
    "a number where none may be": "return torch.stack([x[0, 0], torch.tensor(1.0)])",
    "written on the CPU": "return torch.zeros(()).add_(x.sum())",
    "an index of the CPU's": "return torch.arange(3)[x.argmax(0)]",
    "a value of the CPU": "x[0] = torch.zeros(3).double()[None]; x[[0]] = torch.zeros(3).double()",
    "a solution": "return torch.linalg.solve_triangular(x, torch.zeros(3, 1), upper=False)",
    "a generator in place": "return x.uniform_(generator=torch.Generator())",
    "a generator": "return torch.rand(3, device='cuda', generator=torch.Generator())",
}


@pytest.mark.parametrize("body", MIXES.values(), ids=MIXES)
def test_mixed_devices_are_refused_as_by_cuda(body, x):
    what = "same device|generator" if "index of" not in body else "indexed tensor"
    with pytest.raises(RuntimeError, match=what) as error:
        planted(body)(x)
    assert any(str(entry.path).endswith("planted.py") for entry in error.traceback)
    if "generator" not in body:
        assert "models/planted.py:2" in str(error.value)


@pytest.mark.parametrize("convert", [np.asarray, lambda x: x.numpy(), lambda x: x.detach().numpy()])
def test_numpy_takes_no_tensor_of_cuda(convert, x):
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        convert(x)


def test_there_is_one_gpu():
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
    "x[0] = 1.0",
    "x[x > 1] = 1.0",
    "x[x.argmax(0)]",
    "x * 2.0 + torch.tensor(1.0)",
    "torch.zeros(3, device=x.device)",
    "torch.linalg.cholesky_ex(x)",
    "x.to('cuda').float()",
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


@pytest.mark.parametrize("body", QUIET)
def test_the_rest_stops_nothing(body, x):
    with no_stops() as tally:
        planted(body)(x)
    assert not tally.num_stops and not tally.num_uploads


def test_an_upload_that_nobody_waits_for_is_no_stop(x):
    with counting() as tally:
        HOST.to("cuda", non_blocking=True)
        x.copy_(HOST, non_blocking=True)
    assert (tally.num_uploads, tally.num_stops) == (2, 0)
    with pytest.raises(OverBudget, match="must not upload"), no_stops():
        HOST.to("cuda", non_blocking=True)


def test_launches_are_weighted_and_named(x):
    with counting(Tally(by_line=True)) as tally:
        planted(
            "x[:1].mT; x + 1; x.sort(); torch.linalg.solve_triangular(x, x[:, :1], upper=False)"
        )(x)
        torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist")
        x.cumsum(0)
    assert tally.launches == 1 + 3 + 3 + 1 + 2
    assert tally.lines.pop("models/planted.py:2") == 7 and tally.lines.total() == 3
    assert tally.solves == [((3, 3), (3, 1))]
    assert tally.cdist_entries == 9
    assert [name.split()[0] for name in tally.nondeterministic] == ["cumsum"]
    with pytest.raises(OverBudget, match=r"at most 2, got 3: 3 .*planted.py:2"), budget(launches=2):
        planted("x.sort()")(x)


def test_equal_values_are_ranked_in_another_order_than_on_the_cpu():
    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 0.0, 2.0]], device="cuda")
    for values, rows in (x.topk(2), x.sort(descending=True), torch.sort(x, 1, True)):
        assert_close(x.gather(1, rows).cpu(), values.cpu(), rtol=0, atol=0)
        assert rows[:, :2].tolist() == [[2, 1], [2, 0]]
    assert x.T.topk(1, dim=0).indices.tolist() == [[2, 2]]
    assert x.topk(1, largest=False).indices.tolist() == [[0], [1]]
    stable = x.argsort(descending=True, stable=True)
    assert stable.tolist() == [[1, 2, 0], [0, 2, 1]]


def test_bytes_are_those_that_are_read_and_written(x):
    row = x[:1].expand(100, 3)
    with counting() as tally:
        _ = row + 1
    assert tally.num_bytes == 8 * (3 + 300)
    first = torch.zeros(1, dtype=torch.long, device="cuda")
    with counting() as tally:
        _ = x[first]
    assert tally.num_bytes == 8 * (3 + 3)


def test_memory_is_what_lives_at_once():
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
