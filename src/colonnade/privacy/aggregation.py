"""How the terms of a secured sum are hidden: plain, two-tree (Algorithm 2) or pairwise masks.

Each says who sends to whom and what is added to a share before it leaves; one exchange serves all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import NamedTuple, Protocol, TypeAlias

import msgspec

from colonnade.errors import LocalProtocolError
from colonnade.privacy.fixedpoint import Format, Words
from colonnade.privacy.masks import MaskKey, Rows, request_nonce
from colonnade.privacy.trees import Place, star, turned, two_trees

Blinded: TypeAlias = tuple[Words, Words | None]
"""Words for the tree, and words for the mask tree where there is one."""


class Request(msgspec.Struct, frozen=True, gc=False):
    """What one array of shares answers. Each chunk of a full pass is a request, told apart by its rows.

    A request is blinded once an incarnation; asked again, a party sends the same bytes or refuses.
    """

    requester: int
    incarnation: int
    round: int
    what: int
    shape: tuple[int, ...]
    rows: Rows

    def nonce(self) -> bytes:
        return request_nonce(self.requester, self.incarnation, self.round, self.what, self.shape, self.rows)


class Secrets(NamedTuple):
    """What a party blinds with: its position, its pair keys with all others by position, and fresh bytes."""

    me: int
    keys: Mapping[int, MaskKey]
    entropy: Callable[[int], bytes]


class Aggregation(Protocol):
    """A way to sum. `words` are blinded in place."""

    needs_keys: bool

    def tree(self, q: int, requester: int, me: int) -> Place: ...

    def mask_tree(self, q: int, requester: int, me: int) -> Place | None: ...

    def messages(self, q: int) -> int:
        """Messages of one total among q parties, asks included."""
        ...

    def blind(self, words: Words, format: Format, request: Request, mine: Secrets) -> Blinded: ...


class Plain:
    """Algorithm 1: a tree of shares in clear. For comparison and research."""

    needs_keys = False

    def tree(self, q: int, requester: int, me: int) -> Place:
        return turned(q, requester, me)

    def mask_tree(self, q: int, requester: int, me: int) -> Place | None:
        return None

    def messages(self, q: int) -> int:
        return 2 * (q - 1)

    def blind(self, words: Words, format: Format, request: Request, mine: Secrets) -> Blinded:
        return words, None


class TwoTree:
    """Algorithm 2: each party adds uniform words of its own, and these are summed along another tree."""

    needs_keys = False

    def tree(self, q: int, requester: int, me: int) -> Place:
        return two_trees(q)[0](q, requester, me)

    def mask_tree(self, q: int, requester: int, me: int) -> Place | None:
        return two_trees(q)[1](q, requester, me)

    def messages(self, q: int) -> int:
        return 3 * (q - 1)

    def blind(self, words: Words, format: Format, request: Request, mine: Secrets) -> Blinded:
        if mine.me == request.requester:
            return words, None
        count = _count(words, request)
        masks = format.words_from(mine.entropy(count * format.word_bytes), count)
        format.add(words, masks)
        return words, masks


class Pairwise:
    """Of each pair of answering parties one adds and one subtracts a keystream: only the total is clean."""

    needs_keys = True

    def tree(self, q: int, requester: int, me: int) -> Place:
        return star(q, requester, me)

    def mask_tree(self, q: int, requester: int, me: int) -> Place | None:
        return None

    def messages(self, q: int) -> int:
        return 2 * (q - 1)

    def blind(self, words: Words, format: Format, request: Request, mine: Secrets) -> Blinded:
        if mine.me == request.requester:
            return words, None
        count, nonce = _count(words, request), request.nonce()
        for other, key in mine.keys.items():
            if other == request.requester:
                continue
            mask = format.words_from(key.stream(nonce, count * format.word_bytes), count)
            if mine.me < other:
                format.add(words, mask)
            else:
                format.subtract(words, mask)
        return words, None


AGGREGATIONS: dict[str, Aggregation] = {"plain": Plain(), "two-tree": TwoTree(), "pairwise": Pairwise()}


def peers(aggregation: Aggregation, q: int, requester: int, me: int) -> tuple[int, ...]:
    """Whom `me` sends to or hears from in this requester's rounds, in order."""
    places = (aggregation.tree(q, requester, me), aggregation.mask_tree(q, requester, me))
    met: set[int] = set()
    for parent, children in filter(None, places):
        met.update(children, () if parent is None else (parent,))
    return tuple(sorted(met))


def _count(words: Words, request: Request) -> int:
    """The words of a request; more or fewer would be masked under another array's nonce."""
    count = prod(request.shape)
    if len(words) != count:
        raise LocalProtocolError(f"{len(words)} words to blind for a request of shape {request.shape}")
    return count
