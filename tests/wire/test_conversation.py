"""The order of a link, stated a second time as a grid, and every check against the job."""

from dataclasses import replace

import numpy as np
import pytest
import spoken
from spoken import ASKED, TERMS, answer, ask, greeted, hello, opened, pair, push, say

from colonnade.errors import LocalProtocolError, RemoteProtocolError
from colonnade.wire.codec import HELLO_LIMIT, encode
from colonnade.wire.conversation import KINDS, TABLE, State
from colonnade.wire.messages import (
    BOUNDS,
    CHUNK,
    FROZEN,
    NORMS,
    VERSION,
    Bye,
    Halt,
    Mask,
    RowCheck,
    Stop,
    Stopped,
)
from colonnade.wire.terms import Terms

STOP = Stop("budget", "10 rounds", None)
CHECK = RowCheck(bytes(32))


def stages(first, second, terms=TERMS):
    """Both ends of a link after each thing said in a whole run, under the name of what was said last."""
    one, other = pair(first, second, terms)
    coordinator, follower = (one, other) if first == "bank" else (other, one)
    yield "nothing", one, other
    script = [
        (one, other, hello(first)),
        (other, one, hello(second)),
        (other, one, CHECK),
        (one, other, CHECK),
    ]
    if "bank" in (first, second):
        script += [(coordinator, follower, STOP), (follower, coordinator, Stopped())]
        script += [(coordinator, follower, Bye())]
    else:
        script += [(one, other, Halt("refused", ""))]
    for speaker, listener, message in script:
        say(speaker, listener, message)
        if message is CHECK and one.open and other.open:
            one.sent(ASKED)
            other.sent(ASKED)
        yield f"{type(message).__name__} of {speaker.me.name}", one, other


TRAINING = "Ask Share Mask Push"
GRID = {
    ("bank", "shop"): {  # what bank, the coordinator, may say to shop
        "nothing": "Hello",
        "Hello of bank": "",
        "Hello of shop": "RowCheck",
        "RowCheck of shop": "RowCheck",
        "RowCheck of bank": TRAINING + " Retreat Pace Stop",
        "Stop of bank": TRAINING,
        "Stopped of shop": TRAINING + " Bye",
        "Bye of bank": None,
    },
    ("shop", "bank"): {  # what shop may say to bank
        "nothing": "",
        "Hello of bank": "Hello",
        "Hello of shop": "RowCheck",
        "RowCheck of shop": "",
        "RowCheck of bank": TRAINING,
        "Stop of bank": TRAINING + " Stopped",
        "Stopped of shop": TRAINING,
        "Bye of bank": TRAINING,
    },
    ("club", "bank"): {  # club asks for nothing itself, so it pushes nothing
        "nothing": "",
        "Hello of bank": "Hello",
        "Hello of club": "RowCheck",
        "RowCheck of club": "",
        "RowCheck of bank": "Ask Share Mask",
        "Stop of bank": "Ask Share Mask Stopped",
        "Stopped of club": "Ask Share Mask",
        "Bye of bank": "Ask Share Mask",
    },
    ("shop", "club"): {  # no coordinator on this link
        "nothing": "Hello",
        "Hello of shop": "",
        "Hello of club": "RowCheck",
        "RowCheck of club": "RowCheck",
        "RowCheck of shop": TRAINING,
        "Halt of shop": None,
    },
}


def grid():
    for (sender, receiver), stages_ in GRID.items():
        for stage, words in stages_.items():
            legal = set() if words is None else {*words.split(), "Halt"}
            for message in spoken.one_of_each(sender, receiver):
                yield pytest.param(
                    sender, receiver, stage, message, type(message).__name__ in legal,
                    id=f"{sender} to {receiver} after {stage}-{type(message).__name__}",
                )  # fmt: skip


def at(stage, sender, receiver, terms=TERMS):
    """The ends of `sender` and `receiver` at this stage, where the receiver has asked something."""
    first, second = sorted((sender, receiver), key=spoken.PARTIES.index)
    for name, one, other in stages(first, second, terms):
        if name == stage:
            return (one, other) if sender == first else (other, one)
    raise AssertionError(stage)


CASES = list(grid())


class TestOrder:
    @pytest.mark.parametrize("sender, receiver, stage, message, legal", CASES)
    def test_a_peer_may_say_this_and_nothing_else(self, sender, receiver, stage, message, legal):
        _, listener = at(stage, sender, receiver)
        before = listener.peer.state
        if legal:
            assert listener.received(encode(message)) == message
            assert listener.peer.state == TABLE[before, type(message)]
        else:
            with pytest.raises(RemoteProtocolError) as caught:
                listener.received(encode(message))
            assert str(caught.value).startswith(
                f"{sender} sent {type(message).__name__} while {before.name}: "
            )
            assert listener.me.state is listener.peer.state is State.CLOSED

    @pytest.mark.parametrize("sender, receiver, stage, message, legal", CASES)
    def test_we_keep_to_the_same_order(self, sender, receiver, stage, message, legal):
        speaker, _ = at(stage, sender, receiver)
        if legal:
            speaker.sent(message)
        else:
            with pytest.raises(
                LocalProtocolError, match=f"{sender} would send {type(message).__name__} while"
            ):
                speaker.sent(message)
            assert speaker.closed

    def test_the_grid_has_every_pair_of_state_and_message(self):
        tried = set()
        for sender, receiver, stage, message, _ in (case.values for case in CASES):
            speaker, _ = at(stage, sender, receiver)
            tried.add((speaker.me.state, type(message)))
        assert tried == {(state, kind) for state in State for kind in KINDS}
        assert set(TABLE) <= tried


