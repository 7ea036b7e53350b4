"""The report as a few lines for a terminal."""

from __future__ import annotations

from colonnade.privacy.exposure import SEVERITIES, Finding
from colonnade.record import Report
from colonnade.report import words


def text(report: Report) -> str:
    """Outcome, numbers, scores, each party's share of time, and what follows for whoever guards the data."""
    lines = [words.headline(report)]
    if detail := words.detail(report):
        lines.append(f"  {detail}")
    lines += _table(words.facts(report))
    lines += _scores(report)
    lines += _parties(report)
    lines += [f"  {finding.severity}: {finding.sentence}" for finding in by_severity(report.exposure)]
    return "\n".join(lines)


def by_severity(findings: list[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def shares(work: dict[str, float]) -> dict[str, float]:
    """Computing, communicating and waiting as parts of their sum."""
    parts = {name: work.get(name, 0.0) for name in ("computing", "communicating", "waiting")}
    total = sum(parts.values())
    return {name: value / total if total else 0.0 for name, value in parts.items()}


def _table(rows: list[tuple[str, str]]) -> list[str]:
    width = max(len(name) for name, _ in rows)
    return [f"  {name:<{width}}  {value}" for name, value in rows]


def _scores(report: Report) -> list[str]:
    reference = report.reference or {}
    scores: dict[str, float] = reference.get("scores", {})
    if not scores:
        return []
    return [
        f"  {reference.get('measure', 'score')}",
        *_table([(f"  {k}", f"{v:.3f}") for k, v in scores.items()]),
    ]


def _parties(report: Report) -> list[str]:
    rows = []
    for party, work in report.workload.items():
        columns = words.counted(len(report.weights[party]), "column")
        parts = ", ".join(f"{name} {share:.0%}" for name, share in shares(work).items())
        rows.append((party, f"{columns}: {parts}"))
    return _table(rows) if rows else []
