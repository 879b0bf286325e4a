"""Experiments that are killed with eight running trials, loaded, and go on as if nothing was."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import botorch_ext as bx

pytest.importorskip("ax")

from ax.api.client import Client
from ax.exceptions.storage import JSONDecodeError
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.transition_criterion import MaxGenerationParallelism, MinTrials
from ax.storage.json_store.decoder import object_from_json
from ax.storage.json_store.encoder import object_to_json
from ax.storage.json_store.registry import CORE_DECODER_REGISTRY

from benchmarks.studies.forks import in_a_fork, wait_for
from botorch_ext.exceptions import BrokenStudyError
from botorch_ext.integrations.ax import StrategyNode, allow_argument, generation_strategy
from botorch_ext.integrations.ax_trials import RECORD
from tests.integrations import saved_before
from tests.integrations.in_ax import (
    METHODS,
    MIXED,
    PLAIN,
    client,
    cost,
    in_range,
    kernel,
    loaded,
    store_of,
    with_acquisition,
)

pytestmark = pytest.mark.filterwarnings("ignore", "error::botorch_ext.exceptions.BotorchExtWarning")

SOME = tuple(MIXED[i] for i in (0, 2, 4, 7))


def week(ours):
    """Four trials with three values and a failure, then eight that run, one told since."""
    for index, point in ours.get_next_trials(4).items():
        if index == 2:
            ours.mark_trial_failed(index)
        else:
            ours.complete_trial(index, {"cost": value_of(point)})
    ours.get_next_trials(8)
    ours.complete_trial(6, {"cost": value_of(parameters(ours, 6))})


def value_of(point):
    if "x" in point:
        return cost(point)
    return point["time"] / 3 + point["cycles"] / 7 + (point["grade"] == "low")


def parameters(ours, index):
    return ours._experiment.trials[index].arm.parameters


def on(ours):
    """What is asked next, and after a value more."""
    first = ours.get_next_trials(1)
    ours.complete_trial(4, {"cost": value_of(parameters(ours, 4))})
    return [*first.values(), *ours.get_next_trials(2).values()]


@pytest.mark.parametrize(
    ("method", "space", "kind"),
    [
        *((method, PLAIN, "JSON") for method in METHODS),
        ("certified_bucb", PLAIN, "SQLite"),
        ("gp_bucb", SOME, "SQLite"),
    ],
    ids=lambda given: given if isinstance(given, str) else f"{len(given)} parameters",
)
def test_killed_with_eight_running(method, space, kind, tmp_path):

    def work():
        ours = client(space, method, store_of(kind, tmp_path), **METHODS[method])
        week(ours)
        if kind == "JSON":
            ours.save_to_json_file(str(tmp_path / "lab.json"))
        os.kill(os.getpid(), signal.SIGKILL)

    wait_for(in_a_fork(work), -signal.SIGKILL)
    whole = client(space, method, **METHODS[method])
    week(whole)
    again = loaded(kind, tmp_path)
    assert len(again._experiment.trials) == 12
    for index in whole._experiment.trials:
        assert parameters(again, index) == parameters(whole, index)
    assert on(again) == on(whole)


@pytest.mark.parametrize("method", saved_before.EXPERIMENTS)
def test_what_was_saved_before_goes_on(method, tmp_path):
    """As the same strategy does that is made again for the trials there are."""
    (tmp_path / "lab.json").write_text(json.dumps(saved_before.EXPERIMENTS[method]))
    first, second = loaded("JSON", tmp_path), loaded("JSON", tmp_path)
    second.set_generation_strategy(generation_strategy(method, **METHODS[method]))
    assert on(first) == on(second)


def test_two_nodes_are_loaded(tmp_path):
    def made():
        ours, more = client(PLAIN), METHODS["integrated_ei"]
        last = MinTrials(5, transition_to="last")
        first = StrategyNode(
            "integrated_ei", name="first", seed=1, transition_criteria=[last], **more
        )
        nodes = [first, StrategyNode("gp_bucb", name="last", num_initial=0, seed=2)]
        ours.set_generation_strategy(GenerationStrategy(nodes=nodes))
        return ours

    whole, again = made(), made()
    for node in ("first", "first", "first", "last", "last"):
        trials = whole.get_next_trials(2)
        assert again.get_next_trials(2) == trials
        assert again._generation_strategy.current_node_name == node
        for index, point in trials.items():
            for each in (whole, again):
                each.complete_trial(index, {"cost": cost(point)})
        again.save_to_json_file(str(tmp_path / "lab.json"))
        again = loaded("JSON", tmp_path)


def test_contexts_are_loaded(tmp_path):
    ours = client(
        [*PLAIN, in_range("heat", 10.0, 90.0)], "cgp_ucb", contexts=["heat"], num_initial=2
    )
    for heat in (20.0, 40.0, 80.0):
        ((index, point),) = ours.get_next_trials(1, fixed_parameters={"heat": heat}).items()
        ours.complete_trial(index, {"cost": cost(point) + heat / 90})
    ours.get_next_trials(1, fixed_parameters={"heat": 30.0})
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    seen = {"heat": 55.0}
    asked = loaded("JSON", tmp_path).get_next_trials(2, fixed_parameters=seen)
    assert asked == ours.get_next_trials(2, fixed_parameters=seen)


def halves(domain, share=0.5):
    """A method of the user."""
    return bx.algorithms.gp_bucb(domain, bx.Fitted(), width=1 / share, num_initial=3)


def test_a_method_of_the_user_is_loaded(tmp_path):
    with pytest.raises(
        ValueError, match=r"algorithm cannot be saved.*\(halves, is_algorithm=True\)"
    ):
        StrategyNode(halves)
    allow_argument(halves, is_algorithm=True)
    ours = client(PLAIN, halves, share=0.25)
    ours.get_next_trials(4)
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    assert loaded("JSON", tmp_path).get_next_trials(1) == ours.get_next_trials(1)


def test_records_are_small():
    for method, most in (("gp_bucb", 500), ("certified_bucb", 700), ("integrated_ei", 3000)):
        ours = client(PLAIN, method, **METHODS[method])
        week(ours)
        first, *sizes = [
            len(next(iter(run.candidate_metadata_by_arm_signature.values()))[RECORD])
            for run in ours._generation_strategy._generator_runs
        ]
        assert len(sizes) == 11 and max(sizes) < most, (method, max(sizes))
        assert first < 4000, (method, first)  # it describes the strategy


LOAD = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
torch.set_num_threads(1)
import botorch_ext.integrations.ax
from ax.api.client import Client
asked = Client.load_from_json_file(sys.argv[1]).get_next_trials(2)
(node,) = Client.load_from_json_file(sys.argv[2])._generation_strategy._nodes
made_with = node.generator_specs[0].generator_kwargs
import json
print(json.dumps([*asked.values(), made_with["botorch_acqf_class"].__name__]))
"""


