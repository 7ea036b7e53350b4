"""Reuters-21578: documents with a single topic that at least ten have, words."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.datasets import Dataset, tables


def read(full: bool = False) -> tuple[Any, np.ndarray]:
    """Words by tf-idf over the documents kept; the topic is the class."""
    table = tables.columns("reuters21578/reuters_modapte.tsv.xz")
    topics = table["topics"].astype(str)
    single = np.char.find(topics, " ") < 0
    names, which, counts = np.unique(topics[single], return_inverse=True, return_counts=True)
    frequent = counts[which] >= 10
    return tables.tfidf(table["words"][single][frequent]), names[which[frequent]]


DATASET = Dataset(
    name="reuters_multiclass",
    stands_for="rcv1.multiclass",
    loss="multinomial",
    parties=8,
    read=read,
    note="Reuters-21578, 42 topics, in place of RCV1's 53",
)
