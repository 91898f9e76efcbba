"""Verification of the run store of one dynamics: every chunk, why cases failed, and the table of outcomes.

Damaged metadata and indices are written again from the cases of the sweep, so that the results stay.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from sweeplib.commands.upkeep.cases import CasesByName
from sweeplib.commands.upkeep.finding import Finding, Remedy
from sweeplib.engine.cases import Case, Cases
from sweeplib.engine.design.design import Design
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.process.terminal import counted
from sweeplib.engine.status import Status
from sweeplib.engine.storage.records.files import (
    DAMAGED,
    LOST,
    DamageError,
    damaged_lines,
    digest,
    drop_damaged_lines,
    intact_json,
    lost,
    read_lines,
    remove_own,
)
from sweeplib.engine.storage.store.examination import Harm, ReadableStore, StoreDamage, damaged_blocks, store_damage
from sweeplib.engine.storage.store.inventory import Inventory, inventory
from sweeplib.engine.storage.store.journal import journal
from sweeplib.engine.storage.store.layout import INDEX, Layout, create_layout
from sweeplib.engine.storage.store.layout_files import intact_metadata, is_of_layout, read_metadata, write_metadata
from sweeplib.engine.storage.store.outcomes import cases_without_reason, outcomes_path, outcomes_table, reasons_path
from sweeplib.engine.storage.store.rows import OWN_FIELDS
from sweeplib.engine.storage.store.run_store import RunStore, write_group


@dataclass(frozen=True)
class StoredCases:
    """The run store of one dynamics: its examination, the intact part, and the cases that the sweep needs.

    `cases` is None for a dynamics that the sweep no longer has.
    """

    directory: Path
    dynamics: str
    damage: StoreDamage
    store: ReadableStore
    cases: CasesByName | None

    def findings(self) -> Iterator[Finding]:
        """Yield all that is damaged or lost."""
        for path in self.damage.groups:
            problem = DAMAGED if path.exists() else LOST
            yield Finding(path, problem, Remedy.again, self.dynamics, words="metadata of the store")
        for layout, harms in self.damage.harms.items():
            yield from (self._harm_finding(layout, harm) for harm in harms)
        yield from self._lost_cases()
        yield from self._outcomes()
        path = journal(self.directory, self.dynamics)
        if damaged := damaged_lines(path):
            yield Finding(path, f"{damaged} damaged lines", Remedy.cases, self.dynamics)

    def _harm_finding(self, layout: str, harm: Harm) -> Finding:
        """Return the finding about a damaged file of a layout: what it holds, and how it is repaired."""
        if layout in self.damage.unreadable:
            wanted = self.cases.wanted if self.cases else None
            ids = tuple(wanted.ids[wanted.new[layout]].tolist()) if wanted and layout in wanted.new else ()
            content = "results" if harm.block is not None else "index or metadata"
            words = f"{content} of the layout {layout}" + (f", {self.described(ids)}" if ids else "")
            return Finding(harm.file, harm.problem, Remedy.cases, self.dynamics, of=layout, cases=ids, words=words)
        if harm.block == -1:
            words = "left from an interrupted append"
            return Finding(harm.file, harm.problem, Remedy.delete, self.dynamics, of=layout, words=words)
        block = int(harm.block or 0)
        ids = tuple(self.store.layouts[layout].ids[self.store.layouts[layout].block(block)].tolist())
        words = self.described(ids)
        return Finding(harm.file, harm.problem, Remedy.cases, self.dynamics, "", layout, block, ids, words)

    def described(self, ids: tuple[bytes, ...]) -> str:
        """Return some cases in words."""
        return self.cases.described(ids) if self.cases else f"{counted(len(ids))} that this config does not have"

    def _lost_cases(self) -> Iterator[Finding]:
        """Yield a finding if cases are missing that were computed once, according to the dynamics' done.json."""
        if self.cases is None:
            return
        wanted = self.cases.wanted
        ids = tuple(np.unique(wanted.ids[self._lost(wanted)]).tolist())
        if ids and self._last_run() == digest(wanted.ids.tobytes()):
            problem = "lost, cases that were computed are no longer there"
            words = self.described(ids)
            yield Finding(self.store.path, problem, Remedy.cases, self.dynamics, cases=ids, words=words)

    def _lost(self, wanted: Inventory) -> np.ndarray:
        """Return which cases are missing although no file that has them is known to be damaged."""
        lost: np.ndarray = wanted.status == Status.missing
        for number, (name, layout) in enumerate(self.store.layouts.items()):
            damaged = np.isin(wanted.row // layout.block_size, self.damage.blocks(name))
            lost &= ~((wanted.layout == number) & damaged)
        for name in self.damage.unreadable:
            if name in wanted.new:
                lost &= ~np.isin(wanted.ids, wanted.ids[wanted.new[name]])
        return lost

    def _outcomes(self) -> Iterator[Finding]:
        """Yield a finding if it is not known why cases failed, or if the table of outcomes is not what follows."""
        path = reasons_path(self.directory, self.dynamics)
        damaged = damaged_lines(path)
        ids = tuple(cases_without_reason(self.directory, self.cases.wanted)) if self.cases else ()
        if damaged or ids:
            problem = f"{damaged} damaged lines" if damaged else LOST
            yield Finding(path, problem, Remedy.cases, self.dynamics, cases=ids, words=self.described(ids))
        elif self.cases and not self.damage.harms and self._last_run() == digest(self.cases.wanted.ids.tobytes()):
            path = outcomes_path(self.directory, self.dynamics)
            content = file_bytes(path) if path.exists() else b""
            if content != outcomes_table(self.store, self.cases.wanted).encode():
                yield Finding(path, DAMAGED if path.exists() else LOST, Remedy.again, self.dynamics)

    def _last_run(self) -> str | None:
        """Return the digest of the cases that the last run completed, None if it is not known."""
        return intact_json(self.directory / f"{self.dynamics}.done.json").get("digest")

    def forget(self, sweep: Design, findings: Iterable[Finding]) -> bool:
        """Make the cases missing that `findings` are damaged; return whether the sweep's have to be computed again."""
        of_run = [finding for finding in findings if finding.section == self.dynamics]
        paths = {finding.path for finding in of_run}
        folder = self.directory / "runs.zarr" / self.dynamics
        for group in self.damage.groups:
            write_group(group)
        blocks = {
            (finding.of, finding.block) for finding in of_run if finding.remedy is Remedy.cases and finding.block >= 0
        }
        if (path := journal(self.directory, self.dynamics)) in paths:
            blocks |= {(layout, number) for layout, numbers in self._unrecorded().items() for number in numbers}
            drop_damaged_lines(path)
        damaged = set(self.damage.unreadable)
        wanted = self.cases.wanted if self.cases else None
        new = {name: wanted.cases(places) for name, places in wanted.new.items() if name in damaged} if wanted else {}
        restored = {layout for layout, cases in new.items() if is_restored(folder / layout, cases)}
        blocks |= {(layout, number) for layout in restored for number in damaged_blocks(Layout(folder / layout))}
        for layout in damaged - restored:
            remove_own(folder / layout, is_of_layout)
        store = RunStore(self.directory, self.dynamics)
        for layout in {layout for layout, _ in blocks}:
            store.layouts[layout].forget(number for name, number in blocks if name == layout)
        if (path := reasons_path(self.directory, self.dynamics)) in paths:
            drop_damaged_lines(path)
            unknown = [case for finding in of_run if finding.path == path for case in finding.cases]
            numbers, rows = store.locate(np.array(unknown, "S16"))
            for number, of_layout in enumerate(store.layouts.values()):
                of_layout.reset(np.unique(rows[numbers == number]))
        unread = {finding.of or finding.path for finding in of_run if finding.remedy is Remedy.cases}
        return bool(blocks) or not unread <= {*restored, journal(self.directory, self.dynamics)}

    def _unrecorded(self) -> dict[str, list[int]]:
        """Return the blocks, by layout, with more results than the intact lines of the journal account for."""
        computed: dict[str, int] = {}
        for line in read_lines(journal(self.directory, self.dynamics)):
            computed[line["block"]] = computed.get(line["block"], 0) + sum(line["computed"].values())
        blocks: dict[str, list[int]] = {}
        for (name, layout), status in zip(self.store.layouts.items(), self.store.statuses(), strict=True):
            for number in range(layout.n_blocks):
                done = np.count_nonzero(status[layout.block(number)])
                if done > computed.get(f"{name}/{number}", 0):
                    blocks.setdefault(name, []).append(number)
        return blocks


def stored_cases(sweep: Design, dynamics: str, directory: Path) -> StoredCases:
    """Return the run store of a dynamics, of which every file was read. Only while nobody writes."""
    damage = store_damage(directory, dynamics)
    store = damage.readable()
    cases = CasesByName(sweep, dynamics, store, inventory(sweep, dynamics, store)) if dynamics in sweep.runs else None
    return StoredCases(directory, dynamics, damage, store, cases)


def is_restored(path: Path, cases: Cases) -> bool:
    """Return whether the metadata and the index of a layout are intact again; `cases` are those of a sweep for it.

    It needs the number of rows, the block size and, of each part of the index, the identities or all other columns;
    with the identities alone, the sweep must have the cases. Only for the driver, while no worker runs.
    """
    try:
        _restore_metadata(path, cases[0])
        layout = Layout(path)
        for start in range(0, len(layout), layout.index_rows):
            _restore_index(layout, slice(start, min(start + layout.index_rows, len(layout))), cases)
    except (DamageError, KeyError):
        return False
    return True


def _restore_metadata(path: Path, case: Case) -> None:
    """Write the damaged zarr.json files of a layout again. DamageError if its block size or number of rows are lost."""
    whole, status, index = (intact_metadata(path / name / "zarr.json") for name in ("", "status", "case_id"))
    if whole is not None and "rows" in whole["attributes"]:
        rows, block_size = whole["attributes"]["rows"], whole["attributes"]["block_size"]
    elif status is not None and index is not None:
        rows, block_size = index["shape"][0], status["chunk_grid"]["configuration"]["chunk_shape"][0]
    else:
        raise lost(path / "zarr.json", "")
    indices = (metadata for name in INDEX if (metadata := intact_metadata(path / name / "zarr.json")) is not None)
    chunks = next((metadata["chunk_grid"]["configuration"]["chunk_shape"][0] for metadata in indices), None)
    with TemporaryDirectory() as folder:
        template = create_layout(Path(folder, path.name), case, block_size).path
        contents = {}
        for file in template.rglob("zarr.json"):
            target = path / file.relative_to(template)
            content = read_metadata(file, "")
            if not _is_like(intact_metadata(target), content):
                if "shape" in content:
                    content["shape"][0] = rows
                    if file.parent.name in INDEX and chunks is not None:
                        content["chunk_grid"]["configuration"]["chunk_shape"][0] = chunks
                else:
                    content["attributes"]["rows"] = rows
                contents[target] = content
        write_metadata(contents)


def _is_like(metadata: dict[str, Any] | None, other: dict[str, Any]) -> bool:
    """Return whether the content of a zarr.json is of the same place as another one, that of a new layout."""
    if metadata is None or metadata.get("dimension_names") != other.get("dimension_names"):
        return False
    return "shape" in other or metadata["attributes"].keys() >= other["attributes"].keys()


def _restore_index(layout: Layout, rows: slice, cases: Cases) -> None:
    """Write the damaged columns of a part of the index again. KeyError if too much is lost."""
    columns = {name: column for name in INDEX if (column := layout.index(name, rows)) is not None}
    if len(columns) == len(INDEX):
        return
    if "case_id" in columns:
        ids = np.ascontiguousarray(columns["case_id"]).view("S16").ravel()
        places = {identity: place for place, identity in enumerate(cases.identities().tolist())}
        fields = layout.simulator.index(cases.at(np.array([places[identity] for identity in ids.tolist()])))
    else:
        fields = {name: columns[name] for name in OWN_FIELDS}
        ids = layout.simulator.cases(layout.shared, fields).identities()
    for name, column in (fields | {"case_id": ids.view("<u8").reshape(-1, 2)}).items():
        if name not in columns:
            layout.replace_index(name, rows, column)
