"""Decompositions of the columns of a domain into groups: all partitions, and random trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from botorch_ext.checks import whole_number
from botorch_ext.domains import host

Groups = tuple[tuple[int, ...], ...]

# 7 columns have 877 partitions, 8 columns 4,140.
_MOST_COLUMNS = 7


def set_partitions(dim: int) -> list[Groups]:
    """All partitions of the columns 0, ..., dim - 1 into groups.

    Args:
        dim: The number of columns, at most 7.

    Returns:
        The partitions; the first has a single group.

    Raises:
        ValueError: If there are more than 7 columns.
    """
    if not 1 <= dim <= _MOST_COLUMNS:
        raise ValueError(
            f"dim must be at most {_MOST_COLUMNS} for all partitions of the columns, got {dim}: "
            'use "trees" or give a list of decompositions'
        )
    return [tuple(tuple(group) for group in groups) for groups in _partitions(dim)]


def _partitions(dim: int) -> Iterator[list[list[int]]]:
    if dim == 0:
        yield []
        return
    column = dim - 1
    for groups in _partitions(column):
        for i in range(len(groups)):
            yield [*groups[:i], [*groups[i], column], *groups[i + 1 :]]
        yield [*groups, [column]]


def random_trees(dim: int, num: int, seed: int) -> list[Groups]:
    """Different random trees on the columns, whose edges are the groups.

    They are drawn uniformly from the labelled trees, by their Pruefer codes. Source of the idea:
    Ziomek and Bou-Ammar 2023.

    Args:
        dim: The number of columns, at least 2.
        num: The number of trees.
        seed: The same seed gives the same trees.

    Returns:
        The trees, each as its edges: groups of two columns.

    Raises:
        ValueError: If there are fewer than 2 columns, or fewer than ``num`` different trees,
            dim^(dim - 2).
    """
    dim = whole_number(dim, "dim", least=2)
    num = whole_number(num, "num", least=1)
    if num > dim ** (dim - 2):
        raise ValueError(
            f"num must be at most {dim ** (dim - 2)}, the number of trees on {dim} columns, "
            f"got {num}"
        )
    generator = torch.Generator().manual_seed(seed)
    trees: dict[Groups, None] = {}
    while len(trees) < num:
        trees[_tree(host.randint(dim, (dim - 2,), generator=generator).tolist())] = None
    return list(trees)


def _tree(code: Sequence[int]) -> Groups:
    """The edges of the tree with this Pruefer code, sorted."""
    dim = len(code) + 2
    degrees = [1 + list(code).count(column) for column in range(dim)]
    edges = []
    for column in code:
        leaf = degrees.index(1)
        edges.append((min(leaf, column), max(leaf, column)))
        degrees[leaf] -= 1
        degrees[column] -= 1
    first, second = (column for column in range(dim) if degrees[column] == 1)
    return tuple(sorted([*edges, (first, second)]))
