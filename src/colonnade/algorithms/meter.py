"""Counts what a party does and notes its weights on the way; objectives are computed from the notes, after the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from msgspec import structs

from colonnade.algorithms.result import Note
from colonnade.core.linear import Frozen, LinearModel
from colonnade.runtime.host import Host

EVERY_ROUND = 1_000
SPACING = 0.01
MOST_BYTES = 2**25
"""Noted weights are thinned beyond this, or beyond four times as much where notes are free."""


class Meter:
    """Counters of one party. A note after every move of the first rounds, later one every 1 %.

    Where time is real a note waits until the steps since the last one have cost as much as copying the weights does.
    """

    def __init__(
        self, model: LinearModel, host: Host, sent: Callable[[], tuple[int, int]], dense: int
    ) -> None:
        self.rounds = 0
        self.rows = 0
        self.steps = 0
        self.on_note: Callable[[], None] | None = None
        self._model = model
        self._now = host.now
        self._most_bytes = 4 * MOST_BYTES if host.notes_are_free else MOST_BYTES
        self._price = 0 if host.notes_are_free else model.weights.u.size
        self._worked = 0
        self._sent = sent
        self._dense = dense
        self._spacing = SPACING
        self._stride = 1
        self._ticks = 0
        self._next = 0
        self._notes: list[Note] = []
        self._weights: list[Frozen] = []
        self._moved = True

    def round_done(self, rows: int) -> None:
        self.rounds += 1
        self.rows += rows

    def stepped(self, nonzeros: int) -> None:
        self.steps += 1
        self._worked += nonzeros
        self._moved = True
        self.tick()

    def tick(self) -> None:
        self._ticks += 1
        if self._ticks >= self._next and (self._worked >= self._price or not self._moved):
            self._worked = 0
            self.note()
            later = self._ticks * self._spacing if self._ticks >= self._dense else self._stride
            self._next = self._ticks + max(self._stride, int(later))

    def note(self) -> None:
        if self._moved or not self._weights:
            self._weights.append(self._model.freeze())
            self._moved = False
        messages, size = self._sent()
        seconds = self._now()
        self._notes.append(
            Note(seconds, self.rounds, self.rows, self.steps, messages, size, len(self._weights) - 1)
        )
        if len(self._weights) * self._weights[0].weights.nbytes > self._most_bytes and len(self._weights) > 8:
            self._thin()
        if self.on_note is not None:
            self.on_note()

    def end(self, final: Frozen) -> tuple[list[Note], Any, Any]:
        """The last note is the final weights."""
        self._weights.append(final)
        messages, size = self._sent()
        seconds = self._now()
        number = len(self._weights) - 1
        self._notes.append(Note(seconds, self.rounds, self.rows, self.steps, messages, size, number))
        weights = np.stack([frozen.weights for frozen in self._weights])
        intercepts = np.stack([np.asarray(frozen.intercept, dtype=float) for frozen in self._weights])
        return list(self._notes), weights, intercepts

    def _thin(self) -> None:
        """Every other set of weights goes, with its notes; the first and the last stay."""
        last = len(self._weights) - 1
        keep = [number for number in range(last + 1) if number % 2 == 0 or number == last]
        renumbered = {old: new for new, old in enumerate(keep)}
        self._weights = [self._weights[number] for number in keep]
        self._notes = [
            structs.replace(note, weights=renumbered[note.weights])
            for note in self._notes
            if note.weights in renumbered
        ]
        self._spacing *= 2
        self._stride *= 2
