"""Reasons why claims about contexts hold or fail: what the data themselves say."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from benchmarks.common.tables import Row
from benchmarks.contexts.sensors import MAIN, MERGED, READINGS
from benchmarks.measured.binding_affinities import BindingAffinities
from benchmarks.measured.temperatures import STEPS_PER_DAY, Temperatures

# Fewer shared peptides say nothing of a correlation.
_FEWEST_SHARED = 10


def measured_correlation(affinities: BindingAffinities) -> tuple[Tensor, Tensor]:
    """The correlation of the rewards of each two molecules over the peptides measured with both.

    Returns:
        ``n x n`` correlations, NaN where fewer than ten peptides are shared, and their numbers.
    """
    measured = [
        dict(zip(own, rewards.tolist(), strict=True))
        for own, rewards in zip(affinities.peptides, affinities.rewards, strict=True)
    ]
    number = len(measured)
    correlation = torch.eye(number, dtype=torch.float64)
    shared = torch.diag(torch.tensor([len(own) for own in measured]))
    for i, j in itertools.combinations(range(number), 2):
        both = [peptide for peptide in measured[i] if peptide in measured[j]]
        shared[i, j] = shared[j, i] = len(both)
        value = torch.nan
        if len(both) >= _FEWEST_SHARED:
            pair = torch.tensor([[own[p] for p in both] for own in (measured[i], measured[j])])
            value = float(torch.corrcoef(pair)[0, 1])
        correlation[i, j] = correlation[j, i] = value
    return correlation, shared


def similarity_rows(affinities: BindingAffinities) -> list[Row]:
    """Each molecule against those played before it: shared residues, and the correlation."""
    correlation, shared = measured_correlation(affinities)
    rows = []
    for i, name in enumerate(affinities.molecules):
        row: Row = {"": f"{i + 1}: {name}"}
        for j, other in enumerate(affinities.molecules[:-1]):
            cell = ""
            if j < i:
                r = "-" if shared[i, j] < _FEWEST_SHARED else f"{float(correlation[i, j]):+.2f}"
                cell = f"{float(affinities.similarity[i, j]):.2f} / {r} ({int(shared[i, j])})"
            row[f"{j + 1}: {other}"] = cell
        rows.append(row)
    return rows[1:]


def reference_rows(data: Temperatures) -> list[Row]:
    """What rules would pay on the played part that know all temperatures of the past, or all."""
    table = data.values
    played = table[:, STEPS_PER_DAY:]
    top = played.topk(min(READINGS, len(played)), dim=0).values
    rules: dict[str, Callable[[int], int]] = {
        "the hottest sensor of the same half-hour on the day before": (
            lambda t: int(table[:, t - STEPS_PER_DAY].argmax())
        ),
        "the hottest sensor half an hour before": lambda t: int(table[:, t - 1].argmax()),
        "the sensor that is the hottest on average, known in hindsight": (
            lambda t: int(played.mean(dim=1).argmax())
        ),
        "the hottest sensor of the same half-hour on the day for training": (
            lambda t: int(table[:, t % STEPS_PER_DAY].argmax())
        ),
    }
    rows: list[Row] = []
    for name, rule in rules.items():
        steps = range(STEPS_PER_DAY, table.shape[1])
        regret = torch.stack([table[:, t].max() - table[rule(t), t] for t in steps])
        rows.append(_reference(name, regret))
    rows.append(_reference(f"the mean of the {READINGS} hottest sensors", top[0] - top.mean(dim=0)))
    return rows


def _reference(name: str, regret: Tensor) -> Row:
    return {
        "rule": name,
        "regret": float(regret.mean()),
        "first day": float(regret[:STEPS_PER_DAY].mean()),
        "later": float(regret[STEPS_PER_DAY:].mean()),
    }


def hottest_shares(data: Temperatures) -> tuple[int, Sequence[float], float]:
    """Of the played part: how many sensors are ever the hottest, the shares of the time of the
    three that are so most often, and the share of half-hours whose hottest sensor is that of the
    day before."""
    hottest = data.values.argmax(dim=0)
    played = hottest[STEPS_PER_DAY:]
    counts = played.bincount().sort(descending=True).values
    same = (played == hottest[:-STEPS_PER_DAY]).double().mean()
    shares = (counts[:3] / len(played)).tolist()
    return int((counts > 0).sum()), shares, float(same)


def best_possible(affinities: BindingAffinities, trials: int) -> float:
    """The least average regret where each peptide is measured once: the best ones, in any order."""
    gaps = []
    for rewards in affinities.rewards:
        top = rewards.topk(min(trials, len(rewards))).values
        gaps.append(float((top[0] - top).mean()))
    return sum(gaps) / len(gaps)


def merged_picks(rows: Sequence[Row], data: Temperatures) -> tuple[float, int, int, str]:
    """What one GP-UCB without contexts reads after the first day.

    Returns:
        The share of its readings that the sensor gets that it reads most often; in how many of the
        seeds that is the sensor that is the hottest on average; the number of seeds; and the mean
        regrets of the largest reading in these seeds and in the others, in words.
    """
    best = int(data.values[:, STEPS_PER_DAY:].mean(dim=1).argmax())
    shares, right, wrong = [], [], []
    for row in rows:
        if row["setting"] == MAIN and row["method"] == MERGED:
            counts = torch.tensor(row["picks"][STEPS_PER_DAY:]).flatten().bincount()
            shares.append(float(counts.max() / counts.sum()))
            (right if int(counts.argmax()) == best else wrong).append(row["largest_later"])
    means = [f"{statistics.fmean(each):.2f}" if each else "-" for each in (right, wrong)]
    share = statistics.fmean(shares)
    return share, len(right), len(shares), f"{means[0]} and {means[1]}"
