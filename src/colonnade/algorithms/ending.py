"""How a run ends. The coordinator decides; `Stop` says why and which weights are the result.

Everybody finishes the round it is in, acknowledges, and answers until `Bye`. A party that cannot go on says `Halt`.
"""

from __future__ import annotations

from colonnade.algorithms.peers import Peers
from colonnade.errors import ColonnadeError, OverflowRefusedError, RefusedError, RemoteProtocolError
from colonnade.runtime.host import Promise
from colonnade.wire.messages import Bye, Halt, Stop, Stopped

GRACEFUL = ("converged", "budget", "interrupted")
"""Outcomes before which every party finishes its round. The others break off at once."""

HALTS = ("refused", "interrupted", "peer lost")
"""What a party that cannot go on may give as the outcome."""


class EndedError(ColonnadeError):
    """The run has ended while this party waited for a sum."""


class Ending:
    """One party's part in the end of the run."""

    def __init__(self, peers: Peers, coordinator: int, parties: int) -> None:
        self.outcome = ""
        self.detail = ""
        self.keep: int | None = None
        self.told: Promise[None] = Promise()
        self.broken_off: Promise[None] = Promise()
        """Kept as soon as the run cannot be ended in good order."""
        self.begun = False
        """Whether all links are there, so that the run can be ended in good order."""
        self.last_good = 0
        """The coordinator's last pass whose weights are known to be good; 0 is the start."""
        self._peers = peers
        self._me = peers.me
        self._coordinator = coordinator
        self._missing = set(range(parties)) - {peers.me}
        self._halted = False
        """Whether this party has told the coordinator that it cannot go on: it may say nothing more there."""
        self._acknowledged: Promise[None] = Promise()
        self._bye: Promise[None] = Promise()

    @property
    def stopping(self) -> bool:
        return self.told.ready or self.broken_off.ready

    def stop(self, outcome: str, detail: str, keep: int | None = None) -> None:
        """The coordinator ends the run, for everybody."""
        if not self.stopping:
            self._decide(outcome, detail, keep)
            self._peers.send_all(sorted(self._missing), Stop(outcome, detail[:2_000], keep))
            self._acknowledge()

    def stopped(self, sender: int, message: Stop) -> None:
        """The coordinator says so."""
        if not self.stopping:
            self._decide(message.outcome, message.detail, message.keep)

    def acknowledged(self, sender: int, message: Stopped) -> None:
        self._missing.discard(sender)
        self._acknowledge()

    def bye(self, sender: int, message: Bye) -> None:
        self._bye.set(None)

    async def leave(self) -> None:
        """This party asks no more; it answers until everybody asks no more."""
        if self.broken_off.ready or self._halted:
            return
        if self._me == self._coordinator:
            await self._acknowledged
            if not self.broken_off.ready:
                self._peers.send_all([p for p in self._peers.connected() if p not in self._missing], Bye())
        else:
            self._peers.send_all((self._coordinator,), Stopped())
            await self._bye

    def waits_for(self) -> list[tuple[int, str]]:
        """Who must speak before this party can leave, and how many time-outs it may take."""
        names = self._peers.names
        if self._me == self._coordinator:
            return [(1, names[p]) for p in self._missing] if self.stopping else []
        return [(2, names[self._coordinator])] if self.stopping or self._halted else []

    def halted(self, sender: int, message: Halt) -> None:
        """Somebody cannot go on. Who refuses still hears which weights are the result."""
        if message.outcome not in HALTS:
            raise RemoteProtocolError(f"halted with an outcome that is none: {message.outcome[:40]!r}")
        if self.begun and self._me == self._coordinator and message.outcome in ("refused", "interrupted"):
            keep = self.last_good if message.outcome == "refused" else None
            self.stop(message.outcome, message.detail, keep)
            self._missing.discard(sender)
            self._acknowledge()
            if message.outcome == "interrupted":
                self.break_off(message.outcome, message.detail)
        else:
            self.break_off(message.outcome, message.detail)

    def refuse(self, detail: str) -> None:
        """This party must not go on; the coordinator says which weights are the result."""
        if self._halted:
            return
        if not self.begun or (self.stopping and self._me != self._coordinator):
            self.break_off("refused", detail)
        elif self._me == self._coordinator:
            self.stop("refused", detail, self.last_good)
        else:
            self._halted = True
            self._peers.halt(self._coordinator, Halt("refused", detail[:2_000]))

    def interrupt(self) -> None:
        """Ctrl-C: what was reached is kept."""
        detail = f"interrupted at {self._peers.names[self._me]}"
        if self._me == self._coordinator and self.begun:
            self.stop("interrupted", detail)
        else:
            self.break_off("interrupted", detail)

    def lost(self, peer: str, reason: str) -> None:
        """A party or its link is gone: without it no total can be formed."""
        position = self._peers.names.index(peer)
        if self._bye.ready or self.broken_off.ready:
            return
        if self.stopping and position not in self._missing and self._me == self._coordinator:
            return
        if self.stopping and self._me != self._coordinator and position != self._coordinator:
            return
        self.break_off("peer lost", f"peer lost: {peer} ({reason}); start the run again once it is back")

    def break_off(self, outcome: str, detail: str) -> None:
        """The run ends here, for everybody that can still hear."""
        if self.broken_off.ready:
            return
        if not self.stopping:
            self.outcome, self.detail = outcome, detail
        self._peers.halt_all(Halt(outcome, detail[:2_000]))
        self.broken_off.set(None)
        self.told.set(None)
        self._acknowledged.set(None)
        self._bye.set(None)

    def failed(self, error: BaseException) -> None:
        """An error in this party, which no one awaits, ends the run with its reason."""
        name = self._peers.names[self._me]
        if isinstance(error, EndedError):
            return
        if isinstance(error, RefusedError):
            self.refuse(f"{name}: {error}" if isinstance(error, OverflowRefusedError) else str(error))
        elif isinstance(error, KeyboardInterrupt):
            self.interrupt()
        else:
            self.break_off("refused", f"{name} failed: {type(error).__name__}: {error}")

    def _decide(self, outcome: str, detail: str, keep: int | None) -> None:
        self.outcome, self.detail, self.keep = outcome, detail, keep
        self.told.set(None)

    def _acknowledge(self) -> None:
        if self.stopping and not self._missing:
            self._acknowledged.set(None)
