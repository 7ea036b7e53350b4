"""From a table's columns to the numbers of a block: what `[prepare]` asks for.

`fit` learns means, deviations and categories from a table and returns plain data, which a model file can
carry; `apply` turns any table with the same columns into numbers with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from colonnade.data.assembly import (
    Matrix,
    Numbers,
    OneHot,
    Piece,
    assemble,
    root_mean_square_length,
    unit_rows,
)
from colonnade.data.tables import Column, Table, Texts
from colonnade.errors import ConfigurationError, DataError, nearest

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

NO_CATEGORY = "(missing)"

Recipe = dict[str, Any]


def _says(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class Prepare(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[prepare]` of a party file: how its table becomes numbers. Nothing of it leaves the party."""

    standardise: Annotated[
        bool | tuple[str, ...], _says("numeric columns to mean 0 and deviation 1: all, none, or a list")
    ] = False
    one_hot: Annotated[
        tuple[str, ...] | Literal["auto"],
        _says('columns to split into one 0/1 column a category; "auto": all text'),
    ] = ()
    missing: Annotated[
        Literal["refuse", "mean", "zero", "category"],
        _says(
            "empty cells: refuse; mean or zero: fill numbers so and mark them in a 0/1 column; category: "
            "numbers refused; all but refuse give one-hot columns a category for them"
        ),
    ] = "refuse"
    drop: Annotated[tuple[str, ...], _says("columns to leave out")] = ()
    scale_rows: Annotated[
        Literal["none", "unit", "mean"],
        _says("unit: every row to length 1; mean: the block divided by its root mean square row length"),
    ] = "none"
    layout: Annotated[
        Literal["auto", "dense", "sparse"], _says("how the block is stored; auto: sparse when mostly zero")
    ] = "auto"


@dataclass(frozen=True)
class Prepared:
    """A block's numbers and the names of its columns."""

    names: tuple[str, ...]
    values: Matrix


def fit(table: Table, prepare: Prepare) -> Recipe:
    """Learn the preparation from this table."""
    _check_names(table, prepare)
    names = [name for name in table.names if name not in set(prepare.drop)]
    if not names:
        raise DataError(f"{table.source}: no column is left to train on: name columns, or drop fewer")
    if isinstance(table.cells, dict):
        steps = [_fit_column(table, name, table.cells[name], prepare) for name in names]
    else:
        _refuse_filling(table, prepare)
        steps = []
    recipe: Recipe = {
        "columns": names,
        "steps": steps,
        "layout": prepare.layout,
        "scale_rows": prepare.scale_rows,
        "divisor": 1.0,
    }
    if prepare.scale_rows == "mean":
        recipe["divisor"] = root_mean_square_length(apply(recipe, table).values)
    return recipe


def apply(recipe: Recipe, table: Table) -> Prepared:
    """The table's numbers, prepared as `fit` learnt."""
    table = table.select(recipe["columns"])
    if isinstance(table.cells, dict):
        columns = [(step, table.cells[step["name"]]) for step in recipe["steps"]]
        pieces = [piece for step, column in columns for piece in _pieces(table, step, column)]
        names = tuple(name for piece in pieces for name in piece.names)
        values = assemble(pieces, table.rows, recipe["layout"])
    else:
        names, values = table.names, _finite(table)
        values = values.toarray() if recipe["layout"] == "dense" else values
    if recipe["scale_rows"] == "unit":
        values = unit_rows(values)
    return Prepared(names, values if recipe["divisor"] == 1.0 else values / recipe["divisor"])


# ------------------------------------------------------------------ learn


def _check_names(table: Table, prepare: Prepare) -> None:
    known = set(table.names)
    for field in ("drop", "one_hot", "standardise"):
        for name in _listed(getattr(prepare, field)):
            if name not in known:
                hint = nearest(name, table.names[:1000])
                raise ConfigurationError(
                    f"{table.source}: {field} names {name!r}, which is no column: {hint}"
                )
    both = set(_listed(prepare.one_hot)) & set(_listed(prepare.standardise))
    if both:
        raise ConfigurationError(
            f"{table.source}: column {min(both)!r} is in one_hot and in standardise: choose one"
        )


def _listed(value: object) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else ()


def _refuse_filling(table: Table, prepare: Prepare) -> None:
    for field in ("standardise", "one_hot", "missing"):
        if getattr(prepare, field) != getattr(Prepare(), field):
            raise ConfigurationError(
                f"{table.source}: {field} would fill up a libsvm table: leave it out, or use scale_rows"
            )


def _fit_column(table: Table, name: str, column: Column, prepare: Prepare) -> Recipe:
    hot = isinstance(column, Texts) if prepare.one_hot == "auto" else name in prepare.one_hot
    if hot:
        return _fit_categories(table, name, column, prepare)
    if isinstance(column, Texts):
        raise DataError(
            f"{table.source}: column {name!r} is not numeric (for example {_example(column)!r}): "
            "add it to one_hot under [prepare], or to drop"
        )
    return _fit_numbers(table, name, column, prepare)


