"""Structs from TOML and flags: an option is declared once, as a typed field; all refusals follow from it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from colonnade.errors import ConfigurationError, nearest

S = TypeVar("S", bound=msgspec.Struct)

WORDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
METAVARS: dict[type, str] = {int: "N", float: "NUMBER", str: "TEXT"}


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise ConfigurationError(f"{path}: no such file: check the name") from None
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}): check the file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: not TOML ({error}): correct the file") from None


def build(struct: type[S], data: Mapping[str, Any], source: str, section: str = "") -> S:
    """The struct that a part of a file describes; `source` and `section` say where a refused key stands."""
    place = f"{source}: [{section}]" if section else f"{source}:"
    fields = options(struct)
    for key in data:
        if key not in fields:
            raise ConfigurationError(f"{place} unknown key {key!r}: {nearest(key, list(fields))}")
    for key, option in fields.items():
        if option.required and key not in data:
            raise ConfigurationError(f"{place} {key} is missing: give {option.expected} ({option.help})")
    values = {
        key: _value(fields[key].type, value, source, f"{section}.{key}" if section else key)
        for key, value in data.items()
    }
    try:
        return struct(**values)
    except ConfigurationError as error:
        raise ConfigurationError(f"{place} {error}") from None


def _value(kind: Any, value: Any, source: str, key: str) -> Any:
    inner = _inner(kind)
    if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and isinstance(value, dict):
        return build(inner, value, source, key)
    entry = get_args(inner)[1] if get_origin(inner) is dict else None
    if _is_struct(entry) and isinstance(value, dict):
        return {name: _value(entry, part, source, f"{key}.{name}") for name, part in value.items()}
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        section, _, name = key.rpartition(".")
        place = f"{source}: [{section}]" if section else f"{source}:"
        raise ConfigurationError(f"{place} {name} = {_shown(value)}: {_remedy(kind, value)}") from None


def _remedy(kind: Any, value: Any) -> str:
    choices = [choice for part in _parts(kind) if get_origin(part) is Literal for choice in get_args(part)]
    if isinstance(value, str) and choices and all(isinstance(choice, str) for choice in choices):
        hint = nearest(value, choices)
        return hint if hint.startswith("did you") else f"expected {expects(kind)}"
    return f"expected {expects(kind)}"


def _shown(value: Any) -> str:
    return "{…}" if isinstance(value, dict) else repr(value)


def expects(kind: Any) -> str:
    """What a value of this type looks like, in words."""
    return " or ".join(dict.fromkeys(_expected(part) for part in _parts(kind)))


def _expected(part: Any) -> str:
    if get_origin(part) is Literal:
        return " or ".join(repr(choice) for choice in get_args(part))
    if get_origin(part) is tuple:
        return "a list of names"
    if get_origin(part) is dict or _is_struct(part):
        return "a section"
    return WORDS.get(part, str(part))


def _metavars(part: Any) -> list[str]:
    if get_origin(part) is Literal:
        return [str(choice) for choice in get_args(part)]
    return ["NAMES" if get_origin(part) is tuple else METAVARS.get(part, "VALUE")]


def _parts(kind: Any) -> list[Any]:
    """The alternatives of a type, None left out: TOML has no such value, one leaves the key out."""
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if get_origin(kind) in (Union, UnionType):
        return [part for member in get_args(kind) for part in _parts(member) if part is not NoneType]
    return [kind]


def _inner(kind: Any) -> Any:
    parts = _parts(kind)
    return parts[0] if len(parts) == 1 else kind


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


class Option(msgspec.Struct, frozen=True):
    """One field of a struct as flags, help and errors see it."""

    name: str
    type: Any
    help: str
    default: Any
    required: bool

    @property
    def flag(self) -> str:
        return "--" + self.name.replace("_", "-")

    @property
    def expected(self) -> str:
        return expects(self.type)

    @property
    def metavar(self) -> str:
        return "|".join(word for part in _parts(self.type) for word in _metavars(part))

    @property
    def is_switch(self) -> bool:
        return _parts(self.type) == [bool]

    def parse(self, text: str) -> Any:
        """A value as TOML would have it; names may come bare and with commas."""
        lists = any(get_origin(part) is tuple for part in _parts(self.type))
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = [name.strip() for name in text.split(",")] if lists and "," in text else text
        choices = [get_args(part) for part in _parts(self.type) if get_origin(part) is Literal]
        if lists and isinstance(value, str) and not any(value in known for known in choices):
            return [value]
        return value


def options(struct: type[msgspec.Struct]) -> dict[str, Option]:
    """The fields of a struct, by name."""
    hints = get_type_hints(struct, include_extras=True)
    return {
        field.name: Option(
            name=field.name,
            type=hints[field.name],
            help=_help(hints[field.name]),
            default=None if field.required else field.default,
            required=field.required,
        )
        for field in msgspec.structs.fields(struct)
    }


def _help(kind: Any) -> str:
    described = [
        note.description for note in getattr(kind, "__metadata__", ()) if isinstance(note, msgspec.Meta)
    ]
    return described[0] or "" if described else ""


def amount(text: str, units: Mapping[str, float], what: str) -> float:
    """A number with a unit: "20ms", "1.5 MB"; without one, the number as it is."""
    match = re.fullmatch(r"\s*([-+.\deE]+?)\s*([a-zA-Zµ]*)(?:/s)?\s*", text)
    unit = match[2] if match else ""
    try:
        if match and (not unit or unit in units):
            return float(match[1]) * (units[unit] if unit else 1.0)
    except ValueError:
        pass
    raise ConfigurationError(f"{what} = {text!r}: give a number, with a unit if you like: {', '.join(units)}")
