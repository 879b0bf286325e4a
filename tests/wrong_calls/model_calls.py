"""Data of models, and what models say of points."""

import math
from typing import Any

import numpy as np
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from tests.wrong_calls.calls import LAMBDA, refused, refused_values, working_values, works
from tests.wrong_calls.kinds import as_people_write, no_points

OMITTED: Any = object()
POINTS = [[3.0, -2.0], [4.0, -2.5], [2.5, -1.75]]
WRONG_VALUES = {
    "too few": [0.3, -0.2],
    "in a row": [[0.3, -0.2, 0.1]],
    "strings": ["a", "b", "c"],
    "bools": [True, False, True],
    "masked": np.ma.array([0.3, -0.2, 0.1]),
    "NaN": [0.3, math.nan, 0.1],
    "complex": np.array([0.3, -0.2, 0.1]) + 0j,
    "float32": torch.tensor([0.3, -0.2, 0.1]),
    "one number": 0.3,
}
SOME = (
    "a string",
    "strings",
    "bools",
    "a masked array",
    "float32",
    "one column more",
    "ragged",
    "a sparse tensor",
    "objects",
    "NaN",
)
SOME_POINTS = {kind: value for kind, value in no_points(POINTS).items() if kind in SOME}
SHAPES = {kind: value for kind, value in no_points(POINTS).items() if kind != "NaN"}


def half(X):
    return X.new_full(X.shape[:-1], 0.5)


def fresh(s, **options):
    return bx.KernelGP(s.kernel, LAMBDA, **options)


def filled(s, X=OMITTED, Y=OMITTED, **options):
    gp = fresh(s, **options)
    gp.add(s.X if X is OMITTED else X, s.Y if Y is OMITTED else Y)
    return gp


def added(s, X=OMITTED, Y=OMITTED):
    s.gp.add(s.X if X is OMITTED else X, s.Y if Y is OMITTED else Y)
    return s.gp


def finite_added(s, X=OMITTED, Y=OMITTED):
    s.finite.add(s.X if X is OMITTED else X, s.Y if Y is OMITTED else Y)
    return s.finite


def models_added(s, X=OMITTED, Y=OMITTED):
    s.models.add(s.X if X is OMITTED else X, s.Y if Y is OMITTED else Y)
    return s.models


def moments(posterior):
    return posterior.mean, posterior.variance


