"""All parties of a job on this machine, each in a process of its own, over TLS."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from numpy.typing import NDArray

from colonnade.errors import ConfigurationError
from colonnade.job import Plan
from colonnade.runtime.fork_server import fork_server
from colonnade.runtime.identity import ephemeral_identity
from colonnade.runtime.mesh import Address, bind
from colonnade.runtime.tasks import (
    Failed,
    Finished,
    Interrupt,
    Leave,
    Order,
    Task,
    framed,
    pack,
    read_news,
)
from colonnade.runtime.worker import DENSE, SPARSE
from colonnade.wire.codec import LONGEST_FRAME, FrameReader

if TYPE_CHECKING:
    from scipy.sparse import csr_array

ENTRY = "colonnade.algorithms.party:start"
LOCAL = "127.0.0.1"
GRACE_SECONDS = 10.0
"""What parties get, beyond the job's time-out, to end when another has ended or died, or the user asks."""

GOODBYE_SECONDS = 5.0

Array = NDArray[Any]
Watch = Callable[[str, dict[str, Any]], None]


class Collected(NamedTuple):
    """What came back: a result of each party that has one, why of each that has none."""

    results: dict[str, bytes]
    died: dict[str, str]


def run_processes(
    plan: Plan,
    blocks: Mapping[str, Array | csr_array],
    labels: Mapping[str, Array | None],
    ids: Mapping[str, bytes] | None = None,
    watch: Watch | None = None,
    *,
    entry: str = ENTRY,
) -> Collected:
    """Run `entry` for each party in a process of its own until all have ended.

    `watch` gets what a party says under way. Ctrl-C is told to the parties, which end with what they have;
    a second one kills them. Nothing is left running and no file is left behind, however this ends.
    """
    if not hasattr(os, "fork"):  # pragma: no cover - Windows
        raise ConfigurationError('party processes need Linux or macOS: use world = "loopback" here')
    with _Run(plan.job.timeout + GRACE_SECONDS, watch) as run, _interrupts() as wake:
        run.start(plan, blocks, labels, ids or {}, entry)
        return run.collect(wake)


