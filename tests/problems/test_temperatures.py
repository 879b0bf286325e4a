"""Temperatures: files of the Intel lab, what is left out of them, and those that are made up."""

import gzip
import random

import numpy as np
import pytest
import torch

from botorch_ext.problems import load_temperatures, synthetic_temperatures

DAY, NEXT = "2004-03-02", "2004-03-03"
DEGREES = 20 + torch.arange(48, dtype=torch.float64) / 10


def reading(stamp, mote, temperature, voltage=2.7, light="45.08"):
    return f"{stamp} 3 {mote} {temperature} 38.9 {light} {voltage}"


def day_of_readings(mote, day=DAY, skip=()):
    """Two readings in each half-hour, one degree to either side of 20 + its number / 10."""
    lines = []
    for half_hour in range(48):
        if half_hour not in skip:
            hour, minute = divmod(30 * half_hour, 60)
            for second, sign in ((7, 1), (58, -1)):
                stamp = f"{day} {hour:02}:{minute + 11:02}:{second:02}.314159"
                lines.append(reading(stamp, mote, 20 + half_hour / 10 + sign))
    return lines


def read(path, lines, num_days=1, **options):
    with gzip.open(path, "wt") if path.suffix == ".gz" else path.open("w") as file:
        file.write("\n".join(lines) + "\n")
    return load_temperatures(path, start=DAY, num_days=num_days, **options)


def test_the_reshaped_table_is_read_as_it_is(tmp_path):
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
def test_readings_become_half_hourly_means_whatever_their_order(tmp_path, name):
    lines = [line for day in (DAY, NEXT) for mote in (7, 4) for line in day_of_readings(mote, day)]
    lines += [reading("2004-03-01 23:59:59.99", 7, 45.0), reading("2004-03-04 00:00:00", 7, 45.0)]
    random.Random(1).shuffle(lines)
    loaded = read(tmp_path / name, lines, num_days=2)
    assert loaded.sensors == (4, 7)
    torch.testing.assert_close(loaded.values, DEGREES.repeat(2, 2))


def test_faulty_readings_and_odd_lines_do_not_count(tmp_path):
    stamp = f"{DAY} 10:05:00.5"
    odd = [
        reading(stamp, 1, 122.153),  # what a dying mote says
        reading(stamp, 1, -38.4),
        reading(stamp, 1, 33.0, voltage=2.1),
        reading(stamp, 1, 33.0, voltage=""),
        reading(stamp, 1, ""),
        reading(stamp, "", 33.0),
        reading(stamp, 1, "nan"),
        reading(stamp, 1, "what"),
        reading(f"{DAY} 25:61:00", 1, 33.0),
        reading(f"{DAY} noon", 1, 33.0),
        f"{stamp} 3 1 33.0",
        f"{stamp} 3",
        "",
    ]
    # Missing light does not matter, nor do wide spaces.
    unlit = [reading(f"{DAY} 01:{minute}:00", 1, 20.3, light="") for minute in (40, 41)]
    wide = [reading(f"{DAY} 02:40:00", 1, 20.5).replace(" 38.9 ", "   38.9\t")]
    loaded = read(tmp_path / "odd.txt", [*odd, *day_of_readings(1, skip=(3, 5)), *unlit, *wide])
    torch.testing.assert_close(loaded.values[0], DEGREES)


def test_short_gaps_are_interpolated_and_a_mote_with_a_long_one_is_left_out(tmp_path):
    lines = day_of_readings(1, skip=(0, 1, 20, 21, 22, 47))
    lines += day_of_readings(2, skip=(20, 21, 22, 23)) + day_of_readings(3, skip=(0, 1, 2, 3))
    lines += [reading(f"{DAY} 12:00:00", 65407, 20.0)]
    loaded = read(tmp_path / "data.txt", lines, max_gap=3)
    assert loaded.sensors == (1,)
    expected = DEGREES[[2, 2, *range(2, 47), 46]]
    torch.testing.assert_close(loaded.values[0], expected)
    assert read(tmp_path / "data.txt", lines, max_gap=4).sensors == (1, 2, 3)


WHOLE, ONE = ",".join(["20"] * 48), "2004-03-01 10:00:00 3 1 20.1 38.9 45.08 2.7"


@pytest.mark.parametrize(
    ("text", "arguments", "said"),
    [
        ("", {}, "empty"),
        ("1,2\n3\n", {}, "columns in each row"),
        ("1,x\n", {}, "numbers"),
        (WHOLE[3:], {}, "48 columns.*47"),
        (WHOLE[:-2] + "nan", {}, "finite"),
        (WHOLE, {"num_days": 2}, "num_days"),
        (WHOLE, {"start": "2004-03-01"}, "start"),
        ("one two\n", {}, "no readings"),
        (ONE.replace("03-01", "03-09"), {}, "2004-03-09"),
        (ONE, {}, "max_gap"),
        (ONE, {"start": "1 March"}, "start"),
        (ONE, {"num_days": 0}, "num_days"),
        (ONE, {"max_gap": -1}, "max_gap"),
        (ONE, {"plausible": (9, 3)}, "plausible"),
        (ONE, {"min_voltage": "x"}, "min_voltage"),
    ],
)
def test_bad_files_and_arguments_are_refused(tmp_path, text, arguments, said):
    (tmp_path / "data").write_text(text)
    with pytest.raises(ValueError, match=said):
        load_temperatures(tmp_path / "data", **arguments)


def test_days_can_be_cut_out():
    data = synthetic_temperatures(4, 3)
    cut = data.days(1, 3)
    assert torch.equal(cut.values, data.values[:, 48:])
    assert cut.first_day == 1 and cut.num_days == 2 and cut.synthetic
    for first, last in ((2, 2), (-1, 1), (0, 4)):
        with pytest.raises(ValueError, match="days"):
            data.days(first, last)


def test_synthetic_temperatures_are_like_a_building():
    data = synthetic_temperatures()
    assert data.values.shape == (50, 240) and data.synthetic
    assert torch.equal(data.values, synthetic_temperatures(seed=0).values)
    assert not torch.equal(data.values, synthetic_temperatures(seed=1).values)
    assert 5 < float(data.values.min()) and float(data.values.max()) < 45
    # At noon the hottest is another one than in the morning or in the evening.
    for day in data.values.argmax(dim=0).reshape(5, 48).tolist():
        assert len({day[16], day[24], day[32]}) == 3
    assert float(data.values.reshape(50, 5, 48).mean(dim=(0, 2)).std()) > 0.1
    for name, wrong in (("num_sensors", 1), ("num_days", 0)):
        with pytest.raises(ValueError, match=name):
            synthetic_temperatures(**{name: wrong})
