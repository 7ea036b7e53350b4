"""Make docs/figures.md of the checks' results; nothing is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from experiments.checks.common import file, shown

PAGE = Path(__file__).parents[2] / "docs" / "figures.md"
CHECKS = (
    "convergence",
    "same_bits",
    "determinism",
    "simulator",
    "secured_round",
    "sparse_step",
    "memory",
    "frames",
    "import_time",
)
HEAD = """# Figures

What the package is held to, and what was measured. Each part is written by the command above it, with all runs, seed,
versions and load of the machine, to `experiments/results/checks/`; this page is made of these files by
`python -m experiments.checks.table`. *Short* marks a figure that is not reached.
"""


def main() -> None:
    found = [file(name).read_text() for name in CHECKS if file(name).exists()]
    PAGE.write_text("\n".join([HEAD, *(part(json.loads(text)) for text in found)]))
    print(f"wrote {PAGE.name}")


def part(check: dict[str, Any]) -> str:
    title = check["title"][0].upper() + check["title"][1:]
    lines = [
        f"## {title}",
        "",
        f"`{check['command']}` ({check['machine']}; load at the end {check['load'][0]:g})",
        "",
        "| figure | needed | measured | |",
        "| --- | --- | ---: | --- |",
        *(row(figure) for figure in check["figures"]),
        "",
    ]
    return "\n".join(lines + remarks(check))


def row(figure: dict[str, Any]) -> str:
    verdict = {True: "✓", False: "**short**", None: ""}[figure["passed"]]
    name = figure["name"].replace("|", "\\|")
    return f"| {name} | {figure['needed']} | {shown(figure['measured'])} | {verdict} |"


def remarks(check: dict[str, Any]) -> list[str]:
    """Sentences that a check leaves for the page."""
    said = check["notes"].get("remarks", [])
    return [*said, ""] if said else []


if __name__ == "__main__":
    main()
