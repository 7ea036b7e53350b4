"""Methods, one file each, found by name."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

NAMES = ("afsgd", "afsvrg", "afsaga")


@dataclass(frozen=True)
class Method:
    """One estimator of the AFSGD-VP papers, run asynchronously or as its synchronous twin."""

    name: str
    column: str
    """Its column in the papers' tables."""
    target: float
    """The gap at which the papers stop the clock."""


def get(name: str) -> Method:
    """The method of that name."""
    if name not in NAMES:
        raise SystemExit(f"no method {name!r}; known: {', '.join(NAMES)}")
    found: Method = importlib.import_module(f"experiments.methods.{name}").METHOD
    return found
