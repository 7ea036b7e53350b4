"""What a run leaves behind: its trace and its report. Pure data."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.errors import DataError
from colonnade.job import Job
from colonnade.privacy.exposure import Finding

Array = npt.NDArray[Any]
Frame = tuple[float, str, str, bytes]
"""Seconds, sender, receiver and the frame as encoded, before TLS."""

COLUMNS: dict[str, type] = {
    "seconds": np.float64,
    "rounds": np.int64,
    "rows": np.int64,
    "steps": np.int64,
    "messages": np.int64,
    "bytes": np.int64,
    "objective": np.float64,
}
"""Columns of a trace. All but seconds and objective count from the start of the run."""

OUTCOMES = ("converged", "budget", "diverged", "peer lost", "refused", "interrupted")


class Trace:
    """Rows of what happened, one array a column: `trace["objective"]`, NaN where it is unknown."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Mapping[str, Sequence[float] | Array]) -> None:
        if set(columns) != set(COLUMNS):
            raise DataError(f"a trace has the columns {', '.join(COLUMNS)}; here are {', '.join(columns)}")
        self._columns: dict[str, Array] = {
            name: np.array(columns[name], dtype=kind) for name, kind in COLUMNS.items()
        }
        if len({column.shape for column in self._columns.values()}) != 1 or self["rows"].ndim != 1:
            raise DataError("the columns of a trace are flat and equally long")

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[float]]) -> Trace:
        """From tuples in the order of `COLUMNS`."""
        turned = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
        return cls(dict(zip(COLUMNS, turned, strict=True)))

    def __getitem__(self, name: str) -> Array:
        return self._columns[name]

    def __len__(self) -> int:
        return len(self._columns["rows"])

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows: {', '.join(COLUMNS)})"

    def passes(self, rows: int) -> npt.NDArray[np.float64]:
        """Rows asked for, all requesters together, over the rows of the table."""
        passed: npt.NDArray[np.float64] = self["rows"] / rows
        return passed

    def to_numpy(self) -> dict[str, Array]:
        return {name: column.copy() for name, column in self._columns.items()}

    def to_pandas(self) -> Any:
        import pandas

        return pandas.DataFrame(self.to_numpy())

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(self._columns), path)

    def to_bytes(self) -> bytes:
        """JSON with one list a column; equal traces give equal bytes. What is not finite becomes null."""
        return msgspec.json.encode({name: column.tolist() for name, column in self._columns.items()})

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        text = self.to_bytes()
        if path is not None:
            Path(path).write_bytes(text)
        return text.decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Trace:
        columns = msgspec.json.decode(text, type=dict[str, list[int | float | None]])
        return cls({name: unnull(values) for name, values in columns.items()})


def unnull(values: list[float | None]) -> list[float]:
    return [np.nan if value is None else value for value in values]


def environment() -> dict[str, str]:
    """What ran, to stand beside every result."""
    return {
        "colonnade": version("colonnade"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
    }


@dataclass(frozen=True, kw_only=True, eq=False)
class Report:
    """All that is known once a run has ended."""

    job: Job
    chosen: dict[str, Any]
    """What every `auto` became."""
    world: str
    world_settings: dict[str, Any] = field(default_factory=dict)
    rows: int
    columns: dict[str, list[str]]
    """Names of the columns each party holds, in the order of its weights."""
    classes: list[Any] | None = None
    trace: Trace
    weights: dict[str, npt.NDArray[np.float64]]
    """(columns,) or (columns, classes) a party, in the order of the blocks."""
    intercept: float | npt.NDArray[np.float64]
    outcome: str
    detail: str = ""
    """One sentence that says why the run ended."""
    objective: float
    certificate: float | None = None
    """The objective is at most this far above its optimum."""
    seconds: float
    exposure: list[Finding] = field(default_factory=list)
    """Who learnt what about whom."""
    workload: dict[str, dict[str, float]] = field(default_factory=dict)
    """Seconds computing, communicating and waiting, and rounds, messages, bytes sent, a party."""
    received: dict[str, dict[str, int]] = field(default_factory=dict)
    """What each party learnt, counted."""
    transcript: list[Frame] | None = None
    reference: dict[str, Any] | None = None
    """What to compare with, filled in by callers: `optimum`, the pooled optimum; `scores`, {name: number}."""
    versions: dict[str, str] = field(default_factory=environment)

    @property
    def parties(self) -> list[str]:
        return list(self.weights)

    @property
    def coordinator(self) -> str:
        """The first label party, which holds the intercept."""
        return str((self.chosen.get("labels") or self.parties)[0])

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Keep the report in a folder. One that is there already is replaced once the new one is complete."""
        from colonnade import archive

        return archive.write(self, folder)


def load(folder: str | os.PathLike[str]) -> Report:
    """Read what `Report.save` wrote."""
    from colonnade import archive

    return archive.read(folder)
