"""Verification of the run store of one dynamics: every segment, why cases failed, and the table of outcomes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sweeplib.commands.upkeep.cases import CasesByName
from sweeplib.commands.upkeep.finding import Finding, Remedy
from sweeplib.engine.design.design import Design
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.process.terminal import counted
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import DAMAGED, LOST, damaged_lines, digest, drop_damaged_lines, remove_files
from sweeplib.engine.storage.records.stage_records import stage_record
from sweeplib.engine.storage.store.examination import damaged_segments
from sweeplib.engine.storage.store.inventory import inventory
from sweeplib.engine.storage.store.origins import origin_paths
from sweeplib.engine.storage.store.outcomes import cases_without_reason, outcomes_path, outcomes_table, reasons_path
from sweeplib.engine.storage.store.run_store import RunStore, segment_paths
from sweeplib.engine.storage.store.segment import MOVE_AWAY


@dataclass(frozen=True)
class StoredCases:
    """The run store of one dynamics: its damaged segments, the others, and the cases that the sweep needs.

    damaged : the identities (n,) of the cases of each damaged segment, as far as they can be read.
    read : the number of segments that were read.
    cases : None for a dynamics that the sweep no longer has.
    """

    directory: Path
    dynamics: str
    damaged: dict[Path, np.ndarray]
    read: int
    store: RunStore
    cases: CasesByName | None

    def findings(self) -> Iterator[Finding]:
        """Yield all that is damaged or lost."""
        for path, ids in self.damaged.items():
            if path.is_dir():
                yield Finding(path, DAMAGED, Remedy.refused, self.dynamics, why=MOVE_AWAY)
                continue
            words = self.described(tuple(ids.tolist())) if len(ids) else "cases that cannot be read"
            yield Finding(path, DAMAGED, Remedy.cases, self.dynamics, cases=tuple(ids.tolist()), words=words)
        yield from self._lost_cases()
        yield from self._outcomes()
        for path in origin_paths(self.directory, self.dynamics):
            if damaged := damaged_lines(path):
                problem = f"{damaged} damaged lines, of where cases come from"
                yield Finding(path, problem, Remedy.cases, self.dynamics)

    def described(self, ids: tuple[bytes, ...]) -> str:
        """Return the cases with these identities in words."""
        return self.cases.described(ids) if self.cases else f"{counted(len(ids))} that this config does not have"

    def _lost_cases(self) -> Iterator[Finding]:
        """Yield a finding if cases are missing that were computed once, according to the dynamics' record.

        Cases of damaged segments have findings of their own; where a segment does not tell its cases, none is lost.
        """
        if self.cases is None or any(not len(ids) for ids in self.damaged.values()):
            return
        wanted = self.cases.wanted
        damaged = np.concatenate([np.empty(0, "S16"), *self.damaged.values()])
        ids = np.unique(wanted.ids[(wanted.status == Status.missing) & ~np.isin(wanted.ids, damaged)])
        if len(ids) and self._last_run() == digest(wanted.ids.tobytes()):
            problem, lost_ids = "lost, cases that were computed are no longer there", tuple(ids.tolist())
            words = self.described(lost_ids)
            yield Finding(self.store.path, problem, Remedy.cases, self.dynamics, cases=lost_ids, words=words)

    def _outcomes(self) -> Iterator[Finding]:
        """Yield a finding if it is not known why cases failed, or if the table of outcomes is not that of now."""
        path = reasons_path(self.directory, self.dynamics)
        damaged = damaged_lines(path)
        ids = tuple(cases_without_reason(self.cases.wanted)) if self.cases else ()
        if damaged or ids:
            problem = f"{damaged} damaged lines" if damaged else LOST
            yield Finding(path, problem, Remedy.cases, self.dynamics, cases=ids, words=self.described(ids))
        elif self.cases and self._is_complete():
            path = outcomes_path(self.directory, self.dynamics)
            content = file_bytes(path) if path.exists() else b""
            if content != outcomes_table(self.cases.wanted).encode():
                yield Finding(path, DAMAGED if path.exists() else LOST, Remedy.again, self.dynamics)

    def _is_complete(self) -> bool:
        """Return whether all cases that the last run completed are there, so that its table of outcomes must be too."""
        if self.cases is None or self.damaged or (self.cases.wanted.status == Status.missing).any():
            return False
        return self._last_run() == digest(self.cases.wanted.ids.tobytes())

    def _last_run(self) -> str | None:
        """Return the digest of the cases that the last run completed, None if it is not known."""
        return stage_record(self.directory, f"simulate.{self.dynamics}").digest or None

    def forget(self, findings: Iterable[Finding]) -> bool:
        """Make the cases missing of which `findings` tell damage; return whether cases have to be computed again."""
        of_run = [finding for finding in findings if finding.section == self.dynamics]
        again = [finding for finding in of_run if finding.remedy is Remedy.cases]
        remove_files(self.directory, [path for path in self.damaged if not path.is_dir()])
        journals = reasons_path(self.directory, self.dynamics), *origin_paths(self.directory, self.dynamics)
        for path in {finding.path for finding in of_run}.intersection(journals):
            drop_damaged_lines(path)
        # the cases of damaged segments are gone with these files
        others = [case for finding in again if finding.path not in self.damaged for case in finding.cases]
        if others:
            RunStore(self.directory, self.dynamics).forget(np.array(others, "S16"))
        return bool(again)


def stored_cases(sweep: Design, dynamics: str, directory: Path) -> StoredCases:
    """Return the run store of a dynamics, of which every file was read. Only while nobody writes."""
    damaged, read = damaged_segments(directory, dynamics), len(segment_paths(directory, dynamics))
    store = RunStore(directory, dynamics, leave_out=damaged)
    cases = CasesByName(inventory(sweep, dynamics, store)) if dynamics in sweep.runs else None
    return StoredCases(directory, dynamics, damaged, read, store, cases)
