"""`colonnade train` and `colonnade simulate`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from colonnade.cli.arguments import Command
from colonnade.cli.inputs import Inputs, gather
from colonnade.cli.progress import emit, progress
from colonnade.errors import DataError
from colonnade.job import Job, Plan
from colonnade.record import Report

if TYPE_CHECKING:
    from colonnade.cost import Cost
    from colonnade.runtime.world import World

EXIT_CODES = {"converged": 0, "budget": 0, "interrupted": 130}
"""All other outcomes are failures: 1."""

LOCAL_MESSAGE = 9e-5
"""Seconds that a message costs on one idle machine, masked and over TLS, as in the demo; less where many ask."""

NOT_MASKED = (
    "NOT MASKED: each party sees its neighbours' shares. "
    'aggregation = "plain" is for comparison; use "pairwise" for real data.'
)


def run(command: Command) -> int:
    path = Path(command.path)
    from colonnade import archive

    inputs = gather(path, command.job)
    agreed = inputs.plan()
    world = _world(command, agreed)
    folder = _folder(path, command.out)
    archive.check_writable(folder)
    _announce(command, inputs, agreed)
    report = _train(command, inputs, world)
    report = dataclasses.replace(report, reference=_fit(report, inputs))
    _keep(report, inputs, folder)
    _tell(report, folder, command.json)
    return EXIT_CODES.get(report.outcome, 1)


def _folder(path: Path, out: str | None) -> Path:
    """Where the run goes: a new folder in `runs` beside the job file, or the one that was named."""
    if out is not None:
        return Path(out)
    runs = path.parent / "runs"
    number = 1
    while (runs / f"{path.stem}-{number}").exists():
        number += 1
    return runs / f"{path.stem}-{number}"


def _world(command: Command, agreed: Plan) -> World | None:
    """The simulated world, or None for processes."""
    if command.name != "simulate":
        return None
    from colonnade.runtime.world import World

    world = World(**command.world)
    world.check(agreed.parties)
    return world


def expected_cost(command: Command, inputs: Inputs, agreed: Plan) -> tuple[Cost, str]:
    """What the run should cost, and the same in words."""
    from colonnade.cost import Links, expected, shown
    from colonnade.report import words

    if command.name == "simulate":
        links = Links(latency=command.world["latency"], bandwidth=command.world["bandwidth"])
    else:
        links = Links(per_message=LOCAL_MESSAGE)
    cost = expected(agreed, inputs.nonzeros, links)
    parts = [f"{cost.rounds:,} rounds", f"{cost.messages:,} messages", words.size(cost.bytes)]
    return cost, f"expected: {', '.join(parts)}, {words.seconds(cost.seconds)} ({shown(cost.passes)} passes)"


def warn_unmasked(job: Job) -> None:
    if job.aggregation == "plain":
        print(NOT_MASKED, file=sys.stderr)


def _announce(command: Command, inputs: Inputs, agreed: Plan) -> None:
    columns = {name: len(names) for name, names in inputs.columns.items()}
    cost, sentence = expected_cost(command, inputs, agreed)
    if command.json:
        emit({"event": "start", "rows": inputs.rows, "columns": columns, "job": inputs.job, "expected": cost})
    else:
        held = ", ".join(f"{name} {count} columns" for name, count in columns.items())
        print(f"{inputs.rows:,} rows; {held}\n{sentence}", flush=True)
    warn_unmasked(inputs.job)


def _train(command: Command, inputs: Inputs, world: World | None) -> Report:
    from colonnade import federation

    labels = inputs.job.labels or tuple(inputs.blocks)
    shown = progress(labels[0], command.json)
    more: dict[str, Any] = {"ids": inputs.ids, "columns": inputs.columns, "watch": shown.watch}
    try:
        if world is None:
            return federation.train_locally(inputs.job, inputs.blocks, inputs.labels, **more)
        return federation.simulate(inputs.job, inputs.blocks, inputs.labels, world, **more)
    finally:
        shown.close()


def _fit(report: Report, inputs: Inputs) -> dict[str, Any] | None:
    from colonnade.cli.scoring import fit_of

    return fit_of(report, inputs)


def _keep(report: Report, inputs: Inputs, folder: Path) -> None:
    """The run's folder: numbers, models with their preparation, and the page."""
    from colonnade.report import page

    report.save(folder)
    try:
        for party, recipe in inputs.recipes.items():
            (folder / "models" / f"{party}.prepare.json").write_bytes(msgspec.json.encode(recipe))
    except OSError as error:
        raise DataError(f"{folder}: cannot be written ({error.strerror}): free some space") from None
    page.write(report, folder / "report.html")


def _tell(report: Report, folder: Path, json: bool) -> None:
    known = [party for party in report.parties if np.isfinite(report.weights[party]).any()]
    models = {party: str(folder / "models" / f"{party}.npz") for party in known}
    page = folder / "report.html"
    if json:
        last = {name: column[-1].item() for name, column in report.trace.to_numpy().items()}
        ended = {"outcome": report.outcome, "detail": report.detail, "certificate": report.certificate}
        fit = report.reference or {}
        emit({"event": "end", **ended, **last, "fit": fit, "models": models, "report": str(page)})
    else:
        from colonnade.report import text

        print(text(report))
        print("  weights, a file a party:")
        print("\n".join(f"    {name}" for name in models.values()))
        print(f"  report: {page}")
    if EXIT_CODES.get(report.outcome, 1) == 1:
        why = report.detail.removeprefix(f"{report.outcome}: ")
        print(f"colonnade: the run failed: {report.outcome}: {why}", file=sys.stderr)
