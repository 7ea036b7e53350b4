"""How a run goes, while it goes: a table on a terminal, plain lines elsewhere, JSON for machines."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from rich.console import Group

Event = dict[str, Any]
SHARES = ("computing", "communicating", "waiting")


class Progress(Protocol):
    """Told of each party's events; closed when the run has ended."""

    def watch(self, party: str, event: Event) -> None: ...

    def close(self) -> None: ...


def progress(coordinator: str, json: bool) -> Progress:
    if json:
        return JsonProgress()
    return LiveProgress(coordinator) if sys.stdout.isatty() else PlainProgress(coordinator)


class JsonProgress:
    """One JSON object an event."""

    def watch(self, party: str, event: Event) -> None:
        emit({"event": "progress", "party": party, **event})

    def close(self) -> None:
        pass


def emit(event: Event) -> None:
    print(msgspec.json.encode(event, enc_hook=str).decode(), flush=True)


class PlainProgress:
    """The coordinator's view, a line a second at most."""

    def __init__(
        self, coordinator: str, every: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._coordinator = coordinator
        self._every = every
        self._clock = clock
        self._next = clock() + every

    def watch(self, party: str, event: Event) -> None:
        if party == self._coordinator and (self._clock() >= self._next or "stage" in event):
            self._next = self._clock() + self._every
            print(summary(event), flush=True)

    def close(self) -> None:
        pass


def summary(event: Event) -> str:
    """Rounds, the loss on recent batches, objective and certificate, as far as they are known."""
    if "stage" in event:
        return str(event["stage"])
    known = [f"{event.get('rounds', 0):,} rounds"]
    if event.get("sampled") is not None:
        known.append(f"loss of recent batches {event['sampled']:.4f}")
    if event.get("objective") is not None:
        known.append(f"objective about {event['objective']:.6f}")
    if event.get("certificate") is not None:
        known.append(f"certified gap {event['certificate']:.2e}")
    return ", ".join(known)


class LiveProgress:
    """Redrawn in place: the run in a line, below it each party's share of time."""

    def __init__(self, coordinator: str) -> None:
        from rich.live import Live

        self._coordinator = coordinator
        self._events: dict[str, Event] = {}
        self._live = Live(self._shown(), refresh_per_second=8, transient=True)
        self._live.start()

    def watch(self, party: str, event: Event) -> None:
        self._events[party] = self._events.get(party, {}) | event
        self._live.update(self._shown())

    def close(self) -> None:
        self._live.stop()

    def _shown(self) -> Group:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None)
        table.add_column("party")
        for name in SHARES:
            table.add_column(name, justify="right")
        for party, event in self._events.items():
            spent = [float(event.get(name) or 0.0) for name in SHARES]
            total = sum(spent) or 1.0
            table.add_row(Text(party), *(f"{part / total:.0%}" for part in spent))
        return Group(Text(summary(self._events.get(self._coordinator, {}))), table)
