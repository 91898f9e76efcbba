"""Repair of what a verification found: what is damaged is forgotten, and the same stages run again."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from sweeplib.design.design import Design
from sweeplib.errors import SweeplibError
from sweeplib.storage.dataset.versions import FOLDER
from sweeplib.storage.records.artefacts import DATASET
from sweeplib.storage.records.attempts import Attempt
from sweeplib.storage.records.config_files import ORIGIN, record_origin, write_complete_config
from sweeplib.storage.records.files import remove_files, remove_own
from sweeplib.storage.records.manifest import is_own
from sweeplib.storage.records.publish import publish_dataset
from sweeplib.storage.store.inventory import inventory
from sweeplib.storage.store.outcomes import outcomes_path, write_outcomes
from sweeplib.storage.store.run_store import RunStore
from sweeplib.upkeep.finding import Finding, Remedy
from sweeplib.upkeep.stored_cases import StoredCases


class Repair:
    """The repair of all findings: what is damaged is forgotten at once, `complete` runs the stages that make it.

    Only what was complete before is completed again, an unfinished sweep stays unfinished. `say` gets a line for each
    part that cannot be repaired. To be made while nobody else is at work, to be completed when others may be.
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
        self.had_dataset = (directory / "dataset.done.json").exists() or os.path.lexists(directory / DATASET)
        self.stages = {(finding.stage, finding.of) for finding in findings if finding.remedy is Remedy.again}
        self.unsent = [finding.path.as_posix() for finding in findings if finding.stage == "publish"]
        complete = {name for name in sweep.runs if (directory / f"{name}.done.json").exists()}
        affected = {each.dynamics for each in stored if each.forget(sweep, findings)}
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
        elif finding.path == outcomes_path(self.directory, finding.part):
            store = RunStore(self.directory, finding.part)
            write_outcomes(store, inventory(self.sweep, finding.part, store))

    def complete(self, *, workers: int | None = None, progress: bool = True) -> None:
        """Compute and write again what was forgotten or is damaged; InputError if a driver runs."""
        from sweeplib.analysis import write_analysis
        from sweeplib.execution.run import run_sweep
        from sweeplib.figures import write_figure
        from sweeplib.report import write_report
        from sweeplib.storage.dataset.finalise import finalise

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
        """Call a function that writes; a failed attempt or an error is said in a line."""
        try:
            attempt = write(name)
        except SweeplibError as error:
            self.say(str(error))
        else:
            if isinstance(attempt, Attempt) and attempt.problem:
                self.say(f"failed: {attempt}")
