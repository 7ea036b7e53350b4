"""Rows on disk: one JSON object a line, each with its configuration, seed, versions and machine."""

from __future__ import annotations

import fcntl
import json
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
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
        self._rows: dict[str, Row] = {}
        self._read = 0
        self.refresh()

    def refresh(self) -> None:
        """Read what other processes have added."""
        if not self.file.exists():
            return
        with self.file.open() as lines:
            lines.seek(self._read)
            text = lines.read()
        whole = text[: text.rfind("\n") + 1]
        self._read += len(whole.encode())
        for line in whole.splitlines():
            row = json.loads(line)
            self._rows[row["key"]] = row

    def get(self, key: str) -> Row | None:
        return self._rows.get(key)

    def add(self, row: Row) -> None:
        """Append under a lock: two processes write to one file."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a") as lines:
            fcntl.flock(lines, fcntl.LOCK_EX)
            lines.write(json.dumps(row) + "\n")
        self._rows[row["key"]] = row

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows.values())


def matching(rows: Iterable[Mapping[str, Any]], **wanted: Any) -> list[Mapping[str, Any]]:
    """Rows whose cell has these values."""
    return [row for row in rows if all(row["cell"][name] == value for name, value in wanted.items())]
