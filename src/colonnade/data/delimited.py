"""CSV tables: a header, perhaps an id column, perhaps a label column. pyarrow reads them."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from colonnade.data.files import opened
from colonnade.data.tables import Column, Table, Texts, pick
from colonnade.errors import DataError, nearest

MISSING = ("", "NA", "NaN", "nan", "NULL", "null")
"""What counts as an empty cell of a CSV table."""
NOT_UTF8 = "{}: the text is not UTF-8: save the table as UTF-8"


def read_csv(
    path: Path, id: str | None, label: str | None, columns: Sequence[str | int] | None, delimiter: str = ","
) -> Table:
    header = _header(path, delimiter)
    _refuse_other_delimiter(header, path, delimiter)
    for role, name in (("id", id), ("label", label)):
        if name is not None and name not in header:
            raise DataError(f"{path}: no {role} column {name!r}: {nearest(name, header)}")
    features = [name for name in header if name not in (id, label)]
    if columns is None and "" in features:
        raise DataError(
            f"{path}: column {header.index('') + 1} has no name (a row index that was saved too?): "
            "name it, or list the columns to train on"
        )
    names = tuple(features) if columns is None else pick(columns, features, str(path))
    wanted = [name for name in (id, label) if name is not None]
    arrow = _arrow_table(path, delimiter, [*wanted, *names], text=[] if id is None else [id])
    return Table(
        source=str(path),
        rows=arrow.num_rows,
        names=names,
        cells={name: _column(arrow[name], path) for name in names},
        ids=None if id is None else _ids(arrow[id], path, id),
        labels=None if label is None else _labels(_column(arrow[label], path), path, label),
    )


def read_tsv(path: Path, id: str | None, label: str | None, columns: Sequence[str | int] | None) -> Table:
    return read_csv(path, id, label, columns, delimiter="\t")


def _header(path: Path, delimiter: str) -> list[str]:
    with opened(path) as stream:
        try:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
            header = next(csv.reader(text, delimiter=delimiter), [])
        except UnicodeDecodeError:
            raise DataError(NOT_UTF8.format(path)) from None
    if not header:
        raise DataError(f"{path}: the file is empty: it needs a header line and rows")
    for name, count in Counter(header).items():
        if count > 1:
            raise DataError(f"{path}: the header has {count} columns called {name!r}: give each its own name")
    return header


def _refuse_other_delimiter(header: list[str], path: Path, delimiter: str) -> None:
    if len(header) > 1:
        return
    for other, shown in ((";", "';'"), ("\t", "tabs"), (",", "','")):
        if other != delimiter and other in header[0]:
            raise DataError(
                f"{path}: the cells are separated by {shown}: save the table with ',' (.csv) or tabs (.tsv)"
            )


def _arrow_table(path: Path, delimiter: str, columns: list[str], text: list[str]) -> Any:
    """The file's wanted columns. One thread: it alone knows the number of a bad line."""
    import pyarrow
    from pyarrow import csv as arrow_csv

    bad: list[Any] = []

    def refuse(row: Any) -> str:
        bad.append(row)
        return "error"

    try:
        with opened(path) as stream:
            return arrow_csv.read_csv(
                stream,
                arrow_csv.ReadOptions(use_threads=False),
                arrow_csv.ParseOptions(
                    delimiter=delimiter, newlines_in_values=True, invalid_row_handler=refuse
                ),
                arrow_csv.ConvertOptions(
                    include_columns=columns,
                    column_types=dict.fromkeys(text, pyarrow.string()),
                    null_values=list(MISSING),
                    strings_can_be_null=True,
                ),
            )
    except pyarrow.ArrowInvalid as error:
        if bad:
            raise DataError(_bad_line(path, bad[-1])) from None
        reason = str(error).splitlines()[0].strip().rstrip(".:")
        raise DataError(f"{path}: not a readable table ({reason}): correct the file") from None


def _bad_line(path: Path, row: Any) -> str:
    return (
        f"{path}, line {row.number}: {row.actual_columns} cells, the header has {row.expected_columns}: "
        "correct the line, or put cells that hold the delimiter in quotes"
    )


def _column(values: Any, path: Path) -> Column:
    import pyarrow

    if pyarrow.types.is_integer(values.type) or pyarrow.types.is_floating(values.type):
        return cast("NDArray[np.float64]", values.cast(pyarrow.float64(), safe=False).to_numpy())
    if pyarrow.types.is_boolean(values.type) or pyarrow.types.is_null(values.type):
        return cast("NDArray[np.float64]", values.cast(pyarrow.uint8()).cast(pyarrow.float64()).to_numpy())
    if pyarrow.types.is_binary(values.type):
        raise DataError(NOT_UTF8.format(path))
    coded = values.cast(pyarrow.string()).combine_chunks().dictionary_encode()
    if isinstance(coded, pyarrow.ChunkedArray):
        coded = coded.combine_chunks()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Texts(codes.astype(np.int32), tuple(coded.dictionary.to_pylist()))


def _ids(values: Any, path: Path, name: str) -> list[str]:
    if values.null_count:
        raise DataError(f"{path}: {values.null_count} rows have an empty id {name!r}: give every row an id")
    return cast("list[str]", values.to_pylist())


def _labels(column: Column, path: Path, name: str) -> NDArray[Any]:
    empty = column.codes < 0 if isinstance(column, Texts) else np.isnan(column)
    if empty.any():
        raise DataError(
            f"{path}: label {name!r} is empty in {int(empty.sum())} rows: leave them out for all parties"
        )
    return np.array(column.values)[column.codes] if isinstance(column, Texts) else column
