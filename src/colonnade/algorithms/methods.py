"""Methods by name: the loop, what its steps are taken along, and how. A new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from colonnade.algorithms import afsgd

if TYPE_CHECKING:
    from colonnade.algorithms.party import Party


class Method(NamedTuple):
    """What a requester runs, and its estimator and direction by their names in `core`."""

    train: Callable[[Party], Coroutine[Any, None, None]]
    estimator: str
    direction: str = "steepest"


METHODS = {
    "afsgd": Method(afsgd.train, "sgd"),
    "afsvrg": Method(afsgd.train, "svrg"),
    "afsaga": Method(afsgd.train, "saga"),
}
