"""The demo: an ordinary job on three tables, then what it was worth and what it gave away.

The comparison holds all three tables in one process, as no party of a real job does: it trains
scikit-learn on all columns together, and adds up the parties' scores of the flights kept back.
"""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import Any

import demo_tables
import msgspec
import numpy as np

from colonnade import cli, record
from colonnade.data import preparation, sources
from colonnade.report import page, words

TOGETHER = "the three together"


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    folder: Path = options.folder or Path("demo/quick" if options.quick else "demo")
    print(f"Three organisations' tables of the flights from New York in 2013, in {folder}/ ...", flush=True)
    demo_tables.write(folder, every=20 if options.quick else 1)
    code = cli.main(["train", str(folder / "job.toml"), "--run", str(folder / "run")])
    if code:
        return code
    print("\nComparing with scikit-learn on all columns together ...", flush=True)
    report = record.load(folder / "run")
    report = replace(report, reference=compared(folder, report))
    report.save(folder / "run")
    path = page.write(report, folder / "report.html")
    print("\n".join([*conclusions(report), "", f"The report: {path}"]))
    print(f"Change {folder}/job.toml and run: .venv/bin/colonnade train {folder}/job.toml")
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


def prepared(folder: Path, party: str, part: str = "") -> preparation.Prepared:
    """A party's block, prepared as its party file says; `part` "-test" for the flights kept back."""
    side = tomllib.loads((folder / f"{party}.toml").read_text())
    prepare = msgspec.convert(side.get("prepare", {}), preparation.Prepare)
    recipe = preparation.fit(_table(folder, side, ""), prepare)
    return preparation.apply(recipe, _table(folder, side, part))


def _table(folder: Path, side: dict[str, Any], part: str) -> Any:
    path = folder / side["table"]
    name = path.with_name(f"{path.stem}{part}{path.suffix}")
    return sources.read(name, id=side["id"], label=side.get("label"), columns=side.get("columns"))


def late(folder: Path, part: str = "") -> Any:
    """The label, as the airline's table has it."""
    side = tomllib.loads((folder / "airline.toml").read_text())
    return _table(folder, side, part).labels


def compared(folder: Path, report: record.Report) -> dict[str, Any]:
    """The pooled optimum, and how well each way ranks the flights kept back."""
    from sklearn.metrics import roc_auc_score

    training = {party: prepared(folder, party).values for party in report.parties}
    testing = {party: prepared(folder, party, "-test").values for party in report.parties}
    y, y_test = late(folder), late(folder, "-test")
    alone = _fitted({"airline": training["airline"]}, y, report.job.alpha)
    pooled = _fitted(training, y, report.job.alpha)
    scores = {
        "the airline alone": alone.decision_function(_joined({"airline": testing["airline"]})),
        TOGETHER: sum(testing[party] @ report.weights[party] for party in report.parties),
        "pooled, scikit-learn": pooled.decision_function(_joined(testing)),
    }
    return {
        "optimum": _objective(pooled, training, y, report.job.alpha),
        "measure": f"AUC on {len(y_test):,} flights kept back",
        "scores": {name: float(roc_auc_score(y_test, score)) for name, score in scores.items()},
    }


def _joined(blocks: dict[str, Any]) -> Any:
    from scipy.sparse import hstack

    return hstack(list(blocks.values()), format="csr")


def _fitted(blocks: dict[str, Any], y: Any, alpha: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1 / (len(y) * alpha), solver="newton-cholesky", tol=1e-6)
    return model.fit(_joined(blocks), y)


def _objective(model: Any, blocks: dict[str, Any], y: Any, alpha: float) -> float:
    """Mean logistic loss + alpha/2 |w|^2."""
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(_joined(blocks))
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
    sys.exit(main())
