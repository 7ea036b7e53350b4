"""UCI credit card defaults, all 30,000 rows: 14 numeric columns standardised, nine categoricals one-hot."""

from __future__ import annotations

import numpy as np

from experiments.datasets import Dataset, tables

CATEGORICAL = {"SEX", "EDUCATION", "MARRIAGE", "PAY_0", "PAY_2", "PAY_3", "PAY_4", "PAY_5", "PAY_6"}
LABEL = "default.payment.next.month"


def read(full: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Columns in the file's order, labels -1 and 1."""
    table = tables.columns("uci_credit_card/UCI_Credit_Card.csv.xz")
    parts = [
        tables.one_hot(values) if name in CATEGORICAL else tables.standardise(values[:, None].astype(float))
        for name, values in table.items()
        if name not in ("ID", LABEL)
    ]
    return np.hstack(parts), tables.signs(table[LABEL] > 0)


DATASET = Dataset(
    name="credit91",
    stands_for="UCICreditCard",
    loss="logistic",
    parties=4,
    read=read,
    scaling="mean",
    all_rows=True,
    note="the set itself, SEX one-hot too (91 columns, the papers' 90)",
)
