"""Real data: damaged and odd files, made-up data, fitted kernels, and the problems of tables."""

import gzip
import math
import pickle
import random
import subprocess
import sys
from copy import deepcopy

import numpy as np
import pytest
import torch
from gpytorch.kernels import RBFKernel
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from torch.testing import assert_close

from benchmarks.measured import svc
from benchmarks.measured.best_binder import BestBinder
from benchmarks.measured.binding_affinities import (
    BindingAffinities,
    load_binding_affinities,
    synthetic_binding_affinities,
)
from benchmarks.measured.fitted_kernels import fit_kernel
from benchmarks.measured.fitted_models import (
    fit_binding_affinities,
    fit_temperatures,
    time_of_day_kernel,
)
from benchmarks.measured.hottest_sensor import HottestSensor, clock
from benchmarks.measured.peptides import (
    AMINO_ACIDS,
    BLOSUM62,
    peptide_features,
    shared_residues,
)
from benchmarks.measured.scaling import Scaling
from benchmarks.measured.svc import SVCTuning
from benchmarks.measured.temperatures import Temperatures, load_temperatures, synthetic_temperatures
from botorch_ext import KernelGP
from botorch_ext.exceptions import OutsideDomainError
from botorch_ext.kernels import ActionContextKernel, TaskKernel
from tests.helpers import drawn, rbf, tolerance

CLOSE = tolerance(torch.float64)
SENSORS = Temperatures(15 + 10 * drawn(4, 96), (3, 5, 8, 13), first_day=2)
BINDING = BindingAffinities(
    ("a", "b"),
    (("AAATSAGTR", "AAHARFVAA"), ("AAHARFVAA", "WLHARFVAA", "ALHARFVAA")),
    (torch.tensor([0.5, 2.0]).double(), torch.tensor([1.5, -1.0, 0.0]).double()),
    ("YY", "YF"),
)


def at(actions, z):
    return torch.cat([actions, z.expand(len(actions), -1)], dim=-1)


def test_the_clock_goes_round_once_a_day():
    z = clock(torch.tensor([2.0, 2.25, 3.5, 4.0]))
    angles = torch.tensor([0.0, 0.5, 1.0, 0.0]).double() * math.pi
    expected = torch.stack([torch.tensor([2.0, 2.25, 3.5, 4.0]), angles.cos(), angles.sin()], -1)
    assert_close(z, expected, **CLOSE)


def test_the_hottest_sensor_is_that_of_the_table():
    problem, few = HottestSensor(SENSORS), torch.tensor([[3.0], [1.0]]).double()
    assert problem.domain.points.tolist() == [[0], [1], [2], [3]]
    assert problem.noise_std == 0 and problem.context_dim == 3
    assert_close(problem.contexts, clock(2 + torch.arange(96).double() / 48), **CLOSE)
    for step in (0, 17, 95):
        z, values = problem.contexts[step], SENSORS.values[:, step]
        X = at(problem.domain.points, z)
        assert torch.equal(problem(X), values)
        assert float(problem(X[2])) == float(values[2])
        assert problem.optimal_value_at(z) == float(values.max())
        assert problem.optimal_value_at(z, few) == float(values[[1, 3]].max())
    with pytest.raises(OutsideDomainError):
        problem([4.0, *problem.contexts[0].tolist()])
    with pytest.raises(OutsideDomainError):
        problem.optimal_value_at(problem.contexts[0], torch.tensor([[0.5]]).double())
    for moment in (4.0, 2.001):  # after the table, and between two of its steps
        with pytest.raises(ValueError, match="context"):
            problem([0.0, *clock(torch.tensor(moment)).tolist()])


def test_the_best_binder_is_that_of_the_measurements():
    problem = BestBinder(BINDING)
    assert problem.peptides == ("AAATSAGTR", "AAHARFVAA", "WLHARFVAA", "ALHARFVAA")
    assert torch.equal(problem.domain.points, peptide_features(problem.peptides))
    assert problem.context_dim == 1 and problem.noise_std == 0
    for molecule, (peptides, rewards) in enumerate(
        zip(BINDING.peptides, BINDING.rewards, strict=True)
    ):
        z, actions = torch.tensor([float(molecule)]).double(), problem.actions(molecule)
        assert torch.equal(actions, peptide_features(peptides))
        assert torch.equal(problem(at(actions, z)), rewards)
        assert problem.optimal_value_at(z) == float(rewards.max())
        assert problem.optimal_value_at(z, actions[:1]) == float(rewards[0])
        assert problem.rows(molecule) == [problem.peptides.index(p) for p in peptides]
    for molecule, name in ((1.0, "action"), (2.0, "context"), (0.5, "context")):
        with pytest.raises(ValueError, match=name):
            problem(at(problem.domain.points[:1], torch.tensor([molecule]).double()))
    with pytest.raises(ValueError, match="molecule"):
        problem.actions(2)


