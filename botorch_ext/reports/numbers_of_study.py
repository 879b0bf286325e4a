"""Numbers of a study: computes the model numbers of its page."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import Tensor

from botorch_ext.domains import Box
from botorch_ext.exceptions import StudyError
from botorch_ext.plotting.predictions import grid_of, near_slice, slice_through
from botorch_ext.reports.model_numbers import (
    LEVELS,
    CandidateModel,
    Contours,
    ImportanceNumbers,
    ModelNumbers,
    NextBatch,
    Prediction,
    Recommended,
    SliceNumbers,
)
from botorch_ext.reports.words import cut, printable
from botorch_ext.strategies import Asked
from botorch_ext.strategies.answers import Importance, Predictions, Recommendation
from botorch_ext.studies.study import Study

# Slices, points along one, and points along each side of contours.
_MOST_SLICES, _NUM_POINTS, _NUM_IN_PLANE = 12, 60, 36
_MOST_PENDING, _MOST_BATCH, _MOST_CONTEXTS = 50, 16, 12
# Values from which on each point of a batch takes tens of seconds.
_MOST_FOR_A_BATCH = 500
# Possible numbers of a column up to which each has a bar of its own.
_MOST_STEPS = 25
# How much is shown of the message of an error.
_MOST_CHARACTERS = 600
# Observations near a slice that are shown, the latest ones.
_MOST_NEAR = 80

T = TypeVar("T")


def numbers_at(place: str | os.PathLike[str], name: str) -> ModelNumbers:
    """The model numbers of a study whose strategy is made from its description. If it cannot be
    made, the numbers say why.

    Args:
        place: The path or the URL of the study.
        name: The name of the study.
    """
    try:
        study = Study.only_read(place, name)
    except StudyError as error:
        return ModelNumbers(missing=(f"What the model says is not shown: {_said(error)}.",))
    return numbers_of(study)


def numbers_of(study: Study) -> ModelNumbers:
    """The model numbers of a study. A part that cannot be computed is left out, with the reason.

    Args:
        study: The study, with or without trials.
    """
    strategy, missing = study.strategy, []
    trials = strategy.history.trials
    if not len(strategy.evaluated()[0]):
        return ModelNumbers(missing=("The model knows no value yet.",))
    context = trials[-1].context if trials else None
    if strategy.context_space is not None and context is None:
        return ModelNumbers(missing=("No context has been seen yet.",))

    def tried(what: str, compute: Callable[[], T]) -> T | None:
        try:
            return compute()
        except (ValueError, RuntimeError) as error:
            missing.append(f"{what}: {_said(error)}.")
            return None

    found = tried("The recommended point is not known", lambda: study.recommended(context))
    if found is None:
        return ModelNumbers(missing=tuple(missing))
    recommended = _recommended(study, found)
    predictions = tried("Pending trials have no prediction", lambda: _of_pending(study))
    batch = tried("The next batch is not known", lambda: _next_batch(study, context))
    importance, slices, contours = None, [], None
    if isinstance(box := strategy.domain, Box):
        importance = tried("Importance is not known", lambda: study.importance(context))
        active = box.active(found.x).tolist()
        order = [j for j in _order(importance, box.dim) if active[j]]
        at = study, box, found.x, context, order
        slices = tried("There are no slices", lambda: _slices(*at))
        contours = tried("There are no contours", lambda: _contours(*at))
    return ModelNumbers(
        recommended,
        predictions or {},
        batch,
        slices or [],
        None if importance is None else _importance(importance),
        contours,
        tried("Candidate models are not known", lambda: _models(study)) or [],
        tried("Other contexts are not known", lambda: _per_context(study)) or [],
        tuple(missing),
    )


def _said(error: Exception) -> str:
    return cut(printable(str(error)), _MOST_CHARACTERS)


def _of_pending(study: Study) -> dict[int, Prediction]:
    ids = study.pending[:_MOST_PENDING]
    trials = study.strategy.history.trials
    if not ids:
        return {}
    known = _predicted(study.predict([trials[id] for id in ids], levels=LEVELS))
    return dict(zip(ids, known, strict=True))


def _recommended(study: Study, found: Recommendation) -> Recommended:
    at = study.predict(found.x, context=found.context, levels=LEVELS)
    return Recommended(
        found.x.tolist(),
        [] if found.context is None else found.context.tolist(),
        _predicted(at)[0],
        found.probability,
        found.shortfall,
        found.is_evaluated,
    )


def _predicted(found: Predictions) -> list[Prediction]:
    rows = found.mean, found.std, found.quantiles, found.observation_quantiles
    parts = zip(*(part.tolist() for part in rows), strict=True)
    return [Prediction(mean, std, tuple(own), tuple(seen)) for mean, std, own, seen in parts]


def _next_batch(study: Study, context: Tensor | None) -> NextBatch:
    """The next batch, with as many points as the last batch; with one point if an ask is slow."""
    num, is_slow = 0, len(study.strategy.evaluated()[1]) > _MOST_FOR_A_BATCH
    for event in reversed(study.events):
        if isinstance(event, Asked):
            num += 1
        elif num:
            break
    num = 1 if is_slow else min(max(num, 1), _MOST_BATCH)
    found = study.expected_gain(num, context=context)
    return NextBatch(
        found.x.tolist(),
        _predicted(study.predict(found.x, context=context, levels=LEVELS)),
        found.gain,
        found.probability,
        found.noise_std,
    )


def _order(importance: Importance | None, dim: int) -> list[int]:
    """The numbers of the columns, the most important first if the importance is known."""
    if importance is None:
        return list(range(dim))
    return importance.total.argsort(descending=True, stable=True).tolist()


def _importance(importance: Importance) -> ImportanceNumbers:
    order = _order(importance, len(importance.names))
    first, total = importance.first_order[order], importance.total[order]
    return ImportanceNumbers(order, first.tolist(), total.tolist())


def _slices(
    study: Study, box: Box, x: Tensor, context: Tensor | None, order: Sequence[int]
) -> list[SliceNumbers]:
    X, Y = study.strategy.evaluated()
    if context is not None:
        is_here = (X[:, box.dim :] == context).all(dim=-1)
        X, Y = X[is_here], Y[is_here]
    X, found = X[:, : box.dim], []
    for j in order[:_MOST_SLICES]:
        line = slice_through(box, x, j, _NUM_POINTS)
        known = study.predict(line.points, context=context, levels=LEVELS)
        is_near = near_slice(box, x, X, j)
        near = zip(X[is_near, j].tolist(), Y[is_near].flatten().tolist(), strict=True)
        found.append(
            SliceNumbers(
                j,
                line.points[:, j].tolist(),
                known.mean.tolist(),
                known.quantiles.mT.tolist(),
                list(near)[-_MOST_NEAR:],
                j in box.stepped and len(line.points) <= _MOST_STEPS,
            )
        )
    return found


def _contours(
    study: Study, box: Box, x: Tensor, context: Tensor | None, order: Sequence[int]
) -> Contours | None:
    if len(order) < 2:
        return None
    chosen = order[:2]
    across, up = (grid_of(box, x, j, _NUM_IN_PLANE) for j in chosen)
    points = x.repeat(len(up), len(across), 1)
    points[..., chosen[0]], points[..., chosen[1]] = across, up[:, None]
    points = points.reshape(-1, box.dim)
    inside = box.contains(points)
    means: list[float | None] = [None] * len(points)
    known = study.predict(points[inside], context=context, levels=(0.5,)).mean
    for place, mean in zip(inside.nonzero().flatten().tolist(), known.tolist(), strict=True):
        means[place] = mean
    rows = [means[i : i + len(across)] for i in range(0, len(means), len(across))]
    return Contours((chosen[0], chosen[1]), across.tolist(), up.tolist(), rows)


def _models(study: Study) -> list[CandidateModel]:
    """The candidate models, with posterior probabilities that were equal before the data."""
    rows = study.strategy.report().get("models")
    if not isinstance(rows, list) or len(rows) < 2:
        return []
    evidence = [row.get("log_marginal_likelihood") for row in rows]
    largest = max((each for each in evidence if each is not None), default=0.0)
    weights = [None if each is None else math.exp(each - largest) for each in evidence]
    total = sum(each for each in weights if each is not None)
    return [
        CandidateModel(
            row["name"],
            row["times_played"],
            row["rejected_at"],
            None if weight is None else weight / total,
        )
        for row, weight in zip(rows, weights, strict=True)
    ]


def _per_context(study: Study) -> list[Recommended]:
    """The recommended point in each context of the trials, if there are several contexts and not
    too many."""
    history = study.strategy.history
    contexts = {tuple(each.context.tolist()) for each in history.trials if each.context is not None}
    if not 2 <= len(contexts) <= _MOST_CONTEXTS:
        return []
    return [_recommended(study, study.recommended(list(each))) for each in sorted(contexts)]
