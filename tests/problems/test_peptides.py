import pytest
import torch

from botorch_ext.problems.real_data.peptides import (
    AMINO_ACIDS,
    BLOSUM62,
    peptide_features,
    shared_residues,
)
from tests.helpers import tolerance


def test_the_matrix_has_the_published_entries() -> None:
    assert sorted(AMINO_ACIDS) == sorted("ACDEFGHIKLMNPQRSTVWY")
    scores = dict(zip(AMINO_ACIDS, BLOSUM62, strict=True))

    def score(a: str, b: str) -> float:
        return scores[a][AMINO_ACIDS.index(b)]

    assert torch.equal(torch.tensor(BLOSUM62), torch.tensor(BLOSUM62).T)
    # Henikoff and Henikoff 1992, figure 2.
    known = {"WW": 11, "CC": 9, "HH": 8, "PP": 7, "YY": 7, "AA": 4, "IV": 3, "FY": 3, "WY": 2}
    known |= {"KR": 2, "DE": 2, "ST": 1, "LM": 2, "GI": -4, "CE": -4, "FP": -4, "NW": -4, "AR": -1}
    for (a, b), value in known.items():
        assert score(a, b) == value
    assert sum(map(sum, BLOSUM62)) == -426


def test_features_are_the_rows_of_each_position() -> None:
    features = peptide_features(["ACDEF", "WCDEF", "WWWWW"])
    assert features.shape == (3, 100) and features.dtype == torch.float64
    rows = torch.tensor(BLOSUM62, dtype=torch.float64)
    plain = torch.stack(
        [
            torch.cat([rows[AMINO_ACIDS.index(letter)] for letter in peptide])
            for peptide in ("ACDEF", "WCDEF", "WWWWW")
        ]
    )
    ratio = plain / features
    scale = ratio[features != 0].median()
    torch.testing.assert_close(features * scale, plain, **tolerance(torch.float64))
    assert torch.equal(features[0, 20:], features[1, 20:])


def test_peptides_that_differ_everywhere_are_at_distance_one_on_average() -> None:
    total, pairs = 0.0, 0
    for a in AMINO_ACIDS:
        for b in AMINO_ACIDS:
            if a != b:
                X = peptide_features([a * 9, b * 9])
                total += float(((X[0] - X[1]) ** 2).sum())
                pairs += 1
    assert total / pairs == pytest.approx(1.0)


def test_similarity_is_the_share_of_equal_residues_and_positive_semidefinite() -> None:
    K = shared_residues(["AAAA", "AAAC", "CCCC", "AAAA"])
    expected = [[1, 0.75, 0, 1], [0.75, 1, 0.25, 0.75], [0, 0.25, 1, 0], [1, 0.75, 0, 1]]
    assert K.tolist() == expected
    generator = torch.Generator().manual_seed(0)
    letters = torch.randint(4, (30, 12), generator=generator)
    K = shared_residues(["".join("ACDE"[i] for i in row) for row in letters.tolist()])
    assert float(torch.linalg.eigvalsh(K).min()) > -1e-12
    with pytest.raises(ValueError, match="must all have the same length"):
        shared_residues(["AA", "A"])
    with pytest.raises(ValueError, match="at least one"):
        shared_residues([])
