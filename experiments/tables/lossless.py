"""Nothing lost: parties together predict the fifth kept back as well as one model trained on all columns."""

from __future__ import annotations

from collections.abc import Iterable

from experiments import datasets, methods
from experiments.cells import Cell, cell
from experiments.tables.ratios import NONE, Row, by_key, markdown, provenance

TARGET = 1e-5
PASSES = 50
METHODS = ("afsvrg", "afsaga")


def cells(full: bool) -> list[Cell]:
    """Asynchronous training on four fifths of every set."""
    return [
        cell(
            name, method, "asynchronous", full, held_out=True, both_clocks=False, target=TARGET, passes=PASSES
        )
        for name in datasets.NAMES
        for method in METHODS
    ]


def render(rows: Iterable[Row], full: bool) -> dict[str, str]:
    """Accuracy and AUC, or RMSE, federated and pooled."""
    known = by_key(rows)
    lines = []
    for one in cells(full):
        row = known.get(one.key, {})
        pairs = [(name, row["together"][name], value) for name, value in row.get("pooled", {}).items()]
        gap = f"{row['gap']:.1e}" if "gap" in row else row.get("detail", "not run")
        for name, together, pooled in pairs or [(NONE, float("nan"), float("nan"))]:
            head = [one.dataset, str(one.parties), methods.get(one.method).column, gap, name]
            lines.append([*head, f"{together:.4f}", f"{pooled:.4f}", f"{together - pooled:+.4f}"])
    columns = ("set", "q", "method", "gap reached", "measure", "together", "pooled", "difference")
    title = f"""\
# Losslessness

Asynchronous training on four fifths of the rows (scaled as one table) to a gap of {TARGET:g} or {PASSES} passes, one
party 200 % slower, measured on the fifth kept back, beside the pooled optimum of the same rows.

"""
    used = [known[one.key] for one in cells(full) if one.key in known]
    return {"lossless.md": title + markdown(columns, lines) + "\n" + provenance(used)}
