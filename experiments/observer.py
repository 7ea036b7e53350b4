"""Watches a simulated run from outside its clock, and reads it by two clocks.

*Honest*: the objective of the weights that exist at an instant, every pass counted.
*The papers'*: the authors' program combines the weights that each party has after its k-th step and dates them by the
fastest party's clock, without SVRG's and SAGA's full passes; under a straggler that counts work not done yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from colonnade.algorithms.party import Party
from colonnade.job import Plan
from colonnade.tracing import objective

Curve = list[tuple[float, float]]
HONEST_SPACING, PAPERS_SPACING = 1.02, 1.04
"""Ratio of the numbers of steps at two points of a curve."""
FULL_PASS = 4.0
"""A step that took so many times the median one had a full pass before it."""
HOPELESS = 10.0
"""So many times the gap at the start is divergence."""


class Observer:
    """Both clocks' curves of gaps, and the end of the run once both are at the target."""

    def __init__(
        self,
        plan: Plan,
        parties: Mapping[str, Party],
        labels: np.ndarray,
        optimum: float,
        target: float,
        passes: int,
        patience: float,
    ) -> None:
        """After the honest clock the run goes on for `patience` times as long, for the papers' clock."""
        self.honest: Curve = []
        self.papers: list[tuple[int, float]] = []
        """(steps of each party, gap there)."""
        self.reached: dict[str, float] = {}
        """At the target by the honest clock: seconds, passes, rounds, messages, bytes."""
        self.papers_steps: int | None = None
        self.status = "passes"
        self._plan, self._labels, self._optimum, self._target = plan, labels, optimum, target
        self._patience = patience
        self._parties = list(parties.values())
        self._coordinator = parties[plan.coordinator]
        self._most_rows = passes * plan.rows
        self.gap_at_start = self._gap(
            np.zeros(len(labels)) if plan.classes == 1 else np.zeros((len(labels), plan.classes)), 0.0, 0.0
        )
        self._next_look = 0.0
        self._partial: dict[int, tuple[int, Any, float, Any]] = {}
        self._next_mark = dict.fromkeys(parties, 1)
        self.step_times: dict[str, list[float]] = {name: [] for name in parties}
        for name, party in parties.items():
            self._hook(name, party)

    def _hook(self, name: str, party: Party) -> None:
        count = party.meter.stepped
        times = self.step_times[name]

        def stepped(*counted: int) -> None:
            count(*counted)
            times.append(party.host.now())
            if len(times) >= self._next_mark[name]:
                self._mark(name, party, len(times))
            if party is self._coordinator and len(times) >= self._next_look:
                self._next_look = len(times) * HONEST_SPACING
                self._look(times[-1])

        party.meter.stepped = stepped  # type: ignore[method-assign]
        party.meter.tick = lambda: None  # type: ignore[method-assign]  # the weights of a trace, not needed here

    def _look(self, now: float) -> None:
        """The honest clock: the weights that exist now."""
        if self._coordinator.ending.stopping:
            return
        everything = slice(0, self._plan.rows)
        if not self.reached:
            scores = sum(party.model.product(everything) for party in self._parties)
            squares = sum(party.model.weights.squared_norm() for party in self._parties)
            gap = self._gap(scores, squares, self._coordinator.model.intercept)
            self.honest.append((now, gap))
            if gap <= self._target:
                self._note_reached(now)
            elif not gap <= HOPELESS * self.gap_at_start:
                self._stop("diverged")
            elif self._coordinator.meter.rows >= self._most_rows:
                self._stop("passes")
        if self.reached and (self.papers_steps is not None or now > self._patience * self.reached["seconds"]):
            self._stop("reached")

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
        gap = self._gap(scores, squares, intercept)
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
        """Gaps by the fastest party's clock, full passes left out."""
        fastest = max(self.step_times.values(), key=len)
        took = np.diff(np.concatenate([[0.0], fastest]))
        usual = float(np.median(took))
        clock = np.cumsum(np.where(took > FULL_PASS * usual, usual, took))
        return [(float(clock[steps - 1]), gap) for steps, gap in self.papers]