CALLS = [
    # --- data
    *working_values("KernelGP.add", added, as_people_write(POINTS), torch.tensor(POINTS).double()),
    *working_values(
        "KernelGP.add, values",
        lambda s, Y: added(s, Y=Y),
        as_people_write([0.3, -0.2, 0.1]),
        torch.tensor([0.3, -0.2, 0.1], dtype=torch.float64),
    ),
    *works(
        lambda s: added(s, s.X[:1], s.Y[:1]),
        add_one_list=lambda s: added(s, s.rows[0], [0.3]),
        add_integers=lambda s: added(s, s.rows[0], s.Y[:1].numpy()),
        add_one_number=lambda s: added(s, s.rows[0], 0.3),
    ),
    *works(
        lambda s: added(s, torch.tensor([[3.0, -2.0]]).double(), torch.tensor([1.0]).double()),
        add_whole_numbers=lambda s: added(s, [[3, -2]], [1]),
        add_integer_tensors=lambda s: added(s, torch.tensor([[3, -2]]), torch.tensor([1])),
    ),
    *works(lambda s: s.gp, add_no_point=lambda s: added(s, s.X[:0], s.Y[:0])),
    *refused_values("X", "KernelGP.add", lambda s, X: added(s, X), no_points(POINTS)),
    *refused_values(
        "X",
        "the first KernelGP.add",
        lambda s, X: filled(s, X),
        {k: v for k, v in SHAPES.items() if k != "one column more"},
    ),
    *refused_values("Y", "KernelGP.add", lambda s, Y: added(s, Y=Y), WRONG_VALUES),
    *refused("X", add_batches=lambda s: added(s, s.X[None, None])),
    *working_values(
        "KernelGP.set_targets",
        lambda s, Y: [s.gp.set_targets([0, 1], Y), s.gp][1],
        {
            "a list": [0.1, 0.2],
            "an array": np.array([0.1, 0.2]),
            "a tuple": (0.1, 0.2),
            "columns": [[0.1], [0.2]],
        },
        torch.tensor([0.1, 0.2], dtype=torch.float64),
    ),
    *refused_values(
        "Y", "KernelGP.set_targets", lambda s, Y: s.gp.set_targets([0, 1, 2], Y), WRONG_VALUES
    ),
    *refused_values(
        "Y",
        "FinitePosterior.set_targets",
        lambda s, Y: s.finite.set_targets([0, 1, 2], Y),
        WRONG_VALUES,
    ),
    *refused_values(
        "Y",
        "CandidateModels.set_targets",
        lambda s, Y: s.models.set_targets([0, 1, 2], Y),
        {k: WRONG_VALUES[k] for k in ("too few", "strings", "NaN")},
    ),
    *refused_values(
        "rows",
        "KernelGP.set_targets",
        lambda s, rows: s.gp.set_targets(rows, s.Y[:1]),
        {
            "a row that is not there": [7],
            "a negative row": [-1],
            "a string": ["0"],
            "a float": [0.5],
            "a bool": [True],
            "one number": 0,
            "nothing": None,
        },
    ),
    *refused(
        "rows",
        a_row_twice=lambda s: s.gp.set_targets([0, 0], s.Y[:2]),
        remove_a_row_that_is_not_there=lambda s: s.gp.remove(7),
        remove_a_float=lambda s: s.gp.remove(0.5),
    ),
    *works(
        lambda s: [s.gp.set_targets([0, 1], s.Y[:2]), s.gp][1],
        rows_in_an_array=lambda s: [s.gp.set_targets(np.array([0, 1]), s.Y[:2]), s.gp][1],
        rows_in_a_tensor=lambda s: [s.gp.set_targets(torch.tensor([0, 1]), s.Y[:2]), s.gp][1],
        rows_in_a_tuple=lambda s: [s.gp.set_targets((0, 1), s.Y[:2]), s.gp][1],
    ),
    *working_values(
        "FinitePosterior.add", finite_added, as_people_write(POINTS), torch.tensor(POINTS).double()
    ),
    *refused_values("X", "FinitePosterior.add", lambda s, X: finite_added(s, X), SOME_POINTS),
    *refused_values("Y", "FinitePosterior.add", lambda s, Y: finite_added(s, Y=Y), WRONG_VALUES),
    *working_values(
        "FinitePosterior",
        lambda s, X: bx.FinitePosterior(s.kernel, X, LAMBDA),
        as_people_write(POINTS),
        torch.tensor(POINTS).double(),
    ),
    *refused_values(
        "candidates",
        "FinitePosterior",
        lambda s, X: bx.FinitePosterior(s.kernel, X, LAMBDA),
        {k: v for k, v in no_points(POINTS).items() if k not in ("float32", "one column more")},
    ),
    *refused(
        "index",
        add_candidate_that_is_not_there=lambda s: s.finite.add_candidate(99, 0.1),
        add_candidate_by_point=lambda s: s.finite.add_candidate(s.grid.points[0], 0.1),
        add_candidate_by_float=lambda s: s.finite.add_candidate(1.0, 0.1),
    ),
    *working_values(
        "CandidateModels.add", models_added, as_people_write(POINTS), torch.tensor(POINTS).double()
    ),
    *refused_values("X", "CandidateModels.add", lambda s, X: models_added(s, X), SOME_POINTS),
    *refused_values("Y", "CandidateModels.add", lambda s, Y: models_added(s, Y=Y), WRONG_VALUES),
    *works(
        lambda s: bx.CandidateModels.lengthscales(
            RBFKernel(), torch.tensor([0.5, 1.0]).double(), LAMBDA
        ),
        lengthscales_in_a_list=lambda s: bx.CandidateModels.lengthscales(
            RBFKernel(), [0.5, 1], LAMBDA
        ),
        lengthscales_in_an_array=lambda s: bx.CandidateModels.lengthscales(
            RBFKernel(), np.array([0.5, 1.0]), LAMBDA
        ),
    ),
    *refused_values(
        "values",
        "lengthscales",
        lambda s, v: bx.CandidateModels.lengthscales(RBFKernel(), v, LAMBDA),
        {
            "a string": "short",
            "strings": ["0.5"],
            "nothing": None,
            "none": [],
            "negative": [-0.5],
            "NaN": [math.nan],
            "masked": np.ma.array([0.5]),
            "bools": [True, True],
            "complex": [0.5 + 0j],
        },
    ),
    *refused(
        "names",
        one_name_for_two=lambda s: bx.CandidateModels([s.kernel] * 2, LAMBDA, names="model"),
        names_that_are_numbers=lambda s: bx.CandidateModels(s.kernel, LAMBDA, names=[1]),
        a_number_for_names=lambda s: bx.CandidateModels(s.kernel, LAMBDA, names=1),
    ),
    # --- posteriors
    *working_values(
        "KernelGP.posterior",
        lambda s, X: moments(s.gp.posterior(X)),
        as_people_write(POINTS),
        torch.tensor(POINTS).double(),
    ),
    *works(
        lambda s: moments(s.gp.posterior(s.X[None, None, None])),
        posterior_of_batches_in_lists=lambda s: moments(s.gp.posterior([[[s.rows]]])),
        posterior_of_batches_in_an_array=lambda s: moments(
            s.gp.posterior(s.X.numpy()[None, None, None])
        ),
    ),
    *works(
        lambda s: moments(fresh(s).posterior(s.X)),
        posterior_before_data=lambda s: moments(fresh(s).posterior(s.rows)),
    ),
    *refused(
        "X",
        posterior_of_no_point=lambda s: s.gp.posterior(s.X[:0]),
        posterior_of_no_batch=lambda s: s.gp.posterior(s.X[None][:0]),
    ),
    *works(
        lambda s: filled(s, mean=half),
        mean_of_KernelGP_to_float32=lambda s: filled(s, mean=lambda X: half(X).float()),
    ),
    *refused_values("X", "KernelGP.posterior", lambda s, X: s.gp.posterior(X), SHAPES),
    *refused("X", posterior_of_one_row=lambda s: s.gp.posterior(s.X[0])),
    *refused("output_indices", posterior_of_the_second_output=lambda s: s.gp.posterior(s.X, [1])),
    *refused(
        "observation_noise",
        noise_by_word=lambda s: s.gp.posterior(s.X, observation_noise="yes"),
        noise_by_number=lambda s: s.gp.posterior(s.X, observation_noise=0.1),
    ),
    *working_values(
        "KernelGP.mean_and_std",
        lambda s, X: s.gp.mean_and_std(X),
        {
            k: v
            for k, v in as_people_write(POINTS).items()
            if k in ("a list", "an array", "a DataFrame")
        },
        torch.tensor(POINTS).double(),
    ),
    *refused_values(
        "X",
        "KernelGP.mean_and_std",
        lambda s, X: s.gp.mean_and_std(X),
        {k: SHAPES[k] for k in ("a string", "float32", "one column more", "bools", "ragged")},
    ),
    *working_values(
        "CandidateModels.mean_and_std",
        lambda s, X: s.models.mean_and_std(X),
        {
            k: v
            for k, v in as_people_write(POINTS).items()
            if k in ("a list", "an array", "a DataFrame")
        },
        torch.tensor(POINTS).double(),
    ),
    *works(
        lambda s: s.gp.condition_on_observations(s.X, s.Y[:, None]),
        condition_on_lists=lambda s: s.gp.condition_on_observations(s.rows, [[0.3], [-0.2], [0.1]]),
        condition_on_arrays=lambda s: s.gp.condition_on_observations(
            s.X.numpy(), s.Y.numpy()[:, None]
        ),
    ),
    *refused(
        "Y",
        condition_on_a_row_of_values=lambda s: s.gp.condition_on_observations(s.X, s.Y),
        condition_on_strings=lambda s: s.gp.condition_on_observations(s.X, ["a", "b", "c"]),
    ),
    *refused(
        "X",
        condition_on_float32=lambda s: s.gp.condition_on_observations(s.X.float(), s.Y[:, None]),
        condition_on_strings_for_points=lambda s: s.gp.condition_on_observations(
            "points", s.Y[:, None]
        ),
    ),
]
