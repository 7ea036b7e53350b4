"""A party's links: who is there, that they hold the same job and rows, and messages to and from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from colonnade.errors import RefusedError, RemoteProtocolError
from colonnade.privacy.masks import MaskKey, PairSecrets, hello_claim, row_check
from colonnade.runtime.host import Host, Link, Promise
from colonnade.wire.codec import FRAME_PREFIX, encode
from colonnade.wire.conversation import Conversation
from colonnade.wire.messages import VERSION, Halt, Hello, Message, RowCheck

if TYPE_CHECKING:
    from colonnade.job import Plan
    from colonnade.wire.terms import Terms

Handler = Callable[[int, Any], None]


class Peer:
    """One other party. What is sent before both have compared their rows waits."""

    __slots__ = ("check_key", "conversation", "link", "name", "position", "queue", "ready")

    def __init__(self, name: str, position: int, conversation: Conversation) -> None:
        self.name = name
        self.position = position
        self.conversation = conversation
        self.link: Link | None = None
        self.check_key = b""
        self.queue: list[tuple[Message, bytes]] | None = []
        self.ready: Promise[None] = Promise()


class Peers:
    """The Listener of a party's host. Every frame in passes the link's conversation before a handler sees it."""

    def __init__(self, host: Host, plan: Plan, terms: Terms, ids: bytes) -> None:
        self.names = plan.parties
        self.me = plan.parties.index(host.name)
        self.mask_keys: dict[int, MaskKey] = {}
        self.messages_sent = 0
        self.messages_received = 0
        self.bytes_sent = 0
        self.incarnation = int.from_bytes(host.entropy(6), "little")
        self._host = host
        self._terms = terms
        self._rows = plan.rows
        self._ids = ids
        self._secrets = PairSecrets(host.entropy(32))
        self._positions = {name: position for position, name in enumerate(plan.parties)}
        self._peers: dict[int, Peer] = {}
        self._handlers: Mapping[type[Message], Handler] = {}
        self._on_lost: Callable[[str, str], None] = lambda peer, reason: None
        self._on_failed: Callable[[BaseException], None] = lambda error: None

    def serve(
        self,
        handlers: Mapping[type[Message], Handler],
        lost: Callable[[str, str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        """Start to listen."""
        self._handlers, self._on_lost, self._on_failed = handlers, lost, failed
        self._host.listen(self)

    def pass_over(self, kinds: Iterable[type[Message]]) -> None:
        """Messages of these kinds come too late to matter."""
        self._handlers = {**self._handlers, **dict.fromkeys(kinds, lambda sender, message: None)}

    def join(self, positions: Iterable[int]) -> list[Promise[None]]:
        """Open the links to these parties; each promise is kept once rows are compared both ways."""
        return [self._peer(position).ready for position in positions if position != self.me]

    def send_all(self, positions: Iterable[int], message: Message) -> None:
        """The same message to several parties, encoded once."""
        frame = encode(message)
        size = len(frame) + FRAME_PREFIX
        for position in positions:
            peer = self._peers.get(position) or self._peer(position)
            if peer.queue is not None:
                peer.queue.append((message, frame))
                continue
            peer.conversation.sent(message)
            self.messages_sent += 1
            self.bytes_sent += size
            peer.link.write(frame)  # type: ignore[union-attr]

    def halt_all(self, message: Halt) -> None:
        """Tell everybody who can still hear that this party leaves."""
        for peer in self._peers.values():
            if peer.link is not None and not peer.conversation.closed:
                self._write(peer, message)

    def halt(self, position: int, message: Halt) -> None:
        """Tell one party that this one cannot go on."""
        self._write(self._peers[position], message)

    def close(self) -> None:
        for peer in self._peers.values():
            if peer.link is not None:
                peer.link.close()

    def drop(self, position: int, reason: str) -> None:
        """This party broke the protocol in a message that came earlier."""
        self._drop(self._peers[position], reason)

    def unready(self) -> list[str]:
        """Who has not compared its rows with ours yet."""
        return [peer.name for peer in self._peers.values() if not peer.ready.ready]

    def connected(self) -> list[int]:
        """Everybody met who has not left."""
        return [position for position, peer in self._peers.items() if not peer.conversation.closed]

    def opened(self, name: str) -> None:
        peer = self._peer(self._positions[name])
        if self.me < peer.position and not peer.conversation.closed:
            self._greet(peer)

    def received(self, name: str, frame: bytes | memoryview) -> None:
        position = self._positions[name]
        peer = self._peers.get(position) or self._peer(position)
        try:
            message = peer.conversation.received(frame)
            self.messages_received += 1
            handler = self._handlers.get(type(message))
            if handler is not None:
                handler(position, message)
            elif type(message) is Hello:
                self._greeted(peer, message)
            elif type(message) is RowCheck:
                self._rows_compared(peer, message)
        except RemoteProtocolError as error:
            self._drop(peer, str(error))

    def lost(self, name: str, reason: str) -> None:
        self._on_lost(name, reason)

    def failed(self, error: BaseException) -> None:
        self._on_failed(error)

    def _drop(self, peer: Peer, reason: str) -> None:
        if peer.link is not None:
            peer.link.close()
        self._on_lost(peer.name, reason if peer.name in reason else f"{peer.name}: {reason}")

    def _peer(self, position: int) -> Peer:
        peer = self._peers.get(position)
        if peer is None:
            name = self.names[position]
            peer = Peer(name, position, Conversation(self.names[self.me], name, self._terms))
            self._peers[position] = peer
            self._host.connect(name).then(lambda link: self._connected(peer, link))
        return peer

    def _connected(self, peer: Peer, link: Promise[Link]) -> None:
        try:
            peer.link = link.result()
        except Exception as error:
            self._on_lost(peer.name, str(error))

    def _greet(self, peer: Peer) -> None:
        public_key = self._secrets.public_key
        claim = hello_claim(self._terms.job, self.names[self.me], self.incarnation, public_key)
        hello = Hello(
            VERSION,
            self._terms.job,
            self.names[self.me],
            self.incarnation,
            self._rows,
            public_key,
            self._host.sign(claim),
        )
        self._write(peer, hello)

    def _greeted(self, peer: Peer, hello: Hello) -> None:
        """Design §4: a fresh key a party and incarnation, signed by the identity that the link was pinned to."""
        claim = hello_claim(self._terms.job, peer.name, hello.incarnation, hello.public_key)
        if not self._host.verify(peer.name, claim, hello.signature):
            raise RemoteProtocolError("its key is not signed by its identity")
        if self.me > peer.position:
            self._greet(peer)
        keys = self._secrets.agree(
            hello.public_key, self._terms.job, self.incarnation, hello.incarnation, self.me, peer.position
        )
        self.mask_keys[peer.position] = keys.mask
        peer.check_key = keys.check
        self._host.limit(peer.name, peer.conversation.limit())
        self._write(peer, RowCheck(self._row_check(peer, self.me)))

    def _rows_compared(self, peer: Peer, check: RowCheck) -> None:
        if check.digest != self._row_check(peer, peer.position):
            raise RefusedError(
                f"{peer.name} and {self.names[self.me]} hold their rows in different order or for different ids: "
                "sort both tables by the id column, or keep the common rows only"
            )
        queue, peer.queue = peer.queue, None
        for message, frame in queue or ():
            self._write(peer, message, frame)
        peer.ready.set(None)

    def _row_check(self, peer: Peer, sender: int) -> bytes:
        """Bound to its sender, so that nobody can pass by echoing ours."""
        return row_check(peer.check_key, sender.to_bytes(2, "little") + self._ids)

    def _write(self, peer: Peer, message: Message, frame: bytes | None = None) -> None:
        frame = encode(message) if frame is None else frame
        peer.conversation.sent(message)
        self.messages_sent += 1
        self.bytes_sent += len(frame) + FRAME_PREFIX
        assert peer.link is not None
        peer.link.write(frame)
