"""Overview and provenance of a sweep as text; how its runs were computed and ended, and what failed.

Counts of cases are numbers by status. A card is the description of a failed analysis, figure or part of the report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from sweeplib.analysis.kit.problem_fields import has_direction, with_constants
from sweeplib.analysis.kit.rows import runs_by_status
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.design import Design
from sweeplib.engine.process.terminal import counted, duration
from sweeplib.engine.status import OUTCOMES, failed
from sweeplib.engine.storage.records.attempts import IN_REPORT, failed_attempts
from sweeplib.engine.storage.records.stage_records import done_path
from sweeplib.engine.storage.store.outcomes import first_outcomes, outcomes_path, reason_in_words
from sweeplib.networks.problem import PARAMETERS
from sweeplib.pictures.figures.kit.labels import NAMED, axis_label
from sweeplib.pictures.report.mathematics import value_text

MOST_VALUES = 12
"""The most values of an axis that are listed whole."""
MOST = 100
"""The largest number of cases that the page lists."""
MEANINGS = {
    "inaccurate": "the error of its results became larger than its bound; it has no values from then on",
    "diverged": "its overlaps became larger than any that are computed",
    "timeout": "it did not end within the time limit",
}
"""What happened to cases that raised no exception, by status."""


@dataclass(frozen=True)
class Outcomes:
    """The first cases that ended otherwise than ok, the number of `failed` ones, and of all `others`, by status.

    tables : the paths of the tables of all of them, from the sweep's directory.
    """

    rows: list[dict[str, str]]
    failed: int
    others: Mapping[str, int]
    tables: Sequence[str] = ()

    @property
    def total(self) -> int:
        """Return the number of cases that ended otherwise than ok."""
        return self.failed + sum(self.others.values())


@dataclass(frozen=True)
class Computation:
    """How the cases of a dynamics were computed: the processor time of their tasks, one core each, and their workers.

    copies : the number of cases that were taken from each other sweep, by its name.
    """

    seconds: float
    workers: frozenset[str]
    copies: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Overview:
    """The overview: a sentence, main numbers (name, text), the processor time of each dynamics, the fixed fields.

    costs : None if the times are not known.
    """

    lead: str
    facts: list[tuple[str, str]]
    costs: list[str] | None
    fixed: list[str]


def overview(
    dataset: xr.Dataset, counts: list[tuple[str, dict[str, int]]], computed: Iterable[Computation], about: str = ""
) -> Overview:
    """Return the overview of a sweep; its sentences have their mathematics between dollars.

    counts : `case_counts` of the page, by dynamics. computed : how its cases were computed, by dynamics in the same
    order. about : what is swept, in words.
    """
    axes = [str(dim) for dim in dataset["status"].dims if dim not in ("dynamics", "seed")]
    several = [dim for dim in axes if dataset.sizes[dim] > 1]
    varied = [f"{axis_label(dataset[dim])} ({dataset.sizes[dim]})" for dim in several]
    total = sum(sum(cases.values()) for _, cases in counts)
    fine = sum(cases["ok"] for _, cases in counts)
    computed = list(computed)
    seconds = [some.seconds for some in computed]
    facts = [
        ("cases", f"{total:,}"),
        ("ended ok", f"{fine:,}" if fine < total else "all"),
        ("dynamics", str(len(counts))),
        ("seeds", str(dataset.sizes["seed"])),
    ]
    facts += [("processor time", duration(sum(seconds)))] * any(seconds)
    costs = [duration(value) for value in seconds] if any(seconds) else None
    of = f" of {about}" if about else ""
    lead = f"A sweep{of} over {_listed(varied)}." if varied else f"One point{of}, swept over seeds."
    return Overview(lead, facts, costs, _fixed(dataset.isel({dim: 0 for dim in axes if dim not in several})))


def _listed(parts: list[str]) -> str:
    """Return texts with commas between them, and "and" before the last."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _fixed(dataset: xr.Dataset) -> list[str]:
    """Return the fields of the problem that have the same value everywhere, as text."""
    with_coordinates = with_constants(dataset)
    constant = [name for name in PARAMETERS if name in with_coordinates.coords and not with_coordinates[name].dims]
    return [_constant(with_coordinates[name]) for name in constant]


def _constant(coordinate: xr.DataArray) -> str:
    """Return label and value of a constant, with mathematics between dollars."""
    value = coordinate.item()
    if coordinate.name in NAMED and isinstance(value, str):
        return f"{axis_label(coordinate)} = {NAMED[str(coordinate.name)](value)}"
    return f"{axis_label(coordinate)} = {value_text(value)}"


def axes(dataset: xr.Dataset) -> list[dict[str, str]]:
    """Return the name, size and shortened values of each axis along which there are runs."""
    rows = []
    for name in dataset["status"].dims:
        values = [value_text(value, str(name)) for value in dataset[name].values.tolist()]
        texts = values if len(values) <= MOST_VALUES else [*values[:3], "…", *values[-1:]]
        title, size = axis_label(dataset[name]), str(len(values))
        rows.append({"name": str(name), "what": title, "size": size, "values": ", ".join(texts)})
    return rows


