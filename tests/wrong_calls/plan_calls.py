"""What is computed from data and models: estimates, plans and regions."""

import torch

import botorch_ext as bx
from botorch_ext import algorithms, analysis, estimates
from botorch_ext.delays import Fixed, SubExponential
from botorch_ext.problems import RKHSFunction, global_maximum
from botorch_ext.regions import Region
from botorch_ext.rounds import Doubling
from botorch_ext.widths import ChowdhuryGopalan
from tests.wrong_calls.calls import LAMBDA, PAIRS, ROWS, kernel, refused, refused_values, works
from tests.wrong_calls.kinds import no_points
from tests.wrong_calls.model_calls import POINTS, SOME_POINTS, WRONG_VALUES


def repeated(s, X, Y):
    return estimates.noise_std_from_repeats(X, Y)


CALLS = [
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
    # --- problems and what theory promises
    *refused(
        "noise_std",
        a_problem_with_noise_in_words=lambda s: RKHSFunction(s.kernel, s.X, s.Y, s.box, "0.1"),
        a_problem_with_a_bool_for_noise=lambda s: RKHSFunction(s.kernel, s.X, s.Y, s.box, True),
    ),
    *refused(
        "norm",
        a_norm_in_words=lambda s: RKHSFunction.random(s.box, s.kernel, norm="1"),
        a_negative_norm=lambda s: RKHSFunction.random(s.box, s.kernel, norm=-1),
    ),
    *works(
        lambda s: RKHSFunction.random(s.box, s.kernel, norm=1.0)(s.X),
        a_random_function_on_bounds=lambda s: RKHSFunction.random(ROWS, s.kernel, norm=1)(s.rows),
    ),
    *refused(
        "information_gain",
        a_gain_in_words=lambda s: analysis.bpe_bound(100, "3", 1.0, 0.1, 0.1, 10),
        a_gain_that_is_a_bool=lambda s: analysis.ec_gp_ucb_bound(100, True, 1.0, 0.1, 0.1),
    ),
    *refused("noise_variance", a_ridge_in_words=lambda s: analysis.cgp_ucb_bound(9, 3.0, 1.0, "x")),
    *refused("box", a_maximum_on_a_word=lambda s: global_maximum(lambda X: X[:, 0], "box", seed=0)),
    *refused("function", a_maximum_of_a_word=lambda s: global_maximum("f", s.box, seed=0)),
    *works(
        lambda s: global_maximum(lambda X: X[:, 0], s.box, seed=0),
        a_maximum_on_bounds=lambda s: global_maximum(lambda X: X[:, 0], PAIRS, seed=0),
    ),
    *refused(
        "seed",
        a_huge_seed=lambda s: s.box.sample(3, seed=10**30),
        a_huge_seed_of_a_set=lambda s: s.grid.sample(3, seed=10**30),
        a_huge_seed_of_a_plan=lambda s: bx.plan(s.box, s.gp, 2, seed=10**30),
    ),
    *refused("first", a_bool_for_the_first_round=lambda s: Doubling(True)),
    # --- models, one of several and before data
    *works(
        lambda s: [s.gp.prior(s.X), s.gp.mean_at(s.X), s.gp.largest_variance(s.X)],
        what_models_say_of_lists=lambda s: [
            s.gp.prior(s.rows),
            s.gp.mean_at(s.rows),
            s.gp.largest_variance(s.rows),
        ],
    ),
    *works(
        lambda s: [s.strategy.means_at(s.X), s.models.means(1, s.X), s.strategy.bands(s.X)],
        what_strategies_say_of_lists=lambda s: [
            s.strategy.means_at(s.rows),
            s.models.means(1, s.rows),
            s.strategy.bands(s.rows),
        ],
    ),
    *works(
        lambda s: algorithms.integrated_ei(s.box, initial=(s.X, s.Y)).means_at(s.X),
        what_integrated_ei_says_of_lists=lambda s: algorithms.integrated_ei(
            s.box, initial=(s.X, s.Y)
        ).means_at(s.rows),
    ),
    *refused(
        "position",
        a_model_by_word=lambda s: s.models.single("a"),
        a_model_by_float=lambda s: s.models.drop(0.0),
        a_model_by_bool=lambda s: s.models.drop(True),
    ),
    *refused(
        "positions",
        models_by_word=lambda s: s.models.select("a"),
        models_by_float=lambda s: s.models.select([0.5]),
    ),
    *refused("capacity", a_word=lambda s: bx.FinitePosterior(s.kernel, s.X, LAMBDA, capacity="x")),
    *refused(
        "tasks",
        one_task=lambda s: bx.ContextSpace(dim=2, tasks=3),
        a_task_alone=lambda s: bx.ContextSpace(dim=2, tasks=((0,),)),
    ),
    *refused(
        "models",
        a_gp_ucb_with_a_kernel=lambda s: algorithms.a_gp_ucb(s.box, s.kernel, width=2.0),
        lb_gp_ucb_with_a_kernel=lambda s: algorithms.lb_gp_ucb(
            s.box, s.kernel, noise_std=0.1, width=2.0
        ),
    ),
    *refused(
        "kernel",
        Fitted_as_a_class=lambda s: algorithms.gp_ucb(s.box, bx.Fitted, width=2.0),
        a_class_and_no_noise_variance=lambda s: algorithms.gp_ucb(s.box, "rbf", width=2.0),
    ),
    *refused("printed", printed_1=lambda s: SubExponential(1.0, 1.0, 1.0, printed=1)),
    *refused("steps", half_a_step=lambda s: Fixed(0.5)),
    *refused(
        "max_information_gain",
        a_gain_that_is_no_function=lambda s: ChowdhuryGopalan(
            1.0, 0.1, 0.1, max_information_gain=3.0
        ),
    ),
    *refused(
        "gram",
        information_gain_of_a_kernel=lambda s: analysis.information_gain_bound(
            s.kernel, 10, LAMBDA
        ),
    ),
    *refused(
        "model",
        restricted_by_a_word=lambda s: Region(s.box).restricted("gp", 1.0, 0.0, 0.0, s.rows),
    ),
    *refused("num_points", a_population_of_a_word=lambda s: Region(s.box).population("x", 0)),
    *refused(
        "growth",
        growth_by_number=lambda s: algorithms.a_gp_ucb(
            s.box,
            bx.CandidateModels.lengthscales(s.kernel, [0.5, 1.0], LAMBDA),
            growth=2.0,
            width=2.0,
        ),
    ),
]
