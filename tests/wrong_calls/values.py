"""Wrong values, listed once by kind."""

import math
from typing import Any

import numpy as np
import pandas as pd
import torch

import botorch_ext as bx

NOT_A_NUMBER: list[Any] = ["0.5", True, np.ma.masked, torch.tensor([0.5, 0.5]), 0.5 + 0j, abs]
NOT_A_COUNT: list[Any] = [2.5, "2", True, np.True_, math.nan, [2], 10**400]
#: What no points of two columns are.
NOT_POINTS: list[Any] = [
    "points",
    [[3.0, -2.0], [1.0]],
    [["3", "-2"]],
    np.array([[3.0, -2.0]], dtype=object),
    torch.tensor([[3.0, -2.0]]).to(torch.complex128),
    [[True, False]],
    np.ma.array([[3.0, -2.0]], mask=[[True, False]]),
    torch.tensor([[3.0, -2.0]]).to_sparse(),
    np.full((1, 2), np.datetime64("2026-01-01")),
    abs,
]

#: The wrong values of each kind. None is left out where it is the default.
KINDS: dict[str, list[Any]] = {
    "number": [*NOT_A_NUMBER, None, math.nan, math.inf],
    # A tensor of several numbers has those of repeats.
    "result": [*(v for v in NOT_A_NUMBER if not isinstance(v, torch.Tensor)), math.nan, math.inf],
    "positive": [*NOT_A_NUMBER, math.nan, math.inf, 0.0, -1.0],
    "positive ones": [v for v in NOT_A_NUMBER if not isinstance(v, torch.Tensor)] + [0.0, math.nan],
    "least zero": [*NOT_A_NUMBER, math.nan, math.inf, -1.0],
    "share": [*NOT_A_NUMBER, math.nan, 0.0, 1.0, -0.5],
    "count": [*NOT_A_COUNT, None, 0, -1],
    "count from zero": [*NOT_A_COUNT, None, -1],
    "first points": [*NOT_A_COUNT, -1],
    "dimension": [2.5, "2", True, 0, -1],
    "purse": ["0.5", True, math.nan, -0.5, 1.5],
    "sign": ["yes", 3, ["both"]],
    "context": ["day", math.nan, [0.5, 0.5], abs, 9.0],
    "part": ["0.5", True, math.nan, 0.0, 1.5],
    "seed": [0.5, "1", True, np.True_, math.nan, 10**400],
    "flag": ["yes", 1, None],
    "whole": [2.5, "2", True, math.nan, None],
    "shape": ["2.5", 0.0, -1.0, math.nan, None],
    "table": [[0.1], [math.nan] * 24],
    "epsilon": [-1.0, math.nan, math.inf],
    "size": [0.0, -1.0, math.nan, math.inf],
    "choices": ["water", [], ["a", "a"]],
    "lengthscales": ["short", None, [], [-0.5], [math.nan], ["0.5"], [True]],
    "results": ["Y", [0.1], ["a", "b", "c"], [0.1, 0.2, math.nan], [True, False, True]],
    "word": ["mispelled", 3, True, ["both"]],
    "points": [*NOT_POINTS, None, torch.tensor([[math.nan, 0.0]]).double(), 3.0],
    "places": [*NOT_POINTS, None, 3.0, [[3.0, -2.0, 0.0]], torch.tensor([[3.0, -2.0]])],
    "values": ["Y", None, [0.1], ["a", "b", "c"], [0.1, 0.2, math.nan], [True, False, True]],
    "weights": ["Y", None, [0.1], ["a", "b", "c"], [True, False, True]],
    "widths": ["2", True, -1.0, math.nan, abs, [1.0, -2.0], bx.widths.SelfNormalized],
    "domain": ["unit cube", None, 2, torch.nn.Module, np.zeros((3, 2)), [[1.0], [0.0]]],
    "some domain": ["unit cube", abs, np.zeros((3, 2)), [[1.0], [0.0]]],
    "bounds": [np.zeros((3, 2)), [[1.0], [0.0]], [[math.nan], [1.0]], "unit", [["0"], ["1"]]],
    "contexts": ["day", 1.5, True, 0, -2, np.zeros((3, 1)), bx.Box],
    "kernel": [None, "rbf", abs, 2.0, torch.nn.Linear(1, 1)],
    "model": [None, "gp", abs, 2.0, bx.KernelGP],
    "mean": ["zero", math.nan, True],
    "strategy": [abs, bx.OptimisticStrategy, None, "gp_ucb", 3],
    "function": [None, "f", 3.0],
    "object": [None, 3.0, "x"],
    "dtype": ["float64", float, torch.int64, torch.complex128, torch.float16],
    "device": ["gpu", 1.5, "cuda:99"],
    "columns": [[7], [0.5], "x", [True], 0.5],
    "rows": [[7], [-1], ["0"], [0.5], [True], 0, None, [0, 0]],
    "row": [99, -1, "0", 0.5, True, None],
    "id": [99, -1, "0", 0.5, True, None],
    "name": [3, b"x", ["x"]],
    "text": [3, None, ["x"]],
    "initial": [abs, "data", 3, ([[3.0, -2.0]],), ([[3.0, -2.0]], ["a"])],
    "delay": ["soon", -1, True, math.nan],
    "distribution": ["soon", -1, True],
    "radius": ["0.1", -0.1, math.nan, [0.1, 0.2, 0.3], [0.1, True], None],
    "models": [None, "models", abs, bx.CandidateModels, []],
    "limits of space": [3, "x", "x < 1", "x * y <= 1", "sin(x) <= 1", ["x * x >= 2"], [abs], [{}]],
    "limits": [(1.0, 1.0), (0.0, math.inf), (1.0, 0.0), 1.0, ("0", "1"), (0.0, 1.0, 2.0)],
    "names": ["model", [1], 1],
    "square": [[[1.0, 2.0]], [["a"]], [[1.0, 2.0], [2.0, 1.0]], [[math.nan]], "x"],
    "frame": [pd.DataFrame({"x": []}), "X", None, 3.0],
    "X of rows": ["points", [[True, False]], [[3.0, -2.0], [1.0]], None, abs],
}
