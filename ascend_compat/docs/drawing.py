"""Drawings as SVG text: heat maps, curves with their spread, badges. Colours are classes, so that a page's theme decides."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_RUNG_COLOURS = {
    "verified": "#1a7f37",
    "smoke": "#0969da",
    "claimed": "#59636e",
    "stale": "#9a6700",
    "contradicted": "#cf222e",
}
_STATUS_COLOURS = {"unsupported": "#82071e", "withdrawn": "#82071e", "not-applicable": "#59636e", "unknown": "#59636e"}


@dataclass(frozen=True, slots=True)
class Curve:
    """A named line through points; ``spread`` gives how far each value may lie above and below."""

    name: str
    values: Sequence[float]
    spread: Sequence[tuple[float, float]] = ()


def heat(columns: Sequence[str], rows: Sequence[tuple[str, Sequence[tuple[str, str] | None]]]) -> str:
    """A grid of coloured cells, each with its class and its text; None is an empty place."""
    left, top, wide, high = 8 + 7 * max((len(name) for name, _ in rows), default=0), 66, 46, 26
    width, height = left + wide * len(columns) + 60, top + high * len(rows) + 4
    parts = [_open(width, height)]
    for number, name in enumerate(columns):
        x = left + wide * number + wide // 2
        parts.append(f'<text x="{x}" y="{top - 8}" transform="rotate(-40 {x} {top - 8})">{escape(name)}</text>')
    for line, (name, cells) in enumerate(rows):
        y = top + high * line
        parts.append(f'<text x="{left - 6}" y="{y + 17}" text-anchor="end">{escape(name)}</text>')
        for number, cell in enumerate(cells):
            if cell is None:
                continue
            x = left + wide * number
            parts.append(
                f'<rect class="heat-{cell[0]}" x="{x}" y="{y}" width="{wide - 2}" height="{high - 2}" rx="3"/>'
            )
            parts.append(
                f'<text class="in-heat" x="{x + wide / 2 - 1:g}" y="{y + 17}" text-anchor="middle">{escape(cell[1])}</text>'
            )
    return "\n".join([*parts, "</svg>"])


def curves(ticks: Sequence[str], lines: Sequence[Curve], unit: str) -> str:
    """Lines over ordered places (steps, releases), with a band where a spread is known."""
    left, top, width, height, bottom = 70, 26, 640, 220, 64
    highest = max((max(line.values, default=0.0) for line in lines), default=0.0)
    highest = max([highest, *(high for line in lines for _, high in line.spread)]) or 1.0
    step = (width - left - 20) / max(len(ticks) - 1, 1)
    scale = (height - top) / highest
    parts = [_open(width, height + bottom)]
    for part in (0.0, 0.5, 1.0):
        y = height - highest * part * scale
        parts.append(f'<path class="rule" d="M{left} {y:.1f}H{width - 20}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{highest * part:g}</text>')
    parts.append(f'<text x="{left}" y="14">{escape(unit)}</text>')
    every = max(1, len(ticks) // 12)
    for number, tick in enumerate(ticks):
        if number % every == 0:
            x = left + step * number
            parts.append(
                f'<text x="{x:.1f}" y="{height + 16}" text-anchor="end" transform="rotate(-35 {x:.1f} {height + 16})">{escape(tick)}</text>'
            )
    for number, line in enumerate(lines):
        places = [left + step * at for at in range(len(line.values))]
        if line.spread:
            upper = [f"{x:.1f} {height - high * scale:.1f}" for x, (_, high) in zip(places, line.spread)]
            lower = [f"{x:.1f} {height - low * scale:.1f}" for x, (low, _) in zip(places, line.spread)]
            parts.append(f'<path class="band-{number % 6}" d="M{"L".join([*upper, *reversed(lower)])}Z"/>')
        points = [f"{x:.1f} {height - value * scale:.1f}" for x, value in zip(places, line.values)]
        parts.append(f'<path class="line-{number % 6}" d="M{"L".join(points)}"/>')
        parts += [
            f'<circle class="dot-{number % 6}" cx="{point.split()[0]}" cy="{point.split()[1]}" r="2.5"/>'
            for point in points
        ]
        x = left + 120 + 130 * number
        parts.append(
            f'<path class="line-{number % 6}" d="M{x} 10h16"/><text x="{x + 20}" y="14">{escape(line.name)}</text>'
        )
    return "\n".join([*parts, "</svg>"])


def badge(label: str, text: str, kind: str) -> str:
    """A badge; ``kind`` is a rung, or a status that has none. It stands alone, so its colours are fixed."""
    colour = _RUNG_COLOURS.get(kind) or _STATUS_COLOURS[kind]
    left, right = _width(label), _width(text)
    whole = f"{label}: {text}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" aria-label="{escape(whole)}">'
        f"<title>{escape(whole)}</title>"
        f'<rect width="{left}" height="20" fill="#24292f"/><rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,Noto Sans CJK SC,sans-serif" font-size="11" text-anchor="middle">'
        f'<text x="{left / 2:g}" y="14">{escape(label)}</text><text x="{left + right / 2:g}" y="14">{escape(text)}</text></g></svg>\n'
    )


def _width(text: str) -> int:
    """About as wide as Verdana draws it; CJK characters are square."""
    return 12 + sum(12 if ord(each) > 0x2E80 else 7 for each in text)


def _open(width: float, height: float) -> str:
    return f'<svg class="drawing" viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" aria-hidden="true">'
