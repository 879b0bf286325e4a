"""Studies outlive versions of the library: arguments that are new, renamed, gone or of another
default, and decisions that are others."""

from __future__ import annotations

import json
import shutil
import sqlite3
import warnings
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any
from unittest.mock import patch

import pytest
import torch
from gpytorch.kernels import RBFKernel

import botorch_ext as bx
from botorch_ext.algorithms.argument_checks import checked_names
from botorch_ext.exceptions import AnotherStrategyError, BrokenStudyError, NewerStudyError
from botorch_ext.strategies import RandomSearch, Strategy
from botorch_ext.studies import event_lines
from botorch_ext.studies.description import describe, require_same, versions
from botorch_ext.studies.plain_events import PlainRecord, from_json, to_json
from botorch_ext.studies.translations import TRANSLATIONS, Dropped
from tests.studies.kept import BOX, kernel
from tests.studies.kept_methods import FILES, METHODS, context_of, seen
from tests.studies.two_versions import KINDS, scaled, widths

NUMBERS = {"rkhs_bound": 1.0, "noise_std": 0.1}


def kept(strategy: Strategy, format: int = 3) -> dict[str, Any]:
    """What is in a study: of format 1 what was there before there was another one."""
    described = from_json(to_json(describe(strategy)))
    return described if format == 3 else _of_format_1(described)


def _of_format_1(described: Any) -> Any:
    marks = ("<call>", "<default>", "<given>", "format")
    if isinstance(described, dict):
        return {key: _of_format_1(part) for key, part in described.items() if key not in marks}
    return [_of_format_1(part) for part in described] if isinstance(described, list) else described


def opens(description: dict[str, Any], strategy: Strategy) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_same(description, describe(strategy), "it")


# A function stands in no description of format 1, only the strategy that it made.
WITH_FORMATS = [(kind, 3) for kind in KINDS] + [(kind, 1) for kind in KINDS[:-1]]


@pytest.mark.parametrize(("kind", "format"), WITH_FORMATS)
def test_a_study_opens_when_there_is_one_more_argument(kind, format):
    before, after = kind(False), kind(True)
    opens(kept(before(), format), after())
    opens(kept(before(), format), after(factor=1.0))
    with pytest.raises(
        AnotherStrategyError, match=r"factor\S* is missing in the study, got .*2\.0"
    ):
        opens(kept(before(), format), after(factor=2.0))


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_opens_when_an_argument_that_nobody_gave_is_gone(kind):
    before, after = kind(True), kind(False)
    opens(kept(before()), after())
    opens(kept(before(factor=1.0)), after())
    with pytest.raises(AnotherStrategyError, match=r"factor is .*2\.0.* in the study, got missing"):
        opens(kept(before(factor=2.0)), after())


def test_an_argument_that_is_gone_had_the_default_that_the_table_says(monkeypatch):
    """Format 1 does not say what the defaults were."""
    before, after = widths(True), widths(False)
    with pytest.raises(AnotherStrategyError, match=r"factor is 1\.0 in the study, got missing"):
        opens(kept(before(), 1), after())
    monkeypatch.setitem(TRANSLATIONS, "Level.factor", Dropped(1.0))
    opens(kept(before(), 1), after())
    with pytest.raises(AnotherStrategyError, match=r"factor is 2\.0 in the study, got missing"):
        opens(kept(before(factor=2.0), 1), after())


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_is_gone_on_with_when_there_is_one_more_argument(kind, tmp_path):
    path = tmp_path / "study.db"
    study = bx.Study(path, kind(False)())
    trial = study.ask()
    study.tell(trial, 0.5)
    study.ask()
    for options in ({}, {"factor": 1.0}):
        later = bx.Study(path, kind(True)(**options))
        assert seen(later)[:3] == seen(study)[:3] and later.pending[0] == 1
        later.tell(later.ask(), 0.25)
    with pytest.raises(AnotherStrategyError, match="factor"):
        bx.Study(path, kind(True)(factor=2.0))


# --- names ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", [1, 3])
def test_a_renamed_argument_is_one_line(format, monkeypatch):
    before, after = scaled("Level", by=1.0), scaled("Level", factor=1.0)
    with pytest.raises(AnotherStrategyError, match=r"width\.by is 3\.0 in the study, got missing"):
        opens(kept(before(3.0), format), after(3.0))
    monkeypatch.setitem(TRANSLATIONS, "Level.by", "factor")
    opens(kept(before(3.0), format), after(3.0))
    opens(kept(before(), format), after())
    with pytest.raises(AnotherStrategyError, match=r"width\.factor is 3\.0 in the study, got 4\.0"):
        opens(kept(before(3.0), format), after(4.0))


