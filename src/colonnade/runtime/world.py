"""What a simulated world is like: speeds, links, faults, and what computing costs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Literal

import msgspec
from msgspec import structs

from colonnade.errors import ConfigurationError, nearest


class Cost(msgspec.Struct, frozen=True):
    """Seconds that computing takes on the calibrated machine."""

    per_call: float
    per_nonzero_dense: float
    per_nonzero_sparse: float


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At `at` seconds a party dies or, with a `peer`, the link between the two is cut."""

    at: float
    party: str
    peer: str | None = None


class World(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A simulated world. The default: equal parties, no latency, bandwidth without limit, committed compute costs.

    `speeds`: of a party's training, 1/3 for a straggler; its answers to others stay prompt. `latency`: seconds, for all
    links or by (sender, receiver). `lanes`: a listener's products wait for those of the same requester, or of any.
    `until`: the run ends when the exact objective, seen from outside the clock, is down to this.
    """

    speeds: Mapping[str, float] | Sequence[float] = {}
    latency: float | Mapping[tuple[str, str], float] = 0.0
    bandwidth: float | None = None
    jitter: float = 0.0
    lanes: Literal["requester", "party"] = "requester"
    faults: tuple[Fault, ...] = ()
    record: bool = False
    until: float | None = None
    cost: Cost | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        try:
            faults = msgspec.convert(list(self.faults), tuple[Fault, ...])
        except (msgspec.ValidationError, TypeError) as error:
            raise ConfigurationError(
                f"faults: {error}; give Fault(at, party, peer), peer only to cut a link"
            ) from None
        structs.force_setattr(self, "faults", faults)
        for field in ("latency", "jitter", "bandwidth"):
            value = getattr(self, field)
            if not isinstance(value, (int, float, Mapping, type(None))):
                raise ConfigurationError(f"{field} = {value!r}: give a number (seconds, or bytes a second)")
        latencies = self.latency.values() if isinstance(self.latency, Mapping) else [self.latency]
        speeds = self.speeds.values() if isinstance(self.speeds, Mapping) else self.speeds
        if any(not value >= 0 for value in latencies) or not self.jitter >= 0:
            raise ConfigurationError("latency and jitter: give seconds, at least 0")
        if any(not value > 0 for value in speeds):
            raise ConfigurationError("speeds: give numbers above 0; 1 is full speed")
        if self.bandwidth is not None and not self.bandwidth > 0:
            raise ConfigurationError(f"bandwidth = {self.bandwidth!r}: give bytes a second, above 0")
        if self.lanes not in ("requester", "party"):
            raise ConfigurationError(f"lanes = {self.lanes!r}: known: requester, party")

    def speed(self, party: str, position: int) -> float:
        if isinstance(self.speeds, Mapping):
            return self.speeds.get(party, 1.0)
        return self.speeds[position] if position < len(self.speeds) else 1.0

    def check(self, parties: Sequence[str]) -> None:
        """Refuse names that no party has."""
        named = list(self.speeds) if isinstance(self.speeds, Mapping) else []
        named += [name for pair in self.latency for name in pair] if isinstance(self.latency, Mapping) else []
        named += [name for fault in self.faults for name in (fault.party, fault.peer) if name is not None]
        for name in named:
            if name not in parties:
                raise ConfigurationError(
                    f"the world names {name!r}, which is no party: {nearest(name, list(parties))}"
                )
        if not isinstance(self.speeds, Mapping) and len(self.speeds) > len(parties):
            raise ConfigurationError(f"the world has {len(self.speeds)} speeds for {len(parties)} parties")


def calibrated() -> Cost:
    """The committed compute costs."""
    text = resources.files("colonnade.runtime").joinpath("calibration.json").read_text()
    known = json.loads(text)
    return Cost(known["per_call"], known["per_nonzero_dense"], known["per_nonzero_sparse"])
