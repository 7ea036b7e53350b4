"""The one way in: a job, a world, blocks and labels become a report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from msgspec import structs

from colonnade.algorithms import party as parties_of
from colonnade.algorithms.result import Result, decode
from colonnade.core.blocks import FeatureBlock, SparseBlock, check_block
from colonnade.core.losses import LOSSES
from colonnade.data.alignment import ids_digest, refuse_misaligned
from colonnade.errors import ColonnadeError, ConfigurationError, DataError
from colonnade.job import Job, Plan, plan
from colonnade.privacy import exposure
from colonnade.record import Report
from colonnade.runtime.host import Promise
from colonnade.runtime.simulated import DeadlockError, SimulatedHost, Simulation
from colonnade.runtime.world import World
from colonnade.tracing import objective, trace_of

if TYPE_CHECKING:
    from colonnade.algorithms.party import Party

Array = np.ndarray[Any, Any]
WorldName = Literal["simulated", "loopback", "processes"]
Watch = Callable[[str, dict[str, Any]], None]
UNTIL_SPACING = 1.02
EVALUATING = "training has ended; working out the exact objective along the way"


def simulate(job: Job, blocks: Any, labels: Any, world: World | None = None, **more: Any) -> Report:
    """Train in virtual time: deterministic, one thread, any number of parties."""
    return run(job, world or World(), blocks, labels, **more)


def train_locally(job: Job, blocks: Any, labels: Any, **more: Any) -> Report:
    """Train with one process a party on this machine, over loopback TLS."""
    return run(job, "processes", blocks, labels, **more)


def run(
    job: Job,
    world: World | WorldName,
    blocks: Mapping[str, Any] | Sequence[Any],
    labels: Any,
    *,
    ids: Mapping[str, Sequence[str] | None] | None = None,
    columns: Mapping[str, Sequence[str]] | None = None,
    label_parties: Sequence[str] | None = None,
    watch: Watch | None = None,
) -> Report:
    """Train `job` on blocks of aligned rows.

    `blocks`: a list (parties p0, p1, …) or {name: block}. `ids`: row ids a party, compared at joining.
    `columns`: names for the report. `label_parties`: who holds y when the job does not say (default: all).
    `watch`: called with a party's name and its progress.
    """
    if isinstance(world, str) and world not in ("simulated", "loopback", "processes"):
        raise ConfigurationError(f"world = {world!r}: known: simulated, loopback, processes")
    given = _named(blocks)
    held = {
        name: check_block(block, name, None if columns is None else columns.get(name))
        for name, block in given.items()
    }
    encoded, classes = LOSSES[job.loss].encode(labels)
    _same_rows(held, encoded, ids)
    agreed = plan(job, tuple(held), len(encoded), 1 if classes is None else len(classes), label_parties)
    digests = {name: ids_digest(None if ids is None else ids.get(name), agreed.rows) for name in held}
    with _one_blas_thread():
        if isinstance(world, World) or world == "simulated":
            world = world if isinstance(world, World) else World()
            results, transcript = _simulated(agreed, world, held, encoded, digests, watch)
            settings = {k: v for k, v in structs.asdict(world).items() if k not in ("cost", "record")}
            kind = "simulated"
        else:
            run_parties = _loopback if world == "loopback" else _processes
            results, transcript, settings, kind = (
                run_parties(agreed, held, encoded, digests, watch),
                None,
                {},
                world,
            )
        if watch is not None:
            watch(agreed.coordinator, {"stage": EVALUATING, **_counted(results)})
        names = {name: [str(c) for c in columns[name]] for name in held} if columns else _numbered(held)
        return _report(agreed, kind, settings, held, encoded, classes, results, transcript, names)


def _counted(results: Mapping[str, Result]) -> dict[str, int]:
    """What all parties did together, by their last notes."""
    last = [result.notes[-1] for result in results.values()]
    names = ("rounds", "rows", "steps", "messages", "bytes")
    return {name: sum(getattr(note, name) for note in last) for name in names}


def _named(blocks: Mapping[str, Any] | Sequence[Any]) -> dict[str, Any]:
    if isinstance(blocks, Mapping):
        return {str(name): block for name, block in blocks.items()}
    return {f"p{number}": block for number, block in enumerate(blocks)}


def _numbered(blocks: Mapping[str, FeatureBlock]) -> dict[str, list[str]]:
    return {name: [str(number) for number in range(block.columns)] for name, block in blocks.items()}


def _same_rows(
    blocks: Mapping[str, FeatureBlock], labels: Array, ids: Mapping[str, Sequence[str] | None] | None
) -> None:
    if not blocks:
        raise DataError("there are no blocks: give at least one party's columns")
    first = next(iter(blocks))
    for name, block in blocks.items():
        if block.rows != blocks[first].rows:
            raise DataError(
                f"{first} has {blocks[first].rows:,} rows and {name} has {block.rows:,}: "
                "give all parties the same rows, in the same order"
            )
    if len(labels) != blocks[first].rows:
        raise DataError(
            f"there are {len(labels):,} labels for {blocks[first].rows:,} rows: give one label a row"
        )
    if ids is not None:
        refuse_misaligned(ids, {name: block.rows for name, block in blocks.items()})


def _one_blas_thread() -> Any:
    """The same bits in every world: the order of additions must not depend on threads."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _labels_for(agreed: Plan, name: str, labels: Array) -> Array | None:
    return labels if name in agreed.labels else None