def test_a_renamed_class_and_a_renamed_function_are_one_line_each(monkeypatch):
    before, after = scaled("Level", by=1.0), scaled("Factor", by=1.0)
    with pytest.raises(AnotherStrategyError, match="class is 'Level' in the study, got 'Factor'"):
        opens(kept(before(3.0)), after(3.0))
    monkeypatch.setitem(TRANSLATIONS, "Level", "Factor")
    opens(kept(before(3.0)), after(3.0))
    described = kept(bx.algorithms.gp_ucb(BOX, kernel(), noise_variance=0.01, **NUMBERS))
    described["strategy"]["<call>"]["function"] = "old_ucb"
    described["strategy"]["class"] = "Old"
    described["strategy"]["<call>"]["bound"] = described["strategy"]["<call>"].pop("rkhs_bound")
    now = bx.algorithms.gp_ucb(BOX, kernel(), noise_variance=0.01, **NUMBERS)
    with pytest.raises(AnotherStrategyError, match="class is 'Old'"):
        opens(described, now)
    monkeypatch.setitem(TRANSLATIONS, "old_ucb", "gp_ucb")
    monkeypatch.setitem(TRANSLATIONS, "old_ucb.bound", "rkhs_bound")
    opens(described, now)


# --- defaults and calls ---------------------------------------------------------------------------


def test_a_default_may_change():
    before, after = scaled("Level", by=1.0), scaled("Level", by=2.0)
    opens(kept(before()), after())
    opens(kept(before()), after(1.0))
    opens(kept(before(2.0)), after())
    opens(kept(before(5.0)), after(5.0))
    with pytest.raises(AnotherStrategyError, match=r"width\.by is 1\.0 in the study, got 5\.0"):
        opens(kept(before()), after(5.0))
    with pytest.raises(AnotherStrategyError, match=r"width\.by is 5\.0 in the study, got 2\.0"):
        opens(kept(before(5.0)), after())
    # What was given cannot be told from what was not.
    with pytest.raises(AnotherStrategyError, match=r"width\.by is 1\.0 in the study, got 2\.0"):
        opens(kept(before(), 1), after())


@pytest.mark.parametrize("of", ["class", "function"])
def test_what_was_given_stays_what_it_is_when_its_default_changes(of):
    def version(default: float) -> Callable[..., Strategy]:
        class Search(RandomSearch):
            def __init__(self, domain: Any, *, factor: float = default) -> None:
                super().__init__(domain)

        def search(domain: Any, *, factor: float = default) -> Strategy:
            return Search(domain, factor=factor)

        return partial(Search if of == "class" else checked_names(search), BOX)

    before, after = version(1.0), version(2.0)
    for options in ({}, {"factor": 2.0}, {"factor": 1.0}):
        opens(kept(before()), after(**options))
    opens(kept(before(factor=1.0)), after(factor=1.0))
    opens(kept(before(factor=2.0)), after())
    for options in ({}, {"factor": 2.0}):
        with pytest.raises(AnotherStrategyError, match=r"factor is 1\.0 in the study, got 2\.0"):
            opens(kept(before(factor=1.0)), after(**options))
    # What was given may be left out while it is the default.
    opens(kept(before(factor=1.0)), before())


def test_a_class_of_the_user_may_have_the_name_of_a_table():
    class Series:
        def __init__(self, level):
            self.level = level

        def __call__(self, X):
            return X[..., 0] * 0 + self.level

    def strategy(level):
        return bx.algorithms.gp_ucb(
            BOX, kernel(), noise_variance=0.01, mean=Series(level), **NUMBERS
        )

    described = kept(strategy(1.0))
    opens(described, strategy(1.0))
    with pytest.raises(AnotherStrategyError, match=r"level is 1\.0 in the study, got 5\.0"):
        opens(described, strategy(5.0))


def test_what_a_function_was_called_with_is_the_study_and_not_how():
    first = bx.algorithms.gp_ucb(BOX, kernel(), noise_variance=0.01, **NUMBERS)
    for second in (
        bx.algorithms.gp_ucb(domain=BOX, kernel=kernel(), noise_variance=0.01, **NUMBERS),
        bx.algorithms.gp_ucb(BOX, kernel(), noise_variance=0.01, delta=0.1, seed=0, **NUMBERS),
        bx.algorithms.gp_ucb(BOX, kernel().double(), noise_variance=0.01, **NUMBERS),
        bx.algorithms.gp_ucb([(-1.0, 1.0), (2.0, 5.0)], kernel(), noise_variance=0.01, **NUMBERS),
    ):
        opens(kept(first), second)
        opens(kept(first, 1), second)
    second = bx.algorithms.gp_ucb(BOX, kernel(), noise_variance=0.01, delta=0.2, **NUMBERS)
    with pytest.raises(AnotherStrategyError, match=r": delta is 0\.1 in the study, got 0\.2$"):
        opens(kept(first), second)


