"""Kernels, prior means and transforms, wherever they go."""

import math

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
from tests.wrong_calls.calls import LAMBDA, refused, refused_values, working_values, works
from tests.wrong_calls.kinds import NOT_A_NUMBER
from tests.wrong_calls.model_calls import filled, fresh, half, moments

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
    "cgp_ucb": lambda s, k: algorithms.cgp_ucb(s.box, k, context_domain=1, **WIDTH),
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
]
