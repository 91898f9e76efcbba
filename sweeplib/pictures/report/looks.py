"""Colours, markers and dashes of interactive plots, from the figures and from the classes of maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sweeplib.analysis.kit.variables import is_stochastic
from sweeplib.pictures.figures.kit.labels import dynamics_order
from sweeplib.pictures.figures.kit.style import COLOURS, INK

MARKERS = ("circle", "square", "diamond", "inverted_triangle", "plus", "hexagon")
SHADES = ("#1b1f5e", "#1d5c8f", "#248f8a", "#6fb35c", "#e3b72f")
DASHES = ("solid", "dashed", "dotted", "dotdash")
OUTLINES = {
    "circle": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "square": "M-4.5,-4.5h9v9h-9z",
    "diamond": "M0,-6L4.6,0L0,6L-4.6,0z",
    "inverted_triangle": "M0,5.5L5.4,-4.2H-5.4z",
    "plus": "M-1.7,-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3z",
    "hexagon": "M0,-5.5L4.8,-2.75V2.75L0,5.5L-4.8,2.75V-2.75z",
    "x": "M-4,-4L4,4M-4,4L4,-4",
    "cross": "M-5.5,0H5.5M0,-5.5V5.5",
    "asterisk": "M-5.5,0H5.5M0,-5.5V5.5M-4,-4L4,4M-4,4L4,-4",
    "y": "M0,0V5.5M0,0L-4.8,-2.8M0,0L4.8,-2.8",
    "line": "M-9,0H9",
    "cell": "M-6,-6h12v12h-12z",
}
FILLS = (1.0, 0.0, 0.5, 0.25, 0.75)
"""How far the markers of stochastic dynamics are filled, in their order."""
CROSSES = ("x", "cross", "asterisk", "y")
"""The markers of deterministic dynamics, in their order."""
DASH_ARRAYS = {"solid": "", "dashed": "5 3", "dotted": "2 2", "dotdash": "2 2 5 2"}


@dataclass(frozen=True)
class Look:
    """The look of one level, each part None if the level does not set it; `filled` is the fraction of the fill."""

    color: str | None = None
    marker: str | None = None
    filled: float | None = None
    dash: str | None = None

    def json(self) -> dict[str, Any]:
        """Return the object for the page's script."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    def over(self, hue: Look) -> Look:
        """Return this look with the colour of a hue, and with the hue's marker if this look has none."""
        return replace(self, color=hue.color, marker=self.marker or hue.marker)

    @property
    def swatch(self) -> dict[str, str]:
        """Return the attributes of the SVG path that represents the look in a legend."""
        colour = self.color or INK
        shape = "line" if self.dash or self.marker == "line" else self.marker or "circle"
        filled = 0.0 if shape in (*CROSSES, "line") else 1.0 if self.filled is None else self.filled
        dash = {"stroke-dasharray": DASH_ARRAYS[self.dash]} if self.dash and self.dash != "solid" else {}
        tint = {"fill-opacity": f"{filled:g}"} if 0.0 < filled < 1.0 else {}
        return {"d": OUTLINES[shape], "stroke": colour, "fill": colour if filled else "none"} | tint | dash


def hue_looks(names: Sequence[str], kind: str, colors: Mapping[str, str]) -> list[Look]:
    """Return the looks of the values of a hue: from `colors`, else the figures' looks, else a sequence."""
    number = len(names)
    if set(names) <= set(colors):
        return [Look(colors[name], _marker(kind, "circle")) for name in names]
    if number > len(COLOURS):
        return [Look(color, _marker(kind, "circle")) for color in sequence(number)]
    return [Look(color, _marker(kind, marker)) for color, marker in zip(COLOURS[:number], MARKERS, strict=False)]


def sequence(number: int) -> list[str]:
    """Return `number` colours from dark to light, distinguishable in grey: SHADES, linearly interpolated."""
    places = np.linspace(0.0, len(SHADES) - 1.0, number)
    channels = [[int(shade[at : at + 2], 16) for shade in SHADES] for at in (1, 3, 5)]
    mixed = np.rint([np.interp(places, range(len(SHADES)), channel) for channel in channels]).astype(int)
    return ["#" + "".join(f"{channel:02x}" for channel in colour) for colour in mixed.T]


def _marker(kind: str, marker: str) -> str:
    return {"map": "cell", "curves": "line"}.get(kind, marker)


def dynamics_looks(names: Sequence[str], kind: str) -> list[Look]:
    """Return the looks of dynamics, as in figures: stochastic ones filled, open, filled in part; crosses for others.

    For curves they are dashes, in the same order.
    """
    order = dynamics_order(names)
    if kind == "curves":
        return [Look(dash=DASHES[order.index(name) % len(DASHES)]) for name in names]
    crosses = [name for name in order if not is_stochastic(name)]
    return [
        Look(filled=FILLS[order.index(name) % len(FILLS)])
        if is_stochastic(name)
        else Look(marker=CROSSES[crosses.index(name) % len(CROSSES)])
        for name in names
    ]
