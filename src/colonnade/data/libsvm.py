"""libsvm tables: one row a line, `label number:value …`, mostly zeros."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from colonnade.data.files import opened
from colonnade.data.tables import Table
from colonnade.errors import DataError


def read_libsvm(path: Path, id: str | None, label: str | None, columns: Sequence[str | int] | None) -> Table:
    """One row a line, `label number:value …`. Columns are named by their numbers; rows have no ids."""
    if id is not None:
        raise DataError(f"{path}: a libsvm file has no id column: leave out id = {id!r}")
    from sklearn.datasets import load_svmlight_file

    with opened(path) as stream:
        try:
            matrix, labels = load_svmlight_file(stream, zero_based=True)
        except (ValueError, OverflowError) as error:
            raise DataError(
                f"{path}{_bad_line(path)}: not a libsvm table ({error}): correct the file"
            ) from None
    matrix.sort_indices()
    first = 0 if matrix.shape[1] == 0 or (matrix.indices == 0).any() else 1  # numbers start at 1, rarely at 0
    names = tuple(map(str, range(first, matrix.shape[1])))
    table = Table(str(path), matrix.shape[0], names, matrix[:, first:], labels=labels if label else None)
    if label and not np.isfinite(labels).all():
        raise DataError(
            f"{path}: {int((~np.isfinite(labels)).sum())} labels are NaN or infinite: correct them"
        )
    return table if columns is None else table.select(columns)


def _bad_line(path: Path) -> str:
    """Where the first line is that does not read as `label number:value …` with rising numbers."""
    with opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            words = line.split(b"#")[0].split()
            try:
                pairs = [(int(word.split(b":")[0]), float(word.split(b":")[1])) for word in words[1:]]
                float(words[0]) if words else None
            except (ValueError, IndexError):
                return f", line {number}"
            places = [place for place, _ in pairs]
            if any(later <= earlier for earlier, later in itertools.pairwise(places)):
                return f", line {number}"
    return ""