@pytest.mark.parametrize(("cls", "data"), [(HottestSensor, SENSORS), (BestBinder, BINDING)])
def test_values_can_be_rescaled(cls, data):
    plain, scaled = cls(data), cls(data, Scaling(20.0, 4.0))
    z = plain.contexts[7] if cls is HottestSensor else torch.tensor([0.0]).double()
    X = at(plain.domain.points[:2], z)
    assert_close(4 * scaled(X) + 20, plain(X), **CLOSE)
    assert scaled.optimal_value_at(z) == pytest.approx((plain.optimal_value_at(z) - 20) / 4)


POCKETS = "allele,pocket_residues\nHLA-B*07:02,YYAC\nHLA-A*02:01,YFAC\n"
TABLE = """allele,peptide,ic50_nM
HLA-A*02:01,AAATSAGTR,500
HLA-A*02:01,AAHARFVAA,5000
HLA-B*07:02,AAHARFVAA,1
HLA-C*01:01,AAAAAAAAA,7
"""
# The columns and kinds of rows of bdata.20130222.mhci.txt.
ORIGINAL = """species mhc peptide_length sequence inequality meas
human HLA-A*02:01 9 AAATSAGTR = 500.0
human HLA-A*02:01 9 AAHARFVAA = 5000
human HLA-A*02:01 9 ALHARFVAA > 20000
human HLA-A*02:01 10 AAHARFVAAV = 1
human HLA-B*07:02 9 AAHARFVAA = 1.0
human HLA-C*01:01 9 XXXXXXXXX = -1
mouse H-2-Db 9 AAHARFVAA = 3.0
""".replace(" ", "\t")


def write(folder, table, pockets=POCKETS):
    (folder / "binding.csv").write_text(table)
    (folder / "pockets.csv").write_text(pockets)
    return folder / "binding.csv", folder / "pockets.csv"


@pytest.mark.parametrize("text", [TABLE, ORIGINAL, TABLE.replace("\n", "\r\n"), TABLE + "\n\n"])
def test_both_formats_are_read(tmp_path, text):
    data = load_binding_affinities(*write(tmp_path, text))
    assert data.molecules == ("HLA-B*07:02", "HLA-A*02:01")
    assert data.peptides == (("AAHARFVAA",), ("AAATSAGTR", "AAHARFVAA"))
    assert data.rewards[0].tolist() == pytest.approx([math.log10(500)], rel=1e-12)
    assert data.rewards[1].tolist() == pytest.approx([0.0, -1.0])
    assert data.rewards[0].dtype == torch.float64
    assert data.pockets == ("YYAC", "YFAC")
    assert data.similarity.tolist() == [[1.0, 0.75], [0.75, 1.0]]
    assert not data.synthetic


def test_pockets_can_be_given_as_they_are(tmp_path):
    path, _ = write(tmp_path, ORIGINAL)
    data = load_binding_affinities(path, {"HLA-A*02:01": "YFAC"})
    assert data.molecules == ("HLA-A*02:01",) and data.pockets == ("YFAC",)


def test_a_peptide_measured_twice_gets_the_mean_of_its_logarithms(tmp_path):
    data = load_binding_affinities(*write(tmp_path, TABLE + "HLA-A*02:01,AAATSAGTR,5\n"))
    assert data.peptides[1] == ("AAATSAGTR", "AAHARFVAA")
    assert data.rewards[1].tolist() == pytest.approx([1.0, -1.0])


BAD_ROWS = {
    **{f"AAATSAGTR{value}": "line 2.*ic50_nM" for value in (",0", ",-3", ",inf", ",low", "")},
    **{f"{peptide},500": f"line 2.*'{peptide}'" for peptide in ("AAATSAGXR", "AAATSAGT")},
}


