"""The comparison of several finished sweeps: one self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sweeplib.engine.design.design import Design
from sweeplib.engine.storage.records.jobs import counts_when_done
from sweeplib.pictures.report.failures import cards, outcomes
from sweeplib.pictures.report.overview import overview, provenance
from sweeplib.pictures.report.runs import journals
from sweeplib.pictures.report.side_by_side import beside, differences, headline_tables
from sweeplib.pictures.report.write import case_counts, data_url, environment, settings

MOST_OUTCOMES = 3


@dataclass(frozen=True)
class ComparisonPage:
    """The page, and the names of the figures that could not be drawn with the reason."""

    html: str
    problems: list[str]


def comparison(sweeps: Sequence[tuple[Design, Path]], folder: Path) -> ComparisonPage:
    """Return the page that compares sweeps, given with their directories; links are relative to `folder`."""
    from sweeplib.engine.code.plugins import load_plugins

    for sweep, _ in sweeps:
        load_plugins(sweep.plugins)
    names = labels([directory for _, directory in sweeps])
    differing, equal = differences([sweep.source for sweep, _ in sweeps])
    figures = _figures(sweeps)
    outcomes = [_outcome(sweep, directory, folder) for sweep, directory in sweeps]
    html = (
        environment()
        .get_template("comparison.html.j2")
        .render(
            names=names,
            title=f"{', '.join(names[:-1])} and {names[-1]}",
            differences=differing,
            equal=equal,
            headlines=headline_tables(sweeps),
            figures=figures,
            outcomes=outcomes,
            provenance=beside([outcome["provenance"] for outcome in outcomes]),
        )
    )
    problems = [
        f"figure {figure['name']} of {name}: {view['problem']}"
        for figure in figures
        for name, view in zip(names, figure["parts"], strict=True)
        if view["problem"]
    ]
    return ComparisonPage(html, problems)


def write_comparison(sweeps: Sequence[tuple[Design, Path]], path: Path) -> ComparisonPage:
    """Write the page that compares sweeps; return it."""
    from sweeplib.engine.storage.records.files import write_text

    page = comparison(sweeps, path.parent)
    write_text(path, page.html)
    return page


def labels(directories: Sequence[Path]) -> list[str]:
    """Return a name for each sweep: that of its directory, with as many folders above it as make the names differ."""
    paths = [directory.resolve() for directory in directories]
    for count in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-count:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return names


def _figures(sweeps: Sequence[tuple[Design, Path]]) -> list[dict[str, Any]]:
    """Return each figure of any of the sweeps: their pictures beside each other, over the same ranges if they can."""
    from sweeplib.pictures.figures.kit.common_ranges import pictures

    figures = []
    for name in dict.fromkeys(name for sweep, _ in sweeps for name in sweep.figures):
        views, shared = pictures(sweeps, name)
        parts = [
            {
                "source": data_url("image/png", picture.content),
                "size": [pixels // 2 for pixels in picture.size],
                "problem": picture.problem,
                "drawn": bool(picture.content),
            }
            for picture in views
        ]
        title, several = name.replace("_", " ").capitalize(), sum(bool(picture.content) for picture in views) > 1
        figures.append({"name": name, "title": title, "parts": parts, "shared": shared, "several": several})
    return figures


def _outcome(sweep: Design, directory: Path, folder: Path) -> dict[str, Any]:
    """Return the cases by dynamics and status, the cost, the failures and the provenance of a sweep."""
    from sweeplib.engine.storage.dataset.folder import open_dataset

    dataset, journal = open_dataset(directory / "dataset.zarr"), journals(directory, sweep.runs)
    counts = case_counts(sweep, directory)
    page, ended = directory / "report" / "index.html", outcomes(directory, counts_when_done(directory, sweep.runs))
    return {
        "overview": overview(dataset, counts, journal, sweep.simulator.about),
        "counts": counts,
        "outcomes": ended.rows[:MOST_OUTCOMES],
        "ended": ended,
        "cards": cards(sweep, directory),
        "report": os.path.relpath(page.resolve(), folder.resolve()) if page.exists() else None,
        "provenance": provenance(dataset, journal, settings(sweep), directory),
    }
