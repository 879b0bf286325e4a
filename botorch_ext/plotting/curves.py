"""Curves over the steps of a study: regret, best value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from botorch_ext.checks import short
from botorch_ext.plotting.style import PALETTE, axes_or_new, to_numpy
from botorch_ext.strategies import Strategy
from botorch_ext.studies.compare import Comparison
from botorch_ext.studies.run import RunResult
from botorch_ext.studies.study import Study
from botorch_ext.studies.traces import Trace, Traces

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE_STYLES = ("-", "--", "-.", ":")
_MARKERS = "os^Dv*P"
_NUM_MARKERS = 6  # on a line

Center = Literal["mean", "median"]
Curves = Mapping[str, Any]


def plot_regret(
    curves: Curves | Trace | Traces | RunResult | Study | Strategy,
    ax: Axes | None = None,
    *,
    cumulative: bool = True,
    center: Center = "mean",
) -> Axes:
    """Regret against the number of evaluations, one line with a band for each method.

    Args:
        curves: From the name of a method to its regret per step, ``seeds x T`` (or ``T``), in units
            of the objective; NumPy arrays, tensors or nested lists. Or a `Trace`, a `RunResult`, a
            study or a strategy, alone or under names, or under a name a list of them with equally
            many evaluations, one for each seed. Or the `Traces` of many seeds, likewise. A
            trace knows the maximum. A result, a study and a strategy do not: their regret is how
            much worse the value of each trial that they asked is than the best value known inside
            the space, in the order of telling. The best value may be one that was attached or given
            as initial data, so that a start that nobody improves on shows as regret that stays
            positive. Attached results are no evaluations of the curve, and values from outside the
            space count for nothing.
        ax: Where to draw; a new figure unless given.
        cumulative: Whether to add up the steps.
        center: "mean" (band: plus and minus one standard error) or "median" (band: quartiles); the
            axis label says which. One seed has no band.

    Returns:
        The axes.

    Raises:
        ValueError: No curve, one of the wrong shape, a study without a trial that was asked and
            told, or an unknown center.
    """
    if isinstance(curves, Trace | Traces | RunResult | Study | Strategy):
        curves = {_name_of(curves): curves}
    if isinstance(curves, Mapping):
        curves = {name: _regret_of(name, own) for name, own in curves.items()}
    arrays = _as_arrays(curves)
    if cumulative:
        arrays = {name: values.cumsum(axis=1) for name, values in arrays.items()}
    label = "cumulative regret" if cumulative else "regret per step"
    return _plot_curves(arrays, ax, label, center)


def plot_comparison(comparison: Comparison, *, cumulative: bool = True) -> list[Axes]:
    """Regret of all methods of a comparison, on axes of their own for each problem.

    Args:
        comparison: What `compare` returned.
        cumulative: As for `plot_regret`.

    Returns:
        The axes of the problems, side by side in a new figure.
    """
    import matplotlib.pyplot as plt

    num = len(comparison.traces)
    _, axes = plt.subplots(1, num, figsize=(5.0 * num, 4.0), squeeze=False, layout="constrained")
    for ax, (problem, methods) in zip(axes[0], comparison.traces.items(), strict=True):
        plot_regret(methods, ax, cumulative=cumulative).set_title(problem)
    return list(axes[0])


def plot_best_value(
    curves: Curves,
    ax: Axes | None = None,
    *,
    minimize: bool = False,
    center: Center = "mean",
) -> Axes:
    """Best value so far against the number of evaluations, one line with a band for each method.

    Args:
        curves: From the name of a method to its values in order of evaluation, ``seeds x T`` (or
            ``T``), in units of the objective; NaN where an evaluation failed.
        ax: Where to draw; a new figure unless given.
        minimize: Whether the best value is the smallest.
        center: "mean" (band: plus and minus one standard error) or "median" (band: quartiles); the
            axis label says which. One seed has no band.

    Returns:
        The axes.

    Raises:
        ValueError: No curve, one of the wrong shape, or an unknown center.
    """
    better = np.fmin if minimize else np.fmax
    arrays = {name: better.accumulate(v, axis=1) for name, v in _as_arrays(curves).items()}
    return _plot_curves(arrays, ax, "best value so far", center)


def _name_of(played: Trace | Traces | RunResult | Study | Strategy) -> str:
    if isinstance(played, Traces):
        return "regret"
    if isinstance(played, Study):
        return played.name
    return type(played if isinstance(played, Strategy) else played.strategy).__name__


def _regret_of(name: str, played: Any) -> Any:
    """The regret per step of what was played, or of each of a list; other things as they are."""
    if isinstance(played, list | tuple):
        rows = [_regret_of(name, each) for each in played]
        lengths = sorted({len(row) for row in rows if np.ndim(row) == 1})
        if len(lengths) > 1:
            raise ValueError(
                f"curves[{name!r}] must have equally many evaluations for each seed, got {lengths}"
            )
        return np.stack([to_numpy(row) for row in rows]) if lengths else played
    if isinstance(played, Trace | Traces):
        return played.regret
    if isinstance(played, RunResult | Study):
        played = played.strategy
    if not isinstance(played, Strategy):
        return played
    history = played.history
    asked = [id for id in history.values if not history.is_attached(id)]
    if not asked or history.best() is None:
        raise ValueError(f"curves[{name!r}] must have a trial that was asked and told, got none")
    # A result beyond a limit counts as much as the worst one.
    worst = min(map(history.values.__getitem__, asked))
    own = [history.values[id] if history.is_eligible(id) else worst for id in asked]
    known = [value for id, value in history.values.items() if history.is_eligible(id)]
    if played.initial is not None:
        known.append(float((history.sign * played.initial[1]).max()))
    return max(known) - np.array(own)


def _plot_curves(
    arrays: dict[str, np.ndarray], ax: Axes | None, label: str, center: Center
) -> Axes:
    if center not in ("mean", "median"):
        raise ValueError(f"center must be 'mean' or 'median', got {center!r}")
    ax = axes_or_new(ax)
    for i, (name, values) in enumerate(arrays.items()):
        color = PALETTE[i % len(PALETTE)]
        style = _LINE_STYLES[i // len(PALETTE) % len(_LINE_STYLES)]
        steps = np.arange(1, values.shape[1] + 1)
        middle, lower, upper = _summary(values, center)
        every = max(len(steps) // _NUM_MARKERS, 1)
        # Not one upon the other: lines may lie on each other.
        mark = {
            "marker": _MARKERS[i % len(_MARKERS)],
            "markevery": (i * every // len(arrays), every),
        }
        ax.plot(steps, middle, color=color, linestyle=style, linewidth=2, label=name, **mark)
        if len(values) > 1:
            ax.fill_between(steps, lower, upper, color=color, alpha=0.2, linewidth=0)
    ax.set_xlim(1, max(2, *(values.shape[1] for values in arrays.values())))
    ax.set_xlabel("evaluations")
    ax.set_ylabel(f"{label}\n({_describe_band(arrays, center)})")
    ax.grid(alpha=0.3)
    ax.legend(fontsize="small")
    return ax


def _summary(values: np.ndarray, center: Center) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if center == "median":
        lower, middle, upper = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
        return middle, lower, upper
    middle = values.mean(axis=0)
    if len(values) == 1:
        return middle, middle, middle
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return middle, middle - error, middle + error


def _describe_band(arrays: dict[str, np.ndarray], center: Center) -> str:
    seeds = sorted({len(values) for values in arrays.values()})
    count = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    if seeds == [1]:
        return "1 seed"
    band = "mean ± standard error" if center == "mean" else "median and quartiles"
    return f"{band}, {count} seeds"


def _as_arrays(curves: Curves) -> dict[str, np.ndarray]:
    if not isinstance(curves, Mapping):
        raise ValueError(
            "curves must be a dict from the name of a method to its numbers, such as the regret of "
            f"a Trace or the Y of a result, got {short(curves)}"
        )
    if len(curves) == 0:
        raise ValueError("curves must hold at least one method, got none")
    arrays = {}
    for name, values in curves.items():
        try:
            array = np.atleast_2d(to_numpy(values))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"curves[{name!r}] must be numbers, such as the regret of a Trace or the Y of a "
                f"result, got {short(values)}"
            ) from error
        if array.ndim != 2 or 0 in array.shape:
            raise ValueError(
                f"curves[{name!r}] must have shape (seeds, T) or (T,), got {array.shape}"
            )
        arrays[name] = array
    return arrays
