"""Progress for whoever watches a run: what the coordinator knows, now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colonnade.algorithms.party import Party

Watch = Callable[[dict[str, Any]], None]
EVERY = 0.25
"""Seconds of the host's clock between two looks."""

SMOOTHING = 0.2
"""Weight of the newest batch in the sampled loss."""


class Watcher:
    """Tells an event at most every quarter of a second."""

    def __init__(self, party: Party, watch: Watch | None) -> None:
        self._party = party
        self._watch = watch
        self._next = 0.0
        self._sampled: float | None = None

    def scored(self, rows: Any, scores: Any) -> None:
        """A label party's estimate of the loss: batches seen when a look is due, smoothed."""
        party = self._party
        if self._watch is not None and party.host.now() >= self._next:
            value = float(party.loss.value(scores, party.labels[rows]))
            before = value if self._sampled is None else self._sampled
            self._sampled = before + SMOOTHING * (value - before)

    def look(self) -> None:
        if self._watch is None:
            return
        party = self._party
        now = party.host.now()
        if now < self._next:
            return
        self._next = now + EVERY
        seconds = max(now - party._started, 1e-9)
        computing, communicating = (spent / seconds for spent in party.spent())
        self._watch(
            {
                "seconds": seconds,
                "rounds": party.rounds_known(),
                "rows": party.rows_known(),
                "steps": party.meter.steps,
                "messages": party.peers.messages_sent,
                "bytes": party.peers.bytes_sent,
                "objective": party.passes.objective,
                "certificate": party.passes.certificate,
                "sampled": self._sampled,
                "computing": computing,
                "communicating": communicating,
                "waiting": max(0.0, 1.0 - computing - communicating),
            }
        )
