"""Kernels, prior means, transforms and data of models, and what is computed from them."""

import math
from typing import Any

import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms import Normalize, Standardize
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.means import ConstantMean
from sklearn.gaussian_process.kernels import RBF

import botorch_ext as bx
from botorch_ext import algorithms, estimates
from botorch_ext.kernels import ActionContextKernel, AdditiveKernel, TaskKernel
from botorch_ext.problems import RKHSFunction
from botorch_ext.regions import Region
from tests.wrong_calls.calls import LAMBDA, kernel, refused, refused_values, working_values, works
from tests.wrong_calls.kinds import NOT_A_NUMBER, as_people_write, no_points

OMITTED: Any = object()
WIDTH = {"noise_variance": LAMBDA, "width": 2.0}
NO_KERNEL = {
    "a string": "rbf",
    "the class": RBFKernel,
    "the class of another": MaternKernel,
    "of scikit-learn": RBF(),
    "nothing": None,
    "a number": 0.5,
    "a matrix": np.eye(2),
    "a function": lambda x, y: 0.0,
    "a list": [RBFKernel()],
    "a mean": ConstantMean(),
    "a model": SingleTaskGP(torch.rand(3, 2).double(), torch.rand(3, 1).double()),
}
FEW_KERNELS = {
    kind: NO_KERNEL[kind] for kind in ("a string", "the class", "of scikit-learn", "nothing")
}
WHERE_KERNELS_GO = {
    "gp_ucb": lambda s, k: algorithms.gp_ucb(s.box, k, **WIDTH),
    "stable_opt": lambda s, k: algorithms.stable_opt(s.box, k, radius=0.1, **WIDTH),
    "bpe": lambda s, k: algorithms.bpe(s.box, k, horizon=20, **WIDTH),
    "regret_balancing": lambda s, k: algorithms.regret_balancing(
        s.box, k, rkhs_bound=1.0, noise_std=0.1, horizon=20, **WIDTH
    ),
    "certified_bucb": lambda s, k: algorithms.certified_bucb(s.box, k, horizon=20, **WIDTH),
    "insured_ucb": lambda s, k: algorithms.insured_ucb(
        s.box, k, rkhs_bound=1.0, noise_std=0.1, **WIDTH
    ),
    "breadthwise_exploration": lambda s, k: algorithms.breadthwise_exploration(
        s.box, k, horizon=20, rkhs_bound=1.0, **WIDTH
    ),
    "FinitePosterior": lambda s, k: bx.FinitePosterior(k, s.grid.points, LAMBDA),
    "lengthscales": lambda s, k: bx.CandidateModels.lengthscales(k, [0.5, 1.0], LAMBDA),
    "noise by likelihood": lambda s, k: estimates.noise_variance_by_likelihood(k, s.X, s.Y),
    "information gain": lambda s, k: bx.information_gain.max_information_gain(k, s.box, 2, LAMBDA),
    "RKHSFunction": lambda s, k: RKHSFunction(k, s.X, s.Y, s.box),
}


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


def transformed(s, **transforms):
    return lambda: fresh(s, **transforms)


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


def repeated(s, X, Y):
    return estimates.noise_std_from_repeats(X, Y)


