"""What of a job a link must know: each number in a message is checked against it before anybody acts on it.

A check returns what is wrong, in words that follow "bank sent Ask while OPEN:", or None.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colonnade.wire.codec import HELLO_LIMIT, ROW_BYTES, VALUE_BYTES, WORD_BYTES
from colonnade.wire.messages import (
    BOUNDS,
    CHUNK,
    FROZEN,
    NORMS,
    SCORES,
    VERSION,
    Ask,
    Hello,
    Mask,
    Push,
)

PER_ROW = frozenset({SCORES, FROZEN})
"""Asked for rows: one word a row and class."""

SMALL_SUMS = {NORMS: 2 * 32, BOUNDS: 2 * 32}
"""Asked for as a whole: the bytes of two wide words."""

OVERHEAD = 128
"""More than the bytes of any message beside its array or its texts."""

LONGEST_TEXTS = 2 * 2_000 * 4
"""Outcome and detail, in characters of four bytes."""

_ROW_NUMBER = np.dtype("<u4")


@dataclass(frozen=True)
class Terms:
    """The job as a link sees it; parties are meant by their positions in `parties`."""

    job: bytes
    parties: tuple[str, ...]
    requesters: frozenset[int]
    coordinator: int
    rows: int
    batch_size: int
    classes: int
    masks: bool = False
    """Whether masks travel, on a tree of their own."""

    @property
    def most_rows(self) -> int:
        """The most rows that one message speaks of."""
        return max(self.batch_size, min(self.rows, CHUNK))

    @property
    def row_bytes(self) -> int:
        """The words of one row in a sum, and the values of one row in a push."""
        return WORD_BYTES * self.classes

    def words_bytes(self, ask: Ask) -> int:
        """How many bytes of words answer this ask."""
        if ask.what in PER_ROW:
            return self.row_bytes * (len(ask.rows) // ROW_BYTES or ask.stop - ask.start)
        return SMALL_SUMS[ask.what]

    def limit(self) -> int:
        """The longest payload that this job allows."""
        arrays = max(self.row_bytes * self.most_rows, ROW_BYTES * self.batch_size, *SMALL_SUMS.values())
        return max(arrays, LONGEST_TEXTS, HELLO_LIMIT) + OVERHEAD


def hello_fault(terms: Terms, hello: Hello, expected: str) -> str | None:
    """A peer of another version, name, table or job."""
    if hello.version != VERSION:
        return f"it speaks version {hello.version} and we speak {VERSION}: install the same colonnade"
    if hello.name != expected:
        return f"it calls itself {hello.name!r} where {expected!r} was expected"
    if hello.rows != terms.rows:
        return f"it has {hello.rows:,} rows and we have {terms.rows:,}: give all parties the same rows"
    if hello.job != terms.job:
        return "its job differs from ours: give all parties the same job"
    return None


def ask_fault(terms: Terms, ask: Ask) -> str | None:
    """A sum that is none of this job's, or rows that it does not have."""
    if ask.requester not in terms.requesters:
        return f"party {ask.requester} asks for no sums in this job"
    if ask.done > ask.round:
        return f"it asks for round {ask.round} and says that all below {ask.done} are done"
    if ask.what in PER_ROW:
        return _numbered_rows_fault(terms, ask) if len(ask.rows) else _range_fault(terms, ask)
    if ask.what not in SMALL_SUMS:
        return f"there is no quantity {ask.what}"
    return "this sum is not of rows" if len(ask.rows) else None


def _numbered_rows_fault(terms: Terms, ask: Ask) -> str | None:
    if ask.start or ask.stop:
        return "it gives row numbers and a range at once"
    count = len(ask.rows) // ROW_BYTES
    if count > terms.batch_size:
        return f"it asks for {count:,} rows at once, more than a batch of {terms.batch_size:,}"
    rows = np.frombuffer(ask.rows, _ROW_NUMBER)
    largest = int(rows[rows.argmax()])  # on a batch a third faster than max()
    return f"row {largest:,} of {terms.rows:,}" if largest >= terms.rows else None


def _range_fault(terms: Terms, ask: Ask) -> str | None:
    if not ask.start < ask.stop <= terms.rows:
        return f"rows {ask.start:,} to {ask.stop:,} of {terms.rows:,}"
    if ask.stop - ask.start > CHUNK:
        return f"it asks for {ask.stop - ask.start:,} rows at once, more than {CHUNK:,}"
    return None


def mask_fault(terms: Terms, mask: Mask) -> str | None:
    """Masks for no requester, or of no sum's size."""
    if mask.requester not in terms.requesters:
        return f"party {mask.requester} asks for no sums in this job"
    size = len(mask.words)
    rows, beside = divmod(size, terms.row_bytes)
    if size not in SMALL_SUMS.values() and (beside or not 0 < rows <= terms.most_rows):
        return f"{size:,} bytes of words are the size of no sum of this job"
    return None


def push_fault(terms: Terms, push: Push) -> str | None:
    """Values that are not whole rows of the job's."""
    count, beside = divmod(len(push.values), VALUE_BYTES * terms.classes)
    if beside:
        return f"{len(push.values):,} bytes of values are not whole rows of {terms.classes}"
    if count > terms.most_rows:
        return f"it has values of {count:,} rows, more than {terms.most_rows:,}"
    if push.start + count > terms.rows:
        return f"it has values of rows {push.start:,} to {push.start + count:,} of {terms.rows:,}"
    return None
