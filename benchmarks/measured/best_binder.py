"""Best binder: choosing a peptide for a molecule (Krause and Ong 2011, section 6.1)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from benchmarks.measured.binding_affinities import BindingAffinities
from benchmarks.measured.peptides import peptide_features
from benchmarks.measured.scaling import Scaling
from botorch_ext.checks import whole_number
from botorch_ext.domains import FiniteSet, as_points
from botorch_ext.problems.functions.contextual import ContextualFunction


class BestBinder(ContextualFunction):
    """The contextual problem of finding the peptide that binds best to a molecule.

    An action is a peptide, given by its features; a context is the number of a molecule. The value
    is log10(500 / IC50) of the table, without noise: a peptide that is measured again gets the same
    value. Most pairs were never measured and have no value, so only the `actions` of a molecule can
    be chosen for it.

    Args:
        affinities: The measurements.
        scaling: The scaling of the values; None leaves them as they are.

    Attributes:
        domain: The features of all peptides, ``N x (20 length)``.
        peptides: The peptides, in the order of the domain.
    """

    def __init__(self, affinities: BindingAffinities, scaling: Scaling | None = None) -> None:
        together = dict.fromkeys(p for own in affinities.peptides for p in own)
        self.peptides: tuple[str, ...] = tuple(together)
        self._set = FiniteSet(peptide_features(self.peptides))
        super().__init__(self._set, context_dim=1)
        self.affinities: BindingAffinities = affinities
        self.scaling: Scaling = scaling or Scaling()
        place = {peptide: row for row, peptide in enumerate(self.peptides)}
        self._rows = [[place[peptide] for peptide in own] for own in affinities.peptides]
        self._table = torch.full((len(place), len(self._rows)), torch.nan, dtype=torch.float64)
        for molecule, (rows, rewards) in enumerate(
            zip(self._rows, affinities.rewards, strict=True)
        ):
            self._table[rows, molecule] = self.scaling(rewards.to(torch.float64))

    def rows(self, molecule: int) -> list[int]:
        """The rows, in the domain, of the peptides that were measured with a molecule.

        Args:
            molecule: The number of the molecule, from 0.

        Returns:
            The rows.

        Raises:
            ValueError: If there is no such molecule.
        """
        number = len(self._rows)
        if not 0 <= whole_number(molecule, "molecule") < number:
            raise ValueError(f"molecule must be from 0 to {number - 1}, got {molecule}")
        return list(self._rows[molecule])

    def actions(self, molecule: int) -> Tensor:
        """The features of the peptides that were measured with a molecule.

        Args:
            molecule: The number of the molecule, from 0.

        Returns:
            The features, ``m x (20 length)``.

        Raises:
            ValueError: If there is no such molecule.
        """
        return self.domain.like[self.rows(molecule)]

    def _evaluate(self, X: Tensor) -> Tensor:
        dim, number = self.domain.dim, len(self._rows)
        molecules = X[:, dim].long()
        wrong = (X[:, dim] != molecules) | (molecules < 0) | (molecules >= number)
        if bool(wrong.any()):
            raise ValueError(
                f"context must be a molecule, a whole number from 0 to {number - 1}, got "
                f"{X[wrong][0, dim].item():g}"
            )
        rows = self._set.index(X[:, :dim])
        values = self._table[rows, molecules].masked_fill(rows < 0, torch.nan)
        missing = values.isnan()
        if bool(missing.any()):
            raise ValueError(
                "action must be a peptide measured with molecule "
                f"{int(molecules[missing][0])}, got one that was not"
            )
        return values

    def _optimum_at(
        self, context: Tensor | Sequence[float], actions: Tensor | None
    ) -> tuple[Tensor, float]:
        if actions is None:
            actions = self.actions(int(as_points(context, 1, self.domain.like, "context")[0, 0]))
        return super()._optimum_at(context, actions)
