"""Binding affinities of peptides and the molecules that present them, measured or synthetic."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.measured.peptides import (
    AMINO_ACIDS,
    peptide_features,
    require_peptide,
    shared_residues,
)
from botorch_ext.checks import whole_number

# The largest IC50 of a binder, in nM (Krause and Ong 2011, section 6.1).
_THRESHOLD = 500.0
_LENGTH = 9
_TABLE = ("allele", "peptide", "ic50_nM")
_ORIGINAL = ("species", "mhc", "peptide_length", "sequence", "inequality", "meas")
_POCKETS = ("allele", "pocket_residues")


@dataclass(frozen=True, eq=False)
class BindingAffinities:
    """The binding affinities of peptides to some molecules.

    Args:
        molecules: The names of the molecules.
        peptides: The peptides that were measured with each molecule.
        rewards: The affinities of these peptides, for each molecule: log10(500 / IC50), with IC50
            in nM.
        pockets: The residues of the binding pocket of each molecule, aligned.
        synthetic: Whether the affinities are synthetic.

    Raises:
        ValueError: If the numbers of entries do not match, a peptide comes twice for a molecule, a
            reward is not finite, or the residues are not aligned.
    """

    molecules: tuple[str, ...]
    peptides: tuple[tuple[str, ...], ...]
    rewards: tuple[Tensor, ...]
    pockets: tuple[str, ...]
    synthetic: bool = False

    def __post_init__(self) -> None:
        number = len(self.molecules)
        if not number or {len(self.peptides), len(self.rewards), len(self.pockets)} != {number}:
            raise ValueError(
                "peptides, rewards and pockets must have one entry for each of the "
                f"{number} molecules, got {len(self.peptides)}, {len(self.rewards)} and "
                f"{len(self.pockets)}"
            )
        for name, peptides, rewards in zip(
            self.molecules, self.peptides, self.rewards, strict=True
        ):
            if len(set(peptides)) != len(peptides):
                raise ValueError(f"peptides of {name} must be different, got the same one twice")
            if rewards.shape != (len(peptides),) or not bool(torch.isfinite(rewards).all()):
                raise ValueError(f"rewards of {name} must be {len(peptides)} finite numbers")
        shared_residues(self.pockets)

    @property
    def similarity(self) -> Tensor:
        """K_Z, the share of equal pocket residues of all pairs of molecules, ``m x m``."""
        return shared_residues(self.pockets)


def load_binding_affinities(
    path: str | Path, pockets: str | Path | Mapping[str, str]
) -> BindingAffinities:
    """Read binding affinities of 9-mers from a table or from the IEDB's benchmark data.

    The columns tell the two formats apart:

    - A table has the columns allele, peptide, ic50_nM, separated by commas.
    - bdata.20130222.mhci.txt of Kim et al. 2014 (BD2013, from tools.iedb.org/main/datasets) has the
      columns species, mhc, peptide_length, sequence, inequality, meas, separated by tabs. Only
      human molecules, 9-mers and exact measurements ("=") are taken.

    Rows of molecules without a pocket are skipped. A peptide that was measured several times with a
    molecule gets the mean of the logarithms.

    Args:
        path: The file.
        pockets: The residues of the binding pocket of each molecule: a table with the columns
            allele, pocket_residues, or a dict from one to the other. It also determines which
            molecules are taken, and their order.

    Returns:
        The affinities, with the peptides in the order of the file.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a file does not have these columns, the residues are not aligned, a molecule
            has no measurements, a peptide has a letter that is not an amino acid, or an IC50 is not
            positive.
    """
    residues = pockets if isinstance(pockets, Mapping) else _read_pockets(Path(pockets))
    if not residues:
        raise ValueError("pockets must have at least one molecule, got none")
    found: dict[str, dict[str, list[float]]] = {molecule: {} for molecule in residues}
    for molecule, peptide, reward in _measurements(Path(path), residues):
        found[molecule].setdefault(peptide, []).append(reward)
    for molecule, measured in found.items():
        if not measured:
            raise ValueError(
                f"{Path(path).name} must have a row for each molecule with a pocket, "
                f"got no measurement for {molecule}"
            )
    return BindingAffinities(
        molecules=tuple(residues),
        peptides=tuple(tuple(measured) for measured in found.values()),
        rewards=tuple(_means(measured.values()) for measured in found.values()),
        pockets=tuple(residues.values()),
    )


def _means(groups: Iterable[list[float]]) -> Tensor:
    return torch.tensor([math.fsum(each) / len(each) for each in groups], dtype=torch.float64)


def _rows(path: Path, formats: tuple[tuple[str, ...], ...]) -> Iterator[tuple[int, dict]]:
    """The rows of a table with a header, with their line numbers; the table must have all columns
    of one of the formats."""
    with path.open(newline="") as file:
        first = file.readline()
        if not first.strip():
            raise ValueError(f"{path.name} must be a table with a header, got an empty file")
        separator = "\t" if "\t" in first else ","
        columns = [name.strip() for name in first.split(separator)]
        if not any(set(names) <= set(columns) for names in formats):
            wanted = " or ".join(", ".join(names) for names in formats)
            raise ValueError(f"{path.name} must have the columns {wanted}, got {columns}")
        reader = csv.DictReader(file, columns, delimiter=separator)
        for row in reader:
            yield reader.line_num + 1, row


def _read_pockets(path: Path) -> dict[str, str]:
    pockets: dict[str, str] = {}
    for line, row in _rows(path, (_POCKETS,)):
        molecule, residues = row["allele"], row["pocket_residues"]
        if molecule in pockets:
            raise ValueError(f"{path.name}, line {line}: got {molecule} twice")
        if not residues:
            raise ValueError(f"{path.name}, line {line}: got no residues for {molecule}")
        pockets[molecule] = residues
    return pockets


def _measurements(path: Path, molecules: Mapping[str, str]) -> Iterator[tuple[str, str, float]]:
    """The molecule, the peptide and the reward of each row that counts."""
    for line, row in _rows(path, (_TABLE, _ORIGINAL)):
        original = "mhc" in row
        if original:
            exact = (row["species"], row["peptide_length"], row["inequality"])
            if exact != ("human", str(_LENGTH), "="):
                continue
        name, column, value = ("mhc", "sequence", "meas") if original else _TABLE
        molecule, peptide = row[name], row[column]
        if molecule not in molecules:
            continue
        try:
            require_peptide(peptide)
        except ValueError as error:
            raise ValueError(f"{path.name}, line {line}: {error}") from error
        if len(peptide) != _LENGTH:
            raise ValueError(
                f"{path.name}, line {line}: {column} must have {_LENGTH} amino acids, got "
                f"{peptide!r}"
            )
        yield molecule, peptide, _reward(row[value], f"{path.name}, line {line}: {value}")


def _reward(text: str | None, name: str) -> float:
    try:
        concentration = float(text or "")
    except ValueError:
        concentration = math.nan
    if not 0 < concentration < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {text!r}")
    return math.log10(_THRESHOLD) - math.log10(concentration)


def synthetic_binding_affinities(
    num_peptides: int = 200, num_pockets: int = 34, seed: int = 0
) -> BindingAffinities:
    """Make synthetic affinities of seven molecules, to use in place of measured ones.

    The pockets of three molecules are much alike; those of the other four have less and less in
    common. A reward is linear in the features of the peptide, plus noise, and at most log10(500),
    as measured rewards are. The weights of two molecules are as similar as their pockets. Only the
    shape resembles the data of the IEDB.

    Args:
        num_peptides: The number of peptides for each molecule.
        num_pockets: The number of residues of a pocket.
        seed: The seed of all random numbers.

    Returns:
        The affinities, marked as synthetic.

    Raises:
        ValueError: If there are no peptides or no residues.
    """
    whole_number(num_peptides, "num_peptides", least=1)
    whole_number(num_pockets, "num_pockets", least=1)
    rng = np.random.default_rng(seed)

    def letters(*size: int) -> np.ndarray:
        return rng.choice(list(AMINO_ACIDS), size)

    first = letters(num_pockets)
    pockets = []
    for share in (0.0, 0.1, 0.1, 0.4, 0.5, 0.6, 0.7):  # the shares of replaced residues
        replaced = rng.random(num_pockets) < share
        pockets.append("".join(np.where(replaced, letters(num_pockets), first)))
    peptides = [
        tuple(dict.fromkeys("".join(row) for row in letters(num_peptides, _LENGTH)))
        for _ in pockets
    ]
    K = shared_residues(pockets)
    factor = torch.linalg.cholesky(K + 1e-6 * torch.eye(len(K)).to(K)).numpy()
    weights = torch.from_numpy(factor @ rng.standard_normal((len(K), 20 * _LENGTH)))
    rewards = []
    for own, weight in zip(peptides, weights, strict=True):
        values = peptide_features(own) @ weight
        values = 1.2 * (values - values.mean()) / values.std(correction=0).clamp_min(1e-9)
        noise = torch.from_numpy(0.4 * rng.standard_normal(len(own)))
        rewards.append((values + noise).clamp_max(math.log10(_THRESHOLD)))
    return BindingAffinities(
        molecules=tuple(f"made-up {i}" for i in range(1, len(pockets) + 1)),
        peptides=tuple(peptides),
        rewards=tuple(rewards),
        pockets=tuple(pockets),
        synthetic=True,
    )
