"""The experiments: `python -m experiments.run [speedup stragglers …] [--full] [--processes 2] [--render]`.

Every run is one row in results/rows.jsonl (results/full.jsonl with --full); what is there already is not run again.
Tables and figures are made from the rows alone, which --render does without running anything.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter

from experiments.cells import Cell
from experiments.store import PLACE, Row, Store

OUTPUTS = {
    "speedup": "experiments.tables.speedup",
    "stragglers": "experiments.tables.stragglers",
    "lossless": "experiments.tables.lossless",
    "processes": "experiments.tables.processes",
    "convergence": "experiments.figures.convergence",
    "workload": "experiments.figures.workload",
    "parties": "experiments.figures.parties",
}


def main(arguments: list[str] | None = None) -> int:
    """Run what is missing, then write the tables and figures."""
    options = _options(arguments)
    names = options.output or list(OUTPUTS)
    file = options.place / ("full.jsonl" if options.full else "rows.jsonl")
    modules = {name: importlib.import_module(OUTPUTS[name]) for name in names}
    cells = {cell.key: cell for module in modules.values() for cell in module.cells(options.full)}
    if not options.render:
        run_all(list(cells.values()), file, options.processes)
    rows = list(Store(file))
    for module in modules.values():
        for name, text in module.render(rows, options.full).items():
            (options.place / ("full-" * options.full + name)).write_text(text)
            print(f"wrote {name}")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", nargs="*", metavar="output", help=f"{', '.join(OUTPUTS)}; default: all")
    parser.add_argument(
        "--full", action="store_true", help="all rows of every set, every straggler and batch size"
    )
    parser.add_argument("--processes", type=int, default=2, help="cells run side by side (default 2)")
    parser.add_argument("--render", action="store_true", help="only tables and figures, from rows on disk")
    parser.add_argument("--place", type=Path, default=PLACE, help="folder of rows, tables and figures")
    options = parser.parse_args(arguments)
    for name in options.output:
        if name not in OUTPUTS:
            parser.error(f"no output {name!r}; known: {', '.join(OUTPUTS)}")
    return options


def run_all(cells: list[Cell], file: Path, processes: int) -> None:
    """Groups of cells that share a step search, side by side; real processes have the machine to themselves."""
    missing = [cell for cell in cells if Store(file).get(cell.key) is None]
    virtual = grouped(cell for cell in missing if cell.world == "simulated")
    real = grouped(cell for cell in missing if cell.world != "simulated")
    started = perf_counter()
    done = itertools.count(1)
    for groups, workers in ((virtual, processes), (real, 1)):
        if not groups:
            continue
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            for future in as_completed([pool.submit(run_group, group, file) for group in groups]):
                print(
                    f"[{perf_counter() - started:6.0f} s] {next(done)}/{len(virtual) + len(real)} {future.result()}"
                )
                sys.stdout.flush()


def grouped(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells that share a step search; those with the most parties first, as they take longest."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.group, []).append(cell)
    return sorted(groups.values(), key=lambda group: -max(cell.parties for cell in group))


def run_group(group: list[Cell], file: Path) -> str:
    """Find the step, run the cells; one line about it."""
    from experiments.measure import measure
    from experiments.steps import best_step

    store = Store(file)
    started = perf_counter()

    def run(cell: Cell) -> Row:
        known = store.get(cell.key)
        if known is None:
            known = measure(cell, cell.step if cell.step is not None else step * cell.of_best)
            store.add(known)
        return known

    step = float("nan")
    if any(cell.step is None for cell in group):
        step = best_step(group[0], run)
    statuses = [run(cell)["status"] for cell in group]
    name = " ".join(str(part) for part in asdict(group[0]).values() if part in group[0].group[:3])
    return f"{name} step {step:g}: {', '.join(statuses)} ({perf_counter() - started:.0f} s)"


if __name__ == "__main__":
    sys.exit(main())