def test_a_kernel_that_is_changed_later_is_described_as_it_was():
    mine = RBFKernel()
    mine.lengthscale = 0.5
    strategy = bx.algorithms.gp_ucb(BOX, mine, noise_variance=0.01, **NUMBERS)
    described = kept(strategy)
    mine.lengthscale = 2.0
    opens(described, strategy)
    with pytest.raises(AnotherStrategyError, match="lengthscale"):
        opens(described, bx.algorithms.gp_ucb(BOX, mine, noise_variance=0.01, **NUMBERS))


# --- descriptions that are none -------------------------------------------------------------------


@pytest.mark.parametrize("code", [3, "text", ["list"], {"3.11": "text"}, {"3.11": None}, None])
def test_code_that_is_no_digests_is_refused_by_name(code):
    strategy = RandomSearch(BOX)
    with pytest.raises(BrokenStudyError, match="of study 'it' cannot be read: its code must be"):
        require_same(kept(strategy) | {"code": code}, describe(strategy), "study 'it'")


def test_formats_that_are_newer_or_none():
    strategy = RandomSearch(BOX)
    with pytest.raises(NewerStudyError, match=r"has format 4, and this version .* knows 3"):
        require_same(kept(strategy) | {"format": 4}, describe(strategy), "it")
    for number in (0, True, "2", None):
        with pytest.raises(BrokenStudyError, match="its format is"):
            require_same(kept(strategy) | {"format": number}, describe(strategy), "it")


@pytest.mark.parametrize("mark", ["<call>", "<default>", "<given>", "<float64>", "<code>"])
@pytest.mark.parametrize("value", [None, 3, "text", ["a", [1]], {"function": ["gp_ucb"]}])
def test_marks_of_strangers_open_nothing(mark, value):
    first = bx.algorithms.gp_ucb(BOX, kernel(), noise_variance=0.01, seed=1, **NUMBERS)
    described = kept(bx.algorithms.gp_ucb(BOX, kernel(), noise_variance=0.01, **NUMBERS))
    described["strategy"][mark] = value
    with pytest.raises(AnotherStrategyError, match="seed is 0 in the study, got 1"):
        opens(described, first)


# --- events ---------------------------------------------------------------------------------------


def test_events_say_by_which_version_they_were_written(tmp_path):
    path = tmp_path / "study.db"
    study = bx.Study(path, RandomSearch(BOX))
    study.ask()
    with patch.object(event_lines, "versions", return_value={"botorch-ext": "99.1"}):
        study.tell(0, 1.0)
    with patch.object(event_lines, "versions", return_value={"botorch-ext": None}):
        study.correct(0, 2.0)
    with closing(sqlite3.connect(path)) as connection:
        bodies = [body for (body,) in connection.execute("SELECT body FROM botorch_ext_events")]
    assert [PlainRecord.read(body).version for body in bodies] == [
        versions()["botorch-ext"],
        "99.1",
        None,
    ]
    assert seen(bx.Study(path, RandomSearch(BOX))) == seen(study)
    with pytest.raises(BrokenStudyError, match="3 is no version"):
        PlainRecord.read('{"event":"told","id":0,"value":1.0,"version":3}')


def test_what_a_function_computes_may_change(monkeypatch):
    make = METHODS["regret_balancing"]
    described = kept(make())
    monkeypatch.setattr(torch.Tensor, "argmax", torch.Tensor.argmin)
    strategy = make()
    assert kept(strategy, 1)["strategy"] != _of_format_1(described)["strategy"]
    opens(described, strategy)


# Rounds are planned ahead, and two are asked from a plan that stands.
_PLANNED = ("bpe_delay", "random")


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
def test_what_was_asked_stands_where_decisions_are_others(name, tmp_path, monkeypatch):
    """In a version that would choose the worst of everything a study opens, has every event, and
    keeps what is then asked."""
    path = tmp_path / "study.sqlite"
    shutil.copy(FILES / "359dab4" / f"{name}.sqlite", path)
    expected = json.loads((FILES / "359dab4" / "events.json").read_text())[name]
    context = context_of(name, len(expected))
    before = bx.Study(path, METHODS[name]()).strategy
    asked = before.ask(context=context)
    # Format 1 has the information gain that `regret_balancing` computes among its arguments.
    strategies = [METHODS[name]() for _ in range(3)]
    monkeypatch.setattr(torch.Tensor, "argmax", torch.Tensor.argmin)
    monkeypatch.setattr(torch.Tensor, "max", torch.Tensor.min)
    later = bx.Study(path, strategies.pop())
    assert seen(later) == expected
    trial = later.ask(context=context)
    assert torch.equal(trial.x, asked.x) is (name in _PLANNED)
    later.tell(trial, 0.25)
    assert seen(bx.Study(path, strategies.pop())) == seen(later)
    monkeypatch.undo()
    assert seen(bx.Study(path, strategies.pop())) == seen(later)