class _Child:
    """A party's process as the launcher sees it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.control, self.far_control = socket.socketpair()
        self.lifeline, self.far_lifeline = socket.socketpair()
        self.reader = FrameReader(LONGEST_FRAME, name)
        self.result: bytes | None = None
        self.reason: str | None = None
        self.status = ""
        self.open = {self.control, self.lifeline}

    @property
    def over(self) -> bool:
        return not self.open

    def tell(self, order: Order) -> None:
        with contextlib.suppress(OSError):  # it has died: its end will be read
            self.control.sendall(framed(order))

    def kill(self) -> None:
        with contextlib.suppress(OSError):
            self.lifeline.shutdown(socket.SHUT_WR)

    def why(self) -> str:
        if self.reason is not None:
            return self.reason
        if not self.status:
            return f"the process of {self.name} ended with the server that forks them"
        code = int(self.status)
        if code >= 0:
            return f"the process of {self.name} ended with status {code} and no result"
        return f"the process of {self.name} was killed by {signal.Signals(-code).name}"

    def close(self) -> None:
        for end in (self.control, self.far_control, self.lifeline, self.far_lifeline):
            end.close()


class _Run:
    """The processes of one job. Leaving the context kills what still runs."""

    def __init__(self, patience: float, watch: Watch | None) -> None:
        self._patience = patience
        self._watch = watch
        self._children: dict[str, _Child] = {}
        self._selector = selectors.DefaultSelector()
        self._deadline = float("inf")
        self._leaving = False
        self._interrupted = False

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._children.values():
            child.kill()
        self._watch = None
        deadline = time.monotonic() + GOODBYE_SECONDS
        while not self._all_over() and time.monotonic() < deadline:
            self._read(0.1)
        for child in self._children.values():
            child.close()
        self._selector.close()

    def start(
        self,
        plan: Plan,
        blocks: Mapping[str, Array | csr_array],
        labels: Mapping[str, Array | None],
        ids: Mapping[str, bytes],
        entry: str,
    ) -> None:
        server = fork_server()
        identities = {name: ephemeral_identity(name) for name in plan.parties}
        certificates = {name: identity.certificate_pem for name, identity in identities.items()}
        with contextlib.ExitStack() as stack:
            sockets = {name: stack.enter_context(bind((LOCAL, 0))) for name in plan.parties}
            addresses: dict[str, Address] = {name: s.getsockname()[:2] for name, s in sockets.items()}
            for name in plan.parties:
                file, sections = pack(blocks[name], labels.get(name), ids.get(name, b""))
                with file:
                    child = self._add(name)
                    kind = DENSE if "dense" in sections else SPARSE
                    server.fork(kind, child.far_control, child.far_lifeline, sockets[name], file.fileno())
                child.far_control.close()
                child.far_lifeline.close()
                child.tell(
                    Task(
                        entry=entry,
                        name=name,
                        plan=plan,
                        certificate=identities[name].certificate_pem,
                        private_key=identities[name].private_key_pem,
                        certificates=certificates,
                        addresses=addresses,
                        shape=blocks[name].shape,
                        sections=sections,
                    )
                )

    def _add(self, name: str) -> _Child:
        child = self._children[name] = _Child(name)
        self._selector.register(child.control, selectors.EVENT_READ, (child, self._hear))
        self._selector.register(child.lifeline, selectors.EVENT_READ, (child, self._note_status))
        return child

    def collect(self, wake: socket.socket | None) -> Collected:
        if wake is not None:
            self._selector.register(wake, selectors.EVENT_READ, (wake, self._interrupt))
        while not self._all_over():
            self._read(min(1.0, max(0.0, self._deadline - time.monotonic())))
            self._judge()
        return Collected(
            {name: child.result for name, child in self._children.items() if child.result is not None},
            {name: child.why() for name, child in self._children.items() if child.result is None},
        )

    def _judge(self) -> None:
        """Who has ended, what follows for the others, and who gets no more time."""
        running = [child for child in self._children.values() if child.result is None and not child.over]
        gone = [child for child in self._children.values() if child.result is None and child.over]
        ended = any(child.result is not None for child in self._children.values())
        if not running and not self._leaving:
            self._leaving = True
            self._deadline = time.monotonic() + GOODBYE_SECONDS
            for child in self._children.values():
                child.tell(Leave())
        elif gone or ended or self._interrupted:
            self._deadline = min(self._deadline, time.monotonic() + self._patience)
        if time.monotonic() >= self._deadline:
            for child in running:
                child.reason = child.reason or f"{child.name} did not end in time and was killed"
            for child in self._children.values():
                child.kill()
            self._deadline = float("inf")

    def _read(self, timeout: float) -> None:
        for key, _ in self._selector.select(timeout):
            subject, react = key.data
            react(subject)

    def _hear(self, child: _Child) -> None:
        data = self._receive(child, child.control)
        for frame in child.reader.feed(data):
            news = read_news(frame)
            if isinstance(news, Finished):
                child.result = news.payload
            elif isinstance(news, Failed):
                child.reason = news.reason
                sys.stderr.write(news.traceback)
            elif self._watch is not None:
                self._watch(child.name, news.event)

    def _note_status(self, child: _Child) -> None:
        child.status += self._receive(child, child.lifeline).decode("ascii")

    def _receive(self, child: _Child, end: socket.socket) -> bytes:
        try:
            data = end.recv(2**20)
        except ConnectionError:
            data = b""
        if not data:
            self._selector.unregister(end)
            child.open.discard(end)
        return data

    def _interrupt(self, wake: socket.socket) -> None:
        """Ctrl-C: the parties end with what they have; the second time nobody is waited for."""
        wake.recv(1)
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
        for child in self._children.values():
            child.tell(Interrupt())

    def _all_over(self) -> bool:
        return all(child.over for child in self._children.values())


@contextlib.contextmanager
def _interrupts() -> Iterator[socket.socket | None]:
    """A socket that can be read once for each Ctrl-C; None where Ctrl-C is somebody else's business."""
    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield None
        return
    wake, wakener = socket.socketpair()
    with wake, wakener:
        signal.signal(signal.SIGINT, lambda *_: wakener.send(b"c"))
        try:
            yield wake
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
