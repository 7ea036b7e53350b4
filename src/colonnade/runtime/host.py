"""The world as a party sees it: a clock, a processor, links and entropy.

A party is made of coroutines and callbacks over `Promise`s. `spawn` drives a coroutine on promises alone, with no event
loop of its own, so the very same party runs in virtual time and over sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, Protocol, TypeVar, cast

T = TypeVar("T")

TRAINING = -1
"""The lane of a party's own training; lane r >= 0 serves the products that requester r asked for."""


class Promise(Generic[T]):
    """A value that is there, or will be. Awaiting one that is there does not suspend."""

    __slots__ = ("_error", "_value", "_waiting", "ready")

    def __init__(self) -> None:
        self.ready = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._waiting: list[Callable[[Promise[T]], None]] = []

    @classmethod
    def of(cls, value: T) -> Promise[T]:
        promise: Promise[T] = cls()
        promise.ready, promise._value = True, value
        return promise

    def set(self, value: T) -> None:
        if not self.ready:
            self.ready, self._value = True, value
            self._release()

    def fail(self, error: BaseException) -> None:
        if not self.ready:
            self.ready, self._error = True, error
            self._release()

    def _release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(self)

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def then(self, callback: Callable[[Promise[T]], None]) -> None:
        """Call back with this promise once it is settled: at once if it is."""
        if self.ready:
            callback(self)
        else:
            self._waiting.append(callback)

    def __await__(self) -> Generator[Promise[T], None, T]:
        if not self.ready:
            yield self
        return self.result()


def spawn(coroutine: Coroutine[Promise[Any], None, T], failed: Callable[[BaseException], None]) -> Promise[T]:
    """Run a coroutine as far as it goes, and on whenever what it awaits is settled.

    An exception settles the promise returned and is handed to `failed`, so that none is ever lost.
    """
    finished: Promise[T] = Promise()

    def advance(_: object = None) -> None:
        try:
            while (awaited := coroutine.send(None)).ready:
                pass
        except StopIteration as stop:
            finished.set(stop.value)
        except BaseException as error:
            finished.fail(error)
            failed(error)
        else:
            awaited.then(advance)

    advance()
    return finished


class Link(Protocol):
    """One direction to a peer, in order. What is written before the peer listens waits."""

    def write(self, frame: bytes) -> None: ...

    def close(self) -> None: ...


class Listener(Protocol):
    """What a host tells its party."""

    def opened(self, peer: str) -> None: ...

    def received(self, peer: str, frame: bytes | memoryview) -> None: ...

    def lost(self, peer: str, reason: str) -> None: ...

    def failed(self, error: BaseException) -> None: ...


class Host(Protocol):
    """What a party may use of the world. Only the simulated host draws its entropy from a seed."""

    name: str
    notes_are_free: bool
    """Whether looking at the weights takes none of this world's time."""

    @property
    def computing_seconds(self) -> float: ...

    @property
    def communicating_seconds(self) -> float: ...

    def now(self) -> float: ...

    def sleep(self, seconds: float, background: bool = False) -> Promise[None]:
        """`background`: a time-out or an observer, which does not keep a simulated world going."""
        ...

    def entropy(self, count: int) -> bytes: ...

    def compute(
        self, work: Callable[[], T], nonzeros: int, lane: int = TRAINING, writes: bool = False
    ) -> Promise[T]:
        """Run `work` over so many non-zeros. Work that `writes` weights never overlaps work that reads them."""
        ...

    def sign(self, data: bytes) -> bytes:
        """Sign with the identity that peers have pinned."""
        ...

    def verify(self, peer: str, data: bytes, signature: bytes) -> bool: ...

    def limit(self, peer: str, size: int) -> None:
        """The longest frame that this peer may send from now on."""
        ...

    def connect(self, peer: str) -> Promise[Link]: ...

    def listen(self, listener: Listener) -> None: ...
