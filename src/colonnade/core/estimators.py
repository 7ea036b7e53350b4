"""Stochastic gradients from per-row numbers: SGD, SVRG and SAGA never store a vector over the columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
RowNumbers = NDArray[Any]
State = dict[str, NDArray[Any]]


class Estimator(Protocol):
    """What a step is taken along: X_Iᵀ residual / b + anchor, the anchor being Xᵀ anchor_slopes / n."""

    @property
    def sweep_due(self) -> bool:
        """Whether the slopes of all rows are wanted now."""
        ...

    def asked(self, rows: int) -> None:
        """So many rows were asked for."""
        ...

    def residual(self, rows: RowNumbers, slopes: Array) -> Array: ...

    def learn(self, rows: RowNumbers, slopes: Array) -> tuple[RowNumbers, Array] | None:
        """Store the slopes of a batch: the distinct rows, and by how much the anchor moves along each."""
        ...

    def swept(self, slopes: Array) -> None:
        """Store the slopes of all rows."""
        ...

    def anchor_slopes(self) -> Array | None: ...

    def mean_anchor(self) -> float | Array:
        """The mean stored slope: the anchor of a column of ones."""
        ...

    def state(self) -> State: ...

    def restore(self, state: State) -> None: ...


class Sgd:
    """The plain stochastic gradient: nothing is stored."""

    def __init__(self, rows: int, classes: int = 1) -> None:
        self._none: float | Array = 0.0 if classes == 1 else np.zeros(classes)

    @property
    def sweep_due(self) -> bool:
        return False

    def asked(self, rows: int) -> None:
        pass

    def residual(self, rows: RowNumbers, slopes: Array) -> Array:
        return slopes

    def learn(self, rows: RowNumbers, slopes: Array) -> tuple[RowNumbers, Array] | None:
        return None

    def swept(self, slopes: Array) -> None:
        pass

    def anchor_slopes(self) -> Array | None:
        return None

    def mean_anchor(self) -> float | Array:
        return self._none

    def state(self) -> State:
        return {}

    def restore(self, state: State) -> None:
        pass


class _Stored:
    """One slope a row (c for c classes), and their mean."""

    def __init__(self, rows: int, classes: int = 1) -> None:
        self._slopes = np.zeros(rows if classes == 1 else (rows, classes))
        self._mean = self._slopes.mean(axis=0)
        self._complete = False

    def asked(self, rows: int) -> None:
        pass

    def residual(self, rows: RowNumbers, slopes: Array) -> Array:
        return slopes - self._slopes[rows]

    def swept(self, slopes: Array) -> None:
        self._slopes[...] = slopes
        self._mean = self._slopes.mean(axis=0)
        self._complete = True

    def anchor_slopes(self) -> Array | None:
        return self._slopes

    def mean_anchor(self) -> float | Array:
        return float(self._mean) if self._slopes.ndim == 1 else self._mean

    def state(self) -> State:
        return {
            "slopes": self._slopes.copy(),
            "mean": np.array(self._mean),
            "complete": np.array(self._complete),
        }

    def restore(self, state: State) -> None:
        self._slopes[...] = state["slopes"]
        self._mean = state["mean"].copy()
        self._complete = bool(state["complete"])


class Svrg(_Stored):
    """The slopes s⁰ of a snapshot, renewed each time 2n rows were asked for."""

    def __init__(self, rows: int, classes: int = 1) -> None:
        super().__init__(rows, classes)
        self._asked = 0

    @property
    def sweep_due(self) -> bool:
        return not self._complete or self._asked >= 2 * len(self._slopes)

    def asked(self, rows: int) -> None:
        self._asked += rows

    def learn(self, rows: RowNumbers, slopes: Array) -> tuple[RowNumbers, Array] | None:
        return None

    def swept(self, slopes: Array) -> None:
        super().swept(slopes)
        self._asked = 0

    def state(self) -> State:
        return super().state() | {"asked": np.array(self._asked)}

    def restore(self, state: State) -> None:
        super().restore(state)
        self._asked = int(state["asked"])


class Saga(_Stored):
    """The table α of the slopes that each row had when it was last seen; filled by one sweep at the start."""

    @property
    def sweep_due(self) -> bool:
        return not self._complete

    def learn(self, rows: RowNumbers, slopes: Array) -> tuple[RowNumbers, Array] | None:
        distinct, first = np.unique(rows, return_index=True)
        new = slopes[first]
        change = (new - self._slopes[distinct]) / len(self._slopes)
        self._slopes[distinct] = new
        self._mean = self._mean + change.sum(axis=0)
        return distinct, change


ESTIMATORS: dict[str, Callable[[int, int], Estimator]] = {"sgd": Sgd, "svrg": Svrg, "saga": Saga}
