"""Row order: equal digests for equal orders only, and refusals that say where two tables part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.data.alignment import ids_digest, refuse_misaligned
from colonnade.errors import DataError

ids = st.lists(st.text(max_size=5), max_size=6)


@given(ids, ids)
def test_digests_are_equal_exactly_when_the_ordered_ids_are(left, right):
    assert (ids_digest(left, len(left)) == ids_digest(right, len(right))) == (left == right)


def test_digests_have_32_bytes_and_tell_numbers_from_ids():
    digests = {ids_digest(None, 2), ids_digest(None, 3), ids_digest(["0", "1"], 2), ids_digest(["01"], 1)}
    assert len(digests) == 4
    assert {len(digest) for digest in digests} == {32}


@pytest.mark.parametrize(
    "bank, shop, words",
    [
        (["a", "b", "c"], ["a", "b"], "'bank' has 3 rows and 'shop' has 2"),
        (["a", "b", "c"], ["a", "c", "b"], "another order, first in row 2 ('b' against 'c'): sort both"),
        (["a", "b"], ["a", "z"], "the ids differ, first in row 2 ('b' against 'z'): keep the ids"),
        (None, ["a", "b"], "'shop' names an id column and 'bank' does not"),
        (["a", "b"], None, "'bank' names an id column and 'shop' does not"),
    ],
)
def test_misaligned_tables_are_refused(bank, shop, words):
    with pytest.raises(DataError) as caught:
        refuse_misaligned(
            {"bank": bank, "shop": shop}, {"bank": len(bank or "ab"), "shop": len(shop or "ab")}
        )
    assert words in str(caught.value)


def test_aligned_tables_pass():
    refuse_misaligned({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"]}, dict.fromkeys("abc", 2))
    refuse_misaligned({"a": None, "b": None}, dict.fromkeys("ab", 9))
