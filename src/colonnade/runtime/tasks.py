"""What the launcher and its party processes tell each other. Arrays travel in an unnamed private file."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from colonnade.errors import ColonnadeError, ConfigurationError
from colonnade.job import Plan
from colonnade.wire.codec import FRAME_PREFIX

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[Any]

ALIGNMENT = 64


class Section(msgspec.Struct, frozen=True):
    """Where one array lies in the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int


class Task(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """To a new process: which party it is, of which job, and what it holds."""

    entry: str
    name: str
    plan: Plan
    certificate: str
    private_key: str
    certificates: dict[str, str]
    addresses: dict[str, tuple[str, int]]
    shape: tuple[int, int]
    sections: dict[str, Section]


class Interrupt(msgspec.Struct, frozen=True, tag=True):
    """To a party: Ctrl-C; end, and send what was reached."""


class Leave(msgspec.Struct, frozen=True, tag=True):
    """To a party: everybody has ended; close the links and exit."""


class Said(msgspec.Struct, frozen=True, tag=True):
    """From a party: something for whoever watches."""

    event: dict[str, Any]


class Finished(msgspec.Struct, frozen=True, tag=True):
    """From a party: its result."""

    payload: bytes


class Failed(msgspec.Struct, frozen=True, tag=True):
    """From a party: why it has none; a bug brings its traceback."""

    reason: str
    traceback: str = ""


Order = Task | Interrupt | Leave
News = Said | Finished | Failed

read_order = msgspec.msgpack.Decoder(Order).decode
read_news = msgspec.msgpack.Decoder(News).decode


def framed(message: Order | News) -> bytes:
    payload = msgspec.msgpack.encode(message, enc_hook=_plain_number)
    return len(payload).to_bytes(FRAME_PREFIX, "little") + payload


def _plain_number(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be told to the launcher")


def pack(block: Array | csr_array, labels: Array | None, ids: bytes) -> tuple[IO[bytes], dict[str, Section]]:
    """A party's arrays in a file that has no name, so that it is gone with its last reader in all cases."""
    arrays = {"ids": np.frombuffer(ids, np.uint8)}
    if labels is not None:
        arrays["labels"] = np.asarray(labels)
    if isinstance(block, np.ndarray):
        arrays["dense"] = block
    else:
        arrays |= {"data": block.data, "indices": block.indices, "indptr": block.indptr}
    file = tempfile.TemporaryFile(prefix="colonnade-")  # noqa: SIM115 - the caller closes it
    try:
        sections = {name: _append(file, name, array) for name, array in arrays.items()}
        file.flush()
    except BaseException as error:
        file.close()
        if not isinstance(error, OSError):
            raise
        raise ColonnadeError(
            f"cannot hand a block over in {tempfile.gettempdir()} ({error.strerror or error}): "
            "free some space there, or set TMPDIR to a folder that has it"
        ) from None
    return file, sections


def _append(file: IO[bytes], name: str, array: Array) -> Section:
    if array.dtype.hasobject:
        raise ConfigurationError(f"{name} of dtype {array.dtype}: only numbers can be handed to a process")
    offset = file.seek(-file.tell() % ALIGNMENT, 1)
    file.write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
    return Section(array.dtype.str, array.shape, offset)


def unpack(file: IO[bytes], task: Task) -> tuple[Array | csr_array, Array | None, bytes]:
    """The block, labels and ids of a task; the block is a view of the file, read when touched."""
    arrays = {name: _map(file, section) for name, section in task.sections.items()}
    labels = np.array(arrays["labels"]) if "labels" in arrays else None
    return _block(arrays, task.shape), labels, arrays["ids"].tobytes()


def _map(file: IO[bytes], section: Section) -> Array:
    dtype = np.dtype(section.dtype)
    if 0 in section.shape:
        return np.empty(section.shape, dtype)
    return np.asarray(np.memmap(file, dtype, "r", section.offset, section.shape))


def _block(arrays: Mapping[str, Array], shape: tuple[int, int]) -> Array | csr_array:
    if "dense" in arrays:
        return arrays["dense"]
    from scipy.sparse import csr_array

    return csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape, copy=False)
