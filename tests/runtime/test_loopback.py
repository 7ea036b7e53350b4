"""All parties in one process over real links."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest
from talkers import Asker, Echo, Talker

from colonnade.errors import ConfigurationError
from colonnade.runtime.host import Promise
from colonnade.runtime.loopback import run_loopback

FRAMES = [b"a", b"b" * 8_192, b"c" * 500_000]


def conversation():
    return {
        "bank": lambda host: Asker(host, 2, FRAMES).result,
        "shop": lambda host: Echo(host).result,
        "club": lambda host: Echo(host).result,
    }


def check(results):
    assert list(results) == ["bank", "shop", "club"]
    assert len(results["bank"].frames) == 2 * len(FRAMES)
    for name in ("shop", "club"):
        assert results[name].frames == [("bank", frame) for frame in [*FRAMES, b""]]
    assert all(talker.losses == {} and talker.errors == [] for talker in results.values())


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, None])
def test_parties_talk_and_return(loop):
    check(run_loopback(conversation(), loop) if loop else run_loopback(conversation()))


def test_one_party_alone():
    assert run_loopback({"bank": lambda host: Promise.of(host.name)}) == {"bank": "bank"}


def test_below_a_running_event_loop():
    async def notebook():
        return run_loopback(conversation())

    check(asyncio.run(notebook()))


def test_from_a_thread():
    results = []
    thread = threading.Thread(target=lambda: results.append(run_loopback(conversation())))
    thread.start()
    thread.join(10)
    check(results[0])


def test_no_thread_or_descriptor_is_left():
    run_loopback(conversation())
    before = threading.active_count(), len(os.listdir("/proc/self/fd"))
    run_loopback(conversation())
    assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before


def test_a_party_that_cannot_start_ends_the_run():
    def refuse(host):
        raise ConfigurationError("nothing to do")

    with pytest.raises(ConfigurationError, match="nothing to do"):
        run_loopback(conversation() | {"club": refuse})


def test_a_failure_ends_the_run_though_others_wait():
    def fail(host):
        promise = Promise()
        host.sleep(0.01).then(lambda _: promise.fail(ZeroDivisionError("a bug")))
        return promise

    with pytest.raises(ZeroDivisionError, match="a bug"):
        run_loopback({"bank": lambda host: Talker(host).result, "shop": fail})


class Patient(Talker):
    """Ends when interrupted, unless it is deaf."""

    def __init__(self, host, interrupts):
        super().__init__(host)
        self.deaf = interrupts > 1
        host.sleep(0.0).then(lambda _: threading.Thread(target=self.press, args=[interrupts]).start())

    def press(self, interrupts):
        for _ in range(interrupts):
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

    def failed(self, error):
        if not self.deaf:
            self.result.set(type(error).__name__)


def test_ctrl_c_lets_the_parties_end():
    results = run_loopback({"bank": lambda host: Patient(host, interrupts=1).result})
    assert results == {"bank": "KeyboardInterrupt"}


def test_a_second_ctrl_c_stops_them():
    with pytest.raises(KeyboardInterrupt):
        run_loopback({"bank": lambda host: Patient(host, interrupts=2).result})
