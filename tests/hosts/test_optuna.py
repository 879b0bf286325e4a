"""What is special to Optuna: its spaces, its storages, and what it samples at random."""

from __future__ import annotations

import json
import math
import multiprocessing
import warnings
from typing import Any

import pytest
import torch
from gpytorch.kernels import RBFKernel

optuna = pytest.importorskip("optuna")

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution  # noqa: E402
from optuna.storages import InMemoryStorage, JournalStorage, RDBStorage  # noqa: E402
from optuna.storages.journal import JournalFileBackend  # noqa: E402
from optuna.trial import TrialState  # noqa: E402

from botorch_ext.exceptions import HostWarning, IndependentSamplingWarning  # noqa: E402
from botorch_ext.integrations.optuna import ATTRIBUTE, StrategySampler  # noqa: E402
from botorch_ext.integrations.optuna_spaces import space_of  # noqa: E402
from tests.helpers import rbf  # noqa: E402
from tests.hosts.in_optuna import FIXED, SPACE, bowl, by_hand, history, sampler  # noqa: E402

# Optuna says which of its functions are experimental.
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


def study_of(chosen: Any = None, **more: Any) -> Any:
    return optuna.create_study(sampler=sampler() if chosen is None else chosen, **more)


def said_by(call: Any) -> list[str]:
    """What the library warned of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    kinds = (HostWarning, IndependentSamplingWarning)
    return [str(each.message) for each in caught if issubclass(each.category, kinds)]


def num_asked(study: Any) -> int:
    return sum(ATTRIBUTE in trial.system_attrs for trial in study.trials)


def numbers(trials: Any) -> list[int]:
    """The numbers of the records, in the order of asking."""
    return [json.loads(each.system_attrs[ATTRIBUTE]["record"])["number"] for each in trials]


MIXED = {
    "rate": FloatDistribution(1e-4, 0.1, log=True),
    "share": FloatDistribution(0.1, 0.75, step=0.05),
    "depth": IntDistribution(2, 9),
    "batch": IntDistribution(16, 512, log=True),
    "even": IntDistribution(2, 10, step=2),
    "kind": CategoricalDistribution(["rbf", None, True, 3]),
    "alone": CategoricalDistribution(["one"]),
}


def of_every_kind(trial: Any) -> float:
    rate = trial.suggest_float("rate", 1e-4, 0.1, log=True)
    share = trial.suggest_float("share", 0.1, 0.75, step=0.05)
    depth = trial.suggest_int("depth", 2, 9)
    batch = trial.suggest_int("batch", 16, 512, log=True)
    even = trial.suggest_int("even", 2, 10, step=2)
    kind = trial.suggest_categorical("kind", ["rbf", None, True, 3])
    alone = trial.suggest_categorical("alone", ["one"])
    assert [type(each) for each in (rate, share, depth, batch, even)] == [float] * 2 + [int] * 3
    assert kind in MIXED["kind"].choices and alone == "one"
    return math.log10(rate) + share + depth


def test_parameters_of_every_kind() -> None:
    study = study_of(StrategySampler("gp_bucb", width=2.0, num_initial=5))
    study.optimize(of_every_kind, n_trials=8)
    assert all(trial.distributions == MIXED for trial in study.trials)
    # The space of the first trial was not known.
    assert [ATTRIBUTE in trial.system_attrs for trial in study.trials] == [False] + 7 * [True]
    for trial in study.trials[1:]:
        record = json.loads(trial.system_attrs[ATTRIBUTE]["record"])
        batch, depth, even, kind, rate, share = record["x"]
        assert (batch, depth) == (trial.params["batch"], trial.params["depth"])
        assert (even, rate) == (trial.params["even"], trial.params["rate"])
        assert share == pytest.approx(trial.params["share"])
        assert MIXED["kind"].choices[int(kind)] == trial.params["kind"]
    for name, ends in (("even", (2.0, 10.0)), ("share", (0.1, 0.75))):
        assert study.sampler._followed.space.parameters[name].ends == ends


def test_choices_that_are_equal_in_python_are_one() -> None:
    choices = [True, 1, 1.0, False, 0, "0"]
    study = study_of(StrategySampler("gp_bucb", **FIXED))
    space = {"c": CategoricalDistribution(choices), "x": FloatDistribution(0.0, 1.0)}
    kept = {"params": {"c": 1, "x": 0.5}, "distributions": space, "value": 1.0}
    study.add_trial(optuna.create_trial(**kept))
    for _ in range(5):
        study.tell(study.ask(space), 0.5)
    assert len(history(study).attached) == 1 and not history(study).abandoned
    assert {type(t.params["c"]) for t in study.trials[1:]} <= {bool, str}


@pytest.mark.filterwarnings("ignore:Choices for a categorical distribution:UserWarning")
def test_results_with_choices_that_a_storage_keeps_as_lists_are_attached() -> None:
    space = {"layers": CategoricalDistribution([(8,), (16, 8), (32, 16)])}
    study = study_of(optuna.samplers.RandomSampler(seed=0), storage="sqlite://")
    for value in range(4):
        study.tell(study.ask(space), value)
    given = [tuple(trial.params["layers"]) for trial in study.trials]
    study.sampler = sampler(search_space=space)
    for _ in range(2):
        study.tell(study.ask(space), 0.5)
    known = history(study)
    found = [known.trials[id].x.item() for id in known.attached]
    assert found == [space["layers"].choices.index(choice) for choice in given]
    assert [known.values[id] for id in known.attached] == [-0.0, -1.0, -2.0, -3.0]


def test_a_space_that_changes_begins_anew_with_what_is_known() -> None:
    study = study_of(StrategySampler("gp_bucb", **FIXED))
    study.optimize(lambda trial: trial.suggest_float("d", 0, 1) + bowl(trial), n_trials=3)
    study.optimize(bowl, n_trials=2)  # from the second of them on there are two parameters
    strategy = by_hand()
    for trial in study.trials[:4]:
        strategy.attach([trial.params["a"], trial.params["b"]], -trial.value)
    assert [*study.trials[4].params.values()] == strategy.ask().x.tolist()


def test_a_value_that_was_evaluated_elsewhere_is_attached_there() -> None:
    study = study_of()

    def narrower(trial: Any) -> float:
        return trial.suggest_float("a", 2.0, 2.001) + trial.suggest_float("b", -1.0, 3.0)

    with pytest.warns(IndependentSamplingWarning, match="a is sampled at random"):
        study.optimize(narrower, n_trials=1)
    bowl(study.ask())
    assert history(study).abandoned == {0} and history(study).attached == [1]
    assert history(study).trials[1].x.tolist() == [*study.trials[0].params.values()]


def storages(folder: Any) -> dict[str, Any]:
    return {
        "sqlite": lambda: RDBStorage(f"sqlite:///{folder}/study.db"),
        "journal": lambda: JournalStorage(JournalFileBackend(f"{folder}/study.log")),
        "memory": InMemoryStorage,
    }


@pytest.mark.parametrize("kind", ["sqlite", "journal", "memory"])
def test_a_study_that_is_deleted_and_made_again_begins_anew(tmp_path: Any, kind: str) -> None:
    storage, shared = storages(tmp_path)[kind](), sampler()
    for b in (0.5, 2.5):  # a result of the same number and value at another place
        study = study_of(shared, study_name="one", storage=storage)
        kept = {"params": {"a": 3.0, "b": b}, "distributions": SPACE, "value": 0.25}
        study.add_trial(optuna.create_trial(**kept))
        study.optimize(bowl, n_trials=2)
        if b == 0.5:
            optuna.delete_study(study_name="one", storage=storage)
    assert history(study).trials[0].x.tolist() == [3.0, 2.5]
    assert [*history(study).values.values()] == [-t.value for t in study.trials[:-1]]


def optimize_in_child(storage: Any, num_trials: int) -> None:
    torch.set_num_threads(1)
    study = optuna.load_study(study_name="one", storage=storage(), sampler=sampler())
    study.optimize(bowl, n_trials=num_trials)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "journal"])
def test_several_processes_never_ask_the_same(tmp_path: Any, kind: str) -> None:
    storage = storages(tmp_path)[kind]
    optuna.create_study(storage=storage(), study_name="one")
    context: Any = multiprocessing.get_context("fork")
    children = [
        context.Process(target=optimize_in_child, args=(storage, 5), daemon=True) for _ in range(3)
    ]
    for child in children:
        child.start()
    for child in children:
        child.join(timeout=300)
        assert child.exitcode == 0
    trials = optuna.load_study(study_name="one", storage=storage()).trials
    assert len({tuple(trial.params.values()) for trial in trials}) == 15
    assert sorted(numbers(trials)) == [*range(15)]  # each knew all that were asked before
    # The long record is that of the process that asked first, whose trial may have any number.
    *others, first = sorted(len(json.dumps(trial.system_attrs)) for trial in trials)
    assert first < 2500 and max(others) < 800


def test_threads_never_ask_the_same() -> None:
    study = study_of()
    study.optimize(bowl, n_trials=8, n_jobs=4)
    assert len({tuple(trial.params.values()) for trial in study.trials}) == 8
    assert sorted(numbers(study.trials)) == [*range(8)]


def test_a_retry_is_a_trial_of_its_own() -> None:
    study = study_of()
    study.optimize(bowl, n_trials=3)
    failed = study.ask(SPACE)
    study.tell(failed, state=TrialState.FAIL)
    optuna.storages.RetryHeartbeatStaleTrialCallback()(study, study.trials[3])
    retried = study.ask(SPACE)
    assert retried.params == failed.params
    study.tell(retried, 0.5)
    study.ask(SPACE)
    known = history(study)
    assert known.failed == {3} and known.attached == [4] and known.values[4] == -0.5


def test_pruners_do_not_hide_trials() -> None:
    # Its brackets are drawn by the name of the study.
    study = study_of(pruner=optuna.pruners.HyperbandPruner(1, 9), study_name="pruned")

    def objective(trial: Any) -> float:
        value = bowl(trial)
        for step in range(9):
            trial.report(value + step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(objective, n_trials=6)
    assert numbers(study.trials) == [*range(6)]
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)


def test_given_parameters_stay() -> None:
    study = study_of()
    study.enqueue_trial({"a": 4.0})
    trial = study.ask()
    bowl(trial)
    assert trial.params["a"] == 4.0 and -1.0 <= trial.params["b"] <= 3.0
    assert num_asked(study) == 0


GRID = {"x": IntDistribution(0, 3), "y": CategoricalDistribution([0, 1, 2, 3])}
SQUARE = {"x": FloatDistribution(0.0, 1.0), "y": FloatDistribution(0.0, 1.0)}


def after_ten(space: Any, storage: Any = None, **more: Any) -> Any:
    """A study whose strategy asks for a corner over and over."""
    arguments = {"kernel": rbf(2.0), "noise_variance": 0.01, "width": 1.5, "num_initial": 4}
    chosen = StrategySampler("gp_bucb", **(arguments | {"search_space": space} | more))
    study = study_of(chosen, storage=storage, study_name="one", load_if_exists=True)
    while len(study.trials) < 10:
        trial = study.ask(space)
        study.tell(trial, trial.params["x"] + trial.params["y"])
    return study


def points(study: Any, space: Any, number: int) -> list[tuple[Any, ...]]:
    return [tuple(study.ask(space).params.values()) for _ in range(number)]


@pytest.mark.filterwarnings("ignore:trials are sampled at random where")
@pytest.mark.parametrize("space", [GRID, SQUARE], ids=["grid", "square"])
def test_trials_that_run_are_all_elsewhere(space: Any) -> None:
    plain = points(after_ten(space, repeat=True), space, 4)
    assert len({*plain}) < 4  # what the method asks
    study = after_ten(space)
    asked = points(study, space, 4)
    assert len({*asked}) == 4 and asked[0] == plain[0]
    # Another one on this storage asks the next question in the same way.
    other = after_ten(space, study._storage)
    assert len({*asked, *points(other, space, 1)}) == 5
    # What was found instead is attached when it is told.
    for trial in study.trials[10:]:
        study.tell(trial.number, 1.0)
    points(study, space, 1)
    instead = [t for t in study.trials if "instead" in t.system_attrs[ATTRIBUTE]]
    assert instead and len(history(study).attached) == len(instead)
    # Points of complete trials are asked again.
    assert tuple(study.trials[-1].params.values()) in asked + plain


def test_a_point_that_failed_is_not_asked_again_and_it_is_said_once() -> None:
    study = after_ten(SQUARE)
    seen = []

    def fail_all() -> None:
        for _ in range(4):
            seen.append(points(study, SQUARE, 1)[0])
            study.tell(study.trials[-1].number, state=TrialState.FAIL)

    (message,) = said_by(fail_all)
    assert len({*seen}) == 4 and "repeat=True" in message


ROUNDS = {"kernel": RBFKernel(), "noise_variance": 0.01, "width": 1.0, "horizon": 8}
X = FloatDistribution(0.0, 1.0)


def played(objective: Any, num_trials: int = 4, **more: Any) -> tuple[Any, list[str]]:
    """A study without a search space unless it is given, and what was said."""
    name = more.pop("name", "gp_bucb")
    study = study_of(StrategySampler(name, **(FIXED if name == "gp_bucb" else ROUNDS), **more))
    return study, said_by(lambda: study.optimize(objective, n_trials=num_trials))


def x_of(trial: Any) -> float:
    return trial.suggest_float("x", 0.0, 1.0)


def names_that_are_others(trial: Any) -> float:
    return trial.suggest_float("x", 2.0, 3.0) + trial.suggest_float("z", 0.0, 1.0)


OTHER_RANGE = "x is sampled at random: not all trials have it with the same range"
ALL_FAILED = "trials are sampled at random until one is complete: all trials so far failed (a NaN"
NAMES = (
    f"x is sampled at random: search_space has another range, {X}",
    "z is sampled at random: it is not in search_space",
    "y of search_space is not suggested: the values that the strategy chooses",
)
ONE = CategoricalDistribution(["a"])  # a single value, which is no mistake


@pytest.mark.parametrize(
    ("objective", "space", "messages", "asked"),
    [
        (lambda t: t.suggest_float("x", 0.0, 1.0 + t.number), None, [OTHER_RANGE], 1),
        (lambda t: bowl(t) + (x_of(t) if t.number % 2 else 0.0), None, [OTHER_RANGE], 3),
        (lambda t: x_of(t) * math.nan, None, [ALL_FAILED], 0),
        (
            lambda t: x_of(t) + t.suggest_int("odd", 0, 2**60),
            None,
            ["odd is sampled at random: odd cannot be searched"],
            3,
        ),
        (lambda t: x_of(t) + t.suggest_int("n", 0, 9), None, [], 3),
        (names_that_are_others, {"x": X, "y": X}, NAMES, 4),
        (lambda t: x_of(t) + len(t.suggest_categorical("c", ["a"])), {"x": X, "c": ONE}, [], 4),
    ],
)
def test_what_is_random_is_said_once(objective: Any, space: Any, messages: Any, asked: int) -> None:
    study, said = played(objective, search_space=space)
    assert len(said) == len(messages) and all(map(str.startswith, said, messages))
    assert num_asked(study) == asked


def test_a_method_that_has_ended_or_cannot_search_is_random() -> None:
    study, said = played(x_of, 10, name="bpe", search_space={"x": X})
    assert "as the method cannot ask: its horizon of 8 trials has ended" in said[0]
    assert num_asked(study) == 8
    study, said = played(
        lambda t: t.suggest_float("rate", 0.1, 1.0, log=True), name="certified_bucb"
    )
    assert "logarithmic scales: rate" in said[0] and num_asked(study) == 0
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler())
    said = said_by(lambda: study.optimize(lambda t: (bowl(t), 1.0), n_trials=2))
    assert said == ["trials are sampled at random: the study has several objectives"]


def test_a_running_trial_of_another_seed_or_space_is_said() -> None:
    study = study_of(StrategySampler("gp_bucb", search_space={"x": X}, **FIXED))
    study.ask({"x": X})
    study.sampler = StrategySampler("gp_bucb", seed=1, search_space={"x": X}, **FIXED)
    with pytest.warns(HostWarning, match="other arguments .such as another seed"):
        study.ask({"x": X})
    assert said_by(lambda: study.ask({"x": X})) == []
    study = study_of(StrategySampler("gp_bucb", repeat=True, **FIXED))
    study.tell(study.ask({"x": X, "y": X}), 1.0)
    study.ask({"x": X, "y": X})
    study.tell(study.ask({"x": X}), 0.5)  # from here on there is x alone
    with pytest.warns(HostWarning, match="another seed. or in another space: .* until"):
        study.ask({"x": X})


TREE = {
    "booster": CategoricalDistribution(["gbtree", "dart"]),
    "depth": IntDistribution(1, 9),
    "model": CategoricalDistribution(["linear", "forest", "boosting"]),
    "rate": FloatDistribution(0.1, 0.5),
    "share": FloatDistribution(2.0, 5.0),
}
CONDITIONS = {
    "depth": ("model", ["forest"]),
    "booster": ("model", ["boosting"]),
    "rate": ("booster", ["dart"]),
}


def branch(trial: Any) -> float:
    model = trial.suggest_categorical("model", ["linear", "forest", "boosting"])
    value = 0.01 * trial.suggest_float("share", 2.0, 5.0)
    if model == "forest":
        value += 0.1 * abs(trial.suggest_int("depth", 1, 9) - 3)
    elif model == "boosting" and trial.suggest_categorical("booster", ["gbtree", "dart"]) == "dart":
        value += trial.suggest_float("rate", 0.1, 0.5)
    return value


def in_a_tree(**more: Any) -> StrategySampler:
    given = {"search_space": TREE, "conditions": CONDITIONS, "num_initial": 6} | more
    return StrategySampler("gp_bucb", **given)


def test_a_tree_is_asked_in_its_branches() -> None:
    study = study_of(in_a_tree())
    forest = {"model": "forest", "depth": 4, "share": 3.0}
    kept = {"distributions": {name: TREE[name] for name in forest}, "value": 0.3}
    study.add_trial(optuna.create_trial(params=forest, **kept))
    assert said_by(lambda: study.optimize(branch, n_trials=9)) == []
    known = history(study)
    assert known.attached == [0] and len({len(t.params) for t in study.trials}) == 3
    space = study.sampler._followed.space
    for id, trial in enumerate(study.trials[:-1]):  # the last one was not known yet
        assert space.params(known.trials[id].x) == trial.params
    study = study_of(in_a_tree())
    (message,) = said_by(
        lambda: study.optimize(lambda t: t.suggest_int("depth", 1, 9) + branch(t), n_trials=6)
    )
    assert message == "depth is sampled at random: by the conditions it does not count here"


IN_TREE = {"search_space": TREE}


@pytest.mark.parametrize(
    ("algorithm", "arguments", "message"),
    [
        ("gp_bucb", {"repeat": "no"}, "repeat"),
        ("gp_bucb", {"search_space": {"a": 3}}, "a must have a distribution"),
        ("gp_bucb", {"search_space": {"a": IntDistribution(0, 2**60)}}, "a cannot be searched"),
        ("bpe", ROUNDS | {"search_space": {"r": MIXED["rate"]}}, "logarithmic scales: r"),
        ("gp_bucb", {"conditions": CONDITIONS}, "conditions must be given with search_space"),
        ("gp_bucb", IN_TREE | {"conditions": {"deep": ("model", ["forest"])}}, "conditions .*deep"),
        ("gp_bucb", IN_TREE | {"conditions": {"depth": ("model", ["forrest"])}}, "depth: model"),
    ],
)
def test_wrong_arguments_are_refused_at_once(algorithm, arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        StrategySampler(algorithm, **arguments)


def test_optuna_rounds_as_it_likes() -> None:
    space = space_of({"rate": FloatDistribution(1e-4, 1.0, log=True), "x": FloatDistribution(0, 1)})
    X = space.sample(9, 0)
    assert torch.equal(space.settable(X), X)
