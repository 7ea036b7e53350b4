"""What all parties agree on: a frozen `Job`, and the `Plan` it becomes once parties and rows are known."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import structs

from colonnade.errors import ConfigurationError, nearest

MOST_PARTIES = 2**16 - 1
"""Positions on the wire have 16 bits."""

LossName = Literal["logistic", "multinomial", "squared"]
Method = Literal["auto", "afsgd", "afsvrg", "afsaga"]
ScheduleName = Literal["auto", "asynchronous", "synchronous"]
Sharing = Literal["auto", "own", "push"]
AggregationName = Literal["pairwise", "two-tree", "plain"]


def _says(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class Job(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is trained, how, and when it ends. job.toml has the same names under `[job]`."""

    loss: Annotated[LossName, _says("logistic, multinomial or squared")] = "logistic"
    method: Annotated[Method, _says("the algorithm; auto is afsaga")] = "auto"
    schedule: Annotated[ScheduleName, _says("who waits for whom; auto is asynchronous")] = "auto"
    sharing: Annotated[
        Sharing, _says("own: every party asks for its own totals; push: one total moves all")
    ] = "auto"
    aggregation: Annotated[AggregationName, _says("how shares are hidden inside a total")] = "pairwise"
    parties: Annotated[tuple[str, ...] | int | None, _says("names in order, or how many")] = None
    labels: Annotated[
        tuple[str, ...] | None, _says("parties that hold y (default: all in Python, first in commands)")
    ] = None
    alpha: Annotated[float, _says("penalty: mean loss + alpha/2 |w|^2")] = 1e-4
    fit_intercept: Annotated[bool, _says("an intercept, held by the first label party")] = True
    penalise_intercept: Annotated[bool, _says("the papers' ridge: alpha/2 b^2 too")] = False
    batch_size: Annotated[int, _says("rows asked for at once (at most all)")] = 128
    step: Annotated[float | Literal["auto"], _says("a constant step, or auto")] = "auto"
    tol: Annotated[float, _says("stop once the objective is certainly this near its optimum; 0: never")] = (
        1e-6
    )
    max_rounds: Annotated[int | None, _says("stop after so many rounds")] = None
    max_seconds: Annotated[float | None, _says("stop after so many seconds of the world's clock")] = None
    timeout: Annotated[float, _says("seconds of silence after which a party counts as lost")] = 30.0
    random_state: Annotated[int, _says("seed of the batches")] = 0

    def __post_init__(self) -> None:
        _make_plain(self)
        _check_choices(self)
        _check_numbers(self)
        _check_combination(self)

    def digest(self) -> bytes:
        """SHA-256 of the job as all parties must hold it."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).digest()


def _make_plain(job: Job) -> None:
    """Lists, one name and numpy's numbers are taken for what they mean, so that equal jobs have equal digests."""
    for field in job.__struct_fields__:
        value = getattr(job, field)
        if isinstance(value, list):
            structs.force_setattr(job, field, tuple(value))
        elif field == "labels" and isinstance(value, str):
            structs.force_setattr(job, field, (value,))
        elif hasattr(value, "item"):
            structs.force_setattr(job, field, value.item())


def _check_choices(job: Job) -> None:
    for field, choices in CHOICES.items():
        value = getattr(job, field)
        if value not in choices:
            raise ConfigurationError(f"{field} = {value!r}: {nearest(str(value), choices)}")


