"""Pictures of a page are drawn from known numbers, which are read back from axes and marks."""

import math
from itertools import accumulate
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.dates import num2date

import botorch_ext as bx
from botorch_ext.page.groups import parts
from botorch_ext.page.model_summary import ModelSummary, Prediction
from botorch_ext.page.overview import read_overview
from botorch_ext.page.pictures import pictures
from botorch_ext.strategies import RandomSearch
from tests.helpers import rbf
from tests.page.conftest import kept_figures
from tests.page.studies import HOUR, TRIALS, begun, seen

BLUE, RED, GREEN, ORANGE, GREY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#7f7f7f"
COLORS = {"told": BLUE, "attached": GREEN, "pending": ORANGE, "failed": RED, "abandoned": GREY}
NOW = 1_795_000_000.0
CODES = {"water": 0.0, "ethanol": 1.0, "dmso": 2.0}
X = np.array([[a, b, c, CODES[d]] for a, b, c, d, _ in TRIALS])
VALUES = [value for *_, value in TRIALS[:4]]
AT = Prediction(4.0, [0.0, 2.0, 6.0, 8.0], [-1.0, 1.0, 7.0, 9.0])
POINT = [50.0, 0.01, 3.0, 2.0]
SUMMARY = ModelSummary(
    recommended=SimpleNamespace(
        x=POINT,
        context=None,
        probability=0.625,
        shortfall=0.5,
        is_evaluated=False,
        feasibility=None,
    ),
    at_recommended=AT,
    gain=SimpleNamespace(x=[POINT] * 2, gain=1.5, probability=0.4, noise_std=0.3),
    at_batch=[Prediction(3.0, [0.0, 2.0, 4.0, 8.0], []), Prediction(5.0, [4.5, 4.6, 5.4, 5.5], [])],
    pending={6: AT},
)


@pytest.fixture(scope="module", params=[False, True], ids=["maximise", "minimise"])
def shown(request, tmp_path_factory):
    """The pictures of the trials, with the axes of each."""
    path = tmp_path_factory.mktemp("shown") / "lab.db"
    begun(path, request.param)
    at = [(NOW + id * HOUR, NOW + (10 + id) * HOUR if id < 6 else None) for id in range(7)]
    at[3] = (None, NOW + 12 * HOUR)
    infos = {id: {"mean": 0.5 * id, "std": 0.4, "model": id % 2} for id in range(7)}
    overview = seen(path, infos, at)
    with kept_figures() as figures:
        found = pictures(overview, parts(overview), NOW + 20 * HOUR, SUMMARY)
    return request.param, with_axes(found, figures)


def with_axes(found, figures):
    """Pictures by their titles, each with its axes."""
    figures = iter(figures)
    return {
        each.title: (each, [ax for _ in each.svgs for ax in next(figures).axes]) for each in found
    }


def lines(ax):
    """The points of the lines by their labels."""
    return {line.get_label(): np.asarray(line.get_xydata()) for line in ax.lines}


def near(found, expected):
    np.testing.assert_allclose(np.asarray(found, dtype=float), expected, rtol=1e-9, atol=1e-9)


def test_values_and_the_best_so_far(shown):
    minimize, drawn = shown
    picture, (ax,) = drawn["Values, and the best so far"]
    found = lines(ax)
    best = [3.0, -1.0, -1.0, -1.0] if minimize else [3.0, 3.0, 7.5, 7.5]
    near(found["best so far"], [*zip([0, 1, 2, 3, 6], [*best, best[-1]], strict=True)])
    near(found["told"], [(id, VALUES[id]) for id in (0, 1, 2)])
    near(found["attached"], [(3, 5.0)])
    for state, id in (("failed", 4), ("abandoned", 5), ("pending", 6)):
        near(found[state], [(id, 0.0)])  # at the bottom, in shares of the axes
        (line,) = (each for each in ax.lines if each.get_label() == state)
        assert line.get_transform() == ax.get_xaxis_transform()
    near(found["best"], [(1, -1.0) if minimize else (2, 7.5)])
    near(found["expected next"], [(6, 4.0), (8, 2.5 if minimize else 5.5)])
    for line in ax.lines:
        if line.get_label() in COLORS:
            assert line.get_color().lower() == COLORS[line.get_label()].lower()
    assert ("-1 %, of trial 1" if minimize else "7.5 %, of trial 2") in picture.words
    assert ("falls" if minimize else "rises") in picture.words
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("trial", "yield (%)")


