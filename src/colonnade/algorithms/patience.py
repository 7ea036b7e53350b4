"""How long a party waits for others before it takes one of them for lost."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from colonnade.runtime.host import Promise

if TYPE_CHECKING:
    from colonnade.algorithms.party import Party

LONG_WAIT = 10
"""Time-outs before a party that only answers takes its coordinator for lost, which may be computing; and before a
requester gives up a sum while others still talk."""


async def watch_over(party: Party, finished: Promise[Any]) -> None:
    """Silence beyond the time-out counts as a lost party."""
    timeout = party.plan.job.timeout
    seen, quiet, stuck = (0, 0, 0), 0, 0
    while not finished.ready:
        await party.host.sleep(timeout, background=True)
        now = (party.peers.messages_sent, party.peers.messages_received, party.exchange.completed)
        quiet = quiet + 1 if now == seen else 0
        stuck = stuck + 1 if now[2] == seen[2] and party.exchange.asking() else 0
        seen = now
        patience, silent = min(_waits_for(party), default=(1, None))
        over = quiet >= patience or stuck >= LONG_WAIT
        if over and silent is not None and not finished.ready:
            party.lost(silent, f"silent for {max(quiet, stuck) * timeout:g} s")


def _waits_for(party: Party) -> Iterator[tuple[int, str]]:
    """Who must speak next, and how many time-outs it may take: more for one who may wait for others itself."""
    yield from party.exchange.waits_for()
    yield from party.ending.waits_for()
    if not party.ending.begun:
        yield from ((1, name) for name in party.peers.unready())
    if party.others and not party.requests:
        yield LONG_WAIT, party.plan.coordinator
