"""Repair of what a verification found: damaged results are forgotten and computed again, other files written again."""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.errors import SweeplibError
from sweeplib.storage.attempts import Attempt
from sweeplib.storage.chunk_files import is_of_layout
from sweeplib.storage.contents import is_own
from sweeplib.storage.files import drop_damaged_lines, remove_files, remove_own
from sweeplib.storage.inventory import inventory
from sweeplib.storage.layout import Layout
from sweeplib.storage.markers import DATASET
from sweeplib.storage.origin import ORIGIN, record_origin
from sweeplib.storage.outcomes import outcomes_path, reasons_path, write_outcomes
from sweeplib.storage.publish import published
from sweeplib.storage.restored import restored as restored_from
from sweeplib.storage.run_store import RunStore, write_group
from sweeplib.storage.versions import FOLDER
from sweeplib.upkeep.finding import Finding, Remedy
from sweeplib.upkeep.stored_cases import StoredCases

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

COMPUTED_AGAIN = (Remedy.block, Remedy.case, Remedy.missing)


class Repair:
    """The repair of all findings: what is damaged is deleted at once, `complete` computes and writes it again.

    Only what was complete before is completed again, an unfinished sweep stays unfinished. `say` gets a line for each
    part that cannot be repaired. To be made while nobody else is at work, to be completed when others may be.
    """

    def __init__(
        self,
        sweep: "Sweep",
        config: Path,
        directory: Path,
        found: Sequence[Finding],
        stored: Sequence[StoredCases],
        say: Callable[[str], None],
    ) -> None:
        self.sweep, self.directory, self.found, self.say = sweep, directory, found, say
        self.had_dataset = (directory / "dataset.done.json").exists() or os.path.lexists(directory / DATASET)
        complete = {name for name in sweep.runs if (directory / f"{name}.done.json").exists()}
        affected: set[str] = set().union(*(_forgotten(sweep, directory, each, found) for each in stored))
        _small_files(sweep, config, directory, found)
        self.again, self.unfinished = sorted(affected & complete), sorted(affected - complete)

    def complete(self, *, workers: int | None = None, progress: bool = True) -> None:
        """Compute and write again what was deleted or is damaged; InputError if a driver runs."""
        if self.again:
            from sweeplib.execution.run import run_sweep

            run_sweep(self.sweep, self.directory, self.again, workers=workers, progress=progress)
        for name in self.unfinished:
            if name in self.sweep.runs:
                self.say(f"{name} was not finished: the next run computes its cases")
        if self.had_dataset and (self.again or any(finding.remedy is Remedy.dataset for finding in self.found)):
            from sweeplib.storage.finalise import finalise

            _attempt(lambda: finalise(self.sweep, self.directory), self.say)
        if damaged := [finding.path.as_posix() for finding in self.found if finding.remedy is Remedy.publish]:
            _attempt(lambda: published(self.sweep, self.directory / DATASET, damaged), self.say)
        _attempts(self.sweep, self.directory, self.found, self.say)


def _forgotten(sweep: "Sweep", directory: Path, stored: StoredCases, found: Iterable[Finding]) -> set[str]:
    """Make the cases missing that are damaged; return the dynamics, if there are any."""
    own = [finding for finding in found if finding.part == stored.dynamics]
    blocks = {(finding.of, finding.block) for finding in own if finding.remedy is Remedy.block}
    if any(finding.remedy is Remedy.journal for finding in own):
        blocks |= {(layout, number) for layout, numbers in stored.unaccounted().items() for number in numbers}
        drop_damaged_lines(directory / "journal" / f"{stored.dynamics}.jsonl")
    folder = directory / "runs.zarr" / stored.dynamics
    for finding in own:
        if finding.remedy is Remedy.rewrite:
            write_group(finding.path)
    damaged = {finding.of for finding in own if finding.remedy is Remedy.layout}
    restored = {layout for layout in damaged if _restored(sweep, stored.dynamics, folder / layout)}
    blocks |= {(layout, number) for layout in restored for number in Layout(folder / layout).damaged_blocks()}
    for layout in damaged - restored:
        remove_own(folder / layout, is_of_layout)
    if not folder.exists():
        return {stored.dynamics} if own else set()
    store = RunStore(directory, stored.dynamics)
    for layout in {layout for layout, _ in blocks}:
        store.layouts[layout].forget(number for name, number in blocks if name == layout)
    if any(finding.remedy is Remedy.case for finding in own):
        drop_damaged_lines(reasons_path(directory, stored.dynamics))
    _forget_cases(store, [each for finding in own if finding.remedy is Remedy.case for each in finding.cases])
    again = bool(blocks) or damaged > restored or any(finding.remedy in COMPUTED_AGAIN for finding in own)
    return {stored.dynamics} if again else set()


def _restored(sweep: "Sweep", dynamics: str, path: Path) -> bool:
    """Return whether the index and the metadata of a layout are intact again, from the cases of the sweep."""
    return dynamics in sweep.runs and restored_from(path, (case for _, case in sweep.cases(dynamics)))


def _forget_cases(store: RunStore, identities: Sequence[bytes]) -> None:
    numbers, rows = store.locate(np.array(identities, "S16"))
    for number, layout in enumerate(store.layouts.values()):
        layout.reset(np.unique(rows[numbers == number]))


def _small_files(sweep: "Sweep", config: Path, directory: Path, found: Iterable[Finding]) -> None:
    """Delete or rewrite the files that no stage has to compute."""
    from sweeplib.storage.complete_config import write_complete_config

    for finding in found:
        if finding.remedy is Remedy.delete:
            remove_files(directory, [finding.path])
        elif finding.remedy is Remedy.version:
            version = directory / FOLDER / finding.of
            remove_own(version, is_own(version))
        elif finding.remedy is Remedy.journal and finding.path.exists():
            drop_damaged_lines(finding.path)
        elif finding.path == directory / ORIGIN:
            finding.path.unlink()
            record_origin(config, directory)
        elif finding.path == directory / "config.yaml":
            write_complete_config(sweep, directory)
        elif finding.path == outcomes_path(directory, finding.part):
            store = RunStore(directory, finding.part)
            write_outcomes(store, inventory(sweep, finding.part, store))


def _attempts(sweep: "Sweep", directory: Path, found: Iterable[Finding], say: Callable[[str], None]) -> None:
    """Repeat the analyses, the figures and the report that are damaged."""
    from sweeplib.analysis import write_analysis
    from sweeplib.figures import write_figure
    from sweeplib.report import write_report

    of = {remedy: sorted({finding.of for finding in found if finding.remedy is remedy}) for remedy in Remedy}
    for remedy, write in ((Remedy.analysis, write_analysis), (Remedy.figure, write_figure)):
        for name in of[remedy]:
            _attempt(partial(write, sweep, name, directory), say)
    if of[Remedy.report]:
        _attempt(lambda: write_report(sweep, directory), say)


def _attempt(write: Callable[[], object], say: Callable[[str], None]) -> None:
    """Call a function that writes; a failed attempt or an error is said in a line."""
    try:
        attempt = write()
    except SweeplibError as error:
        say(str(error))
    else:
        if isinstance(attempt, Attempt) and attempt.problem:
            say(f"failed: {attempt}")
