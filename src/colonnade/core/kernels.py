"""Loops over the non-zeros of some rows: the only file that numba compiles, imported for the first product.

Row i of the asked ones holds `values[starts[i]:stops[i]]` in the columns `indices[...]`. Index variables are
unsigned: signed ones make numba test every index for a negative value, which costs nearly half of the speed.
Nothing here checks a bound: a block is checked when built, rows when they are looked up in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[Any]
Spans = NDArray[np.uint64]
Indices = NDArray[np.uint32]
Loop = TypeVar("Loop", bound=Callable[..., None])


def _read(kind: Any, dimensions: int = 1) -> Any:
    return numba.types.Array(kind, dimensions, "C", readonly=True)


def _written(dimensions: int) -> Any:
    return numba.types.Array(numba.float64, dimensions, "C")


def _compiled(signature: Callable[[Any], Any]) -> Callable[[Loop], Loop]:
    """Compile for float64 and float32 values. What is only read may be read-only, as in a message."""
    signatures = [signature(_read(numba.float64)), signature(_read(numba.float32))]
    return cast(Callable[[Loop], Loop], numba.njit(signatures, cache=True, nogil=True))


_SPANS, _INDICES, _ONE, _MANY = (
    _read(numba.uint64),
    _read(numba.uint32),
    _read(numba.float64),
    _read(numba.float64, 2),
)
_void = numba.types.void


@_compiled(lambda values: _void(_SPANS, _SPANS, _INDICES, values, _ONE, _written(1)))
def product_one(
    starts: Spans, stops: Spans, indices: Indices, values: Floats, w: Floats, out: Floats
) -> None:
    """out = X_rows w."""
    for i in range(out.size):
        total = 0.0
        for k in range(starts[i], stops[i]):
            total += values[k] * w[indices[k]]
        out[i] = total


@_compiled(lambda values: _void(_SPANS, _SPANS, _INDICES, values, _MANY, _written(2)))
def product_many(
    starts: Spans, stops: Spans, indices: Indices, values: Floats, w: Floats, out: Floats
) -> None:
    """out = X_rows w for some columns of weights."""
    for i in range(out.shape[0]):
        out[i] = 0.0
        for k in range(starts[i], stops[i]):
            for c in range(out.shape[1]):
                out[i, c] += values[k] * w[indices[k], c]


@_compiled(lambda values: _void(_SPANS, _SPANS, _INDICES, values, _ONE, numba.float64, _written(1)))
def adjoint_one(
    starts: Spans, stops: Spans, indices: Indices, values: Floats, r: Floats, factor: float, onto: Floats
) -> None:
    """onto += factor * X_rowsᵀ r."""
    for i in range(r.size):
        scaled = factor * r[i]
        for k in range(starts[i], stops[i]):
            onto[indices[k]] += scaled * values[k]


@_compiled(lambda values: _void(_SPANS, _SPANS, _INDICES, values, _MANY, numba.float64, _written(2)))
def adjoint_many(
    starts: Spans, stops: Spans, indices: Indices, values: Floats, r: Floats, factor: float, onto: Floats
) -> None:
    """onto += factor * X_rowsᵀ r for some columns of weights."""
    for i in range(r.shape[0]):
        for k in range(starts[i], stops[i]):
            scaled = factor * values[k]
            for c in range(r.shape[1]):
                onto[indices[k], c] += scaled * r[i, c]


@_compiled(lambda values: _void(_SPANS, _SPANS, values, _written(1)))
def squares(starts: Spans, stops: Spans, values: Floats, out: Floats) -> None:
    """out = squared Euclidean norms of the rows."""
    for i in range(out.size):
        total = 0.0
        for k in range(starts[i], stops[i]):
            value = 1.0 * values[k]
            total += value * value
        out[i] = total
