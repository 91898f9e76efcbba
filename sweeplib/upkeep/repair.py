"""Repair of what a verification found: damaged results are forgotten and computed again, other files written again."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sweeplib.errors import SweeplibError
from sweeplib.storage.attempts import Attempt
from sweeplib.storage.files import drop_damaged_lines, remove
from sweeplib.storage.inventory import inventory
from sweeplib.storage.layout import Layout
from sweeplib.storage.locks import driver_lock
from sweeplib.storage.origin import ORIGIN, record_origin
from sweeplib.storage.outcomes import outcomes_path, reasons_path, write_outcomes
from sweeplib.storage.publish import published
from sweeplib.storage.restored import restored as restored_from
from sweeplib.storage.run_store import RunStore, write_group
from sweeplib.upkeep.finding import Finding, Remedy
from sweeplib.upkeep.stored_cases import StoredCases

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

COMPUTED_AGAIN = (Remedy.block, Remedy.case, Remedy.missing)


def repair(
    sweep: "Sweep",
    config: Path,
    directory: Path,
    found: Sequence[Finding],
    stored: Sequence[StoredCases],
    *,
    say: Callable[[str], None],
    workers: int | None = None,
    progress: bool = True,
) -> None:
    """Repair all findings; only what was complete before is completed again, an unfinished sweep stays unfinished.

    `say` gets a line for each part that cannot be repaired now. InputError if a driver runs.
    """
    had_dataset = (directory / "dataset.done.json").exists() or (directory / "dataset.zarr").is_symlink()
    complete = {name for name in sweep.runs if (directory / f"{name}.done.json").exists()}
    with ExitStack() as locks:
        for each in stored:
            locks.enter_context(driver_lock(directory, each.dynamics))
        affected = set().union(*(_forgotten(sweep, directory, each, found) for each in stored))
        _small_files(sweep, config, directory, found)
    if again := sorted(affected & complete):
        from sweeplib.execution.run import run_sweep

        run_sweep(sweep, directory, again, workers=workers, progress=progress)
    for name in sorted(affected - complete):
        if name in sweep.runs:
            say(f"{name} was not finished: the next run computes its cases")
    remedies = {finding.remedy for finding in found}
    if had_dataset and (again or remedies & {Remedy.dataset, Remedy.link}):
        _attempt(lambda: _dataset(sweep, directory), say)
    if damaged := [finding.path.as_posix() for finding in found if finding.remedy is Remedy.publish]:
        _attempt(lambda: published(sweep, directory / "dataset.zarr", damaged), say)
    _attempts(sweep, directory, found, say)


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
        remove(folder / layout)
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
    from sweeplib.execution.complete_config import write_complete_config

    for finding in found:
        if finding.remedy is Remedy.delete or finding.remedy is Remedy.link:
            remove(finding.path)
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


def _dataset(sweep: "Sweep", directory: Path) -> None:
    from sweeplib.storage.finalise import finalise

    damaged = (directory / "dataset.zarr").resolve()
    for file in directory.glob("dataset.*.json"):
        file.unlink()
    written = finalise(sweep, directory).resolve()
    if written != damaged and damaged.parent == written.parent:
        remove(damaged)


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
