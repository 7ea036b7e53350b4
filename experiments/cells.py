"""One cell: a data set, a method, a world and where it ends; what it gives is one row."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace

from experiments import datasets, methods

ALPHA = 1e-4
PASSES = 50
SPARSE_SET = "reuters_binary"
"""The sparse set that the smaller comparisons use, beside credit91."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """The configuration of one run. Its key names the row that it gives."""

    dataset: str
    method: str
    schedule: str
    parties: int
    target: float
    slower: int = 200
    """By how many per cent the last party trains slower than the others; 200 is a third of the speed."""
    batch: int = 128
    lanes: str = "requester"
    """Asynchronous: products that others ask for wait for those of the same requester, or (party) of any."""
    prompt: bool = False
    """Synchronous: the product of the shared batch is a listener's, at full speed; else it is training."""
    network: str = "none"
    world: str = "simulated"
    both_clocks: bool = True
    """Go on past the honest clock's target until the papers' is there; it takes several times as long."""
    held_out: bool = False
    """Train on four fifths and measure on the fifth kept back."""
    passes: int = PASSES
    """The run ends after so many passes of each requester."""
    step: float | None = None
    """None: the best of the grid on the synchronous run, times `of_best`."""
    of_best: float = 1.0
    full: bool = False
    seed: int = 0

    @property
    def key(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:16]

    @property
    def group(self) -> tuple[str, str, int, bool]:
        """Cells that share a step search."""
        return (self.dataset, self.method, self.batch, self.full)

    @property
    def requesters(self) -> int:
        return self.parties if self.schedule == "asynchronous" else 1


def cell(dataset: str, method: str, schedule: str, full: bool = False, **settings: object) -> Cell:
    """A cell at the papers' number of parties and target, unless said otherwise."""
    known = {"parties": datasets.get(dataset).parties, "target": methods.get(method).target}
    return Cell(dataset=dataset, method=method, schedule=schedule, full=full, **(known | settings))  # type: ignore[arg-type]


def contest(dataset: str, method: str, full: bool = False, **settings: object) -> list[Cell]:
    """The twin, with slow and with prompt products, and the asynchronous run, with both ways to queue products."""
    twin = cell(dataset, method, "synchronous", full, **settings)
    runs = [replace(twin, schedule="asynchronous", lanes=lanes) for lanes in ("requester", "party")]
    return [twin, replace(twin, prompt=True), *runs]
