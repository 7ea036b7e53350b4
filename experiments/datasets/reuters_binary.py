"""Reuters-21578: acquisitions and earnings against the rest, words."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from experiments.datasets import Dataset, tables


def read(full: bool = False) -> tuple[Any, np.ndarray]:
    """Words by tf-idf, labels -1 and 1."""
    table = tables.columns("reuters21578/reuters_modapte.tsv.xz")
    positive = np.array([bool(re.search(r"\b(?:acq|earn)\b", topics)) for topics in table["topics"]])
    return tables.tfidf(table["words"]), tables.signs(positive)


DATASET = Dataset(
    name="reuters_binary",
    stands_for="rcv1.binary",
    loss="logistic",
    parties=8,
    read=read,
    note="Reuters-21578 in place of RCV1",
)
