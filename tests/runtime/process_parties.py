"""Entries for the launcher's tests: parties that need no job, each in a process of its own."""

from __future__ import annotations

import os
import signal
import time

import msgspec
import numpy as np
from talkers import Asker, Echo, Talker

from colonnade.errors import DataError
from colonnade.runtime.host import Promise


def open_files():
    """What this process has open beside its standard streams."""
    paths = (f"/proc/self/fd/{number}" for number in range(3, 1_000))
    return [os.readlink(path) for path in paths if os.path.islink(path)]


def describe(host, plan, block, labels, ids, watch):
    """Says what it was given."""
    everything = slice(0, block.rows)
    seen = {
        "pid": os.getpid(),
        "shape": (block.rows, block.columns),
        "product": block.product(everything, np.arange(1.0, block.columns + 1)).tolist(),
        "labels": None if labels is None else labels.tolist(),
        "writable": labels is None or bool(labels.flags.writeable),
        "ids": ids,
        "parties": plan.parties,
        "threads": os.environ["OPENBLAS_NUM_THREADS"],
        "main": os.path.basename(__import__("__main__").__file__),
        "files": open_files(),
    }
    watch({"pid": os.getpid(), "number": np.float64(0.5)})
    return Promise.of(msgspec.msgpack.encode(seen))


def echo(host, plan, block, labels, ids, watch):
    """The first party asks the others, who answer; all give how many frames they saw."""
    counted = Promise()
    if host.name == plan.parties[0]:
        frames = [b"x" * size for size in (1, 8_192, 1_000_000)] * 3
        talker = Asker(host, len(plan.parties) - 1, frames)
    else:
        talker = Echo(host)
    talker.result.then(lambda done: counted.set(str(len(done.result().frames)).encode()))
    return counted


class _Stayer(Talker):
    """Stays until it loses a peer, or is interrupted."""

    def lost(self, peer, reason):
        self.result.set(f"lost {peer}".encode())

    def failed(self, error):
        self.result.set(type(error).__name__.encode())


def stay(host, plan, block, labels, ids, watch):
    stayer = _Stayer(host)
    host.sleep(0.0).then(lambda _: watch({"pid": os.getpid()}))
    return stayer.result


def stubborn(host, plan, block, labels, ids, watch):
    """Never ends, whatever it is told; the first party is busy and hears nothing either."""
    Talker(host).failed = lambda error: None
    watch({"pid": os.getpid()})
    if host.name == plan.parties[0]:
        host.sleep(0.0).then(lambda _: time.sleep(600))
    return Promise()


def one_dies(host, plan, block, labels, ids, watch):
    if host.name == plan.parties[-1]:
        os._exit(7)
    return stubborn(host, plan, block, labels, ids, watch)


def one_hangs(host, plan, block, labels, ids, watch):
    """The last party stops without dying; the others end."""
    if host.name == plan.parties[-1]:
        os.kill(os.getpid(), signal.SIGSTOP)
    return Promise.of(b"ended")


def data_error(host, plan, block, labels, ids, watch):
    raise DataError("column 3 is empty: drop it")


def bug(host, plan, block, labels, ids, watch):
    raise ZeroDivisionError("a bug")


def fails_later(host, plan, block, labels, ids, watch):
    promise = Promise()
    host.sleep(0.01).then(lambda _: promise.fail(DataError("no rows are left")))
    return promise
