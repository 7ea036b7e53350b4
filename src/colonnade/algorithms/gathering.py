"""One secured sum under way at one party: what comes up the tree of shares and, in Algorithm 2, the tree of masks."""

from __future__ import annotations

from typing import Any

from colonnade.privacy.fixedpoint import Format
from colonnade.privacy.trees import Place
from colonnade.runtime.host import Promise
from colonnade.wire.messages import Ask, Mask


class Pile:
    """What comes up one tree: this party's own words, unless it has none to add, and each child's once."""

    __slots__ = ("awaited", "missing", "parent", "words")

    def __init__(self, place: Place, own: bool) -> None:
        self.parent, children = place
        self.awaited = children
        self.missing = len(children) + own
        self.words: Any = None

    def expects(self, child: int) -> bool:
        """Whether this child's words are awaited: once."""
        if child not in self.awaited:
            return False
        self.awaited = tuple(awaited for awaited in self.awaited if awaited != child)
        return True

    def add(self, form: Format, words: Any) -> None:
        if self.words is None:
            self.words = words
        else:
            if not self.words.flags.writeable:
                self.words = self.words.copy()
            form.add(self.words, words)
        self.missing -= 1


class Gathering:
    """`ask` is None as long as only masks have come, which nobody asks for."""

    __slots__ = ("ask", "early", "masks", "promise", "shares")

    def __init__(self, tree: Place, mask_tree: Place | None, requester: bool) -> None:
        self.ask: Ask | None = None
        self.shares = Pile(tree, own=True)
        self.masks = None if mask_tree is None else Pile(mask_tree, own=not requester)
        self.early: list[tuple[int, Mask]] | None = None
        self.promise: Promise[None] | None = None

    @property
    def complete(self) -> bool:
        return not self.shares.missing and (self.masks is None or not self.masks.missing)
