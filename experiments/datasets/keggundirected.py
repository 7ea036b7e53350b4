"""KEGG metabolic networks: 27 columns standardised, a dense regression."""

from __future__ import annotations

import numpy as np

from experiments.datasets import Dataset, tables


def read(full: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """All columns standardised; the last of the file is the target."""
    table = np.column_stack(
        list(tables.columns("keggundirected/keggundirected.csv.xz", header=False).values())
    )
    return tables.standardise(table[:, :-1].astype(float)), table[:, -1].astype(float)


DATASET = Dataset(
    name="keggundirected",
    stands_for="YearPredictionMSD",
    loss="squared",
    parties=4,
    read=read,
    scaling="mean",
    note="27 columns of KEGG networks in place of 90 of audio",
)
