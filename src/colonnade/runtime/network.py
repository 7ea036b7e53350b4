"""The real world of a party: this machine's clock and processor, and one TLS link to every other party."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from colonnade.errors import ColonnadeError, ConfigurationError, RemoteProtocolError
from colonnade.runtime.connection import Connection, tls_reason
from colonnade.runtime.host import TRAINING, Link, Listener, Promise
from colonnade.runtime.identity import (
    Identity,
    client_context,
    fingerprint,
    pem_fingerprint,
    server_context,
    signed_by,
)
from colonnade.runtime.processor import Processor

T = TypeVar("T")
Address = tuple[str, int]

HANDSHAKE_SECONDS = 10.0
GOODBYE_SECONDS = 2.0
STRANGERS = 64
"""Handshakes that may be under way at once."""


def bind(address: Address) -> socket.socket:
    """A socket that listens at an address; port 0 takes a free one."""
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(STRANGERS)
        listening.setblocking(False)
    except OSError as error:
        listening.close()
        raise ConfigurationError(
            f"cannot listen at {address[0]}:{address[1]} ({error.strerror or error}): "
            "stop the program that holds this port, or give another address"
        ) from None
    return listening


def new_event_loop() -> asyncio.AbstractEventLoop:
    """The fastest event loop at hand."""
    keep_buffers_mapped()
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def keep_buffers_mapped() -> None:
    """Free one large block, which raises glibc's threshold for mapping memory by itself.

    Each TLS read asks for 256 KiB and gives most of it back: below the threshold that is a mapping, made and
    undone. Eight parties over TLS in one thread, 8 KiB answers: 400 µs a round as it comes, 170 µs so.
    """
    np.empty(2**20, np.uint8)


def report_failures(loop: asyncio.AbstractEventLoop, failed: Callable[[BaseException], None]) -> None:
    """Bugs that escape into the event loop end the run; connections that break are told elsewhere."""

    def handle(_: object, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, OSError):
            failed(error or RuntimeError(context["message"]))

    loop.set_exception_handler(handle)


class NetworkHost:
    """A `Host` over sockets. The later party in the order dials the earlier; all of it runs on `loop`.

    `server` is a socket that listens already (see `bind`); without one, the party's own address is bound.
    """

    def __init__(
        self,
        name: str,
        parties: Sequence[str],
        identity: Identity,
        certificates: Mapping[str, str],
        addresses: Mapping[str, Address],
        loop: asyncio.AbstractEventLoop,
        *,
        server: socket.socket | None = None,
        connect_timeout: float = 30.0,
    ) -> None:
        self.name = name
        self.communicating_seconds = 0.0
        self.turned_away: list[tuple[str, str]] = []
        """Who was not let in, from which address and why: the last few."""
        self._loop = loop
        self._addresses = addresses
        self._certificates = certificates
        self._sign = identity.signer()
        self._connect_timeout = connect_timeout
        place = list(parties).index(name)
        self._earlier, self._later = tuple(parties[:place]), tuple(parties[place + 1 :])
        others = (*self._earlier, *self._later)
        self._pins = {pem_fingerprint(peer, certificates[peer]): peer for peer in others}
        if len(self._pins) < len(others):
            raise ConfigurationError("two parties show the same certificate: each needs its own")
        known = [certificates[peer] for peer in others]
        self._dialling, self._listening = client_context(identity, known), server_context(identity, known)
        self._links: dict[str, Promise[Link]] = {peer: Promise() for peer in others}
        self._connections: dict[str, Connection] = {}
        self._listener: Listener | None = None
        self._waiting: deque[Callable[[Listener], None]] = deque()
        self._inside = False
        self._processor = Processor(self._post)
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = True
        self._server = server
        if self._server is None and self._later:
            self._server = bind(addresses[name])
        self._loop.call_soon(self._start)

    # What a party sees

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float, background: bool = False) -> Promise[None]:
        promise: Promise[None] = Promise()
        self._loop.call_later(seconds, self._enter, promise.set, None)
        return promise

    def entropy(self, count: int) -> bytes:
        return os.urandom(count)

    def compute(
        self, work: Callable[[], T], nonzeros: int, lane: int = TRAINING, writes: bool = False
    ) -> Promise[T]:
        """Short work at once, long work in the one thread, whatever its lane."""
        return self._processor.compute(work, nonzeros, writes)

    def connect(self, peer: str) -> Promise[Link]:
        """The link to a peer once it is open; it fails if it cannot be opened."""
        if peer not in self._links:
            raise ConfigurationError(
                f"{self.name} has no address of {peer!r}: it is no other party of this job"
            )
        return self._links[peer]

    def listen(self, listener: Listener) -> None:
        """From now on tell `listener`; what happened before is told first."""
        self._listener = listener
        self._loop.call_soon(self._catch_up)

    def sign(self, data: bytes) -> bytes:
        return self._sign(data)

    def verify(self, peer: str, data: bytes, signature: bytes) -> bool:
        return signed_by(self._certificates[peer], data, signature)

    def limit(self, peer: str, size: int) -> None:
        """Before, frames may be as long as a greeting."""
        if peer in self._connections:
            self._connections[peer].limit(size)

    # What whoever runs a party sees

    @property
    def computing_seconds(self) -> float:
        return self._processor.inline_seconds + self._processor.thread_seconds

    @property
    def bytes_sent(self) -> int:
        return sum(link.bytes_sent for link in self._connections.values())

    @property
    def messages_sent(self) -> int:
        return sum(link.messages_sent for link in self._connections.values())

    def interrupt(self) -> None:
        """Ctrl-C: the party ends as it thinks best."""
        self._tell(lambda listener: listener.failed(KeyboardInterrupt()))

    async def close(self) -> None:
        """Send what waits, leave every peer, and stop."""
        self._open = False
        if self._server is not None:
            self._loop.remove_reader(self._server)
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()
        for connection in self._connections.values():
            connection.close()
        deadline = self._loop.time() + GOODBYE_SECONDS
        while any(c.open for c in self._connections.values()) and self._loop.time() < deadline:
            await asyncio.sleep(0.002)
        for connection in self._connections.values():
            connection.end("closed")
        self._processor.close()

    # Opening the links: the later party dials

    def _start(self) -> None:
        if not self._open:
            return
        if self._server is not None:
            self._loop.add_reader(self._server, self._accept)
        for peer in self._earlier:
            self._task(self._dial(peer))
        if self._later:
            self._loop.call_later(self._connect_timeout, self._miss)

    def _miss(self) -> None:
        for peer in self._later:
            if not self._links[peer].ready:
                who = ", ".join(f"{address}: {why}" for address, why in self.turned_away[-3:])
                hint = f"turned away meanwhile: {who}" if who else "is it running?"
                self._gone(peer, f"{peer} has not come within {self._connect_timeout:g} s; {hint}")

    def _task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed(error)

    async def _dial(self, peer: str) -> None:
        host, port = self._addresses[peer]
        deadline = self._loop.time() + self._connect_timeout
        while True:
            try:
                await self._loop.create_connection(
                    lambda: Connection(self, peer, listening=False),
                    host,
                    port,
                    ssl=self._dialling,
                    server_hostname="",
                    ssl_handshake_timeout=HANDSHAKE_SECONDS,
                    ssl_shutdown_timeout=GOODBYE_SECONDS,
                )
                return
            except ssl.SSLError as error:
                return self._gone(peer, f"{peer} at {host}:{port}: {tls_reason(error)}")
            except OSError as error:
                if self._loop.time() > deadline:
                    return self._gone(
                        peer, f"{peer} cannot be reached at {host}:{port}: {error.strerror or error}"
                    )
            await asyncio.sleep(0.05)

    def _accept(self) -> None:
        assert self._server is not None
        try:
            accepted, address = self._server.accept()
        except OSError:
            return
        if len(self._tasks) > STRANGERS:
            accepted.close()
        else:
            accepted.setblocking(False)
            self._task(self._greet(accepted, f"{address[0]}:{address[1]}"))

    async def _greet(self, accepted: socket.socket, address: str) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: Connection(self, address, listening=True),
                accepted,
                ssl=self._listening,
                ssl_handshake_timeout=HANDSHAKE_SECONDS,
                ssl_shutdown_timeout=GOODBYE_SECONDS,
            )
        except ssl.SSLError as error:
            self._turn_away(address, tls_reason(error))
        except OSError as error:
            self._turn_away(address, f"the handshake was not finished ({error})")

    def _turn_away(self, address: str, reason: str) -> None:
        """Strangers are no business of the party."""
        self.turned_away = [*self.turned_away[1 - STRANGERS :], (address, reason)]

    def admit(self, connection: Connection, certificate: bytes) -> str | None:
        name = self._pins.get(fingerprint(certificate))
        expected = self._later if connection.listening else (connection.peer,)
        if name is None or name not in expected:
            shown = f"the certificate of {name!r}" if name else "an unknown certificate"
            return f"{connection.peer} showed {shown}, which is not expected there"
        if name in self._connections:
            return f"{connection.peer} came a second time as {name!r}"
        connection.join(name)
        self._connections[name] = connection
        if self._listener is None or self._waiting:
            connection.pause_reading()
        self._tell(lambda listener: self._opened(listener, connection))
        return None

    def _opened(self, listener: Listener, connection: Connection) -> None:
        self._links[connection.peer].set(connection)
        listener.opened(connection.peer)

    # What the connections tell

    def frames(self, connection: Connection, data: bytes) -> None:
        """Hand each frame to the party within this very call: an answer is under way before it returns."""
        assert self._listener is not None
        self._enter(self._received, self._listener, connection, data)

    def _received(self, listener: Listener, connection: Connection, data: bytes) -> None:
        peer, feed = connection.peer, connection.reader.feed
        try:
            at = 0
            while not connection.limited and at < len(data):
                # The party may raise the limit with any frame, and a feed judges all it gets by one limit.
                at += 1
                for frame in feed(data[at - 1 : at]):
                    listener.received(peer, frame)
            for frame in feed(data[at:] if at else data):
                listener.received(peer, frame)
        except RemoteProtocolError as error:
            connection.end(str(error))

    def ended(self, connection: Connection, reason: str) -> None:
        self._gone(connection.peer, reason)

    def _gone(self, peer: str, reason: str) -> None:
        if not self._open:
            return
        if peer not in self._links:
            return self._turn_away(peer, reason)
        self._links[peer].fail(ColonnadeError(reason))
        self._tell(lambda listener: listener.lost(peer, reason))

    # Into the party and out again

    def _tell(self, what: Callable[[Listener], None]) -> None:
        if self._listener is None or self._waiting:
            self._waiting.append(what)
        else:
            self._enter(what, self._listener)

    def _catch_up(self) -> None:
        assert self._listener is not None
        while self._waiting:
            self._enter(self._waiting.popleft(), self._listener)
        for connection in self._connections.values():
            connection.resume_reading()

    def _post(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(self._enter, call)

    def _enter(self, call: Callable[..., None], *arguments: object) -> None:
        """Run the party's code: its time is counted, and an exception ends the run with its reason."""
        if self._inside:
            return call(*arguments)
        self._inside = True
        computed, started = self._processor.inline_seconds, time.perf_counter()
        try:
            call(*arguments)
        except BaseException as error:
            self._failed(error)
        finally:
            self._inside = False
            computed = self._processor.inline_seconds - computed
            self.communicating_seconds += max(0.0, time.perf_counter() - started - computed)

    def _failed(self, error: BaseException) -> None:
        if self._listener is None:
            self._waiting.append(lambda listener: listener.failed(error))
        else:
            self._listener.failed(error)
