"""`python -m colonnade.runtime.worker`: a preloaded server that forks one process a party.

It never imports the user's script. It ends, and its children with it, when the process that started it ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import selectors
import signal
import socket
import sys
from collections.abc import Sequence
from typing import NoReturn

PRELOADED = (
    "uvloop",
    "cryptography.x509",
    "cryptography.hazmat.primitives.serialization",
    "cryptography.hazmat.primitives.asymmetric.x25519",
    "cryptography.hazmat.primitives.kdf.hkdf",
    "colonnade.runtime.party_process",
    "colonnade.core.blocks",
    "colonnade.algorithms.party",
    "colonnade.algorithms.result",
)
FOR_SPARSE_BLOCKS = ("scipy.sparse", "colonnade.core.kernels")
"""Half a second of numba that dense blocks do without."""

DENSE, SPARSE = b"d", b"s"
FORK_DESCRIPTORS = 4
"""What comes with each request: control socket, lifeline, listening socket, file of arrays."""

PARENT_CHECK_SECONDS = 1.0
PR_SET_PDEATHSIG = 1


class ForkServer:
    """DENSE or SPARSE with four descriptors asks for a child. A lifeline that closes kills its child; a child that
    ends is reported on its lifeline: the exit status, or minus the signal."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._parent = os.getppid()
        self._lifelines: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._selector.register(channel, selectors.EVENT_READ)
        self._wake, wakener = socket.socketpair()
        for end in (self._wake, wakener):
            end.setblocking(False)
        self._wakener = wakener
        self._selector.register(self._wake, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakener.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Until the parent has gone; its end of the channel may live on in forks of it, so look twice."""
        alive = True
        while alive and os.getppid() == self._parent:
            for key, _ in self._selector.select(PARENT_CHECK_SECONDS):
                if key.fileobj is self._channel:
                    alive = self._fork()
                elif key.fileobj is self._wake:
                    self._reap()
                else:
                    self._kill(key.data)
        for pid in self._lifelines:
            os.kill(pid, signal.SIGKILL)

    def _fork(self) -> bool:
        try:
            request, descriptors, _, _ = socket.recv_fds(self._channel, 1, FORK_DESCRIPTORS)
        except ConnectionError:
            return False
        if not request:
            return False
        if request == SPARSE:
            preload(FOR_SPARSE_BLOCKS)
        control, lifeline, server, arrays = descriptors
        server_pid = os.getpid()
        pid = os.fork()
        if pid == 0:
            os.close(lifeline)
            self._become_party(server_pid, control, server, arrays)
        for descriptor in (control, server, arrays):
            os.close(descriptor)
        self._lifelines[pid] = socket.socket(fileno=lifeline)
        self._selector.register(self._lifelines[pid], selectors.EVENT_READ, pid)
        return True

    def _become_party(self, server_pid: int, control: int, server: int, arrays: int) -> NoReturn:
        status = 1
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for inherited in (self._channel, self._wake, self._wakener, *self._lifelines.values()):
                inherited.close()
            die_with_parent(server_pid)
            from colonnade.runtime.party_process import main

            status = main(socket.socket(fileno=control), socket.socket(fileno=server), arrays)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(status)

    def _reap(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self._report(pid, os.waitstatus_to_exitcode(status))

    def _report(self, pid: int, code: int) -> None:
        lifeline = self._lifelines.pop(pid)
        with contextlib.suppress(KeyError):  # it is unregistered when the launcher has asked for the end
            self._selector.unregister(lifeline)
        with contextlib.suppress(OSError):
            lifeline.sendall(str(code).encode("ascii"))
        lifeline.close()

    def _kill(self, pid: int) -> None:
        self._selector.unregister(self._lifelines[pid])
        os.kill(pid, signal.SIGKILL)


def die_with_parent(parent: int) -> None:
    """Linux kills this process when its parent ends; elsewhere the end of the control socket tells."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def preload(modules: Sequence[str]) -> None:
    """Import what the children need; their collector then leaves it alone, so that it stays shared."""
    for module in modules:
        with contextlib.suppress(ModuleNotFoundError):  # uvloop is not everywhere
            importlib.import_module(module)
    gc.freeze()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    preload(PRELOADED)
    ForkServer(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == "__main__":
    main()