def refused(listener, message, reason):
    with pytest.raises(RemoteProtocolError, match=reason):
        listener.received(encode(message))
    assert listener.closed


class TestHello:
    @pytest.mark.parametrize(
        "changes, reason",
        [
            ({"version": VERSION + 1}, f"it speaks version {VERSION + 1} and we speak {VERSION}"),
            ({"name": "club"}, "it calls itself 'club' where 'bank' was expected"),
            ({"rows": 999}, "it has 999 rows and we have 1,000"),
            ({"job": bytes(32)}, "its job differs from ours"),
        ],
    )
    def test_of_another_program_party_table_or_job(self, changes, reason):
        _, shop = pair()
        refused(shop, hello("bank", **changes), f"^bank sent Hello while GREETING: {reason}")

    def test_limits_grow_with_it(self):
        bank, shop = pair()
        assert shop.limit() == HELLO_LIMIT
        say(bank, shop, hello("bank"))
        assert shop.limit() == TERMS.limit() > HELLO_LIMIT
        assert bank.limit() == HELLO_LIMIT

    def test_is_kept(self):
        _, shop = greeted()
        assert shop.peer.hello == hello("bank")
        assert shop.me.hello == hello("shop")
        assert not shop.open


class TestAsk:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"rows": np.full(16, 999, dtype="<u4").tobytes()},
            {"rows": b"", "start": 0, "stop": 1_000, "what": FROZEN},
            {"rows": b"", "what": NORMS, "start": 5_000, "stop": 5_000},
            {"rows": b"", "what": BOUNDS},
            {"requester": spoken.MILL, "incarnation": 4},
        ],
    )
    def test_what_may_be_asked(self, changes):
        bank, shop = opened()
        assert say(bank, shop, ask(**changes)) == ask(**changes)

    @pytest.mark.parametrize(
        "changes, reason",
        [
            ({"rows": np.array([3, 1_000], dtype="<u4").tobytes()}, "row 1,000 of 1,000"),
            ({"rows": np.zeros(17, dtype="<u4").tobytes()}, "17 rows at once, more than a batch of 16"),
            ({"stop": 4}, "row numbers and a range at once"),
            ({"rows": b"", "start": 900, "stop": 1_001}, "rows 900 to 1,001 of 1,000"),
            ({"rows": b"", "start": 9, "stop": 8}, "rows 9 to 8 of 1,000"),
            ({"rows": b""}, "rows 0 to 0 of 1,000"),
            ({"what": 4}, "there is no quantity 4"),
            ({"what": BOUNDS}, "this sum is not of rows"),
            ({"requester": spoken.CLUB}, "party 2 asks for no sums in this job"),
            ({"requester": 4}, "party 4 asks for no sums in this job"),
            ({"requester": spoken.SHOP}, "it asks us for a sum of our own"),
            ({"done": 6}, "it asks for round 5 and says that all below 6 are done"),
            ({"incarnation": 71}, "incarnation 71 of bank, whose Hello said 70"),
        ],
    )
    def test_what_is_refused(self, changes, reason):
        _, shop = opened()
        refused(shop, ask(**changes), f"^bank sent Ask while OPEN: .*{reason}")

    def test_a_range_has_at_most_a_chunk_of_rows(self):
        terms = replace(TERMS, rows=10**6)
        _, shop = opened(terms=terms)
        assert shop.received(encode(ask(rows=b"", start=5, stop=5 + CHUNK)))
        refused(shop, ask(rows=b"", start=5, stop=6 + CHUNK), "65,537 rows at once, more than 65,536")

    def test_none_of_its_own_after_stopped(self):
        bank, shop = opened()
        say(bank, shop, Stop("budget", "", None))
        say(shop, bank, ask("shop"))
        say(shop, bank, Stopped())
        refused(bank, ask("shop"), "shop sent Ask while STOPPING: it asks no more after Stopped")
        with pytest.raises(LocalProtocolError, match="it asks no more after Stopped"):
            shop.sent(ask("shop"))

    def test_the_coordinator_finishes_its_round_after_stop(self):
        bank, shop = opened()
        say(bank, shop, Stop("budget", "", None))
        assert say(bank, shop, ask("bank")) == ask("bank")


