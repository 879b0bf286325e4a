import math

import pytest
import torch

from botorch_ext.problems import (
    BindingAffinities,
    load_binding_affinities,
    synthetic_binding_affinities,
)
from botorch_ext.problems.real_data.peptides import peptide_features

POCKETS = "allele,pocket_residues\nHLA-B*07:02,YYAC\nHLA-A*02:01,YFAC\n"
TABLE = """allele,peptide,ic50_nM
HLA-A*02:01,AAATSAGTR,500
HLA-A*02:01,AAHARFVAA,5000
HLA-B*07:02,AAHARFVAA,1
HLA-C*01:01,AAAAAAAAA,7
"""
# The columns and kinds of rows of bdata.20130222.mhci.txt.
ORIGINAL = "\n".join(
    "\t".join(row.split())
    for row in """species mhc peptide_length sequence inequality meas
human HLA-A*02:01 9 AAATSAGTR = 500.0
human HLA-A*02:01 9 AAHARFVAA = 5000
human HLA-A*02:01 9 ALHARFVAA > 20000
human HLA-A*02:01 10 AAHARFVAAV = 1
human HLA-B*07:02 9 AAHARFVAA = 1.0
human HLA-C*01:01 9 XXXXXXXXX = -1
mouse H-2-Db 9 AAHARFVAA = 3.0
""".splitlines()
)


def write(folder, table: str, pockets: str = POCKETS):
    (folder / "binding.csv").write_text(table)
    (folder / "pockets.csv").write_text(pockets)
    return folder / "binding.csv", folder / "pockets.csv"


@pytest.mark.parametrize("text", [TABLE, ORIGINAL, TABLE.replace("\n", "\r\n"), TABLE + "\n\n"])
def test_both_formats_are_read(tmp_path, text) -> None:
    data = load_binding_affinities(*write(tmp_path, text))
    assert data.molecules == ("HLA-B*07:02", "HLA-A*02:01")
    assert data.peptides == (("AAHARFVAA",), ("AAATSAGTR", "AAHARFVAA"))
    assert [rewards.tolist() for rewards in data.rewards] == [
        pytest.approx([math.log10(500)], rel=1e-12),
        pytest.approx([0.0, -1.0]),
    ]
    assert data.rewards[0].dtype == torch.float64
    assert data.pockets == ("YYAC", "YFAC")
    assert data.similarity.tolist() == [[1.0, 0.75], [0.75, 1.0]]
    assert not data.synthetic


def test_pockets_can_be_given_as_they_are(tmp_path) -> None:
    path, _ = write(tmp_path, ORIGINAL)
    data = load_binding_affinities(path, {"HLA-A*02:01": "YFAC"})
    assert data.molecules == ("HLA-A*02:01",) and data.pockets == ("YFAC",)


def test_a_peptide_measured_twice_gets_the_mean_of_its_logarithms(tmp_path) -> None:
    data = load_binding_affinities(*write(tmp_path, TABLE + "HLA-A*02:01,AAATSAGTR,5\n"))
    assert data.peptides[1] == ("AAATSAGTR", "AAHARFVAA")
    assert data.rewards[1].tolist() == pytest.approx([1.0, -1.0])


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("ic50_nM", "ic50", "must have the columns allele, peptide, ic50_nM .* got"),
        (TABLE, "", "empty"),
        ("AAATSAGTR,500", "AAATSAGXR,500", "line 2.*'X' of 'AAATSAGXR'"),
        ("AAATSAGTR,500", "AAATSAGT,500", "line 2.*9 amino acids.*'AAATSAGT'"),
        ("AAATSAGTR,500", "AAATSAGTR,0", "line 2.*ic50_nM must be positive.*'0'"),
        ("AAATSAGTR,500", "AAATSAGTR,-3", "line 2.*ic50_nM must be positive.*'-3'"),
        ("AAATSAGTR,500", "AAATSAGTR,inf", "line 2.*ic50_nM must be positive"),
        ("AAATSAGTR,500", "AAATSAGTR,low", "line 2.*ic50_nM must be positive.*'low'"),
        ("AAATSAGTR,500", "AAATSAGTR", "line 2.*ic50_nM must be positive.*None"),
        ("HLA-B*07:02,", "HLA-B*08:01,", "no measurement for HLA-B\\*07:02"),
    ],
)
def test_bad_tables(tmp_path, old, new, match) -> None:
    assert old in TABLE
    with pytest.raises(ValueError, match=match):
        load_binding_affinities(*write(tmp_path, TABLE.replace(old, new)))


@pytest.mark.parametrize(
    ("pockets", "match"),
    [
        ("", "empty"),
        ("allele,residues\nHLA-A*02:01,YFAC\n", "columns allele, pocket_residues"),
        ("allele,pocket_residues\n", "at least one molecule"),
        (POCKETS + "HLA-A*02:01,YFAC\n", "HLA-A\\*02:01 twice"),
        (POCKETS.replace("YFAC", "YFA"), "must all have the same length"),
        (POCKETS.replace("YFAC", ""), "residues for HLA-A\\*02:01"),
    ],
)
def test_bad_pockets(tmp_path, pockets, match) -> None:
    with pytest.raises(ValueError, match=match):
        load_binding_affinities(*write(tmp_path, TABLE, pockets))


def test_synthetic_affinities_share_what_their_pockets_share() -> None:
    data = synthetic_binding_affinities(num_peptides=400)
    again = synthetic_binding_affinities(num_peptides=400)
    assert data.synthetic and len(data.molecules) == 7
    assert all(torch.equal(a, b) for a, b in zip(data.rewards, again.rewards, strict=True))
    assert {len(peptide) for peptides in data.peptides for peptide in peptides} == {9}
    assert all(float(rewards.max()) <= math.log10(500) + 1e-9 for rewards in data.rewards)
    assert all(float(rewards.std()) > 0.5 for rewards in data.rewards)
    near, far = data.similarity[0, 1], data.similarity[0, 6]
    assert near > far
    # Peptides of the first molecule are better guides for the second than for the last.
    weights = [_linear_fit(data, molecule) for molecule in (0, 1, 6)]
    cosines = [float(torch.cosine_similarity(weights[0], other, dim=0)) for other in weights[1:]]
    assert cosines[0] > cosines[1]
    assert synthetic_binding_affinities(num_peptides=1).rewards[0].isfinite().all()
    with pytest.raises(ValueError, match="num_peptides"):
        synthetic_binding_affinities(num_peptides=0)


def _linear_fit(data: BindingAffinities, molecule: int) -> torch.Tensor:
    X, y = peptide_features(data.peptides[molecule]), data.rewards[molecule]
    X, y = X - X.mean(dim=0), y - y.mean()
    return torch.linalg.solve(X.T @ X + 0.1 * torch.eye(X.shape[1]).to(X), X.T @ y)
