"""Verification of a sweep's results: every chunk is read, a sample of cases is computed again, damage is repaired.

A section is what a finding belongs to: a dynamics, the dataset, the analyses, the published dataset, other files.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from os import W_OK, access
from os.path import lexists
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.commands.upkeep.finding import Finding, Remedy
from sweeplib.commands.upkeep.other_files import FILES, OtherFiles
from sweeplib.commands.upkeep.recomputation import random_sample, sample_findings
from sweeplib.commands.upkeep.stored_cases import StoredCases, stored_cases
from sweeplib.engine.design.design import Design
from sweeplib.engine.execution.progress import Steps
from sweeplib.engine.process.terminal import counted, table
from sweeplib.engine.storage.dataset.versions import FOLDER
from sweeplib.engine.storage.records.artefacts import DATASET
from sweeplib.engine.storage.records.attempts import Attempt
from sweeplib.engine.storage.records.config_files import ORIGIN, record_origin, write_complete_config
from sweeplib.engine.storage.records.files import files_below, foreign, remove_files, remove_own
from sweeplib.engine.storage.records.locks import alone, part_lock
from sweeplib.engine.storage.records.manifest import is_own
from sweeplib.engine.storage.records.publish import publish_dataset
from sweeplib.engine.storage.records.stage_records import record_path, stage_record
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.outcomes import outcomes_path, write_outcomes
from sweeplib.engine.storage.store.run_store import RunStore, stored_dynamics
from sweeplib.errors import InputError, SweeplibError

if TYPE_CHECKING:
    from rich.table import Table


@dataclass
class Verification:
    """What a verification read and found.

    findings, remaining : what was damaged, and what still is after the repair, None without a repair.
    chunks, cases : by section, the number of chunks that were read and of cases that were computed again.
    notes : lines about what could not be done.
    """

    findings: list[Finding] = field(default_factory=list)
    remaining: list[Finding] | None = None
    chunks: dict[str, int] = field(default_factory=dict)
    cases: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """Return 0 if all is as it was written, 1 if there was damage."""
        return int(bool(self.findings))

    def lines(self) -> Iterator[str]:
        """Yield a line for each finding and each note."""
        remaining = {(finding.path, finding.problem) for finding in self.remaining or ()}
        for finding in self.findings:
            if self.remaining is None or finding.remedy is Remedy.refused:
                yield finding.line(finding.advice)
            elif (finding.path, finding.problem) in remaining:
                yield finding.line("not repaired")
            else:
                yield finding.line(f"repaired: {finding.remedy.value}")
        first = {(finding.path, finding.problem) for finding in self.findings}
        for finding in self.remaining or ():
            if (finding.path, finding.problem) not in first:
                yield finding.line("found after the repair")
        yield from self.notes

    def table(self) -> "Table":
        """Return a table of the numbers of chunks, cases and damaged files of each section."""
        headings = ["part", "chunks read", "cases recomputed", "damaged"] + ([] if self.remaining is None else ["left"])
        rows = [[section, *map("{:,}".format, counts)] for section, counts in self._counts().items()]
        return table(headings, rows)

    def _counts(self) -> dict[str, list[int]]:
        """Return the numbers of chunks, cases, findings and, after a repair, remaining findings, by section."""
        counts = {}
        for section in (*self.chunks, FILES):
            damaged = [
                sum(finding.section == section for finding in which)
                for which in (self.findings, self.remaining)
                if which is not None
            ]
            counts[section] = [self.chunks.get(section, 0), self.cases.get(section, 0), *damaged]
        return counts

    def record(self) -> dict[str, Any]:
        """Return all as plain values."""
        return {
            "chunks_read": self.chunks,
            "cases_recomputed": self.cases,
            "damaged": [finding.record() for finding in self.findings],
            "left": None if self.remaining is None else [finding.record() for finding in self.remaining],
            "notes": self.notes,
        }


def verify(
    sweep: Design,
    config: Path,
    directory: Path,
    *,
    sample: int | None = None,
    repaired: bool = False,
    workers: int | None = None,
    progress: bool = True,
) -> Verification:
    """Return what is damaged in a sweep's directory, after repairing it if `repaired`.

    `sample` cases, drawn at random, are computed again and compared with the stored bits; without a number up to 16, as
    many as take a minute. InputError if there are no results, or if they are to be repaired and cannot be written;
    BusyError while another command works there.

    config : the file that messages name. workers : processes of the runs of a repair, None: as the config says.
    """
    if not directory.is_dir():
        raise InputError("no results here", file=directory, expected=f"`sweeplib sweep {config}` before")
    if repaired and not access(directory, W_OK):
        raise InputError("cannot be written", file=directory, expected="no --repair, or other permissions")
    steps, done = Steps(sweep.name if progress else None), Verification()
    # the inner locks are held while files are read, and none while stages run again: this one keeps out other runs
    with part_lock(directory, "repairs the results") if repaired else nullcontext():
        with _lock_if_writable(directory, writes=repaired):
            with steps.step("reading all files"):
                stored, done.findings, done.chunks = _findings(sweep, directory)
            chosen = random_sample(stored, sample)
            if chosen.expensive:
                done.notes.append(f"{chosen.expensive} more cases of the sample would take long: --sample N computes N")
            with steps.step(f"computing {counted(chosen.size)} again") if chosen.size else nullcontext():
                done.cases, differing, notes = sample_findings(chosen)
            done.findings += differing
            done.notes += notes
            can_repair = repaired and any(finding.remedy is not Remedy.refused for finding in done.findings)
            repair = Repair(sweep, config, directory, done.findings, stored, done.notes.append) if can_repair else None
        if repair is not None:
            with steps.step("repairing"):
                repair.complete(workers=workers, progress=progress)
            with _lock_if_writable(directory, writes=repaired), steps.step("reading all files again"):
                _, done.remaining, _ = _findings(sweep, directory)
        elif repaired:
            done.remaining = list(done.findings)
        done.notes += _link_notes(directory, done.findings)
    return done


def _link_notes(directory: Path, findings: Sequence[Finding]) -> list[str]:
    """Return a line for each link in the folder of a sweep, behind which something is read as if it were there."""
    # findings tell of the dataset, as a link that earlier versions made or as another one
    paths = {finding.path for finding in findings} | {directory / DATASET}
    links = [file for file in files_below(directory) if file.is_symlink() and file not in paths and file.exists()]
    return [f"{link}: {foreign(link)}: what it leads to is read here, and is not in this folder" for link in links]


def _lock_if_writable(directory: Path, *, writes: bool) -> AbstractContextManager[None]:
    """Return a context in which nobody else is at work in a directory; BusyError if somebody is.

    Without the permission to write there is no lock. writes : whether this command writes results.
    """
    return alone(directory, "verifies the results", writes=writes) if access(directory, W_OK) else nullcontext()


def _findings(sweep: Design, directory: Path) -> tuple[list[StoredCases], list[Finding], dict[str, int]]:
    """Return the stores of all dynamics, all findings, and the numbers of chunks that were read, by section."""
    names = dict.fromkeys([*sweep.runs, *stored_dynamics(directory)])  # of earlier configs too
    stored = [stored_cases(sweep, name, directory) for name in names]
    others = OtherFiles(sweep, directory, stored)
    findings = [finding for cases in stored for finding in cases.findings()] + list(others.findings())
    return stored, findings, {cases.dynamics: cases.read for cases in stored} | others.chunks


class Repair:
    """The repair of all findings: what is damaged is forgotten at once, `complete` runs the stages that make it.

    Only what was complete before is completed again, an unfinished sweep stays unfinished. `say` gets a line for each
    part that cannot be repaired. To be made while nobody else is at work, to be completed when others may be.

    had_dataset : whether there was a dataset: only then one is made.
    again, unfinished : the dynamics of which cases have to be computed again, those that were complete and others.
    stages : pairs of a stage and an analysis or figure that run again. unsent : published objects to send again.
    """

    def __init__(
        self,
        sweep: Design,
        config: Path,
        directory: Path,
        findings: Sequence[Finding],
        stored: Sequence[StoredCases],
        say: Callable[[str], None],
    ) -> None:
        self.sweep, self.directory, self.say = sweep, directory, say
        self.had_dataset = bool(stage_record(directory, "finalise").made_from) or lexists(directory / DATASET)
        self.stages = {(finding.stage, finding.of) for finding in findings if finding.remedy is Remedy.again}
        self.unsent = [finding.path.as_posix() for finding in findings if finding.stage == "publish"]
        records = {name: f"simulate.{name}" for name in sweep.runs}
        complete = {
            name
            for name, stage in records.items()
            # a record that is there but says nothing is damaged: the dynamics counts as complete
            if stage_record(directory, stage).made_from or record_path(directory, stage).exists()
        }
        affected = {cases.dynamics for cases in stored if cases.forget(findings)}
        for finding in findings:
            self._forget(finding, config)
        self.again, self.unfinished = sorted(affected & complete), sorted(affected - complete)

    def _forget(self, finding: Finding, config: Path) -> None:
        """Delete a file that nothing needs, or write one again that no stage makes alone."""
        if finding.remedy is Remedy.delete and finding.of and (self.directory / FOLDER / finding.of).is_dir():
            version = self.directory / FOLDER / finding.of
            remove_own(version, is_own(version))
        elif finding.remedy is Remedy.delete:
            remove_files(self.directory, [finding.path])
        elif finding.path == self.directory / ORIGIN:
            finding.path.unlink()
            record_origin(config, self.directory)
        elif finding.path == self.directory / "config.yaml":
            write_complete_config(self.sweep, self.directory)
        elif finding.path == outcomes_path(self.directory, finding.section):
            write_outcomes(inventory(self.sweep, finding.section, RunStore(self.directory, finding.section)))

    def complete(self, *, workers: int | None = None, progress: bool = True) -> None:
        """Compute and write again what was deleted or is damaged; BusyError if another command runs the sweep."""
        from sweeplib.analysis import write_analysis
        from sweeplib.engine.execution.run import run_sweep
        from sweeplib.engine.storage.dataset.finalise import finalise
        from sweeplib.pictures.figures import write_figure
        from sweeplib.pictures.report import write_report

        if self.again:
            run_sweep(self.sweep, self.directory, self.again, workers=workers, progress=progress)
        for name in self.unfinished:
            if name in self.sweep.runs:
                self.say(f"{name} was not finished: the next run computes its cases")
        if self.had_dataset and (self.again or ("finalise", "") in self.stages):
            self._attempt(lambda _: finalise(self.sweep, self.directory))
        if self.unsent:
            self._attempt(lambda _: publish_dataset(self.sweep, self.directory / DATASET, self.unsent))
        for stage, write in {
            "analyse": lambda name: write_analysis(self.sweep, name, self.directory),
            "figure": lambda name: write_figure(self.sweep, name, self.directory),
            "report": lambda _: write_report(self.sweep, self.directory),
        }.items():
            for name in sorted(of for again, of in self.stages if again == stage):
                self._attempt(write, name)

    def _attempt(self, write: Callable[[str], object], name: str = "") -> None:
        """Call a function of a name that writes; `say` a failed attempt or an error in a line."""
        try:
            attempt = write(name)
        except SweeplibError as error:
            self.say(str(error))
        else:
            if isinstance(attempt, Attempt) and attempt.problem:
                self.say(f"failed: {attempt}")
