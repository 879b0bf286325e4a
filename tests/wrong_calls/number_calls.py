"""Single numbers and counts, wherever they go."""

import numpy as np
import torch
from botorch.models.transforms import Normalize

import botorch_ext as bx
from botorch_ext import algorithms, delays, estimates, widths
from botorch_ext.problems import RKHSFunction
from botorch_ext.strategies import BoundsStrategy
from botorch_ext.strategies.adaptive.pending import PendingPolicy
from botorch_ext.strategies.masters.regret_bounds import CandidateBound
from tests.wrong_calls.calls import LAMBDA, refused, refused_values, working_values, works
from tests.wrong_calls.kinds import FEW_NOT_NUMBERS, HALF, NOT_A_COUNT, NOT_A_NUMBER, ONE

NUMBERS = {"noise_variance": LAMBDA, "rkhs_bound": 1.5, "noise_std": 0.1, "delta": 0.1}


def ucb(s, method="gp_ucb", **changed):
    more = {"ec_gp_ucb": {"misspecification": 0.1}, "stable_opt": {"radius": 0.1}}.get(method, {})
    return getattr(algorithms, method)(s.box, s.kernel, **{**NUMBERS, **more, **changed})


def models(s):
    return bx.CandidateModels([s.kernel, s.kernel], LAMBDA)


def told(s, value):
    s.strategy.tell(3, value)
    return s.strategy


def corrected(s, value):
    s.strategy.correct(0, value)
    return s.strategy


