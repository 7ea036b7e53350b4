"""Batches of rows, drawn by each requester from a generator of its own."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

_WORD = 2**64 - 1


class Sampler:
    """Uniform batches of distinct rows, each independent; the same ones for the same seed and stream."""

    def __init__(self, seed: int, stream: str | int, rows: int, batch: int) -> None:
        number = stream
        if isinstance(number, str):
            number = int.from_bytes(hashlib.sha256(number.encode()).digest()[:8], "little")
        self._source = np.random.PCG64(np.random.SeedSequence([seed, number]))
        self._generator = np.random.Generator(self._source)
        self._rows, self._batch = rows, batch

    def draw(self) -> NDArray[np.uint32]:
        """The next batch: all rows in their order if it holds all."""
        if self._batch == self._rows:
            return np.arange(self._rows, dtype=np.uint32)
        drawn = self._generator.choice(self._rows, self._batch, replace=False, shuffle=False)
        return drawn.astype(np.uint32)

    def state(self) -> dict[str, NDArray[np.uint64]]:
        """The generator as six words, so that a restored sampler goes on with the same batches."""
        now = self._source.state
        wide = (now["state"]["state"], now["state"]["inc"])
        words = [half for number in wide for half in (number & _WORD, number >> 64)]
        return {"pcg64": np.array([*words, now["has_uint32"], now["uinteger"]], np.uint64)}

    def restore(self, state: dict[str, NDArray[np.uint64]]) -> None:
        words = [int(word) for word in state["pcg64"]]
        self._source.state = {
            "bit_generator": "PCG64",
            "state": {"state": words[0] | words[1] << 64, "inc": words[2] | words[3] << 64},
            "has_uint32": words[4],
            "uinteger": words[5],
        }
