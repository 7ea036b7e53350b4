"""What leaves the house: what each party can find out about the others, before a run and counted after it.

Every rule gives sentences for whoever has to approve the federation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal

import msgspec

from colonnade.privacy.aggregation import AGGREGATIONS
from colonnade.privacy.leakage import pairs_that_see
from colonnade.privacy.situation import Counts, Planned, Situation
from colonnade.privacy.trees import two_trees

Severity = Literal["info", "note", "warning"]
SEVERITIES: tuple[Severity, ...] = ("warning", "note", "info")
LISTED = 8
"""Names or pairs that one sentence spells out."""


class Finding(msgspec.Struct, frozen=True):
    """`party` can find out something about `about`."""

    severity: Severity
    party: str
    about: str
    sentence: str


def expected(plan: Planned, columns: Mapping[str, int]) -> list[Finding]:
    """What would leave the house. A party whose number of columns is secret is left out of `columns`."""
    return _findings(Situation(plan, columns, None))


def observed(
    plan: Planned, columns: Mapping[str, int], received: Mapping[str, Mapping[str, int]]
) -> list[Finding]:
    """What left the house, by the counters of every party."""
    return _findings(Situation(plan, columns, Counts(received)))


def _findings(case: Situation) -> list[Finding]:
    if len(case.plan.parties) < 2:
        return []
    found = [finding for rule in RULES for finding in rule(case)]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def labels_told(case: Situation) -> Iterator[Finding]:
    """Slopes in clear tell the labels."""
    for party in case.slope_readers:
        rows = case.counts(party, "slopes") if case.counts else 0
        if case.quiet(rows):
            continue
        sends = f"sent {party} {rows:,} row slopes" if case.counts else f"sends {party} the slope of each row"
        yield Finding(
            "warning",
            party,
            _names(case.plan.labels),
            f"{case.plan.coordinator} {sends} (how the loss changes with that row's score): "
            f"{SLOPES_TELL.get(case.plan.job.loss, SOMETHING).format(party=party)}.",
        )


def shares_told(case: Situation) -> Iterator[Finding]:
    """Plain: every parent in the tree sees what its children send."""
    if case.plan.job.aggregation != "plain":
        return
    for party, (exact, summed) in _senders(case.plan).items():
        shares = case.counts(party, "shares_in_clear") if case.counts else 0
        if case.quiet(shares):
            continue
        count = f" ({shares:,} messages)" if case.counts else ""
        parts = [f"the scores that {_all(exact)} computed alone"] if exact else []
        if summed:
            parts.append(f"sums over the few parties that send by way of {_all(summed)}")
        yield Finding(
            "warning",
            party,
            _names(name for name in case.plan.parties if name in {*exact, *summed}),
            f'Nothing is masked (aggregation = "plain"): {party} can read {" and ".join(parts)}{count}.',
        )


def partner_told(case: Situation) -> Iterator[Finding]:
    """Two parties: the total minus one's own share is the partner's share."""
    if len(case.plan.parties) != 2:
        return
    for party in case.score_readers:
        rows = case.rows_known(party)
        if case.quiet(rows):
            continue
        (partner,) = case.others(party)
        which = f"{rows:,} row scores" if case.counts else "every row score that it learns"
        yield Finding(
            "warning",
            party,
            partner,
            f"With two parties, the total minus one's own part is the other's part: {party} can work out "
            f"{partner}'s part of {which}. No masking can prevent this; a third party would.",
        )


def columns_told(case: Situation) -> Iterator[Finding]:
    """T totals of all rows at different weights span the others' block once T reaches its columns."""
    for party in case.score_readers:
        others = case.others(party)
        whose = f"the columns of {_all(others)}" + (
            " (all of them mixed together)" if len(others) > 1 else ""
        )
        could = (
            f"work out {whose} up to an unknown linear mixing, and a few rows whose values it knows would "
            "undo the mixing"
        )
        needed = _passes_needed(case, others)
        enough = f"{needed:,}" if needed else "as many as the others have columns"
        if case.counts is None:
            sentence = f"From totals of all rows at {enough} different weights, {party} could {could}."
            yield Finding("note", party, _names(others), sentence)
        else:
            yield _columns_counted(case, case.counts, party, needed, enough, could)


def _columns_counted(
    case: Situation, counts: Counts, party: str, needed: int | None, enough: str, could: str
) -> Finding:
    full, all_told = counts(party, "full_passes"), case.rows_known(party) // case.plan.rows
    about = _names(case.others(party))
    learnt = f"{party} learnt totals of all rows {_times(full)}"
    if needed and full >= needed:
        return Finding("warning", party, about, f"{learnt}, and {enough} suffice: it can {could}.")
    if needed and all_told >= needed:
        return Finding(
            "note",
            party,
            about,
            f"{learnt} and, with its batches, every row {all_told:,} times on average; {enough} "
            f"totals of all rows suffice to {could}, and so many batches may do as well.",
        )
    return Finding("info", party, about, f"{learnt}; with {enough} it could {could}.")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def rows_alone(case: Situation) -> Iterator[Finding]:
    """Rows asked for one at a time."""
    for party in case.plan.requesters:
        rows = case.counts(party, "rows_asked_alone") if case.counts else 0
        if case.quiet(rows) or (case.counts is None and case.plan.batch_size > 1):
            continue
        asks = f"asked for a single row {_times(rows)}" if case.counts else "asks for one row at a time"
        yield Finding(
            "note",
            party,
            _names(case.others(party)),
            f"{party} {asks}: all others see which row it works on, and it sees how that row's score changes "
            "from step to step; larger batches tell both less.",
        )