# From the argument and where it goes to the call.
WHERE_NUMBERS_GO = {
    ("value", "correct"): corrected,
    ("value", "attach"): lambda s, v: s.strategy.attach(s.rows[0], v),
    ("noise_variance", "gp_ucb"): lambda s, v: ucb(s, noise_variance=v),
    ("rkhs_bound", "gp_ucb"): lambda s, v: ucb(s, rkhs_bound=v),
    ("noise_std", "gp_ucb"): lambda s, v: ucb(s, noise_std=v),
    ("delta", "gp_ucb"): lambda s, v: ucb(s, delta=v),
    ("width", "gp_ucb"): lambda s, v: ucb(s, width=v),
    ("misspecification", "ec_gp_ucb"): lambda s, v: ucb(s, "ec_gp_ucb", misspecification=v),
    ("radius", "stable_opt"): lambda s, v: ucb(s, "stable_opt", radius=v),
    ("minimum", "gp_ucb"): lambda s, v: ucb(s, pending="censor", minimum=v),
    ("noise_std", "he_gp_ucb"): lambda s, v: algorithms.he_gp_ucb(
        s.box, models(s), noise_std=v, width=2.0
    ),
    ("misspecification", "he_gp_ucb"): lambda s, v: algorithms.he_gp_ucb(
        s.box, models(s), noise_std=0.1, width=2.0, misspecification=v
    ),
    ("delta", "credible_ucb"): lambda s, v: algorithms.credible_ucb(
        s.box, models(s), width=2.0, delta=v
    ),
    ("kappa", "bpe_delay"): lambda s, v: algorithms.bpe_delay(
        s.box, s.kernel, noise_variance=LAMBDA, width=1.0, horizon=20, closing="arrival", kappa=v
    ),
    ("width", "OptimisticStrategy"): lambda s, v: bx.OptimisticStrategy(
        s.box, bx.KernelGP(s.kernel, LAMBDA), v
    ),
    ("noise_variance", "KernelGP"): lambda s, v: bx.KernelGP(s.kernel, v),
    ("noise_variance", "CandidateModels"): lambda s, v: bx.CandidateModels(s.kernel, v),
    ("noise_variance", "FinitePosterior"): lambda s, v: bx.FinitePosterior(
        s.kernel, s.grid.points, v
    ),
    ("std", "with_nugget"): lambda s, v: bx.CandidateModels(s.kernel, LAMBDA).with_nugget(v),
    ("value", "Constant"): lambda s, v: widths.Constant(v),
    ("rkhs_bound", "SelfNormalized"): lambda s, v: widths.SelfNormalized(v, 0.1, 0.1),
    ("noise_std", "SelfNormalized"): lambda s, v: widths.SelfNormalized(1.0, v, 0.1),
    ("delta", "ChowdhuryGopalan"): lambda s, v: widths.ChowdhuryGopalan(1.0, 0.1, v),
    ("rkhs_bound", "AnytimeFixedDesign"): lambda s, v: widths.AnytimeFixedDesign(v, 0.1, 0.1),
    ("a", "BayesContinuous"): lambda s, v: widths.BayesContinuous(2, v, 1.0, 1.0, 0.1),
    ("misspecification", "Enlarged"): lambda s, v: widths.Enlarged(2.0, v),
    ("width", "Enlarged"): lambda s, v: widths.Enlarged(v, 0.1),
    ("factor", "Scaled"): lambda s, v: widths.Scaled(2.0, v),
    ("mean", "Poisson"): lambda s, v: delays.Poisson(v),
    ("sigma", "LogNormal"): lambda s, v: delays.LogNormal(2.0, v),
    ("lower", "noise by likelihood"): lambda s, v: estimates.noise_variance_by_likelihood(
        s.kernel, s.X, s.Y, lower=v
    ),
    ("noise_variance", "information gain"): lambda s, v: bx.information_gain.max_information_gain(
        s.kernel, s.grid, 3, v
    ),
    ("c1", "CandidateBound"): lambda s, v: CandidateBound(1.0, 0.1, 2.0, c1=v),
    ("failure_value", "run"): lambda s, v: bx.run(
        s.strategy, lambda x: 0.0, 9, progress=False, failure_value=v
    ),
}
TWO_NUMBERS_WORK = ("noise_variance", "KernelGP"), ("noise_variance", "CandidateModels")
TWO_NUMBERS_WORK += (("noise_variance", "FinitePosterior"), ("radius", "stable_opt"))
COUNTS = {
    ("num_trials", "ask"): lambda s, v: s.strategy.ask(v),
    ("num_initial", "gp_ucb"): lambda s, v: ucb(s, num_initial=v),
    ("seed", "gp_ucb"): lambda s, v: ucb(s, seed=v),
    ("seed", "plan"): lambda s, v: bx.plan(s.box, s.gp, 2, seed=v),
    ("seed", "information gain"): lambda s, v: bx.information_gain.max_information_gain(
        s.kernel, s.box, 2, LAMBDA, seed=v
    ),
    ("q", "plan"): lambda s, v: bx.plan(s.box, s.gp, v),
    ("horizon", "bpe"): lambda s, v: algorithms.bpe(
        s.box, s.kernel, noise_variance=LAMBDA, width=1.0, horizon=v
    ),
    ("num_trials", "run"): lambda s, v: bx.run(s.strategy, lambda x: 0.0, v, progress=False),
    ("num_trials", "optimize"): lambda s, v: bx.optimize(lambda x: 0.0, s.box, v, progress=False),
    ("max_retries", "run"): lambda s, v: bx.run(
        s.strategy, lambda x: 0.0, 9, max_retries=v, progress=False
    ),
    ("timeout", "gp_ucb"): lambda s, v: ucb(s, pending="censor", minimum=-2.0, timeout=v),
    ("num_particles", "Particles"): lambda s, v: bx.Particles(v),
    ("every", "Fitted"): lambda s, v: bx.Fitted(every=v),
    ("num_points", "BayesFinite"): lambda s, v: widths.BayesFinite(v, 0.1),
    ("num_rounds", "FixedDesign"): lambda s, v: widths.FixedDesign(1.0, 0.1, 0.1, 10, v),
    ("dim", "BayesContinuous"): lambda s, v: widths.BayesContinuous(v, 1.0, 1.0, 1.0, 0.1),
}
IDS = {
    "a bool": True,
    "a float": 3.0,
    "a string": "3",
    "nothing": None,
    "a list": [3],
    "masked": np.ma.masked,
    "a numpy bool": np.True_,
    "a tensor of a bool": torch.tensor(True),
}

