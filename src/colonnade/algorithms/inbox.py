"""What the coordinator pushed and this party has not applied yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from colonnade.runtime.host import Promise, spawn

Work = Callable[[], Coroutine[Promise[Any], None, None]]


class Inbox:
    """Applies pushes one after the other, in order. Pushed batches beyond `pending` are dropped and counted."""

    def __init__(self, pending: int | None, failed: Callable[[BaseException], None]) -> None:
        self.dropped = 0
        self._pending = pending
        self._failed = failed
        self._waiting: deque[tuple[Work, bool]] = deque()
        self._batches = 0
        self._busy = False
        self._empty: Promise[None] | None = None

    def put(self, work: Work, batch: bool) -> None:
        if batch and self._pending is not None and self._batches >= self._pending:
            self.dropped += 1
            return
        self._batches += batch
        self._waiting.append((work, batch))
        if not self._busy:
            spawn(self._apply(), self._failed)

    async def drained(self) -> None:
        if self._busy:
            self._empty = self._empty or Promise()
            await self._empty

    async def _apply(self) -> None:
        self._busy = True
        while self._waiting:
            work, batch = self._waiting.popleft()
            await work()
            self._batches -= batch
        self._busy = False
        if self._empty is not None:
            self._empty.set(None)
