"""Models of a strategy: their tests over time, and their confidence bands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor

from botorch_ext.checks import whole_number
from botorch_ext.domains import Box
from botorch_ext.plotting.slices import (
    Band,
    Slice,
    draw_band,
    draw_evaluations,
    draw_truth,
    label_slice,
)
from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy
from botorch_ext.strategies.adaptive.bounds_strategy import BoundsStrategy
from botorch_ext.strategies.adaptive.prediction_tests import RunningTest, Side

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ALIVE, _REJECTED, _GRID = PALETTE[0], PALETTE[1], "0.6"
_SIDES: tuple[Side, ...] = ("optimistic", "pessimistic")
_STYLES = ("-", "--", "-.", ":")


def plot_models(strategy: BoundsStrategy, ax: Axes | None = None) -> Axes:
    """The models over time: when each played, how near its tests came to refuting it, and when they
    did.

    One row for each model, in the order of the report. The curve in a row is the absolute running
    error of the model's predictions as a share of its bound: it starts on the base line, and where
    it passes the dotted line the model is rejected. With tests of two sides, that of upper bounds
    runs upwards from the middle and that of lower bounds downwards. Strategies without tests show
    only when each model played (for `expected_ucb`: was the most probable one).

    Args:
        strategy: Any strategy over several models that was told something it asked.
        ax: Where to draw; a new figure unless given, tall enough for the models.

    Returns:
        The axes.

    Raises:
        ValueError: No strategy over several models, or one that was told nothing yet.
    """
    _require_models(strategy)
    plays = strategy.plays
    if not plays:
        raise ValueError("strategy must have been told something it asked, got no observation")
    models = strategy.report()["models"]
    tests: list[RunningTest] | None = getattr(strategy, "tests", None)
    sides: list[Side] = [side for side in _SIDES if any(test.side == side for test in tests or [])]
    ax = axes_or_new(ax, (8.0, 1.3 + (0.42 + 0.14 * len(sides)) * len(models)))
    first, now = plays[0].t - 1, plays[-1].t
    size = min(5.0, max(3.0, 400 / (now - first)))
    words: list[tuple[str, str]] = []
    for id, model in enumerate(models):
        rejected = model["rejected_at"]
        color = _ALIVE if rejected is None else _REJECTED
        end = now if rejected is None else rejected
        tracks = [_Track.of(side, len(sides), id, tests or []) for side in sides]
        for track in tracks:
            _draw_track(ax, track, first, end, color, size)
        num_played = sum(len(track.times) for track in tracks)
        if not tracks:
            times = [play.t for play in plays if play.model == id]
            num_played = len(times)
            ax.hlines(id, first, end, color=color, linewidth=0.8, alpha=0.6)
            _draw_marks(ax, times, [id] * len(times), color, size)
        refuted, stays = rejected, strategy.alive == [id] and rejected is None
        if stays:
            refuted = strategy.all_rejected_at
        if refuted is not None:
            height = _height_of_refutation(tracks, refuted, id)
            _draw_cross(ax, refuted, height, PALETTE[6] if stays else _REJECTED)
        verdict = "" if refuted is None else f", {'refuted' if stays else 'rejected'} at {refuted}"
        words.append((f"{num_played} play{'s' * (num_played != 1)}{verdict}", color))
    ax.set_yticks(range(len(models)), [model["name"] for model in models], fontsize="small")
    ax.set_ylim(len(models) - 0.4, -0.6)
    ax.set_xlim(first, now + 0.02 * (now - first))
    ax.tick_params(axis="y", length=0)
    ax.locator_params(axis="x", integer=True)
    beside = ax.secondary_yaxis("right")
    beside.set_yticks(range(len(models)), [text for text, _ in words], fontsize="small")
    beside.tick_params(axis="y", length=0)
    for label, (_, color) in zip(beside.get_yticklabels(), words, strict=True):
        label.set_color(color)
    for spine in (*(ax.spines[edge] for edge in ("left", "right", "top")), beside.spines["right"]):
        spine.set_visible(False)
    ax.set_xlabel("observations" + f" (the first {first} initial)" * (first > 0))
    _add_legend(ax, sides, strategy)
    return ax


def plot_model_bands(
    strategy: BoundsStrategy,
    ax: Axes | None = None,
    *,
    truth: Callable[[Tensor], Tensor] | None = None,
    dim: int = 0,
    slice_at: Tensor | Sequence[float] | None = None,
    num_points: int = 200,
    num_shown: int = 5,
) -> Axes:
    """The confidence bands of the models that are not eliminated, along one coordinate, as the next
    ask sees them.

    The models stand in the legend in the order of their marginal likelihood, and keep their colours
    through the study. Of many models, the first few have bands of their own, and all together a
    grey envelope.

    Args:
        strategy: Any strategy over several models.
        ax: Where to draw; a new figure unless given.
        truth: The noiseless function, from ``n x d`` to ``n``, drawn dashed.
        dim: The coordinate.
        slice_at: ``d``: the point the slice runs through; needed on boxes where d > 1.
        num_points: How many grid points on a box; of a finite set all points are drawn.
        num_shown: How many models have bands of their own at most.

    Returns:
        The axes.

    Raises:
        ValueError: No strategy over several models, a finite set of several coordinates, or a
            missing or impossible argument.
    """
    _require_models(strategy)
    num_shown = whole_number(num_shown, "num_shown", least=1)
    if isinstance(strategy.domain, Box):
        line = Slice.through_box(strategy.domain.bounds, dim, slice_at, num_points)
    else:
        line = Slice.through_candidates(strategy.domain.points, dim)
    means, half_widths = (to_numpy(values) for values in strategy.bands(line.points))
    models = strategy.report()["models"]
    evidence = [models[id]["log_marginal_likelihood"] for id in strategy.alive]
    shown = sorted(range(len(means)), key=lambda position: -evidence[position])[:num_shown]
    ax = axes_or_new(ax, (8.0, 4.4))
    if len(means) > num_shown:
        lower, upper = (means - half_widths).min(axis=0), (means + half_widths).max(axis=0)
        label = f"all bands of {len(means)} models"
        look: dict[str, Any] = {"color": "0.88", "linewidth": 0, "label": label}
        ax.fill_between(line.across, lower, upper, **look)
    for place, position in enumerate(shown):
        id = strategy.alive[position]
        # Black is for the truth and what was seen of it.
        look = {"color": PALETTE[id % 6], "style": _STYLES[(id + id // 6) % len(_STYLES)]}
        # Where bands overlap, the most evident model is on top.
        look |= {"alpha": 0.36 / len(shown), "edges": True, "zorder": 3 - place / len(shown)}
        draw_band(
            ax, line, Band(means[position], half_widths[position], strategy.names[id], **look)
        )
    if truth is not None:
        draw_truth(ax, line, truth)
    X, Y = strategy.evaluated()
    if len(X):
        draw_evaluations(ax, line, to_numpy(X), to_numpy(Y), PALETTE[6], markersize=3.5)
    label_slice(ax, line)
    # Beside the picture: bands fill it.
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1, 1), "frameon": False}
    title = "means and confidence bands,\nlikeliest model first"
    ax.legend(fontsize="small", title=title, title_fontsize="small", alignment="left", **where)
    return ax


def _require_models(strategy: BoundsStrategy) -> None:
    if not isinstance(strategy, BoundsStrategy):
        raise ValueError(
            f"strategy must be one that plays confidence bounds, got a {type(strategy).__name__}"
        )


# --- rows of the table ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Track:
    """The tests of one model on one side, and where in the picture they go.

    Args:
        base: The height of no error.
        limit: The height of the bound.
        times: When it was tested.
        shares: The running error as a share of the bound.
        fails: Whether it was more.
    """

    base: float
    limit: float
    times: list[int]
    shares: list[float]
    fails: list[bool]

    @classmethod
    def of(cls, side: Side, num_sides: int, id: int, tests: list[RunningTest]) -> _Track:
        # The vertical axis points down.
        base, limit = id + 0.36, id - 0.36
        if num_sides == 2:
            base, limit = float(id), id - 0.4 if side == "optimistic" else id + 0.4
        own = [test for test in tests if (test.model, test.side) == (id, side)]
        times, shares = [test.t for test in own], [_share(test) for test in own]
        return cls(base, limit, times, shares, [test.fails for test in own])

    @property
    def heights(self) -> list[float]:
        return [self.base + min(share, 1.0) * (self.limit - self.base) for share in self.shares]


def _share(test: RunningTest) -> float:
    """How much of its bound the running error is."""
    if test.bound > 0:
        return abs(test.error) / test.bound
    return 1.0 if test.fails else 0.0


def _draw_track(ax: Axes, track: _Track, first: int, end: int, color: str, size: float) -> None:
    """The share of the bound as a curve of steps, from its base line to its limit."""
    ax.hlines(track.base, first, end, color=_GRID, linewidth=0.8)
    ax.hlines(track.limit, first, end, color=_GRID, linewidth=0.8, linestyle=":")
    last = track.heights[-1] if track.times else track.base
    times, heights = [first, *track.times, end], [track.base, *track.heights, last]
    look: dict[str, Any] = {"color": color, "alpha": 0.2, "linewidth": 0, "step": "post"}
    ax.fill_between(times, heights, track.base, **look)
    ax.step(times, heights, where="post", color=color, linewidth=1.2)
    _draw_marks(ax, track.times, track.heights, color, size)


def _draw_marks(
    ax: Axes, times: Sequence[int], heights: Sequence[float], color: str, size: float
) -> None:
    if not times:  # unclipped marks of no extent would confuse the layout
        return
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": size}
    ax.plot(times, heights, color=color, clip_on=False, zorder=3, **look)


def _draw_cross(ax: Axes, time: int, height: float, color: str) -> None:
    ax.plot(time, height, "X", color=color, markersize=9, markeredgecolor="white", zorder=4)


def _height_of_refutation(tracks: list[_Track], time: int, middle: float) -> float:
    """The bound that was exceeded; the middle of the row where there are no tests."""
    for track in tracks:
        if (time, True) in zip(track.times, track.fails, strict=True):
            return track.limit
    return middle


def _add_legend(ax: Axes, sides: list[Side], strategy: BoundsStrategy) -> None:
    dot: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5, "color": _ALIVE}
    ax.plot([], [], label="played", **dot)
    if sides:
        label = "|running error|"
        if len(sides) == 2:
            label += " (up: of upper bounds, down: of lower bounds)"
        ax.fill_between([], [], color=_ALIVE, alpha=0.2, linewidth=0, label=label)
        ax.plot([], [], color=_GRID, linewidth=0.8, linestyle=":", label="its bound")
    cross: dict[str, Any] = {"linestyle": "none", "marker": "X", "markersize": 9}
    if strategy.rejected:
        ax.plot([], [], color=_REJECTED, markeredgecolor="white", label="rejected", **cross)
    if strategy.all_rejected_at is not None:
        label = "refuted, stays as the last"
        ax.plot([], [], color=PALETTE[6], markeredgecolor="white", label=label, **cross)
    # Above the rows: inside it would hide them.
    where: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1)}
    columns = 5 if len(sides) < 2 else 3
    ax.legend(frameon=False, fontsize="small", ncols=columns, columnspacing=1.2, **where)
