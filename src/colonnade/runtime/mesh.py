"""One TLS connection between every two parties: the later in the order dials the earlier.

Both sides are pinned. Strangers are turned away and are no business of the party.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol

from colonnade.errors import ConfigurationError
from colonnade.runtime.connection import Connection, tls_reason
from colonnade.runtime.identity import (
    Identity,
    client_context,
    fingerprint,
    pem_fingerprint,
    server_context,
)

Address = tuple[str, int]

HANDSHAKE_SECONDS = 10.0
GOODBYE_SECONDS = 2.0
DIAL_AGAIN_SECONDS = 0.05
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


class Owner(Protocol):
    """What the mesh tells its host."""

    def opened(self, connection: Connection) -> None: ...

    def frames(self, connection: Connection, data: bytes) -> None: ...

    def wrote(self, connection: Connection) -> None: ...

    def lost(self, peer: str, reason: str) -> None: ...

    def failed(self, error: BaseException) -> None: ...


class Mesh:
    """The connections of one party. Nothing happens before `start`."""

    def __init__(
        self,
        owner: Owner,
        name: str,
        parties: Sequence[str],
        identity: Identity,
        certificates: Mapping[str, str],
        addresses: Mapping[str, Address],
        loop: asyncio.AbstractEventLoop,
        server: socket.socket | None,
        connect_timeout: float,
    ) -> None:
        place = list(parties).index(name)
        self.connections: dict[str, Connection] = {}
        self.turned_away: list[tuple[str, str]] = []
        """Who was not let in, from which address and why: the last few."""
        self._earlier, self._later = tuple(parties[:place]), tuple(parties[place + 1 :])
        self.others = (*self._earlier, *self._later)
        self._pins = {pem_fingerprint(peer, certificates[peer]): peer for peer in self.others}
        if len(self._pins) < len(self.others):
            raise ConfigurationError("two parties show the same certificate: each needs its own")
        known = [certificates[peer] for peer in self.others]
        self._dialling, self._listening = client_context(identity, known), server_context(identity, known)
        self._owner = owner
        self._addresses = addresses
        self._loop = loop
        self._connect_timeout = connect_timeout
        self._tasks: set[asyncio.Task[None]] = set()
        self._open = True
        self._server = server
        if self._server is None and self._later:
            self._server = bind(addresses[name])

    def start(self) -> None:
        if not self._open:
            return
        if self._server is not None:
            self._loop.add_reader(self._server, self._accept)
        for peer in self._earlier:
            self._task(self._dial(peer))
        if self._later:
            self._loop.call_later(self._connect_timeout, self._miss)

    async def close(self) -> None:
        """Send what waits and leave every peer; nothing is told any more."""
        self._open = False
        if self._server is not None:
            self._loop.remove_reader(self._server)
            self._server.close()
            self._server = None
        for task in self._tasks:
            task.cancel()
        for connection in self.connections.values():
            connection.close()
        deadline = self._loop.time() + GOODBYE_SECONDS
        while any(c.open for c in self.connections.values()) and self._loop.time() < deadline:
            await asyncio.sleep(0.002)
        for connection in self.connections.values():
            connection.end("closed")

    # dialling

    async def _dial(self, peer: str) -> None:
        """Again and again until the peer listens; a refusal is final."""
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
                return self._lose(peer, f"{peer} at {host}:{port}: {tls_reason(error)}")
            except OSError as error:
                if self._loop.time() > deadline:
                    why = error.strerror or error
                    return self._lose(peer, f"{peer} cannot be reached at {host}:{port}: {why}")
            await asyncio.sleep(DIAL_AGAIN_SECONDS)

    # listening

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

    def _miss(self) -> None:
        """The connect time-out: who has not dialled by now is lost."""
        for peer in self._later:
            if peer not in self.connections:
                who = ", ".join(f"{address}: {why}" for address, why in self.turned_away[-3:])
                hint = f"turned away meanwhile: {who}" if who else "is it running?"
                self._lose(peer, f"{peer} has not come within {self._connect_timeout:g} s; {hint}")

    def _turn_away(self, address: str, reason: str) -> None:
        self.turned_away = [*self.turned_away[1 - STRANGERS :], (address, reason)]

    # what connections tell

    def admit(self, connection: Connection, certificate: bytes) -> str | None:
        name = self._pins.get(fingerprint(certificate))
        expected = self._later if connection.listening else (connection.peer,)
        if name is None or name not in expected:
            shown = f"the certificate of {name!r}" if name else "an unknown certificate"
            return f"{connection.peer} showed {shown}, which is not expected there"
        if name in self.connections:
            return f"{connection.peer} came a second time as {name!r}"
        connection.join(name)
        self.connections[name] = connection
        self._owner.opened(connection)
        return None

    def frames(self, connection: Connection, data: bytes) -> None:
        self._owner.frames(connection, data)

    def wrote(self, connection: Connection) -> None:
        self._owner.wrote(connection)

    def ended(self, connection: Connection, reason: str) -> None:
        self._lose(connection.peer, reason)

    def _lose(self, peer: str, reason: str) -> None:
        if not self._open:
            return
        if peer in self.others:
            self._owner.lost(peer, reason)
        else:
            self._turn_away(peer, reason)

    def _task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._task_done)

    def _task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._owner.failed(error)
