"""Peak memory of one AFSVRG epoch on a table of the url set's shape: 8 parties, b = 1,024, processes on one machine.

An epoch as printed: every party makes its own snapshot, then n rows are asked for, all parties together. Counted is
the proportional share (PSS) of all processes of the run, blocks included, every half second. The table is made before,
by a process of its own, and lies in files that the run maps.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from os import getpid
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from types import TracebackType
from typing import Any

import numpy as np
from scipy.sparse import csr_array

import colonnade as cn
from experiments import generator
from experiments.checks.common import Check, leave, quick

PARTIES, BATCH, SEED, STEP = 8, 1_024, 0, 0.01
GIB = 2**30
EVERY = 0.5


def make(folder: Path, rows: int) -> None:
    """The generator's url table, chunk by chunk, its columns dealt to the parties at random."""
    shape = generator.SHAPES["url"]
    some = int(generator.CHUNK / shape.mean)
    dealt = np.random.default_rng(SEED).permutation(shape.columns)
    owner, place = dealt % PARTIES, (dealt // PARTIES).astype(np.int32)
    scores = np.zeros(rows)
    weights = np.random.default_rng([SEED, 1]).standard_normal(shape.columns)
    shuffled = np.random.default_rng([SEED, 2]).permutation(shape.columns).astype(np.int32)
    starts = [np.zeros(rows + 1, np.int64) for _ in range(PARTIES)]
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context((folder / f"indices{p}").open("wb")) for p in range(PARTIES)]
        for start in range(0, rows, some):
            part = slice(start, min(start + some, rows))
            rng = np.random.default_rng([SEED, 3, start])
            lengths = generator.row_lengths(rng, part.stop - start, shape.mean, shape.columns)
            columns = shuffled[generator.distinct_columns(rng, lengths, shape.columns)]
            row = np.repeat(np.arange(part.start, part.stop), lengths)
            scores[part] = np.bincount(row - start, weights[columns], len(lengths))
            for p in range(PARTIES):
                mine = owner[columns] == p
                mine_row, mine_place = row[mine], place[columns[mine]]
                mine_place[np.lexsort((mine_place, mine_row))].tofile(files[p])
                starts[p][part.start + 1 : part.stop + 1] = np.bincount(
                    mine_row - start, minlength=len(lengths)
                )
    for p in range(PARTIES):
        np.save(folder / f"starts{p}.npy", np.cumsum(starts[p]))
        np.ones(int(starts[p].sum()), np.float32).tofile(folder / f"values{p}")
    np.save(folder / "labels.npy", np.where(scores > np.median(scores), 1.0, -1.0))
    sizes = [int((owner == p).sum()) for p in range(PARTIES)]
    (folder / "columns.json").write_text(json.dumps(sizes))


def blocks(folder: Path) -> list[csr_array]:
    """Views of the files: read when touched."""
    found = []
    for p, columns in enumerate(json.loads((folder / "columns.json").read_text())):
        starts = np.load(folder / f"starts{p}.npy")
        values = np.memmap(folder / f"values{p}", np.float32, "r")
        indices = np.memmap(folder / f"indices{p}", np.int32, "r")
        shape = (len(starts) - 1, columns)
        found.append(csr_array((values, indices, starts), shape=shape, copy=False))
    return found


class Sampled:
    """The memory of this process and of all that it started, looked at from a thread."""

    def __init__(self) -> None:
        self.peak = 0
        self.at_peak: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Sampled:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(EVERY):
            shares = [share_of(pid) for pid in family(getpid())]
            total = sum(share["Pss"] for share in shares)
            if total > self.peak:
                self.peak = total
                self.at_peak = {
                    "processes": len(shares),
                    "of files, GiB": round(sum(share["Pss_File"] for share in shares) / GIB, 3),
                    "largest process, GiB": round(max(share["Pss"] for share in shares) / GIB, 3),
                    "this process, GiB": round(shares[0]["Pss"] / GIB, 3),
                }


def family(first: int) -> list[int]:
    """A process and all that descend from it."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
            children.setdefault(parent, []).append(int(place.name))

    def below(pid: int) -> Iterator[int]:
        yield pid
        for child in children.get(pid, []):
            yield from below(child)

    return list(below(first))


def share_of(pid: int) -> dict[str, int]:
    """Bytes by kind; none for a process that has just ended."""
    found = dict.fromkeys(("Pss", "Pss_File"), 0)
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, amount = line.split(":")
            if name in found:
                found[name] = int(amount.split()[0]) * 1024
    return found


def epoch(folder: Path) -> tuple[Any, Sampled, float]:
    labels = np.load(folder / "labels.npy")
    rounds = PARTIES + -(-len(labels) // BATCH)
    job = cn.Job(
        method="afsvrg",
        schedule="asynchronous",
        sharing="own",
        batch_size=BATCH,
        step=STEP,
        tol=0,
        max_rounds=rounds,
        timeout=600,
        random_state=SEED,
    )
    started = perf_counter()
    with Sampled() as memory:
        report = cn.train_locally(job, blocks(folder), labels)
    return report, memory, perf_counter() - started


def main() -> None:
    small = quick(__doc__)
    rows = 50_000 if small else generator.SHAPES["url"].rows
    check = Check(
        "memory", f"one AFSVRG epoch, url's shape, q = {PARTIES}, b = {BATCH:,}, processes", SEED, small
    )
    with TemporaryDirectory(prefix="colonnade-url-") as name:
        folder = Path(name)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(make, folder, rows).result()
        size = sum(file.stat().st_size for file in folder.iterdir())
        nonzeros = sum(int(np.load(folder / f"starts{p}.npy")[-1]) for p in range(PARTIES))
        report, memory, seconds = epoch(folder)
    check.report("rows", rows)
    check.report("non-zeros a row", nonzeros / rows)
    check.report("the table in its files, GiB", size / GIB)
    check.at_most("peak memory of all processes, GiB", memory.peak / GIB, 16.0)
    check.holds("the run ends by its budget", report.outcome, "budget", report.outcome == "budget")
    check.report("rounds, snapshots included", int(report.trace["rounds"][-1]))
    check.report("passes over the rows, snapshots included", float(report.trace.passes(rows)[-1]))
    check.report("seconds of training", report.seconds)
    check.report("seconds in all, blocks handed over and objectives included", seconds)
    check.report(
        "objective at the start and at the end",
        " → ".join(f"{v:.4f}" for v in report.trace["objective"][[0, -1]]),
    )
    check.notes["at the peak"] = memory.at_peak
    leave(check)


if __name__ == "__main__":
    main()
