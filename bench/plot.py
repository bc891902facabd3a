"""A plot with two logarithmic axes as one SVG, readable in light and dark, with nothing but text in it."""

import math
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 44, 52
COLOURS = ("#0b7285", "#2b8a3e", "#c2255c", "#e8590c", "#5f3dc4", "#1864ab", "#a07900", "#868e96")


@dataclass
class Line:
    name: str
    points: list
    ours: bool = False


def powers(low, high):
    return [10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)]


def short(value):
    if value >= 1:
        for size, letter in ((1e6, "M"), (1e3, "k")):
            if value >= size:
                return f"{value / size:g} {letter}"
    return f"{value:g}"


def draw(title, x_name, y_name, lines):
    xs = [x for line in lines for x, _ in line.points]
    ys = [max(y, 1e-4) for line in lines for _, y in line.points]
    x_low, x_high = min(xs), max(max(xs), min(xs) * 2)
    y_ticks = powers(min(ys), max(ys))

    def across(x):
        return LEFT + (math.log10(x) - math.log10(x_low)) / (math.log10(x_high) - math.log10(x_low)) * (
            WIDTH - LEFT - RIGHT)

    def up(y):
        low, high = math.log10(y_ticks[0]), math.log10(y_ticks[-1])
        return HEIGHT - BOTTOM - (math.log10(max(y, 1e-4)) - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13">',
        f"<title>{escape(title)}</title>",
        "<style>.ink{fill:#1c1e21}.faint{stroke:#8884}.back{fill:#fff}"
        "@media (prefers-color-scheme: dark){.ink{fill:#e6e6e6}.back{fill:#15181c}}</style>",
        f'<rect class="back" width="{WIDTH}" height="{HEIGHT}"/>',
        f'<text class="ink" x="{LEFT}" y="24" font-size="15" font-weight="600">{escape(title)}</text>',
    ]
    for y in y_ticks:
        out.append(f'<line class="faint" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(y):.1f}" y2="{up(y):.1f}"/>')
        out.append(f'<text class="ink" x="{LEFT - 8}" y="{up(y) + 4:.1f}" text-anchor="end">{short(y)}</text>')
    for x in sorted(set(xs)):
        out.append(f'<line class="faint" x1="{across(x):.1f}" x2="{across(x):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        out.append(f'<text class="ink" x="{across(x):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">'
                   f"{short(x)}</text>")
    out.append(f'<text class="ink" x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
               f"{escape(x_name)}</text>")
    out.append(f'<text class="ink" transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" '
               f'text-anchor="middle">{escape(y_name)}</text>')
    for line, at, (x, y) in labels(lines, across, up):
        colour = COLOURS[lines.index(line) % len(COLOURS)]
        path = " ".join(f"{across(px):.1f},{up(py):.1f}" for px, py in line.points)
        width = 3.5 if line.ours else 1.8
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width}"/>')
        out += [f'<circle cx="{across(px):.1f}" cy="{up(py):.1f}" r="{width}" fill="{colour}"/>'
                for px, py in line.points]
        weight = ' font-weight="700"' if line.ours else ""
        name = f"driftline {line.name}" if line.ours else line.name
        out.append(f'<text x="{across(x) + 9:.1f}" y="{at + 4:.1f}" fill="{colour}"{weight}>{escape(name)}</text>')
    out.append("</svg>")
    return "\n".join(out) + "\n"


def labels(lines, across, up):
    """Each line with where its name goes: beside its last point, moved apart where names would lie on each other."""
    placed = []
    for line in sorted(lines, key=lambda line: up(line.points[-1][1])):
        x, y = line.points[-1]
        at = up(y)
        for _, other, (other_x, _) in placed:
            if abs(across(other_x) - across(x)) < 120 and at - other < 15:
                at = max(at, other + 15)
        placed.append((line, at, (x, y)))
    return placed
