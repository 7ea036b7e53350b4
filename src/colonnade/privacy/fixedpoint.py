"""Fixed-point words: integers modulo 2^64 or 2^256, so that sums are exact and any mask hides any number.

A number x travels as round(x 2^k) modulo the word's size. Sums of words do not round, in whatever order.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from colonnade.errors import OverflowRefusedError, RemoteProtocolError

Words: TypeAlias = NDArray[np.uint64]
Numbers: TypeAlias = NDArray[np.float64]
LITTLE = np.dtype("<u8")


class Format(Protocol):
    """How numbers become words of `word_bytes` bytes. Words of m numbers have m as their first length."""

    word_bytes: int

    def encode(self, values: Numbers, parties: int) -> Words:
        """Words of all values, in order; refused where the total of so many parties could wrap."""
        ...

    def decode(self, words: Words, shape: tuple[int, ...]) -> Numbers:
        """The numbers of a total."""
        ...

    def add(self, onto: Words, words: Words) -> None:
        """onto += words, in place."""
        ...

    def subtract(self, onto: Words, words: Words) -> None:
        """onto -= words, in place."""
        ...

    def words_from(self, buffer: bytes | bytearray | memoryview, count: int) -> Words:
        """A view of received bytes (or of entropy: any bytes are words) as `count` words."""
        ...

    def bytes_of(self, words: Words) -> memoryview:
        """The words as they travel, little-endian: a view, so nobody may add to them any more."""
        ...


class Narrow:
    """Words modulo 2^64 with `bits` binary places: what scores travel in."""

    word_bytes = 8

    def __init__(self, bits: int = 40) -> None:
        self.bits = bits
        self._up, self._down = 2.0**bits, 2.0**-bits

    def encode(self, values: Numbers, parties: int) -> Words:
        flat = np.asarray(values, np.float64).reshape(-1)
        scratch = np.abs(flat)
        _check_fit(scratch, self._limit(parties))
        np.multiply(flat, self._up, out=scratch)
        np.rint(scratch, out=scratch)
        return scratch.astype(np.int64).view(np.uint64)

    def decode(self, words: Words, shape: tuple[int, ...]) -> Numbers:
        numbers = words.view(np.int64).astype(np.float64)
        numbers *= self._down
        return numbers.reshape(shape)

    def add(self, onto: Words, words: Words) -> None:
        np.add(onto, words, out=onto)

    def subtract(self, onto: Words, words: Words) -> None:
        np.subtract(onto, words, out=onto)

    def words_from(self, buffer: bytes | bytearray | memoryview, count: int) -> Words:
        return _view(buffer, count, self.word_bytes)

    def bytes_of(self, words: Words) -> memoryview:
        return _raw(words)

    def _limit(self, parties: int) -> float:
        return float((2**63 - 1) // parties) * self._down


class Wide:
    """Words modulo 2^256 with 128 binary places, as four limbs: exact for every float64 of ordinary size.

    For small sums that must not lose a digit (Gram rows, certificates, step bounds), not for speed.
    """

    word_bytes = 32
    bits = 128

    def encode(self, values: Numbers, parties: int) -> Words:
        flat = np.asarray(values, np.float64).reshape(-1)
        _check_fit(np.abs(flat), float((2**255 - 1) // parties) * 2.0**-128)
        scaled = np.rint(flat * 2.0**128)
        raw = b"".join((int(number) % 2**256).to_bytes(32, "little") for number in scaled.tolist())
        return np.frombuffer(raw, LITTLE).reshape(-1, 4).astype(np.uint64)

    def decode(self, words: Words, shape: tuple[int, ...]) -> Numbers:
        raw = bytes(_raw(words))
        totals = (int.from_bytes(raw[i : i + 32], "little") for i in range(0, len(raw), 32))
        signed = (total - 2**256 if total >= 2**255 else total for total in totals)
        return np.array([total / 2**128 for total in signed], np.float64).reshape(shape)

    def add(self, onto: Words, words: Words) -> None:
        carry = np.zeros(len(onto), np.uint64)
        for limb in range(4):
            mine = onto[:, limb]
            mine += carry
            wrapped = mine < carry
            mine += words[:, limb]
            carry = (wrapped | (mine < words[:, limb])).astype(np.uint64)

    def subtract(self, onto: Words, words: Words) -> None:
        """onto - words = ~(~onto + words), as ~a = -1 - a."""
        np.invert(onto, out=onto)
        self.add(onto, words)
        np.invert(onto, out=onto)

    def words_from(self, buffer: bytes | bytearray | memoryview, count: int) -> Words:
        return _view(buffer, 4 * count, 8).reshape(-1, 4)

    def bytes_of(self, words: Words) -> memoryview:
        return _raw(words)


def _check_fit(sizes: Numbers, limit: float) -> None:
    """A sum of `parties` numbers, each strictly below the limit, cannot wrap, rounding included."""
    largest = float(np.maximum.reduce(sizes, initial=0.0))
    if largest < limit:
        return
    if np.isfinite(largest):
        raise OverflowRefusedError(
            f"a share holds a number of size {largest:.6g} and the limit is {limit:.6g}: "
            "scale the features down, or lower the step"
        )
    raise OverflowRefusedError(
        f"a share holds {int(np.count_nonzero(~np.isfinite(sizes)))} numbers that are NaN or infinite "
        f"(the limit is {limit:.6g}): lower the step, or scale the features down"
    )


def _view(buffer: bytes | bytearray | memoryview, count: int, size: int) -> Words:
    received = memoryview(buffer).nbytes
    if received != count * size:
        raise RemoteProtocolError(f"an array of {received} bytes came where {count * size} were asked for")
    return np.frombuffer(buffer, LITTLE)


def _raw(words: Words) -> memoryview:
    return np.ascontiguousarray(words, LITTLE).reshape(-1).view(np.uint8).data
