"""Boxes, sets, contexts and bounds where domains go."""

import numpy as np
import torch

import botorch_ext as bx
from botorch_ext import algorithms
from botorch_ext.problems import RKHSFunction
from botorch_ext.regions import Region
from botorch_ext.rounds import Doubling
from tests.wrong_calls.calls import (
    LAMBDA,
    PAIRS,
    ROWS,
    kernel,
    refused,
    refused_values,
    working_values,
    works,
)
from tests.wrong_calls.kinds import BOUNDS, NO_DOMAIN, Table, as_people_write, no_points

NUMBERS = {"noise_variance": LAMBDA, "width": 2.0}
FIRST = [0.25, 0.75]


def gp(s):
    return bx.KernelGP(s.kernel, LAMBDA)


def models(s):
    return bx.CandidateModels([s.kernel, s.kernel], LAMBDA)


WHERE_DOMAINS_GO = {
    "gp_ucb": lambda s, d: algorithms.gp_ucb(d, s.kernel, **NUMBERS),
    "gp_ucb by name": lambda s, d: algorithms.gp_ucb(domain=d, kernel=s.kernel, **NUMBERS),
    "gp_bucb": lambda s, d: algorithms.gp_bucb(d, s.kernel, **NUMBERS),
    "ec_gp_ucb": lambda s, d: algorithms.ec_gp_ucb(d, s.kernel, misspecification=0.1, **NUMBERS),
    "stable_opt": lambda s, d: algorithms.stable_opt(d, s.kernel, radius=0.1, **NUMBERS),
    "he_gp_ucb": lambda s, d: algorithms.he_gp_ucb(d, models(s), noise_std=0.1, width=2.0),
    "integrated_ei": lambda s, d: algorithms.integrated_ei(d),
    "credible_ucb": lambda s, d: algorithms.credible_ucb(d, models(s), width=2.0),
    "bpe": lambda s, d: algorithms.bpe(d, s.kernel, horizon=20, **NUMBERS),
    "breadthwise_exploration": lambda s, d: algorithms.breadthwise_exploration(
        d, s.kernel, horizon=20, rkhs_bound=1.0, **NUMBERS
    ),
    "insured_ucb": lambda s, d: algorithms.insured_ucb(
        d, s.kernel, noise_std=0.1, rkhs_bound=1.0, **NUMBERS
    ),
    "certified_bucb": lambda s, d: algorithms.certified_bucb(d, s.kernel, horizon=20, **NUMBERS),
    "regret_balancing": lambda s, d: algorithms.regret_balancing(
        d, s.kernel, rkhs_bound=1.0, noise_std=0.1, horizon=20, max_information_gain=2.0, **NUMBERS
    ),
    "OptimisticStrategy": lambda s, d: bx.OptimisticStrategy(d, gp(s), 2.0),
    "PhasedElimination": lambda s, d: bx.PhasedElimination(d, gp(s), 2.0, Doubling(), 20),
    "plan": lambda s, d: bx.plan(d, s.gp, 2),
    "Region": lambda s, d: Region(d).contains(s.X),
    "information gain": lambda s, d: bx.information_gain.max_information_gain(
        s.kernel, d, 3, LAMBDA
    ),
    "RKHSFunction": lambda s, d: RKHSFunction(s.kernel, s.X, s.Y, d)(s.X),
    "optimize": lambda s, d: bx.optimize(lambda x: float(x[0]), d, 3, progress=False).X,
}
CONTEXT_BOUNDS = {
    "rows": [[0.0], [1.0]],
    "pairs": [(0.0, 1.0)],
    "an array": np.array([[0.0], [1.0]]),
    "a tensor": torch.tensor([[0.0], [1.0]]).double(),
}


def seeing(s, contexts):
    model = bx.KernelGP(kernel(3), LAMBDA)
    return bx.OptimisticStrategy(s.box, model, 2.0, context_domain=contexts)


