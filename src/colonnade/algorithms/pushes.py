"""What the coordinator's totals tell moves others: scores to those who hold labels, slopes to those who do not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from colonnade.algorithms.exchange import Rows, count_of
from colonnade.errors import RemoteProtocolError
from colonnade.wire.messages import SLOPES_LEARNT, SWEPT, Push

if TYPE_CHECKING:
    from colonnade.algorithms.party import Batch, Party


class Pushes:
    """Sends them, and applies those that come, in order."""

    def __init__(self, party: Party) -> None:
        self._party = party
        self._pass_came = (0, 0)
        """Round of the coordinator's pass that is pushed now, and the rows that came."""

    def send(
        self, to: Sequence[int], number: int, scores: Any, slopes: Any, start: int = 0, flags: int = 0
    ) -> None:
        party = self._party
        for learnt, values, receivers in (
            (0, scores, [p for p in to if p in party.with_labels]),
            (SLOPES_LEARNT, slopes, [p for p in to if p not in party.with_labels]),
        ):
            if receivers:
                array = np.ascontiguousarray(values).tobytes()
                push = Push(party.peers.incarnation, number, learnt | flags, start, array)
                party.peers.send_all(receivers, push)

    def received(self, sender: int, push: Push) -> None:
        party = self._party
        if sender != party.coordinator:
            raise RemoteProtocolError("pushed, though only the coordinator's totals move others")
        slopes_learnt = bool(push.learnt & SLOPES_LEARNT)
        if not slopes_learnt and party.labels is None:
            raise RemoteProtocolError("pushed scores to a party without labels")
        count = len(push.values) // (8 * party.plan.classes)
        rows = party.exchange.rows_of_round(push.round)
        if isinstance(rows, slice):
            self._next_of_pass(push, count)
            party.inbox.put(lambda: self._apply_pass(push), batch=False)
        else:
            _same_count(push, rows, count)
            party.inbox.put(lambda: self._apply_batch(rows, push), batch=True)
        party.counters["slopes" if slopes_learnt else "scores"] += count

    def _next_of_pass(self, push: Push, count: int) -> None:
        """The chunks of a pass come in order, each once."""
        came = self._pass_came[1] if self._pass_came[0] == push.round else 0
        if push.start != came or not count:
            raise RemoteProtocolError(f"pushed row {push.start:,} of a pass where {came:,} is next")
        self._pass_came = push.round, came + count
        self._party.counters["full_passes"] += came + count >= self._party.rows

    async def _apply_batch(self, rows: Batch, push: Push) -> None:
        party = self._party
        values = np.frombuffer(push.values, dtype="<f8")
        if party.plan.classes > 1:
            values = values.reshape(-1, party.plan.classes)
        told = push.learnt & SLOPES_LEARNT
        await party.step(rows, values if told else party.loss.slopes(values, party.labels[rows]))

    async def _apply_pass(self, push: Push) -> None:
        await self._party.passes.pushed(push)
        stop = push.start + len(push.values) // (8 * self._party.plan.classes)
        if push.learnt & SWEPT and stop >= self._party.rows:
            self._party.exchange.moved()


def _same_count(push: Push, rows: Rows, count: int) -> None:
    if count != count_of(rows):
        raise RemoteProtocolError(
            f"pushed {count:,} rows of round {push.round}, which has {count_of(rows):,}"
        )
