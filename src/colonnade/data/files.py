"""Files as streams of bytes, decompressed; what goes wrong is one sentence."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from colonnade.errors import DataError

OPENERS: dict[str, Callable[[Path, str], Any]] = {".xz": lzma.open, ".gz": gzip.open}
"""How a compressed file is opened, by its suffix."""


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """The file's bytes, decompressed; whatever the file system or the archive refuses is a DataError."""
    try:
        with cast(BinaryIO, OPENERS.get(path.suffix, open)(path, "rb")) as stream:
            yield stream
    except FileNotFoundError:
        raise DataError(f"{path}: no such file: check the name of the table") from None
    except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read ({error}): check the file") from None
