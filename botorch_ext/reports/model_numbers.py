"""Model numbers: what the model of a study says, as plain numbers for its page.

They are computed once, with torch, by `numbers_of_study`; a page is made of them without it. Values
are in the sign and units of the user.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: The probabilities of quantiles on a page: the ends of the bands of 95 % and 50 %.
LEVELS = (0.025, 0.25, 0.75, 0.975)


@dataclass(frozen=True)
class Prediction:
    """What is predicted at a point.

    Args:
        mean: Of f.
        std: Of f.
        quantiles: Of f at `LEVELS`.
        observed: Of one observation there, likewise.
    """

    mean: float
    std: float
    quantiles: tuple[float, ...]
    observed: tuple[float, ...]


@dataclass(frozen=True)
class Recommended:
    """The point that the strategy would settle for, as `Recommendation` has it.

    Args:
        x: ``d``.
        context: ``d_z``; empty without contexts.
        prediction: What is predicted there.
        probability: That it is at least as good as every evaluated point.
        shortfall: By how much the best evaluated point is expected to be better.
        is_evaluated: Whether it was evaluated.
    """

    x: list[float]
    context: list[float]
    prediction: Prediction
    probability: float
    shortfall: float
    is_evaluated: bool


@dataclass(frozen=True)
class NextBatch:
    """What would be asked next, as `ExpectedGain` has it.

    Args:
        points: ``q`` points.
        predictions: What is predicted there.
        gain: By how much the best value of f is expected to grow; positive.
        probability: That one of them is better than all points before.
        noise_std: The standard deviation of the noise of one observation.
    """

    points: list[list[float]]
    predictions: list[Prediction]
    gain: float
    probability: float
    noise_std: float


@dataclass(frozen=True)
class SliceNumbers:
    """The model along one column, through the recommended point.

    Args:
        column: Its place.
        across: Numbers of the column.
        means: Of f there.
        quantiles: Of f there, a row for each of `LEVELS`.
        near: Observations near the slice, as pairs of the number of the column and the value.
        is_stepped: Whether only these numbers are possible.
    """

    column: int
    across: list[float]
    means: list[float]
    quantiles: list[list[float]]
    near: list[tuple[float, float]]
    is_stepped: bool


@dataclass(frozen=True)
class ImportanceNumbers:
    """Sobol indices of the posterior mean, as `Importance` has them.

    Args:
        columns: Their places, the most important first.
        first_order: What each explains alone.
        total: What each explains alone or with others.
    """

    columns: list[int]
    first_order: list[float]
    total: list[float]


@dataclass(frozen=True)
class Contours:
    """The posterior mean in the plane of two columns, through the recommended point.

    Args:
        columns: Their places.
        across: Numbers of the first.
        up: Numbers of the second.
        means: A row for each number of the second; None where constraints exclude the point.
    """

    columns: tuple[int, int]
    across: list[float]
    up: list[float]
    means: list[list[float | None]]


@dataclass(frozen=True)
class CandidateModel:
    """One of several models that the values may speak against.

    Args:
        name: Of the model.
        num_asked: How many trials were asked for it.
        rejected_at: After how many observations it was rejected; None while it is not.
        probability: Among those that are not rejected, by the marginal likelihood; None for others.
    """

    name: str
    num_asked: int
    rejected_at: int | None
    probability: float | None


@dataclass(frozen=True)
class ModelNumbers:
    """All that a page shows of the model; a part is None or empty where ``missing`` says why.

    Args:
        recommended: The point to settle for; in the context of the trial that was asked last.
        pending: Predictions of pending trials, by id.
        next_batch: What would be asked next.
        slices: Through the recommended point.
        importance: Of each column.
        contours: Of the two most important columns.
        models: Those of a choice of models.
        per_context: The recommended point in each of several contexts.
        missing: Why something is not there, in whole sentences.
    """

    recommended: Recommended | None = None
    pending: dict[int, Prediction] = field(default_factory=dict)
    next_batch: NextBatch | None = None
    slices: list[SliceNumbers] = field(default_factory=list)
    importance: ImportanceNumbers | None = None
    contours: Contours | None = None
    models: list[CandidateModel] = field(default_factory=list)
    per_context: list[Recommended] = field(default_factory=list)
    missing: tuple[str, ...] = ()
