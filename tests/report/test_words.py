"""Numbers as people read them, axes that hold what they show."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sample_report import a_report

from colonnade.report import chart, text, words


@pytest.mark.parametrize(
    "value, shown",
    [
        (0.0, "0"),
        (0.43992663, "0.4399"),
        (-3.5, "-3.5"),
        (12345.6, "12,346"),
        (1e-6, "10⁻⁶"),
        (-2.5e-11, "-2.5 × 10⁻¹¹"),
        (3e12, "3 × 10¹²"),
        (None, "unknown"),
        (float("nan"), "unknown"),
        (float("inf"), "∞"),
    ],
)
def test_numbers(value, shown):
    assert words.number(value) == shown


def test_seconds_sizes_and_settings():
    assert [words.seconds(s) for s in (0, 4e-6, 0.25, 0.9999, 3.14159, 4000)] == [
        "0.00 s",
        "4 µs",
        "250 ms",
        "1.00 s",
        "3.14 s",
        "4,000 s",
    ]
    assert [words.size(b) for b in (0, 999, 999_900, 4.57e7, 3e15)] == [
        "0 B",
        "999 B",
        "1 MB",
        "45.7 MB",
        "3,000 TB",
    ]
    assert words.plain({"p3": (1, None, True), "p4": 0.5}) == "p3 1, not set, yes, p4 0.5"


def test_the_terminal_shows_outcome_numbers_shares_and_gravest_finding_first():
    lines = text(a_report()).splitlines()
    assert lines[0] == "Converged to within 5 × 10⁻⁷ of the optimum"
    assert "  together  0.720" in "\n".join(lines)
    assert "  bank  2 columns: computing 75%, communicating 25%, waiting 0%" in lines
    assert lines[-2:] == ["  warning: Shop can read labels.", "  info: Bank asked twice."]


values = st.floats(-1e6, 1e6, allow_subnormal=False)


@given(st.lists(values, min_size=2, max_size=30), st.booleans())
def test_a_line_and_its_ticks_stay_inside_the_chart(heights, log):
    drawn = chart.line(
        "rounds", np.arange(len(heights), dtype=float), np.array(heights), log, 1e-6 if log else None
    )
    assert drawn is not None
    points = np.array([pair.split(",") for pair in drawn.points.split()], dtype=float)
    across = [*points[:, 0], *(at for at, _ in drawn.x.ticks)]
    up = [*points[:, 1], *(at for at, _ in drawn.y.ticks)]
    assert chart.LEFT - 0.1 <= min(across) <= max(across) <= chart.WIDTH - chart.RIGHT + 0.1
    assert chart.TOP - 0.1 <= min(up) <= max(up) <= chart.HEIGHT - chart.BOTTOM + 0.1
    assert 1 <= len(drawn.y.ticks) <= 12
    assert drawn.floored == (log and min(heights) < 1e-13)
