"""Film reviews: word counts, the rating as target."""

from __future__ import annotations

import lzma
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.datasets import Dataset, tables


def read(full: bool = False) -> tuple[Any, np.ndarray]:
    """Word counts and ratings 1 to 10."""
    from sklearn.datasets import load_svmlight_file

    with lzma.open(tables.folder() / "imdb_rating/imdb_rating.svm.xz") as file:
        X, y = load_svmlight_file(file)
    return sp.csr_array(X), y


DATASET = Dataset(
    name="imdb_rating",
    stands_for="E2006-tfidf",
    loss="squared",
    parties=4,
    read=read,
    note="8,000 film reviews in place of financial reports",
)
