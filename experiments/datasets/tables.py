"""Reading and preparing tables: what several data sets share."""

from __future__ import annotations

import lzma
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp


def folder() -> Path:
    """Where the data page's tables are."""
    place = os.environ.get("COLONNADE_DATA")
    if not place:
        raise SystemExit("COLONNADE_DATA is not set: point it at the folder with the data sets")
    return Path(place)


def columns(path: str, header: bool = True) -> dict[str, np.ndarray]:
    """Columns of an xz-compressed CSV or TSV file by name (f0, f1, … without a header), in order."""
    from pyarrow import csv

    tabs = ".tsv" in path
    with lzma.open(folder() / path) as file:
        table = csv.read_csv(
            file,
            read_options=csv.ReadOptions(autogenerate_column_names=not header, block_size=1 << 24),
            parse_options=csv.ParseOptions(
                delimiter="\t" if tabs else ",", quote_char=False if tabs else '"'
            ),
            convert_options=csv.ConvertOptions(strings_can_be_null=False, null_values=["", "NA"]),
        )
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def one_hot(values: np.ndarray) -> np.ndarray:
    """One 0/1 column a distinct value, in rising order."""
    return (np.asarray(values)[:, None] == np.unique(values)).astype(float)


def standardise(X: np.ndarray) -> np.ndarray:
    """Columns with mean 0 and deviation 1; constant ones become 0."""
    deviation = X.std(axis=0)
    result: np.ndarray = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return result


def tfidf(documents: Sequence[str], **options: Any) -> sp.csr_array:
    """Rows of unit length: (log(tf) + 1)·idf over the whole collection, or mere presence with `binary`."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    settings = {"sublinear_tf": not options.get("binary", False), "token_pattern": r"[^\W_]+"} | options
    return sp.csr_array(TfidfVectorizer(**settings).fit_transform(documents))


def presence(documents: Sequence[str], longest: int) -> sp.csr_array:
    """Which words and runs of up to `longest` words a document has; rows of unit length."""
    return tfidf(documents, binary=True, use_idf=False, ngram_range=(1, longest))


def signs(positive: np.ndarray) -> np.ndarray:
    """Labels -1 and 1."""
    return np.where(positive, 1.0, -1.0)


def cut(X: Any, y: np.ndarray, most: int) -> tuple[Any, np.ndarray]:
    """At most so many rows, drawn with a fixed seed and kept in order."""
    if len(y) <= most:
        return X, y
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:most])
    return X[rows], y[rows]


def squared_norms(X: Any) -> np.ndarray:
    """Squared Euclidean norm of each row."""
    return np.asarray((X.multiply(X) if sp.issparse(X) else X * X).sum(axis=1)).ravel()


def _mean_norm(X: Any) -> Any:
    return X / np.sqrt(squared_norms(X).mean())


def _unit_rows(X: Any) -> Any:
    norms = np.maximum(np.sqrt(squared_norms(X)), 1e-12)
    return sp.csr_array(sp.diags_array(1 / norms) @ X) if sp.issparse(X) else X / norms[:, None]


SCALINGS = {"mean": _mean_norm, "rows": _unit_rows, "none": lambda X: X}
