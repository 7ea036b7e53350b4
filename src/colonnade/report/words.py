"""Numbers and outcomes in words, the same in the terminal and on the page."""

from __future__ import annotations

import math

from colonnade.record import Report

HEADLINES = {
    "converged": "Converged",
    "budget": "Stopped at its budget",
    "diverged": "Diverged",
    "peer lost": "A party was lost",
    "refused": "Refused",
    "interrupted": "Interrupted",
}

MASKING = {
    "plain": "Not masked: parties see each other's shares. For comparison only",
    "two-tree": "Masked sums, two trees: certain pairs of parties together could see a share",
    "pairwise": "Masked sums, pairwise keys: only the total can be read",
}

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def number(value: float | None) -> str:
    """Four digits; a power of ten where that is shorter to read."""
    if value is None or math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0 or 1e-3 <= abs(value) < 1e6:
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')} × {power(int(exponent))}".removeprefix("1 × ")


def power(exponent: int) -> str:
    return f"10{str(exponent).translate(_SUPERSCRIPTS)}"


def count(value: float) -> str:
    return f"{int(value):,}"


def counted(value: int, thing: str) -> str:
    return f"{value:,} {thing}" if value == 1 else f"{value:,} {thing}s"


def seconds(value: float) -> str:
    if value == 0 or value >= 0.9995:
        return f"{value:.2f} s" if value < 100 else f"{value:,.0f} s"
    if value >= 0.9995e-3:
        return f"{value * 1e3:.3g} ms"
    return f"{value * 1e6:.3g} µs"


def size(value: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if value < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:,.0f} TB"


def plain(value: object) -> str:
    """A setting without Python's punctuation."""
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        spelled = {" > ".join(key) if isinstance(key, tuple) else key: item for key, item in value.items()}
        return ", ".join(f"{key} {plain(item)}" for key, item in spelled.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(plain(item) for item in value) or "none"
    return number(value) if isinstance(value, float) else str(value)


def optimum(report: Report) -> float | None:
    """The pooled optimum, where a caller has computed it."""
    known = (report.reference or {}).get("optimum")
    return None if known is None else float(known)


def gap(report: Report) -> float | None:
    known = optimum(report)
    return None if known is None else report.objective - known


def headline(report: Report) -> str:
    if report.outcome == "converged" and report.certificate is not None:
        return f"Converged to within {number(report.certificate)} of the optimum"
    return HEADLINES.get(report.outcome, report.outcome)


def detail(report: Report) -> str:
    """Why the run ended, as a sentence; nothing where the headline has said it."""
    if (report.outcome == "converged" and report.certificate is not None) or not report.detail:
        return ""
    detail = report.detail.rstrip(".") + "."
    is_option = "_" in detail.split()[0]
    return detail if is_option else detail[0].upper() + detail[1:]


def facts(report: Report) -> list[tuple[str, str]]:
    """The numbers that matter, most wanted first."""
    trace, known = report.trace, gap(report)
    last = {name: column[-1] if len(trace) else 0 for name, column in trace.to_numpy().items()}
    rows = [("objective", number(report.objective))]
    if known is not None:
        rows.append(("gap to the pooled optimum", number(known)))
    if report.certificate is not None:
        rows.append(("certified gap at most", number(report.certificate)))
    return [
        *rows,
        ("seconds" if report.world != "simulated" else "simulated time", seconds(report.seconds)),
        ("rounds", count(last["rounds"])),
        ("passes over the rows", number(last["rows"] / max(report.rows, 1))),
        ("messages", count(last["messages"])),
        ("sent in all", size(last["bytes"])),
    ]
