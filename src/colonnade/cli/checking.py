"""`colonnade check`: everything is read as for a run; what it would cost and tell is said, and nothing starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colonnade.cli.arguments import Command
from colonnade.cli.inputs import Inputs, gather
from colonnade.cli.progress import emit
from colonnade.cli.training import expected_cost, warn_unmasked
from colonnade.job import Plan

Array = NDArray[np.float64]

UNEVEN = 100
"""How many times the usual column's size is worth a warning."""


def run(command: Command) -> int:
    from colonnade.privacy import exposure

    inputs = gather(Path(command.path), command.job)
    _refuse_blocks(inputs)
    agreed = inputs.plan()
    cost, sentence = expected_cost(command, inputs, agreed)
    findings = exposure.expected(agreed, {name: len(columns) for name, columns in inputs.columns.items()})
    if command.json:
        emit({"event": "check", "chosen": agreed.chosen(), "cost": cost, "exposure": findings})
        return 0
    print("\n".join([*_described(inputs, agreed), sentence, f"  {cost.assumption}"]))
    warn_unmasked(inputs.job)
    print("".join(f"  warning: {warning}\n" for warning in _uneven_columns(inputs)), end="")
    print("what parties could learn:")
    for finding in findings:
        print(f"  {finding.severity}: {finding.sentence}")
    return 0


def _refuse_blocks(inputs: Inputs) -> None:
    """The checks that a run makes of its blocks."""
    from colonnade.core.blocks import check_block

    for name, block in inputs.blocks.items():
        check_block(block, name, inputs.columns[name])


def _uneven_columns(inputs: Inputs) -> list[str]:
    """Columns far larger than the usual one: steps must be small for them, and all others then crawl."""
    sizes = {
        (party, name): size
        for party, block in inputs.blocks.items()
        for name, size in zip(inputs.columns[party], _root_mean_squares(block), strict=True)
    }
    usual = sorted(sizes.values())[(len(sizes) - 1) // 2]
    found = [(size, party, name) for (party, name), size in sizes.items() if size > UNEVEN * usual > 0]
    if not found:
        return []
    size, party, name = max(found)
    return [
        f"{party}'s column {name!r} is {size / usual:,.0f} times as large as the usual column, so training will be "
        f"slow: set standardise = true under [prepare] in {party}.toml"
    ]


def _root_mean_squares(block: Any) -> Array:
    squares = block.power(2).mean(axis=0) if hasattr(block, "nnz") else np.square(block).mean(axis=0)
    sizes: Array = np.sqrt(np.asarray(squares, np.float64).ravel())
    return sizes


def _described(inputs: Inputs, agreed: Plan) -> list[str]:
    lines = [f"ready: {inputs.rows:,} rows, aligned, {len(inputs.blocks)} parties"]
    for name, block in inputs.blocks.items():
        layout = "sparse" if hasattr(block, "nnz") else "dense"
        holds = ", holds the label" if name in agreed.labels else ""
        lines.append(f"  {name}: {len(inputs.columns[name])} columns, {layout}{holds}")
    chosen = {key: value for key, value in agreed.chosen().items() if isinstance(value, str)}
    return [*lines, "  " + ", ".join(f"{key} {value}" for key, value in chosen.items())]
