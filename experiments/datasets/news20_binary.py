"""20 Newsgroups, computers, science and miscellany against the rest; words and word pairs."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.datasets import Dataset, tables


def read(full: bool = False) -> tuple[Any, np.ndarray]:
    """Presence of words and pairs, labels -1 and 1."""
    table = tables.columns("news20/news20_words.tsv.xz")
    positive = np.array([group.startswith(("comp", "sci", "misc")) for group in table["group"]])
    return tables.presence(table["words"], longest=2), tables.signs(positive)


DATASET = Dataset(
    name="news20_binary",
    stands_for="news20",
    loss="logistic",
    parties=8,
    read=read,
    note="built again from the same messages: words and word pairs",
)
