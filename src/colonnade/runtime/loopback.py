"""All parties of a job in one process, over real links: the network without the machines."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from colonnade.runtime.eventloop import new_event_loop, report_failures
from colonnade.runtime.host import Promise
from colonnade.runtime.identity import ephemeral_identity
from colonnade.runtime.mesh import Address, bind
from colonnade.runtime.network import NetworkHost

R = TypeVar("R")
Starter = Callable[[NetworkHost], Promise[R]]

LOCAL = "127.0.0.1"


def run_loopback(
    starters: Mapping[str, Starter[R]],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] = new_event_loop,
) -> dict[str, R]:
    """Start each party on its host and run them until all have their result.

    The first promise that fails ends the run with its error. Ctrl-C is told to the parties, which then end
    with what they have; a second one stops them. Works below a running event loop, as in a notebook.
    """
    run = _Loopback(starters, loop_factory)
    thread = threading.Thread(target=run.main, name="colonnade-loopback")
    thread.start()
    patient = True
    while not run.over.is_set():
        try:
            run.over.wait()  # a join that Ctrl-C interrupts takes the thread for dead
        except KeyboardInterrupt:
            run.interrupt() if patient else run.stop(KeyboardInterrupt())
            patient = False
    thread.join()
    if run.error is not None:
        raise run.error
    return {name: run.results[name] for name in starters}


class _Loopback(Generic[R]):
    """One event loop and the hosts on it; `main` runs in a thread of its own."""

    def __init__(
        self,
        starters: Mapping[str, Starter[R]],
        loop_factory: Callable[[], asyncio.AbstractEventLoop],
    ) -> None:
        self.results: dict[str, R] = {}
        self.error: BaseException | None = None
        self.over = threading.Event()
        self._starters = starters
        self._loop = loop_factory()
        self._hosts: list[NetworkHost] = []
        self._finished = asyncio.Event()

    def main(self) -> None:
        try:
            self._loop.run_until_complete(self._run())
        except BaseException as error:
            self.error = self.error or error
        finally:
            self._loop.close()
            self.over.set()

    def interrupt(self) -> None:
        def tell() -> None:
            for host in self._hosts:
                host.interrupt()

        self._soon(tell)

    def stop(self, error: BaseException) -> None:
        self._soon(lambda: self._end(error))

    def _soon(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop may have been closed meanwhile: the run is over
            self._loop.call_soon_threadsafe(call)

    async def _run(self) -> None:
        report_failures(self._loop, self._end)
        servers = {name: bind((LOCAL, 0)) for name in self._starters}
        try:
            addresses: dict[str, Address] = {n: s.getsockname()[:2] for n, s in servers.items()}
            identities = {name: ephemeral_identity(name) for name in self._starters}
            certificates = {name: identity.certificate_pem for name, identity in identities.items()}
            names = tuple(self._starters)
            for name, starter in self._starters.items():
                host = NetworkHost(
                    name,
                    names,
                    identities[name],
                    certificates,
                    addresses,
                    self._loop,
                    server=servers[name],
                )
                self._hosts.append(host)
                starter(host).then(lambda promise, name=name: self._settled(name, promise))  # type: ignore[misc]
            await self._finished.wait()
        finally:
            await asyncio.gather(*(host.close() for host in self._hosts))
            for server in servers.values():
                server.close()

    def _settled(self, name: str, promise: Promise[R]) -> None:
        try:
            self.results[name] = promise.result()
        except BaseException as error:
            self._end(error)
        if len(self.results) == len(self._starters):
            self._finished.set()

    def _end(self, error: BaseException) -> None:
        self.error = self.error or error
        self._finished.set()
