"""Who sends whose sum to whom: trees over positions, rooted at the requester, from arithmetic alone.

A tree is a function (q, requester, me) -> (parent, children). Inside, positions are turned so that the
requester is slot 0: a tree is the same for every requester up to names, and so is what its parties see.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from colonnade.errors import ConfigurationError

Place: TypeAlias = tuple[int | None, tuple[int, ...]]
"""A party's parent (None at the root) and children."""
Tree: TypeAlias = Callable[[int, int, int], Place]
Slots: TypeAlias = Callable[[int, int], Place]
"""(q, slot) -> the slots of the parent and the children; slot 0 is the root."""


@lru_cache(maxsize=4096)
def star(q: int, requester: int, me: int) -> Place:
    """Everybody sends to the requester."""
    if me != requester:
        return requester, ()
    return None, tuple(position for position in range(q) if position != requester)


@lru_cache(maxsize=4096)
def balanced(q: int, requester: int, me: int) -> Place:
    """Algorithm 1: pairs of workers, then pairs of pairs; log2(q) deep."""
    return _turned(_pairs, q, requester, me)


@lru_cache(maxsize=4096)
def turned(q: int, requester: int, me: int) -> Place:
    """One binary tree over the positions, hung up at the requester: whoever asks, the same q - 1 links serve."""
    above = (me - 1) // 2 if me else None
    around = (above, *(below for below in (2 * me + 1, 2 * me + 2) if below < q))
    if me == requester:
        parent = None
    else:
        step = requester
        while step > me and (step - 1) // 2 != me:
            step = (step - 1) // 2
        parent = step if step > me else above
    return parent, tuple(p for p in around if p is not None and p != parent)


@lru_cache(maxsize=4096)
def shifted(q: int, requester: int, me: int) -> Place:
    """`balanced` with all but the requester moved on by an odd number of places: Algorithm 2's second tree.

    A party on an even slot of `balanced` is on an odd slot here, and odd slots are leaves: nobody but the
    requester receives both masked shares and masks. Moved by 1, the sets of parties that reach the requester
    together overlap in one chain across the two trees, so it can unmask nothing but the total; except for
    q = 2^k + 1, where slot 1 comes alone in both. There the shift is 3 (q is odd: parity holds across the
    wrap). Neither works for q = 3 and 5. The rank check agrees.
    """
    shift = 3 if _power_of_two(q - 1) else 1

    def slots(q: int, slot: int) -> Place:
        if slot == 0:
            return _pairs(q, 0)[0], tuple(on(child) for child in _pairs(q, 0)[1])
        parent, children = _pairs(q, 1 + (slot - 1 - shift) % (q - 1))
        return on(parent), tuple(on(child) for child in children)

    def on(slot: int | None) -> int:
        return 1 + (slot - 1 + shift) % (q - 1) if slot else 0

    return _turned(slots, q, requester, me)


@lru_cache(maxsize=4096)
def chain(q: int, requester: int, me: int) -> Place:
    """Everybody sends to the party before it."""
    return _turned(_line, q, requester, me)


@lru_cache(maxsize=4096)
def reversed_chain(q: int, requester: int, me: int) -> Place:
    """Everybody sends to the party after it: what `chain` brings from one side comes from the other."""
    parent, children = _turned(_line, q, -requester % q, -me % q)
    return None if parent is None else -parent % q, tuple(-child % q for child in children)


def two_trees(q: int) -> tuple[Tree, Tree]:
    """Algorithm 2's pair, for masked shares and for masks: together they tell nobody more than a total."""
    if q == 2:
        raise ConfigurationError(
            'aggregation = "two-tree" needs three parties: with two, the total gives away the '
            'partner\'s share; use "pairwise"'
        )
    return (chain, reversed_chain) if q in (1, 3, 5) else (balanced, shifted)


def _pairs(q: int, slot: int) -> Place:
    """The binomial tree: the parent clears the lowest set bit."""
    lowest = slot & -slot if slot else q
    children = []
    step = 1
    while step < lowest and slot + step < q:
        children.append(slot + step)
        step *= 2
    return (slot & (slot - 1) if slot else None), tuple(children)


def _line(q: int, slot: int) -> Place:
    return (slot - 1 if slot else None), ((slot + 1,) if slot + 1 < q else ())


def _turned(slots: Slots, q: int, requester: int, me: int) -> Place:
    parent, children = slots(q, (me - requester) % q)
    back = tuple((child + requester) % q for child in children)
    return None if parent is None else (parent + requester) % q, back


def _power_of_two(number: int) -> bool:
    return number & (number - 1) == 0
