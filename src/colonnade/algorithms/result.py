"""What one party hands back at the end, and its form on a pipe (no pickle)."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np


class Note(msgspec.Struct, frozen=True, array_like=True):
    """A party at one instant: its counters, and its weights then (kept beside, by number)."""

    seconds: float
    rounds: int
    rows: int
    steps: int
    messages: int
    bytes: int
    weights: int


class Result(msgspec.Struct, kw_only=True):
    """One party's side of a run."""

    party: str
    outcome: str
    detail: str
    weights: np.ndarray[Any, Any]
    intercept: np.ndarray[Any, Any]
    notes: list[Note]
    noted: np.ndarray[Any, Any]
    """Weights that notes refer to, one row each."""
    noted_intercepts: np.ndarray[Any, Any]
    certificate: float | None
    step: float
    started: float
    finished: float
    computing: float
    communicating: float
    received: dict[str, int]


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "shape": value.shape, "data": np.ascontiguousarray(value).tobytes()}
    raise TypeError(f"{type(value).__name__} cannot be sent")


def _unpack(kind: type, value: Any) -> Any:
    dtype = np.dtype(value["dtype"])
    if dtype.hasobject:
        raise TypeError("arrays of objects are not read")
    return np.frombuffer(value["data"], dtype=dtype).reshape(value["shape"]).copy()


def encode(result: Result) -> bytes:
    return msgspec.msgpack.encode(result, enc_hook=_pack)


def decode(payload: bytes) -> Result:
    return msgspec.msgpack.decode(payload, type=Result, dec_hook=_unpack)
