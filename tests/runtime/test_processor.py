"""The processor: what runs where, and in which order."""

from __future__ import annotations

import threading
import time
from queue import Empty, Queue

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from colonnade.runtime.host import Promise
from colonnade.runtime.processor import SHORT, Processor

LONG = 10**9
"""Non-zeros that nobody takes for short work before it was measured."""


class Loop:
    """A loop that runs what the thread posts, in the thread of the test."""

    def __init__(self):
        self._posted = Queue()
        self.processor = Processor(self._posted.put)

    def run_until(self, *promises):
        while not all(promise.ready for promise in promises):
            try:
                self._posted.get(timeout=5)()
            except Empty:
                raise TimeoutError("the work has not come back") from None


@pytest.fixture
def loop():
    made = Loop()
    yield made
    made.processor.close()


def where():
    return threading.current_thread().name


def test_short_work_runs_at_once(loop):
    promise = loop.processor.compute(where, 100, writes=False)
    assert promise.ready
    assert promise.result() == threading.current_thread().name


def test_long_work_runs_in_the_thread(loop):
    promise = loop.processor.compute(where, LONG, writes=False)
    assert not promise.ready
    loop.run_until(promise)
    assert promise.result().startswith("colonnade-compute")


def test_a_write_runs_here_after_the_reads_that_were_asked_for_before(loop):
    order = []
    gate = threading.Event()

    def read(name):
        assert gate.wait(5)
        order.append(name)

    def write():
        order.append("write")
        return where()

    first = loop.processor.compute(lambda: read("first"), LONG, writes=False)
    written = loop.processor.compute(write, 1, writes=True)
    second = loop.processor.compute(lambda: read("second"), LONG * 2, writes=False)
    assert loop.processor.compute(where, 1, writes=False).ready, "a short read waits for nobody"
    assert not written.ready
    gate.set()
    loop.run_until(first, written, second)
    assert order == ["first", "write", "second"]
    assert written.result() == threading.current_thread().name


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(["read", "write", "peek"]), min_size=1, max_size=12))
def test_nobody_reads_half_a_step(kinds):
    """A model of two halves: a write changes one, then the other; long reads look at both."""
    loop = Loop()
    halves = [0, 0]

    def read():
        left = halves[0]
        time.sleep(0.0005)
        return left == halves[1]

    def write():
        halves[0] += 1
        time.sleep(0.0002)
        halves[1] += 1
        return True

    sizes = {"read": LONG, "write": 1, "peek": 1}
    promises = [
        loop.processor.compute(write if kind == "write" else read, sizes[kind], writes=kind == "write")
        for kind in kinds
    ]
    loop.run_until(*promises)
    loop.processor.close()
    assert all(promise.result() for promise in promises)
    assert halves == [kinds.count("write")] * 2


def test_what_turns_out_short_runs_at_once_next_time(loop):
    loop.run_until(loop.processor.compute(where, LONG, writes=False))
    assert loop.processor.compute(where, LONG, writes=False).ready


def test_what_turns_out_long_goes_to_the_thread_next_time(loop):
    def slow():
        time.sleep(3 * SHORT)

    assert loop.processor.compute(slow, 100, writes=False).ready
    assert not loop.processor.compute(slow, 100, writes=False).ready


def test_one_slow_start_is_forgotten(loop):
    """The first product compiles kernels: later ones of its size are short again."""
    assert loop.processor.compute(lambda: time.sleep(5 * SHORT), 100, writes=False).ready
    loop.run_until(loop.processor.compute(where, 100, writes=False))
    assert loop.processor.compute(where, 100, writes=False).ready


@pytest.mark.parametrize("nonzeros, writes", [(1, False), (LONG, False), (1, True)])
def test_an_exception_fails_the_promise_and_the_queue_goes_on(loop, nonzeros, writes):
    def fail():
        raise ZeroDivisionError

    failed = loop.processor.compute(fail, nonzeros, writes)
    after = loop.processor.compute(where, LONG, writes=False)
    loop.run_until(failed, after)
    with pytest.raises(ZeroDivisionError):
        failed.result()
    assert after.result()


def test_seconds_are_counted(loop):
    def nap():
        time.sleep(0.002)

    loop.processor.compute(nap, 1, writes=False)
    assert 0.002 <= loop.processor.inline_seconds < 0.5
    loop.run_until(loop.processor.compute(nap, LONG, writes=False))
    assert 0.002 <= loop.processor.thread_seconds < 0.5


def test_promises_are_of_the_host():
    assert isinstance(Loop().processor.compute(where, 1, writes=False), Promise)
