"""Tensors that are made on the host, whatever the default device of torch is.

Random numbers are drawn by generators of the CPU, so that all devices see the same numbers, and
small tables are made there. The functions are those of torch with ``device="cpu"``.
"""

from __future__ import annotations

from functools import partial

import torch

arange = partial(torch.arange, device="cpu")
eye = partial(torch.eye, device="cpu")
full = partial(torch.full, device="cpu")
linspace = partial(torch.linspace, device="cpu")
logspace = partial(torch.logspace, device="cpu")
ones = partial(torch.ones, device="cpu")
rand = partial(torch.rand, device="cpu")
randint = partial(torch.randint, device="cpu")
randn = partial(torch.randn, device="cpu")
randperm = partial(torch.randperm, device="cpu")
tensor = partial(torch.tensor, device="cpu")
zeros = partial(torch.zeros, device="cpu")
