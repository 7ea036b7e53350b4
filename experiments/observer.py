"""Watches a simulated run from outside its clock, and reads it by two clocks.

*Honest*: the objective of the weights that exist at an instant, every pass counted.
*The papers'*: the authors' program combines the weights that each party has after its k-th step and dates them by the
fastest party's clock, without SVRG's and SAGA's full passes; under a straggler that counts work not done yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np

from colonnade.algorithms.party import Party
from colonnade.job import Plan
from colonnade.tracing import objective

Curve = list[tuple[float, float]]
HONEST_SPACING, PAPERS_SPACING = 1.03, 1.04
"""Ratio of the numbers of steps at two points of a curve."""
HOPELESS = 10.0
"""So many times the gap at the start is divergence."""


class Observer:
    """Both clocks' curves of gaps, and the end of the run once both are at the target."""

    def __init__(self, plan: Plan, parties: Mapping[str, Party], labels: np.ndarray, optimum: float) -> None:
        self.honest: Curve = []
        self.papers: list[tuple[int, float]] = []
        """(steps of each party, gap there)."""
        self.reached: dict[str, float] = {}
        """At the target by the honest clock: seconds, passes, rounds, messages, bytes."""
        self.papers_steps: int | None = None
        self.status = "passes"
        self._plan, self._labels, self._optimum = plan, labels, optimum
        self._parties = list(parties.values())
        self._coordinator = parties[plan.coordinator]
        self._next_look = 0.0
        self._partial: dict[int, tuple[int, Any, float, Any]] = {}
        self._next_mark = dict.fromkeys(parties, 1)
        self._step_times: dict[str, list[float]] = {name: [] for name in parties}
        self._full_passes: dict[str, set[int]] = {name: set() for name in parties}

    def watch(self, target: float, passes: int, patience: float, most_seconds: float) -> None:
        """Watch until the target, so many passes of the coordinator or seconds of this machine.

        Past the honest clock's target the run goes on for `patience` times as long, for the papers' clock.
        """
        self._target, self._most_rows, self._patience = target, passes * self._plan.rows, patience
        self._deadline = perf_counter() + most_seconds
        shape = (self._plan.rows,) if self._plan.classes == 1 else (self._plan.rows, self._plan.classes)
        self._gap_at_start = self._gap(np.zeros(shape), 0.0, 0.0)
        last = self._parties[-1] if self._plan.synchronous else self._coordinator
        for name, party in zip(self._plan.parties, self._parties, strict=True):
            self._hook(name, party, party is last)

    def _hook(self, name: str, party: Party, looks: bool) -> None:
        """Be told of every step and full pass. A straggler ends a synchronous round, and then it is looked at."""
        count, sweep = party.meter.stepped, party.sweep_if_due
        times = self._step_times[name]

        def stepped(*counted: int) -> None:
            count(*counted)
            times.append(party.host.now())
            if not self._plan.synchronous and len(times) >= self._next_mark[name]:
                self._mark(name, party, len(times))
            if looks and len(times) >= self._next_look:
                self._next_look = len(times) * HONEST_SPACING
                self._look(times[-1], len(times))

        async def sweep_if_due() -> None:
            if party.estimator.sweep_due:
                self._full_passes[name].add(len(times))
            await sweep()

        party.meter.stepped = stepped  # type: ignore[method-assign]
        party.meter.tick = lambda: None  # type: ignore[method-assign]  # no notes: nobody reads their trace
        party.sweep_if_due = sweep_if_due  # type: ignore[method-assign]

    def _look(self, now: float, steps: int) -> None:
        """The honest clock: the weights that exist now. At the end of a synchronous round all made equal steps."""
        if self._coordinator.ending.stopping:
            return
        if not self.reached:
            everything = slice(0, self._plan.rows)
            scores = sum(party.model.product(everything) for party in self._parties)
            squares = sum(party.model.weights.squared_norm() for party in self._parties)
            gap = self._gap(scores, squares, self._coordinator.model.intercept)
            self.honest.append((now, gap))
            if self._plan.synchronous:
                self._add_equal_steps(steps, gap)
            if gap <= self._target:
                self._note_reached(now)
            elif not gap <= HOPELESS * self._gap_at_start:
                self._stop("diverged")
            elif self._coordinator.meter.rows >= self._most_rows:
                self._stop("passes")
            elif perf_counter() > self._deadline:
                self._stop("too long")
        if self.reached and (self.papers_steps or self._over(now)):
            self._stop("reached")

    def _over(self, now: float) -> bool:
        return now > self._patience * self.reached["seconds"] or perf_counter() > self._deadline

    def _note_reached(self, now: float) -> None:
        meters = [party.meter for party in self._parties]
        self.reached = {
            "seconds": now,
            "passes": sum(meter.rows for meter in meters) / self._plan.rows,
            "rounds": sum(meter.rounds for meter in meters),
            "messages": sum(party.peers.messages_sent for party in self._parties),
            "bytes": sum(party.peers.bytes_sent for party in self._parties),
        }

    def _mark(self, name: str, party: Party, steps: int) -> None:
        """The papers' clock: this party's share of the scores after so many steps."""
        self._next_mark[name] = max(steps + 1, int(steps * PAPERS_SPACING))
        if self.papers_steps is not None:
            return
        done, scores, squares, intercept = self._partial.pop(steps, (0, 0.0, 0.0, 0.0))
        scores = scores + party.model.product(slice(0, self._plan.rows))
        squares += party.model.weights.squared_norm()
        if party is self._coordinator:
            intercept = party.model.intercept
        if done + 1 < len(self._parties):
            self._partial[steps] = (done + 1, scores, squares, intercept)
            return
        self._add_equal_steps(steps, self._gap(scores, squares, intercept))

    def _add_equal_steps(self, steps: int, gap: float) -> None:
        self.papers.append((steps, gap))
        if gap <= self._target:
            self.papers_steps = steps
            self._partial.clear()

    def _gap(self, scores: Any, squares: float, intercept: Any) -> float:
        return objective(self._plan, scores, self._labels, squares, intercept) - self._optimum

    def _stop(self, status: str) -> None:
        self.status = status
        self._coordinator.ending.stop("budget", status)

    def papers_curve(self) -> Curve:
        """Gaps by the fastest party's clock; a step after a full pass counts as much as the median one."""
        fastest = max(self._step_times, key=lambda name: len(self._step_times[name]))
        took = np.diff(np.concatenate([[0.0], self._step_times[fastest]]))
        after_pass = [k for k in self._full_passes[fastest] if k < len(took)]
        took[after_pass] = np.median(took)
        clock = np.cumsum(took)
        return [(float(clock[steps - 1]), gap) for steps, gap in self.papers]
