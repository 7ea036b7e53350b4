"""`colonnade check`: everything is read as for a run; what it would cost and tell is said, and nothing starts."""

from __future__ import annotations

import sys
from pathlib import Path

from colonnade.cli.arguments import Command
from colonnade.cli.inputs import Inputs, gather
from colonnade.cli.progress import emit
from colonnade.cli.training import NOT_MASKED
from colonnade.cost import Cost, Links, expected
from colonnade.job import Plan, plan

LOCAL_MESSAGE = 2e-5
"""Seconds that a message costs on one machine: measured, masked and over TLS."""


def run(command: Command) -> int:
    from colonnade.privacy import exposure

    inputs = gather(Path(command.path), command.job)
    agreed = _planned(inputs)
    cost = expected(agreed, inputs.nonzeros, Links(per_message=LOCAL_MESSAGE))
    findings = exposure.expected(agreed, {name: len(columns) for name, columns in inputs.columns.items()})
    if command.json:
        emit({"event": "check", "chosen": agreed.chosen(), "cost": cost, "exposure": findings})
        return 0
    print("\n".join([*_described(inputs, agreed), *_costs(cost)]))
    if inputs.job.aggregation == "plain":
        print(NOT_MASKED, file=sys.stderr)
    print("what parties could learn:")
    for finding in findings:
        print(f"  {finding.severity}: {finding.sentence}")
    return 0


def _planned(inputs: Inputs) -> Plan:
    """The plan of the run, once blocks and labels have passed the checks that a run makes."""
    from colonnade.core.blocks import check_block
    from colonnade.core.losses import LOSSES

    for name, block in inputs.blocks.items():
        check_block(block, name, inputs.columns[name])
    _, classes = LOSSES[inputs.job.loss].encode(inputs.labels)
    return plan(inputs.job, tuple(inputs.blocks), inputs.rows, 1 if classes is None else len(classes))


def _described(inputs: Inputs, agreed: Plan) -> list[str]:
    lines = [f"ready: {inputs.rows:,} rows, aligned, {len(inputs.blocks)} parties"]
    for name, block in inputs.blocks.items():
        layout = "sparse" if hasattr(block, "nnz") else "dense"
        holds = ", holds the label" if name in agreed.labels else ""
        lines.append(f"  {name}: {len(inputs.columns[name])} columns, {layout}{holds}")
    chosen = {key: value for key, value in agreed.chosen().items() if isinstance(value, str)}
    return [*lines, "  " + ", ".join(f"{key} {value}" for key, value in chosen.items())]


def _costs(cost: Cost) -> list[str]:
    from colonnade.report import words

    return [
        f"expected: {cost.rounds:,} rounds, {cost.messages:,} messages, {words.size(cost.bytes)}, "
        f"{words.seconds(cost.seconds)} on this machine",
        f"  {cost.assumption}",
    ]
