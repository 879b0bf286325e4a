"""Model summary: what the model of a study says on its page."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from botorch_ext.aligned import cut, printable
from botorch_ext.exceptions import StudyError
from botorch_ext.page.words import counted

if TYPE_CHECKING:
    from torch import Tensor

    from botorch_ext.strategies.answers import Importance, Predictions, Recommendation
    from botorch_ext.strategies.answers.expected_gain import ExpectedGain
    from botorch_ext.studies.study import Study

#: The probabilities of quantiles on a page: the ends of the bands of 95 % and 50 %.
LEVELS = (0.025, 0.25, 0.75, 0.975)

_MOST_PENDING, _MOST_BATCH, _MOST_CONTEXTS = 50, 16, 12
# Values from which on each point of a batch takes tens of seconds.
_MOST_FOR_A_BATCH = 500
# How much is shown of the message of an error.
_MOST_CHARACTERS = 600

T = TypeVar("T")


class Prediction(NamedTuple):
    """The prediction at a point: the mean of f, its quantiles at `LEVELS`, and those of one
    observation."""

    mean: float
    quantiles: list[float]
    observed: list[float]


@dataclass(frozen=True)
class ModelSummary:
    """What the model of a study says, in the sign and units of the user. A part that could not be
    computed is None or empty, and ``missing`` says why.

    Args:
        study: The study; None if its strategy could not be made or is not asked.
        recommended: The point to settle for, in the context of the last trial.
        at_recommended: The prediction there.
        pending: The predictions of pending trials, by id.
        gain: The batch that would be asked next, and what it is expected to gain.
        at_batch: The prediction at each of its points.
        importance: The importance of each parameter.
        models: The rows of `Study.report` on several candidate models, each with its posterior
            ``probability`` among those that are not rejected, which were equal before the data;
            None for rejected ones.
        per_context: The recommended point in each of several contexts.
        missing: Why a part is missing, in whole sentences.
        refuted: That data refuted the model, and what to do, if they did.
    """

    study: Study | None = None
    recommended: Recommendation | None = None
    at_recommended: Prediction | None = None
    pending: dict[int, Prediction] = field(default_factory=dict)
    gain: ExpectedGain | None = None
    at_batch: list[Prediction] = field(default_factory=list)
    importance: Importance | None = None
    models: list[dict[str, Any]] = field(default_factory=list)
    per_context: dict[tuple[float, ...], Recommendation] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    refuted: str | None = None


def summary_at(place: str | os.PathLike[str], name: str) -> ModelSummary:
    """The summary of a study whose strategy is made from its description. If it cannot be made,
    it says why."""
    from botorch_ext.studies.study import Study

    try:
        study = Study.only_read(place, name)
    except StudyError as error:
        return ModelSummary(missing=[f"What the model says is not shown: {_said(error)}."])
    return summary_of(study)


def summary_of(study: Study) -> ModelSummary:
    """The summary of a study. A part that cannot be computed is left out, with the reason.

    Args:
        study: The study, with or without trials.
    """
    from botorch_ext.domains import Box

    strategy, missing = study.strategy, []
    trials = strategy.history.trials
    if not len(strategy.evaluated()[0]):
        return ModelSummary(missing=["The model knows no value yet."])
    context = trials[-1].context if trials else None
    if strategy.context_space is not None and context is None:
        return ModelSummary(missing=["No context has been seen yet."])

    def tried(what: str, compute: Callable[[], T]) -> T | None:
        try:
            return compute()
        except (ValueError, RuntimeError) as error:
            missing.append(f"{what}: {_said(error)}.")
            return None

    found = tried("The recommended point is not known", lambda: study.recommended(context))
    if found is None:
        return ModelSummary(missing=missing)
    pending = study.pending[:_MOST_PENDING]
    points = [trials[id] for id in pending]
    at_pending = tried(
        "Pending trials have no prediction",
        lambda: _rows(study.predict(points, levels=LEVELS)) if points else [],
    )
    gain = tried("The next batch is not known", lambda: _gain(study, context))
    importance = None
    if isinstance(strategy.domain, Box):
        importance = tried("Importance is not known", lambda: study.importance(context))
    (at_recommended,) = _rows(study.predict(found.x, context=context, levels=LEVELS))
    at_batch = gain and _rows(study.predict(gain.x, context=context, levels=LEVELS))
    return ModelSummary(
        study,
        found,
        at_recommended,
        dict(zip(pending, at_pending or [], strict=False)),
        gain,
        at_batch or [],
        importance,
        tried("Candidate models are not known", lambda: _models(study)) or [],
        tried("Other contexts are not known", lambda: _per_context(study)) or {},
        missing,
        tried("Whether data refute the model is not known", lambda: _refuted(study)),
    )


def refuted_in_words(place: str | os.PathLike[str], name: str) -> str | None:
    """What `ModelSummary.refuted` says of a study, whose strategy is made from its description;
    None if it cannot be made."""
    from botorch_ext.studies.study import Study

    try:
        return _refuted(Study.only_read(place, name))
    except StudyError:
        return None


def _refuted(study: Study) -> str | None:
    num = study.report().get("refuted_at")
    if num is None:
        return None
    return (
        f"The model was refuted after {counted(num, 'result')}: no function with the RKHS bound, "
        "the kernel, the noise and the misspecification of this study explains them (this is false "
        "with probability delta at most). Its confidence bounds cannot be trusted. Begin another "
        "study with a larger rkhs_bound, a shorter lengthscale or a larger misspecification, and "
        "attach the results."
    )


def _said(error: Exception) -> str:
    return cut(printable(str(error)), _MOST_CHARACTERS)


def _rows(found: Predictions) -> list[Prediction]:
    parts = found.mean, found.quantiles, found.observation_quantiles
    return [Prediction(*row) for row in zip(*(part.tolist() for part in parts), strict=True)]


def _gain(study: Study, context: Tensor | None) -> ExpectedGain:
    """The next batch, with as many points as the last batch; with one point if an ask is slow."""
    from botorch_ext.strategies import Asked

    num, is_slow = 0, len(study.strategy.evaluated()[1]) > _MOST_FOR_A_BATCH
    for event in reversed(study.events):
        if isinstance(event, Asked):
            num += 1
        elif num:
            break
    return study.expected_gain(1 if is_slow else min(max(num, 1), _MOST_BATCH), context=context)


def _models(study: Study) -> list[dict[str, Any]]:
    rows = study.report().get("models")
    if not isinstance(rows, list) or len(rows) < 2:
        return []
    evidence = [row.get("log_marginal_likelihood") for row in rows]
    largest = max((each for each in evidence if each is not None), default=0.0)
    weights = [None if each is None else math.exp(each - largest) for each in evidence]
    total = sum(each for each in weights if each is not None)
    return [
        row | {"probability": None if weight is None else weight / total}
        for row, weight in zip(rows, weights, strict=True)
    ]


def _per_context(study: Study) -> dict[tuple[float, ...], Recommendation]:
    """If there are several contexts and not too many."""
    trials = study.strategy.history.trials
    contexts = {tuple(each.context.tolist()) for each in trials if each.context is not None}
    if not 2 <= len(contexts) <= _MOST_CONTEXTS:
        return {}
    return {each: study.recommended(list(each)) for each in sorted(contexts)}
