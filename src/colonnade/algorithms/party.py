"""A party: its model and the parts that let it train with others. It reads no clock but its host's."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import numpy as np

from colonnade.algorithms.ending import GRACEFUL, EndedError, Ending
from colonnade.algorithms.exchange import Exchange, Rows, count_of, rows_of
from colonnade.algorithms.inbox import Inbox
from colonnade.algorithms.meter import EVERY_ROUND, Meter
from colonnade.algorithms.methods import METHODS
from colonnade.algorithms.passes import Passes
from colonnade.algorithms.patience import watch_over
from colonnade.algorithms.peers import Handler, Peers
from colonnade.algorithms.pushes import Pushes
from colonnade.algorithms.result import Result
from colonnade.algorithms.schedule import schedule_of
from colonnade.algorithms.watch import Watch, Watcher
from colonnade.core.blocks import FeatureBlock
from colonnade.core.directions import DIRECTIONS
from colonnade.core.estimators import ESTIMATORS
from colonnade.core.linear import LinearModel
from colonnade.core.losses import LOSSES
from colonnade.core.sampling import Sampler
from colonnade.core.stepsize import block_bounds, safe_step
from colonnade.job import Plan
from colonnade.privacy.aggregation import AGGREGATIONS
from colonnade.runtime.host import TRAINING, Host, Promise, spawn
from colonnade.wire import messages as m
from colonnade.wire.terms import Terms

Batch = np.ndarray[Any, np.dtype[np.uint32]]

MOST_PASSES = 1_000
"""Without `max_rounds` a job ends after so many passes a requester."""


def start(
    host: Host,
    plan: Plan,
    block: FeatureBlock,
    labels: np.ndarray[Any, Any] | None,
    ids: bytes = b"",
    watch: Watch | None = None,
) -> Promise[Result]:
    """Let a party take part. It listens from now on; the promise is kept when it has left."""
    return Party(host, plan, block, labels, ids, watch).begin()


def terms_of(plan: Plan) -> Terms:
    """The job as every link checks it."""
    position = {name: number for number, name in enumerate(plan.parties)}
    return Terms(
        job=plan.digest(),
        parties=plan.parties,
        requesters=frozenset(position[name] for name in plan.requesters),
        coordinator=position[plan.coordinator],
        rows=plan.rows,
        batch_size=plan.batch_size,
        classes=plan.classes,
        masks=plan.job.aggregation == "two-tree",
    )


class Party:
    """What algorithms see of a party: batches, totals, steps, what it shares."""

    def __init__(
        self,
        host: Host,
        plan: Plan,
        block: FeatureBlock,
        labels: np.ndarray[Any, Any] | None,
        ids: bytes,
        watch: Watch | None,
    ) -> None:
        job = plan.job
        position = {name: number for number, name in enumerate(plan.parties)}
        self.host, self.plan, self.block, self.rows = host, plan, block, plan.rows
        self.me, self.coordinator = position[host.name], position[plan.coordinator]
        self.others = tuple(p for p in position.values() if p != self.me)
        self.receivers = tuple(position[name] for name in plan.receivers)
        self.with_labels = frozenset(position[name] for name in plan.labels)
        self.requests = host.name in plan.requesters
        self.labels: Any = labels
        self.loss = LOSSES[job.loss]
        self.model = LinearModel(
            block, plan.classes, job.fit_intercept and self.me == self.coordinator, job.penalise_intercept
        )
        self.method = METHODS[plan.method]
        self.estimator = ESTIMATORS[self.method.estimator](plan.rows, plan.classes)
        self.direction = DIRECTIONS[self.method.direction]()
        self.schedule = schedule_of(plan.synchronous)
        stream = "shared" if plan.synchronous else host.name
        self.sampler = Sampler(job.random_state, stream, plan.rows, plan.batch_size)
        self.eta = 0.0 if job.step == "auto" else float(job.step)
        self.certifies = job.tol > 0 or job.step == "auto"
        self.counters = dict.fromkeys(
            ("totals", "full_passes", "slopes", "scores", "rows_asked_alone", "dropped"), 0
        )
        self.peers = Peers(host, plan, terms_of(plan), ids)
        self.exchange = Exchange(plan, self.me, self.peers, host.entropy, self._contribute, self._failed)
        self.ending = Ending(self.peers, self.coordinator, len(plan.parties))
        self.inbox = Inbox(self.schedule.pending, self._failed)
        self.meter = Meter(
            self.model,
            host,
            lambda: (self.peers.messages_sent, self.peers.bytes_sent),
            EVERY_ROUND // len(plan.requesters) + 1,
        )
        self.passes = Passes(self)
        self.watcher = Watcher(self, watch)
        self.pushes = Pushes(self)
        self._paced: Promise[None] = Promise()
        self._finished: Promise[Result] = Promise()
        self._started = host.now()
        self._spent_before = (0.0, 0.0)

    # what an algorithm does with its party

    async def batches(self) -> AsyncIterator[Batch]:
        """Batches of rows until the run ends: its coordinator ends it when the budget is spent."""
        while not self.ending.stopping and self.within_budget():
            yield self.sampler.draw()
            if not self.others:
                await self.host.sleep(0)

    async def total(self, rows: Batch) -> Any:
        """One secured sum of everybody's partial scores."""
        scores = await self.exchange.total(m.SCORES, rows, self.exchange.next_round())
        self.counters["totals"] += 1
        self.counters["scores"] += len(rows)
        self.meter.round_done(len(rows))
        self.watcher.scored(rows, scores)
        return scores

    async def step(self, rows: Batch, slopes: Any) -> None:
        """Estimator, direction, weights: `w ← (1−ηλ)w − η v`."""

        def take() -> None:
            residual = self.estimator.residual(rows, slopes)
            alpha, eta = self.plan.job.alpha, self.eta
            anchor = self.estimator.mean_anchor()
            self.direction.step(self.model.weights, self.block, rows, residual, eta, alpha)
            self.model.step_intercept(residual.mean(axis=0) + anchor, eta, alpha)
            learnt = self.estimator.learn(rows, slopes)
            if learnt is not None:
                distinct, change = learnt
                self.model.weights.move_anchor(self.block, distinct, change)
            self.estimator.asked(len(rows))

        sweeps = 2 if self.method.estimator == "saga" else 1
        work = self.work_over(rows)
        await self.host.compute(take, sweeps * work, TRAINING, writes=True)
        self.meter.stepped(work)
        self.exchange.moved()
        self.watcher.look()

    async def share(self, rows: Batch, slopes: Any, scores: Any) -> None:
        """What the coordinator learnt moves the blocks of those who do not ask for themselves."""
        if self.receivers and self.me == self.coordinator:
            self.pushes.send(self.receivers, self.exchange.current_round, scores, slopes)

    async def sweep_if_due(self) -> None:
        """A snapshot for the estimator, a certificate, or both in one pass."""
        if self.ending.stopping or not self.within_budget():
            return
        sweep = self.estimator.sweep_due
        if self.me != self.coordinator:
            if sweep:
                await self.passes.own_snapshot()
            return
        certify = self.certifies if sweep else self.passes.certificate_due()
        if sweep or certify:
            await self.passes.coordinate(sweep, certify)
            self.watcher.look()

    # what its parts need of each other

    def within_budget(self) -> bool:
        """The coordinator ends the run when it is spent."""
        if self.me != self.coordinator:
            return self.meter.rows < MOST_PASSES * self.rows or self.plan.job.max_rounds is not None
        job = self.plan.job
        if job.max_rounds is not None and self.rounds_known() >= job.max_rounds:
            self.ending.stop("budget", f"max_rounds = {job.max_rounds} reached")
        elif job.max_rounds is None and self.meter.rows >= MOST_PASSES * self.rows:
            remedy = "bring the columns to one scale, or set max_rounds to go on longer"
            self.ending.stop("budget", f"{MOST_PASSES:,} passes made: {remedy}")
        elif job.max_seconds is not None and self.host.now() - self._started >= job.max_seconds:
            self.ending.stop("budget", f"max_seconds = {job.max_seconds:g} reached")
        return not self.ending.stopping

    def spent(self) -> tuple[float, float]:
        """Seconds computing and communicating since the clock started: joining is not counted."""
        computing, communicating = self._spent_before
        return self.host.computing_seconds - computing, self.host.communicating_seconds - communicating

    def rounds_known(self) -> int:
        return self.meter.rounds + self.exchange.rounds_seen

    def rows_known(self) -> int:
        return self.meter.rows + self.exchange.rows_seen

    def snapshot(self, slopes: Any, gradient: Any) -> None:
        """A new snapshot: the slopes of all rows, and `Xᵀ slopes / n` as the anchor."""
        self.estimator.swept(slopes)
        self.model.weights.set_anchor(gradient)

    def send_others(self, message: m.AnyMessage) -> None:
        self.peers.send_all(self.others, message)

    # the run

    def begin(self) -> Promise[Result]:
        handlers: dict[type[m.Message], Handler] = {
            m.Ask: self.exchange.asked,
            m.Share: self.exchange.shared,
            m.Mask: self.exchange.masked,
            m.Push: self.pushes.received,
            m.Retreat: lambda _, message: self.passes.retreat(message),
            m.Pace: self._pace,
            m.Stop: self._stopped,
            m.Stopped: self.ending.acknowledged,
            m.Bye: self.ending.bye,
            m.Halt: self._halted,
        }
        self.ending.broken_off.then(lambda _: self._break_off())
        self.peers.serve(handlers, self.lost, self._failed)
        spawn(self._run(), self._failed)
        spawn(watch_over(self, self._finished), self._failed)
        return self._finished

    async def _run(self) -> None:
        try:
            for ready in self.peers.join(self._needed()):
                await ready
            self.ending.begun = True
            self._started = self.host.now()
            self._spent_before = (self.host.computing_seconds, self.host.communicating_seconds)
            self.meter.note()
            self.exchange.begin()
            await self._agree_on_step()
            if self.requests:
                await self.method.train(self)
        except EndedError:
            pass
        await self.ending.told
        if self.ending.outcome in GRACEFUL and not self.ending.broken_off.ready:
            await self.inbox.drained()
        await self.ending.leave()
        self._finish()

    def _needed(self) -> Sequence[int]:
        """Links that must be there before the clock starts; others open when first used."""
        if AGGREGATIONS[self.plan.job.aggregation].needs_keys:
            return self.others
        return self.others if self.me == self.coordinator else (self.coordinator,)

    async def _agree_on_step(self) -> None:
        """Auto step: two numbers a party bound the curvature that all together see (design §3)."""
        job = self.plan.job
        if job.step != "auto":
            return
        if self.me != self.coordinator:
            await self._paced
            return
        if self.within_budget():
            sums = await self.exchange.total(m.BOUNDS, slice(0, 0), self.exchange.next_round())
            self.meter.round_done(0)
            self.meter.tick()
            self.eta = safe_step(
                sums, self.loss.smoothness, self.rows, self.plan.batch_size, job.alpha, job.fit_intercept
            )
            self.send_others(m.Pace(self.eta))

    def lane_of(self, requester: int) -> int:
        """In lockstep a product of the shared batch is everybody's own work: a straggler is slow at it too."""
        return TRAINING if requester == self.me or self.schedule.barrier else requester

    def work_over(self, rows: Rows) -> int:
        """Multiplications of one product over these rows."""
        return self.block.nonzeros(rows) * self.plan.classes

    def _contribute(self, ask: m.Ask) -> Promise[Any]:
        """This party's term of a sum."""
        if ask.what == m.NORMS:
            return self.passes.norms()
        if ask.what == m.BOUNDS:
            work = self.block.nonzeros(slice(0, self.rows))
            return self.host.compute(lambda: np.array(block_bounds(self.block)), work)
        rows, lane = rows_of(ask), self.lane_of(ask.requester)
        if ask.what == m.FROZEN:
            frozen = self.passes.frozen_for(ask)
            return self.host.compute(
                lambda: self.model.frozen_product(frozen, rows), self.work_over(rows), lane
            )
        if count_of(rows) == 1 and ask.requester != self.me:
            self.counters["rows_asked_alone"] += 1
        return self.host.compute(lambda: self.model.product(rows), self.work_over(rows), lane)

    def _pace(self, sender: int, pace: m.Pace) -> None:
        self.eta = pace.step
        self._paced.set(None)

    def _stopped(self, sender: int, stop: m.Stop) -> None:
        self.ending.stopped(sender, stop)
        self._paced.set(None)
        if stop.outcome not in GRACEFUL:
            self._abandon(stop.detail)

    def _halted(self, sender: int, halt: m.Halt) -> None:
        self.ending.halted(sender, halt)
        self._abandon(halt.detail)

    def lost(self, peer: str, reason: str) -> None:
        self.ending.lost(peer, reason)
        if self.ending.stopping:
            self.exchange.abandon(EndedError(reason))

    def _failed(self, error: BaseException) -> None:
        self.ending.failed(error)
        if not isinstance(error, KeyboardInterrupt):
            self._abandon(str(error))

    def _break_off(self) -> None:
        self._paced.set(None)
        self._abandon(self.ending.detail)
        self._finish()

    def _abandon(self, reason: str) -> None:
        """No sum will be completed any more: what is still said about one is passed over."""
        self.exchange.abandoned = True
        self.exchange.abandon(EndedError(reason))
        self.peers.pass_over((m.Ask, m.Share, m.Mask, m.Push))

    def _finish(self) -> None:
        if self._finished.ready:
            return
        keep = self.ending.keep
        final = self.model.freeze() if keep is None else self.passes.at(keep)
        notes, weights, intercepts = self.meter.end(final)
        computing, communicating = self.spent()
        self.counters["dropped"] = self.inbox.dropped
        if self.plan.job.aggregation == "plain":
            self.counters["shares_in_clear"] = self.exchange.shares_received
        result = Result(
            party=self.host.name,
            outcome=self.ending.outcome,
            detail=self.ending.detail,
            weights=final.weights,
            intercept=np.asarray(final.intercept, dtype=float),
            notes=notes,
            noted=weights,
            noted_intercepts=intercepts,
            certificate=None if keep is None else self.passes.certificate_of(keep),
            step=self.eta,
            started=self._started,
            finished=self.host.now(),
            computing=computing,
            communicating=communicating,
            received=dict(self.counters),
        )
        self.peers.close()
        self._finished.set(result)
