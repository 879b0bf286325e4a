"""Text from strangers: nothing in it is run, nothing large is made, and what no constructor would
make is refused."""

import json
import time

import pytest
import torch
from gpytorch import kernels

import botorch_ext as bx
from botorch_ext.integrations.saved_arguments import as_text, from_text
from botorch_ext.kernels import GroupAdditiveKernel

RBF = kernels.RBFKernel


def tree(kind, **state):
    return {"class": kind, "state": state}


NUMBER = tree("Tensor", dtype="float64", shape=[], values=[1.0])


def tree_of(value):
    return json.loads(as_text({"k": value}))["k"]


POINT = tree_of(RBF())["state"]
SCALED = tree_of(kernels.ScaleKernel(RBF()))
MODELS = tree_of(bx.CandidateModels([RBF(), kernels.MaternKernel()], 0.01))["state"]
GROWING = tree_of(bx.CandidateModels.growing(RBF(), 0.5, 0.01, dim=2))["state"]
FAMILY = GROWING["family"]["state"]
BATCH = tree_of(RBF(batch_shape=torch.Size([2])).double())
GROUPS = tree_of(GroupAdditiveKernel(RBF(), [[0], [1]], dim=2).double())["state"]
NOTHING = tree("dict", pairs=[])


def tensor(*numbers, shape=None, dtype="float64", values=()):
    values = (*numbers, *values)
    shape = [len(values)] if shape is None else shape
    return tree("Tensor", dtype=dtype, shape=shape, values=list(values))


def tuples(*parts):
    return tree("tuple", parts=list(parts))


def nested(levels):
    made = SCALED
    for _ in range(levels):
        made = tree("ScaleKernel", **SCALED["state"] | {"base_kernel": made})
    return made


def bounded(**changes):
    """A kernel with another constraint."""
    bounds = {"lower_bound": tensor(0.1, shape=[]), "upper_bound": tensor(2.0, shape=[])}
    kind = changes.pop("kind", "Interval")
    own = tree(kind, **bounds | {"initial_value": None, "transform": "sigmoid"} | changes)
    constraints = tree("dict", pairs=[["raw_lengthscale_constraint", own]])
    return tree("RBFKernel", **POINT | {"constraints": constraints})


def raw(**changes):
    values = tree("dict", pairs=[["raw_lengthscale", tensor(**changes)]])
    return tree("RBFKernel", **POINT | {"values": values})


def models(**changes):
    return tree("CandidateModels", **MODELS | changes)


def growing(**changes):
    return tree(
        "CandidateModels", **GROWING | {"family": tree("GrowingFamily", **FAMILY | changes)}
    )


HUGE = tree("dict", pairs=[["masks", tensor(*([0] * 3000))]])
DEEP = 5_000 * "[" + 5_000 * "]"

