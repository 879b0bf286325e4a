"""Sets of models of several forms next to the rows that they should have."""

import copy

import torch
from gpytorch.kernels import RBFKernel
from gpytorch.means import ConstantMean
from torch.testing import assert_close

from botorch_ext.models import CandidateModels
from tests.helpers import drawn, matern, rbf, tolerance
from tests.kernel_functions.kernels import periodic, scaled
from tests.oracles.models import Candidate

LOWER = torch.tensor([2.0, -3.0], dtype=torch.float64)
SIDES = torch.tensor([3.0, 2.0], dtype=torch.float64)


def draw(n, seed):
    """``n x 2`` points, away from the origin and not alike in both columns."""
    return LOWER + SIDES * drawn(n, 2, seed=seed)


def values(n, seed):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed)).double()


CANDIDATES = draw(12, 99)


class Bent(RBFKernel):
    """A kernel class the library does not know."""

    def forward(self, x1, x2, diag=False, **params):
        return super().forward(x1 + 0.1 * x1**2, x2 + 0.1 * x2**2, diag=diag, **params)


def sine(X):
    return 0.3 * torch.sin(X[..., 0])


def constant_mean(value):
    mean = ConstantMean().double()
    mean.constant = value
    return mean


# (kernel, noise variance, mean) of each model; those of one form are not next to each other.
SPECS = {
    "one": [(rbf(0.6), 0.03, None)],
    "lengthscales": [(rbf(s), 0.03, None) for s in (0.4, 0.9, 2.0)],
    "means": [
        (rbf(0.7), v, m) for v, m in ((0.02, sine), (0.3, None), (0.02, lambda X: X[..., 1]))
    ],
    "mixed": [
        (rbf(0.4), 0.03, None),
        (scaled(matern(0.9), 0.5), 0.02, sine),
        (Bent().double(), 0.05, constant_mean(0.5)),
        (rbf(1.1), 0.01, None),
        (scaled(periodic(0.9, 0.8, (0,)) + rbf(0.8), 0.4), 0.03, None),
        (rbf(0.5, 1.5), 0.03, None),
        (scaled(matern(0.7), 0.9), 0.02, constant_mean(1.0)),
    ],
}


def made(specs, **kwargs):
    kernels, noise, means = zip(*specs, strict=True)
    return CandidateModels(list(kernels), list(noise), list(means), **kwargs)


class Session:
    """A set of models next to its rows: a point and a value, None if it pends."""

    def __init__(self, specs, finite=False, device="cpu"):
        self.specs, self.finite, self.device = list(specs), finite, device
        self.models = made(specs, device=device)
        if finite:
            self.models = self.models.on(self.cast(CANDIDATES))
        self.rows = []

    def cast(self, given):
        return None if given is None else given.to(self.device)

    def add(self, X, Y):
        self.models.add(self.cast(X), self.cast(Y))
        self.rows += [[x, None if Y is None else Y[i]] for i, x in enumerate(X)]

    def add_candidate(self, index, y):
        self.models.add_candidate(index, y)
        value = None if y is None else torch.tensor(y, dtype=torch.float64)
        self.rows.append([CANDIDATES[index], value])

    def set_targets(self, rows, Y):
        self.models.set_targets(rows, self.cast(Y))
        for row, y in zip(rows, Y, strict=True):
            self.rows[row][1] = y

    def remove(self, row):
        self.models.remove(row)
        del self.rows[row]

    def fork(self):
        return self._copy(self.models.fork(), self.specs)

    def select(self, positions):
        return self._copy(self.models.select(positions), [self.specs[i] for i in positions])

    def _copy(self, models, specs):
        new = copy.copy(self)
        new.models, new.specs, new.rows = models, list(specs), copy.deepcopy(self.rows)
        return new

    def drop(self, position):
        self.models.drop(position)
        del self.specs[position]

    def dense(self, spec):
        """The model of all rows and the candidates, written out."""
        return Candidate.at(torch.cat([*(x[None] for x, _ in self.rows), CANDIDATES]), *spec)

    def close(self, got, expected):
        expected = torch.as_tensor(expected, dtype=torch.float64).reshape(got.shape)
        assert_close(got.cpu(), expected, **tolerance(torch.float64))

    def check(self, without=(), index=3):
        models = self.models
        assert models.num_models == len(models) == len(self.specs)
        Z = self.cast(CANDIDATES)
        mean, std = (models.mean, models.std) if self.finite else models.mean_and_std(Z)
        pending = [i for i, (_, y) in enumerate(self.rows) if y is None]
        assert (models.num_observations, models.pending) == (len(self.rows), pending)
        gains, inflations = models.information_gain(), models.pending_information_gain()
        evidences = models.log_marginal_likelihood(without)
        known = {}
        if self.finite:
            for part in models.parts:
                stds = part.model.std_of_known().reshape(-1, len(CANDIDATES))
                known |= dict(zip(part.positions, stds, strict=True))
        n, every = len(self.rows), range(len(self.rows))
        told, left = ([i for i in every if i not in out] for out in (pending, without))
        for i, spec in enumerate(self.specs):
            dense = self.dense(spec)

            def mean_of(rows, dense=dense):
                rows = [row for row in rows if self.rows[row][1] is not None]
                y = [float(self.rows[row][1]) for row in rows]
                return dense.mean(rows, y)[n:], dense.log_evidence(rows, y)

            self.close(mean[i], mean_of(every)[0])
            self.close(std[i], dense.std(list(every))[n:])
            self.close(gains[i], dense.gain(list(every)))
            self.close(inflations[i], dense.gain(list(every)) - dense.gain(told))
            if self.finite:
                self.close(known[i], dense.std(told)[n:])
            else:
                self.close(models.means(i, Z), mean_of(every)[0])
            self.close(evidences[i], mean_of(left)[1])
            got = models.moments_without(i, without, index if self.finite else Z[index])
            expected = mean_of(left)[0][index], dense.std(left)[n:][index], dense.gain(left)
            for a, b in zip(got, expected, strict=True):
                self.close(a, b)