def test_the_bands_of_calibration_hold_what_they_should(tmp_path, figures):
    """Shares and bars by normal quantiles of 50 % and 95 %; the noise of .3 widens .4 to .5."""
    scores = [-2.1, -1.95, -1.2, -0.69, -0.65, 0.0, 0.66, 0.7, 1.93, 1.99]
    trials = [(20.0 + i, 0.1, 2, "water", i + 0.5 * score) for i, score in enumerate(scores)]
    study = begun(tmp_path / "lab.db", trials=trials[:6])
    for *numbers, value in trials[6:]:
        params = dict(zip(study.strategy.domain.parameters, numbers, strict=True))
        study.tell(study.ask(actions=study.strategy.domain.point(params)[None]), value)
    overview = seen(tmp_path / "lab.db", {i: {"mean": float(i), "std": 0.4} for i in range(10)})
    found = pictures(overview, [], NOW, SUMMARY)
    picture, (ax,) = with_axes(found, figures)["Predicted against measured"]
    assert "10 trials had" in picture.words
    assert "30 % of the values were inside the band that should hold 50 %" in picture.words
    assert "80 % inside the band that should hold 95 %" in picture.words
    inside = {bars.get_label(): bars for bars in ax.containers}
    for label, ids in (("inside 95 %", range(1, 9)), ("outside", (0, 9))):
        near(inside[label][0].get_xydata(), [(i, i + 0.5 * scores[i]) for i in ids])
        (bars,) = inside[label][2]
        reach = [(i - 0.5 * 1.959964, i + 0.5 * 1.959964) for i in ids]
        ends = np.array(bars.get_segments())[:, :, 0]
        np.testing.assert_allclose(ends, reach, atol=1e-5)
    low, high = ax.get_xlim()
    assert (low, high) == ax.get_ylim() and low < -1.05 and high > 9.995
    diagonal = lines(ax)["as predicted"]
    near(diagonal[:, 0], diagonal[:, 1])


def test_the_bands_of_calibration_have_the_noise_of_each_value(tmp_path, figures):
    """One measurement with the noise of .3, a standard error of 1.2, an average of 9."""
    study = bx.Study(tmp_path / "lab.db", RandomSearch(bx.Box([[0.0], [1.0]])))
    first, second, third = study.ask(3)
    study.tell(first, 0.0)
    study.tell(second, 0.0, std=1.2)
    study.tell(third, [0.0] * 9)
    overview = seen(tmp_path / "lab.db", {i: {"mean": 0.0, "std": 0.4} for i in range(3)})
    found = pictures(overview, [], NOW, SUMMARY)
    _, (ax,) = with_axes(found, figures)["Predicted against measured"]
    (inside,) = (bars for bars in ax.containers if bars.get_label() == "inside 95 %")
    (bars,) = inside[2]
    ends = np.array(bars.get_segments())[:, 1, 0]
    np.testing.assert_allclose(ends, 1.959964 * np.hypot(0.4, [0.3, 1.2, 0.1]), atol=1e-5)


def test_values_against_each_coordinate(shown):
    _, drawn = shown
    _, axes = drawn["Values against each coordinate"]
    assert [ax.get_xscale() for ax in axes] == ["linear", "log", "linear", "linear"]
    for j, ax in enumerate(axes):
        found = lines(ax)
        near(found["told"], [*zip(X[:3, j], VALUES[:3], strict=True)])
        near(found["attached"], [(X[3, j], 5.0)])
        for state, id in (("failed", 4), ("abandoned", 5), ("pending", 6)):
            near(found[state], [(X[id, j], 0.0)])
    ticks = [label.get_text() for label in axes[3].get_xticklabels()]
    assert ticks == ["water", "ethanol", "dmso"] and axes[3].get_xticks().tolist() == [0, 1, 2]


def test_all_parameters_together_are_on_their_own_scales(shown):
    """From 0 to 1 between the least and the largest number of a row; log ones by logarithms."""
    minimize, drawn = shown
    _, (ax,) = drawn["All parameters together"]
    (bundle,) = (each for each in ax.collections if isinstance(each, LineCollection))
    order = sorted(range(4), key=lambda id: VALUES[id], reverse=minimize)  # the best on top
    rows = []
    for id in order:
        temperature, catalyst, equivalents, code = X[id]
        across = [(temperature - 20) / 60, math.log10(catalyst / 1e-4) / 4]
        across += [(equivalents - 1) / 4, code / 2, (VALUES[id] + 1) / 8.5]
        rows.append([*zip(across, range(5), strict=True)])
    near(bundle.get_segments(), rows)
    near(bundle.get_array(), [VALUES[id] for id in order])
    assert bundle.get_cmap().name == ("viridis_r" if minimize else "viridis")
    near(ax.lines[0].get_xydata(), rows[-1])
    marks = {text.get_text(): text.get_position()[0] for text in ax.texts}
    near([marks[each] for each in ("20", "80", "0.0001", "ethanol")], [0, 1, 0, 0.5])
    assert {"temperature (°C)", "catalyst (mol/l)", "yield (%)"} <= set(marks)