@pytest.mark.parametrize(
    ("table", "pockets", "said"),
    [
        *((TABLE.replace("AAATSAGTR,500", row), POCKETS, said) for row, said in BAD_ROWS.items()),
        (TABLE.replace("ic50_nM", "ic50"), POCKETS, "columns"),
        ("", POCKETS, "empty"),
        (TABLE.replace("B*07:02,", "B*08:01,"), POCKETS, r"HLA-B\*07:02"),
        (TABLE, "", "empty"),
        (TABLE, "allele,residues\nHLA-A*02:01,YFAC\n", "pocket_residues"),
        (TABLE, "allele,pocket_residues\n", "at least one"),
        (TABLE, POCKETS + "HLA-A*02:01,YFAC\n", "twice"),
        (TABLE, POCKETS.replace("YFAC", "YFA"), "same length"),
        (TABLE, POCKETS.replace("YFAC", ""), r"HLA-A\*02:01"),
    ],
)
def test_bad_files_are_refused_with_their_line_or_molecule(tmp_path, table, pockets, said):
    with pytest.raises(ValueError, match=said):
        load_binding_affinities(*write(tmp_path, table, pockets))


def linear_fit(data, molecule):
    X, y = peptide_features(data.peptides[molecule]), data.rewards[molecule]
    X, y = X - X.mean(dim=0), y - y.mean()
    return torch.linalg.solve(X.T @ X + 0.1 * torch.eye(X.shape[1]).to(X), X.T @ y)


def test_synthetic_affinities_share_what_their_pockets_share():
    data, again = (synthetic_binding_affinities(num_peptides=400) for _ in range(2))
    assert data.synthetic and len(data.molecules) == 7
    assert all(torch.equal(a, b) for a, b in zip(data.rewards, again.rewards, strict=True))
    assert {len(peptide) for peptides in data.peptides for peptide in peptides} == {9}
    for rewards in data.rewards:
        assert float(rewards.max()) <= math.log10(500) + 1e-9 and float(rewards.std()) > 0.5
    assert data.similarity[0, 1] > data.similarity[0, 6]
    # Peptides of the first molecule are better guides for the second than for the last.
    first, near, far = (linear_fit(data, molecule) for molecule in (0, 1, 6))
    assert torch.cosine_similarity(first, near, dim=0) > torch.cosine_similarity(first, far, dim=0)
    assert synthetic_binding_affinities(num_peptides=1).rewards[0].isfinite().all()
    with pytest.raises(ValueError, match="num_peptides"):
        synthetic_binding_affinities(num_peptides=0)


def test_the_matrix_has_the_published_entries():
    assert sorted(AMINO_ACIDS) == sorted("ACDEFGHIKLMNPQRSTVWY")
    scores = torch.tensor(BLOSUM62)
    assert torch.equal(scores, scores.T)
    # Henikoff and Henikoff 1992, figure 2.
    known = {"WW": 11, "CC": 9, "HH": 8, "PP": 7, "YY": 7, "AA": 4, "IV": 3, "FY": 3, "WY": 2}
    known |= {"KR": 2, "DE": 2, "ST": 1, "LM": 2, "GI": -4, "CE": -4, "FP": -4, "NW": -4, "AR": -1}
    places = {pair: [AMINO_ACIDS.index(letter) for letter in pair] for pair in known}
    assert {pair: int(scores[i, j]) for pair, (i, j) in places.items()} == known
    assert int(scores.sum()) == -426


def test_features_are_the_rows_of_each_position_one_apart_on_average():
    rows = torch.tensor(BLOSUM62, dtype=torch.float64)
    peptides = ["ACDEF", "WCDEF", "WWWWW"]
    plain = torch.stack(
        [torch.cat([rows[AMINO_ACIDS.index(letter)] for letter in each]) for each in peptides]
    )
    # Of two peptides that differ everywhere the mean squared distance is 1.
    apart = torch.cdist(rows, rows).square()
    scale = (5 * apart.sum() / (20 * 19)).sqrt()
    torch.testing.assert_close(
        peptide_features(peptides), plain / scale, **tolerance(torch.float64)
    )


def test_similarity_is_the_share_of_equal_residues_and_positive_semidefinite():
    K = shared_residues(["AAAA", "AAAC", "CCCC", "AAAA"])
    assert K.tolist() == [[1, 0.75, 0, 1], [0.75, 1, 0.25, 0.75], [0, 0.25, 1, 0], [1, 0.75, 0, 1]]
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-12
    with pytest.raises(ValueError, match="at least one"):
        shared_residues([])


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


def log_likelihood(K, noise_variance, y):
    """Of zero-mean normal values."""
    C = K.detach() + noise_variance * torch.eye(len(y)).double()
    quadratic = float(y @ torch.linalg.solve(C, y))
    return -0.5 * (quadratic + float(torch.logdet(C)) + len(y) * math.log(2 * math.pi))


