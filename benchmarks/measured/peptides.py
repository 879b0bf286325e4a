"""Features of peptides, and the similarity of proteins."""

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
# The scores, with a row and a column for each of `AMINO_ACIDS`.
BLOSUM62 = tuple(tuple(int(score) for score in row.split()) for row in _BLOSUM62.split("\n")[1:-1])


def require_peptide(peptide: str) -> str:
    """Check that a peptide consists of the twenty amino acids.

    Args:
        peptide: A string of one-letter codes.

    Returns:
        The peptide.

    Raises:
        ValueError: If it is empty or has another letter.
    """
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
    """The features of peptides: the BLOSUM62 rows of their amino acids, 20 columns per position.

    They are scaled so that two peptides that differ at every position have a distance of 1, in the
    root mean square over all pairs of different amino acids.

    Args:
        peptides: Strings of one length.

    Returns:
        The features, ``n x (20 length)``.

    Raises:
        ValueError: If there are no peptides, a letter is not an amino acid, or lengths differ.
    """
    _require_one_length(peptides, "peptides")
    codes = torch.tensor([[AMINO_ACIDS.index(a) for a in require_peptide(p)] for p in peptides])
    rows = torch.tensor(BLOSUM62, dtype=torch.float64)
    number = len(AMINO_ACIDS)
    mean_square = float(torch.cdist(rows, rows).square().sum()) / (number * (number - 1))
    return rows[codes].flatten(1) / math.sqrt(mean_square * codes.shape[1])


def shared_residues(sequences: Sequence[str]) -> Tensor:
    """The share of positions at which two aligned sequences have the same residue.

    This is one minus their Hamming distance divided by the length. It is positive semi-definite,
    since it is the mean of kernels that test equality at one position.

    Args:
        sequences: Strings of one length.

    Returns:
        The shares of all pairs, ``n x n``, with ones on the diagonal.

    Raises:
        ValueError: If there are no sequences, or lengths differ.
    """
    _require_one_length(sequences, "sequences")
    codes = torch.tensor([[ord(letter) for letter in sequence] for sequence in sequences])
    return (codes.unsqueeze(0) == codes.unsqueeze(1)).double().mean(dim=-1)


def _require_one_length(strings: Sequence[str], name: str) -> None:
    lengths = sorted({len(string) for string in strings})
    if not lengths:
        raise ValueError(f"{name} must have at least one entry, got none")
    if len(lengths) > 1:
        raise ValueError(f"{name} must all have the same length, got lengths {lengths}")
