"""Speed-up against the number of parties with a straggler: Figure 6 of the preprint, 8 of the journal.

The papers take url and do not define the speed-up. Here, on webspam: the time one party with all columns and full
speed needs to the target, over the time that q parties need of which one is 200 % slower.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments import methods
from experiments.cells import Cell, cell
from experiments.plot import COLOURS, Line, Panel, figure
from experiments.tables.ratios import Row, by_key, seconds

COUNTS = (2, 4, 8, 12, 16)
SCHEDULES = ("asynchronous", "synchronous")


def one_cell(method: str, schedule: str, parties: int, full: bool) -> Cell:
    """The set whose batches are heavy enough that dividing columns divides work."""
    return cell("webspam", method, schedule, full, parties=parties, both_clocks=False)


def cells(full: bool) -> list[Cell]:
    """One party alone, then both schedules at every number."""
    alone = [one_cell(method, "synchronous", 1, full) for method in methods.NAMES]
    return alone + [
        one_cell(method, schedule, parties, full)
        for method in methods.NAMES
        for schedule in SCHEDULES
        for parties in COUNTS
    ]


def render(rows: Iterable[Row], full: bool) -> dict[str, str]:
    """A panel a method."""
    known = by_key(rows)
    legend = [(name, colour, name == "synchronous") for name, colour in zip(SCHEDULES, COLOURS, strict=False)]
    panels = [_panel(method, known, full) for method in methods.NAMES]
    title = "webspam: time of one party over time of q, one of them 200 % slower"
    return {"parties.svg": figure(title, panels, [*legend, ("q", "#999999", True)])}


def _panel(method: str, known: Mapping[str, Row], full: bool) -> Panel:
    alone = seconds(known.get(one_cell(method, "synchronous", 1, full).key), "honest")
    lines = [Line("q", [(1.0, 1.0), (6.0, 6.0)], "#999999", True)]
    for schedule, colour in zip(SCHEDULES, COLOURS, strict=False):
        points = [(1.0, 1.0)]
        for parties in COUNTS:
            took = seconds(known.get(one_cell(method, schedule, parties, full).key), "honest")
            if alone and took and alone[1] and took[1]:
                points.append((float(parties), alone[0] / took[0]))
        lines.append(Line(schedule, points, colour, schedule == "synchronous"))
    return Panel(methods.get(method).column, "parties", "speed-up", lines)
