"""Temperatures of the sensors of a building, read from a table or a log, or synthetic."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from botorch_ext.checks import one_number, whole_number

STEPS_PER_DAY = 48
# The first Monday of the Intel lab's log, and the number of days to take.
_START, _NUM_DAYS = "2004-03-01", 5


@dataclass(frozen=True, eq=False)
class Temperatures:
    """Half-hourly temperatures of sensors over whole days.

    Args:
        values: The temperatures in degrees Celsius, ``S x T``: a row for each sensor, 48 columns
            for each day.
        sensors: The number of each sensor in the source of the data.
        first_day: The number of the first day.
        synthetic: Whether the temperatures are synthetic.

    Raises:
        ValueError: If the values are not finite or do not cover whole days, or the sensors do not
            have one number each.
    """

    values: Tensor
    sensors: tuple[int, ...]
    first_day: int = 0
    synthetic: bool = False

    def __post_init__(self) -> None:
        if self.values.ndim != 2 or 0 in self.values.shape:
            raise ValueError(
                f"values must be S x T, sensors by half-hours, got {tuple(self.values.shape)}"
            )
        if self.values.shape[1] % STEPS_PER_DAY:
            raise ValueError(
                f"values must have a multiple of {STEPS_PER_DAY} columns, half-hours of days, got "
                f"{self.values.shape[1]}"
            )
        if not bool(torch.isfinite(self.values).all()):
            raise ValueError("values must be finite, got NaN or infinite temperatures")
        if len(set(self.sensors)) != len(self.sensors) or len(self.sensors) != len(self.values):
            raise ValueError(
                f"sensors must be {len(self.values)} different numbers, got {self.sensors}"
            )

    @property
    def num_sensors(self) -> int:
        return self.values.shape[0]

    @property
    def num_steps(self) -> int:
        """T, the number of half-hours."""
        return self.values.shape[1]

    @property
    def num_days(self) -> int:
        return self.num_steps // STEPS_PER_DAY

    def days(self, first: int, last: int) -> Temperatures:
        """The part of the data between two days.

        Args:
            first: The first day of the part, counted from 0 here.
            last: The day after its last day.

        Returns:
            The temperatures of these days.

        Raises:
            ValueError: If there are no such days.
        """
        if not 0 <= first < last <= self.num_days:
            raise ValueError(
                f"days must be first < last between 0 and {self.num_days}, got {first} and {last}"
            )
        values = self.values[:, STEPS_PER_DAY * first : STEPS_PER_DAY * last]
        return replace(self, values=values, first_day=self.first_day + first)


def load_temperatures(
    path: str | Path,
    *,
    start: str | date | None = None,
    num_days: int | None = None,
    plausible: tuple[float, float] = (0.0, 50.0),
    min_voltage: float = 2.4,
    max_gap: int = 4,
) -> Temperatures:
    """Read temperatures from a table or from the log of the Intel Berkeley Research Lab.

    The first line tells the two formats apart:

    - A table has no header, and numbers separated by commas: a row for each sensor, 48 columns for
      each day. It is taken as it is.
    - The log of the lab (data.txt or data.txt.gz of db.csail.mit.edu/labdata, 2004) has lines "date
      time epoch moteid temperature humidity light voltage", in any order, about 31 s apart. A
      reading counts if it has a mote, a plausible temperature and enough voltage, since motes with
      an empty battery report up to 122 degrees. The readings of each half-hour are averaged. Gaps
      of at most ``max_gap`` half-hours are interpolated in time, or filled with the nearest mean
      before the first and after the last reading. A mote with a longer gap is left out.

    Args:
        path: The file; it is compressed if its name ends in .gz.
        start: The first day of the log to take; None for "2004-03-01", a Monday. It must be None
            for a table.
        num_days: The number of days; None takes all days of a table, and 5 days of the log.
        plausible: The least and the largest plausible temperature, in degrees Celsius.
        min_voltage: The least voltage of a reading that counts.
        max_gap: The largest number of consecutive half-hours without a reading.

    Returns:
        The temperatures; the sensors of a table are numbered from 0, those of the log by mote.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file has neither format or too few data, or an argument is impossible.
    """
    if num_days is not None:
        whole_number(num_days, "num_days", least=1)
    whole_number(max_gap, "max_gap", least=0)
    low, high = (one_number(value, "plausible") for value in plausible)
    if not low < high:
        raise ValueError(f"plausible must be a least and a larger temperature, got {plausible}")
    min_voltage = one_number(min_voltage, "min_voltage")
    path = Path(path)
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        lines = (line for line in file if line.strip())
        first = next(lines, None)
        if first is None:
            raise ValueError(f"{path.name} must hold temperatures, got an empty file")
        if "," in first:
            if start is not None:
                raise ValueError(f"start must be None for a table, got {start!r}")
            return _of_table(chain([first], lines), path.name, num_days)
        log = _Log(_as_date(start), num_days or _NUM_DAYS)
        for line in chain([first], lines):
            log.read(line, low, high, min_voltage)
    return log.temperatures(path.name, max_gap)


def _as_date(start: str | date | None) -> date:
    try:
        return start if isinstance(start, date) else date.fromisoformat(start or _START)
    except ValueError as error:
        raise ValueError(f"start must be a date like 2004-03-01, got {start!r}") from error


def _of_table(lines: Iterable[str], name: str, num_days: int | None) -> Temperatures:
    try:
        rows = [[float(cell) for cell in line.split(",")] for line in lines]
    except ValueError as error:
        raise ValueError(f"{name} must hold numbers separated by commas, got {error}") from error
    if len({len(row) for row in rows}) != 1:
        counts = sorted({len(row) for row in rows})
        raise ValueError(
            f"{name} must have the same number of columns in each row, got {counts[0]} to "
            f"{counts[-1]}"
        )
    data = Temperatures(torch.tensor(rows, dtype=torch.float64), tuple(range(len(rows))))
    if num_days is None:
        return data
    if num_days > data.num_days:
        raise ValueError(f"num_days must be at most {data.num_days}, got {num_days}")
    return data.days(0, num_days)


class _Log:
    """The sums of the readings of each mote in each half-hour of some days."""

    def __init__(self, start: date, num_days: int) -> None:
        self.days = {str(start + timedelta(days=day)): day for day in range(num_days)}
        self.num_steps = STEPS_PER_DAY * num_days
        # The sums and the numbers of readings of each mote.
        self.motes: dict[int, np.ndarray] = {}
        self.seen: tuple[str, str] | None = None

    def read(self, line: str, low: float, high: float, min_voltage: float) -> None:
        """Add a reading, unless something is wrong with it."""
        # Between two single spaces a field may be missing.
        fields = line.rstrip("\r\n").split(" ")
        if len(fields) != 8:
            fields = line.split()
        if len(fields) != 8:
            return
        try:
            day = fields[0]
            if day not in self.days:
                self._see(str(date.fromisoformat(day)))
                return
            mote, temperature, voltage = int(fields[3]), float(fields[4]), float(fields[7])
            hour, minute = int(fields[1][:2]), int(fields[1][3:5])
        except ValueError:
            return
        if not (hour < 24 and minute < 60 and low <= temperature <= high):
            return
        if not voltage >= min_voltage:
            return
        self._see(day)
        step = STEPS_PER_DAY * self.days[day] + 2 * hour + minute // 30
        self.motes.setdefault(mote, np.zeros((2, self.num_steps)))[:, step] += temperature, 1

    def _see(self, day: str) -> None:
        first, last = self.seen or (day, day)
        self.seen = min(first, day), max(last, day)

    def temperatures(self, name: str, max_gap: int) -> Temperatures:
        """The means of the motes that have only short gaps."""
        if self.seen is None:
            raise ValueError(
                f"{name} must be a table of numbers separated by commas or a log of readings, "
                'lines "date time epoch moteid temperature humidity light voltage", got no readings'
            )
        kept = {
            mote: _without_gaps(sums, counts)
            for mote, (sums, counts) in sorted(self.motes.items())
            if _longest_gap(counts > 0) <= max_gap
        }
        if not kept:
            first, *_, last = [*self.days, *self.days]
            raise ValueError(
                f"{name} must hold readings of a mote from {first} to {last} with gaps of at most "
                f"max_gap = {max_gap} half-hours, got none among {len(self.motes)} motes with "
                f"readings then; it has readings from {self.seen[0]} to {self.seen[1]}"
            )
        return Temperatures(torch.from_numpy(np.stack(list(kept.values()))), tuple(kept))


def _longest_gap(there: np.ndarray) -> int:
    ends = np.flatnonzero(np.concatenate([[True], there, [True]]))
    return int(np.diff(ends).max()) - 1


def _without_gaps(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    there = np.flatnonzero(counts)
    return np.interp(np.arange(len(sums)), there, sums[there] / counts[there])


def synthetic_temperatures(num_sensors: int = 50, num_days: int = 5, seed: int = 0) -> Temperatures:
    """Make synthetic temperatures of a building, to use in place of measured ones.

    The sensors stand around the building. All follow a daily cycle. The sun warms the sensors that
    it shines on, from the first sensor at sunrise to the opposite one at sunset, so the hottest
    sensor changes over the day. Days differ in level and in sunshine; each sensor has its own level
    and drifts a little. Only the shape resembles the data of the Intel lab.

    Args:
        num_sensors: S, the number of sensors.
        num_days: The number of days.
        seed: The seed of all random numbers.

    Returns:
        Temperatures to a tenth of a degree, ``S x (48 num_days)``, marked as synthetic.

    Raises:
        ValueError: If there are fewer than two sensors, or no days.
    """
    whole_number(num_sensors, "num_sensors", least=2)
    whole_number(num_days, "num_days", least=1)
    rng = np.random.default_rng(seed)
    steps = STEPS_PER_DAY * num_days
    hours = np.arange(steps) % STEPS_PER_DAY / 2
    # The angle of the sun, and of each sensor, seen from the middle of the building.
    sun = np.pi * (hours - 6) / 12
    places = 2 * np.pi * np.arange(num_sensors) / num_sensors
    distance = np.abs((places[:, None] - sun + np.pi) % (2 * np.pi) - np.pi)
    height = np.clip(np.sin(sun), 0, None)
    sunshine = np.repeat(rng.uniform(0.6, 1.4, num_days), STEPS_PER_DAY)
    level = np.repeat(np.cumsum(rng.normal(0, 0.7, num_days)), STEPS_PER_DAY)
    values = 18 + level + 4 * height + 9 * sunshine * height * np.exp(-(distance**2) / 0.5)
    values += rng.normal(0, 0.4, (num_sensors, 1))
    values += _drift(rng.normal(0, 0.1, (num_sensors, steps)))
    return Temperatures(
        torch.from_numpy(np.round(values, 1)), tuple(range(num_sensors)), synthetic=True
    )


def _drift(shocks: np.ndarray) -> np.ndarray:
    """Autoregressive noise with the variance of the shocks and a memory of about five hours."""
    memory = math.exp(-1 / 10)
    drift = shocks.copy()
    for step in range(1, shocks.shape[1]):
        drift[:, step] = memory * drift[:, step - 1] + math.sqrt(1 - memory**2) * shocks[:, step]
    return drift
