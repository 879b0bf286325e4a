"""Peptides as points, and how alike proteins are."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"

# Henikoff and Henikoff 1992, Amino acid substitution matrices from protein blocks, in half bits:
# the file BLOSUM62 of the NCBI without its rows for ambiguous letters.
_BLOSUM62 = """
 4 -1 -2 -2  0 -1 -1  0 -2 -1 -1 -1 -1 -2 -1  1  0 -3 -2  0
-1  5  0 -2 -3  1  0 -2  0 -3 -2  2 -1 -3 -2 -1 -1 -3 -2 -3
-2  0  6  1 -3  0  0  0  1 -3 -3  0 -2 -3 -2  1  0 -4 -2 -3
-2 -2  1  6 -3  0  2 -1 -1 -3 -4 -1 -3 -3 -1  0 -1 -4 -3 -3
 0 -3 -3 -3  9 -3 -4 -3 -3 -1 -1 -3 -1 -2 -3 -1 -1 -2 -2 -1
-1  1  0  0 -3  5  2 -2  0 -3 -2  1  0 -3 -1  0 -1 -2 -1 -2
-1  0  0  2 -4  2  5 -2  0 -3 -3  1 -2 -3 -1  0 -1 -3 -2 -2
 0 -2  0 -1 -3 -2 -2  6 -2 -4 -4 -2 -3 -3 -2  0 -2 -2 -3 -3
-2  0  1 -1 -3  0  0 -2  8 -3 -3 -1 -2 -1 -2 -1 -2 -2  2 -3
-1 -3 -3 -3 -1 -3 -3 -4 -3  4  2 -3  1  0 -3 -2 -1 -3 -1  3
-1 -2 -3 -4 -1 -2 -3 -4 -3  2  4 -2  2  0 -3 -2 -1 -2 -1  1
-1  2  0 -1 -3  1  1 -2 -1 -3 -2  5 -1 -3 -1  0 -1 -3 -2 -2
-1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5  0 -2 -1 -1 -1 -1  1
-2 -3 -3 -3 -2 -3 -3 -3 -1  0  0 -3  0  6 -4 -2 -2  1  3 -1
-1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4  7 -1 -1 -4 -3 -2
 1 -1  1  0 -1  0  0  0 -1 -2 -2  0 -1 -2 -1  4  1 -3 -2 -2
 0 -1  0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1  1  5 -2 -2  0
-3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1  1 -4 -3 -2 11  2 -3
-2 -2 -2 -3 -2 -1 -2 -3  2 -1 -1 -2 -1  3 -3 -2 -2  2  7 -1
 0 -3 -3 -3 -1 -2 -2 -3 -3  3  1 -2  1 -1 -2 -2  0 -3 -1  4
"""
# A row and a column for each of `AMINO_ACIDS`.
BLOSUM62 = tuple(tuple(int(score) for score in row.split()) for row in _BLOSUM62.split("\n")[1:-1])


def require_peptide(peptide: str) -> str:
    """The peptide, or a ValueError unless it is made of the twenty amino acids."""
    if not peptide:
        raise ValueError("peptide must have at least one amino acid, got ''")
    for letter in peptide:
        if letter not in AMINO_ACIDS:
            raise ValueError(
                f"peptide must be made of the amino acids {AMINO_ACIDS}, got {letter!r} of "
                f"{peptide!r}"
            )
    return peptide


def peptide_features(peptides: Sequence[str]) -> Tensor:
    """Each amino acid's row of BLOSUM62, one position after the other: 20 columns for each.

    They are scaled so that two peptides with other amino acids everywhere are at a distance of 1,
    in the root mean square over all pairs of different amino acids.

    Args:
        peptides: Strings of one length.

    Returns:
        ``n x (20 length)``.

    Raises:
        ValueError: No peptides, other letters than those of the amino acids, or several lengths.
    """
    _require_one_length(peptides, "peptides")
    codes = torch.tensor([[AMINO_ACIDS.index(a) for a in require_peptide(p)] for p in peptides])
    rows = torch.tensor(BLOSUM62, dtype=torch.float64)
    number = len(AMINO_ACIDS)
    mean_square = float(torch.cdist(rows, rows).square().sum()) / (number * (number - 1))
    return rows[codes].flatten(1) / math.sqrt(mean_square * codes.shape[1])


def shared_residues(sequences: Sequence[str]) -> Tensor:
    """The share of positions where two aligned sequences have the same residue.

    One minus their Hamming distance divided by the length; as a mean of kernels that ask for
    equality at one position it is positive semi-definite.

    Args:
        sequences: Strings of one length.

    Returns:
        ``n x n``, with ones on the diagonal.

    Raises:
        ValueError: No sequences, or several lengths.
    """
    _require_one_length(sequences, "sequences")
    codes = torch.tensor([[ord(letter) for letter in sequence] for sequence in sequences])
    return (codes.unsqueeze(0) == codes.unsqueeze(1)).double().mean(dim=-1)


def _require_one_length(strings: Sequence[str], name: str) -> None:
    lengths = sorted({len(string) for string in strings})
    if not lengths:
        raise ValueError(f"{name} must hold at least one, got none")
    if len(lengths) > 1:
        raise ValueError(f"{name} must be of one length, got lengths {lengths}")
