"""A party's processor: short work at once, long work in one thread, and nobody ever reads half a step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

from colonnade.runtime.host import Promise

T = TypeVar("T")

SHORT = 0.3e-3
"""Seconds of work that delay the listener less than a hop to the thread would."""

FIRST_GUESS = 2e-9
"""Seconds a non-zero, until work of that size was measured."""


class _Work(NamedTuple):
    call: Callable[[], Any]
    size: int
    writes: bool
    promise: Promise[Any]


class Processor:
    """Runs work for one event loop. `post` brings a call from the thread back into the loop.

    Writes run on the loop, in order with the long reads: after those that were asked for before them.
    """

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self.inline_seconds = 0.0
        self.thread_seconds = 0.0
        self._post = post
        self._queue: deque[_Work] = deque()
        self._thread: ThreadPoolExecutor | None = None
        self._busy = False
        self._took: dict[int, float] = {}

    def compute(self, call: Callable[[], T], nonzeros: int, writes: bool) -> Promise[T]:
        size = int(nonzeros).bit_length()
        work = _Work(call, size, writes, Promise())
        short = self._took.get(size, nonzeros * FIRST_GUESS) < SHORT
        at_once = not (self._busy or self._queue) if writes else short
        if at_once:
            self._run(work)
        else:
            self._queue.append(work)
            self._advance()
        return work.promise

    def close(self) -> None:
        """Forget what waits; what runs in the thread runs out unheard."""
        self._queue.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _advance(self) -> None:
        while self._queue and not self._busy:
            work = self._queue.popleft()
            if work.writes:
                self._run(work)
            else:
                self._send_to_thread(work)

    def _run(self, work: _Work) -> None:
        """On the loop: reads and writes alike."""
        started = perf_counter()
        try:
            result = work.call()
        except Exception as error:
            self.inline_seconds += perf_counter() - started
            work.promise.fail(error)
            return
        took = perf_counter() - started
        self.inline_seconds += took
        if not work.writes:
            self._learn(work.size, took)
        work.promise.set(result)

    def _send_to_thread(self, work: _Work) -> None:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "colonnade-compute")
        self._busy = True
        self._thread.submit(self._run_in_thread, work)

    def _run_in_thread(self, work: _Work) -> None:
        started = perf_counter()
        result, failure = None, None
        try:
            result = work.call()
        except Exception as error:
            failure = error
        took = perf_counter() - started
        self._post(lambda: self._finished(work, took, result, failure))

    def _finished(self, work: _Work, took: float, result: Any, failure: Exception | None) -> None:
        self._busy = False
        self.thread_seconds += took
        if failure is None:
            self._learn(work.size, took)
        # The next long read starts before what waits for this one runs, unless a write stands between.
        self._advance()
        if failure is None:
            work.promise.set(result)
        else:
            work.promise.fail(failure)

    def _learn(self, size: int, took: float) -> None:
        """How long work of this size takes: a first compilation or a busy machine is forgotten soon."""
        known = self._took.get(size)
        self._took[size] = took if known is None else min(took, 1.1 * known)
