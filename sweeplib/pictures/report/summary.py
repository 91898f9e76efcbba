"""The summary of a sweep: the last lines of a command.

Counts are numbers of cases by status. `directory` is the folder of the results of a sweep. A failure is the description
of a failed analysis, figure or part of the report, by `kind`, `name` and `exception`.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from sweeplib.analysis.kit.headlines import Headline
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.design.design import Design
from sweeplib.engine.process.terminal import counted
from sweeplib.engine.status import failed
from sweeplib.engine.storage.records.artefacts import cases_made_from, has_other_dataset, outdated_names
from sweeplib.engine.storage.records.attempts import IN_REPORT, failed_attempts
from sweeplib.engine.storage.records.files import DamageError
from sweeplib.engine.storage.records.stage_records import stage_record
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.outcomes import first_outcomes, reason_in_words
from sweeplib.engine.storage.store.run_store import RunStore, recorded_counts
from sweeplib.pictures.report.overview import cards

MOST_SHOWN = 10
"""The most failures that a summary lists."""
RESULTS = {"dataset": "dataset.zarr", "report": "report/index.html"}
"""The paths of the results that a summary names, in the folder of a sweep."""


@dataclass(frozen=True)
class Summary:
    """The lines for a reader, and whether a case, an analysis, a figure or a part of the report `failed`."""

    text: str
    failed: bool
    directory: Path

    def record(self) -> dict[str, Any]:
        """Return the summary as plain values, with the paths of the results that exist."""
        paths = {name: self.directory / path for name, path in RESULTS.items()}
        existing = {name: str(path) if path.exists() else None for name, path in paths.items()}
        return {"failed": self.failed, **existing, "lines": self.text.splitlines()}


def summary(sweep: Design, directory: str | Path) -> Summary:
    """Return the summary from the files in a sweep's directory: cases by status, headlines, paths, failures."""
    directory = Path(directory)
    failures, counts = cards(sweep, directory), _counts(sweep, directory)
    lines = [_cases(sweep.name, directory, counts) + (_first_reason(sweep, directory) if failed(counts) else "")]
    if has_other_dataset(sweep, directory):
        lines.append("the dataset, and all that is made from it, is of another config: `sweeplib sweep` makes it again")
    else:
        lines += [*exit_lines(directory), *answers(sweep, directory), *headline_lines(sweep, directory)]
        lines += [f"figure {name}: {line}" for name in sweep.figures for line in distance_lines(sweep, name, directory)]
    lines += _paths(directory)
    if old := outdated_names(directory, sweep.analyses, sweep.figures):
        lines.append(f"of an earlier dataset, until `sweeplib sweep` makes them again: {', '.join(old)}, the report")
    return Summary("\n".join([*lines, *_failure_lines(failures)]), bool(failures or failed(counts)), directory)


def summary_by_records(directory: Path) -> Summary:
    """Return the summary of the sweep in a folder by its records alone: nothing of the sweep is executed.

    Headlines and answers are left out, as they need the sweep's code.
    """
    counts = sum((Counter(cases) for cases in recorded_counts(directory).values()), Counter[str]())
    failures = [failure for kind in ("analysis", "figure", *IN_REPORT) for failure in failed_attempts(directory, kind)]
    lines = [_cases(directory.resolve().name, directory, counts), *undecided_lines(directory), *_paths(directory)]
    return Summary("\n".join([*lines, *_failure_lines(failures)]), bool(failures or failed(counts)), directory)


def _paths(directory: Path) -> "Iterator[str]":
    """Yield where the results are."""
    for name, path in RESULTS.items():
        yield f"{name}: {directory / path if (directory / path).exists() else 'not written yet'}"


def answers(sweep: Design, directory: Path) -> list[str]:
    """Return how far the questions of a sweep are from their precision; no lines without questions."""
    if not sweep.questions:
        return []
    from sweeplib.analysis.answers.answer import answer_lines

    return answer_lines(sweep, directory)


def _counts(sweep: Design, directory: Path) -> Counter[str]:
    """Return the number of cases of a sweep with each status that occurs, by records or else by the stores."""
    counts: Counter[str] = Counter()
    now = cases_made_from(sweep)
    for name in sweep.runs:
        done = stage_record(directory, f"simulate.{name}")
        # without such a record the run goes on, or the record is of another config
        cases = done.counts if done.is_of(now) else inventory(sweep, name, RunStore(directory, name)).counts()
        counts.update({status: count for status, count in cases.items() if count})
    return counts


