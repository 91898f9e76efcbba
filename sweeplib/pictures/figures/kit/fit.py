"""Texts of a figure made to fit: long labels are broken into lines, overlapping tick labels are left out.

Lengths, room and boxes are in pixels of the figure's own resolution.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

import numpy as np

from sweeplib.pictures.figures.kit.late_matplotlib import mpl
from sweeplib.pictures.figures.kit.style import keep_within_doubles

APART = 2.0
"""The least distance between tick labels, in points."""
PASSES = 3
"""The most layouts: labels in more lines make the axes smaller, whose labels may then need more lines."""
INSIDE = 0.94
"""The fraction of the width of axes that a text inside them may fill."""
SMALLEST = 6.5
"""The smallest font size of a legend and of titles, in points."""
WORD = re.compile(r"(?:\$[^$]*\$|(?<=\w)\([^()$]*\)|[^\s$])+")
"""A word: mathematics and the arguments of a name, as those of `piecewise(0.5, -2.5, 1.5, 7.5)`, hold together."""


def renderer_of(figure: mpl.figure.Figure) -> Any:
    """Return the renderer that measures texts: Agg at the figure's own resolution."""
    return mpl.backends.backend_agg.FigureCanvasAgg(figure).get_renderer()


def fitted(figure: mpl.figure.Figure) -> mpl.figure.Figure:
    """Return the figure with a layout that keeps labels within their panels and tick labels apart when it is drawn.

    A figure with another layout, or with margins of its own, keeps these. TypeError for anything but a figure.
    """
    if not isinstance(figure, mpl.figure.Figure):
        raise TypeError(f"it returns {type(figure).__name__}; expected a matplotlib Figure")
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            keep_within_doubles(axis)
    layout = figure.get_layout_engine()
    if isinstance(layout, mpl.layout_engine.ConstrainedLayoutEngine) or (layout is None and not _has_margins(figure)):
        figure.set_layout_engine(_fitting_layout())
    return figure


def _has_margins(figure: mpl.figure.Figure) -> bool:
    """Whether margins were set, for all panels or for a grid of them; matplotlib's own cut off long labels."""
    grids = [grid for axes in figure.axes if (grid := axes.get_gridspec()) is not None]
    return vars(figure.subplotpars) != vars(mpl.gridspec.SubplotParams()) or any(
        getattr(grid, "locally_modified_subplot_params", list)() for grid in grids
    )


def _fitting_layout() -> mpl.layout_engine.LayoutEngine:
    """Return the constrained layout, with labels that fit; its class is made here, as matplotlib is imported late."""

    class FittingLayout(mpl.layout_engine.ConstrainedLayoutEngine):
        """The constrained layout, with labels and tick labels that fit."""

        def execute(self, fig: mpl.figure.Figure) -> Any:
            """Lay the figure out; labels that are broken into lines change the room for others, so do it again."""
            renderer = renderer_of(fig)
            for _ in range(PASSES):
                super().execute(fig)
                _shrink_titles(fig, renderer)
                changed = [_broke(text, room, renderer) for text, room in _labels_with_room(fig)]
                if not any(changed):
                    break
            else:
                super().execute(fig)  # room for the lines that came last
            for axes in fig.axes:
                for axis in (axes.xaxis, axes.yaxis):
                    _thin(axis, renderer)

    return FittingLayout()


def broken(text: str, room: float, length: Callable[[str], float]) -> str:
    """Return the text in lines no longer than `room`, by the `length` of texts, if possible; formulas stay whole."""
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in chain.from_iterable(_pieces(word, room, length) for word in WORD.findall(paragraph)):
            longer = f"{line} {word}".strip()
            if line and length(longer) > room:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return "\n".join(lines)


def _pieces(word: str, room: float, length: Callable[[str], float]) -> list[str]:
    """Return the word, or its pieces if it is longer than `room`: the arguments of a name, or halves.

    word : without blanks, but for those between the arguments of a name, `hermite(0, 1)`.
    """
    if "$" in word or len(word) < 2 or length(word) <= room:
        return [word]
    if " " in word:
        return [piece for argument in word.split() for piece in _pieces(argument, room, length)]
    half = len(word) // 2
    return _pieces(word[:half], room, length) + _pieces(word[half:], room, length)


def _labels_with_room(figure: mpl.figure.Figure) -> list[tuple[mpl.text.Text, float]]:
    """Return titles, labels and texts inside axes, each with its largest length."""
    labels = [(text, _along(text, figure.bbox)) for text in figure.texts]
    for axes in figure.axes:
        labels += [(text, _along(text, axes.bbox)) for text in (axes.title, axes.xaxis.label, axes.yaxis.label)]
        labels += [(text, INSIDE * _along(text, axes.bbox)) for text in axes.texts]
    return [(text, room) for text, room in labels if text.get_text() and text.get_visible()]


