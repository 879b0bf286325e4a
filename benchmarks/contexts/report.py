"""Report on contexts: what holds, and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.common.repeated_runs import column, mean_and_error
from benchmarks.common.tables import Row, markdown_table
from benchmarks.contexts import sensors
from benchmarks.contexts.claims import (
    PEPTIDE_CLAIMS,
    SENSOR_CLAIMS,
    claim_rows,
    played,
    verdict_rows,
)
from benchmarks.contexts.peptides import PEPTIDE_METHODS, PEPTIDE_SETTINGS
from benchmarks.contexts.reasons import (
    best_possible,
    hottest_shares,
    merged_picks,
    reference_rows,
    similarity_rows,
)
from benchmarks.contexts.sensors import (
    FIRST_STEPS,
    READINGS,
    SENSOR_SETTINGS,
)
from benchmarks.measured.binding_affinities import BindingAffinities
from benchmarks.measured.fitted_kernels import FittedModel
from benchmarks.measured.temperatures import Temperatures

_READINGS = {"largest": "largest reading", "mean": "mean reading"}


def verdict_report(sensor_rows: Sequence[Row], peptide_rows: Sequence[Row]) -> str:
    """The Markdown text that says which claims hold.

    Args:
        sensor_rows: A row for each run on the sensors.
        peptide_rows: Likewise on the peptides.

    Returns:
        The text.
    """
    table = markdown_table(verdict_rows(sensor_rows, peptide_rows))
    return "\n\n".join(["## What Krause and Ong claim", _VERDICTS, table])


def sensor_report(
    rows: Sequence[Row],
    models: Mapping[str, FittedModel],
    data: Temperatures,
) -> str:
    """The Markdown text about the sensors.

    Args:
        rows: A row for each run.
        models: All fitted models.
        data: All temperatures.

    Returns:
        The text.
    """
    number, shares, same = hottest_shares(data)
    shown = ", ".join(f"{each:.0%}" for each in shares)
    share, right, seeds, regrets = merged_picks(rows, data)
    parts = [
        "## Sensors",
        _SENSORS.format(
            sensors=data.num_sensors, days=data.num_days, readings=READINGS, first=FIRST_STEPS
        ),
    ]
    for reading, name in _READINGS.items():
        table = claim_rows(rows, SENSOR_CLAIMS[reading], SENSOR_SETTINGS)
        parts += [f"### Claims: {name}", markdown_table(_turned(table, "setting"))]
    parts += ["### Regret in degrees", _SENSOR_REGRET.format(first=FIRST_STEPS)]
    for reading, name in _READINGS.items():
        parts += [f"{name.capitalize()}:", markdown_table(_sensor_rows(rows, reading))]
    parts += [
        "### Why",
        _SENSOR_WHY.format(
            number=number,
            shares=shown,
            same=same,
            share=share,
            right=right,
            seeds=seeds,
            regrets=regrets,
        ),
        markdown_table(reference_rows(data)),
        "### The fitted models",
        _FITS,
        markdown_table(_fit_rows(models)),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def peptide_report(rows: Sequence[Row], affinities: BindingAffinities, trials: int) -> str:
    """The Markdown text about the peptides.

    Args:
        rows: A row for each run.
        affinities: The measurements.
        trials: With each molecule.

    Returns:
        The text.
    """
    parts = [
        "## Peptides",
        _PEPTIDES.format(trials=trials, floor=best_possible(affinities, trials)),
        "### Claims",
        markdown_table(_turned(claim_rows(rows, PEPTIDE_CLAIMS, PEPTIDE_SETTINGS), "setting")),
        "### Regret",
        markdown_table(_peptide_rows(rows)),
        "Average regret with each molecule, first setting:",
        markdown_table(_molecule_rows(rows, affinities)),
        "### Why",
        _PEPTIDE_WHY,
        markdown_table(similarity_rows(affinities)),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _turned(table: Sequence[Row], name: str) -> list[Row]:
    """Settings as rows, claims as columns."""
    settings = [key for key in table[0] if key != "claim"]
    return [{name: each} | {row["claim"]: row[each] for row in table} for each in settings]


def _sensor_rows(rows: Sequence[Row], reading: str) -> list[Row]:
    parts = {
        "": "all steps",
        "_first": f"first {FIRST_STEPS} steps",
        "_day_one": "first day",
        "_later": "after the first day",
    }
    return [
        {"setting": setting.title, "method": method}
        | {
            shown: mean_and_error(column(rows, f"{reading}{part}", setting=name, method=method))
            for part, shown in parts.items()
        }
        for name, setting in played(rows, SENSOR_SETTINGS).items()
        for method in setting.methods
    ]


def _peptide_rows(rows: Sequence[Row]) -> list[Row]:
    scores = {
        "regret": "average regret",
        "regret_alike": "molecules 1 to 3",
        "regret_fourth": "molecule 4",
        "regret_others": "molecules 4 to 7",
        "worst_gap": "largest gap over molecules, mean over t",
        "worst_gap_at_half": "at half of the trials",
        "worst_gap_at_end": "at the end",
    }
    return [
        {"setting": setting.title, "method": method}
        | {
            shown: mean_and_error(column(rows, score, setting=name, method=method))
            for score, shown in scores.items()
        }
        for name, setting in played(rows, PEPTIDE_SETTINGS).items()
        for method in setting.methods
    ]


def _molecule_rows(rows: Sequence[Row], affinities: BindingAffinities) -> list[Row]:
    return [
        {"method": method}
        | {
            f"{i}: {name}": mean_and_error(
                column(rows, f"regret_{i}", setting=sensors.MAIN, method=method)
            )
            for i, name in enumerate(affinities.molecules, start=1)
        }
        for method in PEPTIDE_METHODS
    ]


def _fit_rows(models: Mapping[str, FittedModel]) -> list[Row]:
    return [
        {
            "model": name,
            "log marginal likelihood": f"{model.log_likelihood:.0f}",
            "noise sd, degrees": model.scaling.scale * model.noise_variance**0.5,
            "prior sd of the most variable sensor, degrees": model.scaling.scale,
        }
        for name, model in models.items()
        if name != "shared"
    ]


_VERDICTS = (
    "Claims and settings were fixed before anything was played. One method beats another: less "
    "regret by more than two standard errors of the paired difference over the seeds. *Performs "
    "poorly*: both others beat it. The tables below have each comparison in each setting: the "
    "difference, its standard error, and in how many of the seeds it is negative."
)
_SENSORS = (
    "{sensors} sensors, {days} days; the first day fits the models, the others are played. At each "
    "half-hour {readings} sensors are read one after the other, each reading is told before the "
    "next; the same sensor may be read again unless the setting says otherwise. Regret: the true "
    "maximum of the half-hour minus the largest, or the mean, of the readings, in degrees. "
    "*Merged* is one GP-UCB without contexts, its noise and the scale of its covariance fitted to "
    "the same day. *One per half-hour* is 48 instances of GP-UCB with the sensors' covariance and "
    "the noise of the product model, each of which plays once a day. All have the same constant "
    "width. Readings have no noise and all but the first reading is determined by the data, so "
    "that standard errors over the seeds say how much the first reading matters, not what another "
    "building would give. The first {first} steps stand for the paper's *first few timesteps*. The "
    "paper has 46 sensors, every 5 minutes, over 4 days; ours is a subset of the same data. "
    "A setting that plays some methods only takes the others from the first one."
)
_SENSOR_REGRET = (
    "Means over the steps, over all seeds ± one standard error. A setting lists the methods it "
    "plays anew."
)
_SENSOR_WHY = (
    "Of the played part {number} sensors are the hottest at some time; the three that are so most "
    "often are so in {shares} of the half-hours. In {same:.0%} of them the hottest sensor is that "
    "of the same half-hour on the day before. An additive kernel lets the time shift all "
    "sensors alike: which sensor is the hottest cannot depend on it. Without contexts the day "
    "looks like the merit of whatever is read while the building warms up: after the first day "
    "*merged* gives {share:.0%} of its readings to one sensor, which is the hottest on average "
    "in {right} of {seeds} seeds (regret of the largest reading there and elsewhere: {regrets}). "
    "What rules pay that see all temperatures of the past, not five of them:"
)
_FITS = (
    "By marginal likelihood on the first day: the covariance of the sensors (8 factors, the number "
    "with the best BIC among 1, 2, 3, 5, 8 and 12), the lengthscale of the time of day, the noise. "
    "The lengthscale over days is given, 2 days in the main setting: one day hardly tells it from "
    "the lengthscale over the hours: see the likelihoods, between which the factors that the "
    "search happens to find make a difference as well. The additive and the merged model "
    "take the sensors' correlation from the product model (*2 days*): one day holds a single draw "
    "of what does not change in time. They are fitted to 800 of the 2400 temperatures, so that "
    "their likelihoods compare with each other alone."
)
_PEPTIDES = (
    "Seven HLA molecules in the order of the file, {trials} trials with each; an action is one of "
    "the 9-mers that were measured with the molecule, its reward -log10(IC50) + log10(500). "
    "Features: BLOSUM62 rows of the nine positions, RBF kernel; K_Z: the share of equal residues "
    "of the binding pockets. Lengthscale, scale, noise and mean by marginal likelihood on 1000 "
    "random measurements of all molecules, drawn anew for each seed, once with the molecules "
    "(CGP-UCB, and one per molecule) and once without (*merged*). The paper does not say whether a "
    "peptide may be measured again; the table has one value for each, so that measuring again "
    "tells nothing: here it is measured once, and again in the setting *can be measured again*. "
    "Measured values have no repeat noise. With each peptide once, the average regret is at least "
    "{floor:.2f}. The seeds draw the examples, and the order of the peptides, in which ties are "
    "broken. *Gap*: the best affinity there is minus the best one measured in the first t trials "
    "with a molecule."
)
_PEPTIDE_WHY = (
    "For each two molecules the share of equal pocket residues, which is K_Z, and the correlation "
    "of the rewards over the peptides measured with both (their number). K_Z is a similarity of "
    "sequences that have most positions in common: it is large where the correlation is not. The "
    "setting *learned covariance* fits K_Z to the same 1000 measurements instead."
)
