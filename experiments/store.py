"""Rows on disk: one JSON object a line, each with its configuration, seed, versions and machine."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

Row = dict[str, Any]

PLACE = Path(__file__).parent / "results"


def environment() -> dict[str, Any]:
    """The machine in words, and the versions of what was measured."""
    packages = ("colonnade", "numpy", "scipy", "numba", "scikit-learn")
    return {
        "machine": f"{_processor()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": {"python": platform.python_version()} | {name: version(name) for name in packages},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
    )


class Store:
    """Rows by key, each written as soon as it is there: a run that was cut off goes on where it stopped."""

    def __init__(self, file: Path) -> None:
        self.file = file
        lines = file.read_text().splitlines() if file.exists() else []
        found = [row for line in lines if (row := _whole(line)) is not None]
        self._rows = {row["key"]: row for row in found}

    def get(self, key: str) -> Row | None:
        return self._rows.get(key)

    def add(self, row: Row) -> None:
        """Append under a lock: two processes write to one file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a+b") as lines:
            fcntl.flock(lines, fcntl.LOCK_EX)
            end = lines.seek(0, os.SEEK_END)
            lines.seek(max(0, end - 1))
            whole = lines.read(1) in (b"", b"\n")
            lines.write((b"" if whole else b"\n") + json.dumps(row).encode() + b"\n")
        self._rows[row["key"]] = row

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())


def _whole(line: str) -> Row | None:
    """The row on a line; None where its writing was cut off."""
    try:
        row: Row = json.loads(line)
    except json.JSONDecodeError:
        return None
    return row