def test_a_process_that_knows_nothing_of_it(tmp_path):
    ours = client(PLAIN, "certified_bucb", **METHODS["certified_bucb"])
    week(ours)
    path, other = tmp_path / "lab.json", tmp_path / "other.json"
    ours.save_to_json_file(str(path))
    drop_in = client(PLAIN)
    drop_in.set_generation_strategy(with_acquisition("EnlargedUpperConfidenceBound", width=2.0))
    drop_in.save_to_json_file(str(other))
    done = subprocess.run(
        [sys.executable, "-c", LOAD, path, other],
        cwd=Path(bx.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    *asked, name = json.loads(done.stdout.splitlines()[-1])
    assert name == "EnlargedUpperConfidenceBound"
    assert asked == list(ours.get_next_trials(2).values())


def test_where_it_is_not_imported_the_error_says_what_to_import():
    saved = json.loads(json.dumps(object_to_json(generation_strategy("gp_bucb"))))
    known = {name: kind for name, kind in CORE_DECODER_REGISTRY.items() if kind is not StrategyNode}
    with pytest.raises(
        JSONDecodeError, match=r"type StrategyNode \(import botorch_ext.integr.*ax\)"
    ):
        object_from_json(saved, decoder_registry=known)


def half(X):
    return 0.5 + 0 * X[..., 0]


def test_functions_that_were_allowed():
    arguments = {"kernel": kernel(), "noise_variance": 0.1, "width": 2.0, "mean": half}
    with pytest.raises(ValueError, match=r"mean cannot be saved.*allow_argument\(half\)"):
        StrategyNode("gp_bucb", **arguments)
    allow_argument(half, "half of the range")
    (node,) = through_json(generation_strategy("gp_bucb", **arguments))._nodes
    assert node._recipe.arguments["mean"] is half


def through_json(strategy):
    text = json.dumps(object_to_json(strategy))
    return object_from_json(json.loads(text))


def test_all_of_a_node_comes_back():
    first = StrategyNode(
        "gp_bucb",
        contexts=["heat"],
        num_points=50,
        name="first",
        should_deduplicate=True,
        transition_criteria=[MinTrials(5, transition_to="last")],
        pausing_criteria=[MaxGenerationParallelism(threshold=3)],
        seed=4,
    )
    strategy = GenerationStrategy(nodes=[first, StrategyNode("integrated_ei", name="last")])
    again = through_json(strategy)
    assert [node.name for node in again._nodes] == ["first", "last"]
    for node, other in zip(again._nodes, strategy._nodes, strict=True):
        assert json.dumps(object_to_json(node)) == json.dumps(object_to_json(other))
    assert [node.name for node in strategy.clone_reset()._nodes] == ["first", "last"]


def changed(tmp_path, change):
    """An experiment whose file was changed."""
    ours = client(PLAIN, "gp_bucb", **METHODS["gp_bucb"])
    ours.get_next_trials(2)
    path = tmp_path / "lab.json"
    ours.save_to_json_file(str(path))
    text = path.read_text()
    assert change(text) != text
    path.write_text(change(text))
    return str(path)


def test_arguments_that_were_changed_are_refused(tmp_path):
    path = changed(
        tmp_path, lambda text: text.replace('class\\":\\"Fitted', 'class\\":\\"os.system')
    )
    with pytest.raises(
        ValueError, match="saved arguments cannot be read: kernel must be of a class"
    ):
        Client.load_from_json_file(path)


@pytest.mark.parametrize("change", [("version", "versoin"), ("info", "inof")])
def test_records_that_were_changed_are_refused(tmp_path, change):
    path = changed(tmp_path, lambda text: text.replace(*change))
    with pytest.raises(BrokenStudyError, match="record of a trial cannot be read"):
        Client.load_from_json_file(path).get_next_trials(1)