def pairs_told(case: Situation) -> Iterator[Finding]:
    """Two-tree: which pairs, putting together what they saw, read whose share."""
    if case.plan.job.aggregation != "two-tree":
        return
    parties = case.plan.parties
    if len(parties) > 64:
        yield Finding(
            "note",
            "pairs of parties",
            "all parties",
            "Certain pairs of parties could read a third party's part of a score by putting together what "
            "they receive; they are listed for up to 64 parties.",
        )
        return
    for victim, pairs in _pairs_by_victim(case).items():
        spelled = [f"{parties[first]} and {parties[second]}" for first, second in sorted(pairs)]
        yield Finding(
            "note",
            _names(spelled, "; "),
            parties[victim],
            f"Two parties that put together what they receive could read {parties[victim]}'s part of a "
            f"score; here these are {_names(spelled, '; ')}.",
        )


def everybody_told(case: Situation) -> Iterator[Finding]:
    """Pairwise: a coalition of all others, whom the total tells anyway."""
    parties = case.plan.parties
    if case.plan.job.aggregation == "pairwise" and len(parties) > 2:
        yield Finding(
            "info",
            "all others together",
            _names(parties),
            "A party's part of a score is hidden from every other party and from any group of them, except "
            "from all the others together, whom the total tells it anyway.",
        )


def totals_told(case: Situation) -> Iterator[Finding]:
    """What the protocol is for."""
    for party in case.score_readers:
        rows = case.rows_known(party)
        if case.quiet(rows):
            continue
        learns = (
            f"learnt {rows:,} row scores"
            if case.counts
            else "learns the score of each row that is trained on"
        )
        about = _names(case.others(party))
        yield Finding("info", party, about, f"{party} {learns}: sums over all parties.")


RULES: tuple[Callable[[Situation], Iterable[Finding]], ...] = (
    labels_told,
    shares_told,
    partner_told,
    columns_told,
    rows_alone,
    pairs_told,
    everybody_told,
    totals_told,
)

REQUESTERS_LOOKED_AT = 64
SOMETHING = "{party} may be able to work out the labels of these rows from it"
"""Said of losses that are not in the table."""

SLOPES_TELL = {
    "logistic": "its sign is the row's label: {party} can read the labels of these rows, and their scores",
    "multinomial": "its one negative entry marks the row's class: {party} can read the labels of these rows",
    "squared": "it is twice the prediction's error: {party} can read how far from its label each one is",
}


def _passes_needed(case: Situation, others: Sequence[str]) -> int | None:
    """Full passes that span the others' columns; each gives one number a row and class."""
    if not all(name in case.columns for name in others):
        return None
    return max(1, -(-sum(case.columns[name] for name in others) // case.plan.classes))


def _senders(plan: Planned) -> dict[str, tuple[list[str], list[str]]]:
    """Plain: per party who sends it its own share alone, and who a sum, whoever asks (of many: the first ones)."""
    q, names = len(plan.parties), plan.parties
    tree = AGGREGATIONS["plain"].tree
    found: dict[int, tuple[set[int], set[int]]] = {}
    for requester in map(names.index, plan.requesters[:REQUESTERS_LOOKED_AT]):
        for parent in range(q):
            for child in tree(q, requester, parent)[1]:
                exact, summed = found.setdefault(parent, (set(), set()))
                (summed if tree(q, requester, child)[1] else exact).add(child)
    return {
        names[party]: ([names[child] for child in sorted(exact)], [names[child] for child in sorted(summed)])
        for party, (exact, summed) in sorted(found.items())
    }


def _pairs_by_victim(case: Situation) -> dict[int, set[tuple[int, int]]]:
    """Two-tree: per party the pairs that see its share; found for one requester, alike for all."""
    q = len(case.plan.parties)
    pairs = pairs_that_see(q, *two_trees(q), 0, told=len(case.score_readers) == q)
    found: dict[int, set[tuple[int, int]]] = {}
    for requester in map(case.plan.parties.index, case.plan.requesters):
        for slots, victims in pairs.items():
            first, second = sorted((slot + requester) % q for slot in slots)
            for victim in victims:
                found.setdefault((victim + requester) % q, set()).add((first, second))
    return dict(sorted(found.items()))


def _names(names: Iterable[str], between: str = ", ") -> str:
    """A list, cut where it is long."""
    spelled = list(names)
    more = f" and {len(spelled) - LISTED:,} more" if len(spelled) > LISTED else ""
    return between.join(spelled[:LISTED]) + more


def _all(names: Sequence[str]) -> str:
    """The same inside a sentence."""
    if 1 < len(names) <= LISTED:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return _names(names)
