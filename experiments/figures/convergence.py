"""Gap against time, asynchronous and synchronous: Figures 4 and 5 of both papers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments import datasets, methods
from experiments.cells import Cell, contest
from experiments.plot import COLOURS, Line, Panel, figure
from experiments.tables import speedup
from experiments.tables.ratios import Row, by_key

LEGEND = [
    (f"{methods.get(name).column} {schedule}", colour, schedule == "synchronous")
    for name, colour in zip(methods.NAMES, COLOURS, strict=False)
    for schedule in ("asynchronous", "synchronous")
]


def cells(full: bool) -> list[Cell]:
    """Those of the speed-up tables."""
    return speedup.cells(full)


def render(rows: Iterable[Row], full: bool) -> dict[str, str]:
    """A panel a set, honest clock, a lane a requester."""
    known = by_key(rows)
    panels = [_panel(name, known, full) for name in datasets.NAMES]
    title = "Objective − pooled optimum against virtual time, one party 200 % slower"
    return {"convergence.svg": figure(title, panels, LEGEND)}


def _panel(name: str, known: Mapping[str, Row], full: bool) -> Panel:
    lines = []
    for method, colour in zip(methods.NAMES, COLOURS, strict=False):
        twin, _, ours, _ = contest(name, method, full)
        for cell, dashed in ((ours, False), (twin, True)):
            curve = known.get(cell.key, {}).get("honest", [])
            points = [(seconds * 1e3, gap) for seconds, gap in curve]
            lines.append(Line(method, points, colour, dashed))
    parties = datasets.get(name).parties
    return Panel(f"{name}, q = {parties}", "milliseconds", "gap", lines, log_y=True, level=1e-4)
