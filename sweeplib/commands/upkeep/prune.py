"""Stale results: what is in a sweep's folder and is not used by its present config; deleted only if asked.

Own files are those that sweeplib has written, as manifests, checksums or names say: others are never listed.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.engine.design.design import Design
from sweeplib.engine.process.terminal import bytes_text, counted
from sweeplib.engine.storage.dataset.versions import leftovers, linked_version, versions
from sweeplib.engine.storage.records.artefacts import DATASET, Artefact, refuse_other_config
from sweeplib.engine.storage.records.earlier_records import earlier_files as earlier_records
from sweeplib.engine.storage.records.files import files_below, intact_json, links_on_the_way, remove_files
from sweeplib.engine.storage.records.locks import alone
from sweeplib.engine.storage.records.manifest import has_manifest, is_own
from sweeplib.engine.storage.records.stage_records import FOLDER as RECORDS
from sweeplib.engine.storage.records.stage_records import done_path, paths_of_stage, stage_records
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.earlier_store import EarlierSegment, earlier_files
from sweeplib.engine.storage.store.inventory import inventory, inventory_files, is_file_of
from sweeplib.engine.storage.store.outcomes import outcomes_path, reasons_path
from sweeplib.engine.storage.store.run_store import RunStore, segment_paths, stored_counts, stored_dynamics
from sweeplib.engine.storage.store.segment import Segment

if TYPE_CHECKING:
    from rich.table import Table

EARLIER_RECORDS = ("*.files.json", *(f"{folder}/*.files.json" for folder in ("analysis", "figures", "report")))
"""The patterns of files that manifests have replaced."""


@dataclass(frozen=True)
class Stale:
    """Files of sweeplib that the config does not use: what they are, in words, and how many cases they hold, if any."""

    title: str
    files: tuple[Path, ...]
    cases: int | None = None

    @property
    def bytes(self) -> int:
        """Return the size of the files."""
        return sum(path.stat().st_size for path in self.files)

    @property
    def since(self) -> float:
        """Return when a file of these was written last, in seconds since 1970."""
        return max((path.stat().st_mtime for path in self.files), default=0.0)


def stale(sweep: Design, directory: Path) -> list[Stale]:
    """Return what the config of a sweep does not use, the runs first.

    Only what a record says is sweeplib's own is listed, and nothing that is a link or lies behind one.
    """
    items: list[Stale] = []
    for dynamics in sweep.runs:
        store = RunStore(directory, dynamics)
        used = {number for number, _, _ in inventory(sweep, dynamics, store).by_segment()}
        others = [segment for number, segment in enumerate(store.segments) if number not in used]
        items += _stale_segments(others, dynamics)
    items += [*_other_dynamics(sweep, directory), *_other_files(sweep, directory)]
    items = [replace(item, files=tuple(file for file in item.files if _is_file(directory, file))) for item in items]
    return [item for item in items if item.files]


def _is_file(directory: Path, path: Path) -> bool:
    """Return whether a path is a file in a directory, and neither a link nor behind one."""
    return path.is_file() and not any(links_on_the_way(directory, path))


def _stale_segments(segments: Sequence[Segment], dynamics: str) -> Iterator[Stale]:
    """Yield an entry for each layout of the segments, of which the config needs no row."""
    by_layout: dict[str, list[Segment]] = {}
    for segment in segments:
        if not isinstance(segment, EarlierSegment):  # the next run converts these
            by_layout.setdefault(segment.layout, []).append(segment)
    for layout, of_layout in by_layout.items():
        title = f"cases of other configs or of other code: {dynamics}/{layout}"
        yield Stale(title, tuple(segment.path for segment in of_layout), sum(map(len, of_layout)))


def _own_files(folder: Path, is_own: Callable[[str], bool]) -> tuple[Path, ...]:
    """Return the files below a folder of which a function of their relative paths says that they are own ones."""
    return tuple(file for file in files_below(folder) if is_own(file.relative_to(folder).as_posix()))


def _other_dynamics(sweep: Design, directory: Path) -> Iterator[Stale]:
    """Yield the runs of dynamics that are not in the config."""
    for name in stored_dynamics(directory):
        if name not in sweep.runs:
            cases = stored_counts(directory, name).total()
            of_stage = paths_of_stage(directory, f"simulate.{name}")
            records = *of_stage, reasons_path(directory, name), outcomes_path(directory, name)
            files = (*segment_paths(directory, name), *earlier_files(directory, name), *records)
            yield Stale(f"runs of {name}, which is not in the config", files, cases)


def _other_files(sweep: Design, directory: Path) -> Iterator[Stale]:
    """Yield versions, analyses and figures that are not those of the config; leftovers.

    Some may have no files: the caller leaves these out.
    """
    dataset = directory / DATASET
    for version in versions(dataset):
        if version.name != linked_version(dataset) and dataset.exists():
            title = f"the version of the dataset before the present one: {version.name}"
            yield Stale(title, _own_files(version, is_own(version)))
    for record in stage_records(directory).values():
        stage, _, name = record.name.partition(".")
        of_stage = paths_of_stage(directory, record.name)
        if stage == "analyse" and name not in sweep.analyses:
            path = directory / "analysis" / f"{name}.zarr"
            files_of_analysis = _own_files(path, is_own(path)) if has_manifest(path) else ()
            yield Stale(f"analysis {name}, which is not in the config", (*files_of_analysis, *of_stage))
        elif stage == "figure" and name not in sweep.figures:
            manifest = Artefact(directory, stage, name, done_path(directory, record.name)).manifest()
            # files that are as they were written; others may be somebody's
            files = manifest.files.keys() - dict(manifest.problems()).keys()
            yield Stale(
                f"figure {name}, which is not in the config", (*map(directory.joinpath, sorted(files)), *of_stage)
            )
    replaced = [path for pattern in EARLIER_RECORDS for path in sorted(directory.glob(pattern)) if intact_json(path)]
    # without a folder of records they are still read
    replaced += earlier_records(directory) if (directory / RECORDS).is_dir() else []
    yield Stale(f"{len(replaced)} records of an earlier version of sweeplib", tuple(replaced))
    old = tuple(path for path in inventory_files(directory) if not is_file_of(path, sweep))
    yield Stale("identities of the cases of other configs, other code or removed dynamics", old)
    cases = tuple(path for path in sorted((directory / "failures").glob("*.json")) if _is_of_a_case(path))
    yield Stale(f"descriptions of {counted(len(cases))}, by an earlier version of sweeplib", cases)
    yield Stale("states of cases of other configs or of other code", tuple(_other_states(sweep, directory)))
    yield Stale("temporary files of writers that were killed", tuple(leftovers(directory)))


def _other_states(sweep: Design, directory: Path) -> list[Path]:
    """Return the checkpoints, files with states of cases under way, of cases that are not in the config."""
    checkpoints = CheckpointFolder(str(directory))
    files = [file for file in checkpoints.files() if checkpoints.read(file.name) is not None]
    cases = [case for dynamics in sweep.runs for _, case in sweep.cases(dynamics)] if files else []
    names = set(sweep.simulator.kept_names(cases)) if cases else set()
    return [file for file in files if file.name not in names]


def _is_of_a_case(path: Path) -> bool:
    """Return whether a file is the description of a case that did not end ok, as earlier versions wrote one for each.

    They were written as the checksum in it says; a file that somebody else put there has none.
    """
    is_named_so = re.fullmatch("[0-9a-f]{32}", path.stem) is not None
    return is_named_so and {"problem", "seed", "status"} <= intact_json(path).keys()


def delete_stale(sweep: Design, directory: Path) -> list[Stale]:
    """Delete what is stale, and return it.

    BusyError while another process is at work in the directory; InputError if the results there are of another config.
    """
    with alone(directory, "deletes stale results"):
        refuse_other_config(sweep, directory)
        deleted = stale(sweep, directory)
        for item in deleted:
            remove_files(directory, item.files)
    return deleted


def table(results: Sequence[Stale]) -> "Table":
    """Return what is stale as a table with the total size."""
    from sweeplib.engine.process.terminal import table as text_table

    rows = [
        [
            item.title,
            "" if item.cases is None else f"{item.cases:,}",
            bytes_text(item.bytes),
            datetime.fromtimestamp(item.since).astimezone().strftime("%Y-%m-%d %H:%M"),
        ]
        for item in results
    ]
    caption = f"in all {bytes_text(sum(item.bytes for item in results))}"
    return text_table(("stale", "cases", "size", "last written"), rows, caption=caption)
