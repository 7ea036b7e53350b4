"""Writes docs/wire.md: every message, field and check, and the legal order, from the code itself."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import inspect as types

from colonnade.wire import codec, conversation, messages, terms
from colonnade.wire.conversation import (
    COORDINATOR_ONLY,
    KINDS,
    OTHER_SIDE,
    REQUESTERS_ONLY,
    TABLE,
    Kind,
    State,
)

PAGE = Path(__file__).parents[1] / "docs" / "wire.md"

MEANINGS = {
    "after": "steps that the answering party must have taken first (synchronous jobs)",
    "detail": "one sentence for people",
    "digest": "HMAC of the ordered row ids under the pair's key",
    "done": "the requester has finished all its rounds below this one",
    "factor": "what the step is multiplied by",
    "incarnation": "the requester's: a new random number at each start, part of every mask's name",
    "job": "SHA-256 of the job",
    "keep": "the pass whose frozen weights are the result; nil: the weights as they are",
    "learnt": "bit 0: the values are slopes, else scores; bit 1: they are a new snapshot",
    "name": "who speaks",
    "outcome": "how the run ends",
    "public_key": "X25519, fresh for this incarnation",
    "requester": "whose sum it is",
    "round": "the requester's number for this sum",
    "rows": "uint32 row numbers, little-endian; empty for a range, and for sums that are not of rows",
    "signature": "of job, name, incarnation and public key, by the identity of the link's certificate",
    "start": "first row of a range, else 0; for norms, their pass",
    "step": "the step that everybody takes from now on",
    "stop": "row after the last of a range, else 0",
    "values": "float64 a row (and class), little-endian",
    "version": "of this protocol",
    "what": f"{messages.SCORES}: partial scores of rows; {messages.FROZEN}: the same at weights frozen for a "
    f"pass; {messages.NORMS}: squared norms of gradient and weights; {messages.BOUNDS}: bounds of the step",
    "words": "64-bit words a row (and class), or two 256-bit words, little-endian",
}
ELSEWHERE = {
    ("Hello", "incarnation"): "a new random number at each start",
    ("Hello", "rows"): "how many rows its table has",
    ("Retreat", "round"): "the pass whose frozen weights to go back to; 0: the start",
}
"""Fields whose name means something else in one message."""

STATES = {
    State.GREETING: "has said nothing yet",
    State.CHECKING: "has said who it is",
    State.OPEN: "has sent the digest of its row ids: training",
    State.STOPPING: "has said Stop or Stopped, and answers until the coordinator's Bye",
    State.CLOSED: "says nothing more",
}


def page() -> str:
    return "\n".join(
        [
            "# The wire",
            "",
            "*Written by `scripts/docs-wire` from `src/colonnade/wire`; change the code, not this page.*",
            "",
            paragraph(codec),
            "",
            f"Version {messages.VERSION}. Before the peer's Hello was read a payload has at most "
            f"{codec.HELLO_LIMIT:,} bytes, afterwards what the job's longest message needs; a longer frame "
            "is refused before it is held.",
            "",
            "## Messages",
            "",
            paragraph(messages),
            "",
            *(line for kind in KINDS for line in message_section(kind)),
            *order_section(),
            *checks_section(),
            "",
        ]
    )


def paragraph(thing: object) -> str:
    """What a docstring says after its first paragraph, or that one if it is all, as running text."""
    return (inspect.getdoc(thing) or "").split("\n\n", 1)[-1].replace("\n", " ")


def message_section(kind: Kind) -> Iterator[str]:
    yield f"### {number(kind)} {kind.__name__}"
    yield ""
    yield inspect.cleandoc(kind.__doc__ or "")
    yield ""
    fields = msgspec.structs.fields(kind)
    if fields:
        yield "| field | type | meaning |"
        yield "| --- | --- | --- |"
        for field in fields:
            meaning = ELSEWHERE.get((kind.__name__, field.name)) or MEANINGS[field.name]
            yield f"| `{field.name}` | {type_words(types.type_info(field.type))} | {meaning} |"
        yield ""


def number(kind: Kind) -> object:
    return kind.__struct_config__.tag


def type_words(found: types.Type) -> str:
    """A field's type as people say it."""
    match found:
        case types.IntType(lt=int(above)):
            return f"whole number below {bound(above)}"
        case types.FloatType(gt=0.0):
            return "number above 0"
        case types.FloatType(ge=float(low), le=float(high)):
            return f"number from {low:g} to {high:g}"
        case types.StrType(max_length=int(most)):
            return f"text, at most {most:,} characters"
        case types.BytesType(min_length=int(least), max_length=int(most)) if least == most:
            return f"{most} bytes"
        case types.BytesType(max_length=int(most)):
            return f"at most {most:,} bytes"
        case types.MemoryViewType():
            return "bytes"
        case types.UnionType(types=options):
            return " or ".join("nil" if isinstance(o, types.NoneType) else type_words(o) for o in options)
    raise SystemExit(f"scripts/docs_wire.py has no words for the type {found}: add them to type_words")


