"""Model numbers: the predictions of a study's model, as plain numbers for its page.

`numbers_of_study` computes them once, with torch. A page is made of them without torch. Values are
in the sign and units of the user.
"""

from __future__ import annotations

from dataclasses import dataclass, field

#: The probabilities of quantiles on a page: the ends of the bands of 95 % and 50 %.
LEVELS = (0.025, 0.25, 0.75, 0.975)


@dataclass(frozen=True)
class Prediction:
    """The prediction at a point.

    Args:
        mean: The mean of f.
        std: The standard deviation of f.
        quantiles: The quantiles of f at `LEVELS`.
        observed: The quantiles of one observation at `LEVELS`.
    """

    mean: float
    std: float
    quantiles: tuple[float, ...]
    observed: tuple[float, ...]


@dataclass(frozen=True)
class Recommended:
    """The point to settle for, as `Recommendation` has it.

    Args:
        x: The ``d`` coordinates.
        context: The ``d_z`` coordinates of the context; empty without contexts.
        prediction: The prediction at the point.
        probability: The probability that no evaluated point is better.
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
    """The next batch, as `ExpectedGain` has it.

    Args:
        points: The ``q`` points of the batch.
        predictions: The prediction at each point.
        gain: By how much the best value of f is expected to grow; positive.
        probability: The probability that a point of the batch is better than all points before.
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
        column: The number of the column.
        across: The coordinates along the column.
        means: The means of f there.
        quantiles: The quantiles of f there, a row for each of `LEVELS`.
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
        columns: The numbers of the columns, the most important first.
        first_order: The share that each column explains alone.
        total: The share that each column explains alone or with others.
    """

    columns: list[int]
    first_order: list[float]
    total: list[float]


@dataclass(frozen=True)
class Contours:
    """The posterior mean in the plane of two columns, through the recommended point.

    Args:
        columns: The numbers of the two columns.
        across: Coordinates along the first column.
        up: Coordinates along the second column.
        means: The means, a row for each coordinate of the second column; None where constraints
            exclude the point.
    """

    columns: tuple[int, int]
    across: list[float]
    up: list[float]
    means: list[list[float | None]]


@dataclass(frozen=True)
class CandidateModel:
    """One of several candidate models.

    Args:
        name: The name of the model.
        num_asked: How many trials were asked for the model.
        rejected_at: After how many observations the model was rejected; None if it is not.
        probability: The probability among the models that are not rejected, by the marginal
            likelihood; None for rejected models.
    """

    name: str
    num_asked: int
    rejected_at: int | None
    probability: float | None


@dataclass(frozen=True)
class ModelNumbers:
    """All numbers of the model that a page shows. A part that could not be computed is None or
    empty, and ``missing`` says why.

    Args:
        recommended: The point to settle for, in the context of the last trial.
        pending: The predictions of pending trials, by id.
        next_batch: The batch that would be asked next.
        slices: The slices through the recommended point.
        importance: The importance of each column.
        contours: The contours of the two most important columns.
        models: The candidate models, if there are several.
        per_context: The recommended point in each of several contexts.
        missing: Why a part is missing, in whole sentences.
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
