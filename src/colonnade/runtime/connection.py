"""One TLS connection to a peer: frames in, frames out, and one named reason when it ends."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Protocol, cast

from colonnade.errors import RemoteProtocolError
from colonnade.wire.codec import FRAME_PREFIX, FrameReader

UNSENT_LIMIT = 256 * 2**20
"""Bytes that may wait for a peer that does not read."""

JOINED = 64 * 1024
"""Frames written together are joined up to this size: one record and one call less."""


class Owner(Protocol):
    """What a connection tells its host."""

    def admit(self, connection: Connection, certificate: bytes) -> str | None:
        """A handshake is done: None if this peer is expected here, else why it is turned away."""
        ...

    def frames(self, connection: Connection, data: bytes) -> None: ...

    def wrote(self, connection: Connection) -> None:
        """Something waits to be flushed."""
        ...

    def ended(self, connection: Connection, reason: str) -> None: ...


class Connection(asyncio.Protocol):
    """A `Link` to `peer`. The listening side learns who `peer` is from the certificate."""

    def __init__(self, owner: Owner, peer: str, listening: bool) -> None:
        self.peer = peer
        self.listening = listening
        self.reader = FrameReader(peer=peer)
        self.limited = False
        self.bytes_sent = 0
        self.messages_sent = 0
        self._owner = owner
        self._joined = False
        self._heard = False
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes | memoryview] = []
        self._paused = False
        self._closed = False
        self._reason = ""

    @property
    def open(self) -> bool:
        return self._transport is not None

    def join(self, name: str) -> None:
        """This is the link of party `name`: what it sends counts from now on."""
        self.peer = self.reader.peer = name
        self._joined = True

    def write(self, frame: bytes | memoryview) -> None:
        """Send a frame; nothing once the connection is over: its end was or will be told."""
        if self._transport is None or self._closed:
            return
        length = len(frame)
        first = not self._unsent
        self._unsent += (length.to_bytes(FRAME_PREFIX, "little"), frame)
        self.bytes_sent += FRAME_PREFIX + length
        self.messages_sent += 1
        if first:
            self._owner.wrote(self)

    def flush(self) -> None:
        """Hand what was written to the transport: frames written together leave in one record."""
        unsent, self._unsent = self._unsent, []
        if self._transport is None or self._closed:
            return
        if sum(map(len, unsent)) <= JOINED:
            self._transport.write(b"".join(unsent))
        else:
            for piece in unsent:
                self._transport.write(piece)
        if self._paused and self._transport.get_write_buffer_size() > UNSENT_LIMIT:
            self.end(f"{self.peer} does not read: more than {UNSENT_LIMIT >> 20} MiB wait to be sent")

    def close(self) -> None:
        """Send what waits and leave; the owner is not told."""
        if not self._closed:
            self.flush()
        self._closed = True
        if self._transport is not None:
            self._transport.close()

    def end(self, reason: str) -> None:
        """Cut the connection for this reason."""
        self._reason = self._reason or reason
        if self._transport is not None:
            self._transport.abort()

    def limit(self, count: int) -> None:
        self.limited = True
        self.reader.limit = count

    def resume_reading(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def pause_reading(self) -> None:
        if self._transport is not None:
            self._transport.pause_reading()

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # Without this a push followed by an ask takes 43 ms a round.
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        certificate = self._transport.get_extra_info("ssl_object").getpeercert(True)
        refused = self._owner.admit(self, certificate)
        if refused is not None:
            self.end(refused)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        if self._joined and not self._closed:
            self._owner.frames(self, data)

    def pause_writing(self) -> None:
        self._paused = True

    def resume_writing(self) -> None:
        self._paused = False

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        if not self._closed:
            self._closed = True
            self._owner.ended(self, self._reason or self._why(error))

    def _why(self, error: Exception | None) -> str:
        if isinstance(error, ssl.SSLError) and "EOF" not in str(error):
            return f"{self.peer}: {tls_reason(error)}"
        try:
            self.reader.close()
        except RemoteProtocolError as truncated:
            return str(truncated)
        if not (self.listening or self._heard):
            # asyncio sends no alert when it refuses a certificate, and our own handshake succeeded before.
            return f"{self.peer} hung up before it said a word: does it hold our certificate?"
        return f"{self.peer} has gone: the connection ended"


_TLS_REASONS: dict[str, str] = {
    "PEER_DID_NOT_RETURN": "it showed no certificate: every party needs one",
    "VERIFY_FAILED": "its certificate is not one of the job's: exchange whole certificates again",
    "WRONG_VERSION_NUMBER": "it does not speak TLS: is another program at this address?",
    "HTTP_REQUEST": "it does not speak TLS: is another program at this address?",
    "UNSUPPORTED_PROTOCOL": "it does not speak TLS 1.3",
}


def tls_reason(error: ssl.SSLError) -> str:
    """An OpenSSL error in words."""
    if isinstance(error, ssl.SSLCertVerificationError) and "expired" in error.verify_message:
        return "its certificate has expired: it needs a new one"
    text = str(error).upper()
    for mark, sentence in _TLS_REASONS.items():
        if mark in text:
            return sentence
    return f"TLS failed: {error.reason or error}"
