"""The comparison of several finished sweeps: the report of their datasets along an axis `sweep`.

`names` are the labels of the sweeps, in their order, as everywhere in the page.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sweeplib.analysis import ANALYSES, write_analysis
from sweeplib.analysis.kit.combination import combine
from sweeplib.analysis.kit.overlaps import open_with_overlaps
from sweeplib.analysis.kit.sweep_axis import SWEEP
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.design import Design
from sweeplib.engine.files.strict_yaml import flow, parsed
from sweeplib.engine.storage.dataset.folder import open_dataset, write_dataset
from sweeplib.engine.storage.dataset.outline import outline_of
from sweeplib.engine.storage.records.files import write_text
from sweeplib.engine.storage.records.stage_records import counts_when_done, recorded_stage
from sweeplib.errors import InputError
from sweeplib.pictures.figures import FIGURES, write_figure
from sweeplib.pictures.figures.figure import Figure, requested
from sweeplib.pictures.report.overview import computations, provenance
from sweeplib.pictures.report.write import case_counts, contents_of, page, settings
from sweeplib.statistics.lost_runs import has_run

Sweeps = Sequence[tuple[Design, Path]]
"""Sweeps, each with the folder of its results."""
ABSENT, LONGEST = "–", 90
"""The text of a key that a config lacks, and the length to which values are shortened."""
OPENING = """\
import sweeplib

both = sweeplib.combine(
{datasets}    sweep={names},
)
"""
"""The script by which a reader opens the datasets."""


def write_comparison(sweeps: Sweeps, path: Path) -> list[str]:
    """Write the page that compares sweeps, given with their folders; return what could not be made, and why.

    It is the report of a folder with their datasets along an axis `sweep`, the analyses of all of them, with the
    options of the first that has each, and the figures of all. InputError for sweeps that cannot be compared.
    """
    names = labels([directory for _, directory in sweeps])
    datasets = [open_with_overlaps(directory / "dataset.zarr") for _, directory in sweeps]
    folders = [os.path.relpath(directory.resolve(), path.parent.resolve()) for _, directory in sweeps]
    opened = "".join(f"    sweeplib.open({folder!r}),\n" for folder in folders)
    opening = OPENING.format(datasets=opened, names=names)
    with TemporaryDirectory() as folder:
        design = _written(sweeps, names, combine(*datasets, sweep=names), Path(folder))
        contents = contents_of(design, Path(folder))
    for figure in contents["figures"]:
        kind, options = requested(figure["name"], design.figures[figure["name"]])
        figure["script"] = f"{opening}both.sweep.figure({kind.name!r}, **{options})\n"
    cards = [card | {"reproduce": opening} for card in contents["cards"]]
    left_out = sorted({str(name) for ds in datasets for name in ds.data_vars} - _common(datasets))
    contents |= {
        "config": "",
        "first": ("What differs", differences([sweep.source for sweep, _ in sweeps], names)),
        "headlines": [
            *contents["headlines"],
            *([f"Not compared, as not every sweep has it: {', '.join(left_out)}."] if left_out else []),
        ],
        "links": _links(sweeps, names, path.parent),
        "counts": _counts(sweeps, names),
        "provenance": _provenance(sweeps, names),
        "opening": ("The datasets along an axis sweep, from the folder of this page:", opening),
        "cards": cards,
    }
    write_text(path, page(**contents))
    return [f"{card['kind']} {card['name']}: {card['exception']}" for card in cards]


def labels(directories: Sequence[Path]) -> list[str]:
    """Return a name for each sweep: that of its directory, with as many folders above it as make the names differ."""
    paths = [directory.resolve() for directory in directories]
    for depth in range(1, max(len(path.parts) for path in paths)):
        names = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(names)) == len(names):
            break
    return names


def _written(sweeps: Sweeps, names: Sequence[str], ds: xr.Dataset, folder: Path) -> Design:
    """Write the dataset, its analyses and its figures into a folder, as a sweep has them; return the sweep's design."""
    designs = [sweep for sweep, _ in sweeps]
    counts = [counts_when_done(directory, sweep.runs) for sweep, directory in sweeps]
    runs = {name: run for sweep in reversed(designs) for name, run in sweep.runs.items()}
    for name in runs:
        cases = sum((Counter(count.get(name, {})) for count in counts), Counter[str]())
        with recorded_stage(folder, f"simulate.{name}") as record:
            record.write_result({}, counts=cases)
    write_dataset(ds, folder / "dataset.zarr")
    design = replace(
        designs[0],
        name=f"{', '.join(names[:-1])} and {names[-1]}",
        runs=runs,
        analyses={name: options for sweep in reversed(designs) for name, options in sweep.analyses.items()},
        plugins=tuple(dict.fromkeys(plugin for sweep in designs for plugin in sweep.plugins)),
        questions={},
        figures={},
    )
    for name in design.analyses:
        write_analysis(design, name, folder)
    analyses = {path.stem: open_dataset(path) for path in sorted((folder / "analysis").glob("*.zarr"))}
    design = replace(design, figures=compared_figures([sweep.figures for sweep in designs], names, ds, analyses))
    for name in design.figures:
        write_figure(design, name, folder)
    return design


