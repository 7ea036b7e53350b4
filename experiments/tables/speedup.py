"""Asynchronous speed-up over the synchronous twin: Table 2 of the preprint, Table II of the journal."""

from __future__ import annotations

from collections.abc import Iterable

from experiments import datasets, methods
from experiments.cells import Cell, contest
from experiments.tables.ratios import (
    HEADINGS,
    LEGEND,
    Row,
    by_key,
    endings,
    markdown,
    numbers,
    provenance,
    step_of,
)

Entries = dict[str, tuple[float, float, float]]

PREPRINT: Entries = {
    "credit91": (1.82, 1.93, 1.95),
    "give_me_some_credit": (1.89, 2.15, 2.11),
    "news20_binary": (3.37, 2.84, 2.89),
    "reuters_binary": (3.70, 2.64, 2.28),
    "url_phishtank": (2.74, 2.51, 2.38),
    "webspam": (1.96, 1.97, 1.99),
    "imdb_rating": (3.32, 2.89, 2.51),
    "keggundirected": (2.03, 2.24, 2.26),
}
"""SGD, SVRG, SAGA, by the set that stands in."""

JOURNAL: Entries = {
    "credit91": (2.14, 2.49, 1.79),
    "give_me_some_credit": (2.40, 2.26, 2.38),
    "reuters_binary": (2.02, 2.30, 2.22),
    "url_phishtank": (2.11, 2.64, 2.05),
    "news20_multiclass": (2.85, 1.83, 1.95),
    "reuters_multiclass": (2.32, 2.81, 2.61),
    "imdb_rating": (2.24, 2.12, 2.02),
    "keggundirected": (2.26, 2.15, 2.38),
}

INTRODUCTION = """\
# Asynchronous speed-up

Seconds of virtual time to a gap of 1e-4 (SGD: 1e-2), synchronous over asynchronous, one party of q 200 % slower,
batches of 128, no network, the step best on the synchronous run. The papers: batches of one, on clusters, SGD to
1e-2.5 or 1e-1.5 (preprint), 1e-2 or 1e-3 (journal). At most 20,000 rows a set, credit91 all 30,000.

"""


def cells(full: bool) -> list[Cell]:
    """A contest for every set of either paper and every method."""
    names = dict.fromkeys([*PREPRINT, *JOURNAL])
    return [cell for name in names for method in methods.NAMES for cell in contest(name, method, full)]


def render(rows: Iterable[Row], full: bool) -> dict[str, str]:
    """Both tables, the papers' entries beside ours."""
    known = by_key(rows)
    text = INTRODUCTION + LEGEND
    for title, entries in (("Preprint, Table 2", PREPRINT), ("Journal, Table II", JOURNAL)):
        text += f"\n## {title}\n\n" + _table(entries, known, full)
    text += "\n" + markdown(("set", "stands for", "what it is"), _sets())
    used = [known[cell.key] for cell in cells(full) if cell.key in known]
    return {"speedup.md": text + "\n" + provenance(used)}


def _table(entries: Entries, known: dict[str, Row], full: bool) -> str:
    lines = []
    for name, values in entries.items():
        for method, value in zip(methods.NAMES, values, strict=True):
            runs = contest(name, method, full)
            head = [
                name,
                str(runs[0].parties),
                methods.get(method).column,
                step_of(runs, known),
                f"{value:.2f}",
            ]
            lines.append([*head, *numbers(runs, known), endings(runs, known)])
    return markdown(("set", "q", "method", "step", "paper", *HEADINGS, "short of the target"), lines)


def _sets() -> list[tuple[str, str, str]]:
    found = [datasets.get(name) for name in dict.fromkeys([*PREPRINT, *JOURNAL])]
    return [(dataset.name, dataset.stands_for, dataset.note) for dataset in found]
