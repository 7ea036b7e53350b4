"""Attacks a party's end of a link: a peer's whole dialogue, spoilt somewhere, cut anywhere.

Whatever comes, the end may take it or end the link with RemoteProtocolError, and it never holds more than one
frame of its limit. Anything else is printed with the bytes that caused it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from random import Random

import msgspec

from colonnade.errors import RemoteProtocolError
from colonnade.wire.codec import FRAME_PREFIX, FrameReader, encode, frame
from colonnade.wire.conversation import Conversation
from colonnade.wire.messages import (
    BOUNDS,
    FROZEN,
    SCORES,
    SLOPES_LEARNT,
    VERSION,
    Ask,
    Bye,
    Halt,
    Hello,
    Mask,
    Message,
    Pace,
    Push,
    Retreat,
    RowCheck,
    Share,
    Stop,
    Stopped,
)
from colonnade.wire.terms import Terms

TERMS = Terms(
    job=bytes(32),
    parties=("bank", "shop", "club"),
    requesters=frozenset({0, 1}),
    coordinator=0,
    rows=300,
    batch_size=32,
    classes=1,
    masks=True,
)
ROWS = bytes([7, 0, 0, 0]) * 32
OURS = Ask(1, 1, 4, SCORES, 0, 4, 0, 0, ROWS)
OURS_SMALL = Ask(1, 1, 5, BOUNDS, 0, 5, 0, 0, b"")


class Listener:
    """The end of one party, which answers as a party would; `fed` is all that came, for the report."""

    def __init__(self, me: str, peer: str) -> None:
        self.conversation = Conversation(me, peer, TERMS)
        self.reader = FrameReader(peer=peer)
        self.fed = b""
        self.accepted: list[Message] = []
        if TERMS.parties.index(me) < TERMS.parties.index(peer):
            self._greet()

    def hear(self, piece: bytes) -> None:
        self.fed += piece
        for payload in self.reader.feed(piece):
            message = self.conversation.received(payload)
            self.accepted.append(message)
            self.reader.limit = self.conversation.limit()
            self._answer(message)

    def _answer(self, message: Message) -> None:
        say = self.conversation.sent
        if isinstance(message, Hello):
            if self.conversation.me.hello is None:
                self._greet()
            say(RowCheck(bytes(32)))
        elif isinstance(message, RowCheck):
            say(OURS)
            say(OURS_SMALL)
            if self.conversation.me.position == TERMS.coordinator:
                say(Stop("budget", "", None))
        elif isinstance(message, Stop):
            say(Stopped())
        elif isinstance(message, Stopped):
            say(Bye())

    def _greet(self) -> None:
        self.conversation.sent(greeting(self.conversation.me.name))


def greeting(name: str) -> Hello:
    return Hello(VERSION, TERMS.job, name, TERMS.parties.index(name), TERMS.rows, bytes(32), b"")


def dialogue(peer: str, me: str) -> list[bytes]:
    """The payloads of a peer that says to me everything it may, in order."""
    position, mine = TERMS.parties.index(peer), TERMS.parties.index(me)
    coordinates = position == TERMS.coordinator
    asker = position if position in TERMS.requesters else min(TERMS.requesters - {mine})
    masked = min(TERMS.requesters - {position})
    said: list[Message] = [
        greeting(peer),
        RowCheck(bytes(32)),
        Ask(asker, asker, 6, SCORES, 0, 6, 0, 0, ROWS),
        Ask(asker, asker, 7, FROZEN, 0, 7, 20, 300, b""),
        Share(1, 1, 4, 0, bytes(8 * 32)),
        Share(1, 1, 5, 0, bytes(64)),
        Mask(masked, masked, 4, 0, bytes(8 * 32)),
    ]
    if position in TERMS.requesters:
        said.append(Push(position, 6, SLOPES_LEARNT, 0, bytes(8 * 32)))
    if coordinates:
        said += [Pace(0.5), Retreat(2, 0.5), Stop("budget", "", 3), Bye()]
    else:
        said += [Stopped()] if mine == TERMS.coordinator else []
        said += [Halt("refused", "")]
    return [encode(message) for message in said]


def spoil(random: Random, payloads: list[bytes]) -> bytes:
    """The dialogue as a stream, with one thing or a few done to it."""
    payloads = list(payloads)
    for _ in range(random.randint(0, 3)):
        place = random.randrange(len(payloads))
        random.choice(SPOILERS)(random, payloads, place)
    stream = bytearray(b"".join(map(frame, payloads)))
    if random.random() < 0.2:
        place = random.randrange(len(stream))
        stream[place : place + random.randint(0, 4)] = random.randbytes(random.randint(0, FRAME_PREFIX))
    return bytes(stream)


def _flip(random: Random, payloads: list[bytes], place: int) -> None:
    spoilt = bytearray(payloads[place])
    if spoilt:
        spoilt[random.randrange(len(spoilt))] ^= 1 << random.randrange(8)
    payloads[place] = bytes(spoilt)


def _cut(random: Random, payloads: list[bytes], place: int) -> None:
    payloads[place] = payloads[place][: random.randint(0, len(payloads[place]))]


def _repeat(random: Random, payloads: list[bytes], place: int) -> None:
    payloads.insert(random.randint(0, len(payloads)), payloads[place])


def _swap(random: Random, payloads: list[bytes], place: int) -> None:
    other = random.randrange(len(payloads))
    payloads[place], payloads[other] = payloads[other], payloads[place]


def _invent(random: Random, payloads: list[bytes], place: int) -> None:
    payloads.insert(place, random.randbytes(random.choice((0, 1, 2, 8, 40, 5_000))))


def _alter(random: Random, payloads: list[bytes], place: int) -> None:
    """Another value in one field: the right shape of a message, but not what the job allows."""
    try:
        fields = msgspec.msgpack.decode(payloads[place])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return
    if not isinstance(fields, list) or not fields:
        return
    values: tuple[object, ...] = (
        0,
        1,
        2,
        3,
        299,
        300,
        2**32,
        2**47,
        2**63,
        -1,
        0.5,
        None,
        "",
        "bank",
        b"",
        bytes(8),
        bytes(32),
        [],
    )
    fields[random.randrange(len(fields))] = random.choice(
        (*values, random.randbytes(random.randint(0, 40) * 8))
    )
    payloads[place] = msgspec.msgpack.encode(fields)


SPOILERS = (_flip, _cut, _repeat, _swap, _invent, _alter, _alter)


def pieces(random: Random, stream: bytes) -> Iterator[bytes]:
    """The stream as it might come from a socket."""
    start = 0
    while start < len(stream):
        end = start + random.choice((1, 3, 50, 1_000, 100_000))
        yield stream[start:end]
        start = end


def attack(listener: Listener, stream: Iterable[bytes]) -> bool:
    """Whether the listener took it all; any exception but RemoteProtocolError comes through."""
    try:
        for piece in stream:
            listener.hear(piece)
        listener.reader.close()
    except RemoteProtocolError:
        return False
    return True


def run(seed: int, number: int, tally: Counter[str]) -> None:
    """One attack. Its seed and bytes are printed if it finds something."""
    random = Random(f"{seed}/{number}")
    me, peer = random.sample(TERMS.parties, 2)
    listener = Listener(me, peer)
    try:
        took = attack(listener, pieces(random, spoil(random, dialogue(peer, me))))
    except BaseException:
        print(f"seed {seed}, attack {number}: {peer} to {me}: {listener.fed.hex()}")
        raise
    tally["taken whole" if took else "refused"] += 1
    tally["messages"] += len(listener.accepted)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long (default 10)")
    parser.add_argument("--count", type=int, default=None, help="at most so many attacks")
    parser.add_argument("--seed", type=int, default=0, help="the same seed, the same attacks (default 0)")
    options = parser.parse_args(arguments)
    tally: Counter[str] = Counter()
    end = time.monotonic() + options.seconds
    number = 0
    while time.monotonic() < end and (options.count is None or number < options.count):
        try:
            run(options.seed, number, tally)
        except Exception:
            traceback.print_exc()
            return 1
        number += 1
    print(
        f"{number:,} attacks: {tally['refused']:,} refused, {tally['taken whole']:,} taken whole, "
        f"{tally['messages']:,} messages taken"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
