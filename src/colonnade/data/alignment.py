"""Row order: parties that hold the same rows in different orders train a nonsense model that nobody sees."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import msgspec

from colonnade.errors import DataError

DOMAIN = b"colonnade row ids 1\0"


def ids_digest(ids: Sequence[str] | None, rows: int) -> bytes:
    """32 bytes that stand for the ordered row ids; without ids, for the row numbers."""
    packed = msgspec.msgpack.encode(rows if ids is None else list(ids))
    return hashlib.sha256(DOMAIN + packed).digest()


def refuse_misaligned(ids: Mapping[str, Sequence[str] | None], rows: Mapping[str, int]) -> None:
    """Compare the parties' rows up front, where all tables are on one machine."""
    first, *others = rows
    for other in others:
        _compare(first, ids[first], rows[first], other, ids[other], rows[other])


def _compare(
    first: str,
    ids: Sequence[str] | None,
    rows: int,
    other: str,
    other_ids: Sequence[str] | None,
    other_rows: int,
) -> None:
    if rows != other_rows:
        raise DataError(
            f"{first!r} has {rows} rows and {other!r} has {other_rows}: "
            "keep the rows that all parties hold, in one order"
        )
    if (ids is None) != (other_ids is None):
        with_ids, without = (other, first) if ids is None else (first, other)
        raise DataError(
            f"{with_ids!r} names an id column and {without!r} does not: name one for all parties, or for none"
        )
    if ids is None or other_ids is None or ids == other_ids:
        return
    row = next(number for number, (a, b) in enumerate(zip(ids, other_ids, strict=True)) if a != b)
    if set(ids) == set(other_ids):
        what, remedy = "the ids are in another order", "sort both tables by id"
    else:
        what, remedy = "the ids differ", "keep the ids that all parties hold, and sort by id"
    raise DataError(
        f"{first!r} and {other!r}: {what}, first in row {row + 1} "
        f"({ids[row]!r} against {other_ids[row]!r}): {remedy}"
    )
