"""A party's columns: the only thing that touches X. Dense and sparse differ here and nowhere else."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from colonnade.errors import DataError

if TYPE_CHECKING:
    from types import ModuleType

Array = NDArray[np.float64]
Rows = slice | NDArray[np.uint32] | NDArray[np.int64]
"""Row numbers: `slice(start, stop)` within 0..n, or an array. The caller has checked them against n."""

PIECE = 4 * 2**20
"""Bytes of float64 that a gathered or widened part of a dense block takes at most."""


class FeatureBlock(Protocol):
    """The products that a party computes with its block X_ℓ; weights have the shape (d,) or (d, c)."""

    @property
    def rows(self) -> int: ...

    @property
    def columns(self) -> int: ...

    @property
    def matrix(self) -> Any:
        """The columns as numpy or scipy know them."""
        ...

    def product(self, rows: Rows, w: Array) -> Array:
        """X_rows w."""
        ...

    def add_adjoint(self, rows: Rows, r: Array, onto: Array, factor: float = 1.0) -> None:
        """onto += factor * X_rowsᵀ r."""
        ...

    def nonzeros(self, rows: Rows) -> int: ...

    def row_norms(self) -> Array:
        """Squared Euclidean norms of all rows."""
        ...


def count(rows: Rows) -> int:
    """How many rows are meant."""
    return int(rows.stop - rows.start) if isinstance(rows, slice) else len(rows)


def split(rows: Rows, size: int) -> Iterator[tuple[slice, Rows]]:
    """Parts of at most `size` rows, each with its place among all."""
    total = count(rows)
    for first in range(0, total, size):
        last = min(first + size, total)
        yield (
            slice(first, last),
            slice(rows.start + first, rows.start + last) if isinstance(rows, slice) else rows[first:last],
        )


def aligned(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """An uninitialised C-order array that starts at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out: NDArray[Any] = raw[start : start + size].view(dtype).reshape(shape)
    return out


class _Scratch(threading.local):
    """Room for gathered rows, kept from batch to batch. Each thread has its own: two may multiply at once."""

    def __init__(self) -> None:
        self._buffers: dict[Any, NDArray[Any]] = {}

    def matrix(self, rows: int, columns: int, dtype: Any) -> NDArray[Any]:
        buffer = self._buffers.get(dtype)
        if buffer is None or len(buffer) < rows:
            buffer = self._buffers[dtype] = aligned((rows, columns), dtype)
        return buffer[:rows]


class DenseBlock:
    """Columns in one C-order, 64-byte-aligned matrix; float32 stays float32 and is widened in parts."""

    def __init__(self, values: NDArray[Any]) -> None:
        self.values = aligned(values.shape, values.dtype)
        self.values[...] = values
        self.rows, self.columns = values.shape
        self.matrix = self.values
        self._wide = values.dtype == np.float64
        self._piece = max(1, PIECE // (8 * max(1, self.columns)))
        self._scratch = _Scratch()

    def product(self, rows: Rows, w: Array) -> Array:
        total = count(rows)
        if self._whole(rows, total):
            return self._load(rows, total) @ w
        out = np.empty((total, *w.shape[1:]))
        for part, some in split(rows, self._piece):
            np.matmul(self._load(some, count(some)), w, out=out[part])
        return out

    def add_adjoint(self, rows: Rows, r: Array, onto: Array, factor: float = 1.0) -> None:
        total = count(rows)
        size = max(1, total) if self._whole(rows, total) else self._piece
        for part, some in split(rows, size):
            onto += self._load(some, count(some)).T @ (factor * r[part])

    def nonzeros(self, rows: Rows) -> int:
        return count(rows) * int(self.columns)

    def row_norms(self) -> Array:
        out = np.empty(self.rows)
        for part, some in split(slice(0, self.rows), self._piece):
            loaded = self._load(some, count(some))
            np.einsum("ij,ij->i", loaded, loaded, out=out[part])
        return out

    def _whole(self, rows: Rows, total: int) -> bool:
        return total <= self._piece or (self._wide and isinstance(rows, slice))

    def _load(self, rows: Rows, total: int) -> Array:
        """X_rows as float64: a view where possible, else in this thread's buffer until the next call."""
        if isinstance(rows, slice):
            found = self.values[rows]
        else:
            found = self._scratch.matrix(total, self.columns, self.values.dtype)
            np.take(self.values, rows, axis=0, out=found, mode="clip")
        if not self._wide:
            wide = self._scratch.matrix(total, self.columns, np.float64)
            np.copyto(wide, found)
            found = wide
        return found


@cache
def _kernels() -> ModuleType:
    from colonnade.core import kernels

    return kernels


class SparseBlock:
    """Columns as CSR. A batch costs its non-zeros, whatever the number of columns."""

    def __init__(
        self, indptr: NDArray[Any], indices: NDArray[Any], values: NDArray[Any], columns: int
    ) -> None:
        """The arrays of a canonical CSR matrix (sorted, no duplicates), copied only if a type asks for it."""
        spans = np.ascontiguousarray(indptr, np.int64).view(np.uint64)
        self._starts, self._stops = spans[:-1], spans[1:]
        narrow = np.ascontiguousarray(indices)
        self.indices = narrow.view(np.uint32) if narrow.dtype == np.int32 else narrow.astype(np.uint32)
        self.values = np.ascontiguousarray(values)
        self.rows, self.columns = len(indptr) - 1, columns
        self._indptr = spans.view(np.int64)

    @property
    def matrix(self) -> Any:
        from scipy.sparse import csr_array

        indices = self.indices.view(np.int32)
        return csr_array((self.values, indices, self._indptr), shape=(self.rows, self.columns), copy=False)

    def product(self, rows: Rows, w: Array) -> Array:
        starts, stops = self._spans(rows)
        out = np.empty((len(starts), *w.shape[1:]))
        loop = _kernels().product_one if w.ndim == 1 else _kernels().product_many
        loop(starts, stops, self.indices, self.values, np.ascontiguousarray(w), out)
        return out

    def add_adjoint(self, rows: Rows, r: Array, onto: Array, factor: float = 1.0) -> None:
        starts, stops = self._spans(rows)
        loop = _kernels().adjoint_one if r.ndim == 1 else _kernels().adjoint_many
        loop(starts, stops, self.indices, self.values, np.ascontiguousarray(r), factor, onto)

    def nonzeros(self, rows: Rows) -> int:
        if isinstance(rows, slice):
            return int(self._stops[rows.stop - 1] - self._starts[rows.start]) if rows.stop > rows.start else 0
        starts, stops = self._spans(rows)
        return int((stops - starts).sum())

    def row_norms(self) -> Array:
        out = np.empty(self.rows)
        _kernels().squares(self._starts, self._stops, self.values, out)
        return out

    def _spans(self, rows: Rows) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        return self._starts[rows], self._stops[rows]


def as_block(X: Any) -> FeatureBlock:
    """A block of an array, a DataFrame, a scipy sparse matrix, or a block itself.

    Dense values are copied; a canonical CSR matrix is not, so it must not change afterwards.
    """
    if hasattr(X, "add_adjoint"):
        return cast(FeatureBlock, X)
    if hasattr(X, "tocsr"):
        return _sparse_block(X)
    values = np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X)
    if values.ndim != 2:
        raise DataError(f"a block has rows and columns, this one has the shape {values.shape}: reshape it")
    return DenseBlock(_numbers(values, getattr(X, "columns", None)))


