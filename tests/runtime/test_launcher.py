"""Parties as processes of this machine: what reaches them, how they end, and that nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
from scipy.sparse import csr_array

from colonnade.errors import ColonnadeError, ConfigurationError
from colonnade.job import Job, plan
from colonnade.runtime import launcher
from colonnade.runtime.fork_server import fork_server
from colonnade.runtime.launcher import run_processes

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="party processes need fork")

ROWS = 20
NAMES = ("bank", "shop", "club")


@pytest.fixture(autouse=True)
def short_patience(monkeypatch):
    monkeypatch.setattr(launcher, "GRACE_SECONDS", 0.3)
    monkeypatch.setattr(launcher, "GOODBYE_SECONDS", 2.0)


@pytest.fixture(autouse=True)
def nothing_is_left():
    """No open descriptor, no file and no process but the fork server, whatever a test did."""
    fork_server()
    files = set(os.listdir(tempfile.gettempdir()))
    before = len(os.listdir("/proc/self/fd"))
    yield
    assert len(os.listdir("/proc/self/fd")) == before
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - files if "colonnade" in name]
    assert children(fork_server().pid) == []


def children(pid):
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()]


def run(entry, blocks=None, labels=None, ids=None, watch=None, names=NAMES):
    agreed = plan(Job(batch_size=2, timeout=0.2), names, ROWS, 2)
    blocks = blocks or {name: np.ones((ROWS, 2)) for name in names}
    labels = labels or dict.fromkeys(names)
    return run_processes(agreed, blocks, labels, ids, watch, entry=f"process_parties:{entry}")


class Watcher:
    """Does something once, when so many parties have said their process id."""

    def __init__(self, parties, act):
        self.pids = {}
        self._parties, self._act = parties, act

    def __call__(self, name, event):
        self.pids[name] = event["pid"]
        if len(self.pids) == self._parties:
            self._act(self.pids)


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this has not happened in time"
        time.sleep(0.01)


# what reaches a party


def test_each_process_gets_its_own_block_labels_and_ids(monkeypatch):
    monkeypatch.setattr(
        launcher, "GRACE_SECONDS", 30.0
    )  # the bank ends before there are kernels for the shop
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((ROWS, 4))
    blocks = {
        "bank": dense,
        "shop": csr_array(np.where(dense > 0, dense, 0.0)),
        "club": np.asfortranarray(dense.astype(np.float32)),
        "fund": csr_array((ROWS, 3)),
    }
    labels = {"bank": np.where(dense[:, 0] > 0, 1.0, -1.0), "club": np.arange(ROWS)}
    ids = {"bank": b"ids of the bank"}
    events = []
    collected = run("describe", blocks, labels, ids, lambda *seen: events.append(seen), tuple(blocks))
    assert collected.died == {}
    seen = {name: msgspec.msgpack.decode(payload) for name, payload in collected.results.items()}
    for name, block in blocks.items():
        assert seen[name]["shape"] == list(block.shape)
        np.testing.assert_allclose(seen[name]["product"], block @ np.arange(1.0, block.shape[1] + 1))
        expected = labels.get(name)
        assert seen[name]["labels"] == (None if expected is None else expected.tolist())
        assert seen[name]["writable"]
        assert seen[name]["ids"] == ids.get(name, b"")
        assert seen[name]["parties"] == list(blocks)
    assert sorted(name for name, _ in events) == sorted(blocks)
    assert all(event == {"pid": seen[name]["pid"], "number": 0.5} for name, event in events)


def test_processes_are_separate_have_one_blas_thread_and_know_no_script():
    seen = [msgspec.msgpack.decode(payload) for payload in run("describe").results.values()]
    assert len({one["pid"] for one in seen} | {os.getpid()}) == 1 + len(NAMES)
    assert {one["threads"] for one in seen} == {"1"}
    assert {one["main"] for one in seen} == {"worker.py"}


def test_a_process_holds_nothing_of_its_siblings():
    """Sockets of its own and the event loop's; no file but (deleted) arrays."""
    counts = set()
    for payload in run("describe").results.values():
        files = msgspec.msgpack.decode(payload)["files"]
        counts.add(len(files))
        assert not [
            path for path in files if path.startswith(tempfile.gettempdir()) and "deleted" not in path
        ]
    assert len(counts) == 1


