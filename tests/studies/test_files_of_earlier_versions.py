"""Study files that earlier versions of the library wrote open, have every event, and go on."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path

import pytest

import botorch_ext as bx
from botorch_ext.exceptions import (
    AnotherStrategyError,
    UndescribedWarning,
    VersionWarning,
    WaitingForObservations,
)
from tests.studies.kept_methods import (
    FILES,
    METHODS,
    MINIMISED,
    MINIMISED_ONCE,
    context_of,
    seen,
    value_of,
)

WRITTEN = sorted(path for path in FILES.glob("*/*.sqlite"))


def opened(path: Path, name: str) -> bx.Study:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VersionWarning)
        return bx.Study(path, METHODS[name]())


def test_a_study_that_does_not_say_its_numbers_opens_with_a_warning(tmp_path):
    path = tmp_path / "study.sqlite"
    shutil.copy(FILES / "359dab4" / "integrated_ei_frame.sqlite", path)
    message = r"does not say which numbers .*: initial\[0\]; initial\[1\]$"
    with pytest.warns(UndescribedWarning, match=message):
        opened(path, "integrated_ei_frame")
    other = bx.algorithms.integrated_ei(METHODS["integrated_ei_frame"]().domain, seed=1)
    with pytest.raises(AnotherStrategyError, match="seed is 0"):
        bx.Study(path, other)


@pytest.fixture(params=WRITTEN, ids=lambda path: f"{path.parent.name}-{path.stem}")
def written(request, tmp_path) -> Path:
    folder = tmp_path / request.param.parent.name
    folder.mkdir()
    path = folder / request.param.name
    shutil.copy(request.param, path)
    (folder / "events.json").write_text((request.param.parent / "events.json").read_text())
    return path


# What a method warns of, such as a model that contradicts the data, is not the matter here.
@pytest.mark.filterwarnings("ignore::botorch_ext.exceptions.BotorchExtWarning")
def test_a_file_of_an_earlier_version_opens_and_goes_on(written):
    name = written.stem
    study = opened(written, name)
    expected = json.loads((written.parent / "events.json").read_text())[name]
    assert seen(study) == expected
    is_old = written.parent.name == "359dab4"
    assert study.minimize == (name in (MINIMISED_ONCE if is_old else MINIMISED))
    first, *others = study.pending
    study.tell(first, value_of(study.strategy.history.trials[first]))
    step = len(expected)
    try:
        trial = study.ask(context=context_of(name, step))
    except WaitingForObservations:
        for id in others:
            study.tell(id, value_of(study.strategy.history.trials[id]))
        trial = study.ask(context=context_of(name, step))
    study.tell(trial, value_of(trial))
    again = opened(written, name)
    assert seen(again) == seen(study) and len(seen(again)) >= step + 3