def drawn_temperatures():
    """A day of four sensors from the process that is fitted."""
    generator = torch.Generator().manual_seed(3)
    time = time_of_day_kernel(3.0)
    time.kernels[1].lengthscale = 0.5
    K_T = time(clock(torch.arange(48) / 48)).to_dense().detach()
    factor = torch.tensor([[1.0, 1.5, -0.5, 0.8]]).double()
    K_S = factor.T @ factor + 0.1 * torch.eye(4)
    noise = 0.1 * torch.randn(4, 48, generator=generator).double()
    draw = torch.randn(4, 48, generator=generator).double()
    field = torch.linalg.cholesky(K_S) @ draw
    values = field @ torch.linalg.cholesky(K_T + 1e-9 * torch.eye(48)).T + noise
    return Temperatures(20 + 3 * values, (2, 3, 5, 7))


@pytest.fixture(scope="module")
def sensors():
    return fit_temperatures(drawn_temperatures(), time_kernel=time_of_day_kernel(3.0), rank=1)


def test_the_sensors_are_fitted_as_well_as_by_hand(sensors):
    data = drawn_temperatures()
    problem = HottestSensor(data, sensors.scaling)
    rows = torch.arange(4.0).double().repeat_interleave(48)
    X = torch.cat([rows.unsqueeze(-1), problem.contexts.repeat(4, 1)], dim=-1)
    y, noise = problem(X), sensors.noise_variance
    kernel = deepcopy(sensors.kernel)
    K = kernel(X).to_dense()
    found = log_likelihood(K, noise, y)
    assert sensors.scaling.center == pytest.approx(float(data.values.mean()))
    # What it says of itself is in degrees.
    in_degrees = found - len(X) * math.log(sensors.scaling.scale)
    assert sensors.log_likelihood == pytest.approx(in_degrees)
    assert float(K.diagonal().max()) == pytest.approx(1.0)
    circle = kernel.context_kernel.kernels[1]
    lengthscale = circle.lengthscale.clone()
    assert 0.3 < float(lengthscale) < 0.8  # drawn with 0.5
    for factor in (0.9, 1.1):
        assert log_likelihood(factor * K, noise, y) < found + 1e-3
        assert log_likelihood(K, factor * noise, y) < found + 1e-3
        circle.lengthscale = factor * lengthscale
        assert log_likelihood(kernel(X).to_dense(), noise, y) < found + 1e-3
    posterior = KernelGP(sensors.kernel, noise)
    posterior.add(X[::5], y[::5])
    mean, std = posterior.mean_and_std(X)
    assert float((mean - y).abs().max()) < 0.5 and float(std.max()) < 0.5


def test_the_lengthscale_of_days_is_what_was_given(sensors):
    days, circle = sensors.kernel.context_kernel.kernels
    assert float(days.lengthscale) == pytest.approx(3.0)
    given = time_of_day_kernel(3.0)
    unfitted = given.kernels[1].lengthscale.item()
    fit_temperatures(synthetic_temperatures(2, 1), time_kernel=given, rank=1)
    assert given.kernels[1].lengthscale.item() == unfitted != circle.lengthscale.item()
    K = sensors.kernel.context_kernel(clock(torch.tensor([0.2, 3.2]))).to_dense()
    at_one_lengthscale = (1 + math.sqrt(5) + 5 / 3) * math.exp(-math.sqrt(5))
    assert float(K[0, 1]) == pytest.approx(at_one_lengthscale)
    for wrong in (0.0, -1.0, math.inf):
        with pytest.raises(ValueError, match="day_lengthscale"):
            time_of_day_kernel(wrong)


def test_a_kernel_is_fitted_as_well_as_by_hand():
    X = drawn(60, 2, low=2.0, high=5.0)
    K = rbf(1.2)(X).to_dense().detach() + 0.01 * torch.eye(60)
    draw = torch.randn(60, generator=torch.Generator().manual_seed(5)).double()
    Y = 7 + 2 * torch.linalg.cholesky(K) @ draw
    model = fit_kernel(RBFKernel(), X, Y)
    y, K, noise = model.scaling(Y), model.kernel(X).to_dense(), model.noise_variance
    found = log_likelihood(K, noise, y)
    assert model.log_likelihood == pytest.approx(found - 60 * math.log(model.scaling.scale))
    for factor in (0.9, 1.1):
        for shift in (-0.1, 0.0, 0.1):
            assert log_likelihood(factor * K, noise, y + shift) < found + 1e-4
            assert log_likelihood(K, factor * noise, y + shift) < found + 1e-4
    assert 0.9 < float(model.kernel.lengthscale) < 1.5
    with pytest.raises(ValueError, match="Y"):
        fit_kernel(RBFKernel(), X, torch.ones(60).double())


