"""Secured sums: one requester asks, everybody contributes an array, the requester learns the total and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from colonnade.algorithms.gathering import Gathering, Pile
from colonnade.errors import RemoteProtocolError
from colonnade.privacy.aggregation import AGGREGATIONS, Request, Secrets
from colonnade.privacy.fixedpoint import Format, Narrow, Wide
from colonnade.runtime.host import Promise
from colonnade.wire.messages import FROZEN, SCORES, Ask, Mask, Share

if TYPE_CHECKING:
    from colonnade.algorithms.peers import Peers
    from colonnade.job import Plan

Floats = np.ndarray[Any, np.dtype[np.float64]]
Rows = slice | np.ndarray[Any, np.dtype[np.uint32]]
Key = tuple[int, int, int]
"""Requester, round, first row: names one sum."""

REMEMBERED = 64

CROWD = 4
"""A requester has one sum open at a time, and masks come one round ahead: so many more are a flood."""

FORMATS: tuple[Format, ...] = (Narrow(40), Narrow(40), Wide(), Wide())
"""Scores and frozen scores travel in 64-bit words, the small exact sums in wide ones."""


def rows_of(ask: Ask) -> Rows:
    return np.frombuffer(ask.rows, dtype="<u4") if len(ask.rows) else slice(ask.start, ask.stop)


def count_of(rows: Rows) -> int:
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


class Exchange:
    """Serves the sums of every requester, and asks for this party's own."""

    def __init__(
        self,
        plan: Plan,
        me: int,
        peers: Peers,
        entropy: Callable[[int], bytes],
        contribute: Callable[[Ask], Promise[Floats]],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._parties = len(plan.parties)
        self._classes = plan.classes
        self._barrier = plan.synchronous
        self._coordinator = plan.parties.index(plan.coordinator)
        self._receives = plan.parties[me] in plan.receivers
        self._begun = False
        self._me = me
        self._peers = peers
        self._secrets = Secrets(me, peers.mask_keys, entropy)
        self._contribute = contribute
        self._failed = failed
        self._aggregation = AGGREGATIONS[plan.job.aggregation]
        self._trees: dict[int, tuple[Any, Any]] = {}
        self._open: dict[Key, Gathering] = {}
        self._behind: list[Gathering] = []
        self._last: dict[int, tuple[int, int]] = {}
        self._round = 0
        self.abandoned = False
        """Whether the sums of others are no longer answered either."""
        self.completed = 0
        """Sums of this party's that it has got, chunks counted one by one."""
        self.moves = 0
        """What an ask may have to wait for: retreats; in a synchronous job steps and snapshots too."""
        self.rounds_seen = 0
        self.rows_seen = 0
        self.shares_received = 0
        self._heard: set[int] = set()
        self._answered: dict[int, Rows] = {}

    @property
    def current_round(self) -> int:
        return self._round

    def next_round(self) -> int:
        self._round += 1
        return self._round

    async def total(self, what: int, rows: Rows, number: int) -> Floats:
        """The secured sum of everybody's contribution: (rows,) or (rows, classes); two numbers for the small sums."""
        chunk = rows if isinstance(rows, slice) else slice(0, 0)
        ask = Ask(
            requester=self._me,
            incarnation=self._peers.incarnation,
            round=number,
            what=what,
            after=self.moves if self._barrier or self._me == self._coordinator else 0,
            done=number,
            start=chunk.start,
            stop=chunk.stop,
            rows=b"" if isinstance(rows, slice) else rows.tobytes(),
        )
        gathering = self._opened(self._me, number, ask.start)
        gathering.promise = Promise()
        self._begin(gathering, ask)
        await gathering.promise
        self.completed += 1
        form = FORMATS[what]
        words = gathering.shares.words
        if gathering.masks is not None and gathering.masks.words is not None:  # nobody blinds a party alone
            form.subtract(words, gathering.masks.words)
        return form.decode(words, self._shape(ask))

    def asked(self, sender: int, ask: Ask) -> None:
        """A sum is asked for, by its requester or by the parent in its tree."""
        parent, _ = self._tree(ask.requester)[0]
        if sender != parent or ask.requester == self._me:
            raise RemoteProtocolError(
                f"asked for a sum of party {ask.requester} that is not theirs to pass on"
            )
        place = (ask.round, ask.start)
        if place <= self._last.get(ask.requester, (0, -1)):
            raise RemoteProtocolError(f"asked for round {ask.round} again")
        if len(self._open) > CROWD * self._parties:
            self._refuse_flood(sum(known[0] == ask.requester for known in self._open))
        self._last[ask.requester] = place
        key = (ask.requester, ask.round, ask.start)
        gathering = self._open.get(key) or self._opened(*key)
        if ask.what in (SCORES, FROZEN):
            rows = rows_of(ask)
            self.rows_seen += count_of(rows)
            if ask.requester == self._coordinator and (self._receives or ask.what == FROZEN):
                self._remember(ask.round, rows)
        if ask.what != FROZEN or ask.start == 0:
            self.rounds_seen += 1
        self._begin(gathering, ask)

    def shared(self, sender: int, share: Share) -> None:
        gathering = self._open.get((share.requester, share.round, share.start))
        if gathering is None or gathering.ask is None:
            raise RemoteProtocolError(
                f"a share for round {share.round} of party {share.requester}, which is not open"
            )
        self._expect(gathering.shares, sender, share.round)
        self.shares_received += 1
        self._heard.add(sender)
        form = FORMATS[gathering.ask.what]
        self._add_share(gathering, form, form.words_from(share.words, self._count(gathering.ask)))

    def masked(self, sender: int, mask: Mask) -> None:
        """A sum of masks. Nobody asks for it, so it may come before its ask and opens the gathering."""
        tree = self._tree(mask.requester)[1]
        key = (mask.requester, mask.round, mask.start)
        own = mask.requester == self._me
        over = own or key[1:] <= self._last.get(mask.requester, (0, -1))
        if tree is None or (over and key not in self._open):
            raise RemoteProtocolError(
                f"a mask for round {mask.round} of party {mask.requester}, which is not open"
            )
        gathering = self._open.get(key)
        if gathering is None:
            if len(self._open) > CROWD * self._parties:
                self._refuse_flood(sum(sender in dict(g.early or ()) for g in self._open.values()))
            gathering = self._opened(*key)
        assert gathering.masks is not None
        self._expect(gathering.masks, sender, mask.round)
        if gathering.ask is None:
            gathering.early = [*(gathering.early or ()), (sender, mask)]
        else:
            self._add_mask_from(gathering, mask)

    def _refuse_flood(self, opened: int) -> None:
        if opened > CROWD:
            raise RemoteProtocolError(f"opened {opened} sums at once, which no run needs")

    def begin(self) -> None:
        """All keys are agreed: asks that came early are answered now."""
        self._begun = True
        self._answer_those_behind()

    def rows_of_round(self, number: int) -> Rows:
        """What the coordinator asked for in the round that it now pushes; earlier rounds are forgotten."""
        rows = self._answered.get(number)
        if rows is None:
            raise RemoteProtocolError(f"pushed round {number}, which it did not ask for")
        for earlier in [known for known in self._answered if known < number]:
            del self._answered[earlier]
        if not isinstance(rows, slice):
            del self._answered[number]
        return rows

    def _remember(self, number: int, rows: Rows) -> None:
        """The rows of a round until its push comes: in a tree later asks may overtake it."""
        if len(self._answered) >= REMEMBERED:
            del self._answered[min(self._answered)]
        self._answered[number] = rows

    def moved(self) -> None:
        """This party has applied a step or a snapshot: a synchronous job's asks that waited are answered."""
        if self._barrier:
            self.moves += 1
            self._answer_those_behind()

    def retreated(self) -> None:
        """This party has gone back: no ask, which may come by a faster way than the retreat, is answered before."""
        self.moves += 1
        self._answer_those_behind()

    def _answer_those_behind(self) -> None:
        if self._behind:
            behind, self._behind = self._behind, []
            for gathering in behind:
                self._answer_in_turn(gathering)

    def abandon(self, error: BaseException) -> None:
        """No sum of this party will be completed any more."""
        for promise in [g.promise for g in self._open.values() if g.promise is not None]:
            promise.fail(error)

    def asking(self) -> bool:
        """Whether a sum of this party's is under way."""
        return any(requester == self._me for requester, _, _ in self._open)

    def waits_for(self) -> Iterator[tuple[int, str]]:
        """Whose share or mask is missing in an open sum, and how many levels of parties it may wait for in turn."""
        for (requester, _, _), gathering in self._open.items():
            if gathering.ask is None:
                continue
            for masks, pile in ((False, gathering.shares), (True, gathering.masks)):
                for child in () if pile is None else pile.awaited:
                    joining = child not in self._heard
                    yield self._height(requester, child, masks) + joining, self._peers.names[child]

    def _height(self, requester: int, party: int, masks: bool) -> int:
        tree = self._aggregation.mask_tree if masks else self._aggregation.tree
        place = tree(self._parties, requester, party)
        children = place[1] if place is not None else ()
        return 1 + max((self._height(requester, child, masks) for child in children), default=0)

    def _tree(self, requester: int) -> tuple[Any, Any]:
        trees = self._trees.get(requester)
        if trees is None:
            q, me = self._parties, self._me
            trees = self._aggregation.tree(q, requester, me), self._aggregation.mask_tree(q, requester, me)
            if len(self._trees) > 64:
                self._trees.clear()
            self._trees[requester] = trees
        return trees

    def _shape(self, ask: Ask) -> tuple[int, ...]:
        if ask.what not in (SCORES, FROZEN):
            return (2,)
        count = len(ask.rows) // 4 or ask.stop - ask.start
        return (count,) if self._classes == 1 else (count, self._classes)

    def _count(self, ask: Ask) -> int:
        shape = self._shape(ask)
        return shape[0] if len(shape) == 1 else shape[0] * shape[1]

    def _opened(self, requester: int, number: int, start: int) -> Gathering:
        gathering = Gathering(*self._tree(requester), requester == self._me)
        self._open[requester, number, start] = gathering
        return gathering

    def _expect(self, pile: Pile, sender: int, number: int) -> None:
        if not pile.expects(sender):
            raise RemoteProtocolError(f"a share of round {number} that is not theirs, or a second one")

    def _begin(self, gathering: Gathering, ask: Ask) -> None:
        gathering.ask = ask
        if gathering.shares.awaited:
            self._peers.send_all(gathering.shares.awaited, ask)
        early, gathering.early = gathering.early, None
        for sender, mask in early or ():
            try:
                self._add_mask_from(gathering, mask)
            except RemoteProtocolError as error:
                self._peers.drop(sender, str(error))
        self._answer_in_turn(gathering)

    def _answer_in_turn(self, gathering: Gathering) -> None:
        """Synchronous barrier: an ask is answered once the steps it follows are taken."""
        ask = gathering.ask
        assert ask is not None
        if ask.after > self.moves or not self._begun:
            self._behind.append(gathering)
            return
        try:
            self._contribute(ask).then(partial(self._contributed, gathering))
        except Exception as error:
            self._failed(error)

    def _contributed(self, gathering: Gathering, values: Promise[Floats]) -> None:
        ask = gathering.ask
        assert ask is not None
        if self.abandoned:
            return
        form = FORMATS[ask.what]
        try:
            words = form.encode(values.result(), self._parties)
            if self._parties > 1 and ask.requester != self._me:
                request = Request(
                    requester=ask.requester,
                    incarnation=ask.incarnation,
                    round=ask.round,
                    what=ask.what,
                    shape=self._shape(ask),
                    rows=bytes(ask.rows) if len(ask.rows) else (ask.start, ask.stop),
                )
                words, mask = self._aggregation.blind(words, form, request, self._secrets)
                if mask is not None:
                    self._add_mask(gathering, form, mask.copy())
            self._add_share(gathering, form, words)
        except Exception as error:
            self._failed(error)

    def _add_share(self, gathering: Gathering, form: Format, words: Any) -> None:
        self._pile_up(gathering, gathering.shares, Share, form, words)

    def _add_mask(self, gathering: Gathering, form: Format, words: Any) -> None:
        assert gathering.masks is not None
        self._pile_up(gathering, gathering.masks, Mask, form, words)

    def _add_mask_from(self, gathering: Gathering, mask: Mask) -> None:
        assert gathering.ask is not None
        form = FORMATS[gathering.ask.what]
        self._add_mask(gathering, form, form.words_from(mask.words, self._count(gathering.ask)))

    def _pile_up(
        self, gathering: Gathering, pile: Pile, message: type[Share | Mask], form: Format, words: Any
    ) -> None:
        """Add words; what is complete goes up the tree, or is this party's total."""
        pile.add(form, words)
        ask = gathering.ask
        assert ask is not None
        if pile.missing:
            return
        if pile.parent is not None:
            total = form.bytes_of(pile.words)
            self._peers.send_all(
                (pile.parent,), message(ask.requester, ask.incarnation, ask.round, ask.start, total)
            )
        if gathering.complete:
            self._open.pop((ask.requester, ask.round, ask.start), None)
            if gathering.promise is not None:
                gathering.promise.set(None)
