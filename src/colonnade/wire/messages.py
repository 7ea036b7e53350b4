"""What parties say to each other: one frozen type a message, checked when built.

`requester` is a position in the job's list of parties. Arrays travel as raw little-endian bytes; who reads
one knows its dtype and shape from the job and from what was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar

import msgspec

VERSION = 1

Position = Annotated[int, msgspec.Meta(ge=0, lt=2**16)]
Number = Annotated[int, msgspec.Meta(ge=0, lt=2**48)]
Text = Annotated[str, msgspec.Meta(max_length=2_000)]
Key = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, msgspec.Meta(max_length=512)]
if TYPE_CHECKING:
    Array = bytes | memoryview
else:
    Array = memoryview  # what a decoded array is: a view into its frame; bytes are sent as well


SCORES, FROZEN, NORMS, BOUNDS = range(4)
"""What an Ask asks for: partial scores at the current weights, or at the weights frozen for a full pass (its
round); two numbers a party: squared norms of gradient block and weights, of the pass named by `start`, or what
bounds a step."""

SLOPES_LEARNT, SWEPT = 1, 2
"""Bits of Push.learnt: the values are slopes (else scores); they are a new snapshot for the estimator."""

CHUNK = 65_536
"""Rows that a full pass asks for at once."""


class Message(
    msgspec.Struct, frozen=True, array_like=True, gc=False, tag_field="kind", forbid_unknown_fields=True
):
    """Any message. `kind` is its number on the wire."""

    kind: ClassVar[int]


class Hello(Message, frozen=True, tag=0):
    """The first message each way: who speaks, which job, its public key, signed by its identity."""

    version: Number
    job: Key
    name: Text
    incarnation: Number
    rows: Number
    public_key: Key
    signature: Signature


class RowCheck(Message, frozen=True, tag=1):
    """A digest of the ordered row ids under the pair's key: equal, or the tables are not aligned."""

    digest: Key


class Ask(Message, frozen=True, tag=2):
    """Asks for one secured sum: `what` of the rows, uint32 numbers, or of start..stop when there are none.

    `after`: how many steps the answering party must have taken first (synchronous barrier).
    `done`: the requester has finished all its rounds below this number.
    """

    requester: Position
    incarnation: Number
    round: Number
    what: Annotated[int, msgspec.Meta(ge=0, lt=16)]
    after: Number
    done: Number
    start: Number
    stop: Number
    rows: Array


class Share(Message, frozen=True, tag=3):
    """A blinded share, or the sum of a subtree's shares, on its way to the requester."""

    requester: Position
    incarnation: Number
    round: Number
    start: Number
    words: Array


class Mask(Message, frozen=True, tag=4):
    """Algorithm 2's second tree: a sum of masks on its way to the requester. Nobody asks for it."""

    requester: Position
    incarnation: Number
    round: Number
    start: Number
    words: Array


class Push(Message, frozen=True, tag=5):
    """What the requester learnt, sent on: scores or slopes (float64) of the rows it asked for in `round`.

    A full pass comes in chunks, each with its `start`.
    """

    incarnation: Number
    round: Number
    learnt: Annotated[int, msgspec.Meta(ge=0, lt=4)]
    start: Number
    values: Array


class Retreat(Message, frozen=True, tag=6):
    """Go back to the weights frozen at pass `round` (0: the start) and multiply the step by `factor`."""

    round: Number
    factor: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


class Pace(Message, frozen=True, tag=7):
    """The step that everybody takes from now on."""

    step: Annotated[float, msgspec.Meta(gt=0.0)]


class Stop(Message, frozen=True, tag=8):
    """The coordinator ends the job: finish your round, acknowledge, answer until `Bye`.

    `keep`: the pass whose frozen weights are the result; None: the weights as they are.
    """

    outcome: Text
    detail: Text
    keep: Number | None


class Stopped(Message, frozen=True, tag=9):
    """Acknowledges Stop: this party asks no more."""


class Bye(Message, frozen=True, tag=10):
    """Everybody has acknowledged: leave."""


class Halt(Message, frozen=True, tag=11):
    """This party cannot go on: the run ends here with this outcome, for everybody."""

    outcome: Text
    detail: Text


AnyMessage = Hello | RowCheck | Ask | Share | Mask | Push | Retreat | Pace | Stop | Stopped | Bye | Halt