def test_parties_talk_over_their_links():
    frames = 9
    collected = run("echo")
    assert collected.died == {}
    assert collected.results["bank"] == str(frames * 2).encode()
    assert collected.results["shop"] == collected.results["club"] == str(frames + 1).encode()


def test_one_party_alone():
    assert list(run("describe", names=("bank",)).results) == ["bank"]


def test_below_a_running_event_loop_and_from_threads():
    async def notebook():
        return run("echo")

    assert asyncio.run(notebook()).died == {}
    results = []
    threads = [threading.Thread(target=lambda: results.append(run("echo"))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert [collected.died for collected in results] == [{}, {}]


def test_the_fork_server_is_used_again_and_replaced_when_it_has_gone():
    first = fork_server()
    assert fork_server() is first
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: not first.alive)
    assert run("echo").died == {}
    assert fork_server() is not first


# how parties end


@pytest.mark.parametrize(
    "entry, reason",
    [
        ("data_error", "column 3 is empty: drop it"),
        ("fails_later", "no rows are left"),
        ("bug", "ZeroDivisionError: a bug"),
        ("nothing", "entry = 'process_parties:nothing' cannot be imported"),
    ],
)
def test_a_party_that_fails_gives_its_reason(entry, reason, capsys):
    collected = run(entry)
    assert collected.results == {}
    assert set(collected.died) == set(NAMES)
    assert all(why.startswith(reason) for why in collected.died.values())
    assert ("Traceback" in capsys.readouterr().err) == (entry == "bug"), "a traceback means a bug"


def test_a_killed_party_is_named_and_the_others_end():
    watcher = Watcher(3, lambda pids: os.kill(pids["shop"], signal.SIGKILL))
    collected = run("stay", watch=watcher)
    assert collected.died == {"shop": "the process of shop was killed by SIGKILL"}
    assert collected.results == {"bank": b"lost shop", "club": b"lost shop"}
    assert all(gone(pid) for pid in watcher.pids.values())


def test_who_does_not_end_after_another_has_died_is_killed():
    watcher = Watcher(2, lambda pids: None)
    started = time.monotonic()
    collected = run("one_dies", watch=watcher)
    assert time.monotonic() - started < 5
    assert collected.results == {}
    assert collected.died == {
        "bank": "bank did not end in time and was killed",
        "shop": "shop did not end in time and was killed",
        "club": "the process of club ended with status 7 and no result",
    }
    assert all(gone(pid) for pid in watcher.pids.values())


def test_who_hangs_when_the_others_have_ended_is_killed():
    started = time.monotonic()
    collected = run("one_hangs")
    assert time.monotonic() - started < 5
    assert collected.results == {"bank": b"ended", "shop": b"ended"}
    assert collected.died == {"club": "club did not end in time and was killed"}


def test_ctrl_c_before_the_parties_are_there_is_not_lost(monkeypatch):
    def pressed():
        os.kill(os.getpid(), signal.SIGINT)
        return fork_server()

    monkeypatch.setattr(launcher, "fork_server", pressed)
    collected = run("stay")
    assert collected.results == dict.fromkeys(NAMES, b"KeyboardInterrupt")


def test_ctrl_c_lets_the_parties_end_with_what_they_have():
    watcher = Watcher(3, lambda pids: os.kill(os.getpid(), signal.SIGINT))
    collected = run("stay", watch=watcher)
    assert set(collected.results) == set(NAMES)
    assert collected.results["bank"] == b"KeyboardInterrupt"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_ctrl_c_kills():
    def press(pids):
        os.kill(os.getpid(), signal.SIGINT)
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()

    watcher = Watcher(3, press)
    with pytest.raises(KeyboardInterrupt):
        run("stubborn", watch=watcher)
    assert all(gone(pid) for pid in watcher.pids.values())


def test_whoever_ignores_ctrl_c_is_killed():
    collected = run("stubborn", watch=Watcher(3, lambda pids: os.kill(os.getpid(), signal.SIGINT)))
    assert set(collected.died) == set(NAMES)


def test_an_exception_in_watch_ends_everything():
    def act(pids):
        raise ZeroDivisionError

    watcher = Watcher(3, act)
    with pytest.raises(ZeroDivisionError):
        run("stay", watch=watcher)
    assert all(gone(pid) for pid in watcher.pids.values())


def test_the_end_of_the_fork_server_ends_its_parties():
    server = fork_server().pid
    watcher = Watcher(3, lambda pids: os.kill(server, signal.SIGKILL))
    collected = run("stay", watch=watcher)
    assert set(collected.died) == set(NAMES)
    assert "ended with the server that forks them" in collected.died["bank"]
    wait_until(lambda: all(gone(pid) for pid in watcher.pids.values()))


PARENT = """
import sys, threading
sys.path.insert(0, {folder!r})
import numpy as np
from colonnade.job import Job, plan
from colonnade.runtime.fork_server import fork_server
from colonnade.runtime.launcher import run_processes

if __name__ != "__main__":
    sys.exit("the user's script was imported again")

names = ("bank", "shop", "club")
print("server", flush=True)
run_processes(
    plan(Job(batch_size=2, timeout=0.2), names, 20, 2),
    {{name: np.ones((20, 2)) for name in names}},
    dict.fromkeys(names),
    watch=lambda name, event: print(event["pid"], flush=True),
    entry="process_parties:{entry}",
)
"""


@pytest.mark.parametrize("entry", ["stay", "stubborn"])
def test_no_orphan_survives_a_killed_parent(entry, tmp_path):
    script = tmp_path / "user.py"
    script.write_text(PARENT.format(folder=str(Path(__file__).parent), entry=entry))
    files = set(os.listdir(tempfile.gettempdir()))
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout.readline() == "server\n"
        pids = [int(parent.stdout.readline()) for _ in NAMES]
        (server,) = children(parent.pid)
        parent.kill()
    wait_until(lambda: all(gone(pid) for pid in [server, *pids]))
    assert not [name for name in set(os.listdir(tempfile.gettempdir())) - files if "colonnade" in name]


FORK = """
import os, time
from colonnade.runtime.fork_server import fork_server

print(fork_server().pid, flush=True)
if os.fork():
    os._exit(0)
print(os.getpid(), flush=True)
time.sleep(60)
"""


def test_a_fork_of_the_parent_does_not_keep_the_server_alive(tmp_path):
    """The fork holds a copy of the channel, so the server never reads its end."""
    script = tmp_path / "user.py"
    script.write_text(PARENT.format(folder=str(Path(__file__).parent), entry="describe") + FORK)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as parent:
        _, *_, server, fork = (
            int(line) for line in (parent.stdout.readline() for _ in range(6)) if line[0] != "s"
        )
        assert parent.wait(10) == 0
        try:
            wait_until(lambda: gone(server))
            assert not gone(fork)
        finally:
            os.kill(fork, signal.SIGKILL)


# what is refused


def test_arrays_of_objects_are_refused():
    labels = {"bank": np.array(["yes", None] * 10, dtype=object)}
    with pytest.raises(ConfigurationError, match="labels of dtype object"):
        run("describe", labels=labels)


def test_a_full_disk_is_named(monkeypatch):
    class Full:
        def __init__(self, **_):
            self.file = open("/dev/full", "wb", buffering=0)  # noqa: SIM115

        def __getattr__(self, name):
            return getattr(self.file, name)

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    with pytest.raises(ColonnadeError, match=r"cannot hand a block over .*No space left.*TMPDIR"):
        run("describe")