ATTACKS = {
    "a dotted path": tree("os.system", command="false"),
    "a function of torch": tree("function", name="torch.nn.modules.module.register_module_hook"),
    "a wrapper that takes attributes": tree(
        "torch.nn.cpp.OrderedDictWrapper", cpp_module=tree("RBFKernel", **POINT), attr="_method"
    ),
    "a dtype that is none": tree("dtype", name="load"),
    "a class of the interpreter": tree("type", name="x"),
    "a part that is not its own": tree("RBFKernel", **POINT, __class__="X"),
    "a method as a number": tree(
        "RBFKernel", **POINT | {"values": tree("dict", pairs=[["forward", NUMBER]])}
    ),
    "a constraint on nothing": tree(
        "RBFKernel", **POINT | {"constraints": tree("dict", pairs=[["x_constraint", NUMBER]])}
    ),
    "too few parts": tree("SelfNormalized", rkhs_bound=1.0),
    "another type": tree("SelfNormalized", rkhs_bound="1", noise_std=0.1, delta=0.1),
    "an impossible number": tree("SelfNormalized", rkhs_bound=-1.0, noise_std=0.1, delta=0.1),
    "a truth value as a number": tree("Constant", value=True),
    "numbers as parts": tree("tuple", parts=3),
    "keys that are lists": tree("dict", pairs=[[[1], 2]]),
    "pairs that are none": tree("dict", pairs=[[1, 2, 3]]),
    "more numbers than there are": tree("Tensor", dtype="float64", shape=[10**12], values=[1.0]),
    "rows without numbers": tree("Tensor", dtype="float64", shape=[10**12, 0], values=[]),
    "negative shapes": tree("Tensor", dtype="float64", shape=[-1, -1], values=[1.0]),
    "numbers of another dtype": tree("Tensor", dtype="int64", shape=[1], values=[0.5]),
    "a batch without numbers": tree(
        "RBFKernel", **POINT | {"batch_shape": tree("tuple", parts=[10**12])}
    ),
    "columns without numbers": tree("RBFKernel", **POINT | {"ard_num_dims": 10**12}),
    "no class": {"state": {}},
    "a class that is a list": {"class": ["Box"], "state": {}},
    "no float": {"not finite": "1; import os"},
    "17 kernels in each other": nested(17),
    "more groups than numbers": tree(
        "GroupAdditiveKernel",
        base_kernel=tree("RBFKernel", **POINT),
        groups=tuples(tuples(0)),
        dim=3000,
        values=HUGE,
        constraints=NOTHING,
    ),
    "groups of other columns": tree(
        "GroupAdditiveKernel",
        **GROUPS
        | {"values": tree("dict", pairs=[["masks", tensor(1.0, 1.0, 0.0, 0.0, shape=[2, 2])]])},
    ),
    "a batch of none": tree(
        "RBFKernel", **POINT | {"batch_shape": tuples(0), "ard_num_dims": 10**12}
    ),
    "no columns": tree("RBFKernel", **POINT | {"ard_num_dims": 0}),
    "a batch of a mean": tree(
        "ZeroMean", batch_shape=tuples(10**9), values=NOTHING, constraints=NOTHING
    ),
    "2000 dimensions": tree("Constant", value=tensor(1.0, shape=[1] * 2000)),
    "a number of 400 digits": tree("Constant", value=10**400),
    "many particles": tree(
        "Particles", **tree_of(bx.Particles())["state"] | {"num_particles": 10**9}
    ),
    "many dimensions": tree("ContextSpace", domain=None, dim=10**30, tasks=tuples()),
    "negative columns": tree("RBFKernel", **POINT | {"active_dims": tuples(-5)}),
    "a lengthscale that is none": raw(values=({"not finite": "nan"},)),
    "a whole number as a parameter": raw(values=(1,), dtype="int64"),
    "bounds the wrong way round": bounded(lower_bound=tensor(5.0, shape=[])),
    "bounds without end": bounded(upper_bound=tensor({"not finite": "inf"}, shape=[])),
    "bounds of another kind": bounded(kind="Positive", lower_bound=tensor(-1.0, shape=[])),
    "bounds of whole numbers": bounded(lower_bound=tensor(0, shape=[], dtype="int64")),
    "bounds of many": bounded(lower_bound=tensor(*([0.1] * 9))),
    "a first value of many": bounded(initial_value=tensor(0.5, 0.5)),
    "a first value that is none": bounded(initial_value=tensor(True, shape=[], dtype="bool")),
    "no models": models(**{key: [] for key in MODELS}),
    "models with one name": models(names=["a", "a"]),
    "a name too many": models(names=["a", "b", "c"]),
    "a twin of nobody": models(twin_of=[None, "x"]),
    "a twin of itself": models(twin_of=[None, MODELS["names"][1]]),
    "twins of each other": models(twin_of=MODELS["names"][::-1]),
    "noise of many": models(noise_variances=[tensor(1.0, 1.0)] * 2),
    "negative noise": models(noise_variances=[tensor(-1.0, shape=[])] * 2),
    "noise of whole numbers": models(noise_variances=[tensor(1, shape=[], dtype="int64")] * 2),
    "two dtypes": models(noise_variances=[tensor(1.0, shape=[], dtype="float32")] * 2),
    "a batch as a kernel": models(kernels=[BATCH] * 2),
    "a kernel as a mean": models(means=[tree("RBFKernel", **POINT)]),
    "a width as a mean": models(means=[tree("Constant", value=1.0)]),
    "a mean that there is not": models(mean_of=[0, 1]),
    "a lengthscale below zero": models(lengthscales=[-1.0, 1.0]),
    "a family of many dimensions": growing(dim=10**6),
    "a family that grows by a kernel": growing(growth=tree("RBFKernel", **POINT)),
    "a family of a batch": growing(kernel=BATCH),
    "a distribution that is a function": tree(
        "rv_discrete_frozen", name="rv_discrete", args=tuples(), kwds=NOTHING
    ),
    "60 levels": json.loads(60 * "[" + "1" + 60 * "]"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_any_other_tree_is_refused(attack):
    with pytest.raises(ValueError, match="saved arguments cannot be read"):
        from_text(json.dumps({"kernel": ATTACKS[attack]}))


@pytest.mark.parametrize(
    "name",
    ["os.system", "type", "RFFKernel", "torch.nn.Linear", "botorch_ext.Box", "no_such_module.run"],
)
def test_a_class_outside_the_table_is_refused(name):
    with pytest.raises(ValueError, match="kernel must be of a class that is allowed"):
        from_text(json.dumps({"kernel": tree(name)}))


def test_a_kernel_is_not_made_larger_than_its_values():
    large = tree("RBFKernel", **POINT | {"ard_num_dims": 10**7})
    with pytest.raises(ValueError, match="values must be as many as its arguments say, got 1"):
        from_text(json.dumps({"kernel": large}))


def test_what_the_attacks_change_is_read_as_it_is():
    for value in (models(), growing(), bounded(), nested(5), raw(values=(1.0,), shape=[1, 1])):
        from_text(json.dumps({"kernel": value}))


def test_eight_kernels_in_each_other_are_read_fast():
    started = time.process_time()
    from_text(json.dumps({"kernel": nested(6)}))
    assert time.process_time() - started < 1.0


@pytest.mark.parametrize("name", ["num_initial", "horizon"])
def test_numbers_of_many_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"{name} must be at most"):
        from_text(json.dumps({name: 10**8}))


@pytest.mark.parametrize(
    "text", ["", "null", "[1]", '{"kernel": ', DEEP, '{"k": NaN}', b"\x80\x04."]
)
def test_any_other_text_is_refused(text):
    with pytest.raises(ValueError, match="saved arguments cannot be read"):
        from_text(text)


def test_text_that_is_cut_short_is_refused():
    text = as_text({"kernel": kernels.ScaleKernel(kernels.MaternKernel(1.5, ard_num_dims=2))})
    for length in range(0, len(text), 97):
        with pytest.raises(ValueError, match="saved arguments cannot be read"):
            from_text(text[:length])
