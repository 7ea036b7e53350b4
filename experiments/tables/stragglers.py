"""The speed-up at other stragglers, batch sizes, steps and on a network, on credit91 and one sparse set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from experiments import methods
from experiments.cells import SPARSE_SET, Cell, contest
from experiments.tables.ratios import (
    HEADINGS,
    LEGEND,
    Row,
    by_key,
    endings,
    markdown,
    numbers,
    provenance,
    step_of,
)

USUAL: dict[str, Any] = {"slower": 200, "batch": 128, "of_best": 1.0, "network": "none"}
CHANGES: list[dict[str, Any]] = [
    {"slower": 40},
    {"slower": 100},
    {"slower": 300},
    {"batch": 32},
    {"of_best": 0.5},
    {"network": "cluster"},
]


def settings(full: bool) -> list[dict[str, Any]]:
    """What is changed; in full every straggler at both batch sizes."""
    crossed = [{"slower": slower, "batch": 32} for slower in (40, 100, 300)] if full else []
    return CHANGES + crossed


def contests(full: bool) -> list[list[Cell]]:
    """All of the table, then the papers' batch of one, and webspam SAGA at half its step.

    That one falls short in speedup.md: the step that is best in lockstep is at the edge of what is stable.
    """
    found = [
        contest(name, method, full, **change)
        for name in ("credit91", SPARSE_SET)
        for method in methods.NAMES
        for change in settings(full)
    ]
    gentler = contest("webspam", "afsaga", full, of_best=0.5)
    return [*found, contest("credit91", "afsgd", full, batch=1), gentler]


def cells(full: bool) -> list[Cell]:
    """Every run of every contest."""
    return [cell for runs in contests(full) for cell in runs]


def render(rows: Iterable[Row], full: bool) -> dict[str, str]:
    """One line a contest."""
    known = by_key(rows)
    lines = []
    for runs in contests(full):
        one = runs[0]
        head = [one.dataset, str(one.parties), methods.get(one.method).column]
        head += [f"{one.slower} %", str(one.batch), one.network, step_of(runs, known)]
        lines.append([*head, *numbers(runs, known), endings(runs, known)])
    columns = ("set", "q", "method", "slower", "batch", "network", "step", *HEADINGS, "short of the target")
    title = "# Asynchronous speed-up in other worlds\n\nAs in speedup.md but for what the columns say. "
    title += "The network *cluster*: 2 µs, 56 Gb/s.\n\n"
    used = [known[cell.key] for cell in cells(full) if cell.key in known]
    return {"stragglers.md": f"{title}{LEGEND}\n{markdown(columns, lines)}\n{provenance(used)}"}