def _sparse_block(X: Any) -> SparseBlock:
    csr = X.tocsr()
    if csr.dtype not in (np.float32, np.float64):
        csr = csr.astype(np.float64)
    try:
        csr.check_format(full_check=True)
    except ValueError as error:
        raise DataError(f"a sparse block is not a valid CSR matrix ({error}): build it anew") from error
    if not csr.has_canonical_format or np.count_nonzero(csr.data) < csr.nnz:
        csr = csr.copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
    stored = int(csr.indptr[-1])
    return SparseBlock(csr.indptr, csr.indices[:stored], csr.data[:stored], csr.shape[1])


def _numbers(values: NDArray[Any], names: Sequence[Any] | None) -> NDArray[Any]:
    if values.dtype in (np.float32, np.float64):
        return values
    if values.dtype.kind in "iub":
        return values.astype(np.float64)
    out = np.empty(values.shape)
    for j in range(values.shape[1]):
        try:
            out[:, j] = values[:, j]
        except (TypeError, ValueError) as error:
            raise DataError(
                f"{_column(j, names)} is not made of numbers ({error}): encode or drop it"
            ) from error
    return out


def _column(number: int, names: Sequence[Any] | None) -> str:
    return f"column {number}" if names is None else f"column {names[number]!r}"


def check_block(X: Any, party: str, columns: Sequence[Any] | None = None) -> FeatureBlock:
    """The block of X, refused if nothing can be learnt from it. `columns`: their names, for the sentence."""
    names = X.columns if columns is None and hasattr(X, "to_numpy") else columns
    try:
        block = as_block(X)
    except DataError as error:
        raise DataError(f"party {party!r}: {error}") from error
    if not (block.rows and block.columns):
        raise DataError(
            f"party {party!r} has an empty block ({block.rows} rows, {block.columns} columns): "
            "give it at least one of each"
        )
    bad, constant = _inspect(block)
    if bad.size:
        first, others = bad.min(), len(np.unique(bad)) - 1
        more = f", as have {others} more columns" if others else ""
        raise DataError(
            f"party {party!r}: {_column(int(first), names)} has {np.count_nonzero(bad == first)} values "
            f"that are NaN or infinite{more}: fill them in or drop them"
        )
    if constant:
        raise DataError(f"party {party!r} holds nothing to learn from: every column is constant")
    return block


def _inspect(block: FeatureBlock) -> tuple[NDArray[Any], bool]:
    """The column of each value that is not finite, and whether all columns are constant."""
    if isinstance(block, DenseBlock):
        low, high = block.values.min(axis=0), block.values.max(axis=0)
        suspects = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
        bad = suspects[np.nonzero(~np.isfinite(block.values[:, suspects]))[1]]
        return bad, bool((low == high).all())
    if isinstance(block, SparseBlock):
        return block.indices[~np.isfinite(block.values)], _constant(block)
    return np.empty(0), False


def _constant(block: SparseBlock) -> bool:
    """A column that only some rows have varies; if there is none, all rows have the same pattern."""
    filled = np.bincount(block.indices, minlength=1)
    if ((filled > 0) & (filled < block.rows)).any():
        return False
    by_row = block.values.reshape(block.rows, -1)
    return bool((by_row == by_row[0]).all())
