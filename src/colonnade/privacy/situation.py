"""One federation as the rules of exposure look at it: who gets to know what, and how much of it so far."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Protocol


class Agreed(Protocol):
    """What exposure reads of a job."""

    @property
    def loss(self) -> str: ...

    @property
    def aggregation(self) -> str: ...


class Planned(Protocol):
    """What exposure reads of a plan."""

    @property
    def job(self) -> Agreed: ...

    @property
    def parties(self) -> tuple[str, ...]: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    @property
    def rows(self) -> int: ...

    @property
    def classes(self) -> int: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def coordinator(self) -> str: ...

    @property
    def requesters(self) -> tuple[str, ...]: ...

    @property
    def receivers(self) -> tuple[str, ...]: ...


class Counts:
    """What the parties received so far, by party.

    `totals` it learnt, `full_passes` (totals of all rows), rows of `scores` and of `slopes` it got to know,
    `rows_asked_alone`, `shares_in_clear`. What is not there is zero.
    """

    def __init__(self, received: Mapping[str, Mapping[str, int]]) -> None:
        self._received = received

    def __call__(self, party: str, what: str) -> int:
        return self._received.get(party, {}).get(what, 0)


class Situation:
    """One federation; `counts` is None before the run."""

    def __init__(self, plan: Planned, columns: Mapping[str, int], counts: Counts | None) -> None:
        self.plan, self.columns, self.counts = plan, columns, counts

    @cached_property
    def slope_readers(self) -> tuple[str, ...]:
        """Parties without labels, which are sent slopes to step on."""
        return tuple(name for name in self.plan.receivers if name not in self.plan.labels)

    @cached_property
    def score_readers(self) -> tuple[str, ...]:
        """Parties that know total scores: they asked, were told, or (classes only) can undo the slopes."""
        undo = self.slope_readers if self.plan.job.loss != "squared" else ()
        told = (name for name in self.plan.receivers if name in self.plan.labels)
        known = {*self.plan.requesters, *told, *undo}
        return tuple(name for name in self.plan.parties if name in known)

    def others(self, party: str) -> list[str]:
        return [name for name in self.plan.parties if name != party]

    def rows_known(self, party: str) -> int:
        """Row scores that this party knows, counted with repeats."""
        if self.counts is None:
            return 0
        return self.counts(party, "slopes" if party in self.slope_readers else "scores")

    def quiet(self, number: int) -> bool:
        """After a run: whether this did not happen."""
        return self.counts is not None and number == 0
