"""The demo: an ordinary job on three tables, then what it was worth and what it gave away.

The comparison holds all three tables in one process, as no party of a real job does: it trains
scikit-learn on all columns together, and adds up the parties' scores of the flights kept back.
"""

from __future__ import annotations

import argparse
import os
import sys
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

import demo_tables
import numpy as np

from colonnade import cli, record
from colonnade.cli import jobfile
from colonnade.cli.inputs import Inputs, gather
from colonnade.data import preparation, sources, tables
from colonnade.report import page, words


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folder: Path = options.folder or Path("demo/quick" if options.quick else "demo")
    print(f"Three organisations' tables of the flights from New York in 2013, in {folder}/ ...", flush=True)
    demo_tables.write(folder, every=20 if options.quick else 1)
    code = cli.main(["train", str(folder / "job.toml"), "--out", str(folder / "run")])
    if code:
        return code
    print("\nComparing with scikit-learn on all columns together ...", flush=True)
    report = record.load(folder / "run")
    report = replace(report, reference=compared(folder, report))
    path = page.write(report, folder / "report.html")
    print("\n".join([*conclusions(report), "", f"The report, with this comparison: {path}"]))
    print(f"Change {folder}/job.toml and run: .venv/bin/colonnade train {folder}/job.toml")
    print(f"What you changed stays; delete {folder}/ to start afresh.")
    if not options.no_open and has_display():
        webbrowser.open(path.absolute().as_uri())
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/demo", description="Three organisations predict late flights."
    )
    parser.add_argument("--quick", action="store_true", help="a twentieth of the flights")
    parser.add_argument("--no-open", action="store_true", help="do not open the report in a browser")
    parser.add_argument("--folder", type=Path, help="where tables, job and report go (default: demo)")
    return parser.parse_args(arguments)


def has_display() -> bool:
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


def kept_back(folder: Path, trained: Inputs) -> tuple[dict[str, Any], Any]:
    """The blocks of the flights kept back, prepared as the training tables were, and their labels."""
    held = {party: _test_table(folder, party) for party in trained.blocks}
    blocks = {party: preparation.apply(trained.recipes[party], table).values for party, table in held.items()}
    return blocks, next(table.labels for table in held.values() if table.labels is not None)


def _test_table(folder: Path, party: str) -> tables.Table:
    side = jobfile.read_party(folder, party)
    path = folder / side.table
    path = path.with_name(f"{path.stem}-test{path.suffix}")
    label = side.label if isinstance(side.label, str) else None
    return sources.read(path, side.id, label, side.columns)


def compared(folder: Path, report: record.Report) -> dict[str, Any]:
    """The pooled optimum, and how well each way ranks the flights kept back."""
    from sklearn.metrics import roc_auc_score

    trained = gather(folder / "job.toml", {})
    blocks, y = trained.blocks, trained.labels
    test, y_test = kept_back(folder, trained)
    alone = _fitted(_joined(blocks, "airline"), y, report.job.alpha)
    pooled = _fitted(_joined(blocks), y, report.job.alpha)
    scores = {
        "the airline alone": alone.decision_function(_joined(test, "airline")),
        "the three together": sum(test[party] @ report.weights[party] for party in report.parties),
        "pooled, scikit-learn": pooled.decision_function(_joined(test)),
    }
    return {
        "optimum": _objective(pooled, _joined(blocks), y, report.job.alpha),
        "measure": f"AUC on {len(y_test):,} flights kept back",
        "scores": {name: float(roc_auc_score(y_test, score)) for name, score in scores.items()},
    }


def _joined(blocks: dict[str, Any], *parties: str) -> Any:
    """All columns of these parties (default: all) as one matrix."""
    from scipy.sparse import hstack

    return hstack([blocks[party] for party in parties or blocks], format="csr")


def _fitted(x: Any, y: Any, alpha: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / (len(y) * alpha), solver="newton-cholesky", tol=1e-6)
    return model.fit(x, y)


def _objective(model: Any, x: Any, y: Any, alpha: float) -> float:
    """Mean logistic loss + alpha/2 |w|^2."""
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(x)
    return float(np.logaddexp(0, -margins).mean() + alpha / 2 * (model.coef_**2).sum())


def conclusions(report: record.Report) -> list[str]:
    """What a reader should take away."""
    reference = report.reference or {}
    readers = [party for party in report.parties if party not in report.chosen["labels"]]
    gap = report.objective - reference["optimum"]
    last = {name: int(report.trace[name][-1]) for name in ("rounds", "messages", "bytes")}
    return [
        f"{reference['measure']}:",
        *(f"  {name:<22}{score:.3f}" for name, score in reference["scores"].items()),
        "  (the parties' scores of these flights were added up here: predicting jointly comes later)",
        f"Objective {report.objective:.6f}, {words.number(gap)} above the pooled optimum.",
        f"{report.seconds:.1f} s, {last['rounds']:,} rounds, {last['messages']:,} messages, "
        f"{words.size(last['bytes'])} over TLS between three processes.",
        *_exposure(readers),
    ]


def _exposure(readers: list[str]) -> list[str]:
    if not readers:
        return []
    names = " and ".join(readers)
    return [f"The slopes that the airline pushed let {names} read its labels: which flights were late."]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
