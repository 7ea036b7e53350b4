"""Whatever a peer says, it is taken or its link ends with RemoteProtocolError; memory stays bounded."""

import importlib.util
import subprocess
import sys
import tracemalloc
from itertools import permutations
from pathlib import Path

import msgspec
import pytest
import spoken
from hypothesis import given
from hypothesis import strategies as st
from spoken import opened

from colonnade.errors import RemoteProtocolError
from colonnade.wire import conversation
from colonnade.wire.codec import encode, frame
from colonnade.wire.messages import AnyMessage

SCRIPT = Path(__file__).parents[2] / "scripts" / "fuzz_wire.py"


@pytest.fixture(scope="module")
def fuzz():
    spec = importlib.util.spec_from_file_location("fuzz_wire", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ENDS = list(permutations(("bank", "shop", "club"), 2))


@pytest.mark.parametrize("me, peer", ENDS)
def test_an_unspoilt_dialogue_is_taken_whole(fuzz, me, peer):
    listener = fuzz.Listener(me, peer)
    said = fuzz.dialogue(peer, me)
    assert fuzz.attack(listener, map(frame, said))
    assert [encode(message) for message in listener.accepted] == said
    assert listener.conversation.closed


@pytest.mark.parametrize("me, peer", ENDS)
def test_memory_is_bounded_by_the_longest_frame(fuzz, me, peer):
    longest = fuzz.TERMS.limit()
    stream = b"".join(map(frame, fuzz.dialogue(peer, me)[:-2])) + (longest + 1).to_bytes(4, "little")
    listener = fuzz.Listener(me, peer)
    tracemalloc.start()
    assert not fuzz.attack(listener, [stream] + [bytes(10_000)] * 1_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2 * longest + 2 * len(stream)


def test_thousands_of_asks_leave_nothing_behind():
    _, shop = opened()
    payload = encode(spoken.ask())
    shop.received(payload)
    tracemalloc.start()
    for _ in range(3_000):
        shop.received(payload)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert held < 2_000


@given(st.lists(spoken.ANY_MESSAGE, max_size=8), st.sampled_from(["bank", "shop", "club"]))
def test_any_message_in_any_order(messages, peer):
    """Right or wrong, the first refusal is the last: nothing is taken after it."""
    listener = opened()[1] if peer == "bank" else opened("bank", peer)[0]
    refusals = []
    for message in messages:
        try:
            taken = listener.received(encode(message))
        except RemoteProtocolError as error:
            refusals.append((f"{peer} sent {type(message).__name__} while ", str(error)))
        else:
            assert taken == message
            assert not refusals
    assert all(text.startswith(start) for start, text in refusals)


def test_the_fuzzer_finds_nothing(fuzz, capsys):
    assert fuzz.main(["--count", "3000", "--seed", "5", "--seconds", "60"]) == 0
    attacks, refused, taken = (int(word.replace(",", "")) for word in capsys.readouterr().out.split()[0:5:2])
    assert attacks == 3_000 == refused + taken
    assert min(refused, taken) > 300


def test_the_fuzzer_finds_a_planted_fault(fuzz, monkeypatch, capsys):
    """Without the codec's guard, msgspec's own errors come through."""
    monkeypatch.setattr(conversation, "decode", msgspec.msgpack.Decoder(AnyMessage).decode)
    assert fuzz.main(["--count", "3000", "--seed", "5", "--seconds", "60"]) == 1
    printed = capsys.readouterr()
    assert "seed 5, attack " in printed.out
    assert "ValidationError" in printed.err or "DecodeError" in printed.err


def test_the_fuzzer_is_a_command():
    run = subprocess.run(
        [sys.executable, str(SCRIPT), "--count", "20"], capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith("20 attacks: ")
