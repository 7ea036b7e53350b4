"""Virtual time against real processes on this machine: masked sums over TLS, equal parties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from experiments import methods
from experiments.cells import SPARSE_SET, Cell, cell
from experiments.tables.ratios import Row, by_key, markdown, provenance, seconds, speedup

PASSES = 25


def couples(full: bool) -> list[tuple[Cell, Cell, Cell, Cell]]:
    """Synchronous and asynchronous, each in virtual time and with processes."""
    found = []
    for name in ("credit91", SPARSE_SET):
        for method in methods.NAMES:
            for parties in (2, 4):
                twin = cell(
                    name,
                    method,
                    "synchronous",
                    full,
                    parties=parties,
                    slower=0,
                    passes=PASSES,
                    both_clocks=False,
                )
                both = (twin, replace(twin, schedule="asynchronous"))
                found.append((*both, *(replace(one, world="processes") for one in both)))
    return found


def cells(full: bool) -> list[Cell]:
    """All of them."""
    return [one for couple in couples(full) for one in couple]


def render(rows: Iterable[Row], full: bool) -> dict[str, str]:
    """Milliseconds to the target in both worlds, rounds, and the speed-ups."""
    known = by_key(rows)
    lines = []
    for couple in couples(full):
        found = [known.get(one.key) for one in couple]
        head = [couple[0].dataset, str(couple[0].parties), methods.get(couple[0].method).column]
        for schedule, virtual, real in (("synchronous", 0, 2), ("asynchronous", 1, 3)):
            ratios = [speedup(found[0], found[1]), speedup(found[2], found[3])] if virtual else ["", ""]
            times = [*_to_target(found[virtual]), *_to_target(found[real])]
            lines.append([*head, schedule, *times, *ratios])
    columns = (
        "set",
        "q",
        "method",
        "schedule",
        "virtual ms",
        "rounds",
        "real ms",
        "rounds",
        "speed-up",
        "real",
    )
    title = """\
# Virtual time and real processes

Time to the target with equal parties, in virtual time (computing only, no network) and with one process a party on this
machine's cores (pairwise masks, TLS). A synchronous job takes the same rounds in both worlds; what a real round takes
beyond its computing is the operating system, Python, masks and TLS, and parties that share a core.

"""
    used = [known[one.key] for one in cells(full) if one.key in known]
    return {"processes.md": title + markdown(columns, lines) + "\n" + provenance(used)}


def _to_target(row: Row | None) -> list[str]:
    took = seconds(row, "honest")
    if row is None or took is None:
        return ["–", "–"]
    return (
        [f"{took[0] * 1e3:.3g}", str(row["reached"]["rounds"])] if took[1] else [f">{took[0] * 1e3:.3g}", "–"]
    )
