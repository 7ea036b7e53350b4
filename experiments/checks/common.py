"""What the checks share: figures with the value they need, a table, a JSON file with the machine beside it."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from experiments.store import PLACE, environment

RESULTS = PLACE / "checks"


@dataclass(frozen=True)
class Figure:
    """One number of a check; `passed` is None where it is only reported."""

    name: str
    measured: Any
    needed: str = ""
    passed: bool | None = None


@dataclass
class Check:
    """Figures under way. `title` says what is measured and how."""

    name: str
    title: str
    seed: int = 0
    quick: bool = False
    figures: list[Figure] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    def report(self, name: str, measured: Any) -> None:
        """A number that nothing is asked of."""
        self.figures.append(Figure(name, _plain(measured)))

    def at_most(self, name: str, measured: float, limit: float) -> None:
        self.figures.append(Figure(name, _plain(measured), f"≤ {shown(limit)}", bool(measured <= limit)))

    def at_least(self, name: str, measured: float, limit: float) -> None:
        self.figures.append(Figure(name, _plain(measured), f"≥ {shown(limit)}", bool(measured >= limit)))

    def holds(self, name: str, measured: Any, needed: str, passed: bool) -> None:
        self.figures.append(Figure(name, _plain(measured), needed, bool(passed)))

    def remark(self, sentence: str) -> None:
        """Something to read below the figures."""
        self.notes.setdefault("remarks", []).append(sentence)

    def finish(self) -> int:
        """Print, write unless the run was a quick one, and give the exit status: 1 if a figure falls short."""
        passed = all(figure.passed is not False for figure in self.figures)
        print(self.title)
        for figure in self.figures:
            verdict = {True: "ok", False: "FALLS SHORT", None: ""}[figure.passed]
            print(f"  {figure.name:<58} {shown(figure.measured):>14}  {figure.needed:<12} {verdict}")
        if not self.quick:
            RESULTS.mkdir(parents=True, exist_ok=True)
            file(self.name).write_text(_text(self._row() | {"passed": passed}))
        return 0 if passed else 1

    def _row(self) -> dict[str, Any]:
        return {
            "check": self.name,
            "title": self.title,
            "command": f"python -m experiments.checks.{self.name}",
            "seed": self.seed,
            "load": [round(load, 2) for load in os.getloadavg()],
            **environment(),
            "figures": [asdict(figure) for figure in self.figures],
            "notes": self.notes,
        }


def file(name: str) -> Path:
    """Where a check's result is kept."""
    return RESULTS / f"{name}.json"


def quick(description: str | None, arguments: list[str] | None = None) -> bool:
    """Whether --quick was asked for."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="a small version, to see that it works")
    return bool(parser.parse_args(arguments).quick)


def shown(value: Any) -> str:
    """A figure as a person reads it."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("e-0", "e-")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _text(row: dict[str, Any]) -> str:
    """JSON with one entry a line, lists of plain values in one line each."""
    text = json.dumps(row, indent=1, ensure_ascii=False)
    return re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), text) + "\n"


def leave(check: Check) -> None:
    sys.exit(check.finish())


def peak_memory() -> int:
    """Bytes that this process has held at most."""
    line = next(
        line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def standardised(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns that vary, each with mean 0 and deviation 1, over the root of their number; regression targets too."""
    X = X[:, X.std(axis=0) > 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0) / np.sqrt(X.shape[1])
    return X, (y - y.mean()) / y.std() if y.dtype.kind == "f" else y


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    from sklearn.datasets import load_breast_cancer

    return standardised(*load_breast_cancer(return_X_y=True))