def _cases(name: str, directory: Path, counts: Counter[str]) -> str:
    """Return the line that says how the cases of the sweep `name` ended, and where others than ok are listed."""
    others = {status: count for status, count in sorted(counts.items()) if status != "ok"}
    if not others:
        return f"{name}: {'the one case' if counts['ok'] == 1 else 'all ' + counted(counts['ok'])} ended ok"
    parts = ", ".join([f"{counts['ok']:,} ok", *(f"{count:,} {status}" for status, count in others.items())])
    listed = "" if set(others) == {"missing"} else f"; {directory / 'outcomes'} lists them"
    return f"{name}: {counted(counts.total())}: {parts}{listed}"


def _first_reason(sweep: Design, directory: Path) -> str:
    """Return why the first listed case ended as it did, for the end of the line of cases; "" if that is not known."""
    with suppress(DamageError):  # `verify` reports it
        lines = (line for name in sweep.runs for line in first_outcomes(directory, name, 1))
        return "".join(f"; the first: {reason}" for reason in islice(filter(None, map(reason_in_words, lines)), 1))
    return ""


def headline_lines(sweep: Design, directory: Path) -> list[str]:
    """Return the headlines of the analyses that have some and did not fail, in lines for the end of a command."""
    lines = [line for main in headlines(sweep, directory) for line in main.lines]
    return [*undecided_lines(directory), *lines]


def distance_lines(sweep: Design, name: str, directory: Path) -> list[str]:
    """Return how far each dynamics is from the published values that a figure draws; no lines if it was not drawn."""
    if not sweep.figures[name].get("reference") or not (directory / "dataset.zarr").exists():
        return []
    from sweeplib.engine.storage.dataset.folder import open_dataset
    from sweeplib.pictures.figures.figure import requested

    figure, options = requested(name, sweep.figures[name])
    paths = {need: directory / "analysis" / f"{need}.zarr" for need in figure.needed(options)}
    if failed_attempts(directory, "figure", [name]) or not all(path.exists() for path in paths.values()):
        return []
    analyses = {need: open_dataset(path).load() for need, path in paths.items()}
    distances = figure.distances(open_dataset(directory / "dataset.zarr"), analyses, **options)
    return [distance.text for distance in distances]


def exit_lines(directory: Path) -> list[str]:
    """Return how many runs of each dynamics exited by the horizon; no lines without thresholds or a dataset."""
    from sweeplib.analysis.kit import exit_counts
    from sweeplib.engine.storage.dataset.folder import open_dataset

    dataset = directory / "dataset.zarr"
    return exit_counts.exit_lines(open_dataset(dataset)) if dataset.exists() else []


def undecided_lines(directory: Path) -> list[str]:
    """Return how many runs end at or below the error of a quantity; no lines before there is a dataset."""
    from sweeplib.analysis.kit.headlines import undecided_ends
    from sweeplib.engine.storage.dataset.folder import open_dataset

    dataset = directory / "dataset.zarr"
    return undecided_ends(open_dataset(dataset)) if dataset.exists() else []


def headlines(
    sweep: Design,
    directory: Path,
    words: "Callable[[xr.DataArray, xr.DataArray], str] | None" = None,
) -> "Iterator[Headline]":
    """Yield the headlines of the analyses that have some and did not fail, with at most a few points in words.

    words : puts a coordinate of a point into words (`kit.headlines.headline`).
    """
    from sweeplib.analysis import ANALYSES
    from sweeplib.analysis.kit.headlines import headline
    from sweeplib.engine.storage.dataset.folder import open_dataset

    dataset = directory / "dataset.zarr"
    ds = open_dataset(dataset) if dataset.exists() else None
    for name in sweep.analyses:
        variable, path = ANALYSES[name].headline, directory / "analysis" / f"{name}.zarr"
        if variable is not None and path.exists():
            yield headline(open_dataset(path), variable, words=words, dataset=ds)


def _failure_lines(failures: list[dict[str, Any]]) -> list[str]:
    """Return the lines that list failures; none without any."""
    if not failures:
        return []
    lines = [f"  {failure['kind']} {failure['name']}: {failure['exception']}" for failure in failures[:MOST_SHOWN]]
    more = [f"  and {len(failures) - MOST_SHOWN} more"] * (len(failures) > MOST_SHOWN)
    return ["failed, each with a card in the report; the same command tries again:", *lines, *more]
