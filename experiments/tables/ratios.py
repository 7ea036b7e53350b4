"""Speed-ups from pairs of rows, and the text of tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from experiments.cells import Cell

Row = Mapping[str, Any]
NONE = "–"


def by_key(rows: Iterable[Row]) -> dict[str, Row]:
    """Rows by the key of their cell."""
    return {row["key"]: row for row in rows}


def seconds(row: Row | None, clock: str) -> tuple[float, bool] | None:
    """Time to the target by a clock, or until the run ended short of it."""
    if row is None or not row.get(clock):
        return None
    reached = row["papers_seconds"] if clock == "papers" else row["reached"].get("seconds")
    return (row[clock][-1][0], False) if reached is None else (reached, True)


def speedup(synchronous: Row | None, asynchronous: Row | None, clock: str = "honest") -> str:
    """Synchronous over asynchronous time to the target; if one fell short, with ~, to the smallest gap of both."""
    one, other = seconds(synchronous, clock), seconds(asynchronous, clock)
    if synchronous is None or asynchronous is None or one is None or other is None:
        return NONE
    if one[1] and other[1]:
        return f"{one[0] / other[0]:.2f}"
    curves = synchronous[clock], asynchronous[clock]
    common = max(min(gap for _, gap in curve) for curve in curves)
    first, second = (next(time for time, gap in curve if gap <= common) for curve in curves)
    return f"~{first / second:.2f}"


def ending(cell: Cell, row: Row | None) -> str:
    """How a run that missed its target ended; nothing for one that met it."""
    if row is None:
        return "not run"
    if row["status"] == "reached":
        return ""
    gap = f", gap {row['gap']:.1e}" if row.get("gap") is not None else ""
    return f"{cell.passes} passes{gap}" if row["status"] == "passes" else f"{row['status']}{gap}"


def endings(contest: Sequence[Cell], rows: Mapping[str, Row]) -> str:
    """What did not reach its target in a contest, in words."""
    names = ("synchronous", "synchronous, prompt", "asynchronous", "asynchronous, one lane")
    said = [
        f"{name}: {text}"
        for name, cell in zip(names, contest, strict=True)
        if (text := ending(cell, rows.get(cell.key)))
    ]
    return "; ".join(said)


CLOCKS = (
    ("honest", 0, 2),
    ("honest", 0, 3),
    ("honest", 1, 2),
    ("papers", 0, 2),
    ("papers", 0, 3),
)
HEADINGS = ("honest", "honest, one lane", "honest, prompt twin", "papers' clock", "papers' clock, one lane")
LEGEND = """\
*honest*: time until the weights that exist have the target gap, every pass counted. *papers' clock*: the weights
that each party has after its k-th step, dated by the fastest party, full passes left out. A listener's products have
a lane a requester, or *one lane* for all. In the synchronous twin the product of the shared batch is each party's own
work, at its own speed; *prompt twin*: it is a listener's, at full speed. `~`: one of the two fell
short of the target, so both are timed to the smallest gap that both have.
"""


def numbers(contest: Sequence[Cell], rows: Mapping[str, Row]) -> list[str]:
    """The speed-ups of one contest, in the order of the headings."""
    found = [rows.get(cell.key) for cell in contest]
    return [speedup(found[one], found[other], clock) for clock, one, other in CLOCKS]


def step_of(contest: Sequence[Cell], rows: Mapping[str, Row]) -> str:
    """The step that the contest was run at."""
    row = rows.get(contest[0].key)
    return NONE if row is None else f"{row['step']:g}"


def markdown(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    ruled = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(line) + " |" for line in ruled) + "\n"


def provenance(rows: Iterable[Row]) -> str:
    """Where the rows come from."""
    rows = list(rows)
    machines = sorted({row["machine"] for row in rows})
    versions = sorted({", ".join(f"{name} {v}" for name, v in row["versions"].items()) for row in rows})
    minutes = sum(row["took"] for row in rows) / 60
    return f"{len(rows)} runs, {minutes:.0f} minutes of one core on {'; '.join(machines)}. {'; '.join(versions)}.\n"
