"""The geometry of a line chart: where ticks and points go. The template draws it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from colonnade.report.words import number, power

WIDTH, HEIGHT = 760.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 64.0, 16.0, 12.0, 44.0
MOST_POINTS = 400

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Axis:
    """Maps values to pixels, linearly or by their logarithm."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def place(self, values: Floats | float) -> Floats:
        span = np.log10(values) if self.log else np.asarray(values, dtype=np.float64)
        low, high = (math.log10(self.low), math.log10(self.high)) if self.log else (self.low, self.high)
        placed: Floats = self.start + (span - low) / (high - low) * (self.stop - self.start)
        return placed

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """(pixel, label)."""
        if self.log:
            low, high = round(math.log10(self.low)), round(math.log10(self.high))
            powers = range(low, high + 1, max(1, math.ceil((high - low) / 8)))
            return [(float(self.place(10.0**exponent)), power(exponent)) for exponent in powers]
        step = _round_step((self.high - self.low) / 6)
        values = np.arange(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1) * step
        return [(float(self.place(value)), number(value)) for value in values]


@dataclass(frozen=True)
class Line:
    """One line over its two axes. `floored`: some values were too small, or below zero, for the logarithm."""

    across: str
    x: Axis
    y: Axis
    points: str
    end: tuple[float, float]
    floored: bool
    level: float | None
    """Where the tolerance lies, in pixels."""


def line(across: str, x: Floats, y: Floats, log: bool, level: float | None = None) -> Line | None:
    """Geometry of y over x, or None where fewer than two values can be drawn. `level`: a height to mark."""
    floor = 1e-13 if log else -np.inf
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) < 2 or x[-1] <= x[0]:
        return None
    floored = bool(np.any(y < floor))
    y = np.maximum(y, floor)
    down = _span(np.append(y, level) if level else y, log)
    right = Axis(float(x[0]), float(x[-1]), LEFT, WIDTH - RIGHT)
    up = Axis(*down, HEIGHT - BOTTOM, TOP, log)
    chosen = _thinned(len(x))
    left, top = right.place(x[chosen]), up.place(y[chosen])
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(left, top, strict=True))
    mark = float(up.place(level)) if level else None
    return Line(across, right, up, points, (float(left[-1]), float(top[-1])), floored, mark)


def _span(values: Floats, log: bool) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    if log:
        low, high = 10.0 ** math.floor(math.log10(low)), 10.0 ** math.ceil(math.log10(high))
        return (low, high) if high > low else (low, low * 10)
    margin = 0.05 * (high - low) or abs(high) or 1.0
    return low - margin, high + margin


def _thinned(length: int) -> npt.NDArray[np.int64]:
    """Numbers of at most `MOST_POINTS` points, half of them in the steep first tenth."""
    if length <= MOST_POINTS:
        return np.arange(length)
    early = np.linspace(0, length / 10, MOST_POINTS // 2)
    late = np.linspace(length / 10, length - 1, MOST_POINTS // 2)
    return np.unique(np.concatenate([early, late]).astype(np.int64))


def _round_step(rough: float) -> float:
    size = 10.0 ** math.floor(math.log10(rough))
    return next(size * nice for nice in (1, 2, 5, 10) if size * nice >= rough)
