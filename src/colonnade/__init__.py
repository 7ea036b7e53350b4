"""Colonnade: train one model on columns that several organisations hold about the same rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from colonnade.estimators import VerticalLogisticRegression, VerticalRidge
    from colonnade.federation import simulate, train_locally
    from colonnade.job import Job
    from colonnade.record import Report, Trace, load
    from colonnade.runtime.world import Fault, World

__version__ = "0.1.0"

_ROOMS = {
    "Fault": "runtime.world",
    "Job": "job",
    "Report": "record",
    "Trace": "record",
    "load": "record",
    "VerticalLogisticRegression": "estimators",
    "VerticalRidge": "estimators",
    "World": "runtime.world",
    "simulate": "federation",
    "train_locally": "federation",
}
"""Where each name lives. A room is entered when one of its names is first used, so importing stays quick."""

__all__ = [
    "Fault",
    "Job",
    "Report",
    "Trace",
    "VerticalLogisticRegression",
    "VerticalRidge",
    "World",
    "__version__",
    "errors",
    "load",
    "simulate",
    "train_locally",
]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("colonnade.errors")
    if name in _ROOMS:
        value = getattr(import_module(f"colonnade.{_ROOMS[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'colonnade' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
