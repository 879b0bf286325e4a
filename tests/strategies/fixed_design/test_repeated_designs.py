"""Designs that are replaced: a successor leaves the design it comes from as it was."""

import pytest
import torch
from torch.testing import assert_close

from botorch_ext import KernelGP
from botorch_ext.models.replicates import RepeatedDesign
from tests.helpers import tolerance
from tests.strategies.sessions import LAMBDA, finite, kernel


def numbers_of(design):
    return design.variance.clone(), design.information_gain().clone(), design.counts.clone()


@pytest.mark.parametrize("seed", range(3))
def test_successors_leave_what_came_before(seed):
    generator = torch.Generator().manual_seed(seed)
    model, some = KernelGP(kernel(), LAMBDA), finite().points[:20]
    design, counts = RepeatedDesign(model, some), torch.zeros(20, dtype=torch.long)
    for _ in range(60):
        before, new, own = numbers_of(design), design.successor(), counts.clone()
        row = int(torch.randint(20, (), generator=generator))
        removes = own[row] and torch.rand((), generator=generator) < 0.2
        (new.remove if removes else new.add)(row)
        own[row] += -1 if removes else 1
        known = RepeatedDesign.from_counts(model, some, own)
        for ours, theirs in zip(numbers_of(new), numbers_of(known), strict=True):
            assert_close(ours, theirs, **tolerance(torch.float64))
        assert all(map(torch.equal, numbers_of(design), before))
        if torch.rand((), generator=generator) < 0.7:  # else it is dropped
            design, counts = new, own
    assert counts.sum() > 20
