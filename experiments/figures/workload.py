"""How eight parties spend their time on url: Figure 7 of both papers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from experiments import methods
from experiments.cells import Cell, cell
from experiments.plot import COLOURS, Panel, figure
from experiments.tables.ratios import Row, by_key

PARTIES = 8
PARTS = ("computing", "communicating", "waiting")
SCHEDULES = ("synchronous", "asynchronous")


def cells(full: bool) -> list[Cell]:
    """Large batches on a fast network, so that computing and communication both show."""
    return [
        cell(
            "url_phishtank",
            method,
            schedule,
            full,
            parties=PARTIES,
            batch=1024,
            network="cluster",
            both_clocks=False,
        )
        for schedule in SCHEDULES
        for method in methods.NAMES
    ]


def render(rows: Iterable[Row], full: bool) -> dict[str, str]:
    """A panel a run: per party the microseconds of one step of the straggler, split, and steps made meanwhile."""
    known = by_key(rows)
    panels = [_panel(one, known.get(one.key, {})) for one in cells(full)]
    legend = [(name, colour, False) for name, colour in zip(PARTS, COLOURS, strict=False)]
    title = "Time of eight parties on url (p7 is 200 % slower), as a share of the run"
    return {"workload.svg": figure(title, panels, legend)}


def _panel(one: Cell, row: Mapping[str, dict[str, dict[str, float]]]) -> Panel:
    work = row.get("workload", {})
    name = f"{methods.get(one.method).column} {one.schedule}"
    if not work:
        return Panel(name, "", "")
    bars = [
        (party, [spent[part] / sum(spent[p] for p in PARTS) for part in PARTS])
        for party, spent in work.items()
    ]
    slowest = work[f"p{PARTIES - 1}"]["steps"]
    frequency = work["p1"]["steps"] / slowest
    return Panel(name, f"p1 makes {frequency:.2f} steps for each of p7", "share of time", bars=bars)