def _simulated(
    agreed: Plan,
    world: World,
    blocks: Mapping[str, FeatureBlock],
    labels: Array,
    ids: Mapping[str, bytes],
    watch: Watch | None,
) -> tuple[dict[str, Result], Any]:
    simulation = Simulation(world, agreed.parties)
    parties: dict[str, Party] = {}
    for name, block in blocks.items():
        host: SimulatedHost = simulation.hosts[name]
        host.holds(isinstance(block, SparseBlock))
        seen = None if watch is None else lambda event, name=name: watch(name, event)
        parties[name] = parties_of.Party(
            host, agreed, block, _labels_for(agreed, name, labels), ids[name], seen
        )
    if world.until is not None:
        _stop_at(agreed, parties, labels, world.until)
    finished = {name: party.begin() for name, party in parties.items()}
    try:
        simulation.run(finished, parties[agreed.coordinator].ending.interrupt)
    except DeadlockError as error:
        raise ColonnadeError(str(error)) from None
    results = {
        name: promise.result()
        for name, promise in finished.items()
        if promise.ready and simulation.hosts[name].alive
    }
    return results, simulation.transcript


def _stop_at(agreed: Plan, parties: Mapping[str, Party], labels: Array, target: float) -> None:
    """An observer outside the clock: ends the run once the exact objective of the weights that exist is low enough."""
    coordinator = parties[agreed.coordinator]
    everything = slice(0, agreed.rows)
    looked_at = [0.0]

    def look() -> None:
        if coordinator.ending.stopping or coordinator.meter.rounds < looked_at[0] * UNTIL_SPACING:
            return
        looked_at[0] = coordinator.meter.rounds
        scores = sum(party.model.product(everything) for party in parties.values())
        squares = sum(party.model.weights.squared_norm() for party in parties.values())
        if objective(agreed, scores, labels, squares, coordinator.model.intercept) <= target:  # type: ignore[arg-type]
            coordinator.ending.stop("budget", "the objective that the world names was reached")

    coordinator.meter.on_note = look


def _loopback(
    agreed: Plan,
    blocks: Mapping[str, FeatureBlock],
    labels: Array,
    ids: Mapping[str, bytes],
    watch: Watch | None,
) -> dict[str, Result]:
    from colonnade.runtime.loopback import run_loopback

    def starter(name: str) -> Callable[[Any], Promise[Result]]:
        seen = None if watch is None else lambda event: watch(name, event)
        own = _labels_for(agreed, name, labels)
        return lambda host: parties_of.start(host, agreed, blocks[name], own, ids[name], seen)

    return run_loopback({name: starter(name) for name in blocks})


def _processes(
    agreed: Plan,
    blocks: Mapping[str, FeatureBlock],
    labels: Array,
    ids: Mapping[str, bytes],
    watch: Watch | None,
) -> dict[str, Result]:
    from colonnade.runtime.launcher import run_processes

    own = {name: _labels_for(agreed, name, labels) for name in blocks}
    collected = run_processes(
        agreed, {name: block.matrix for name, block in blocks.items()}, own, dict(ids), watch
    )
    results = {name: decode(payload) for name, payload in collected.results.items()}
    for name, reason in collected.died.items():
        for result in results.values():
            if result.outcome != "peer lost":
                result.outcome, result.detail = "peer lost", f"peer lost: {name} ({reason})"
    if not results:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in collected.died.items())
        raise ColonnadeError(f"no party finished ({reasons})")
    return results


def _report(
    agreed: Plan,
    kind: str,
    settings: dict[str, Any],
    blocks: Mapping[str, FeatureBlock],
    labels: Array,
    classes: Any,
    results: dict[str, Result],
    transcript: Any,
    columns: dict[str, list[str]],
) -> Report:
    decided = results.get(agreed.coordinator) or next(iter(results.values()))
    lost = [name for name in agreed.parties if name not in results]
    if lost and decided.outcome != "peer lost":
        decided.outcome, decided.detail = "peer lost", f"peer lost: {', '.join(lost)} left without a result"
    trace = trace_of(agreed, blocks, labels, results)
    seconds = float(trace["seconds"][-1])
    received = {name: results[name].received for name in agreed.parties if name in results}
    sizes = {name: block.columns for name, block in blocks.items()}
    findings = exposure.observed(agreed, sizes, received)
    shape = () if agreed.classes == 1 else (agreed.classes,)
    weights = {
        name: results[name].weights if name in results else np.full((blocks[name].columns, *shape), np.nan)
        for name in agreed.parties
    }
    intercept = decided.intercept if agreed.coordinator in results else np.full(shape, np.nan)
    return Report(
        job=agreed.job,
        chosen={**agreed.chosen(), "step": decided.step},
        world=kind,
        world_settings=settings,
        rows=agreed.rows,
        columns=columns,
        classes=None if classes is None else list(classes),
        trace=trace,
        weights=weights,
        intercept=float(intercept) if agreed.classes == 1 else intercept,
        outcome=decided.outcome,
        detail=decided.detail,
        objective=float(trace["objective"][-1]),
        certificate=decided.certificate,
        seconds=seconds,
        exposure=findings,
        workload={name: _workload(results[name]) for name in received},
        received=received,
        transcript=transcript,
    )


def _workload(result: Result) -> dict[str, float]:
    total = result.finished - result.started
    last = result.notes[-1]
    return {
        "computing": result.computing,
        "communicating": result.communicating,
        "waiting": max(0.0, total - result.computing - result.communicating),
        "rounds": last.rounds,
        "rows": last.rows,
        "steps": last.steps,
        "messages": last.messages,
        "bytes": last.bytes,
    }
