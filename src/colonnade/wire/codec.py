"""Messages to bytes and back, and frames out of a stream of bytes.

A frame is a 4-byte little-endian length and so many bytes of payload. The payload is a MessagePack array:
the number of the message's kind, then its fields in order. Arrays in a decoded message are views into the
payload: nothing is copied.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import msgspec

from colonnade.errors import RemoteProtocolError
from colonnade.wire.messages import AnyMessage, Ask, Mask, Message, Pace, Push, Share

FRAME_PREFIX = 4
LONGEST_FRAME = 2 ** (8 * FRAME_PREFIX) - 1
HELLO_LIMIT = 4096
"""The longest payload before the hello was read: nobody may make us hold more."""

ROW_BYTES = 4
WORD_BYTES = 8
VALUE_BYTES = 8

_encode: Callable[[Message], bytes] = msgspec.msgpack.Encoder().encode
_decode: Callable[[bytes | memoryview], AnyMessage] = msgspec.msgpack.Decoder(AnyMessage).decode


def encode(message: Message) -> bytes:
    """The payload of a message, without its length."""
    return _encode(message)


def decode(payload: bytes | memoryview) -> AnyMessage:
    """The message in a payload; its arrays are views into the payload."""
    try:
        message = _decode(payload)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise RemoteProtocolError(f"no message of this protocol: {error}") from None
    fault = _FAULTS[type(message)](message) if type(message) in _FAULTS else None
    if fault is not None:
        raise RemoteProtocolError(f"a faulty {type(message).__name__}: {fault}")
    return message


def frame(payload: bytes) -> bytes:
    """A payload with its length before it, as it stands in the stream."""
    return len(payload).to_bytes(FRAME_PREFIX, "little") + payload


def _whole(array: bytes | memoryview, name: str, item: int) -> str | None:
    return f"{len(array)} bytes of {name}, not a multiple of {item}" if len(array) % item else None


_FAULTS: dict[type[Message], Callable[..., str | None]] = {
    Ask: lambda ask: _whole(ask.rows, "rows", ROW_BYTES),
    Share: lambda share: _whole(share.words, "words", WORD_BYTES),
    Mask: lambda mask: _whole(mask.words, "words", WORD_BYTES),
    Push: lambda push: _whole(push.values, "values", VALUE_BYTES),
    Pace: lambda pace: None if isfinite(pace.step) else f"step {pace.step}",
}


class FrameReader:
    """Cuts a stream into payloads, holding at most one unfinished frame of at most `limit` bytes.

    What is fed must not be changed afterwards: a payload that came whole is a view of it.
    """

    __slots__ = ("_filled", "_frame", "_prefix", "limit", "peer")

    def __init__(self, limit: int = HELLO_LIMIT, peer: str = "the peer") -> None:
        self.limit = limit
        self.peer = peer
        self._prefix = b""
        self._frame: bytearray | None = None
        self._filled = 0

    def feed(self, data: bytes) -> list[memoryview]:
        """The payloads that are complete now, in order."""
        payloads: list[memoryview] = []
        rest = memoryview(data)
        if self._frame is not None:
            rest = self._fill(self._frame, rest, payloads)
        elif self._prefix:
            rest = memoryview(self._prefix + data)
            self._prefix = b""
        while len(rest) >= FRAME_PREFIX:
            length = self._length(rest)
            end = FRAME_PREFIX + length
            if len(rest) < end:
                self._frame, self._filled = bytearray(length), 0
                rest = self._fill(self._frame, rest[FRAME_PREFIX:], payloads)
                break
            payloads.append(rest[FRAME_PREFIX:end])
            rest = rest[end:]
        if len(rest):
            self._prefix = bytes(rest)
        return payloads

    def close(self) -> None:
        """The stream has ended: refuse to have lost half a frame."""
        if self._frame is not None:
            raise RemoteProtocolError(
                f"{self.peer} closed the link inside a frame: {self._filled} of {len(self._frame)} bytes came"
            )
        if self._prefix:
            raise RemoteProtocolError(f"{self.peer} closed the link inside the length of a frame")

    def _length(self, rest: memoryview) -> int:
        length = int.from_bytes(rest[:FRAME_PREFIX], "little")
        if length > self.limit:
            raise RemoteProtocolError(
                f"{self.peer} announced a frame of {length:,} bytes: at most {self.limit:,} are allowed here"
            )
        return length

    def _fill(self, unfinished: bytearray, rest: memoryview, payloads: list[memoryview]) -> memoryview:
        taken = min(len(unfinished) - self._filled, len(rest))
        unfinished[self._filled : self._filled + taken] = rest[:taken]
        self._filled += taken
        if self._filled == len(unfinished):
            payloads.append(memoryview(unfinished).toreadonly())
            self._frame = None
        return rest[taken:]
