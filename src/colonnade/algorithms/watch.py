"""Progress for whoever watches a run: what the coordinator knows, now and then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colonnade.algorithms.party import Party

Watch = Callable[[dict[str, Any]], None]
EVERY = 0.25
"""Seconds of the host's clock between two looks."""


class Watcher:
    """Tells an event at most every quarter of a second."""

    def __init__(self, party: Party, watch: Watch | None) -> None:
        self._party = party
        self._watch = watch
        self._next = 0.0

    def look(self) -> None:
        if self._watch is None:
            return
        party = self._party
        now = party.host.now()
        if now < self._next:
            return
        self._next = now + EVERY
        seconds = max(now - party._started, 1e-9)
        computing = party.host.computing_seconds / seconds
        communicating = party.host.communicating_seconds / seconds
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
                "computing": computing,
                "communicating": communicating,
                "waiting": max(0.0, 1.0 - computing - communicating),
            }
        )
