"""Tables from files. A new kind of table is one reader and one line in SOURCES."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from colonnade.data.delimited import read_csv, read_tsv
from colonnade.data.files import OPENERS
from colonnade.data.libsvm import read_libsvm
from colonnade.data.tables import Table
from colonnade.errors import DataError

Reader = Callable[[Path, str | None, str | None, Sequence[str | int] | None], Table]

SOURCES: dict[str, Reader] = {
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".svm": read_libsvm,
    ".libsvm": read_libsvm,
    ".txt": read_libsvm,
}


def read(
    path: Path,
    id: str | None = None,
    label: str | None = None,
    columns: Sequence[str | int] | None = None,
) -> Table:
    """Read a table, all columns but id and label unless `columns` selects. The suffix names the format."""
    inner = path.with_suffix("") if path.suffix in OPENERS else path
    reader = SOURCES.get(inner.suffix)
    if reader is None:
        raise DataError(f"{path}: unknown kind of table {inner.suffix!r}: known are {', '.join(SOURCES)}")
    table = reader(path, id, label, columns)
    if table.rows == 0:
        raise DataError(f"{path}: the table has no rows: give it at least one below the header")
    _refuse_duplicates(table)
    return table


def _refuse_duplicates(table: Table) -> None:
    if table.ids is None or len(set(table.ids)) == table.rows:
        return
    repeated = {name: count for name, count in Counter(table.ids).items() if count > 1}
    name, count = next(iter(repeated.items()))
    others = f" (and {len(repeated) - 1} more ids are repeated)" if len(repeated) > 1 else ""
    raise DataError(f"{table.source}: id {name!r} stands in {count} rows{others}: keep one row an id")
