"""Give Me Some Credit, rows without a gap: age one-hot (83 values), the other nine columns standardised."""

from __future__ import annotations

import numpy as np

from experiments.datasets import Dataset, tables

LABEL = "SeriousDlqin2yrs"


def complete_rows() -> dict[str, np.ndarray]:
    """The table's columns without the row number, rows with a gap left out."""
    table = list(tables.columns("give_me_some_credit/cs-training.csv.xz").items())[1:]
    whole = np.logical_and.reduce([~np.isnan(values.astype(float)) for _, values in table])
    return {name: values[whole].astype(float) for name, values in table}


def read(full: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Nine standardised columns, then age; labels -1 and 1."""
    table = complete_rows()
    y = table.pop(LABEL)
    age = table.pop("age")
    return np.hstack([tables.standardise(np.column_stack(list(table.values()))), tables.one_hot(age)]), (
        tables.signs(y > 0)
    )


DATASET = Dataset(
    name="give_me_some_credit",
    stands_for="GiveMeSomeCredit",
    loss="logistic",
    parties=4,
    read=read,
    scaling="mean",
    note="the set itself",
)
