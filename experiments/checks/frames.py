"""What recorded frames tell: nothing but totals.

Jobs of several sizes under two-tree and pairwise in the simulator, every frame recorded, every product that a party
computes noted beside. Of each round the trees are read off the frames and given to the rank check; masked words are
counted by their bytes and by their upper half (chi-square; of words that depend on each other one is left out); each
pair of neighbouring words of each product is looked for at every offset of every frame. Last, a requester that asks
one party for other rows than the rest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import structs

import colonnade as cn
from colonnade.algorithms.party import Party
from colonnade.core.blocks import as_block
from colonnade.job import plan
from colonnade.privacy.fixedpoint import Narrow
from colonnade.privacy.leakage import learnt
from colonnade.runtime.simulated import Simulation
from colonnade.wire.codec import decode
from colonnade.wire.messages import Ask, Mask, Share
from experiments.checks.common import Check, leave, quick

ROWS, COLUMNS, BATCH, SEED = 4_000, 4, 256, 0
ENOUGH, LEAST_P = 1_000_000, 1e-3
FORM = Narrow(40)
Key = tuple[int, int, int]
"""Requester, round, first row."""


@dataclass
class Recorded:
    """A run's frames and what was to be hidden in them."""

    parties: int
    requester: int
    frames: list[tuple[int, int, bytes]]
    """Sender, receiver, payload."""
    products: dict[int, list[np.ndarray]]
    """Of each party, in order."""

    def arrived(self, kind: type[Share] | type[Mask]) -> dict[Key, list[tuple[int, int, np.ndarray]]]:
        """Of each sum: sender, receiver and words of each message of this kind."""
        found = defaultdict(list)
        for sender, receiver, frame in self.frames:
            message = decode(frame)
            if isinstance(message, kind):
                words = np.frombuffer(message.words, "<u8")
                found[message.requester, message.round, message.start].append((sender, receiver, words))
        return found


def record(parties: int, aggregation: str, method: str, rounds: int, tricked: bool = False) -> Recorded:
    """Run a job in which the first party asks. `tricked`: it asks the last party for other rows than the rest."""
    rng = np.random.default_rng([SEED, parties])
    names = tuple(f"p{number}" for number in range(parties))
    labels = np.where(rng.random(ROWS) < 0.5, 1.0, -1.0)
    job = cn.Job(
        method=method,
        schedule="asynchronous",
        aggregation=aggregation,
        labels=names[:1],
        batch_size=BATCH,
        step=1e-12 if tricked else 0.1,
        tol=0,
        max_rounds=rounds,
        random_state=SEED,
    )
    agreed = plan(job, names, ROWS, 1)
    simulation = Simulation(cn.World(record=True, seed=SEED), names)
    members, products = [], {}
    for number, name in enumerate(names):
        block = as_block(rng.standard_normal((ROWS, COLUMNS)))
        member = Party(simulation.hosts[name], agreed, block, labels if number == 0 else None, b"", None)
        member.model.weights.assign(rng.standard_normal(COLUMNS))
        products[number] = noted(member)
        members.append(member)
    if tricked:
        ask_for_others(members[0], parties - 1)
    simulation.run({member.host.name: member.begin() for member in members})
    place = {name: number for number, name in enumerate(names)}
    frames = [
        (place[sender], place[to], bytes(frame)) for _, sender, to, frame in simulation.transcript or []
    ]
    return Recorded(parties, 0, frames, products)


def noted(party: Party) -> list[np.ndarray]:
    """The list that all products of this party will be in."""
    kept: list[np.ndarray] = []

    def noting(compute: Any) -> Any:
        def both(*arguments: Any) -> np.ndarray:
            kept.append(compute(*arguments).copy())
            return kept[-1].copy()

        return both

    party.model.product = noting(party.model.product)  # type: ignore[method-assign]
    party.model.frozen_product = noting(party.model.frozen_product)  # type: ignore[method-assign]
    return kept


def ask_for_others(party: Party, victim: int) -> None:
    send = party.peers.send_all

    def send_all(positions: Iterable[int], message: Any) -> None:
        for position in positions:
            if isinstance(message, Ask) and position == victim:
                rows = (np.frombuffer(message.rows, "<u4") + 1) % ROWS
                send((position,), structs.replace(message, rows=rows.astype("<u4").tobytes()))
            else:
                send((position,), message)

    party.peers.send_all = send_all  # type: ignore[method-assign]


