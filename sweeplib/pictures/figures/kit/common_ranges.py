"""The figures of one name of several sweeps, with the same ranges of axes and colours where these are comparable."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.design.design import Design
from sweeplib.errors import SweeplibError
from sweeplib.pictures.figures.kit.style import styled
from sweeplib.pictures.figures.write import drawn

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

DPI = 200


@dataclass(frozen=True)
class Picture:
    """A figure as PNG with its size in pixels; without them the `problem` that prevented it, "" if it is not wanted."""

    content: bytes = b""
    size: tuple[int, int] = (0, 0)
    problem: str = ""


def pictures(sweeps: Sequence[tuple[Design, Path]], name: str) -> tuple[list[Picture], bool]:
    """Return the figure `name` of each sweep and its directory, and whether their axes have the same ranges."""
    drawings: list[Drawing | str] = []
    for sweep, directory in sweeps:
        try:
            drawings.append(drawn(sweep, name, directory) if name in sweep.figures else "")
        except Exception as error:  # a figure of a plugin may raise anything
            problem = str(error) if isinstance(error, SweeplibError) else f"{type(error).__name__}: {error}"
            drawings.append(problem.partition("\n")[0])
    figures = [drawing for drawing in drawings if not isinstance(drawing, str)]
    with styled():
        shared = share_ranges(figures)
        views = [Picture(problem=item) if isinstance(item, str) else _picture(item) for item in drawings]
    return views, shared


def share_ranges(drawings: Sequence[Drawing]) -> bool:
    """Give axes at the same place of all drawings the union of their ranges; return whether all of them got it.

    Axes are comparable if their labels and scales are the same. If the numbers of axes differ, all axes of all drawings
    get one range, provided that they are comparable and that those of each drawing have one range already.
    """
    if len(drawings) < 2:
        return False
    axes = [[panel for panel in drawing.axes if not hasattr(panel, "_colorbar")] for drawing in drawings]
    if len({len(panel) for panel in axes}) == 1:
        groups = [list(group) for group in zip(*axes, strict=True)]
    else:
        one_range = all(len({(panel.get_xlim(), panel.get_ylim()) for panel in several}) == 1 for several in axes)
        groups = [[panel for several in axes for panel in several]] if one_range else []
    labels = [_labels(panel) for panel in axes]
    comparable = [group for group in groups if len({(panel.get_xscale(), panel.get_yscale()) for panel in group}) == 1]
    if any(label != labels[0] for label in labels) or not comparable:
        return False
    for group in comparable:
        _unite(group)
    return len(comparable) == len(groups)


def _labels(axes: Sequence[Axes]) -> set[str]:
    return {text for panel in axes for text in (panel.get_xlabel(), panel.get_ylabel()) if text}


def _unite(group: Sequence[Axes]) -> None:
    horizontal, vertical = ([getattr(panel, f"get_{axis}lim")() for panel in group] for axis in "xy")
    mapped = [mappable for panel in group for mappable in (*panel.images, *panel.collections) if _is_scaled(mappable)]
    for panel in group:
        panel.set_xlim(_union(horizontal))
        panel.set_ylim(_union(vertical))
    if len({type(mappable.norm) for mappable in mapped}) == 1:
        low, high = _union([mappable.get_clim() for mappable in mapped])
        for mappable in mapped:
            mappable.set_clim(low, high)


def _is_scaled(mappable: Any) -> bool:
    """Return whether the colours of a part of a figure are numbers on a linear or logarithmic scale."""
    from matplotlib.colors import LogNorm, Normalize

    return mappable.get_array() is not None and type(mappable.norm) in (Normalize, LogNorm) and mappable.norm.scaled()


def _union(ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the smallest range that contains all; the ends of a reversed axis stay reversed."""
    ends = [end for interval in ranges for end in interval]
    low, high = min(ends), max(ends)
    return (high, low) if all(first > last for first, last in ranges) else (low, high)


def _picture(drawing: Drawing) -> Picture:
    target = io.BytesIO()
    drawing.savefig(target, format="png", dpi=DPI, metadata={"Software": None})
    width, height = drawing.get_size_inches() * DPI
    return Picture(target.getvalue(), (round(width), round(height)))
