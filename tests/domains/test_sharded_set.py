"""ShardedSet: processes that share the candidates choose what one process alone chooses."""

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from gpytorch.kernels import RBFKernel, ScaleKernel

import botorch_ext as bx
from tests.helpers import drawn, matern

pytestmark = pytest.mark.slow  # groups of processes

_N, _STEPS = 211, 16


def _points():
    return drawn(_N, 3)


def _value(x):
    return float((3 * x).sin().sum() - (x - 0.4).square().sum())


def _lengthscales():
    return bx.CandidateModels.lengthscales(RBFKernel(), [0.25, 0.5, 1.0], noise_variance=1e-2)


def _kernel():
    kernel = ScaleKernel(matern(0.4)).double()
    kernel.outputscale = 0.8
    return kernel


def _gp_ucb(domain):
    X = domain.points[[7, 100, 200]]
    return bx.algorithms.gp_ucb(
        domain, _kernel(), noise_variance=1e-2, width=2.0, initial=(X, X.sum(dim=-1))
    )


def _he_gp_ucb(domain):
    return bx.algorithms.he_gp_ucb(domain, _lengthscales(), noise_std=0.1, rkhs_bound=1.0)


def _credible_ucb(domain):
    return bx.algorithms.credible_ucb(domain, _lengthscales(), width=2.0, credibility=0.5)


METHODS = {method.__name__: method for method in (_gp_ucb, _he_gp_ucb, _credible_ucb)}


def _study(domain, method, delay):
    """Rows, infos, bands, best and report of a study whose results come late."""
    strategy = METHODS[method](domain)
    asked = []
    for _ in range(_STEPS):
        asked.append(strategy.ask())
        if len(asked) > delay:
            trial = asked[-1 - delay]
            strategy.tell(trial.id, _value(trial.x))
    x, mean = strategy.best()
    bands = [values.tolist() for values in strategy.bands(domain.points[::50])]
    infos = [trial.info for trial in asked]
    return [infos, bands, x.tolist(), mean, strategy.report()["current_width"]]


def _in_group(rank, size, file, work):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{file}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=120),
    )
    try:
        return work(rank)
    finally:
        dist.destroy_process_group()


def _together(size: int, folder: Path, work: Callable) -> list:
    """What each of some processes returns of ``work(rank)``."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.domains.test_sharded_set"])
    with ProcessPoolExecutor(size, mp_context=context) as pool:
        run = partial(_in_group, size=size, file=folder / "rendezvous", work=work)
        return list(pool.map(run, range(size)))


def _plans(domain):
    """Rows and deviations: of ties the first and any, and after data."""
    model = bx.KernelGP(_kernel(), 1e-2)
    plans = [bx.plan(domain, model, 12, seed=seed) for seed in (None, 5)]
    model.add(domain.points[:4] + 0.01, torch.ones(4, 1, dtype=torch.float64))
    plans.append(bx.plan(domain, model, 12))
    return [(plan.indices.tolist(), plan.std.tolist()) for plan in plans]


def _all_studies(rank, delay):
    domain = bx.ShardedSet(_points())
    studies = {method: _study(domain, method, delay) for method in METHODS}
    return studies, _plans(domain)


@pytest.mark.parametrize(("size", "delay"), [(2, 0), (3, 4)])
def test_processes_choose_what_one_alone_chooses(size, delay, tmp_path):
    of_processes = _together(size, tmp_path, partial(_all_studies, delay=delay))
    for (rows, std), (alone, std_alone) in zip(
        of_processes[-1][1], _plans(bx.FiniteSet(_points())), strict=True
    ):
        assert rows == alone
        assert std == pytest.approx(std_alone, rel=1e-10)
    for method in METHODS:
        alone = _study(bx.FiniteSet(_points()), method, delay)
        first = of_processes[0][0][method]
        assert [info.get("index") for info in first[0]] == [i.get("index") for i in alone[0]]
        assert _numbers(first) == pytest.approx(_numbers(alone), rel=1e-10, abs=1e-10)
        for other in of_processes[1:]:  # to the bit
            assert other[0][method] == first


def _numbers(value):
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value)]
    if isinstance(value, list):
        return [number for item in value for number in _numbers(item)]
    return [float(value)] if isinstance(value, int | float) else []


def _mistakes(rank):
    """What is said about different data and about what cannot be divided; the shard."""
    domain = bx.ShardedSet(_points())
    strategy = _gp_ucb(domain)
    strategy.tell(strategy.ask().id, 1.0 + rank)
    known = {"domain": domain, "kernel": _kernel(), "noise_variance": 1e-2, "width": 2.0}
    said = []
    for make in (
        strategy.ask,
        lambda: bx.algorithms.bpe(**known, horizon=20),
        lambda: bx.algorithms.stable_opt(**known, radius=0.1),
        lambda: bx.algorithms.cgp_ucb(**known, context_domain=1),
        lambda: _gp_ucb(domain).ask(actions=domain.points[:3]),
        lambda: bx.ShardedSet(domain.points[:1]),
    ):
        with pytest.raises((ValueError, RuntimeError)) as error:
            make()
        said.append(str(error.value))
    shards = [(each.shard.start, each.shard.stop) for each in (domain, domain.to(torch.float32))]
    return said, shards


def test_what_cannot_be_divided_is_refused_and_different_data_are_an_error(tmp_path):
    expected = ["must ask and be told the same", "ShardedSet for", "ShardedSet for"]
    expected += ["context_domain", "actions", "each process"]
    for rank, (said, shards) in enumerate(_together(2, tmp_path, _mistakes)):
        for message, part in zip(said, expected, strict=True):
            assert part in message
        assert shards == [((0, 105), (105, 211))[rank]] * 2


def test_without_processes_there_are_no_shards():
    with pytest.raises(ValueError, match="group must be a process group, but torch"):
        bx.ShardedSet(_points())
