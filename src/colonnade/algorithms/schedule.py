"""Who waits for whom: when an ask may be answered and how many pushes may wait."""

from __future__ import annotations

from typing import Protocol


class Schedule(Protocol):
    """`barrier`: an ask is answered only after the steps it follows. `pending`: pushes that may wait, None: all."""

    @property
    def barrier(self) -> bool: ...

    @property
    def pending(self) -> int | None: ...


class Asynchronous:
    """Nobody waits. A party that cannot follow drops pushed batches: a queue of stale ones diverges."""

    barrier = False
    pending = 16


class Synchronous:
    """One shared total a round; everybody takes the step that follows from it before the next."""

    barrier = True
    pending = None


def schedule_of(synchronous: bool) -> Schedule:
    return Synchronous() if synchronous else Asynchronous()
