"""Trials of a strategy stay its own when the library gets arguments, renames them or drops them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import botorch_ext as bx
from botorch_ext.domains.parameters import Real
from botorch_ext.domains.space import Space
from botorch_ext.exceptions import BotorchExtWarning
from botorch_ext.integrations import hosted as hosted_module
from botorch_ext.integrations.host_trials import HostTrial
from botorch_ext.integrations.hosted import HostedStrategy
from botorch_ext.integrations.saved_arguments import allow_argument, as_text, from_text
from botorch_ext.strategies import Strategy
from botorch_ext.studies.translations import SINCE_0_2_0, TRANSLATIONS, Dropped
from tests.integrations.hosts import Host, objective
from tests.integrations.test_hosted import METHODS, SPACE
from tests.studies.two_versions import KINDS, scaled, widths

PLAIN = Space({"a": Real(-1.0, 1.0), "b": Real(2.0, 5.0)})
# What version 0.2.0 kept of five trials of `METHODS`.
OF_0_2_0 = json.loads(Path(__file__).with_name("trials_0.2.0.json").read_text())
Make = Callable[..., Strategy]


def hosted(strategy: Strategy) -> HostedStrategy:
    return HostedStrategy(strategy, PLAIN)


def with_trials(make: Make, num_trials: int = 4) -> Host:
    host, asking = Host(), hosted(make())
    for key in range(num_trials):
        host.ask(asking)
        if key % 2 == 0:
            host.tell(key, objective(host.trials[key].values))
    return host


def num_own(host: Host, strategy: Strategy) -> int:
    """How many trials count as asked by a strategy; it warns of nothing."""
    later = hosted(strategy)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BotorchExtWarning)
        later.follow(host.trials)
    return later.strategy.history.num_asked


@pytest.mark.parametrize("kind", KINDS)
def test_trials_stay_its_own_when_there_is_one_more_argument(kind: Any) -> None:
    before, after = kind(False), kind(True)
    host = with_trials(before)
    assert num_own(host, after()) == num_own(host, after(factor=1.0)) == 4
    assert num_own(host, after(factor=2.0)) == 0
    # In the study are now those of two versions, and either may go on.
    host.ask(hosted(after()))
    assert num_own(host, after()) == num_own(host, before()) == 5


@pytest.mark.parametrize("kind", KINDS)
def test_trials_stay_its_own_when_an_argument_that_nobody_gave_is_gone(kind: Any) -> None:
    before, after = kind(True), kind(False)
    assert num_own(with_trials(before), after()) == 4
    assert num_own(with_trials(lambda: before(factor=2.0)), after()) == 0


def test_a_renamed_argument_is_one_line(monkeypatch: Any) -> None:
    before, after = scaled("Level", by=1.0), scaled("Level", factor=1.0)
    host = with_trials(lambda: before(3.0))
    assert num_own(host, after(3.0)) == 0
    monkeypatch.setitem(TRANSLATIONS, "Level.by", "factor")
    assert num_own(host, after(3.0)) == 4
    assert num_own(host, after(2.0)) == num_own(host, after()) == 0


@pytest.mark.parametrize("case", OF_0_2_0)
def test_trials_of_0_2_0_stay_its_own(case: str) -> None:
    name, direction = case.split(", ")
    later = HostedStrategy(METHODS[name].make(SPACE), SPACE, direction == "minimized")
    later.follow([HostTrial(**trial) for trial in OF_0_2_0[case]])
    assert later.strategy.history.num_asked == 5


def test_trials_of_0_2_0_stay_its_own_when_there_is_one_more_argument(monkeypatch: Any) -> None:
    """Nothing but a digest is kept with them."""
    before, after = widths(False), widths(True)
    host = with_trials(before)
    for trial in host.trials:
        alone = {
            key: each for key, each in json.loads(str(trial.record)).items() if key != "strategy"
        }
        host.set(int(trial.key), record=json.dumps(alone | {"version": 1}))
    assert num_own(host, before()) == 4 and num_own(host, after()) == 0
    monkeypatch.setattr(hosted_module, "SINCE_0_2_0", SINCE_0_2_0 | {"Level.factor"})
    assert (
        num_own(host, before()) == num_own(host, after()) == num_own(host, after(factor=1.0)) == 4
    )
    assert num_own(host, after(factor=2.0)) == 0


def test_what_0_2_0_asked_is_known_to_later_versions_once_this_one_has_asked() -> None:
    later, host = HostedStrategy(METHODS["gp_bucb"].make(SPACE), SPACE, True), Host()
    host.trials = [HostTrial(**trial) for trial in OF_0_2_0["gp_bucb, minimized"]]
    assert '"strategy":' in str(host.ask(later).record)
    assert '"strategy":' not in str(host.ask(later).record)


def test_a_description_is_kept_once() -> None:
    asking, host = hosted(KINDS[0](False)()), Host()
    before = asking.state()
    lengths = [len(str(host.ask(asking).record)) for _ in range(3)]
    assert lengths[0] > 1000 > lengths[1] + lengths[2]
    # Where the first question is taken back, the next one has it.
    asking.return_to(before)
    assert len(asking.ask()[1]) == lengths[0]
    # Where its trial is lost, as in a copy of a study, so has the next one.
    del host.trials[0]
    assert len(str(host.ask(hosted(KINDS[0](False)())).record)) > 1000


# --- Optuna ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_optuna(kind: Any) -> None:
    optuna = pytest.importorskip("optuna")
    from botorch_ext.integrations.optuna import StrategySampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space = {
        "a": optuna.distributions.FloatDistribution(-1.0, 1.0),
        "b": optuna.distributions.FloatDistribution(2.0, 5.0),
    }

    def sampler(make: Make, **options: Any) -> Any:
        return StrategySampler(
            lambda domain, **given: make(domain, **given),
            search_space=space,
            repeat=True,
            **options,
        )

    def ask(study: Any) -> Any:
        trial = study.ask()
        return trial, trial.suggest_float("a", -1.0, 1.0), trial.suggest_float("b", 2.0, 5.0)

    study = optuna.create_study(sampler=sampler(kind(False)))
    for number in range(3):
        trial, a, b = ask(study)
        if number < 2:
            study.tell(trial, objective({"a": a, "b": b}))
    for options, num_own in (({}, 3), ({"factor": 1.0}, 4), ({"factor": 2.0}, 0)):
        study.sampler = sampler(kind(True), **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error" if num_own else "ignore", BotorchExtWarning)
            ask(study)
        history = study.sampler._followed.hosted.strategy.history
        assert history.num_asked == num_own + 1
        assert len(history.attached) == (0 if num_own else 2)


# --- arguments as text, and Ax --------------------------------------------------------------------


@dataclass(frozen=True)
class Level(bx.widths.Width):
    level: float

    def __call__(self, t: int, model: Any) -> float:
        return self.level


def _next_version(**fields: Any) -> Any:
    """The class as a later version has it, with other arguments; it is allowed from now on."""
    body = {
        "__annotations__": {"level": float} | dict.fromkeys(fields, float),
        **fields,
        "__module__": __name__,
        "__qualname__": "Level",
        "__call__": lambda self, t, model: 2.0,
    }
    kind = dataclass(frozen=True)(type("Level", (bx.widths.Width,), body))
    allow_argument(kind)
    return kind


def test_a_saved_argument_is_read_when_its_class_has_one_more_argument() -> None:
    allow_argument(Level)
    text = as_text({"width": bx.widths.Scaled(Level(2.0), 0.5)})
    later = _next_version(factor=1.0)
    width = from_text(text)["width"]
    assert width == bx.widths.Scaled(later(2.0, 1.0), 0.5)
    assert from_text(as_text({"width": width})) == {"width": width}


def test_a_saved_argument_is_read_in_the_names_of_now(monkeypatch: Any) -> None:
    allow_argument(Level)
    text = as_text({"algorithm": "old_ucb", "bound": 3.0, "width": Level(2.0)})
    kind = _next_version(factor=1.0)
    renamed = text.replace('"level"', '"by"')
    with pytest.raises(ValueError, match=r"width \(Level\) must have"):
        from_text(renamed)
    for old, new in {
        "Level.by": "level",
        "old_ucb": "gp_ucb",
        "old_ucb.bound": "rkhs_bound",
        "Level.unused": Dropped(1.0),
    }.items():
        monkeypatch.setitem(TRANSLATIONS, old, new)
    assert from_text(renamed) == {
        "algorithm": "gp_ucb",
        "rkhs_bound": 3.0,
        "width": kind(2.0),
    }
    for number, is_read in ((1.0, True), (2.0, False)):
        more = renamed.replace('"by"', f'"unused":{number},"by"')
        if is_read:
            assert from_text(more)["width"] == kind(2.0)
        else:
            with pytest.raises(ValueError, match="must have"):
                from_text(more)


def test_ax(tmp_path: Path) -> None:
    pytest.importorskip("ax")
    from tests.integrations import in_ax

    allow_argument(Level)
    options = {"kernel": in_ax.kernel(), "noise_variance": 0.01, "num_initial": 2}
    ours = in_ax.client(in_ax.PLAIN, "gp_bucb", width=Level(2.0), **options)
    for index, point in ours.get_next_trials(4).items():
        if index % 2 == 0:
            ours.complete_trial(index, {"cost": in_ax.cost(point)})
    ours.save_to_json_file(str(tmp_path / "lab.json"))
    later = _next_version(factor=1.0)

    def num_own(client: Any) -> int:
        client.get_next_trials(1)
        return client._generation_strategy.current_node.strategy.history.num_asked - 1

    assert num_own(in_ax.loaded("JSON", tmp_path)) == 4
    for number, expected in ((1.0, 4), (2.0, 0)):
        again = in_ax.loaded("JSON", tmp_path)
        again.set_generation_strategy(
            in_ax.generation_strategy("gp_bucb", width=later(2.0, number), **options)
        )
        assert num_own(again) == expected
