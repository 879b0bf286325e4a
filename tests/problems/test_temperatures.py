import gzip
import random

import numpy as np
import pytest
import torch

from botorch_ext.problems import load_temperatures, synthetic_temperatures

HEADER = "date time epoch moteid temperature humidity light voltage"


def reading(stamp: str, mote, temperature, voltage=2.7, light="45.08") -> str:
    return f"{stamp} 3 {mote} {temperature} 38.9 {light} {voltage}"


def day_of_readings(mote: int, day: str, skip=()) -> list[str]:
    """Two readings in each half-hour, one degree to either side of 20 + its number / 10."""
    lines = []
    for half_hour in range(48):
        if half_hour not in skip:
            hour, minute = divmod(30 * half_hour, 60)
            for second, sign in ((7, 1), (58, -1)):
                stamp = f"{day} {hour:02}:{minute + 11:02}:{second:02}.314159"
                lines.append(reading(stamp, mote, 20 + half_hour / 10 + sign))
    return lines


def write(path, lines: list[str]):
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write("\n".join(lines) + "\n")
    return path


def test_the_reshaped_table_is_read_as_it_is(tmp_path) -> None:
    table = np.round(np.random.default_rng(0).uniform(15, 30, (3, 96)), 1)
    path = tmp_path / "temperature.csv"
    np.savetxt(path, table, delimiter=",", fmt="%.1f")
    loaded = load_temperatures(path)
    assert torch.equal(loaded.values, torch.from_numpy(table))
    assert loaded.sensors == (0, 1, 2)
    assert (loaded.num_sensors, loaded.num_steps, loaded.num_days) == (3, 96, 2)
    assert not loaded.synthetic
    assert torch.equal(load_temperatures(path, num_days=1).values, loaded.values[:, :48])


@pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
def test_readings_become_half_hourly_means_whatever_their_order(tmp_path, name) -> None:
    lines = day_of_readings(7, "2004-03-02") + day_of_readings(4, "2004-03-02")
    lines += day_of_readings(7, "2004-03-03") + day_of_readings(4, "2004-03-03")
    lines += [reading("2004-03-01 23:59:59.99", 7, 45.0), reading("2004-03-04 00:00:00", 7, 45.0)]
    random.Random(1).shuffle(lines)
    loaded = load_temperatures(write(tmp_path / name, lines), start="2004-03-02", num_days=2)
    assert loaded.sensors == (4, 7)
    expected = (20 + torch.arange(48, dtype=torch.float64) / 10).repeat(2, 2)
    torch.testing.assert_close(loaded.values, expected)


def test_faulty_readings_and_odd_lines_do_not_count(tmp_path) -> None:
    stamp = "2004-03-02 10:05:00.5"
    odd = [
        reading(stamp, 1, 122.153),  # what a dying mote says
        reading(stamp, 1, -38.4),
        reading(stamp, 1, 33.0, voltage=2.1),
        reading(stamp, 1, 33.0, voltage=""),
        reading(stamp, 1, ""),
        reading(stamp, "", 33.0),
        reading(stamp, 1, "nan"),
        reading(stamp, 1, "what"),
        reading("2004-03-02 25:61:00", 1, 33.0),
        reading("2004-03-02 noon", 1, 33.0),
        f"{stamp} 3 1 33.0",
        f"{stamp} 3",
        "",
    ]
    lines = [*odd, *day_of_readings(1, "2004-03-02")]
    plain = load_temperatures(
        write(tmp_path / "plain.txt", day_of_readings(1, "2004-03-02")),
        start="2004-03-02",
        num_days=1,
    )
    loaded = load_temperatures(write(tmp_path / "odd.txt", lines), start="2004-03-02", num_days=1)
    assert torch.equal(loaded.values, plain.values)


def test_a_reading_whose_light_is_missing_counts_and_so_do_wide_spaces(tmp_path) -> None:
    lines = day_of_readings(1, "2004-03-02", skip=(3, 5))
    lines.append(reading("2004-03-02 01:40:00", 1, 31.0, light=""))
    lines.append(reading("2004-03-02 02:40:00", 1, 32.0).replace(" 38.9 ", "   38.9\t"))
    loaded = load_temperatures(write(tmp_path / "data.txt", lines), start="2004-03-02", num_days=1)
    assert loaded.values[0, [3, 5]].tolist() == [31.0, 32.0]