def _check_numbers(job: Job) -> None:
    def need(good: bool, field: str, what: str) -> None:
        if not good:
            raise ConfigurationError(f"{field} = {getattr(job, field)!r}: {what}")

    def number(value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value

    for field in ("fit_intercept", "penalise_intercept"):
        need(isinstance(getattr(job, field), bool), field, "give true or false")
    need(number(job.alpha) and 0 <= job.alpha < float("inf"), "alpha", "give a number of at least 0")
    need(
        _whole(job.batch_size) and job.batch_size >= 1,
        "batch_size",
        "give a whole number of rows, at least 1",
    )
    need(
        job.step == "auto" or (number(job.step) and 0 < float(job.step) < float("inf")),
        "step",
        'give a positive number, or "auto"',
    )
    if job.step != "auto" and job.step * job.alpha >= 1:
        raise ConfigurationError(
            f"step * alpha = {job.step * job.alpha:g} is not below 1, so a step would overshoot zero: lower the step"
        )
    need(number(job.tol) and job.tol >= 0, "tol", "give a number of at least 0")
    need(
        job.max_rounds is None or (_whole(job.max_rounds) and job.max_rounds >= 0),
        "max_rounds",
        "give a whole number",
    )
    need(
        job.max_seconds is None or (number(job.max_seconds) and job.max_seconds > 0),
        "max_seconds",
        "give seconds above 0",
    )
    need(number(job.timeout) and job.timeout > 0, "timeout", "give seconds above 0")
    need(
        _whole(job.random_state) and job.random_state >= 0,
        "random_state",
        "give a whole number of at least 0",
    )


def _check_combination(job: Job) -> None:
    names = job.parties
    if isinstance(names, int):
        if isinstance(names, bool) or names < 1:
            raise ConfigurationError(f"parties = {names!r}: give names, or a number of at least 1")
    elif names is not None:
        check_names(names)
    if job.labels is not None and not job.labels:
        raise ConfigurationError("labels = []: name at least one party that holds y")
    if job.sharing == "own" and job.schedule == "synchronous":
        raise ConfigurationError(
            'sharing = "own" with schedule = "synchronous": a synchronous round has one total for everybody, '
            'so there is nothing of one\'s own to share; use sharing = "push" or "auto"'
        )
    if job.penalise_intercept and not job.fit_intercept:
        raise ConfigurationError("penalise_intercept = true needs fit_intercept = true")


def check_names(names: Sequence[str]) -> None:
    """Party names are distinct and usable as file and certificate names."""
    for name in names:
        if (
            not name
            or len(name) > 64
            or not all(c.isalnum() or c in "-_." for c in name)
            or name.startswith(".")
        ):
            raise ConfigurationError(
                f"party name {name!r}: use letters, digits, '-', '_' and '.', at most 64"
            )
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ConfigurationError(f"party {twice!r} is named twice: party names are distinct")
    if len(names) > MOST_PARTIES:
        raise ConfigurationError(f"{len(names):,} parties: at most {MOST_PARTIES:,} can take part")


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


CHOICES: dict[str, tuple[str, ...]] = {
    "loss": get_args(LossName),
    "method": get_args(Method),
    "schedule": get_args(ScheduleName),
    "sharing": get_args(Sharing),
    "aggregation": get_args(AggregationName),
}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A job with every `auto` decided, for these parties, rows and classes: what a party is built from."""

    job: Job
    parties: tuple[str, ...]
    labels: tuple[str, ...]
    rows: int
    classes: int
    """Columns of the scores: 1, or the number of classes of a multinomial job."""
    method: str
    synchronous: bool
    sharing: Literal["own", "push"]

    @property
    def coordinator(self) -> str:
        return self.labels[0]

    @property
    def requesters(self) -> tuple[str, ...]:
        """Who asks for totals: one party if its totals move every block, else each label party for itself."""
        alone = self.synchronous or (self.sharing == "push" and len(self.labels) == len(self.parties))
        return (self.coordinator,) if alone else self.labels

    @property
    def receivers(self) -> tuple[str, ...]:
        """Who steps on what the coordinator pushes: everybody that does not ask for itself."""
        asking = set(self.requesters)
        return tuple(name for name in self.parties if name not in asking)

    @property
    def batch_size(self) -> int:
        return self.job.batch_size

    def digest(self) -> bytes:
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).digest()

    def chosen(self) -> dict[str, Any]:
        """What `auto` became: stands in the report."""
        return {
            "method": self.method,
            "schedule": "synchronous" if self.synchronous else "asynchronous",
            "sharing": self.sharing,
            "labels": list(self.labels),
            "parties": list(self.parties),
        }


def plan(
    job: Job, parties: Sequence[str], rows: int, classes: int, labels: Sequence[str] | None = None
) -> Plan:
    """Decide every `auto` of a job, or refuse with the reason. `labels`: who holds y, when the job does not say."""
    names = tuple(parties)
    check_names(names)
    if isinstance(job.parties, tuple) and job.parties != names:
        raise ConfigurationError(
            f"the job names the parties {list(job.parties)}, the blocks are {list(names)}: same names, same order"
        )
    if isinstance(job.parties, int) and job.parties != len(names):
        raise ConfigurationError(f"the job is for {job.parties} parties and there are {len(names)} blocks")
    holders = job.labels if job.labels is not None else tuple(labels) if labels is not None else names
    for name in holders:
        if name not in names:
            raise ConfigurationError(f"labels names {name!r}, which is no party: {nearest(name, names)}")
    holders = tuple(name for name in names if name in holders)
    if job.batch_size > rows:
        raise ConfigurationError(f"batch_size = {job.batch_size} is larger than the {rows} rows: lower it")
    synchronous = job.schedule == "synchronous"
    everybody = len(holders) == len(names)
    if job.sharing == "own" and not everybody:
        without = next(name for name in names if name not in holders)
        raise ConfigurationError(
            f'sharing = "own" while {without!r} holds no labels: its weights would never move; '
            'use sharing = "push" or "auto"'
        )
    if job.aggregation == "two-tree" and len(names) == 2:
        raise ConfigurationError(
            'aggregation = "two-tree" needs three parties: with two, the total gives away the partner\'s share; '
            'use "pairwise"'
        )
    sharing = job.sharing if job.sharing != "auto" else "own" if everybody and not synchronous else "push"
    method = "afsaga" if job.method == "auto" else job.method
    return Plan(
        job=job,
        parties=names,
        labels=holders,
        rows=rows,
        classes=classes if job.loss == "multinomial" else 1,
        method=method,
        synchronous=synchronous,
        sharing=sharing,
    )