def bound(above: int) -> str:
    return f"2^{above.bit_length() - 1}" if above > 1_000 else str(above)


def order_section() -> Iterator[str]:
    yield "## Order"
    yield ""
    yield (
        "Each side of a link has a state, which moves by what that side says. Of two parties the one that "
        "the job names earlier listens and greets first. What is not in the table ends the link with an "
        "error that names peer, state and message."
    )
    yield ""
    yield "| state | a side that |"
    yield "| --- | --- |"
    yield from (f"| {state.name} | {words} |" for state, words in STATES.items())
    yield ""
    yield from diagram()
    yield ""
    yield f"| message | {' | '.join(state.name for state in STATES)} | said by | once the other side is |"
    yield "| --- " * (len(STATES) + 3) + "|"
    yield from (order_row(kind) for kind in KINDS)
    yield ""
    yield (
        "A cell holds the state that follows; an empty one is refused. After Stopped a party still answers "
        "and passes on what others ask, and asks nothing for itself."
    )
    yield ""


def order_row(kind: Kind) -> str:
    following = [TABLE[state, kind].name if (state, kind) in TABLE else "" for state in STATES]
    other = OTHER_SIDE.get(kind)
    if kind is messages.Hello:
        far = "CHECKING, unless it greets first"
    else:
        far = "" if other is None else f"{other.name} or later"
    return f"| {kind.__name__} | {' | '.join(following)} | {speaker(kind)} | {far} |"


def speaker(kind: Kind) -> str:
    if kind in COORDINATOR_ONLY:
        return "the coordinator"
    if kind in REQUESTERS_ONLY:
        return "requesters"
    if kind is messages.Stopped:
        return "all but the coordinator"
    return "all, with a tree of masks" if kind is messages.Mask else "all"


def diagram() -> Iterator[str]:
    """The table's arrows, those between the same states as one."""
    arrows: dict[tuple[State, State], list[str]] = {}
    for (state, kind), following in TABLE.items():
        arrows.setdefault((state, following), []).append(kind.__name__)
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield "    [*] --> GREETING"
    for (state, following), kinds in arrows.items():
        yield f"    {state.name} --> {following.name}: {', '.join(kinds)}"
    yield "    CLOSED --> [*]"
    yield "```"


def checks_section() -> Iterator[str]:
    yield "## Checked against the job"
    yield ""
    yield "A message in its order still ends the link if it is"
    yield ""
    for name, check in (
        ("Hello", terms.hello_fault),
        ("Ask", terms.ask_fault),
        ("Share", conversation.share_fault),
        ("Mask", terms.mask_fault),
        ("Push", terms.push_fault),
    ):
        text = paragraph(check).rstrip(".")
        yield f"- {name}: {text[0].lower()}{text[1:]};"
    yield "- any message of a requester's own: another incarnation than its Hello named."


def main(arguments: list[str]) -> int:
    text = page()
    if arguments == ["--check"]:
        if not PAGE.is_file() or PAGE.read_text() != text:
            print("docs/wire.md is not what the code says: run scripts/docs-wire", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