CALLS = [
    # --- kernels
    *refused_values("kernel", "KernelGP", lambda s, k: bx.KernelGP(k, LAMBDA), NO_KERNEL),
    *(
        call
        for where, make in WHERE_KERNELS_GO.items()
        for call in refused_values("kernel", where, make, FEW_KERNELS)
    ),
    *refused_values(
        "kernels",
        "CandidateModels",
        lambda s, k: bx.CandidateModels(k, LAMBDA),
        {k: v for k, v in NO_KERNEL.items() if k != "a list"},
    ),
    *refused_values(
        "kernels",
        "CandidateModels, in a list",
        lambda s, k: bx.CandidateModels([s.kernel, k], LAMBDA),
        FEW_KERNELS,
    ),
    *refused(
        "action_kernel",
        ActionContextKernel_of_a_word=lambda s: ActionContextKernel("rbf", RBFKernel(), 2),
        ActionContextKernel_of_a_class=lambda s: ActionContextKernel(RBFKernel, RBFKernel(), 2),
    ),
    *refused(
        "context_kernel",
        ActionContextKernel_of_a_class_of_contexts=lambda s: ActionContextKernel(
            RBFKernel(), RBFKernel, 2
        ),
    ),
    *refused(
        "base_kernel",
        AdditiveKernel_of_a_word=lambda s: AdditiveKernel("rbf", [[0], [1]], 2),
        AdditiveKernel_of_a_class=lambda s: AdditiveKernel(RBFKernel, [[0], [1]], 2),
    ),
    *refused(
        "covariance",
        TaskKernel_of_a_word=lambda s: TaskKernel("tasks"),
        TaskKernel_of_masked=lambda s: TaskKernel(np.ma.array(np.eye(2))),
    ),
    *works(
        lambda s: TaskKernel(torch.eye(2).double())(s.X[:0, :1]).shape,
        TaskKernel_of_lists=lambda s: TaskKernel([[1, 0], [0, 1]])(s.X[:0, :1]).shape,
    ),
    *refused(
        "model",
        gp_of_botorch=lambda s: bx.OptimisticStrategy(s.box, NO_KERNEL["a model"], 2.0),
        a_kernel_for_a_model=lambda s: bx.OptimisticStrategy(s.box, s.kernel, 2.0),
        a_class_for_a_model=lambda s: bx.OptimisticStrategy(s.box, bx.KernelGP, 2.0),
        plan_with_a_kernel=lambda s: bx.plan(s.box, s.kernel, 2),
        plan_with_nothing=lambda s: bx.plan(s.box, None, 2),
        estimate_of_a_kernel=lambda s: estimates.rkhs_norm_lower_estimate(s.kernel),
        phased_with_a_kernel=lambda s: bx.PhasedElimination(
            s.box, s.kernel, 2.0, bx.rounds.Doubling(), 20
        ),
    ),
    *refused(
        "models",
        he_gp_ucb_with_a_kernel=lambda s: algorithms.he_gp_ucb(
            s.box, s.kernel, noise_std=0.1, width=2.0
        ),
        he_gp_ucb_with_a_list=lambda s: algorithms.he_gp_ucb(
            s.box, [s.kernel], noise_std=0.1, width=2.0
        ),
        mle_ucb_with_one_gp=lambda s: algorithms.mle_ucb(s.box, "all", width=2.0),
        credible_with_a_class=lambda s: algorithms.credible_ucb(s.box, bx.Particles, width=2.0),
        elimination_with_a_string=lambda s: bx.HyperparameterElimination(
            s.box, "matern", 2.0, noise_std=0.1
        ),
    ),
    *refused(
        "particles",
        integrated_ei_with_a_number=lambda s: algorithms.integrated_ei(s.box, 32),
        integrated_ei_with_the_class=lambda s: algorithms.integrated_ei(s.box, bx.Particles),
    ),
    *refused(
        "prior",
        Particles_with_a_word=lambda s: bx.Particles(prior="wide"),
        Fitted_with_a_word=lambda s: bx.Fitted(prior="wide"),
    ),
    # --- prior means
    *working_values(
        "mean of KernelGP",
        lambda s, m: filled(s, mean=m),
        {
            "a number": 0.5,
            "a numpy number": np.float64(0.5),
            "a tensor": torch.tensor(0.5).double(),
            "an array of one": np.array([0.5]),
        },
        half,
    ),
    *works(
        lambda s: filled(s, mean=lambda X: X.new_zeros(X.shape[:-1])),
        mean_of_zero=lambda s: filled(s, mean=0),
        no_mean=lambda s: filled(s, mean=None),
    ),
    *works(
        lambda s: algorithms.gp_ucb(s.box, s.kernel, mean=half, initial=(s.X, s.Y), **WIDTH),
        mean_of_gp_ucb_as_a_number=lambda s: algorithms.gp_ucb(
            s.box, s.kernel, mean=0.5, initial=(s.X, s.Y), **WIDTH
        ),
    ),
    *works(
        lambda s: algorithms.gp_ucb(s.grid, s.kernel, mean=half, **WIDTH),
        mean_on_a_set_as_a_number=lambda s: algorithms.gp_ucb(s.grid, s.kernel, mean=0.5, **WIDTH),
    ),
    *works(
        lambda s: bx.FinitePosterior(s.kernel, s.grid.points, LAMBDA, mean=half),
        mean_of_FinitePosterior_as_a_number=lambda s: bx.FinitePosterior(
            s.kernel, s.grid.points, LAMBDA, mean=0.5
        ),
    ),
    *works(
        lambda s: bx.CandidateModels.prior_means(s.kernel, [None, half], LAMBDA, names=["a", "b"]),
        means_of_CandidateModels_as_numbers=lambda s: bx.CandidateModels(
            s.kernel, LAMBDA, means=[0.0, 0.5], names=["a", "b"]
        ),
        prior_means_of_an_array=lambda s: bx.CandidateModels.prior_means(
            s.kernel, np.array([0.0, 0.5]), LAMBDA, names=["a", "b"]
        ),
    ),
    *works(
        lambda s: bx.CandidateModels(s.kernel, LAMBDA, means=half, names=["a"]),
        one_mean_of_CandidateModels_as_a_number=lambda s: bx.CandidateModels(
            s.kernel, LAMBDA, means=0.5, names=["a"]
        ),
    ),
    *refused_values(
        "mean",
        "KernelGP",
        lambda s, m: fresh(s, mean=m),
        {
            **{
                k: v
                for k, v in NOT_A_NUMBER.items()
                if k not in ("nothing", "a function", "a class")
            },
            "the class": ConstantMean,
            "a kernel": RBFKernel(),
        },
    ),
    *refused_values(
        "mean",
        "gp_ucb",
        lambda s, m: algorithms.gp_ucb(s.box, s.kernel, mean=m, **WIDTH),
        {
            "a string": "zero",
            "NaN": math.nan,
            "the class": ConstantMean,
            "a bool": True,
            "a function of nothing": lambda: 0.5,
            "a function to a number": lambda X: 0.5,
            "a function to the wrong shape": lambda X: X,
            "a function to NaN": lambda X: half(X) * math.nan,
        },
    ),
    *refused_values(
        "mean",
        "FinitePosterior",
        lambda s, m: bx.FinitePosterior(s.kernel, s.grid.points, LAMBDA, mean=m),
        {
            "a string": "zero",
            "NaN": math.nan,
            "the class": ConstantMean,
            "a function to a number": lambda X: 0.5,
            "a function to the wrong shape": lambda X: X,
            "a function to NaN": lambda X: half(X) * math.nan,
        },
    ),
    *refused(
        "means",
        means_that_are_strings=lambda s: bx.CandidateModels(s.kernel, LAMBDA, means=["a", "b"]),
        a_word_for_means=lambda s: bx.CandidateModels(s.kernel, LAMBDA, means="zero"),
        NaN_among_means=lambda s: bx.CandidateModels(s.kernel, LAMBDA, means=[0.0, math.nan]),
        NaN_among_prior_means=lambda s: bx.CandidateModels.prior_means(
            s.kernel, [0.0, math.nan], LAMBDA
        ),
    ),
    *refused_values(
        "mean",
        "KernelGP, first called by add",
        lambda s, m: filled(s, mean=m),
        {
            "to a number": lambda X: 0.5,
            "to the wrong shape": lambda X: X,
            "to another number of points": lambda X: half(X)[..., :1],
            "to NaN": lambda X: half(X) * math.nan,
            "of two arguments": lambda X, Y: X,
            "to an array": lambda X: np.zeros(len(X)),
        },
    ),
    *refused_values(
        "mean",
        "KernelGP, first called by posterior",
        lambda s, m: moments(fresh(s, mean=m).posterior(s.X)),
        {
            "to a number": lambda X: 0.5,
            "to the wrong shape": lambda X: X,
            "of nothing": lambda: 0.5,
        },
    ),
    # --- transforms
    *refused_values(
        "input_transform",
        "KernelGP",
        lambda s, t: fresh(s, input_transform=t),
        {
            "a string": "normalize",
            "the class": Normalize,
            "a function": lambda X: X,
            "a number": 2,
            "an outcome transform": Standardize(1),
            "True": True,
        },
    ),
    *refused_values(
        "outcome_transform",
        "KernelGP",
        lambda s, t: fresh(s, outcome_transform=t),
        {
            "a string": "standardize",
            "the class": Standardize,
            "a function": lambda Y: Y,
            "a number": 1,
            "an input transform": Normalize(2),
            "True": True,
        },
    ),
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
    # --- estimates
    *works(
        lambda s: repeated(s, torch.cat([s.X, s.X]), torch.cat([s.Y, s.Y + 0.1])),
        repeats_in_lists=lambda s: repeated(s, s.rows * 2, [*s.values, *(s.Y + 0.1).tolist()]),
        repeats_in_arrays=lambda s: repeated(
            s, torch.cat([s.X, s.X]).numpy(), torch.cat([s.Y, s.Y + 0.1]).numpy()
        ),
    ),
    *works(
        lambda s: estimates.noise_variance_by_likelihood(s.kernel, s.X, s.Y),
        likelihood_of_lists=lambda s: estimates.noise_variance_by_likelihood(
            s.kernel, s.rows, s.values
        ),
        likelihood_of_arrays=lambda s: estimates.noise_variance_by_likelihood(
            s.kernel, s.X.numpy(), s.Y.numpy()
        ),
    ),
    *refused_values(
        "X",
        "noise_std_from_repeats",
        lambda s, X: repeated(s, X, s.Y),
        {
            k: v
            for k, v in no_points(POINTS).items()
            if k
            in ("a string", "bools", "a masked array", "ragged", "nothing", "NaN", "one number")
        },
    ),
    *refused_values("Y", "noise_std_from_repeats", lambda s, Y: repeated(s, s.X, Y), WRONG_VALUES),
    # --- regions and plans
    *works(
        lambda s: bx.plan(s.box, s.gp, 2, X_pending=s.X[:1]).X,
        plan_with_pending_lists=lambda s: bx.plan(s.box, s.gp, 2, X_pending=s.rows[:1]).X,
        plan_with_a_pending_array=lambda s: bx.plan(s.box, s.gp, 2, X_pending=s.X[:1].numpy()).X,
    ),
    *works(
        lambda s: bx.plan(s.box, s.gp, 2, population=s.X).X,
        plan_from_lists=lambda s: bx.plan(s.box, s.gp, 2, population=s.rows).X,
    ),
    *refused_values(
        "X_pending",
        "plan",
        lambda s, X: bx.plan(s.box, s.gp, 2, X_pending=X),
        {
            k: SOME_POINTS[k]
            for k in ("a string", "bools", "a masked array", "float32", "one column more")
        },
    ),
    *refused_values(
        "population",
        "plan",
        lambda s, X: bx.plan(s.box, s.gp, 2, population=X),
        {
            k: SOME_POINTS[k]
            for k in ("a string", "bools", "a masked array", "float32", "one column more")
        },
    ),
    *refused(
        "population", plan_from_no_point=lambda s: bx.plan(s.box, s.gp, 2, population=s.X[:0])
    ),
    *refused(
        "q",
        plan_of_no_point=lambda s: bx.plan(s.box, s.gp, 0),
        plan_of_a_fraction=lambda s: bx.plan(s.grid, s.gp, 1.5),
    ),
    *works(
        lambda s: Region(s.box, members=s.X).contains(s.X),
        Region_with_lists=lambda s: Region(s.box, members=s.rows).contains(s.rows),
        Region_with_arrays=lambda s: Region(s.box, members=s.X.numpy()).contains(s.X.numpy()),
    ),
    *refused_values(
        "members",
        "Region",
        lambda s, X: Region(s.box, members=X),
        {k: SOME_POINTS[k] for k in ("a string", "bools", "float32", "one column more")},
    ),
    *refused_values(
        "X",
        "Region.contains",
        lambda s, X: Region(s.box).contains(X),
        {k: SOME_POINTS[k] for k in ("a string", "bools", "float32", "one column more")},
    ),
    *refused(
        "constraints",
        Region_with_a_number_for_constraints=lambda s: Region(s.box, 3),
        Region_with_a_function=lambda s: Region(s.box, (lambda x: x,)),
    ),
    *works(
        lambda s: RKHSFunction(kernel(), s.X, s.Y, s.box)(s.X),
        RKHSFunction_of_lists=lambda s: RKHSFunction(kernel(), s.rows, s.values, s.box)(s.X),
    ),
]