class TestShare:
    @pytest.mark.parametrize(
        "question, size",
        [
            (ask(), 4 * 2 * 8),
            (ask(rows=b"", start=10, stop=310), 300 * 2 * 8),
            (ask(rows=b"", what=NORMS), 2 * 32),
            (ask(rows=b"", what=BOUNDS), 2 * 32),
        ],
    )
    def test_has_the_size_of_what_was_asked(self, question, size):
        for words, right in ((bytes(size), True), (bytes(size + 8), False), (bytes(size - 8), False)):
            bank, shop = opened()
            say(bank, shop, question)
            share = answer(question, words=words)
            if right:
                assert say(shop, bank, share) == share
            else:
                refused(bank, share, f"{len(words):,} bytes of words where {size:,} were asked for")

    @pytest.mark.parametrize(
        "changes", [{"round": 6}, {"requester": spoken.MILL}, {"incarnation": 1}, {"start": 1}]
    )
    def test_answers_no_other_ask(self, changes):
        bank, shop = opened()
        say(bank, shop, ask())
        refused(
            bank, answer(ask(**changes), words=bytes(64)), "shop sent Share while OPEN: we did not ask it"
        )

    def test_comes_once_an_ask(self):
        bank, shop = opened()
        say(bank, shop, ask())
        say(shop, bank, answer(ask()))
        refused(bank, answer(ask()), "we did not ask it for round 5 of party 0")


class TestMask:
    @pytest.mark.parametrize("size", [1 * 16, 1_000 * 16, 2 * 32])
    def test_has_the_size_of_some_sum(self, size):
        bank, shop = opened()
        mask = answer(ask("bank"), Mask, bytes(size))
        assert say(shop, bank, mask) == mask

    @pytest.mark.parametrize(
        "mask, reason",
        [
            (answer(ask(), Mask, b""), "0 bytes of words are the size of no sum"),
            (answer(ask(), Mask, bytes(24)), "24 bytes of words are the size of no sum"),
            (answer(ask(), Mask, bytes(1_001 * 16)), "16,016 bytes of words are the size of no sum"),
            (answer(ask("shop"), Mask), "a requester does not mask"),
            (answer(ask("club"), Mask), "party 2 asks for no sums"),
            (answer(ask(incarnation=9), Mask), "incarnation 9 of bank, whose Hello said 70"),
        ],
    )
    def test_is_refused(self, mask, reason):
        bank, _ = opened()
        refused(bank, mask, f"shop sent Mask while OPEN: {reason}")

    def test_has_no_place_where_one_tree_does(self):
        bank, _ = opened(terms=spoken.UNMASKED)
        refused(bank, answer(ask(), Mask), "shop sent Mask while OPEN: expected Ask or Share or Push or Halt")


class TestPush:
    @pytest.mark.parametrize(
        "changes, reason",
        [
            ({"values": bytes(24)}, "24 bytes of values are not whole rows of 2"),
            ({"values": bytes(16 * 1_001)}, "values of 1,001 rows, more than 1,000"),
            ({"start": 997}, "values of rows 997 to 1,001 of 1,000"),
            ({"incarnation": 71}, "incarnation 71 of bank, whose Hello said 70"),
        ],
    )
    def test_is_refused(self, changes, reason):
        _, shop = opened()
        refused(shop, push(**changes), f"bank sent Push while OPEN: .*{reason}")


class TestEnd:
    def test_no_message_at_all(self):
        bank, _ = opened()
        with pytest.raises(
            RemoteProtocolError, match=r"^shop sent a frame while OPEN: no message of this protocol"
        ):
            bank.received(b"GET / HTTP/1.1")
        assert bank.closed

    def test_nothing_is_heard_after_an_error(self):
        bank, _ = opened()
        refused(bank, hello("shop"), "shop sent Hello while OPEN")
        refused(bank, ask("shop"), "shop sent Ask while CLOSED: expected nothing more")

    def test_in_flight_frames_are_heard_after_our_own_halt(self):
        bank, shop = opened()
        bank.sent(Halt("refused", ""))
        assert bank.closed
        assert not bank.open
        assert say(shop, bank, ask("shop")) == ask("shop")


FULL_TERMS = Terms(
    spoken.JOB, spoken.PARTIES, frozenset({spoken.BANK}), spoken.BANK, rows=10**6, batch_size=10**5, classes=3
)


@pytest.mark.parametrize(
    "message",
    [
        answer(ask(), words=bytes(10**5 * 3 * 8)),
        push(values=bytes(10**5 * 3 * 8)),
        ask(rows=bytes(4 * 10**5)),
    ],
    ids=lambda message: type(message).__name__,
)
def test_the_limit_is_just_above_the_longest_messages(message):
    assert len(encode(message)) <= FULL_TERMS.limit() <= 10**5 * 3 * 8 + 200


def test_the_limit_has_room_for_the_longest_texts():
    longest = Stop("\U0001f600" * 2_000, "\U0001f600" * 2_000, 2**48 - 1)
    assert len(encode(longest)) <= TERMS.limit() <= len(encode(longest)) + 200
