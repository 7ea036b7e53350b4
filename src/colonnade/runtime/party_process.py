"""One party in a process of its own: a network host, the party on it, and the launcher on a socket."""

from __future__ import annotations

import asyncio
import importlib
import os
import socket
import traceback
from collections.abc import Callable
from typing import Any, cast

from colonnade.errors import ColonnadeError, ConfigurationError
from colonnade.runtime.eventloop import new_event_loop, report_failures
from colonnade.runtime.host import Promise
from colonnade.runtime.identity import Identity
from colonnade.runtime.network import NetworkHost
from colonnade.runtime.tasks import (
    Failed,
    Finished,
    Interrupt,
    Leave,
    News,
    Said,
    Task,
    framed,
    read_order,
    unpack,
)
from colonnade.wire.codec import FRAME_PREFIX, LONGEST_FRAME, FrameReader

Entry = Callable[..., Promise[Any]]


def main(control: socket.socket, server: socket.socket, arrays: int) -> int:
    """Read the task, run the party to its end, and give the exit status."""
    task = read_order(_read_frame(control))
    if not isinstance(task, Task):
        raise TypeError(f"the first order is {task!r}, not a task")
    loop = new_event_loop()
    return loop.run_until_complete(_PartyProcess(task, loop).run(control, server, arrays))


def _read_frame(control: socket.socket) -> bytes:
    length = int.from_bytes(_read(control, FRAME_PREFIX), "little")
    return _read(control, length)


def _read(control: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = control.recv(count - len(data))
        if not piece:
            os._exit(1)  # the launcher has gone before it said what to do
        data += piece
    return bytes(data)


class _PartyProcess(asyncio.Protocol):
    """The launcher's orders come in here, and news go out."""

    def __init__(self, task: Task, loop: asyncio.AbstractEventLoop) -> None:
        self._task = task
        self._loop = loop
        self._reader = FrameReader(LONGEST_FRAME, "the launcher")
        self._over: asyncio.Future[int] = loop.create_future()
        self._host: NetworkHost | None = None
        self._transport: asyncio.Transport | None = None
        self._interrupted = False
        """Ctrl-C may come before there is a host to tell."""

    async def run(self, control: socket.socket, server: socket.socket, arrays: int) -> int:
        report_failures(self._loop, self._fail)
        control.setblocking(False)
        await self._loop.create_unix_connection(lambda: self, sock=control)
        try:
            self._start(server, arrays).then(self._settled)
        except Exception as error:
            self._fail(error)
        status = await self._over
        if self._host is not None:
            await self._host.close()
        await self._flush()
        return status

    def _start(self, server: socket.socket, arrays: int) -> Promise[Any]:
        from colonnade.core.blocks import as_block

        task = self._task
        with os.fdopen(arrays, "rb") as file:
            block, labels, ids = unpack(file, task)
            block = as_block(block)
        self._host = NetworkHost(
            task.name,
            task.plan.parties,
            Identity(task.certificate, task.private_key),
            task.certificates,
            task.addresses,
            self._loop,
            server=server,
            connect_timeout=task.plan.job.timeout,
        )
        if self._interrupted:
            self._host.interrupt()
        return find_entry(task.entry)(self._host, task.plan, block, labels, ids, self._say)

    def _say(self, event: dict[str, Any]) -> None:
        self._tell(Said(event))

    def _settled(self, promise: Promise[Any]) -> None:
        try:
            result = promise.result()
            self._tell(Finished(result if isinstance(result, bytes) else _encode(result)))
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if isinstance(error, ColonnadeError):
            self._tell(Failed(str(error)))
        else:
            trace = "".join(traceback.format_exception(error))
            self._tell(Failed(f"{type(error).__name__}: {error}", trace))
        self._end(1)

    def _tell(self, news: News) -> None:
        if self._transport is not None:
            self._transport.write(framed(news))

    def _end(self, status: int) -> None:
        if not self._over.done():
            self._over.set_result(status)

    async def _flush(self) -> None:
        assert self._transport is not None
        while self._transport.get_write_buffer_size():
            await asyncio.sleep(0.001)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for frame in self._reader.feed(data):
            order = read_order(frame)
            if isinstance(order, Interrupt):
                self._interrupted = True
                if self._host is not None:
                    self._host.interrupt()
            elif isinstance(order, Leave):
                self._end(0)

    def connection_lost(self, error: Exception | None) -> None:
        os._exit(1)  # the launcher has gone: nobody wants a result


def find_entry(path: str) -> Entry:
    """The function that starts a party, from "module:function"."""
    module, _, function = path.partition(":")
    try:
        return cast(Entry, getattr(importlib.import_module(module), function))
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"entry = {path!r} cannot be imported ({error}): give module:function"
        ) from error


def _encode(result: Any) -> bytes:
    from colonnade.algorithms.result import encode

    return encode(result)