def provenance(
    dataset: xr.Dataset, computed: Iterable[Computation], settings: Mapping[str, Any], directory: Path
) -> list[tuple[str, str]]:
    """Return the provenance of a dataset as (name, text) pairs.

    computed : how its cases were computed, by dynamics. settings : what it does not record itself, such as the root
    seed, as text by name. directory : the folder of the sweep.
    """
    attrs = dataset.attrs
    computed = list(computed)
    pairs = [
        ("Authors", attrs.get("creator_name")),
        ("Licence of the results", attrs.get("license")),
        ("Commit of sweeplib", attrs.get("git_commit")),
        ("Packages", attrs.get("versions")),
        ("Processors", attrs.get("processors")),
        ("Workers", _workers(computed)),
        ("Cases taken from other sweeps", _copies(computed)),
        ("Digest of the numbers", attrs.get("digest")),
        ("Dataset written", _written(done_path(directory, "finalise"))),
        *((key, str(value)) for key, value in settings.items()),
    ]
    return [(label, str(text)) for label, text in pairs if text]


def _workers(computed: list[Computation]) -> str:
    """Return in words how many processes on how many machines computed the cases; "" if that is not known."""
    # the name of a worker is HOST:NUMBER
    workers = {worker for some in computed for worker in some.workers}
    hosts = {worker.partition(":")[0] for worker in workers}
    return f"{counted(len(workers), 'process')} on {counted(len(hosts), 'machine')}" if workers else ""


def _copies(computed: list[Computation]) -> str:
    """Return in words how many cases were taken from which sweeps; "" for none."""
    copies = sum((Counter(some.copies) for some in computed), Counter[str]())
    return ", ".join(f"{count:,} of {name}" for name, count in sorted(copies.items()))


def _written(path: Path) -> str:
    """Return when a file was written, in UTC; "" if there is none."""
    if not path.exists():
        return ""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")


def run_counts(dataset: xr.Dataset, data: xr.Dataset) -> xr.DataArray:
    """Return the outcomes at each point of `data`, derived from `dataset`, as text: '120 ok, 8 diverged', 'none'.

    Counts are summed over axes that `data` no longer has; runs that were not requested are not counted. A direction
    that the teacher does not have has none. Each text is made once, for all points with the same numbers.
    """
    counts = runs_by_status(dataset, data)
    axes = next(iter(counts.values())).dims
    table = np.stack([count.values for count in counts.values()], axis=-1)
    rows, place = np.unique(table.reshape(-1, len(counts)), axis=0, return_inverse=True)
    texts = np.array([_text(row.tolist(), list(counts)) for row in rows])
    shape = [data.sizes[dim] for dim in axes]
    runs = xr.DataArray(texts[place].reshape(shape), dims=axes)
    runs = runs.where(has_direction(data, dataset).reset_coords(drop=True), "none")
    return runs.assign_attrs(long_name="runs by status")


def _text(numbers: list[int], meanings: list[str]) -> str:
    """Return the numbers of runs in words, with the names of their statuses; "none" for no runs."""
    return (
        ", ".join(f"{number} {meaning}" for number, meaning in zip(numbers, meanings, strict=True) if number) or "none"
    )


def computations(directory: Path, dynamics: Iterable[str]) -> list[Computation]:
    """Return how the stored cases of some dynamics in a sweep's directory were computed."""
    return [_computation(directory, name) for name in dynamics]


def _computation(directory: Path, dynamics: str) -> Computation:
    """Return how the stored cases of one dynamics were computed, without segments that were taken from other sweeps."""
    from sweeplib.engine.storage.store.origins import taken_cases, taken_from
    from sweeplib.engine.storage.store.run_store import RunStore

    store, others = RunStore(directory, dynamics, leave_out_damaged=True), taken_from(directory, dynamics)
    headers = [segment.header for segment in store.segments if segment.name not in others]
    seconds = sum(float(header.get("seconds", 0.0)) for header in headers)
    workers = frozenset(worker for header in headers for worker in header.get("workers", ()))
    return Computation(seconds, workers, taken_cases(directory, dynamics))


def outcomes(directory: Path, counts: Mapping[str, Mapping[str, int]]) -> Outcomes:
    """Return how cases ended otherwise than ok, from the tables of a sweep.

    counts : by dynamics, the numbers of its cases by status.
    """
    sums = sum((Counter(count) for count in counts.values()), Counter[str]())
    others = {status.name: sums[status.name] for status in OUTCOMES if sums[status.name]}
    rows = [_row(name, line) for name in counts for line in first_outcomes(directory, name, MOST)][:MOST]
    paths = [outcomes_path(directory, name) for name in counts]
    tables = [path.relative_to(directory).as_posix() for path in paths if path.exists()]
    return Outcomes(rows, failed(sums), others, tables)


def cards(sweep: Design, directory: Path) -> list[dict[str, Any]]:
    """Return the descriptions of the failed analyses and figures of a sweep, and of failed parts of the report."""
    descriptions = [
        *failed_attempts(directory, "analysis", sweep.analyses),
        *failed_attempts(directory, "figure", sweep.figures),
    ]
    return descriptions + report_cards(directory)


def report_cards(directory: Path) -> list[dict[str, Any]]:
    """Return the descriptions of what failed when the report was written."""
    return [card for kind in IN_REPORT for card in failed_attempts(directory, kind)]


def _row(dynamics: str, line: Mapping[str, str]) -> dict[str, str]:
    """Return a row of the table of outcomes by a line of the CSV file; its third column to `seed` say which case."""
    names = list(line)
    coordinates = ", ".join(f"{name} = {line[name]}" for name in names[2 : names.index("seed") + 1])
    return {
        "status": line["status"],
        "case": f"{dynamics}: {coordinates}",
        "identity": line["identity"],
        "why": reason_in_words(line) or MEANINGS.get(line["status"], ""),
    }