def compared_figures(
    figures: Sequence[Mapping[str, Mapping[str, Any]]],
    names: Sequence[str],
    ds: xr.Dataset,
    analyses: Mapping[str, xr.Dataset],
) -> dict[str, Mapping[str, Any]]:
    """Return the entries of `figures` of all sweeps for their dataset along the axis `sweep`.

    A figure is over that axis or, if it has no room for it, there is one for each sweep. Ratios to the first sweep are
    added, of the first quantity of each analysis.
    """
    entries: dict[str, Mapping[str, Any]] = {}
    for of_sweep, label in zip(figures, names, strict=True):
        for name, entry in of_sweep.items():
            figure, options = requested(name, entry)
            # the first that fits: with values that all sweeps have fixed, else as it is; if none does, one per sweep
            common, *alone = _at_single_values(ds, figure, options)
            choice = next((choice for choice in (common, options) if _fits(figure, ds, analyses, choice)), None)
            views = [(f"{name}_{_word(sweep)}", view) for sweep, view in zip(names, alone, strict=True)]
            for title, view in views if choice is None else [(name, choice)]:
                drawing = {"kind": figure.name, **view}
                if drawing not in entries.values():
                    of = f"{title}_of_{_word(label)}"  # the words of two sweeps may be one
                    titles = chain((title, of), (f"{of}_{number}" for number in count(2)))
                    entries[next(free for free in titles if free not in entries)] = drawing
    ratio = FIGURES["ratio"]
    for quantity in (next(iter(ANALYSES[name].quantities), None) for name in analyses):
        options = {"y": quantity, "to": {SWEEP: names[0]}}
        if quantity is not None and _fits(ratio, ds, analyses, options):
            entries[f"ratio_of_{quantity}"] = {"kind": "ratio", **options}
    return entries


def _fits(figure: Figure, ds: xr.Dataset, analyses: Mapping[str, xr.Dataset], options: Mapping[str, Any]) -> bool:
    """Return whether a figure can be drawn with these options."""
    try:
        figure.check_fit(outline_of(ds), {name: outline_of(analysis) for name, analysis in analyses.items()}, options)
    except InputError:
        return False
    return True


def _at_single_values(ds: xr.Dataset, figure: Figure, options: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return options of a figure: for all sweeps, then for each sweep alone.

    Those for one sweep fix the axes along which it has a single value. Those for all fix them too, where all sweeps
    have that value.
    """
    if "where" not in figure.check(options):
        return [options] * (1 + ds.sizes[SWEEP])
    used = {*map(str, options.values()), *(options.get("where") or {})}
    run, common, alone = has_run(ds), dict[str, Any](), [{SWEEP: str(name)} for name in ds[SWEEP].values]
    for dim in (dim for dim in run.dims if dim in ds.indexes and dim not in ("dynamics", "seed", SWEEP, *used)):
        has_runs = run.any([other for other in run.dims if other not in (SWEEP, dim)]).transpose(SWEEP, dim).values
        for mask, where in zip(has_runs, alone, strict=True):
            if mask.sum() == 1 < mask.size:
                where[str(dim)] = ds[dim].values[mask.argmax()].item()
                common |= {str(dim): where[str(dim)]} if has_runs[:, mask.argmax()].all() else {}
    return [{**options, "where": {**where, **(options.get("where") or {})}} for where in (common, *alone)]


def _word(label: str) -> str:
    return re.sub(r"\W", "_", label)


def differences(sources: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return a table, by its caption, of the keys whose values differ between the `sources` of complete configs.

    The caption says how many others there are. The name of a sweep is no such key.
    """
    configs = [dict(_flat(parsed(source))) for source in sources]
    keys = [key for key in dict.fromkeys(key for config in configs for key in config) if key != "name"]
    rows = [[key, *(_short(config.get(key, ABSENT)) for config in configs)] for key in keys]
    different = [
        row for row, key in zip(rows, keys, strict=True) if len({config.get(key, ABSENT) for config in configs}) > 1
    ]
    caption = f"Keys of the configs with other values; the other {len(keys) - len(different)} are the same."
    return {caption: {"headings": ["key", *names], "rows": different}}


def _flat(content: Any, place: str = "") -> Iterable[tuple[str, str]]:
    """Yield dotted keys and their values as text."""
    if isinstance(content, Mapping) and content:
        for key, value in content.items():
            yield from _flat(value, f"{place}.{key}" if place else str(key))
    else:
        yield place, flow(content)


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _common(datasets: Sequence[xr.Dataset]) -> set[str]:
    """Return the names of variables that all datasets have."""
    return set.intersection(*({str(name) for name in ds.data_vars} for ds in datasets))


def _links(sweeps: Sweeps, names: Sequence[str], folder: Path) -> list[tuple[str, str]]:
    """Return the names and the relative addresses, from a folder, of the reports of the sweeps that have one."""
    pages = [directory / "report" / "index.html" for _, directory in sweeps]
    return [
        (name, os.path.relpath(report.resolve(), folder.resolve()))
        for name, report in zip(names, pages, strict=True)
        if report.exists()
    ]


def _counts(sweeps: Sweeps, names: Sequence[str]) -> list[tuple[str, dict[str, int]]]:
    """Return for each dynamics of each sweep its label and the number of cases with each status."""
    counts = [
        (f"{label}, {name}", cases)
        for (sweep, directory), name in zip(sweeps, names, strict=True)
        for label, cases in case_counts(sweep, directory)
    ]
    statuses = dict.fromkeys(status for _, cases in counts for status in cases)
    return [(label, {status: cases.get(status, 0) for status in statuses}) for label, cases in counts]


def _provenance(sweeps: Sweeps, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the provenance of the sweeps as (name, text): what they share once, what differs for each of them."""
    lists = [
        dict(provenance(open_dataset(directory), computations(directory, sweep.runs), settings(sweep), directory))
        for sweep, directory in sweeps
    ]
    pairs = []
    for heading in dict.fromkeys(heading for texts in lists for heading in texts):
        values = [texts.get(heading, ABSENT) for texts in lists]
        shared = len(set(values)) == 1
        pairs += (
            [(heading, values[0])]
            if shared
            else [(f"{heading}, {name}", value) for name, value in zip(names, values, strict=True)]
        )
    return pairs
