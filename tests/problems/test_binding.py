"""Binding affinities: their files, the features of peptides, and those that are made up."""

import math

import pytest
import torch

from botorch_ext.problems import load_binding_affinities, synthetic_binding_affinities
from botorch_ext.problems.real_data.peptides import (
    AMINO_ACIDS,
    BLOSUM62,
    peptide_features,
    shared_residues,
)
from tests.helpers import tolerance

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
