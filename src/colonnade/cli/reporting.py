"""`colonnade report`: a finished run again."""

from __future__ import annotations

from pathlib import Path

from colonnade.cli.arguments import Command


def run(command: Command) -> int:
    from colonnade.record import load
    from colonnade.report import page, text

    report = load(command.path)
    written = page.write(report, Path(command.out) if command.out else Path(command.path) / "report.html")
    print(text(report))
    print(f"  report: {written}")
    return 0
