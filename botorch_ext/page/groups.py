"""Groups of the trials of a study: by model, strategy, level or round, and by context."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from botorch_ext.page.overview import Overview, TrialStory
from botorch_ext.page.strategy_description import as_dict, bases, listed
from botorch_ext.page.words import short

# Members that are shown.
_MOST = 40
# What trials are sorted by.
_KINDS = {
    "model": "model whose prediction it was chosen by",
    "base": "strategy that was trusted with it",
    "level": "level that the study was at",
    "round": "round that it belongs to",
    "kind": "purpose it was asked for",
    "phase": "phase that the study was in",
}


@dataclass(frozen=True)
class Stage:
    """A round or a level, which follows the previous round or level.

    Args:
        name: The name of the stage.
        stories: The stories of its trials.
        num_late: How many of its values came after the next stage had begun.
        share: The share of the domain that was left when the stage began; None if that is not
            recorded.
    """

    name: str
    stories: list[TrialStory]
    num_late: int
    share: float | None


@dataclass(frozen=True)
class Part:
    """One way to sort the trials.

    Args:
        title: The title of its picture.
        words: The text beside the picture.
        members: The name of each group and the ids of its trials, ascending.
        stages: The groups as stages, if they are rounds or levels.
    """

    title: str
    words: str
    members: list[tuple[str, list[int]]]
    stages: list[Stage]


def by_context(overview: Overview) -> dict[tuple[float, ...], list[TrialStory]]:
    """The trials that have a value by their contexts, the one with the most values first. There are
    none if fewer than two contexts have values, or no context has two values."""
    found: dict[tuple[float, ...], list[TrialStory]] = {}
    for story in overview.eligible:
        if story.context:
            found.setdefault(tuple(story.context), []).append(story)
    if len(found) < 2 or len(found) == sum(map(len, found.values())):
        return {}
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def parts(overview: Overview) -> list[Part]:
    """All ways to sort the trials that the events record, and that tell trials apart."""
    return [part for key in _KINDS for part in _parts_by(key, overview)]


def _parts_by(key: str, overview: Overview) -> Iterator[Part]:
    stories: dict[int | str, list[TrialStory]] = {}
    for story in overview.stories:
        member = story.info.get(key)
        if isinstance(member, int | str):
            stories.setdefault(member, []).append(story)
    names: list[Any] = []
    if key in ("model", "base"):
        names = (_model_names if key == "model" else bases)(overview.description)
    if not stories or max(len(stories), len(names)) < 2:
        return
    others = [
        member for member in stories if isinstance(member, str) or not 0 <= member < len(names)
    ]
    shown_names = range(min(len(names), _MOST))
    members = [*shown_names, *sorted(others, key=lambda one: (isinstance(one, str), one))]
    title = f"The {_KINDS[key].split()[0]} of each trial"
    words = f"A dot is a trial, in the row of the {_KINDS[key]}."
    if key == "model":
        words += " Which models the values speak against, study.report() says."
    elif key == "level":
        words = " ".join([words, *_given_up(overview)])
    if (number := len(names) + len(others)) > _MOST:
        words += f" The first {_MOST} of {number} rows are shown."
    shown = [
        (_name_of(key, member, names), [story.id for story in stories.get(member, [])])
        for member in members[:_MOST]
    ]
    # Of insured methods a level is a bound and no stage.
    in_stages = key == "round" or (key == "level" and "cell" in overview.stories[0].info)
    yield Part(title, words, shown, _stages(key, stories) if in_stages else [])


def _name_of(key: str, member: int | str, names: list[Any]) -> str:
    if isinstance(member, str):
        return short(member)
    return short(str(names[member])) if 0 <= member < len(names) else f"{key} {member}"


def _stages(key: str, stories: dict[int | str, list[TrialStory]]) -> list[Stage]:
    stages = []
    members = sorted(stories, key=lambda member: stories[member][0].id)
    begins: list[float] = [stories[member][0].num_asked_before for member in members[1:]]
    for member, next_begins in zip(members, [*begins, float("inf")], strict=True):
        own = stories[member]
        late = [story for story in own if story.state == "told"]
        num_late = sum(story.num_asked_by_then > next_begins for story in late)
        stages.append(Stage(_name_of(key, member, []), own, num_late, _share(own[0].info)))
    return stages


def _share(info: dict[str, Any]) -> float | None:
    """The share of the domain that was left, as the first trial of a round records it."""
    for key in ("opening", "plan"):
        volume = as_dict(info.get(key)).get("volume")
        if isinstance(volume, int | float) and 0 <= volume <= 1:
            return float(volume)
    return None


def _given_up(overview: Overview) -> list[str]:
    """Levels that the data refuted, and when."""
    words = []
    for story in overview.stories:
        levels = [as_dict(each).get("level") for each in listed(story.info.get("refuted"))]
        named = [f"level {level}" for level in levels if isinstance(level, int)]
        if named:
            words.append(f"Refuted before trial {story.id}: {', '.join(named)}.")
    return words


def _model_names(plain: Any, depth: int = 0) -> list[Any]:
    """The names of the candidate models in a description; empty if there are none."""
    if not isinstance(plain, dict) or depth > 8:
        return []
    names = plain.get("names")
    if isinstance(names, list) and "kernels" in plain:
        return names
    return next((found for part in plain.values() if (found := _model_names(part, depth + 1))), [])
