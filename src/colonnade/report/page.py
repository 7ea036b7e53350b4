"""The report as one HTML page that needs no network and runs no script: everything is in the file."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import jinja2
import numpy as np

from colonnade.errors import DataError
from colonnade.job import Job
from colonnade.record import Report
from colonnade.report import words
from colonnade.report.chart import HEIGHT, LEFT, WIDTH, Line, line
from colonnade.report.summary import by_severity, shares

TONES = {"converged": "good", "budget": "fair", "interrupted": "fair"}
MOST_PARTIES = 64
LARGEST = 6

COUNTERS = {
    "totals": "sums of a batch",
    "full_passes": "sums over all rows",
    "slopes": "rows' slopes",
    "scores": "rows' scores",
    "rows_asked_alone": "rows asked for alone",
    "shares_in_clear": "shares in clear",
    "dropped": "batches dropped as too late",
}


@dataclass(frozen=True)
class Block:
    """One party as the page shows it."""

    name: str
    columns: int
    labels: bool
    file: str
    norm: float
    largest: list[tuple[str, float]]


def write(report: Report, path: str | os.PathLike[str]) -> Path:
    """Write the page, complete or not at all."""
    target = Path(path)
    fresh = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    try:
        fresh.write_text(render(report), encoding="utf-8")
        os.replace(fresh, target)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise DataError(
            f"the page could not be written to {path} ({error.strerror}): "
            "free some space or name another file"
        ) from error
    return target


def render(report: Report) -> str:
    drawn = charts(report)
    return _template().render(
        report=report,
        headline=words.headline(report),
        detail=words.detail(report),
        tone=TONES.get(report.outcome, "bad"),
        masking=words.MASKING[report.job.aggregation],
        facts=words.facts(report),
        gap=words.gap(report),
        charts=drawn,
        effort=list(dict.fromkeys(name.split()[0] for name in drawn)),
        scales=_scales(report),
        box={"width": WIDTH, "height": HEIGHT, "left": LEFT},
        blocks=[_block(report, party) for party in report.parties[:MOST_PARTIES]],
        unseen=max(0, len(report.parties) - MOST_PARTIES),
        findings=by_severity(report.exposure),
        counters=_counters(report),
        settings=_settings(report.job),
    )


def charts(report: Report) -> dict[str, Line]:
    """The gap, or the objective where the optimum is unknown, over each measure of effort."""
    trace, known = report.trace, words.optimum(report)
    heights = trace["objective"] - (known or 0.0)
    across = {
        "seconds": trace["seconds"],
        "rounds": trace["rounds"].astype(np.float64),
        "passes": trace.passes(max(report.rows, 1)),
    }
    drawn = {}
    for name, x in across.items():
        for scale in _scales(report):
            log = scale == "log"
            chart = line(name, x, heights, log, level=report.job.tol or None if log else None)
            if chart is not None:
                drawn[f"{name} {scale}"] = chart
    return drawn


def _scales(report: Report) -> list[str]:
    """A gap falls by powers of ten; an objective does not."""
    return ["linear"] if words.optimum(report) is None else ["log", "linear"]


def _block(report: Report, party: str) -> Block:
    weights = report.weights[party]
    height = np.abs(weights).reshape(len(weights), -1).max(axis=1)
    names = report.columns.get(party) or [str(i) for i in range(len(weights))]
    order = np.argsort(-height, kind="stable")[:LARGEST]
    signed = weights if weights.ndim == 1 else height
    return Block(
        name=party,
        columns=len(weights),
        labels=party in (report.chosen.get("labels") or report.parties),
        file=f"models/{party}.npz",
        norm=float(np.linalg.norm(weights)),
        largest=[(names[i], float(signed[i])) for i in order],
    )


def _counters(report: Report) -> list[tuple[str, str]]:
    """(key, words) of what was received at all."""
    met = {key for counted in report.received.values() for key, value in counted.items() if value}
    return [(key, title) for key, title in COUNTERS.items() if key in met]


def _settings(job: Job) -> list[tuple[str, Any, str, bool]]:
    """(field, value, meaning, differs from the default)."""
    hints, default = get_type_hints(Job, include_extras=True), Job()
    return [
        (
            name,
            getattr(job, name),
            hint.__metadata__[0].description,
            getattr(job, name) != getattr(default, name),
        )
        for name, hint in hints.items()
        if name in Job.__struct_fields__
    ]


def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("colonnade", "report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": words.number,
        "plain": words.plain,
        "count": words.count,
        "counted": words.counted,
        "seconds": words.seconds,
        "size": words.size,
        "shares": shares,
    }
    return environment.get_template("page.html")