def _example(column: Texts) -> str:
    """A value that is no number."""
    for value in column.values:
        try:
            float(value)
        except ValueError:
            return value
    return column.values[0]


def _fit_categories(table: Table, name: str, column: Column, prepare: Prepare) -> Recipe:
    texts = column if isinstance(column, Texts) else _as_texts(table, name, column)
    empty = int((texts.codes < 0).sum())
    if empty and prepare.missing == "refuse":
        raise DataError(
            f"{table.source}: column {name!r} has {empty} empty cells: "
            'set missing = "category" under [prepare], or drop the column'
        )
    if not texts.values:
        raise DataError(f"{table.source}: column {name!r} is empty in every row: drop it under [prepare]")
    categories = sorted(texts.values, key=str if isinstance(column, Texts) else float)
    return {"name": name, "categories": categories, "missing": empty > 0}


def _fit_numbers(table: Table, name: str, column: NDArray[np.float64], prepare: Prepare) -> Recipe:
    _refuse_infinite(table, name, column)
    empty = np.isnan(column)
    count = int(empty.sum())
    if count == len(column):
        raise DataError(f"{table.source}: column {name!r} is empty in every row: drop it under [prepare]")
    if count and prepare.missing not in ("mean", "zero"):
        raise DataError(
            f"{table.source}: column {name!r} has {count} empty or NaN cells: "
            'set missing = "mean" or "zero" under [prepare], or drop the column'
        )
    fill = float(column[~empty].mean()) if prepare.missing == "mean" else 0.0
    numbers = np.where(empty, fill, column)
    wanted = prepare.standardise
    standardise = wanted if isinstance(wanted, bool) else name in wanted
    return {
        "name": name,
        "fill": fill,
        "marked": count > 0,
        "shift": float(numbers.mean()) if standardise else 0.0,
        "divide": (_deviation(numbers) or 1.0) if standardise else 1.0,
    }


def _deviation(numbers: NDArray[np.float64]) -> float:
    """0 for a constant column, whatever rounding makes of its mean."""
    return float(numbers.std()) if np.ptp(numbers) > 0 else 0.0


def _refuse_infinite(table: Table, name: str, column: NDArray[np.float64]) -> None:
    infinite = int(np.isinf(column).sum())
    if infinite:
        raise DataError(f"{table.source}: column {name!r} has {infinite} infinite cells: correct them")


def _as_texts(table: Table, name: str, column: NDArray[np.float64]) -> Texts:
    """A numeric column as categories, whole numbers without a point."""
    _refuse_infinite(table, name, column)
    values, codes = np.unique(column, return_inverse=True)
    present = values[~np.isnan(values)]  # NaN sorts last, once
    codes = np.where(codes < len(present), codes, -1)
    texts = (str(int(value)) if value.is_integer() else repr(value) for value in present.tolist())
    return Texts(codes.astype(np.int32), tuple(texts))


# ------------------------------------------------------------------ apply


def _pieces(table: Table, step: Recipe, column: Column) -> list[Piece]:
    name = step["name"]
    if "categories" in step:
        return [_one_hot(table, step, column)]
    if isinstance(column, Texts):
        raise DataError(f"{table.source}: column {name!r} is not numeric ({_example(column)!r}): correct it")
    _refuse_infinite(table, name, column)
    empty = np.isnan(column)
    numbers = Numbers(name, (np.where(empty, step["fill"], column) - step["shift"]) / step["divide"])
    mark = OneHot((f"{name}={NO_CATEGORY}",), np.where(empty, 0, -1).astype(np.int32))
    return [numbers, mark] if step["marked"] else [numbers]


def _one_hot(table: Table, step: Recipe, column: Column) -> OneHot:
    """Categories that `fit` did not meet get no 1 anywhere."""
    texts = column if isinstance(column, Texts) else _as_texts(table, step["name"], column)
    known = {value: code for code, value in enumerate(step["categories"])}
    missing = len(known) if step["missing"] else -1
    codes = np.array([*(known.get(value, -1) for value in texts.values), missing], dtype=np.int32)
    labels = [*step["categories"], *([NO_CATEGORY] if step["missing"] else [])]
    return OneHot(tuple(f"{step['name']}={label}" for label in labels), codes[texts.codes])


def _finite(table: Table) -> csr_matrix:
    matrix = cast("csr_matrix", table.cells)
    bad = np.flatnonzero(~np.isfinite(matrix.data))
    if len(bad):
        column = matrix.indices[bad[0]]
        count = int((matrix.indices[bad] == column).sum())
        raise DataError(
            f"{table.source}: column {table.names[column]!r} has {count} NaN or infinite cells: correct them"
        )
    return matrix
