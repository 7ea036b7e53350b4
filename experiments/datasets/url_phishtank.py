"""Web addresses, phishing against benign: words of an address and runs of up to three."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.datasets import Dataset, tables


def read(full: bool = False) -> tuple[Any, np.ndarray]:
    """Presence of runs of one to three words, labels -1 and 1."""
    table = tables.columns("url_phishtank/urls.csv.xz")
    return tables.presence(table["url"], longest=3), tables.signs(table["y"] > 0)


DATASET = Dataset(
    name="url_phishtank",
    stands_for="url",
    loss="logistic",
    parties=16,
    read=read,
    note="PhishTank addresses in place of url",
)