# the rank check


def members_of(sums: Iterable[tuple[int, int, Any]]) -> dict[int, frozenset[int]]:
    """Whose terms are in what each sender sends: its own and those of all who send to it."""
    senders = defaultdict(list)
    for sender, receiver, _ in sums:
        senders[receiver].append(sender)

    def below(sender: int) -> frozenset[int]:
        return frozenset({sender}).union(*(below(child) for child in senders[sender]))

    return {sender: below(sender) for sender, _, _ in sums}


def told(run: Recorded, aggregation: str) -> Iterator[tuple[int, list[list[int]]]]:
    """Each party's view of each sum, as rows over the products and the masks: the viewer's own left out."""
    shares, masks = run.arrived(Share), run.arrived(Mask)
    pairs = [(a, b) for a in range(run.parties) for b in range(a) if run.requester not in (a, b)]
    blank = [0] * run.parties
    for key, sums in shares.items():
        trees = [(sums, members_of(sums), True), (masks[key], members_of(masks[key]), False)]
        for viewer in range(run.parties):
            rows = []
            for tree, inside, share in trees:
                for sender, receiver, _ in tree:
                    if receiver != viewer:
                        continue
                    terms = inside[sender] - {viewer}
                    own = [int(party in terms) for party in range(run.parties)]
                    hidden = (
                        own
                        if aggregation == "two-tree"
                        else [pair_sign(terms, pair, viewer) for pair in pairs]
                    )
                    rows.append((own if share else blank) + hidden)
            yield viewer, rows


def pair_sign(terms: frozenset[int], pair: tuple[int, int], viewer: int) -> int:
    """A pair's mask: added by one, subtracted by the other, known to a viewer that is one of them."""
    return 0 if viewer in pair else (pair[0] in terms) - (pair[1] in terms)


def beyond_totals(run: Recorded, aggregation: str) -> tuple[int, int]:
    """Views that tell more than they may, of how many."""
    total = [int(party != run.requester) for party in range(run.parties)]
    views = {(viewer, tuple(map(tuple, rows))) for viewer, rows in told(run, aggregation)}
    wrong = 0
    for viewer, rows in views:
        for field in ("rationals", "bits"):
            space = learnt([list(row) for row in rows], run.parties, field)  # type: ignore[arg-type]
            wrong += space != ([total] if viewer == run.requester else [])
    return wrong, 2 * len(views)


def totals(run: Recorded) -> list[np.ndarray]:
    """The requester's sums as the frames give them: of all others' products."""
    masks = run.arrived(Mask)
    found = []
    for key, sums in run.arrived(Share).items():
        parts = [words for _, receiver, words in sums if receiver == run.requester]
        minus = [words for _, receiver, words in masks[key] if receiver == run.requester]
        found.append(np.sum(parts, axis=0, dtype=np.uint64) - np.sum(minus, axis=0, dtype=np.uint64))
    return found


def expected(run: Recorded) -> list[np.ndarray]:
    answering = [run.products[party] for party in range(run.parties) if party != run.requester]
    return [
        np.sum([FORM.encode(product, run.parties) for product in each], axis=0, dtype=np.uint64)
        for each in zip(*answering, strict=True)
    ]


# uniform words


def masked_words(run: Recorded, kind: type[Share] | type[Mask]) -> np.ndarray:
    """All words of this kind. Pairwise shares of a round sum to the total, so the last party's are left out."""
    last = run.parties - 1
    star = not any(
        receiver != run.requester for sums in run.arrived(Share).values() for _, receiver, _ in sums
    )
    return np.concatenate(
        [w for sums in run.arrived(kind).values() for sender, _, w in sums if not (star and sender == last)]
    )


def uniformity(words: np.ndarray) -> tuple[float, float]:
    """Chi-square probabilities that the eight bytes, and the upper sixteen bits, are uniform."""
    from scipy.stats import chi2

    of_bytes = sum(surprise(column, 256) for column in words.view(np.uint8).reshape(-1, 8).T)
    upper = surprise((words >> np.uint64(48)).astype(np.int64), 65_536)
    return float(chi2.sf(of_bytes, 8 * 255)), float(chi2.sf(upper, 65_535))


