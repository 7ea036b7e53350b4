"""A table as read from a file, before preparation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from colonnade.errors import DataError, nearest

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Texts:
    """A column of text: each row's position among the distinct values, -1 where the cell is empty."""

    codes: NDArray[np.int32]
    values: tuple[str, ...]


Column: TypeAlias = NDArray[np.float64] | Texts


@dataclass(frozen=True)
class Table:
    """What one file holds. `cells`: a column a name (NaN: an empty cell), or one matrix for libsvm files."""

    source: str
    rows: int
    names: tuple[str, ...]
    cells: dict[str, Column] | csr_matrix
    ids: list[str] | None = None
    """None: the rows have no names but their numbers."""
    labels: NDArray[Any] | None = None

    def select(self, selectors: Sequence[str | int]) -> Table:
        """The same rows with these columns only, in this order."""
        names = pick(selectors, self.names, self.source)
        if isinstance(self.cells, dict):
            return replace(self, names=names, cells={name: self.cells[name] for name in names})
        position = {name: number for number, name in enumerate(self.names)}
        return replace(self, names=names, cells=self.cells[:, [position[name] for name in names]])


def pick(selectors: Sequence[str | int], names: Sequence[str], source: str) -> tuple[str, ...]:
    """Names for selectors: a name, a libsvm column number, or "a:b" from column a to column b, included."""
    position = {name: number for number, name in enumerate(names)}

    def find(name: str) -> int:
        if name not in position:
            hint = nearest(name, list(names)) if len(names) <= 200 else f"it has {names[0]} to {names[-1]}"
            raise DataError(f"{source}: no column {name!r}: {hint}")
        return position[name]

    picked: list[str] = []
    for selector in map(str, selectors):
        if selector not in position and ":" in selector:
            first, last = (find(end) for end in selector.split(":", 1))
            if first > last:
                raise DataError(f"{source}: columns {selector!r} run backwards: name the earlier one first")
            picked.extend(names[first : last + 1])
        else:
            picked.append(names[find(selector)])
    for name, count in Counter(picked).items():
        if count > 1:
            raise DataError(f"{source}: column {name!r} is named {count} times: name it once")
    return tuple(picked)