def test_short_gaps_are_interpolated_and_a_mote_with_a_long_one_is_left_out(tmp_path) -> None:
    day = "2004-03-02"
    lines = day_of_readings(1, day, skip=(0, 1, 20, 21, 22, 47))
    lines += day_of_readings(2, day, skip=(20, 21, 22, 23))
    lines += day_of_readings(3, day, skip=(0, 1, 2, 3))
    lines += [reading(f"{day} 12:00:00", 65407, 20.0)]
    path = write(tmp_path / "data.txt", lines)
    loaded = load_temperatures(path, start=day, num_days=1, max_gap=3)
    assert loaded.sensors == (1,)
    expected = 20 + torch.arange(48, dtype=torch.float64) / 10
    expected[[0, 1]], expected[47] = expected[2].clone(), expected[46].clone()
    torch.testing.assert_close(loaded.values[0], expected)
    assert load_temperatures(path, start=day, num_days=1, max_gap=4).sensors == (1, 2, 3)


@pytest.mark.parametrize(
    ("text", "arguments", "match"),
    [
        ("", {}, "must hold temperatures, got an empty file"),
        ("1,2\n3\n", {}, "the same number of columns in each row"),
        ("1,x\n", {}, "must hold numbers separated by commas"),
        (",".join(["20"] * 47) + "\n", {}, "a multiple of 48 columns, half-hours of days, got 47"),
        (",".join(["20"] * 47 + ["nan"]) + "\n", {}, "must be finite"),
        (",".join(["20"] * 48) + "\n", {"num_days": 2}, "num_days must be at most 1"),
        (",".join(["20"] * 48) + "\n", {"start": "2004-03-01"}, "start must be None"),
        ("one two\n", {}, "no readings"),
        ("2004-03-09 10:00:00 3 1 20.1 38.9 45.08 2.7\n", {}, "from 2004-03-09 to 2004-03-09"),
        ("2004-03-01 10:00:00 3 1 20.1 38.9 45.08 2.7\n", {}, "max_gap"),
        ("2004-03-01 10:00:00 3 1 20.1 38.9 45.08 2.7\n", {"start": "1 March"}, "start must be"),
        ("2004-03-01 10:00:00 3 1 20.1 38.9 45.08 2.7\n", {"num_days": 0}, "num_days"),
        ("2004-03-01 10:00:00 3 1 20.1 38.9 45.08 2.7\n", {"max_gap": -1}, "max_gap"),
        ("2004-03-01 10:00:00 3 1 20.1 38.9 45.08 2.7\n", {"plausible": (9, 3)}, "plausible"),
        ("2004-03-01 10:00:00 3 1 20.1 38.9 45.08 2.7\n", {"min_voltage": "x"}, "min_voltage"),
    ],
)
def test_bad_files_and_arguments(tmp_path, text, arguments, match) -> None:
    path = tmp_path / "data"
    path.write_text(text)
    with pytest.raises(ValueError, match=match):
        load_temperatures(path, **arguments)


def test_days_can_be_cut_out() -> None:
    data = synthetic_temperatures(4, 3)
    cut = data.days(1, 3)
    assert torch.equal(cut.values, data.values[:, 48:])
    assert cut.first_day == 1 and cut.num_days == 2 and cut.synthetic
    for first, last in ((2, 2), (-1, 1), (0, 4)):
        with pytest.raises(ValueError, match="days"):
            data.days(first, last)


def test_synthetic_temperatures_are_like_a_building() -> None:
    data = synthetic_temperatures()
    assert data.values.shape == (50, 240) and data.synthetic
    assert torch.equal(data.values, synthetic_temperatures(seed=0).values)
    assert not torch.equal(data.values, synthetic_temperatures(seed=1).values)
    assert 5 < float(data.values.min()) and float(data.values.max()) < 45
    hottest = data.values.argmax(dim=0).reshape(5, 48)
    for day in hottest:  # at noon it is another one than in the morning or in the evening
        assert len({int(day[16]), int(day[24]), int(day[32])}) == 3
    daily = data.values.reshape(50, 5, 48).mean(dim=(0, 2))
    assert float(daily.std()) > 0.1
    with pytest.raises(ValueError, match="num_sensors"):
        synthetic_temperatures(1)
    with pytest.raises(ValueError, match="num_days"):
        synthetic_temperatures(num_days=0)
