"""Data sets, one file each, found by name; tables are read from the folders under $COLONNADE_DATA."""

from __future__ import annotations

import hashlib
import importlib
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from experiments.datasets import tables

CACHE = Path(__file__).parents[1] / ".cache"
MOST_ROWS = 20_000

NAMES = (
    "credit91",
    "give_me_some_credit",
    "news20_binary",
    "reuters_binary",
    "url_phishtank",
    "webspam",
    "news20_multiclass",
    "reuters_multiclass",
    "imdb_rating",
    "keggundirected",
)


@dataclass(frozen=True)
class Dataset:
    """One data set: how it is read, how it is scaled, and what it stands for in the papers."""

    name: str
    stands_for: str
    loss: str
    parties: int
    """As in the papers: 4 financial and regression, 8 news20 and rcv1, 16 url and webspam."""
    read: Callable[[bool], tuple[Any, np.ndarray]]
    """The whole table (True) or what the default run needs; not scaled."""
    scaling: str = "rows"
    """mean: divided by the root mean square row norm; rows: every row of unit length; none."""
    all_rows: bool = False
    note: str = ""

    def load(self, full: bool = False) -> tuple[Any, np.ndarray]:
        """Rows to train on: at most 20,000 unless `full`, scaled; a regression's targets standardised."""
        X, y = self.read(full)
        if not (full or self.all_rows):
            X, y = tables.cut(X, y, MOST_ROWS)
        if self.loss == "squared":
            y = (y - y.mean()) / y.std()
        return tables.SCALINGS[self.scaling](X), y


def get(name: str) -> Dataset:
    """The data set of that name."""
    if name not in NAMES:
        raise SystemExit(f"no data set {name!r}; known: {', '.join(NAMES)}")
    found: Dataset = importlib.import_module(f"experiments.datasets.{name}").DATASET
    return found


@lru_cache(maxsize=1)
def loaded(name: str, full: bool = False) -> tuple[Any, np.ndarray]:
    """`get(name).load(full)`, kept on disk under a name that changes with the code that makes it."""
    file = CACHE / f"{name}-{'full' if full else 'cut'}-{_code_digest(name)}.npz"
    if not file.exists():
        CACHE.mkdir(exist_ok=True)
        X, y = get(name).load(full)
        X = sp.csr_array(X) if sp.issparse(X) else X
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr} if sp.issparse(X) else {"dense": X}
        unfinished = file.with_suffix(".part.npz")
        np.savez(unfinished, y=np.asarray(y), shape=X.shape, **parts)
        unfinished.replace(file)
    kept = np.load(file)
    if "dense" in kept:
        return kept["dense"], kept["y"]
    matrix = sp.csr_array((kept["data"], kept["indices"], kept["indptr"]), shape=tuple(kept["shape"]))
    return matrix, kept["y"]


def _code_digest(name: str) -> str:
    here = Path(__file__).parent
    files = [here / f"{name}.py", here / "tables.py", here / "__init__.py", here.parent / "generator.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def split_columns(X: Any, parties: int) -> list[Any]:
    """Near-equal groups of columns: contiguous when dense, dealt at random when sparse."""
    d = X.shape[1]
    if sp.issparse(X):
        X = sp.csc_array(X)[:, np.random.default_rng(0).permutation(d)]
    edges = [round(d * k / parties) for k in range(parties + 1)]
    groups = [X[:, a:b] for a, b in itertools.pairwise(edges)]
    return [sp.csr_array(group) if sp.issparse(group) else np.ascontiguousarray(group) for group in groups]


def held_out(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train on and the fifth kept back, as the data page splits."""
    order = np.random.RandomState(0).permutation(rows)
    return order[rows // 5 :], order[: rows // 5]
