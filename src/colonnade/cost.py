"""What a run will cost before it starts: rounds × bytes × latency, from the plan and the sizes of the blocks."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil, inf, log2

import msgspec

from colonnade.job import Plan
from colonnade.privacy.aggregation import AGGREGATIONS
from colonnade.wire.codec import FRAME_PREFIX, encode
from colonnade.wire.messages import CHUNK, FROZEN, NORMS, SCORES, AnyMessage, Ask, Push, Share

ASSUMED_PASSES = 20.0
"""Passes over the rows when no budget is set: well-scaled tables take 5 to 50."""
CERTIFICATE_EVERY = 5
SNAPSHOT_EVERY = 2
VALUE, WIDE, ROW = 8, 32, 4
"""Bytes of a score, of a number in a small exact sum, and of a row number."""


class Cost(msgspec.Struct, frozen=True):
    """Expected totals of a run, all parties together, and what they rest on."""

    passes: float
    rounds: int
    messages: int
    bytes: int
    seconds: float
    assumption: str


class _Sum(msgspec.Struct, frozen=True):
    """One secured sum: messages and bytes of all, seconds until its requester knows it."""

    messages: int
    bytes: int
    seconds: float

    def times(self, count: float) -> tuple[float, float, float]:
        return self.messages * count, self.bytes * count, self.seconds * count


class Links(msgspec.Struct, frozen=True):
    """What a message takes: seconds on its way, bytes a second, seconds of work for those who handle it."""

    latency: float = 0.0
    bandwidth: float | None = None
    per_message: float = 0.0


def expected(
    plan: Plan,
    nonzeros: Mapping[str, int],
    links: Links = Links(),  # noqa: B008 - frozen
    passes: float | None = None,
) -> Cost:
    """Rounds, messages, bytes and seconds of a plan. `nonzeros`: of each party's block."""
    if passes is None:
        passes = _passes_of(plan)
    batches, sweeps, certificates = _counts(plan, passes)
    batch = _sum(plan, links, nonzeros, SCORES, plan.batch_size)
    full = _sum(plan, links, nonzeros, FROZEN, plan.rows)
    small = _sum(plan, links, nonzeros, NORMS, 2)
    parts = [
        batch.times(batches),
        full.times(sweeps + certificates),
        small.times(certificates),
        _pushed(plan, len(plan.receivers), plan.batch_size).times(batches if plan.receivers else 0),
        _pushed(plan, len(plan.receivers), plan.rows).times(sweeps if plan.receivers else 0),
        _pushed(plan, len(plan.parties) - 1, plan.rows).times(certificates),
    ]
    messages, size, seconds = (sum(part[place] for part in parts) for place in range(3))
    return Cost(
        passes=passes,
        rounds=round(batches + sweeps + 2 * certificates),
        messages=round(messages),
        bytes=round(size),
        seconds=seconds / len(plan.requesters),
        assumption=_assumption(plan, links, passes),
    )


def _counts(plan: Plan, passes: float) -> tuple[float, float, float]:
    """Batches, snapshots and passes that are certificates only, of all requesters together."""
    requesters = len(plan.requesters)
    certifies = plan.job.tol > 0 or plan.job.step == "auto"
    coincide = plan.synchronous and plan.method == "afsvrg"
    certificates = passes / CERTIFICATE_EVERY if certifies and not coincide else 0.0
    own = (passes - certificates) / requesters
    if plan.method == "afsvrg":
        training = max(0.0, own - 1) * SNAPSHOT_EVERY / (SNAPSHOT_EVERY + 1)
    else:
        training = max(0.0, own - 1) if plan.method == "afsaga" else own
    return requesters * training * plan.rows / plan.batch_size, requesters * (own - training), certificates


def _passes_of(plan: Plan) -> float:
    """The budget in passes, if there is one."""
    if plan.job.max_rounds is None:
        return ASSUMED_PASSES
    low, high = 0.0, 1.0 + plan.job.max_rounds * len(plan.requesters)
    for _ in range(60):
        middle = (low + high) / 2
        batches, sweeps, certificates = _counts(plan, middle)
        low, high = (
            (middle, high) if batches + sweeps + 2 * certificates < plan.job.max_rounds else (low, middle)
        )
    return high


def _sum(plan: Plan, links: Links, nonzeros: Mapping[str, int], what: int, rows: int) -> _Sum:
    """One total over so many rows, in chunks; of the small sums, over so many numbers."""
    parties = len(plan.parties)
    aggregation = AGGREGATIONS[plan.job.aggregation]
    chunks = ceil(rows / CHUNK)
    ask = _size(Ask(0, 0, 2**16, what, 2**16, 2**16, 0, rows, bytes(ROW * rows if what == SCORES else 0)))
    words = rows * (WIDE if what == NORMS else VALUE * plan.classes)
    share = _size(Share(0, 0, 2**16, 0, bytes(words // chunks)))
    messages = aggregation.messages(parties) * chunks
    shares = messages - (parties - 1) * chunks
    hops = 1 if plan.job.aggregation == "pairwise" else max(1, ceil(log2(parties)))
    wire = 0.0 if links.bandwidth is None else chunks * (ask + share) / links.bandwidth
    return _Sum(
        messages=messages,
        bytes=(parties - 1) * chunks * ask + shares * share,
        seconds=hops * (2 * chunks * links.latency + wire)
        + messages * links.per_message
        + _computing(plan, nonzeros, what, rows),
    )


def _computing(plan: Plan, nonzeros: Mapping[str, int], what: int, rows: int) -> float:
    """A product at every party side by side, then a step of the same size."""
    from colonnade.runtime.world import calibrated

    if what == NORMS:
        return 0.0
    cost = calibrated()
    largest = max(nonzeros.values(), default=0) * rows / plan.rows
    return 2 * (cost.per_call + largest * cost.per_nonzero_dense)


def _pushed(plan: Plan, receivers: int, rows: int) -> _Sum:
    """What was learnt about so many rows, sent on. Nobody waits for it."""
    chunks = ceil(rows / CHUNK)
    push = _size(Push(0, 2**16, 1, 0, bytes(rows * VALUE * plan.classes // chunks)))
    return _Sum(messages=receivers * chunks, bytes=receivers * chunks * push, seconds=0.0)


def _size(message: AnyMessage) -> int:
    return FRAME_PREFIX + len(encode(message))


def shown(passes: float) -> str:
    return f"{passes:,.0f}" if passes >= 10 else f"{passes:.2g}"


def _assumption(plan: Plan, links: Links, passes: float) -> str:
    why = "as max_rounds allows" if plan.job.max_rounds is not None else "an assumption: 5 to 50 are usual"
    speed = (
        "no limit on bandwidth"
        if links.bandwidth in (None, inf)
        else f"{links.bandwidth:,.0f} bytes/s a link"
    )
    return (
        f"For {shown(passes)} passes over the rows ({why}), {links.latency * 1e3:g} ms a message, {speed}, "
        "computing as calibrated; joining and TLS are not counted."
    )
