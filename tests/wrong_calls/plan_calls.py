"""What is computed from data and models: estimates, plans and regions."""

import torch

import botorch_ext as bx
from botorch_ext import estimates
from botorch_ext.problems import RKHSFunction
from botorch_ext.regions import Region
from tests.wrong_calls.calls import kernel, refused, refused_values, works
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
]
