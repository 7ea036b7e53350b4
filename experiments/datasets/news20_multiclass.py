"""20 Newsgroups, 20 classes, words."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.datasets import Dataset, tables


def read(full: bool = False) -> tuple[Any, np.ndarray]:
    """Words by tf-idf; the group is the class."""
    table = tables.columns("news20/news20_words.tsv.xz")
    return tables.tfidf(table["words"]), table["group"].astype(str)


DATASET = Dataset(
    name="news20_multiclass",
    stands_for="news20 (20 classes)",
    loss="multinomial",
    parties=8,
    read=read,
    note="built again from the same messages: words",
)