def test_a_line_has_a_gap_where_a_parameter_does_not_count(tmp_path, figures):
    space = bx.Space(
        method=bx.Choice(["oven", "laser"]),
        power=bx.Real(1, 10),
        conditions={"power": ("method", ["laser"])},
    )
    study = bx.Study(tmp_path / "lab.db", RandomSearch(space))
    study.attach({"method": "oven"}, 1.0)
    study.attach({"method": "laser", "power": 4.0}, 2.0)
    found = pictures(read_overview(tmp_path / "lab.db"), [], NOW, ModelSummary())
    _, (ax,) = with_axes(found, figures)["All parameters together"]
    (bundle,) = (each for each in ax.collections if isinstance(each, LineCollection))
    near([path.vertices[1][0] for path in bundle.get_paths()], [math.nan, 0.5])


def test_feedback_runs_from_the_ask_to_the_end(shown):
    _, drawn = shown
    picture, (ax,) = drawn["When trials were asked and told"]
    known = {each.get_label(): each for each in ax.collections}
    for state, ids in (
        ("told", (0, 1, 2)),
        ("failed", (4,)),
        ("abandoned", (5,)),
        ("pending", (6,)),
    ):
        for id, ((start, height), (end, _)) in zip(ids, known[state].get_segments(), strict=True):
            seconds = [num2date(each).timestamp() - NOW for each in (start, end)]
            last = 20 if state == "pending" else 10 + id
            np.testing.assert_allclose(seconds, [id * HOUR, last * HOUR], atol=1e-2)
            assert height == id
    assert "attached" not in known and ax.yaxis_inverted()
    assert "within 10 h, the slowest took 10 h" in picture.words
    assert "out of order" not in picture.words


@pytest.mark.parametrize("minimize", [False, True])
def test_each_context_has_a_line_of_its_best_values(tmp_path, figures, minimize):
    box, day = bx.Box([(0.0, 1.0)]), bx.Box([(0.0, 9.0)])
    study = bx.Study(tmp_path / "lab.db", RandomSearch(box, context_domain=day), minimize=minimize)
    values = {2.0: [(0, 3.0), (2, 1.0), (4, 5.0)], 7.0: [(1, -2.0), (3, 0.5)]}
    for id in range(5):
        context = 7.0 if id % 2 else 2.0
        study.tell(study.ask(context=[context]), dict(values[context])[id])
    found = pictures(read_overview(tmp_path / "lab.db"), [], NOW, ModelSummary())
    _, (ax,) = with_axes(found, figures)["Best so far in each context"]
    for context, told in values.items():
        best = list(accumulate((value for _, value in told), min if minimize else max))
        steps = zip([*(id for id, _ in told), 4], [*best, best[-1]], strict=True)
        near(lines(ax)[f"({context:g})"], list(steps))
        dots = [line.get_xydata().tolist() for line in ax.lines if line.get_marker() == "o"]
        assert [list(pair) for pair in told] in dots


def test_rounds_have_their_trials_their_late_values_and_what_was_left(tmp_path, figures):
    """Two rounds: a value of the first comes when the second has begun."""
    points = bx.FiniteSet(np.linspace(0, 1, 30)[:, None])
    made = bx.algorithms.bpe_delay(
        points, rbf(0.3), noise_variance=0.01, width=0.5, horizon=40, delay=3
    )
    study, waiting = bx.Study(tmp_path / "lab.db", made), []
    while len(study.strategy.history.trials) < 24:
        waiting.append(study.ask())
        if len(waiting) > 3:
            trial = waiting.pop(0)
            study.tell(trial, float(trial.x.sin()))
    overview = read_overview(tmp_path / "lab.db")
    (part,) = (each for each in parts(overview) if each.title.startswith("The round"))
    rounds = {}
    for trial in study.strategy.history.trials:
        rounds.setdefault(trial.info["round"], []).append(trial)
    begun_at = [own[0].id for own in rounds.values()]
    assert len(rounds) > 1
    assert [ids for _, ids in part.members] == [[t.id for t in own] for own in rounds.values()]
    for stage, own, then in zip(
        part.stages, rounds.values(), [*begun_at[1:], math.inf], strict=True
    ):
        assert [story.id for story in stage.stories] == [trial.id for trial in own]
        # Four trials are on their way: a value comes after the ask of the third trial behind it.
        told = [trial.id for trial in own if trial.id + 3 < 24]
        assert stage.num_late == sum(id + 4 > then for id in told)
        opening = own[0].info.get("opening") or own[0].info["plan"]
        assert stage.share == opening["volume"]
    found = pictures(overview, [part], NOW, ModelSummary())
    _, (ax,) = with_axes(found, figures)[part.title]
    rows = {tuple(pair) for line in ax.lines for pair in line.get_xydata().tolist()}
    assert {id for id, _ in rows} >= set(range(24))
