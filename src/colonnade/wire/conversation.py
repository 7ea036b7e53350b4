"""The legal order of one link between two parties, as a table; anything else ends the link.

Each side of a link has a state, which moves by what that side says. A message is legal if the table has its
sender's state and its kind, if the other side has come far enough, and if its sender's role allows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, get_args

from colonnade.errors import LocalProtocolError, RemoteProtocolError
from colonnade.wire.codec import HELLO_LIMIT, decode
from colonnade.wire.messages import (
    AnyMessage,
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
from colonnade.wire.terms import Terms, ask_fault, hello_fault, mask_fault, push_fault


class State(IntEnum):
    """How far one side of a link has come."""

    GREETING = 0
    CHECKING = 1
    OPEN = 2
    STOPPING = 3
    CLOSED = 4


Kind = type[Message]
KINDS: tuple[Kind, ...] = get_args(AnyMessage)

TABLE: dict[tuple[State, Kind], State] = {
    (State.GREETING, Hello): State.CHECKING,
    (State.CHECKING, RowCheck): State.OPEN,
    **{(State.OPEN, kind): State.OPEN for kind in (Ask, Share, Mask, Push, Retreat, Pace)},
    (State.OPEN, Stop): State.STOPPING,
    (State.OPEN, Stopped): State.STOPPING,
    **{(State.STOPPING, kind): State.STOPPING for kind in (Ask, Share, Mask, Push)},
    (State.STOPPING, Bye): State.CLOSED,
    **{(state, Halt): State.CLOSED for state in State if state < State.CLOSED},
}
"""(state of the sender's side, kind) -> its next state. What is not here is refused."""

OTHER_SIDE: dict[Kind, State] = {
    RowCheck: State.CHECKING,
    **dict.fromkeys((Ask, Share, Mask, Push, Retreat, Pace, Stop), State.OPEN),
    Stopped: State.STOPPING,
    Bye: State.STOPPING,
}
"""How far the other side must have come. For a Hello: nowhere from the party named earlier, else CHECKING."""

COORDINATOR_ONLY: frozenset[Kind] = frozenset({Retreat, Pace, Stop, Bye})
REQUESTERS_ONLY: frozenset[Kind] = frozenset({Push})


class Role(NamedTuple):
    """What the job makes of one side of a link."""

    coordinates: bool
    requests: bool
    masks: bool
    greets_first: bool

    def may(self, kind: Kind) -> bool:
        if kind in COORDINATOR_ONLY:
            return self.coordinates
        if kind in REQUESTERS_ONLY:
            return self.requests
        if kind is Stopped:
            return not self.coordinates
        return self.masks or kind is not Mask


@lru_cache(maxsize=256)
def legal(state: State, role: Role, other: State) -> Mapping[Kind, State]:
    """What a side may say now, each with the state it leads to."""

    def other_is_far_enough(kind: Kind) -> bool:
        if kind is Hello:
            return role.greets_first or other >= State.CHECKING
        return other >= OTHER_SIDE.get(kind, State.GREETING)

    return MappingProxyType(
        {
            kind: following
            for (before, kind), following in TABLE.items()
            if before is state and role.may(kind) and other_is_far_enough(kind)
        }
    )


class Side:
    """One side of a link: its party, its role, how far it has come, and what it may say."""

    __slots__ = ("hello", "legal", "name", "position", "role", "state")

    def __init__(self, terms: Terms, name: str, other: str) -> None:
        self.name = name
        self.position = terms.parties.index(name)
        self.role = Role(
            coordinates=self.position == terms.coordinator,
            requests=self.position in terms.requesters,
            masks=terms.masks,
            greets_first=self.position < terms.parties.index(other),
        )
        self.state = State.GREETING
        self.hello: Hello | None = None
        self.legal: Mapping[Kind, State] = {}


class Conversation:
    """One link from our end: checks what the peer says, and that we keep to the order ourselves."""

    __slots__ = ("_answers", "_faults", "me", "peer", "terms")

    def __init__(self, me: str, peer: str, terms: Terms) -> None:
        self.terms = terms
        self.me = Side(terms, me, peer)
        self.peer = Side(terms, peer, me)
        self._answers: dict[tuple[int, int, int, int], int] = {}
        self._settle()

    @property
    def open(self) -> bool:
        """Both sides have greeted and compared rows, and neither has left."""
        return min(self.me.state, self.peer.state) >= State.OPEN and not self.closed

    @property
    def closed(self) -> bool:
        """One side has left for good."""
        return State.CLOSED in (self.me.state, self.peer.state)

    def limit(self) -> int:
        """The longest payload that the peer may send now."""
        return HELLO_LIMIT if self.peer.hello is None else self.terms.limit()

    def received(self, payload: bytes | memoryview) -> AnyMessage:
        """What the peer said, if it may say it now; otherwise the conversation is over."""
        try:
            message = decode(payload)
        except RemoteProtocolError as error:
            raise self._refusal("a frame", str(error)) from None
        kind = type(message)
        following = self.peer.legal.get(kind)
        if following is None:
            raise self._refusal(kind.__name__, _expected(self.peer.legal))
        check = _FAULTS.get(kind)
        if check is not None and (fault := check(self, message)) is not None:
            raise self._refusal(kind.__name__, fault)
        if following is not self.peer.state:
            self._move(self.peer, message, following)
        return message

    def sent(self, message: Message) -> None:
        """Note what we are about to say: a bug of ours if we may not say it now."""
        following = self.me.legal.get(type(message))
        if following is None:
            raise self._misuse(message, _expected(self.me.legal))
        if type(message) is Ask:
            if (fault := _late_ask(self.me, message)) is not None:
                raise self._misuse(message, fault)
            self._answers[_sum_key(message)] = self.terms.words_bytes(message)
        if following is not self.me.state:
            self._move(self.me, message, following)

    def _move(self, side: Side, message: Message, state: State) -> None:
        side.state = state
        if isinstance(message, Hello):
            side.hello = message
        self._settle()

    def _settle(self) -> None:
        me, peer = self.me, self.peer
        me.legal = legal(me.state, me.role, peer.state)
        peer.legal = legal(peer.state, peer.role, me.state)

    def _end(self) -> None:
        self.me.state = self.peer.state = State.CLOSED
        self._answers.clear()
        self._settle()

    def _refusal(self, what: str, reason: str) -> RemoteProtocolError:
        text = f"{self.peer.name} sent {what} while {self.peer.state.name}: {reason}"
        self._end()
        return RemoteProtocolError(text)

    def _misuse(self, message: Message, reason: str) -> LocalProtocolError:
        text = f"{self.me.name} would send {type(message).__name__} while {self.me.state.name}: {reason}"
        self._end()
        return LocalProtocolError(text)


def _expected(legal_now: Mapping[Kind, State]) -> str:
    return f"expected {' or '.join(kind.__name__ for kind in legal_now) or 'nothing more'}"


def _sum_key(message: Ask | Share) -> tuple[int, int, int, int]:
    return message.requester, message.incarnation, message.round, message.start


def _hello_fault(conversation: Conversation, hello: Hello) -> str | None:
    return hello_fault(conversation.terms, hello, conversation.peer.name)


def _late_ask(side: Side, ask: Ask) -> str | None:
    """Stopped promises to ask no more; an ask of another requester is only passed on."""
    own = ask.requester == side.position
    late = own and side.state is State.STOPPING and not side.role.coordinates
    return "it asks no more after Stopped" if late else None


def _ask_fault(conversation: Conversation, ask: Ask) -> str | None:
    peer = conversation.peer
    if ask.requester == peer.position:
        if (fault := _incarnation_fault(peer, ask)) is not None:
            return fault
        if peer.state is State.STOPPING and (fault := _late_ask(peer, ask)) is not None:
            return fault
    elif ask.requester == conversation.me.position:
        return "it asks us for a sum of our own"
    return ask_fault(conversation.terms, ask)


def share_fault(conversation: Conversation, share: Share) -> str | None:
    """A sum that this peer was not asked for, or whose words are not as many as were asked for."""
    expected = conversation._answers.pop(_sum_key(share), None)
    if expected is None:
        return f"we did not ask it for round {share.round} of party {share.requester}"
    if len(share.words) != expected:
        return f"{len(share.words):,} bytes of words where {expected:,} were asked for"
    return None


def _mask_fault(conversation: Conversation, mask: Mask) -> str | None:
    if mask.requester == conversation.peer.position:
        return "a requester does not mask"
    if mask.requester == conversation.me.position and (fault := _incarnation_fault(conversation.me, mask)):
        return fault
    return mask_fault(conversation.terms, mask)


def _push_fault(conversation: Conversation, push: Push) -> str | None:
    return _incarnation_fault(conversation.peer, push) or push_fault(conversation.terms, push)


def _incarnation_fault(side: Side, message: Ask | Mask | Push) -> str | None:
    if side.hello is None or message.incarnation == side.hello.incarnation:
        return None
    return f"incarnation {message.incarnation} of {side.name}, whose Hello said {side.hello.incarnation}"


_FAULTS: dict[Kind, Callable[..., str | None]] = {
    Hello: _hello_fault,
    Ask: _ask_fault,
    Share: share_fault,
    Mask: _mask_fault,
    Push: _push_fault,
}
"""What is wrong with a message that comes in order, in words that follow "bank sent Ask while OPEN:"."""
