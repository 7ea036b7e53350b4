"""job.toml, what all agree on, and the party files beside it, which are private."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from colonnade.cli.settings import build, options, read_toml
from colonnade.data.preparation import Prepare
from colonnade.errors import ConfigurationError, nearest
from colonnade.job import Job, check_names

Columns = tuple[str | int, ...]


def _says(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class PublicParty(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[parties.bank]` of job.toml: what all may know of one party."""

    address: Annotated[str | None, _says("host:port where it listens; not for local runs")] = None
    certificate: Annotated[str | None, _says("its certificate, PEM; not for local runs")] = None
    columns: Annotated[Columns | None, _says("its columns, if they are public")] = None


class Local(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[local]` of job.toml: one table for all parties, on this machine only."""

    table: Annotated[str, _says("the table's file, beside job.toml")]
    id: Annotated[str | None, _says("its id column")] = None
    label: Annotated[str | bool | None, _says("its label column; for libsvm, true")] = None
    columns: Annotated[
        dict[str, Columns | str] | None, _says('a party\'s columns: a list of names, or "first:last"')
    ] = None
    prepare: Annotated[Prepare, _says("how the table becomes numbers")] = Prepare()


class JobFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """job.toml."""

    job: Annotated[Job, _says("what is trained, how, and when it ends")] = Job()
    parties: Annotated[dict[str, PublicParty], _says("what all may know of each party")] = {}
    local: Annotated[Local | None, _says("one table for all parties, for runs on one machine")] = None


class PartyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`<party>.toml` beside job.toml: what one party holds."""

    table: Annotated[str, _says("the table's file, beside this one")]
    name: Annotated[str | None, _says("the party's name, as in job.toml")] = None
    id: Annotated[str | None, _says("the id column")] = None
    label: Annotated[str | bool | None, _says("the label column; for libsvm, true")] = None
    columns: Annotated[
        Columns | str | None, _says('columns to train on, or "first:last"; all but id and label if left out')
    ] = None
    prepare: Annotated[Prepare, _says("how the table becomes numbers")] = Prepare()


def read_job(path: Path, overrides: Mapping[str, str]) -> JobFile:
    """job.toml with some fields of `[job]` given otherwise on the command line."""
    data = read_toml(path)
    source = path.name
    section = data.get("job", {})
    if overrides and isinstance(section, dict):
        data["job"] = section | override(overrides)
        source = f"{path.name} with your options"
    return build(JobFile, data, source)


def override(texts: Mapping[str, str]) -> dict[str, Any]:
    """Values for fields of Job as the command line gives them."""
    known = options(Job)
    for name in texts:
        if name not in known:
            raise ConfigurationError(f"--set {name}: the job has no such field: {nearest(name, list(known))}")
    return {name: known[name].parse(text) for name, text in texts.items()}


def read_party(folder: Path, party: str) -> PartyFile:
    path = folder / f"{party}.toml"
    if not path.is_file():
        raise ConfigurationError(
            f"{path}: no such file: name {party!r}'s table there, or one for all under [local]"
        )
    described = build(PartyFile, read_toml(path), path.name)
    if described.name not in (None, party):
        raise ConfigurationError(
            f"{path.name}: name = {described.name!r}: the file of {party!r} has its name, or none"
        )
    return described


def party_names(file: JobFile, source: str) -> tuple[str, ...]:
    """Who takes part, in the job's order. Commands need two: alone there is nothing to hide from anybody."""
    names = _named(file, source)
    if len(names) < 2:
        raise ConfigurationError(
            f"{source}: {len(names)} parties, and a job takes two: name them under [parties] or as parties = …"
        )
    check_names(names)
    return names


def _named(file: JobFile, source: str) -> tuple[str, ...]:
    agreed, local = file.job.parties, file.local
    described = tuple(file.parties) or tuple((local and local.columns) or ())
    if isinstance(agreed, int) and not described:
        return tuple(f"p{number}" for number in range(agreed))
    if not isinstance(agreed, tuple):
        return described
    for name in described:
        if name not in agreed:
            hint = nearest(name, agreed)
            raise ConfigurationError(f"{source}: party {name!r} is not among the job's parties: {hint}")
    return agreed
