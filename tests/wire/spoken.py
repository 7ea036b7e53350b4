"""A small job and what its parties say: bank coordinates, shop and mill ask for sums too, club answers."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from colonnade.wire.codec import encode
from colonnade.wire.conversation import Conversation
from colonnade.wire.messages import (
    SCORES,
    SLOPES_LEARNT,
    VERSION,
    Ask,
    Bye,
    Halt,
    Hello,
    Mask,
    Pace,
    Push,
    Retreat,
    RowCheck,
    Share,
    Stop,
    Stopped,
)
from colonnade.wire.terms import Terms

JOB = bytes(range(32))
BANK, SHOP, CLUB, MILL = range(4)
PARTIES = ("bank", "shop", "club", "mill")
TERMS = Terms(
    job=JOB,
    parties=PARTIES,
    requesters=frozenset({BANK, SHOP, MILL}),
    coordinator=BANK,
    rows=1_000,
    batch_size=16,
    classes=2,
    masks=True,
)
UNMASKED = replace(TERMS, masks=False)


def incarnation(name):
    return 70 + PARTIES.index(name)


def hello(name, /, **changes):
    fields = {
        "version": VERSION,
        "job": JOB,
        "name": name,
        "incarnation": incarnation(name),
        "rows": TERMS.rows,
        "public_key": bytes(32),
        "signature": b"signed",
    }
    return Hello(**(fields | changes))


def ask(requester="bank", /, **changes):
    fields = {
        "requester": PARTIES.index(requester),
        "incarnation": incarnation(requester),
        "round": 5,
        "what": SCORES,
        "after": 0,
        "done": 3,
        "start": 0,
        "stop": 0,
        "rows": np.arange(4, dtype="<u4").tobytes(),
    }
    return Ask(**(fields | changes))


def answer(to, kind=Share, words=None):
    words = bytes(TERMS.words_bytes(to)) if words is None else words
    return kind(to.requester, to.incarnation, to.round, to.start, words)


def push(sender="bank", /, **changes):
    fields = {
        "incarnation": incarnation(sender),
        "round": 5,
        "learnt": SLOPES_LEARNT,
        "start": 0,
        "values": bytes(4 * 2 * 8),
    }
    return Push(**(fields | changes))


def one_of_each(sender, receiver):
    """One message of each kind, right but for its order. The share answers `ASKED`."""
    return [
        hello(sender),
        RowCheck(bytes(32)),
        ask("mill"),
        answer(ASKED),
        answer(ask("mill"), Mask),
        push(sender),
        Retreat(2, 0.5),
        Pace(0.25),
        Stop("converged", "", 4),
        Stopped(),
        Bye(),
        Halt("refused", "too large a share"),
    ]


ASKED = ask("mill", round=9)
"""What each end has asked the other in these dialogues: a sum of mill's, passed on."""


def pair(first="bank", second="shop", terms=TERMS):
    """Both ends of one link."""
    return Conversation(first, second, terms), Conversation(second, first, terms)


def say(speaker, listener, message):
    """One message from one end to the other, over the wire."""
    speaker.sent(message)
    return listener.received(encode(message))


def greeted(first="bank", second="shop", terms=TERMS):
    """Both ends of a link whose parties have said who they are."""
    one, other = pair(first, second, terms)
    say(one, other, hello(first, rows=terms.rows))
    say(other, one, hello(second, rows=terms.rows))
    return one, other


def opened(first="bank", second="shop", terms=TERMS):
    """Both ends of a link whose parties train."""
    one, other = greeted(first, second, terms)
    say(other, one, RowCheck(bytes(32)))
    say(one, other, RowCheck(bytes(32)))
    return one, other


NUMBERS = st.integers(0, 20) | st.integers(0, 2**48 - 1)
POSITIONS = st.integers(0, 4) | st.integers(0, 2**16 - 1)
KEYS = st.binary(min_size=32, max_size=32)
WORDS = st.binary(max_size=12).map(lambda some: some * 8)
SHARES = (POSITIONS, NUMBERS, NUMBERS, NUMBERS, WORDS)
ANY_MESSAGE = st.one_of(
    st.builds(Hello, NUMBERS, KEYS, st.text(max_size=40), NUMBERS, NUMBERS, KEYS, st.binary(max_size=90)),
    st.builds(RowCheck, KEYS),
    st.builds(Ask, POSITIONS, NUMBERS, NUMBERS, st.integers(0, 15), *[NUMBERS] * 4, WORDS),
    st.builds(Share, *SHARES),
    st.builds(Mask, *SHARES),
    st.builds(Push, NUMBERS, NUMBERS, st.integers(0, 3), NUMBERS, WORDS),
    st.builds(Retreat, NUMBERS, st.floats(0, 1)),
    st.builds(Pace, st.floats(1e-300, 1e300)),
    st.builds(Stop, st.text(max_size=40), st.text(max_size=40), st.none() | NUMBERS),
    st.just(Stopped()),
    st.just(Bye()),
    st.builds(Halt, st.text(max_size=40), st.text(max_size=40)),
)
