"""What a run leaves behind: its trace and its report. Pure data, and the folder it is kept in."""

from __future__ import annotations

import io
import os
import platform
import secrets
import shutil
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

_OURS = {"report.json", "trace.json", "transcript.npz", "models", "report.html"}


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
        return cls({name: _unnull(values) for name, values in columns.items()})


def _unnull(values: list[float | None]) -> list[float]:
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
        """Write the report. One that is there already is replaced once the new one is complete."""
        target = Path(folder).absolute()
        _refuse_others_files(target)
        try:
            fresh = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
            fresh.mkdir(parents=True)
            try:
                _write(self, fresh)
                _swap(fresh, target)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
        except OSError as error:
            raise DataError(
                f"the report could not be written to {folder} ({error.strerror}): "
                "free some space or name another folder"
            ) from error
        return target


def load(folder: str | os.PathLike[str]) -> Report:
    """Read what `Report.save` wrote."""
    path = Path(folder)
    if not (path / "report.json").is_file():
        raise DataError(f"{folder} holds no report.json: name the folder that a run was saved to")
    try:
        return _read(path)
    except (OSError, ValueError, KeyError, EOFError, msgspec.MsgspecError) as error:
        raise DataError(f"the report in {folder} cannot be read ({error}): save or run it again") from error


_PLAIN = (
    "chosen",
    "world",
    "world_settings",
    "rows",
    "columns",
    "classes",
    "outcome",
    "detail",
    "objective",
    "certificate",
    "seconds",
    "exposure",
    "workload",
    "received",
    "reference",
    "versions",
)


def _write(report: Report, folder: Path) -> None:
    head = {name: getattr(report, name) for name in _PLAIN}
    head["world_settings"] = _spelled(report.world_settings)
    head |= {"job": report.job, "intercept": report.intercept, "parties": report.parties}
    text = msgspec.json.encode(head, enc_hook=_builtin)
    _put(folder / "report.json", msgspec.json.format(text, indent=1))
    _put(folder / "trace.json", report.trace.to_bytes())
    (folder / "models").mkdir()
    for party in report.parties:
        _put(folder / "models" / f"{party}.npz", _packed(_model(report, party)))
    if report.transcript is not None:
        _put(folder / "transcript.npz", _packed(_frames(report.transcript)))


def _read(folder: Path) -> Report:
    head = msgspec.json.decode((folder / "report.json").read_bytes())
    parties: list[str] = head.pop("parties")
    job, intercept = msgspec.convert(head.pop("job"), Job), head.pop("intercept")
    head["exposure"] = msgspec.convert(head["exposure"], list[Finding])
    weights = {party: _unpacked(folder / "models" / f"{party}.npz")["weights"] for party in parties}
    frames = folder / "transcript.npz"
    head["objective"] = np.nan if head["objective"] is None else head["objective"]
    return Report(
        **{name: head[name] for name in _PLAIN},
        job=job,
        intercept=np.array(_unnull(intercept)) if isinstance(intercept, list) else _unnull([intercept])[0],
        weights=weights,
        trace=Trace.from_json((folder / "trace.json").read_bytes()),
        transcript=_unframed(_unpacked(frames)) if frames.exists() else None,
    )


def _model(report: Report, party: str) -> dict[str, Array]:
    """One party's own block, readable with numpy alone; the coordinator's has the intercept too."""
    header = {
        "format": "colonnade model 1",
        "party": party,
        "loss": report.job.loss,
        "job": report.job.digest().hex(),
        "columns": report.columns.get(party, []),
        "classes": report.classes,
    }
    text = msgspec.json.encode(header, enc_hook=_builtin).decode()
    model: dict[str, Array] = {"header": np.array(text), "weights": report.weights[party]}
    if party == report.coordinator:
        model["intercept"] = np.asarray(report.intercept, dtype=np.float64)
    return model


def _frames(transcript: list[Frame]) -> dict[str, Array]:
    seconds, senders, receivers, frames = zip(*transcript, strict=True) if transcript else ((), (), (), ())
    return {
        "seconds": np.array(seconds, dtype=np.float64),
        "senders": np.array(senders, dtype=np.str_),
        "receivers": np.array(receivers, dtype=np.str_),
        "lengths": np.array([len(frame) for frame in frames], dtype=np.int64),
        "frames": np.frombuffer(b"".join(frames), dtype=np.uint8),
    }


def _unframed(arrays: dict[str, Array]) -> list[Frame]:
    ends = np.cumsum(arrays["lengths"]).tolist()
    everything = arrays["frames"].tobytes()
    frames = [everything[end - length : end] for end, length in zip(ends, arrays["lengths"], strict=True)]
    names = arrays["senders"].tolist(), arrays["receivers"].tolist()
    return list(zip(arrays["seconds"].tolist(), *names, frames, strict=True))


def _spelled(value: Any) -> Any:
    """Settings with keys that JSON can take: a pair of parties becomes "sender > receiver"."""
    if isinstance(value, Mapping):
        return {
            " > ".join(key) if isinstance(key, tuple) else key: _spelled(item) for key, item in value.items()
        }
    return [_spelled(item) for item in value] if isinstance(value, (list, tuple)) else value


def _packed(arrays: dict[str, Array]) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def _unpacked(path: Path) -> dict[str, Array]:
    import zipfile

    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
            return dict(arrays)
    except zipfile.BadZipFile as error:
        raise DataError(f"{path.name}: {error}") from error


def _builtin(value: object) -> object:
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} does not belong in a report")


def _put(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _refuse_others_files(target: Path) -> None:
    if target.is_file():
        raise DataError(f"{target} is a file: name a folder for the report")
    others = (
        sorted(entry.name for entry in target.iterdir() if entry.name not in _OURS) if target.exists() else []
    )
    if others:
        raise DataError(f"{target} also holds {others[0]!r}, which saving would lose: name another folder")


def _swap(fresh: Path, target: Path) -> None:
    """Put `fresh` where `target` is; should that fail, the old one stays."""
    if not target.exists():
        os.replace(fresh, target)
        return
    old = fresh.with_name(fresh.name + "-old")
    os.replace(target, old)
    try:
        os.replace(fresh, target)
    except OSError:
        os.replace(old, target)
        raise
    shutil.rmtree(old, ignore_errors=True)
