"""Small pictures as SVG text: panels of lines over linear or logarithmic axes, and of stacked bars."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape

COLOURS = ("#2f5d8a", "#c8642a", "#3f8f5b", "#8a4f9e", "#6b6b6b")
WIDTH, HEIGHT = 300, 210
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 28, 38
INK, FAINT = "#222222", "#dddddd"


@dataclass(frozen=True)
class Line:
    """Points joined, named in the legend."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    lines: Sequence[Line] = ()
    log_y: bool = False
    level: float | None = None
    """A horizontal mark."""
    bars: Sequence[tuple[str, Sequence[float]]] = field(default=())
    """Stacked parts under a name, instead of lines."""


def figure(
    title: str, panels: Sequence[Panel], legend: Sequence[tuple[str, str, bool]], across: int = 3
) -> str:
    """All panels, so many in a row, under one title and one legend of (name, colour, dashed)."""
    down = math.ceil(len(panels) / across)
    width, height = across * WIDTH + 16, down * HEIGHT + 74
    body = [_text(16, 26, title, size=16, weight="bold"), *_legend(legend, 16, 48)]
    for number, panel in enumerate(panels):
        left, top = 8 + (number % across) * WIDTH, 62 + (number // across) * HEIGHT
        drawn = _bars(panel) if panel.bars else _lines(panel)
        body.append(f'<g transform="translate({left},{top})">{"".join(drawn)}</g>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="Helvetica, Arial, sans-serif"><rect width="100%" height="100%" fill="white"/>'
        + "\n".join(body)
        + "</svg>\n"
    )


def _legend(legend: Sequence[tuple[str, str, bool]], x: float, y: float) -> list[str]:
    drawn = []
    for name, colour, dashed in legend:
        drawn += [_path([(x, y - 4), (x + 24, y - 4)], colour, dashed), _text(x + 30, y, name)]
        x += 46 + 6.2 * len(name)
    return drawn


def _lines(panel: Panel) -> list[str]:
    points = [point for line in panel.lines for point in line.points if not panel.log_y or point[1] > 0]
    if not points:
        return [_text(LEFT, TOP - 8, panel.title, weight="bold"), _text(LEFT, HEIGHT / 2, "not run")]
    ys = [y for _, y in points] + ([panel.level] if panel.level else [])
    place_x, ticks_x = linear(0.0, max(x for x, _ in points), LEFT, WIDTH - RIGHT)
    scale_y = logarithmic if panel.log_y else linear
    place_y, ticks_y = scale_y(min(ys) if panel.log_y else 0.0, max(ys), HEIGHT - BOTTOM, TOP)
    drawn = _frame(
        panel, [(place_x(t), _number(t)) for t in ticks_x], [(place_y(t), _number(t)) for t in ticks_y]
    )
    if panel.level:
        level = place_y(panel.level)
        drawn.append(_path([(LEFT, level), (WIDTH - RIGHT, level)], "#999999", True, 1))
    for line in panel.lines:
        kept = [(place_x(x), place_y(y)) for x, y in line.points if not panel.log_y or y > 0]
        drawn.append(_path(kept, line.colour, line.dashed))
    return drawn


def _bars(panel: Panel) -> list[str]:
    most = max(sum(parts) for _, parts in panel.bars)
    place, ticks = linear(0.0, most, HEIGHT - BOTTOM, TOP)
    room = (WIDTH - LEFT - RIGHT) / len(panel.bars)
    names = [(LEFT + room * (k + 0.5), name) for k, (name, _) in enumerate(panel.bars)]
    drawn = _frame(panel, names, [(place(t), _number(t)) for t in ticks])
    for (middle, _), (_, parts) in zip(names, panel.bars, strict=True):
        floor = 0.0
        for part, colour in zip(parts, COLOURS, strict=False):
            top, bottom = place(floor + part), place(floor)
            drawn.append(
                f'<rect x="{middle - 0.36 * room:.1f}" y="{top:.1f}" width="{0.72 * room:.1f}" '
                f'height="{bottom - top:.1f}" fill="{colour}"/>'
            )
            floor += part
    return drawn


def _frame(
    panel: Panel, below: Sequence[tuple[float, str]], beside: Sequence[tuple[float, str]]
) -> list[str]:
    drawn = [_text(LEFT, TOP - 8, panel.title, weight="bold")]
    drawn += [_path([(LEFT, y), (WIDTH - RIGHT, y)], FAINT, False, 1) for y, _ in beside]
    drawn += [_text(LEFT - 5, y + 4, name, anchor="end", size=10) for y, name in beside]
    drawn += [_text(x, HEIGHT - BOTTOM + 14, name, anchor="middle", size=10) for x, name in below]
    drawn.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, panel.x, anchor="middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 12 {middle})"'
    return [*drawn, _text(12, middle, panel.y, anchor="middle", more=turned)]


def linear(low: float, high: float, start: float, end: float) -> tuple[Callable[[float], float], list[float]]:
    """Where a number goes, and some round ones."""
    span = (high - low) or 1.0
    rough = span / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 2.5, 5, 10) if unit * factor >= rough * 0.999)
    ticks = [k * step for k in range(math.ceil(low / step), math.floor(high / step * 1.0001) + 1)]
    return (lambda value: start + (value - low) / span * (end - start)), ticks


def logarithmic(
    low: float, high: float, start: float, end: float
) -> tuple[Callable[[float], float], list[float]]:
    """The same by powers of ten."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    last = max(last, first + 1)
    every = max(1, (last - first) // 4)
    ticks = [10.0**power for power in range(first, last + 1, every)]
    return (lambda value: start + (math.log10(value) - first) / (last - first) * (end - start)), ticks


def _number(value: float) -> str:
    if value == 0 or 0.01 <= abs(value) < 10_000:
        return f"{value:g}"
    return f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


def _path(
    points: Sequence[tuple[float, float]], colour: str, dashed: bool = False, width: float = 1.8
) -> str:
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dash = ' stroke-dasharray="5 3"' if dashed else ""
    return f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>'


def _text(
    x: float,
    y: float,
    text: str,
    size: int = 11,
    anchor: str = "start",
    weight: str = "normal",
    more: str = "",
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" '
        f'fill="{INK}" {more}>{escape(text)}</text>'
    )
