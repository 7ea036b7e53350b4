"""Virtual time: the world in one thread, deterministic, with a clock that jumps when everybody waits.

Computing runs for real and is charged to the clock by its non-zeros; links deliver after latency, bytes over bandwidth
and jitter, in order. The same seed gives the same run, event for event.
"""

from __future__ import annotations

import contextlib
import heapq
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from colonnade.errors import ColonnadeError
from colonnade.runtime.host import TRAINING, Link, Listener, Promise
from colonnade.runtime.world import Fault, World, calibrated

T = TypeVar("T")
FRAME_PREFIX = 4
PATIENCE = 64
"""Time-outs a party may have one after the other with nothing coming of it."""


@contextlib.contextmanager
def first_interrupt(tell: Callable[[], None]) -> Iterator[None]:
    """In the main thread the first Ctrl-C is told, and the second one interrupts as usual."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        tell()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class DeadlockError(ColonnadeError):
    """Every party waits and nothing is in flight."""


class Clock:
    """An event loop of its own: what is due now in a queue, what is due later in a heap, in order."""

    def __init__(self) -> None:
        self.now = 0.0
        self._order = 0
        self._due: deque[tuple[int, Callable[..., None], Any]] = deque()
        self._later: list[tuple[float, int, Callable[..., None], Any]] = []
        self._watching: list[tuple[float, int, Callable[..., None], Any]] = []

    def at(self, time: float, callback: Callable[..., None], argument: Any) -> None:
        self._order += 1
        if time <= self.now:
            self._due.append((self._order, callback, argument))
        else:
            heapq.heappush(self._later, (time, self._order, callback, argument))

    def watch(self, time: float, callback: Callable[..., None], argument: Any) -> None:
        """Like `at`, for time-outs and observers: they keep no run alive."""
        self._order += 1
        heapq.heappush(self._watching, (time, self._order, callback, argument))

    def run(self, waiting: set[str]) -> None:
        """Call what is due, jump to what is next, as long as somebody waits."""
        due, later, watched = self._due, self._later, self._watching
        fruitless = 0
        while waiting:
            if due and not (later and later[0][0] <= self.now and later[0][1] < due[0][0]):
                _, callback, argument = due.popleft()
            elif later:
                if watched and watched[0][0] < later[0][0]:
                    self.now, _, callback, argument = heapq.heappop(watched)
                else:
                    self.now, _, callback, argument = heapq.heappop(later)
            elif watched and fruitless < PATIENCE * len(watched):
                self.now, _, callback, argument = heapq.heappop(watched)
                callback(argument)
                fruitless = 0 if due or later else fruitless + 1
                continue
            else:
                return
            callback(argument)


class Simulation:
    """The hosts of one simulated run, and what goes between them."""

    def __init__(self, world: World, parties: Sequence[str]) -> None:
        world.check(parties)
        self.world = world
        self.parties = tuple(parties)
        self.clock = Clock()
        self.cost = world.cost or calibrated()
        self.transcript: list[tuple[float, str, str, bytes]] | None = [] if world.record else None
        self.noise = np.random.Generator(np.random.PCG64([world.seed, 1]))
        self._waiting: set[str] = set()
        self.hosts = {name: SimulatedHost(self, name, position) for position, name in enumerate(parties)}
        for fault in world.faults:
            self.clock.watch(fault.at, self._strike, fault)

    def run(
        self, finished: Mapping[str, Promise[Any]], interrupted: Callable[[], None] = lambda: None
    ) -> None:
        """Run until every party that is alive has finished. Ctrl-C calls `interrupted`, as the next event."""
        hosts = self.hosts

        waiting = self._waiting = set(finished)
        for name, promise in finished.items():
            promise.then(lambda _, name=name: waiting.discard(name))  # type: ignore[misc]
        for name, host in hosts.items():
            if not host.alive:
                waiting.discard(name)
        with first_interrupt(lambda: self.clock.at(self.clock.now, lambda _: interrupted(), None)):
            self.clock.run(waiting)
        if waiting:
            raise DeadlockError(
                f"deadlock at {self.clock.now:.6g} s: {', '.join(sorted(waiting))} wait and nothing is in flight"
            )

    def latency(self, sender: str, receiver: str) -> float:
        known = self.world.latency
        return known.get((sender, receiver), 0.0) if isinstance(known, Mapping) else known

    def _strike(self, fault: Fault) -> None:
        host = self.hosts[fault.party]
        if fault.peer is not None:
            host.cut(fault.peer, "the link was cut")
            self.hosts[fault.peer].cut(fault.party, "the link was cut")
            return
        host.alive = False
        for link in host.links.values():
            link.open = False
        self._waiting.discard(fault.party)
        for peer in list(host.links):
            self.hosts[peer].cut(fault.party, "the party died")


class SimulatedLink:
    """Frames one way, in order."""

    __slots__ = (
        "_bandwidth",
        "_clock",
        "_free",
        "_last",
        "_latency",
        "_receiver",
        "_sender",
        "_simulation",
        "open",
    )

    def __init__(self, simulation: Simulation, sender: SimulatedHost, receiver: SimulatedHost) -> None:
        self._simulation = simulation
        self._clock = simulation.clock
        self._sender, self._receiver = sender, receiver
        self._latency = simulation.latency(sender.name, receiver.name)
        self._bandwidth = simulation.world.bandwidth
        self._free = self._last = 0.0
        self.open = True

    def write(self, frame: bytes) -> None:
        if not self.open:
            return
        now = arrival = self._clock.now
        if self._simulation.transcript is not None:
            self._simulation.transcript.append((now, self._sender.name, self._receiver.name, frame))
        if self._bandwidth is not None:
            self._free = arrival = max(now, self._free) + (len(frame) + FRAME_PREFIX) / self._bandwidth
        arrival += self._latency
        if self._simulation.world.jitter:
            arrival += self._simulation.world.jitter * float(self._simulation.noise.random())
        if arrival > now:
            arrival = self._last = max(arrival, self._last)
            self._receiver.in_flight(now, arrival)
        self._clock.at(arrival, self._deliver, frame)

    def _deliver(self, frame: bytes) -> None:
        if self.open:
            self._receiver.deliver(self._sender.name, frame)

    def close(self) -> None:
        """The peer learns of it once all that was written has arrived."""
        if self.open:
            self._clock.at(max(self._clock.now, self._last), self._closed, None)

    def _closed(self, _: None) -> None:
        if self.open:
            self.open = False
            self._receiver.cut(self._sender.name, "the party closed its link")


class SimulatedHost:
    """A party's world in virtual time."""

    notes_are_free = True

    def __init__(self, simulation: Simulation, name: str, position: int) -> None:
        self.name = name
        self.alive = True
        self.links: dict[str, SimulatedLink] = {}
        self.computing_seconds = 0.0
        self.communicating_seconds = 0.0
        self._simulation = simulation
        self._clock = simulation.clock
        self._per_call = simulation.cost.per_call
        self._per_nonzero = simulation.cost.per_nonzero_dense
        self._speed = simulation.world.speed(name, position)
        self._one_lane = simulation.world.lanes == "party"
        self._free: dict[int, float] = {}
        self._listener: Listener | None = None
        self._early: list[tuple[str, bytes]] = []
        self._arriving_until = 0.0
        self._random = np.random.Generator(np.random.PCG64([simulation.world.seed, 0, position]))

    def holds(self, sparse: bool) -> None:
        """Which kind of block this party computes on."""
        cost = self._simulation.cost
        self._per_nonzero = cost.per_nonzero_sparse if sparse else cost.per_nonzero_dense

    def now(self) -> float:
        return self._clock.now

    def sleep(self, seconds: float, background: bool = False) -> Promise[None]:
        promise: Promise[None] = Promise()
        schedule = self._clock.watch if background else self._clock.at
        schedule(self._clock.now + seconds, promise.set, None)
        return promise

    def entropy(self, count: int) -> bytes:
        return self._random.bytes(count)

    def sign(self, data: bytes) -> bytes:
        """Nobody can pretend to be somebody else in one thread: there is nothing to prove."""
        return b""

    def verify(self, peer: str, data: bytes, signature: bytes) -> bool:
        return signature == b""

    def limit(self, peer: str, size: int) -> None:
        """Frames of a simulation are in memory already."""

    def compute(
        self, work: Callable[[], T], nonzeros: int, lane: int = TRAINING, writes: bool = False
    ) -> Promise[T]:
        """Reading happens when the lane is free, writing when its time is over: weights exist from that instant."""
        seconds = self._per_call + nonzeros * self._per_nonzero
        if lane == TRAINING:
            seconds /= self._speed
            self.computing_seconds += seconds
        elif self._one_lane:
            lane = 0
        now = self._clock.now
        start = max(now, self._free.get(lane, 0.0))
        self._free[lane] = end = start + seconds
        promise: Promise[T] = Promise()
        if writes:
            self._clock.at(end, self._settle, (promise, work))
        elif start <= now:
            self._clock.at(end, promise.set, work())
        else:
            self._clock.at(start, self._begin, (promise, work, end))
        return promise

    def _settle(self, task: tuple[Promise[T], Callable[[], T]]) -> None:
        promise, work = task
        if self.alive:
            try:
                promise.set(work())
            except Exception as error:
                promise.fail(error)

    def _begin(self, task: tuple[Promise[T], Callable[[], T], float]) -> None:
        promise, work, end = task
        try:
            self._clock.at(end, promise.set, work())
        except Exception as error:
            promise.fail(error)

    def connect(self, peer: str) -> Promise[Link]:
        """Links open when first used, for both sides."""
        if peer not in self.links:
            other = self._simulation.hosts[peer]
            self.links[peer] = SimulatedLink(self._simulation, self, other)
            other.links[self.name] = SimulatedLink(self._simulation, other, self)
            if not (self.alive and other.alive):
                self._clock.at(self._clock.now, lambda _: self.cut(peer, "the party is not there"), None)
            else:
                self._clock.at(self._clock.now, self._opened, peer)
                self._clock.at(self._clock.now, other._opened, self.name)
        return Promise.of(self.links[peer])

    def _opened(self, peer: str) -> None:
        if self._listener is not None and self.alive:
            self._listener.opened(peer)

    def listen(self, listener: Listener) -> None:
        self._listener = listener
        early, self._early = self._early, []
        for peer, frame in early:
            listener.received(peer, frame)

    def deliver(self, peer: str, frame: bytes) -> None:
        if not self.alive:
            return
        if self._listener is None:
            self._early.append((peer, frame))
            return
        try:
            self._listener.received(peer, frame)
        except Exception as error:
            self._listener.failed(error)

    def in_flight(self, written: float, arrival: float) -> None:
        """Time during which something for this party is on its way, overlaps counted once."""
        if arrival > self._arriving_until:
            self.communicating_seconds += arrival - max(written, self._arriving_until)
            self._arriving_until = arrival

    def cut(self, peer: str, reason: str) -> None:
        link = self.links.get(peer)
        if link is not None and link.open:
            link.open = False
            if self._listener is not None and self.alive:
                self._listener.lost(peer, reason)
