"""The real world of a party: this machine's clock and processor, and one TLS link to every other party."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from colonnade.errors import ColonnadeError, ConfigurationError, RemoteProtocolError
from colonnade.runtime.connection import Connection
from colonnade.runtime.host import TRAINING, Link, Listener, Promise
from colonnade.runtime.identity import Identity, signed_by
from colonnade.runtime.mesh import Address, Mesh
from colonnade.runtime.processor import Processor

T = TypeVar("T")

WORTH_SENDING_BEFORE = 50_000
"""Work over more non-zeros than this starts after what was written has left."""


class NetworkHost:
    """A `Host` over sockets; all of it runs on `loop`.

    `server` is a socket that listens already (see `mesh.bind`); without one, the party's own address is bound.
    """

    notes_are_free = False

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
        self._loop = loop
        self._certificates = certificates
        self._sign = identity.signer()
        self._processor = Processor(self._post)
        self._listener: Listener | None = None
        self._waiting: deque[Callable[[Listener], None]] = deque()
        self._inside = False
        self._unflushed: list[Connection] = []
        self._mesh = Mesh(
            self, name, parties, identity, certificates, addresses, loop, server, connect_timeout
        )
        self._links: dict[str, Promise[Link]] = {peer: Promise() for peer in self._mesh.others}
        self._loop.call_soon(self._mesh.start)

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
        if nonzeros > WORTH_SENDING_BEFORE:
            self._flush()
        return self._processor.compute(work, nonzeros, writes)

    def sign(self, data: bytes) -> bytes:
        return self._sign(data)

    def verify(self, peer: str, data: bytes, signature: bytes) -> bool:
        return signed_by(self._certificates[peer], data, signature)

    def limit(self, peer: str, size: int) -> None:
        """Before, frames may be as long as a greeting."""
        if peer in self._mesh.connections:
            self._mesh.connections[peer].limit(size)

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

    # What whoever runs a party sees

    @property
    def computing_seconds(self) -> float:
        return self._processor.inline_seconds + self._processor.thread_seconds

    @property
    def bytes_sent(self) -> int:
        return sum(link.bytes_sent for link in self._mesh.connections.values())

    @property
    def messages_sent(self) -> int:
        return sum(link.messages_sent for link in self._mesh.connections.values())

    @property
    def turned_away(self) -> list[tuple[str, str]]:
        """Addresses that were not let in, each with the reason."""
        return self._mesh.turned_away

    def interrupt(self) -> None:
        """Ctrl-C: the party ends as it thinks best."""
        self._tell(lambda listener: listener.failed(KeyboardInterrupt()))

    async def close(self) -> None:
        """Send what waits, leave every peer, and stop."""
        await self._mesh.close()
        self._processor.close()

    # What the mesh tells

    def opened(self, connection: Connection) -> None:
        if self._listener is None or self._waiting:
            connection.pause_reading()
        self._tell(lambda listener: self._introduce(listener, connection))

    def _introduce(self, listener: Listener, connection: Connection) -> None:
        self._links[connection.peer].set(connection)
        listener.opened(connection.peer)

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

    def wrote(self, connection: Connection) -> None:
        """Frames of one entry into the party leave together: a push and the next ask are one record."""
        if self._inside:
            self._unflushed.append(connection)
        else:
            connection.flush()

    def _flush(self) -> None:
        unflushed, self._unflushed = self._unflushed, []
        for connection in unflushed:
            connection.flush()

    def lost(self, peer: str, reason: str) -> None:
        def tell(listener: Listener) -> None:
            self._links[peer].fail(ColonnadeError(reason))
            listener.lost(peer, reason)

        self._tell(tell)

    def failed(self, error: BaseException) -> None:
        if self._listener is None:
            self._waiting.append(lambda listener: listener.failed(error))
        else:
            self._listener.failed(error)

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
        for connection in self._mesh.connections.values():
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
            self.failed(error)
        finally:
            self._flush()
            self._inside = False
            elapsed = time.perf_counter() - started
            self.communicating_seconds += elapsed - (self._processor.inline_seconds - computed)