def _along(text: mpl.text.Text, box: mpl.transforms.BboxBase) -> float:
    """Return the length of a box along the direction of a text: its height for an upright one."""
    return float(box.height if text.get_rotation() == 90.0 else box.width)


def _shrink_titles(figure: mpl.figure.Figure, renderer: Any) -> None:
    """Make the titles of panels smaller, all alike, if a word of theirs is longer than a line."""
    titles = [(axes.title, axes.bbox.width) for axes in figure.axes if axes.title.get_text()]
    parts = [room / max(_longest(title, renderer), 1.0) for title, room in titles]
    if parts and min(parts) < 1.0:
        size = max(SMALLEST, 0.97 * min(parts) * min(float(title.get_fontsize()) for title, _ in titles))
        for title, _ in titles:
            title.set_fontsize(size)


def _longest(text: mpl.text.Text, renderer: Any) -> float:
    """Return the length of the longest word of a text, which has its content again afterwards."""
    content = text.get_text()
    longest = 0.0
    for word in WORD.findall(content):
        text.set_text(word)
        longest = max(longest, float(text.get_window_extent(renderer).width))
    text.set_text(content)
    return longest


def _broke(text: mpl.text.Text, room: float, renderer: Any) -> bool:
    """Break a text into lines if it is too long; return whether it was."""

    def length(content: str) -> float:
        """Return the length of a content along the direction of the text, which is changed."""
        text.set_text(content)
        return _along(text, text.get_window_extent(renderer))

    content = text.get_text()
    lines = broken(content, room, length) if length(content) > room else content
    text.set_text(lines)
    return lines != content


def _thin(axis: mpl.axis.Axis, renderer: Any) -> None:
    """Leave out labels of major ticks, evenly, and of minor ticks, until no label overlaps another."""
    labelled = {minor: _labels(axis, renderer, minor=minor) for minor in (False, True)}
    majors = _apart(labelled[False], axis)
    minors = [(place, box) for place, box in labelled[True] if not any(_near(box, other, axis) for _, other in majors)]
    places = {False: [place for place, _ in majors], True: [place for place, _ in _apart(minors, axis)]}
    for minor, labels in labelled.items():
        if len(places[minor]) < len(labels):
            _keep(axis, places[minor], minor=minor)


def _labels(axis: mpl.axis.Axis, renderer: Any, *, minor: bool) -> list[tuple[float, mpl.transforms.Bbox]]:
    """Return the positions of the ticks with a visible label, and the boxes of these labels."""
    ticks = [tick for tick in _ticks(axis, minor=minor) if tick.label1.get_visible() and tick.label1.get_text()]
    return [(float(tick.get_loc()), tick.label1.get_window_extent(renderer)) for tick in ticks]


def _ticks(axis: mpl.axis.Axis, *, minor: bool) -> list[mpl.axis.Tick]:
    """Return the ticks within the axes, in ascending order."""
    low, high = sorted(axis.get_view_interval())
    slack = 1e-9 * (high - low)
    ticks = axis.get_minor_ticks() if minor else axis.get_major_ticks()
    visible = [tick for tick in ticks if low - slack <= tick.get_loc() <= high + slack]
    return sorted(visible, key=lambda tick: float(tick.get_loc()))


def _apart(
    labels: list[tuple[float, mpl.transforms.Bbox]], axis: mpl.axis.Axis
) -> list[tuple[float, mpl.transforms.Bbox]]:
    """Return all labels, (position, box), or every second, third, ..., so that neighbours do not overlap.

    Of a logarithmic axis first those of the powers of ten are tried, if these are several.
    """
    powers = [label for label in labels if axis.get_scale() == "log" and np.log10(label[0]) % 1.0 == 0.0]
    thinner = (labels[::step] for step in range(2, len(labels)))
    for chosen in chain([labels], [powers] * (len(powers) > 1), thinner):
        if not any(_near(first, other, axis) for (_, first), (_, other) in pairwise(chosen)):
            return chosen
    return labels[:1]


def _near(first: mpl.transforms.Bbox, second: mpl.transforms.Bbox, axis: mpl.axis.Axis) -> bool:
    """Return whether two boxes are nearer than APART points."""
    apart = 0.5 * APART * axis.figure.dpi / 72.0
    return bool(first.padded(apart).overlaps(second.padded(apart)))


def _keep(axis: mpl.axis.Axis, places: list[float], *, minor: bool) -> None:
    """Fix the ticks at their positions, with labels only at the values `places`."""
    ticks = _ticks(axis, minor=minor)
    texts = [tick.label1.get_text() if tick.get_loc() in places else "" for tick in ticks]
    axis.set_ticks([tick.get_loc() for tick in ticks], labels=texts, minor=minor)
