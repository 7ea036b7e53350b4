"""From a job file to everything that a run on this machine needs: job, blocks, labels, row order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from colonnade.cli.jobfile import Columns, JobFile, Local, PartyFile, party_names, read_job, read_party
from colonnade.data.alignment import refuse_misaligned
from colonnade.data.preparation import Prepare, Recipe, apply, fit
from colonnade.data.sources import read
from colonnade.data.tables import Table
from colonnade.errors import ConfigurationError, DataError, nearest
from colonnade.job import Job, Plan, plan


@dataclass(frozen=True)
class Inputs:
    """All that `train`, `simulate` and `check` start from."""

    job: Job
    blocks: dict[str, Any]
    labels: np.ndarray[Any, Any]
    ids: dict[str, list[str] | None]
    columns: dict[str, list[str]]
    recipes: dict[str, Recipe]

    @property
    def rows(self) -> int:
        return len(self.labels)

    def plan(self) -> Plan:
        """The job with every `auto` decided for these tables, or the refusal that a run would end in."""
        from colonnade.core.losses import LOSSES

        _, classes = LOSSES[self.job.loss].encode(self.labels)
        return plan(self.job, tuple(self.blocks), self.rows, 1 if classes is None else len(classes))

    @property
    def nonzeros(self) -> dict[str, int]:
        return {name: int(getattr(block, "nnz", block.size)) for name, block in self.blocks.items()}


def gather(path: Path, overrides: Mapping[str, str]) -> Inputs:
    """Read the job, every party's table, and refuse what cannot be trained on before anything starts."""
    file = read_job(path, overrides)
    names = party_names(file, path.name)
    if file.local is not None:
        tables, prepares = _one_table(path, file.local, names)
    else:
        tables, prepares = _own_tables(path, names)
    holders = _label_parties(file.job, names, tables, path.name)
    refuse_misaligned(
        {name: table.ids for name, table in tables.items()},
        {name: table.rows for name, table in tables.items()},
    )
    _check_public(file, tables)
    recipes = {name: fit(tables[name], prepares[name]) for name in names}
    prepared = {name: apply(recipes[name], tables[name]) for name in names}
    return Inputs(
        job=msgspec.structs.replace(file.job, labels=holders),
        blocks={name: block.values for name, block in prepared.items()},
        labels=_labels(holders, tables),
        ids={name: table.ids for name, table in tables.items()},
        columns={name: list(block.names) for name, block in prepared.items()},
        recipes=recipes,
    )


Tables = tuple[dict[str, Table], dict[str, Prepare]]


def _own_tables(path: Path, names: tuple[str, ...]) -> Tables:
    files = {name: read_party(path.parent, name) for name in names}
    tables = {name: _read(path.parent, file, _selectors(file.columns)) for name, file in files.items()}
    return tables, {name: file.prepare for name, file in files.items()}


def _read(folder: Path, described: PartyFile | Local, columns: Columns | None = None) -> Table:
    label = described.label
    return read(folder / described.table, described.id, "label" if label is True else label or None, columns)


def _selectors(columns: Columns | str | None) -> Columns | None:
    return (columns,) if isinstance(columns, str) else columns


def _one_table(path: Path, local: Local, names: tuple[str, ...]) -> Tables:
    """One table dealt out: by `[local.columns]`, or in equal runs of columns."""
    table = _read(path.parent, local)
    if local.columns is None:
        dealt = dict(zip(names, _equal_runs(table, len(names)), strict=True))
    else:
        dealt = _dealt(local.columns, table, names, path.name)
    tables = {name: table.select(columns) for name, columns in dealt.items()}
    return tables, {name: _of_party(local.prepare, table, tables[name]) for name in names}


def _equal_runs(table: Table, parties: int) -> list[tuple[str, ...]]:
    if len(table.names) < parties:
        raise ConfigurationError(
            f"{table.source}: {len(table.names)} columns for {parties} parties: lower parties"
        )
    cuts = [len(table.names) * number // parties for number in range(parties + 1)]
    return [table.names[start:stop] for start, stop in pairwise(cuts)]


def _dealt(columns: Mapping[str, Any], table: Table, names: tuple[str, ...], source: str) -> dict[str, Any]:
    for name in columns:
        if name not in names:
            raise ConfigurationError(
                f"{source}: [local.columns] names {name!r}, which is no party: {nearest(name, names)}"
            )
    for name in names:
        if name not in columns:
            raise ConfigurationError(f"{source}: [local.columns] has no columns for {name!r}: add some")
    dealt = {name: table.select(_selectors(columns[name]) or ()).names for name in names}
    holder: dict[str, str] = {}
    for name, held in dealt.items():
        for column in held:
            if column in holder:
                raise ConfigurationError(
                    f"{source}: [local.columns] gives {column!r} to {holder[column]!r} and {name!r}: choose"
                )
            holder[column] = name
    return dealt


def _of_party(prepare: Prepare, whole: Table, part: Table) -> Prepare:
    """`[local.prepare]` names columns of all parties: keep those of one."""
    known, own = set(whole.names), set(part.names)
    lists = {
        field: tuple(name for name in value if name in own or name not in known)
        for field in ("standardise", "one_hot", "drop")
        if isinstance(value := getattr(prepare, field), tuple)
    }
    return msgspec.structs.replace(prepare, **lists)


def _label_parties(
    job: Job, names: tuple[str, ...], tables: Mapping[str, Table], source: str
) -> tuple[str, ...]:
    """Who holds y: whom the job names, or the first party whose file names a label."""
    holding = [name for name in names if tables[name].labels is not None]
    if not holding:
        raise ConfigurationError(
            f"{source}: no party's file names a label: add label = … to one, or under [local]"
        )
    if job.labels is None:
        return (holding[0],)
    for name in job.labels:
        if name not in names:
            raise ConfigurationError(f"{source}: labels names {name!r}, no party: {nearest(name, names)}")
        if name not in holding:
            raise ConfigurationError(
                f"{source}: labels names {name!r}, which has no label column: add label = … to {name}.toml"
            )
    return job.labels


def _labels(holders: tuple[str, ...], tables: Mapping[str, Table]) -> np.ndarray[Any, Any]:
    first, *others = ((name, np.asarray(tables[name].labels)) for name in holders)
    for name, labels in others:
        differs = np.flatnonzero(labels.astype(object) != first[1].astype(object))
        if len(differs):
            raise DataError(
                f"{first[0]!r} and {name!r} hold different labels in {len(differs)} rows, first in row "
                f"{differs[0] + 1} ({first[1][differs[0]]} against {labels[differs[0]]}): agree on one"
            )
    return first[1]


def _check_public(file: JobFile, tables: Mapping[str, Table]) -> None:
    """Columns that job.toml makes public are those that the party trains on."""
    for name, public in file.parties.items():
        if public.columns is not None:
            agreed = tables[name].select(public.columns).names
            extra = [column for column in tables[name].names if column not in set(agreed)]
            if extra:
                raise ConfigurationError(
                    f"{tables[name].source}: {name!r} would train on {extra[0]!r}, which [parties.{name}] of "
                    "the job does not list: agree on the columns"
                )