CALLS = [
    *refused_values("value", "tell", told, NOT_A_NUMBER),
    *working_values("tell", told, HALF, 0.5),
    *working_values("tell", told, ONE, 1.0),
    *working_values("correct", corrected, HALF, 0.5),
    *refused_values(
        "num_trials",
        "ask of too many",
        lambda s, v: s.strategy.ask(v),
        {"a large number": 100_001, "a number of many digits": 10**5000},
    ),
    *refused_values("id", "tell", lambda s, i: s.strategy.tell(i, 0.5), IDS),
    *refused_values("id", "abandon", lambda s, i: s.strategy.abandon(i), IDS),
    *works(
        lambda s: told(s, 0.5),
        tell_a_trial=lambda s: [
            s.strategy.tell(s.strategy.history.trials[3], 0.5),
            s.strategy,
        ][1],
        tell_a_numpy_id=lambda s: [s.strategy.tell(np.int64(3), 0.5), s.strategy][1],
        tell_a_tensor_id=lambda s: [s.strategy.tell(torch.tensor(3), 0.5), s.strategy][1],
    ),
    *(
        call
        for (argument, where), make in WHERE_NUMBERS_GO.items()
        for call in refused_values(
            argument,
            f"{argument} of {where}",
            make,
            {
                kind: value
                for kind, value in FEW_NOT_NUMBERS.items()
                if (argument, where) not in TWO_NUMBERS_WORK or kind != "two numbers"
            },
        )
    ),
    *(
        call
        for (argument, where), make in WHERE_NUMBERS_GO.items()
        if where in ("gp_ucb", "OptimisticStrategy", "Enlarged", "ec_gp_ucb", "SelfNormalized")
        and argument != "minimum"
        for call in refused_values(
            argument, f"{argument} of {where}", make, {"negative": -2.0, "infinite": float("inf")}
        )
    ),
    *(
        call
        for where in (
            ("noise_variance", "gp_ucb"),
            ("rkhs_bound", "gp_ucb"),
            ("delta", "gp_ucb"),
            ("width", "gp_ucb"),
            ("radius", "stable_opt"),
            ("noise_variance", "KernelGP"),
            ("rkhs_bound", "SelfNormalized"),
            ("value", "Constant"),
            ("factor", "Scaled"),
            ("misspecification", "Enlarged"),
        )
        for call in working_values(
            " of ".join(where),
            WHERE_NUMBERS_GO[where],
            {
                kind: HALF[kind]
                for kind in (
                    "numpy float",
                    "array of one",
                    "tensor without dimensions",
                    "a tensor with a gradient",
                )
            },
            0.5,
        )
        if where not in TWO_NUMBERS_WORK or "of one" not in call.name
    ),
    *(
        call
        for (argument, where), make in COUNTS.items()
        for call in refused_values(
            argument,
            f"{argument} of {where}",
            make,
            {
                kind: value
                for kind, value in NOT_A_COUNT.items()
                if kind in ("a float", "a string", "a bool", "a tensor of a bool", "masked", "NaN")
            },
        )
    ),
    *(
        call
        for (argument, where), make in COUNTS.items()
        if argument != "seed"
        for call in refused_values(argument, f"{argument} of {where}", make, {"negative": -1})
    ),
    *(
        call
        for (argument, where), make in COUNTS.items()
        for call in refused_values(argument, f"{argument} of {where}", make, {"huge": 10**400})
    ),
    *refused("num_initial", more_first_points_than_memory=lambda s: ucb(s, num_initial=10**12)),
    *refused(
        "delay",
        a_huge_delay=lambda s: algorithms.bpe_delay(
            s.grid, s.kernel, noise_variance=LAMBDA, width=2.0, horizon=20, delay=10**400
        ),
    ),
    *refused(
        "horizon",
        a_huge_horizon_in_rounds=lambda s: algorithms.bpe(
            s.grid, s.kernel, noise_variance=LAMBDA, width=2.0, horizon=10**400
        ),
        a_huge_horizon_in_cells=lambda s: algorithms.breadthwise_exploration(
            s.box, s.kernel, noise_variance=LAMBDA, width=2.0, horizon=10**400, rkhs_bound=1.0
        ),
    ),
    *refused(
        "seed",
        no_seed=lambda s: ucb(s, seed=None),
        no_seed_of_a_plan=lambda s: bx.plan(s.box, s.gp, 2, seed=None),
    ),
    *refused(
        "seed",
        simulate_with_a_negative_seed=lambda s: simulated(s, seed=-1),
        simulate_with_a_float_seed=lambda s: simulated(s, seed=0.5),
        simulate_without_a_seed=lambda s: simulated(s, seed=None),
    ),
    *refused(
        "noise_std",
        simulate_with_a_string=lambda s: simulated(s, noise_std="0.1"),
        simulate_with_a_bool=lambda s: simulated(s, noise_std=True),
    ),
    *refused(
        "delay",
        simulate_with_a_word=lambda s: simulated(s, delay="long"),
        simulate_with_a_bool=lambda s: simulated(s, delay=True),
    ),
    *works(lambda s: ucb(s, seed=-3), a_negative_seed=lambda s: ucb(s, seed=np.int64(-3))),
    *works(lambda s: ucb(s, seed=3), a_seed_of_torch=lambda s: ucb(s, seed=torch.tensor(3))),
    *works(
        lambda s: ucb(s, width=[2.0]), a_width_in_an_array=lambda s: ucb(s, width=np.array([2.0]))
    ),
    *works(
        lambda s: algorithms.credible_ucb(s.box, models(s), width=[2.0, 1.0]),
        widths_in_an_array=lambda s: algorithms.credible_ucb(
            s.box, models(s), width=np.array([2.0, 1.0])
        ),
        widths_in_a_tensor=lambda s: algorithms.credible_ucb(
            s.box, models(s), width=torch.tensor([2.0, 1.0])
        ),
    ),
    *refused(
        "width",
        three_widths_for_two=lambda s: algorithms.credible_ucb(
            s.box, models(s), width=[2.0, 1.0, 1.0]
        ),
        a_width_as_a_function=lambda s: ucb(s, width=lambda t, model: 2.0),
        a_class_of_widths=lambda s: ucb(s, width=widths.SelfNormalized),
        a_negative_width=lambda s: ucb(s, width=-2),
        a_bad_width_in_a_list=lambda s: algorithms.credible_ucb(
            s.box, models(s), width=[2.0, -1.0]
        ),
    ),
    *works(
        lambda s: ucb(s, "stable_opt", radius=[0.1, 0.2]),
        radii_in_an_array=lambda s: ucb(s, "stable_opt", radius=np.array([0.1, 0.2])),
    ),
    *refused(
        "radius",
        three_radii_for_two_columns=lambda s: ucb(s, "stable_opt", radius=[0.1, 0.2, 0.3]),
        a_negative_radius=lambda s: ucb(s, "stable_opt", radius=-0.1),
        a_bool_among_radii=lambda s: ucb(s, "stable_opt", radius=[0.1, True]),
    ),
    *refused("norm", a_norm_by_number=lambda s: ucb(s, "stable_opt", norm=2)),
    # --- pending policies
    *refused(
        "inflate",
        inflate_yes=lambda s: ucb(s, inflate="yes"),
        inflate_1=lambda s: ucb(s, inflate=1),
        inflate_None=lambda s: PendingPolicy(inflate=None),
        inflate_of_a_strategy=lambda s: BoundsStrategy(
            s.box, bx.KernelGP(s.kernel, LAMBDA), 2.0, inflate="no"
        ),
    ),
    *refused(
        "pending",
        pending_misspelt=lambda s: ucb(s, pending="halucinate"),
        pending_True=lambda s: ucb(s, pending=True),
        pending_list=lambda s: ucb(s, pending=["ignore"]),
        pending_array=lambda s: ucb(s, pending=np.array(["ignore", "censor"])),
    ),
    *refused(
        "timeout",
        timeout_without_censor=lambda s: ucb(s, timeout=3),
        timeout_in_seconds=lambda s: ucb(s, pending="censor", minimum=-1.0, timeout=0.5),
    ),
    *refused(
        "minimum",
        censor_without_a_minimum=lambda s: ucb(s, pending="censor"),
        a_minimum_without_censor=lambda s: ucb(s, minimum=-1.0),
    ),
    *refused(
        "printed", printed_yes=lambda s: widths.ChowdhuryGopalan(1.0, 0.1, 0.1, printed="yes")
    ),
    *refused(
        "failed",
        failed_1=lambda s: s.strategy.abandon(3, failed=1),
        failed_yes=lambda s: s.strategy.abandon(3, failed="yes"),
    ),
    *refused(
        "rkhs_bound",
        a_misspelt_bound=lambda s: algorithms.gp_ucb(
            s.box, s.kernel, noise_variance=LAMBDA, noise_std=0.1
        ),
    ),
    *refused(
        "noise_var", a_misspelt_name=lambda s: algorithms.gp_ucb(s.box, s.kernel, noise_var=LAMBDA)
    ),
    *refused(
        "kernel",
        an_argument_twice=lambda s: algorithms.gp_ucb(
            s.box, s.kernel, kernel=s.kernel, noise_variance=LAMBDA
        ),
    ),
    *refused(
        "input_transform",
        a_transform_for_a_mean=lambda s: bx.KernelGP(s.kernel, LAMBDA, None, Normalize),
    ),
]


def simulated(s, **more):
    problem = RKHSFunction(s.kernel, s.X, s.Y, s.box, noise_std=0.1)
    fresh = bx.OptimisticStrategy(s.box, bx.KernelGP(s.kernel, LAMBDA), 2.0)
    return bx.simulate(fresh, problem, 2, **more)
