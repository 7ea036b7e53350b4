"""Payloads and frames: what is written is read again; all else is a RemoteProtocolError."""

import contextlib
import tracemalloc

import msgspec
import numpy as np
import pytest
import spoken
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import RemoteProtocolError
from colonnade.wire.codec import HELLO_LIMIT, LONGEST_FRAME, FrameReader, decode, encode, frame
from colonnade.wire.messages import Ask, Pace, Push, Retreat, Share, Stop

MESSAGES = spoken.one_of_each("bank", "shop")
CHUNKS = st.lists(st.integers(1, 40), min_size=1)


def by_name(message):
    return type(message).__name__


def cut(data, sizes):
    """The data in pieces of these sizes, over and over."""
    start = turn = 0
    while start < len(data):
        size = sizes[turn % len(sizes)]
        yield data[start : start + size]
        start, turn = start + size, turn + 1


class TestPayload:
    @pytest.mark.parametrize("message", MESSAGES, ids=by_name)
    def test_every_message_comes_back(self, message):
        assert decode(encode(message)) == message
        assert decode(memoryview(encode(message))) == message

    @given(spoken.ANY_MESSAGE)
    def test_any_fields_come_back(self, message):
        assert decode(encode(message)) == message

    def test_arrays_are_views_of_the_payload(self):
        payload = encode(Share(0, 1, 2, 3, np.arange(5, dtype="<u8").data))
        words = decode(payload).words
        assert words.obj is payload
        assert np.frombuffer(words, "<u8").tolist() == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("message", MESSAGES, ids=by_name)
    def test_a_payload_cut_anywhere_is_refused(self, message):
        payload = encode(message)
        for end in range(len(payload)):
            with pytest.raises(RemoteProtocolError, match="no message of this protocol"):
                decode(payload[:end])

    @given(st.binary(max_size=200))
    def test_random_bytes_are_refused_or_mean_one_message(self, payload):
        with contextlib.suppress(RemoteProtocolError):
            message = decode(payload)
            assert decode(encode(message)) == message

    @given(st.sampled_from(MESSAGES), st.data())
    def test_flipped_bits_are_refused_or_mean_one_message(self, message, data):
        payload = bytearray(encode(message))
        for _ in range(data.draw(st.integers(1, 3))):
            payload[data.draw(st.integers(0, len(payload) - 1))] ^= 1 << data.draw(st.integers(0, 7))
        with contextlib.suppress(RemoteProtocolError):
            flipped = decode(bytes(payload))
            assert decode(encode(flipped)) == flipped or flipped != flipped

    @pytest.mark.parametrize(
        "fields",
        [
            [99],
            ["Hello"],
            {"kind": 9},
            [9, 1],
            [3, 0, 1, 2, 3, "words"],
            [3, 70_000, 1, 2, 3, b""],
            [3, 0, -1, 2, 3, b""],
            [3, 0, 2**48, 2, 3, b""],
            [3, 0, 1.5, 2, 3, b""],
            [1, bytes(31)],
            [6, 1, 1.5],
            [6, 1, float("nan")],
            [7, 0.0],
            [11, "x" * 2_001, ""],
        ],
    )
    def test_wrong_kinds_counts_types_and_ranges_are_refused(self, fields):
        with pytest.raises(RemoteProtocolError, match="no message of this protocol"):
            decode(msgspec.msgpack.encode(fields))

    def test_text_that_is_no_text_is_refused(self):
        with pytest.raises(RemoteProtocolError):
            decode(encode(Stop("converged", "", None)).replace(b"conv", b"\xff\xfe\xfd\xfc"))

    def test_deep_nesting_is_refused(self):
        with pytest.raises(RemoteProtocolError):
            decode(b"\x91" * 100_000)

    @pytest.mark.parametrize(
        "message, reason",
        [
            (Ask(0, 1, 2, 0, 0, 0, 0, 0, bytes(6)), "Ask: 6 bytes of rows, not a multiple of 4"),
            (Share(0, 1, 2, 0, bytes(9)), "Share: 9 bytes of words, not a multiple of 8"),
            (Push(1, 2, 1, 0, bytes(4)), "Push: 4 bytes of values, not a multiple of 8"),
            (Pace(float("inf")), "Pace: step inf"),
        ],
        ids=by_name,
    )
    def test_arrays_of_another_dtype_and_endless_steps_are_refused(self, message, reason):
        with pytest.raises(RemoteProtocolError, match=reason):
            decode(encode(message))

    def test_an_announced_size_allocates_nothing(self):
        huge = b"\x96\x03\x00\x01\x02\x03\xc6\xff\xff\xff\xff"
        tracemalloc.start()
        with pytest.raises(RemoteProtocolError):
            decode(huge)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100_000


class TestFrameReader:
    @given(st.lists(st.binary(max_size=60), max_size=8), CHUNKS)
    def test_frames_come_back_however_the_stream_is_cut(self, payloads, sizes):
        stream = b"".join(frame(payload) for payload in payloads)
        reader = FrameReader()
        assert [bytes(p) for piece in cut(stream, sizes) for p in reader.feed(piece)] == payloads
        reader.close()

    def test_a_whole_frame_is_not_copied(self):
        data = frame(b"payload")
        assert FrameReader().feed(data)[0].obj is data

    @given(st.binary(min_size=1, max_size=60), CHUNKS, st.data())
    def test_a_truncated_frame_is_named_at_the_end(self, payload, sizes, data):
        stream = frame(payload)
        reader = FrameReader(peer="bank")
        for piece in cut(stream[: data.draw(st.integers(1, len(stream) - 1))], sizes):
            assert reader.feed(piece) == []
        with pytest.raises(RemoteProtocolError, match="bank closed the link inside"):
            reader.close()

    def test_a_truncated_frame_says_how_much_came(self):
        reader = FrameReader(peer="bank")
        reader.feed(frame(b"payload")[:-3])
        with pytest.raises(RemoteProtocolError, match="inside a frame: 4 of 7 bytes came"):
            reader.close()

    @pytest.mark.parametrize("length", [HELLO_LIMIT + 1, 10**9, LONGEST_FRAME])
    def test_a_frame_above_the_limit_is_refused_before_it_is_held(self, length):
        reader = FrameReader(peer="bank")
        announced = length.to_bytes(4, "little") + bytes(10)
        tracemalloc.start()
        try:
            reader.feed(announced)
            refusal = ""
        except RemoteProtocolError as error:
            refusal = str(error)
        peak = tracemalloc.get_traced_memory()[1]  # without pytest's own: it compiles what it matches
        tracemalloc.stop()
        assert f"bank announced a frame of {length:,} bytes" in refusal
        assert peak < 10_000

    def test_the_limit_can_be_raised(self):
        reader = FrameReader()
        reader.limit = 10_000
        assert reader.feed(frame(bytes(10_000))) == [bytes(10_000)]

    def test_many_pieces_of_one_frame_are_held_once(self):
        size = 200_000
        stream = frame(bytes(size))
        reader = FrameReader(limit=size)
        tracemalloc.start()
        for piece in cut(stream, [3]):
            payloads = reader.feed(piece)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert payloads == [bytes(size)]
        assert peak < size + 10_000

    def test_a_longer_retreat_is_no_retreat(self):
        payload = encode(Retreat(1, 0.5))
        longer = bytes([payload[0] + 1]) + payload[1:] + b"\x00"
        with pytest.raises(RemoteProtocolError):
            decode(longer)
