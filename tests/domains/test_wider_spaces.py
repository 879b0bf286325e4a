"""Wider spaces: their points are the same points."""

import pytest

import botorch_ext as bx
from botorch_ext.parameters import Ordered

# Its steps have decimals that are too long to be counted exactly.
THIRDS = bx.Real(0, 2, step=1 / 3)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (bx.Real(0.5, 8), bx.Real(0.1, 9.5)),
        (bx.Real(0.5, 8, log=True), bx.Real(0.01, 8, log=True)),
        (bx.Real(0, 1, step=0.3), bx.Real(-0.6, 1.2, step=0.3)),
        (bx.Real(0.25, 1, step=0.5), bx.Real(-0.25, 1, step=0.5)),
        (bx.Real(0.05, 3, digits=1), bx.Real(0, 4, digits=1)),
        (THIRDS, bx.Real(0, 5, step=1 / 3)),
        (bx.Integer(0, 10, step=5), bx.Integer(-5, 11, step=5)),
        (bx.Choice([1, True, "1"]), bx.Choice([1, True, "1", None])),
        (
            bx.Choice({"a": [1.0, 2.0], "b": [0.5, 2.0]}),
            bx.Choice({"a": [1.0, 2.0], "b": [0.5, 2.0], "c": [9.0, 9.0]}),
        ),
        (Ordered([1, 2]), Ordered([1, 2, 5])),
    ],
)
def test_points_mean_the_same_in_a_wider_space(old, new):
    space = bx.Space(p=old, q=bx.Real(0, 1), constraints=["q <= 0.8"])
    wide = space.widened({"p": new})
    assert wide.parameters == {"p": new, "q": bx.Real(0, 1)} and wide.order == space.order
    X = space.sample(200, seed=0)
    assert bool(wide.contains(X).all())
    assert not wide.contains(wide.params(X[0]) | {"q": 0.9})
    assert [space.params(x) for x in X] == [wide.params(x) for x in X]
    assert repr(bx.Space(wide.parameters, constraints=["q <= 0.8"])) == repr(wide)


def test_what_is_not_wider_is_refused():
    space = bx.Space(a=bx.Real(0, 1), b=bx.Choice(["x"]))
    with pytest.raises(ValueError, match=r"parameters must have one that is wider, got \{\}"):
        space.widened({})
    with pytest.raises(ValueError, match=r"parameters must only have names of .*, got 'c'"):
        space.widened({"c": bx.Real(0, 1)})
    with pytest.raises(ValueError, match=r"a must be Real\(0, 1\) with a lower low or a higher"):
        space.widened({"a": bx.Real(0.5, 2)})
    with pytest.raises(ValueError, match=r"b must stay Choice\(\['x'\]\), whose single value"):
        space.widened({"b": bx.Choice(["x", "y"])})
    assert space.widened(dict(space.parameters) | {"a": bx.Real(0, 2)}).parameters["a"].ends[1] == 2
