"""The launcher's side of `colonnade.runtime.worker`: one server a process, started when first needed."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import threading

from colonnade.errors import ColonnadeError

GOODBYE_SECONDS = 5.0
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class ForkServer:
    """The preloaded process that forks parties; it ends when its channel closes."""

    def __init__(self) -> None:
        self._channel, far = socket.socketpair()
        with far:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "colonnade.runtime.worker", str(far.fileno())],
                pass_fds=[far.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=2,
                env=os.environ | ONE_THREAD | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                start_new_session=True,  # a Ctrl-C of the terminal reaches the launcher alone
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def fork(self, kind: bytes, *ends: socket.socket | int) -> None:
        descriptors = [end if isinstance(end, int) else end.fileno() for end in ends]
        try:
            socket.send_fds(self._channel, [kind], descriptors)
        except OSError as error:
            raise ColonnadeError(
                f"no party process can be started ({error.strerror or error}): see the messages above"
            ) from None

    def close(self) -> None:
        self._channel.close()
        try:
            self._process.wait(GOODBYE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_servers: dict[int, ForkServer] = {}
_starting = threading.Lock()


def fork_server() -> ForkServer:
    """This process's fork server, started when first needed; a fork of this process starts its own."""
    with _starting:
        mine = os.getpid()
        known = _servers.get(mine)
        if known is not None and known.alive:
            return known
        if known is not None:
            known.close()
        server = _servers[mine] = ForkServer()
        atexit.register(_close_server, mine)
        return server


def _close_server(owner: int) -> None:
    if owner == os.getpid() and owner in _servers:
        _servers.pop(owner).close()