def test_a_kernel_that_exceeds_one_is_scaled_to_one():
    X = torch.tensor([[0.0], [1.0], [1.0], [0.0]]).double()
    Y = torch.tensor([1.0, 2.0, 2.1, 0.9]).double()
    model = fit_kernel(TaskKernel([[3.0, 0.0], [0.0, 1.0]]), X, Y)
    assert model.kernel(X).to_dense().diagonal().tolist() == pytest.approx([1, 1 / 3, 1 / 3, 1])


def test_binding_is_fitted_on_a_random_subset():
    data = synthetic_binding_affinities(num_peptides=10)
    model, again, other = (
        fit_binding_affinities(data, num_examples=40, seed=seed) for seed in (1, 1, 2)
    )
    assert model.noise_variance == again.noise_variance != other.noise_variance
    kernel = model.kernel
    assert isinstance(kernel, ActionContextKernel) and kernel.combination == "product"
    close = tolerance(torch.float64)
    torch.testing.assert_close(kernel.context_kernel.covariance, data.similarity, **close)
    without = fit_binding_affinities(data, num_examples=40, seed=1, by_molecule=False)
    assert isinstance(without.kernel, RBFKernel)
    with pytest.raises(ValueError, match="num_examples"):
        fit_binding_affinities(data, num_examples=71)


@pytest.mark.parametrize(
    ("dataset", "load", "num_folds", "seed", "points"),
    [
        ("breast_cancer", load_breast_cancer, 5, 0, [[1.0, -2.0], [-1.5, 0.5], [3.0, -5.5]]),
        ("breast_cancer", load_breast_cancer, 3, 7, [[1.0, -2.0]]),
        pytest.param("digits", load_digits, 5, 0, [[1.0, -2.0]], marks=pytest.mark.slow),
    ],
)
def test_the_value_is_that_of_scikit_learn(dataset, load, num_folds, seed, points):
    inputs, labels = load(return_X_y=True)
    folds = StratifiedKFold(n_splits=num_folds, shuffle=True, random_state=seed)
    expected = []
    for c, gamma in points:
        own = Pipeline([("scale", StandardScaler()), ("svc", SVC(C=10**c, gamma=10**gamma))])
        expected.append(float(np.mean(cross_val_score(own, inputs, labels, cv=folds))))
    task = SVCTuning(dataset, num_folds=num_folds, seed=seed)
    assert task(points).tolist() == pytest.approx(expected, abs=1e-12)
    assert task.evaluate(points[0]) == pytest.approx(expected[0], abs=1e-12)


@pytest.mark.slow
def test_fixed_folds_are_deterministic_and_fold_noise_is_real_and_reproducible():
    fixed, noisy = SVCTuning(), SVCTuning(fold_noise=True)
    # Two settings so close that the classifiers agree: what differs is the folds.
    points = [[1.0, -2.0 + 1e-9 * i] for i in range(12)]
    assert len(set(fixed(points).tolist())) == 1
    values = noisy(points)
    assert torch.equal(values, noisy(points))
    assert len(set(values.tolist())) > 3
    assert 0.3 * noisy.noise_std < float(values.std()) < 3 * noisy.noise_std
    assert not torch.equal(values, SVCTuning(seed=1, fold_noise=True)(points))


@pytest.mark.slow
def test_it_travels_without_its_data_and_loads_them_at_the_first_evaluation():
    task = SVCTuning(fold_noise=True)
    here, pickled = task.evaluate([1.0, -2.0]), pickle.dumps(task)
    assert len(pickled) < 2000
    code = (
        f"import pickle, sys; task = pickle.loads({pickled!r})\n"
        "assert 'sklearn' not in sys.modules\n"
        "print(repr(task.evaluate([1.0, -2.0])))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert float(done.stdout) == here


def test_without_scikit_learn_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    svc._load.cache_clear()
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        SVCTuning()([1.0, -2.0])


def test_one_fold_is_refused():
    with pytest.raises(ValueError, match="num_folds"):
        SVCTuning(num_folds=1)