def surprise(values: np.ndarray, cells: int) -> float:
    counts = np.bincount(values, minlength=cells)
    mean = len(values) / cells
    return float(np.sum((counts - mean) ** 2) / mean)


# products in frames


def occurrences(run: Recorded) -> tuple[int, int, int]:
    """Pairs of neighbouring numbers of products, as words or float64, that some frame holds; of how many, in bytes."""
    clear = [product for products in run.products.values() for product in products]
    forms = [FORM.encode(product, run.parties) for product in clear] + [p.view(np.uint64) for p in clear]
    wanted = np.unique(np.concatenate([mixed(words) for words in forms]))
    stream = b"".join(frame for _, _, frame in run.frames)
    found = 0
    for offset in range(8):
        words = np.frombuffer(stream, "<u8", (len(stream) - offset) // 8, offset)
        found += int(np.isin(mixed(words), wanted).sum())
    return found, len(wanted), len(stream)


def mixed(words: np.ndarray) -> np.ndarray:
    """One number for each pair of neighbouring words, other pairs giving others but for chance of 2^-64."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    first = words[:-1] * odd
    return (first ^ (first >> np.uint64(29))) * odd + words[1:]


def examine(
    check: Check, aggregation: str, parties: int, method: str, rounds: int, words_needed: int
) -> None:
    run = record(parties, aggregation, method, rounds)
    case = f"{aggregation}, q = {parties}, {method}"
    wrong, views = beyond_totals(run, aggregation)
    check.holds(f"{case}: views that tell more than totals, of {views}", wrong, "0", wrong == 0)
    got, right = totals(run), expected(run)
    agree = sum(np.array_equal(a, b) for a, b in zip(got, right, strict=True))
    check.holds(
        f"{case}: totals that the frames add up to", f"{agree} of {len(right)}", "all", agree == len(right)
    )
    found, wanted, size = occurrences(run)
    check.holds(f"{case}: of {wanted:,} pairs of numbers in {size:,} bytes", found, "0", found == 0)
    if not words_needed:
        return
    for kind in (Share, Mask) if aggregation == "two-tree" else (Share,):
        words = masked_words(run, kind)
        check.at_least(f"{case}: masked words ({kind.__name__})", len(words), words_needed)
        for what, p in zip(("bytes", "upper 16 bits"), uniformity(words), strict=True):
            check.holds(
                f"{case}: {kind.__name__} {what} uniform, p", p, "0.001…0.999", LEAST_P < p < 1 - LEAST_P
            )


def trick(check: Check, parties: int, rounds: int) -> None:
    """One party is asked for other rows: what the requester adds up is uniform, not a total."""
    run = record(parties, "pairwise", "afsgd", rounds, tricked=True)
    got, right = totals(run), expected(run)
    same = sum(int((a == b).sum()) for a, b in zip(got, right, strict=True))
    words = np.concatenate(got)
    case = f"pairwise, q = {parties}, one party asked for other rows"
    check.holds(f"{case}: of {len(words):,} words unmasked", same, "0", same == 0)
    p, _ = uniformity(words)
    check.holds(f"{case}: bytes uniform, p", p, "0.001…0.999", LEAST_P < p < 1 - LEAST_P)


def control(check: Check, rounds: int) -> None:
    """The same search where shares travel in clear: it has to find them."""
    found, _, _ = occurrences(record(4, "plain", "afsgd", rounds))
    check.holds("control, plain, q = 4: pairs of products found", found, "> 0", found > 0)


def main() -> None:
    small = quick(__doc__)
    check = Check("frames", "recorded frames of two-tree and pairwise jobs", SEED, small)
    for aggregation in ("two-tree", "pairwise"):
        for parties in (3, 5, 8):
            examine(check, aggregation, parties, "afsvrg", 30 if small else 100, 0)
        whole = ENOUGH // 10 if small else ENOUGH
        answering = 3 if aggregation == "two-tree" else 2
        examine(check, aggregation, 4, "afsgd", whole // (answering * BATCH) + 2, whole)
    control(check, 20)
    trick(check, 4, 20 if small else 400)
    leave(check)


if __name__ == "__main__":
    main()
