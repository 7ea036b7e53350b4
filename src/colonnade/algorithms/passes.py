"""Full passes: everybody's scores of all rows at one frozen copy of the weights.

A pass of the coordinator is a certificate, a snapshot, or both; a label party that serves itself makes its own
snapshots. Any set of copies, each frozen when its party first hears of the pass, is one w (design §3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from colonnade.core.linear import Frozen
from colonnade.core.losses import eliminate_intercept
from colonnade.runtime.host import Promise
from colonnade.wire.messages import CHUNK, FROZEN, NORMS, SLOPES_LEARNT, SWEPT, Ask, Push, Retreat

if TYPE_CHECKING:
    from colonnade.algorithms.party import Party

CERTIFICATE_EVERY = 5
"""Passes over the rows between two certificates (design §3)."""
HOPELESS = 10.0
"""An objective so many times the one at the start means divergence."""


class Passes:
    """A party's side of all full passes."""

    def __init__(self, party: Party) -> None:
        self._party = party
        shape = (party.rows,) if party.plan.classes == 1 else (party.rows, party.plan.classes)
        self._shape = shape
        self._frozen: dict[tuple[int, int], Frozen] = {}
        self._latest = 0
        self._good = 0
        self._start = party.model.freeze()
        self._arriving: Any = np.empty(self._shape)
        self._norms: Promise[Any] = Promise()
        self._certified_rows = 0
        self._start_objective = self._good_objective = self._objective_at_zero()
        self._judged = 0
        self.objective: float | None = None
        self.certificate: float | None = None

    def _objective_at_zero(self) -> float:
        party = self._party
        return (
            float(party.loss.value(np.zeros(self._shape), party.labels))
            if party.me == party.coordinator
            else np.inf
        )

    # as one who answers

    def frozen_for(self, ask: Ask) -> Frozen:
        """The weights that this pass is about: frozen at its first message."""
        key = (ask.requester, ask.round)
        frozen = self._frozen.get(key)
        if frozen is None:
            frozen = self._party.model.freeze()
            if ask.requester == self._party.coordinator:
                self._keep_new(ask.round)
            self._frozen[key] = frozen
        if ask.requester != self._party.coordinator and ask.stop >= self._party.rows:
            del self._frozen[key]
        return frozen

    def _keep_new(self, number: int) -> None:
        """Of the coordinator's passes the last good one and the newest are kept."""
        coordinator = self._party.coordinator
        self._good, self._latest = self._latest, number
        for key in [k for k in self._frozen if k[0] == coordinator and k[1] != self._good]:
            del self._frozen[key]
        self._norms = Promise()

    def at(self, number: int) -> Frozen:
        """The weights of one of the coordinator's passes; 0 is the start."""
        return self._frozen.get((self._party.coordinator, number), self._start)

    def certificate_of(self, number: int) -> float | None:
        """How far above the optimum the weights of a pass are at most, if that was judged."""
        return self.certificate if number == self._judged else None

    def norms(self) -> Promise[Any]:
        """Squared norms of this party's gradient block and weights at the latest pass."""
        return self._norms

    async def pushed(self, push: Push) -> None:
        """A chunk of what the coordinator's pass gave; chunks come in order."""
        party = self._party
        values = np.frombuffer(push.values, dtype="<f8").reshape(-1, *self._shape[1:])
        stop = push.start + len(values)
        if not push.learnt & SLOPES_LEARNT:
            values = party.loss.slopes(values, party.labels[push.start : stop])
        if push.start == 0:
            self._arriving = np.empty(self._shape)
        self._arriving[push.start : stop] = values
        if stop == party.rows:
            await self._apply(push.round, self._arriving, bool(push.learnt & SWEPT))

    async def _apply(self, number: int, slopes: Any, sweep: bool) -> None:
        """The gradient block at the frozen weights; a snapshot makes it the anchor."""
        party = self._party
        everything = party.work_over(slice(0, party.rows))
        gradient = await party.host.compute(lambda: party.model.gradient(slopes), everything)
        if number == self._latest:
            weights = self.at(number).weights
            block = gradient + party.plan.job.alpha * weights
            self._norms.set(np.array([np.vdot(block, block), np.vdot(weights, weights)]))
        if sweep:
            await party.host.compute(lambda: party.snapshot(slopes, gradient), 0, writes=True)

    # as one who asks

    async def scores(self) -> tuple[int, Any]:
        """One full pass: its round, and the totals of all rows."""
        party = self._party
        number = party.exchange.next_round()
        totals = np.empty(self._shape)
        for start in range(0, party.rows, CHUNK):
            rows = slice(start, min(start + CHUNK, party.rows))
            totals[rows] = await party.exchange.total(FROZEN, rows, number)
        party.counters["full_passes"] += 1
        party.counters["scores"] += party.rows
        party.meter.round_done(party.rows)
        party.meter.tick()
        return number, totals

    async def own_snapshot(self) -> None:
        """A label party's own sweep (Algorithms 4 and 5 as printed)."""
        party = self._party
        _, totals = await self.scores()
        slopes = party.loss.slopes(totals, party.labels)
        gradient = await party.host.compute(
            lambda: party.model.gradient(slopes), party.work_over(slice(0, party.rows))
        )
        await party.host.compute(lambda: party.snapshot(slopes, gradient), 0, writes=True)

    def certificate_due(self) -> bool:
        """Each time 5n rows were asked for, as far as the coordinator knows."""
        asked = self._party.rows_known()
        return self._party.certifies and asked - self._certified_rows >= CERTIFICATE_EVERY * self._party.rows

    async def coordinate(self, sweep: bool, certify: bool) -> None:
        """The coordinator's pass: the intercept eliminated, what follows pushed on, the certificate judged."""
        party = self._party
        number, totals = await self.scores()
        self._certified_rows = party.rows_known()
        self._eliminate_intercept(number, totals)
        slopes = party.loss.slopes(totals, party.labels)
        self._push(number, totals, slopes, sweep, certify)
        await self._apply(number, slopes, sweep)
        if sweep:
            party.exchange.moved()
        if not party.certifies:
            party.ending.last_good = number
        elif certify and party.within_budget():
            squares = await party.exchange.total(NORMS, slice(0, 0), party.exchange.next_round())
            party.meter.round_done(0)
            party.meter.tick()
            self._judge(number, totals, float(squares[0]), float(squares[1]))

    def _eliminate_intercept(self, number: int, totals: Any) -> None:
        party = self._party
        model, job = party.model, party.plan.job
        if not model.has_intercept:
            return
        frozen = self.at(number)
        without = totals - frozen.intercept
        penalty = job.alpha if job.penalise_intercept else 0.0
        best = eliminate_intercept(party.loss, without, party.labels, frozen.intercept, penalty)
        np.add(without, best, out=totals)
        model.intercept = best
        self._frozen[party.coordinator, number] = Frozen(frozen.weights, best)

    def _push(self, number: int, totals: Any, slopes: Any, sweep: bool, certify: bool) -> None:
        party = self._party
        stepping, others = party.receivers, party.others if certify else ()
        for start in range(0, party.rows, CHUNK):
            rows = slice(start, min(start + CHUNK, party.rows))
            for to, swept in ((stepping, sweep), (tuple(p for p in others if p not in stepping), False)):
                if sweep or certify:
                    party.pushes.send(to, number, totals[rows], slopes[rows], start, SWEPT if swept else 0)

    def _judge(self, number: int, totals: Any, gradient_square: float, weights_square: float) -> None:
        party = self._party
        alpha = party.plan.job.alpha
        intercept = self.at(number).intercept
        penalty = float(np.sum(np.square(intercept))) if party.plan.job.penalise_intercept else 0.0
        value = float(party.loss.value(totals, party.labels)) + alpha / 2 * (weights_square + penalty)
        self.objective, self._judged = value, number
        self.certificate = gradient_square / (2 * alpha) if alpha > 0 else float(np.sqrt(gradient_square))
        if party.plan.job.tol > 0 and self.certificate <= party.plan.job.tol:
            proof = (
                "the objective is certainly within {:.3g} of its optimum"
                if alpha > 0
                else "the gradient norm is {:.3g}"
            )
            party.ending.stop("converged", proof.format(self.certificate), number)
        else:
            self._compare(number, value)

    def _compare(self, number: int, value: float) -> None:
        """Auto step: halve and return when the objective has risen. A number: only hopelessness ends the run."""
        party = self._party
        if party.plan.job.step == "auto":
            if not value <= self._good_objective * (1 + 1e-9) + 1e-12:
                retreat = Retreat(party.ending.last_good, 0.5)
                party.send_others(retreat)
                self.retreat(retreat)
                return
        elif not value <= HOPELESS * abs(self._start_objective) + 1e-9:
            party.ending.stop(
                "diverged",
                "the objective grew beyond ten times its start: lower the step",
                party.ending.last_good,
            )
            return
        if value <= self._good_objective:
            self._good_objective = value
        party.ending.last_good = number

    def retreat(self, message: Retreat) -> None:
        """Back to a good point, with a smaller step."""
        party = self._party
        party.model.restore(self.at(message.round))
        party.eta *= message.factor
        self._good = self._latest = message.round
        party.exchange.retreated()
