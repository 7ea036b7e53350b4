"""Prepared columns put together into one matrix, dense or sparse, and its rows scaled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SPARSE_BELOW = 0.15
"""Share of non-zeros below which a sparse block multiplies faster than a dense one."""


@dataclass(frozen=True)
class Numbers:
    """One numeric column."""

    name: str
    values: NDArray[np.float64]

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,)

    def filled(self) -> NDArray[np.intp]:
        """Rows that are not zero."""
        return np.flatnonzero(self.values)

    def entries(self, rows: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Column offset and value of these rows."""
        return np.zeros(len(rows), dtype=np.int64), self.values[rows]


@dataclass(frozen=True)
class OneHot:
    """The 0/1 columns of a categorical one: `codes` says which of them is 1, -1 none."""

    names: tuple[str, ...]
    codes: NDArray[np.int32]

    def filled(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.codes >= 0)

    def entries(self, rows: NDArray[np.intp]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        return self.codes[rows], np.ones(len(rows))


Piece: TypeAlias = Numbers | OneHot
Matrix: TypeAlias = "NDArray[np.float64] | csr_matrix"


def assemble(pieces: list[Piece], rows: int, layout: str) -> Matrix:
    """All pieces side by side; `layout` auto is sparse when few numbers are not zero."""
    columns = sum(len(piece.names) for piece in pieces)
    if layout == "auto":
        filled = sum(len(piece.filled()) for piece in pieces)
        layout = "sparse" if filled < SPARSE_BELOW * rows * columns else "dense"
    return _sparse(pieces, rows, columns) if layout == "sparse" else _dense(pieces, rows, columns)


def _dense(pieces: list[Piece], rows: int, columns: int) -> NDArray[np.float64]:
    values = np.zeros((rows, columns))
    start = 0
    for piece in pieces:
        hit = piece.filled()
        offsets, numbers = piece.entries(hit)
        values[hit, start + offsets] = numbers
        start += len(piece.names)
    return values


def _sparse(pieces: list[Piece], rows: int, columns: int) -> csr_matrix:
    from scipy.sparse import coo_matrix

    where, which, values = [], [], []
    start = 0
    for piece in pieces:
        hit = piece.filled()
        offsets, numbers = piece.entries(hit)
        where.append(hit)
        which.append(start + offsets)
        values.append(numbers)
        start += len(piece.names)
    entries = (np.concatenate(values), (np.concatenate(where), np.concatenate(which)))
    return coo_matrix(entries, shape=(rows, columns)).tocsr()


def root_mean_square_length(values: Matrix) -> float:
    """Of the rows; 1 for an empty block."""
    return float(np.sqrt(_square_lengths(values).mean())) or 1.0


def unit_rows(values: Matrix) -> Matrix:
    """Every row divided by its length; empty rows stay."""
    lengths = np.sqrt(_square_lengths(values))
    lengths[lengths == 0] = 1.0
    if isinstance(values, np.ndarray):
        return values / lengths[:, None]
    from scipy.sparse import diags

    return (diags(1 / lengths) @ values).tocsr()


def _square_lengths(values: Matrix) -> NDArray[np.float64]:
    if isinstance(values, np.ndarray):
        return np.asarray(np.einsum("ij,ij->i", values, values))
    return np.asarray(values.multiply(values).sum(axis=1), dtype=np.float64).ravel()
