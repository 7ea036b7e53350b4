"""The command line: commands, and one flag for each field of the structs behind them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, NoReturn

import msgspec

from colonnade import __version__
from colonnade.cli.settings import amount, build, options
from colonnade.errors import ConfigurationError, nearest
from colonnade.job import Job


def _says(text: str) -> msgspec.Meta:
    return msgspec.Meta(description=text)


class WorldFlags(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The simulated world that `simulate` runs in."""

    latency: Annotated[str, _says("time a message takes, e.g. 20ms")] = "0"
    bandwidth: Annotated[str | None, _says("of each link, e.g. 100Mbit or 12.5MB a second; no limit")] = None
    jitter: Annotated[str, _says("random time on top of the latency, at most this")] = "0"
    straggler: Annotated[tuple[str, ...], _says("party=3: three times slower; several with commas")] = ()
    lanes: Annotated[
        Literal["requester", "party"], _says("a party's answers queue for each requester, or all in one line")
    ] = "requester"
    seed: Annotated[int, _says("seed of the world's chances")] = 0


TIMES = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
RATES = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "kbit": 125.0, "Mbit": 125e3, "Gbit": 125e6}


def world_settings(flags: WorldFlags) -> dict[str, Any]:
    """What `World` takes: seconds, bytes a second, speeds."""
    speeds = {}
    for text in flags.straggler:
        party, _, times = text.partition("=")
        speeds[party] = 1.0 / _slower(times, text)
    return {
        "latency": amount(flags.latency, TIMES, "--latency"),
        "bandwidth": None if flags.bandwidth is None else amount(flags.bandwidth, RATES, "--bandwidth"),
        "jitter": amount(flags.jitter, TIMES, "--jitter"),
        "speeds": speeds,
        "lanes": flags.lanes,
        "seed": flags.seed,
    }


def _slower(times: str, text: str) -> float:
    factor = amount(times, {}, f"--straggler {text}") if times else 0.0
    if not 0 < factor < float("inf"):
        raise ConfigurationError(
            f"--straggler {text}: give party=times, such as bank=3 for three times slower"
        )
    return factor


@dataclass(frozen=True)
class Command:
    """What was asked for."""

    name: str
    path: str
    job: dict[str, str] = field(default_factory=dict)
    """Fields of `[job]` given as flags, still text."""
    world: dict[str, Any] = field(default_factory=dict)
    out: str | None = None
    json: bool = False


class Parser(argparse.ArgumentParser):
    """Refuses in one sentence."""

    def error(self, message: str) -> NoReturn:
        raise ConfigurationError(f"{message} (colonnade --help lists what there is)")


COMMANDS = {
    "train": "train with one process a party on this machine, over TLS",
    "simulate": "train in virtual time: what would latency and a straggler cost?",
    "check": "read everything, say what is wrong, what it would cost and what would be learnt",
    "report": "show a finished run again, and write its page",
}


def parse(argv: Sequence[str]) -> Command:
    parser = _parser()
    known, unknown = parser.parse_known_args(argv)
    if known.command is None:
        raise ConfigurationError(f"name a command: {', '.join(COMMANDS)} (colonnade --help says more)")
    if unknown:
        raise ConfigurationError(_unknown(unknown[0], known.command, parser))
    given = vars(known)
    flags = ((name, given.get(f"job_{name}")) for name in options(Job))
    job = {name: _text(value) for name, value in flags if value is not None}
    for text in given.get("set") or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise ConfigurationError(f"--set {text}: give field=value, such as --set step=0.1")
        job[name.strip()] = value.strip()
    return Command(
        name=known.command,
        path=known.path,
        job=job,
        world=_world(given) if known.command == "simulate" else {},
        out=given.get("out"),
        json=bool(given.get("json")),
    )


def _text(value: str | bool) -> str:
    return value if isinstance(value, str) else str(value).lower()


def _world(given: dict[str, Any]) -> dict[str, Any]:
    fields = options(WorldFlags)
    texts = {name: given[f"world_{name}"] for name in fields if given.get(f"world_{name}") is not None}
    data = {name: _world_value(fields[name], text) for name, text in texts.items()}
    return world_settings(build(WorldFlags, data, "options"))


def _world_value(option: Any, text: str) -> Any:
    """Amounts stay text: their units are read later."""
    if option.expected == "text":
        return text
    return text.split(",") if option.name == "straggler" else option.parse(text)


def _unknown(argument: str, command: str, parser: Parser) -> str:
    if not argument.startswith("-"):
        return f"{command} takes one file or folder, and there is also {argument!r}: leave one out"
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    flags = [flag for action in commands.choices[command]._actions for flag in action.option_strings]
    name = argument.split("=")[0]
    hint = nearest(name, flags)
    shown = hint if hint.startswith("did you") else f"colonnade {command} --help lists the options"
    return f"unknown option {name} of {command}: {shown}"


def _parser() -> Parser:
    parser = Parser(
        prog="colonnade",
        description="Train one model on columns that several organisations hold about the same rows.",
        epilog="Exit codes: 0 done, 1 the run failed, 2 misuse, 130 interrupted.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"colonnade {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)
    for name, does in COMMANDS.items():
        command = commands.add_parser(name, help=does, allow_abbrev=False)
        command.description = f"{does[0].upper()}{does[1:]}"
        command.usage = f"colonnade {name} [OPTIONS] {'RUN' if name == 'report' else 'job.toml'}"
        if name == "report":
            command.add_argument("path", metavar="RUN", help="the folder that a run was saved to")
            command.add_argument("--out", metavar="PAGE", help="where the page goes (default: in the folder)")
        else:
            _add_job(command, name)
    return parser


def _add_job(command: argparse.ArgumentParser, name: str) -> None:
    command.add_argument("path", metavar="job.toml", help="the job file; party files stand beside it")
    command.add_argument("--json", action="store_true", help="one JSON object an event, for machines")
    if name != "check":
        command.add_argument("--out", metavar="FOLDER", help="where the run goes (default: runs/job-1, …)")
    if name == "simulate":
        _add_flags(command.add_argument_group("the simulated world"), WorldFlags, "world")
    group = command.add_argument_group("the job", "each overrides the field of [job] with its name")
    group.add_argument("--set", action="append", metavar="FIELD=VALUE", help="the same for any field")
    _add_flags(group, Job, "job")


def _add_flags(group: argparse._ArgumentGroup, struct: type[msgspec.Struct], prefix: str) -> None:
    for option in options(struct).values():
        destination = f"{prefix}_{option.name}"
        said = f"{option.help} (default: {_default(option.default)})".replace("%", "%%")
        if option.is_switch:
            group.add_argument(
                option.flag, dest=destination, action=argparse.BooleanOptionalAction, help=said
            )
        else:
            group.add_argument(option.flag, dest=destination, metavar=option.metavar, help=said)


def _default(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None or value == () else str(value)
