"""Fixed point: sums equal Python's exact integers, in any order, and nothing wraps unseen."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from colonnade.errors import OverflowRefusedError, RemoteProtocolError
from colonnade.privacy.fixedpoint import Format, Narrow, Wide

FORMATS = {"narrow": Narrow(), "narrow 48": Narrow(48), "wide": Wide()}
any_format = st.sampled_from(list(FORMATS.values()))
any_parties = st.sampled_from([2, 3, 7, 8, 1000, 4099])


def limit(form: Format, parties: int) -> float:
    return 2.0 ** (8 * form.word_bytes - 1 - form.bits) / parties


def total(form: Format, shares: list[np.ndarray]) -> np.ndarray:
    words = [form.encode(share, len(shares)) for share in shares]
    for other in words[1:]:
        form.add(words[0], other)
    return form.decode(words[0], shares[0].shape)


@given(form=any_format, parties=st.integers(2, 12), length=st.integers(0, 5), data=st.data())
def test_a_total_is_the_exact_integer_sum_in_any_order(form, parties, length, data):
    size = limit(form, parties) * 0.99
    numbers = st.floats(-size, size, allow_subnormal=True) | st.floats(-4.0, 4.0)
    row = st.lists(numbers, min_size=length, max_size=length)
    shares = [np.array(data.draw(row)) for _ in range(parties)]
    exact = [sum(round(Fraction(x) * 2**form.bits) for x in column) for column in zip(*shares, strict=True)]
    wanted = [whole / 2**form.bits for whole in exact]
    assert total(form, shares).tolist() == wanted
    assert total(form, data.draw(st.permutations(shares))).tolist() == wanted


@given(form=any_format, parties=any_parties, sign=st.sampled_from([-1.0, 1.0]))
def test_at_the_limit_the_largest_totals_do_not_wrap(form, parties, sign):
    largest = math.nextafter(limit(form, parties) * (1 - 2.0**-40), 0.0)
    share = form.encode(np.array([sign * largest]), parties)
    whole = share.copy()
    for _ in range(parties - 1):
        form.add(whole, share)
    assert form.decode(whole, (1,))[0] == pytest.approx(sign * largest * parties)
    with pytest.raises(OverflowRefusedError, match="scale the features down, or lower the step"):
        form.encode(np.array([0.0, sign * limit(form, parties)]), parties)


@pytest.mark.parametrize("parties", [2, 3, 5, 8, 1000, 4099])
def test_just_below_the_refused_size_parties_times_the_word_stays_signed(parties):
    form = Narrow()
    low, high = 0.0, limit(form, parties)
    while math.nextafter(low, high) < high:
        middle = (low + high) / 2
        try:
            form.encode(np.array([middle]), parties)
            low = middle
        except OverflowRefusedError:
            high = middle
    assert parties * int(form.encode(np.array([low]), parties)[0]) < 2**63


def test_an_overflow_names_the_number_and_the_limit():
    with pytest.raises(OverflowRefusedError, match=r"size 1e\+30 and the limit is 1\.04858e\+06"):
        Narrow().encode(np.array([1.0, -1e30]), 8)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 1e308])
def test_numbers_that_do_not_fit_are_refused_without_a_warning(form, bad):
    with pytest.raises(OverflowRefusedError, match="NaN or infinite" if not math.isfinite(bad) else "limit"):
        form.encode(np.array([1.0, bad]), 2)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=6))
def test_wide_words_hold_every_float_of_ordinary_size_exactly(numbers):
    ordinary = [x for x in numbers if x == 0 or 2.0**-75 < abs(x) < 2.0**120]
    wide = Wide()
    assert wide.decode(wide.encode(np.array(ordinary), 2), (len(ordinary),)).tolist() == ordinary


@given(form=any_format, data=st.data())
def test_adding_and_subtracting_any_words_is_arithmetic_modulo_the_word(form, data):
    size, count = form.word_bytes, 3
    raw = [data.draw(st.binary(min_size=count * size, max_size=count * size)) for _ in range(2)]
    for operation, sign in ((form.add, 1), (form.subtract, -1)):
        onto = form.words_from(raw[0], count).copy()
        operation(onto, form.words_from(raw[1], count))
        for at in range(0, count * size, size):
            mine, its = (int.from_bytes(words[at : at + size], "little") for words in raw)
            result = int.from_bytes(form.bytes_of(onto)[at : at + size], "little")
            assert result == (mine + sign * its) % 2 ** (8 * size)


@example(form=Wide(), numbers=[[1.0, 2.0], [3.0, -4.0]])
@given(
    form=any_format, numbers=st.lists(st.tuples(*[st.floats(-99, 99)] * 2).map(list), min_size=1, max_size=4)
)
def test_words_travel_as_bytes_and_keep_the_shape(form, numbers):
    values = np.array(numbers)
    words = form.encode(values, 2)
    raw = form.bytes_of(words)
    assert raw.nbytes == values.size * form.word_bytes
    back = form.words_from(bytes(raw), values.size)
    assert np.array_equal(back, words)
    np.testing.assert_allclose(form.decode(back, values.shape), values, rtol=0, atol=2.0**-40)


def test_words_do_not_depend_on_memory_order_or_width():
    values = np.arange(12.0).reshape(3, 4)
    form = Narrow()
    assert np.array_equal(form.encode(np.asfortranarray(values), 2), form.encode(values, 2))
    assert np.array_equal(form.encode(values.astype(np.float32), 2), form.encode(values, 2))


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_bytes_of_another_length_are_a_broken_protocol(form):
    with pytest.raises(RemoteProtocolError, match=f"{form.word_bytes * 2 + 1} bytes"):
        form.words_from(bytes(form.word_bytes * 2 + 1), 2)


def test_received_words_cannot_be_written_to():
    assert not Narrow().words_from(bytes(16), 2).flags.writeable
