"""The rank check: what a party, or several together, can work out from all that they received.

Unknowns are the others' products (shares in clear) and masks; everything received is a known linear
combination of them. A coalition learns the combinations of products alone that lie in the row space of what
it saw. Exact, over the rationals and over GF(2): words modulo 2^64 have to hide under both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from math import gcd
from typing import Literal

from colonnade.privacy.trees import Tree

Field = Literal["rationals", "bits"]
Row = list[int]


def learnt(seen: Iterable[Sequence[int]], products: int, field: Field = "rationals") -> list[Row]:
    """The row space of `seen` met with the product space, reduced.

    The first `products` columns stand for products, the others for masks.
    """
    by_mask = [[*row[products:], *row[:products]] for row in seen]
    masks = len(by_mask[0]) - products if by_mask else 0
    reduced = echelon(by_mask, field)
    return [row[masks:] for row in reduced if not any(row[:masks])]


def echelon(rows: Iterable[Sequence[int]], field: Field) -> list[Row]:
    """Reduced row echelon form without fractions: integer rows without a common divisor, or bits."""
    left = [row for row in (_tidy(list(row), field) for row in rows) if any(row)]
    done: list[Row] = []
    while left:
        left.sort(key=_pivot)
        top, rest = left[0], left[1:]
        at = _pivot(top)
        done = [_cleared(row, top, at, field) for row in done]
        left = [row for row in (_cleared(row, top, at, field) for row in rest) if any(row)]
        done.append(top)
    return done


def learns(
    q: int,
    tree: Tree,
    mask_tree: Tree | None,
    requester: int,
    viewers: Sequence[int],
    field: Field = "rationals",
) -> list[Row]:
    """What these parties together learn in one round: combinations of all q shares, their own left out.

    Without a mask tree shares travel in clear. The requester masks nothing in either case.
    """
    blank = [0] * q
    shares = [_indicator(members, q) for members in received(q, tree, requester, viewers)]
    if mask_tree is None:
        return learnt(shares, q, field)
    masks = [_indicator(members, q) for members in received(q, mask_tree, requester, viewers)]
    return learnt([row + row for row in shares] + [blank + row for row in masks], q, field)


def leaks(
    q: int, tree: Tree, mask_tree: Tree | None, requester: int, field: Field = "rationals"
) -> dict[int, list[Row]]:
    """What each party alone learns beyond its due: nothing, for the requester the total. Empty: safe."""
    total = _indicator(frozenset(range(q)) - {requester}, q)
    found = {}
    for viewer in range(q):
        space = learns(q, tree, mask_tree, requester, [viewer], field)
        if space and not (viewer == requester and space == [total]):
            found[viewer] = space
    return found


def pairs_that_see(
    q: int, tree: Tree, mask_tree: Tree, requester: int, told: bool = False
) -> dict[tuple[int, int], tuple[int, ...]]:
    """Which two parties together learn whose share. `told`: the total is sent on to everybody.

    With masked shares y = x + b and masks b as unknowns, a coalition learns the combinations that lie both in
    the span of the sets it received in the first tree and in that of the second. Subtrees are nested or
    disjoint, so these sets are totally unimodular, and a span holds the same parties over GF(2) as over the
    rationals: bits suffice.
    """
    found = {}
    for pair in combinations(range(q), 2):
        first, second = (_span(received(q, each, requester, pair)) for each in (tree, mask_tree))
        seen = [party for party in range(q) if 1 << party in first and 1 << party in second]
        if told and requester not in pair and _whole(first, second, q, {requester, *pair}):
            seen.append(requester)
        if seen:
            found[pair] = tuple(seen)
    return found


def received(q: int, tree: Tree, requester: int, viewers: Sequence[int]) -> list[frozenset[int]]:
    """Of each sum that a viewer receives: the parties in it, the viewers' own removed."""
    own = frozenset(viewers)
    sums = (
        subtree(q, tree, requester, child) for viewer in viewers for child in tree(q, requester, viewer)[1]
    )
    return [members - own for members in sums]


@lru_cache(maxsize=1024)
def subtree(q: int, tree: Tree, requester: int, top: int) -> frozenset[int]:
    """The parties whose shares arrive by `top`, itself included."""
    below = (subtree(q, tree, requester, child) for child in tree(q, requester, top)[1])
    return frozenset({top}).union(*below)


def _indicator(members: Iterable[int], q: int) -> Row:
    row = [0] * q
    for member in members:
        row[member] = 1
    return row


def _pivot(row: Row) -> int:
    return next(column for column, entry in enumerate(row) if entry)


def _cleared(row: Row, top: Row, at: int, field: Field) -> Row:
    """`row` without column `at`."""
    if not row[at]:
        return row
    return _tidy([top[at] * mine - row[at] * its for mine, its in zip(row, top, strict=True)], field)


def _tidy(row: Row, field: Field) -> Row:
    """A row of small numbers whose first is positive."""
    if field == "bits":
        return [entry & 1 for entry in row]
    common = gcd(*row)
    sign = -1 if next((entry for entry in row if entry), 0) < 0 else 1
    return [sign * entry // common for entry in row] if common else row


def _span(sets: Iterable[frozenset[int]]) -> set[int]:
    """The reduced rows, as bit masks, of the space that these sets span over GF(2)."""
    rows: list[int] = []
    for members in sets:
        new = sum(1 << member for member in members)
        for row in rows:
            if new & (row & -row):
                new ^= row
        if new:
            rows = [row ^ new if row & (new & -new) else row for row in rows]
            rows.append(new)
    return set(rows)


def _whole(first: set[int], second: set[int], q: int, without: set[int]) -> bool:
    """Whether the sum of all but these parties lies in both spans."""
    everybody = sum(1 << party for party in range(q) if party not in without)
    return all(_reduced(everybody, span) == 0 for span in (first, second))


def _reduced(target: int, span: set[int]) -> int:
    for row in span:
        if target & (row & -row):
            target ^= row
    return target