CALLS = [
    # --- what Box reads
    *working_values("Box", lambda s, b: bx.Box(b), BOUNDS, ROWS),
    *works(
        lambda s: bx.Box(lower=[0.0, 20.0], upper=[1.0, 80.0]),
        Box_of_corners_of_an_array=lambda s: bx.Box(lower=np.array([0, 20]), upper=(1, 80)),
        Box_of_two_tuples_is_pairs=lambda s: bx.Box([(0, 1), (20, 80)]),
        Box_of_zip_is_pairs=lambda s: bx.Box(list(zip([0, 20], [1, 80], strict=True))),
        Box_of_an_integer_tensor=lambda s: bx.Box(torch.tensor([[0, 20], [1, 80]])),
    ),
    *refused(
        "bounds",
        Box_of_two_lists_that_could_be_pairs=lambda s: bx.Box([[-5, 10], [0, 15]]),
        Box_of_an_array_that_could_be_pairs=lambda s: bx.Box(np.array([(0, 20), (1, 80)])),
        Box_of_three_pairs_as_lists=lambda s: bx.Box([[0, 20], [1, 80], [2, 3]]),
    ),
    *refused(
        "lower and upper",
        Box_of_a_corner_alone=lambda s: bx.Box(lower=[0.0, 1.0]),
        Box_of_bounds_and_corners=lambda s: bx.Box(ROWS, lower=[0.0], upper=[1.0]),
        Box_of_corners_of_other_sizes=lambda s: bx.Box(lower=[0.0], upper=[1.0, 2.0]),
        Box_of_corners_upside_down=lambda s: bx.Box(lower=[1.0], upper=[0.0]),
    ),
    *refused(
        "dtype",
        Box_of_lower_and_upper=lambda s: bx.Box([2.0, -3.0], [5.0, -1.5]),
        Box_of_lower_and_upper_tensors=lambda s: bx.Box(torch.zeros(2), torch.ones(2)),
        Box_of_lower_and_upper_arrays=lambda s: bx.Box(np.zeros(2), np.ones(2)),
        Box_of_two_numbers=lambda s: bx.Box(0.0, 1.0),
        Box_dtype_by_word=lambda s: bx.Box(ROWS, dtype="float"),
        Box_dtype_of_python=lambda s: bx.Box(ROWS, dtype=float),
        Box_dtype_of_numpy=lambda s: bx.Box(ROWS, dtype=np.float64),
        Box_of_whole_numbers=lambda s: bx.Box(ROWS, dtype=torch.int64),
        Box_of_complex_numbers=lambda s: bx.Box(ROWS, dtype=torch.complex128),
        Box_in_float16=lambda s: bx.Box(ROWS, dtype=torch.float16),
        FiniteSet_dtype_by_word=lambda s: bx.FiniteSet(s.rows, dtype="float64"),
        KernelGP_dtype_by_word=lambda s: bx.KernelGP(s.kernel, LAMBDA, dtype="float64"),
        KernelGP_of_whole_numbers=lambda s: bx.KernelGP(s.kernel, LAMBDA, dtype=torch.int64),
        CandidateModels_dtype_by_word=lambda s: bx.CandidateModels(
            s.kernel, LAMBDA, dtype="float64"
        ),
        Box_moved_to_a_word=lambda s: s.box.to("double"),
    ),
    *refused(
        "device",
        Box_on_gpu=lambda s: bx.Box(ROWS, device="gpu"),
        Box_on_a_number=lambda s: bx.Box(ROWS, device=1.5),
        FiniteSet_on_gpu=lambda s: bx.FiniteSet(s.rows, device="gpu"),
        KernelGP_on_gpu=lambda s: bx.KernelGP(s.kernel, LAMBDA, device="gpu"),
        CandidateModels_on_gpu=lambda s: bx.CandidateModels(s.kernel, LAMBDA, device="gpu"),
        Box_on_CUDA_that_is_not_there=lambda s: bx.Box(ROWS, device="cuda:99"),
        KernelGP_on_CUDA_that_is_not_there=lambda s: bx.KernelGP(
            s.kernel, LAMBDA, device="cuda:99"
        ),
        Box_moved_to_gpu=lambda s: s.box.to(device="gpu"),
    ),
    *refused(
        "bounds",
        Box_of_three_rows=lambda s: bx.Box([[0, 1], [2, 3], [4, 5]]),
        Box_of_a_float16_tensor=lambda s: bx.Box(torch.tensor(ROWS).half()),
        Box_of_bools=lambda s: bx.Box([[False, False], [True, True]]),
        Box_of_a_tensor_of_bools=lambda s: bx.Box(torch.tensor([[False], [True]])),
        Box_of_a_complex_array=lambda s: bx.Box(np.array(ROWS).astype(complex)),
        Box_of_a_masked_array=lambda s: bx.Box(np.ma.array(ROWS)),
        Box_of_a_sparse_tensor=lambda s: bx.Box(torch.tensor(ROWS).to_sparse()),
        Box_of_objects=lambda s: bx.Box(np.array(ROWS, dtype=object)),
        Box_of_strings=lambda s: bx.Box([["2", "-3"], ["5", "-1.5"]]),
        Box_of_a_scipy_like_dict=lambda s: bx.Box({"lb": [0], "ub": [1]}),
        Box_of_a_box=lambda s: bx.Box(s.box),
        Box_of_dates=lambda s: bx.Box(np.array([["2026-01-01"], ["2026-02-01"]], "datetime64[D]")),
        Box_without_upper_ends=lambda s: bx.Box([[0.0, 1.0]]),
        Box_of_nothing=lambda s: bx.Box(None),
    ),
    # --- points where a domain takes them
    *working_values(
        "Box.contains",
        lambda s, X: s.box.contains(X),
        as_people_write([[3.0, -2.0], [9.0, 9.0]]),
        torch.tensor([[3.0, -2.0], [9.0, 9.0]]).double(),
    ),
    *working_values(
        "Box.to_unit",
        lambda s, X: s.box.to_unit(X),
        as_people_write([[3.0, -2.0], [4.0, -2.5]]),
        torch.tensor([[3.0, -2.0], [4.0, -2.5]]).double(),
    ),
    *working_values(
        "Box.from_unit",
        lambda s, U: s.box.from_unit(U),
        as_people_write([FIRST, [0.5, 0.5]]),
        torch.tensor([FIRST, [0.5, 0.5]]).double(),
    ),
    *works(
        lambda s: s.box.to_unit(s.X[0]),
        Box_to_unit_of_one_list=lambda s: s.box.to_unit(s.rows[0]),
        Box_to_unit_of_a_row=lambda s: s.box.to_unit(s.X.numpy()[0]),
    ),
    *works(
        lambda s: s.box.to_unit(s.X[None, None]),
        Box_to_unit_of_nested_lists=lambda s: s.box.to_unit([[s.rows]]),
    ),
    *works(
        lambda s: bx.Box(PAIRS, log=[0]).to_unit(s.X),
        logarithmic_Box_to_unit_of_lists=lambda s: bx.Box(PAIRS, log=[0]).to_unit(s.rows),
    ),
    *refused_values(
        "X",
        "Box.to_unit",
        lambda s, X: s.box.to_unit(X),
        {k: v for k, v in no_points([[3.0, -2.0]]).items() if k != "NaN"},
    ),
    *refused_values(
        "U",
        "Box.from_unit",
        lambda s, U: s.box.from_unit(U),
        {
            k: v
            for k, v in no_points([FIRST]).items()
            if k
            in (
                "a string",
                "strings",
                "a masked array",
                "float32",
                "one column more",
                "bools",
                "ragged",
                "nothing",
            )
        },
    ),
    *refused_values("X", "Box.contains", lambda s, X: s.box.contains(X), no_points([[3.0, -2.0]])),
    *refused_values(
        "X",
        "FiniteSet.index",
        lambda s, X: s.grid.index(X),
        {
            k: v
            for k, v in no_points([[3.0, -2.0]]).items()
            if k in ("a string", "objects", "bools", "a masked array", "float32", "a sparse tensor")
        },
    ),
    *working_values(
        "FiniteSet",
        lambda s, X: bx.FiniteSet(X),
        as_people_write([[3.0, -2.0], [4.0, -2.5]]),
        torch.tensor([[3.0, -2.0], [4.0, -2.5]]).double(),
    ),
    *works(
        lambda s: bx.FiniteSet([[3.0], [4.0]]),
        FiniteSet_of_whole_numbers=lambda s: bx.FiniteSet([[3], [4]]),
        FiniteSet_of_an_integer_tensor=lambda s: bx.FiniteSet(torch.tensor([[3], [4]])),
        FiniteSet_of_an_integer_array=lambda s: bx.FiniteSet(np.array([[3], [4]], dtype=np.int32)),
    ),
    *refused_values(
        "points",
        "FiniteSet",
        lambda s, X: bx.FiniteSet(X),
        {
            k: v
            for k, v in no_points([[3.0, -2.0]]).items()
            if k not in ("float32", "one column more")
        },
    ),
    *refused(
        "points",
        FiniteSet_of_a_row=lambda s: bx.FiniteSet([1.0, 2.0]),
        FiniteSet_of_nothing=lambda s: bx.FiniteSet([]),
    ),
    *works(
        lambda s: torch.zeros(0, dtype=torch.bool),
        Box_contains_no_point=lambda s: s.box.contains(s.X[:0]),
    ),
    *works(
        lambda s: s.X[:0],
        Box_to_unit_of_no_point=lambda s: s.box.to_unit(s.X[:0]),
        Box_samples_no_point=lambda s: s.box.sample(0, seed=0),
    ),
    *refused(
        "seed",
        Box_sample_with_a_float_seed=lambda s: s.box.sample(3, seed=0.5),
        Box_sample_without_a_seed=lambda s: s.box.sample(3, seed=None),
        FiniteSet_sample_with_a_float_seed=lambda s: s.grid.sample(3, seed=0.5),
    ),
    *refused(
        "num_points",
        Box_sample_of_a_fraction=lambda s: s.box.sample(2.5, seed=0),
        Box_sample_of_a_negative_number=lambda s: s.box.sample(-2, seed=0),
        FiniteSet_sample_of_a_fraction=lambda s: s.grid.sample(2.5, seed=0),
    ),
    # --- bounds where domains go
    *(
        call
        for where, make in WHERE_DOMAINS_GO.items()
        for call in working_values(
            where,
            make,
            BOUNDS if where == "gp_ucb" else {k: BOUNDS[k] for k in ("rows", "an array", "pairs")},
            bx.Box(ROWS),
        )
    ),
    *(
        call
        for where in (
            "gp_ucb",
            "he_gp_ucb",
            "OptimisticStrategy",
            "plan",
            "integrated_ei",
            "optimize",
        )
        for call in refused_values("domain", where, WHERE_DOMAINS_GO[where], NO_DOMAIN)
    ),
    *refused_values("box", "Region", WHERE_DOMAINS_GO["Region"], NO_DOMAIN),
    *(
        call
        for where in (
            "information gain",
            "RKHSFunction",
            "bpe",
            "stable_opt",
            "breadthwise_exploration",
        )
        for call in refused_values(
            "domain",
            where,
            WHERE_DOMAINS_GO[where],
            {k: NO_DOMAIN[k] for k in ("a string", "nothing", "three rows")},
        )
    ),
    *refused(
        "domain",
        breadthwise_on_a_set=lambda s: WHERE_DOMAINS_GO["breadthwise_exploration"](s, s.grid),
    ),
    *working_values("context_domain", seeing, CONTEXT_BOUNDS, bx.Box([[0.0], [1.0]])),
    *working_values(
        "context_domain",
        seeing,
        {"a numpy number": np.int64(1), "a ContextSpace": bx.ContextSpace(dim=1)},
        1,
    ),
    *refused_values(
        "context_domain",
        "context_domain",
        seeing,
        {
            "a string": "day",
            "a float": 1.5,
            "a bool": True,
            "zero": 0,
            "three rows": np.zeros((3, 1)),
            "a class": bx.Box,
        },
    ),
    *working_values(
        "ContextSpace",
        lambda s, b: bx.ContextSpace(b).domain,
        CONTEXT_BOUNDS,
        bx.Box([[0.0], [1.0]]),
    ),
    *refused_values(
        "domain",
        "ContextSpace",
        lambda s, b: bx.ContextSpace(b),
        {"a string": "day", "a class": bx.Box},
    ),
    *works(
        lambda s: s.box.contains(s.X), Box_contains_a_table=lambda s: s.box.contains(Table(s.rows))
    ),
]
