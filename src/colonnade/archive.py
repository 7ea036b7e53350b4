"""The folder that a report is kept in: JSON, and arrays that numpy alone can read. Nothing is pickled."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from colonnade.errors import DataError
from colonnade.job import Job, check_names
from colonnade.privacy.exposure import Finding
from colonnade.record import Frame, Report, Trace, unnull

Array = npt.NDArray[Any]

_OURS = {"report.json", "trace.json", "transcript.npz", "models", "report.html"}
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


def write(report: Report, folder: str | os.PathLike[str]) -> Path:
    """Write the report beside `folder`, then put it in its place, so that no half of one is ever there."""
    with _beside(folder) as (target, fresh):
        _put_all(report, fresh)
        _swap(fresh, target)
    return target


def check_writable(folder: str | os.PathLike[str]) -> None:
    """Refuse before a run the folder that `write` would refuse after it."""
    with _beside(folder):
        pass


@contextlib.contextmanager
def _beside(folder: str | os.PathLike[str]) -> Iterator[tuple[Path, Path]]:
    """Where a report goes, and a new folder beside it, which is gone afterwards."""
    target = Path(folder).absolute()
    try:
        _refuse_others_files(target)
        fresh = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
        fresh.mkdir(parents=True)
        try:
            yield target, fresh
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    except OSError as error:
        raise DataError(
            f"the report could not be written to {folder} ({error.strerror}): "
            "free some space or name another folder"
        ) from error


def read(folder: str | os.PathLike[str]) -> Report:
    path = Path(folder)
    if not (path / "report.json").is_file():
        raise DataError(f"{folder} holds no report.json: name the folder that a run was saved to")
    try:
        return _read_all(path)
    except (
        OSError,
        ValueError,
        TypeError,
        KeyError,
        EOFError,
        zipfile.BadZipFile,
        msgspec.MsgspecError,
    ) as error:
        raise DataError(f"the report in {folder} cannot be read ({error}): save or run it again") from error


def _put_all(report: Report, folder: Path) -> None:
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


def _read_all(folder: Path) -> Report:
    head = msgspec.json.decode((folder / "report.json").read_bytes())
    parties: list[str] = head.pop("parties")
    check_names(parties)
    job, intercept = msgspec.convert(head.pop("job"), Job), head.pop("intercept")
    head["exposure"] = msgspec.convert(head["exposure"], list[Finding])
    weights = {party: _unpacked(folder / "models" / f"{party}.npz")["weights"] for party in parties}
    frames = folder / "transcript.npz"
    head["objective"] = np.nan if head["objective"] is None else head["objective"]
    return Report(
        **{name: head[name] for name in _PLAIN},
        job=job,
        intercept=np.array(unnull(intercept)) if isinstance(intercept, list) else unnull([intercept])[0],
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
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as arrays:
        return dict(arrays)


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
