"""Verification of all files but the run store: artefacts by their manifests, records, configs, leftovers.

An artefact is what a stage makes: a dataset, an analysis, a figure, the report. A manifest lists its files with their
checksums. A dataset has versions, folders of which one is current.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sweeplib.commands.upkeep.finding import Finding, Remedy
from sweeplib.commands.upkeep.stored_cases import StoredCases
from sweeplib.engine.design.design import Design
from sweeplib.engine.files.regular_files import file_bytes
from sweeplib.engine.status import Status
from sweeplib.engine.storage.dataset.outline import planned_outline
from sweeplib.engine.storage.dataset.versions import leftovers, linked_version, name_of, present_folder, versions
from sweeplib.engine.storage.records.artefacts import DATASET as DATASET_PATH
from sweeplib.engine.storage.records.artefacts import Artefact, artefacts, is_of_config
from sweeplib.engine.storage.records.config_files import ORIGIN, READ, is_as_written
from sweeplib.engine.storage.records.files import DAMAGED, LOST, DamageError, foreign, read_json
from sweeplib.engine.storage.records.manifest import UNLISTED, examination
from sweeplib.engine.storage.records.publish import PublishAddress
from sweeplib.engine.storage.records.stage_records import FOLDER, is_whole_done, record_path, stage_record
from sweeplib.engine.storage.store.checkpoints import CheckpointFolder
from sweeplib.engine.storage.store.inventory import inventory_files, is_whole_file
from sweeplib.errors import SweeplibError

DATASET, ANALYSES, PUBLISHED, FILES = "dataset", "analyses", "published dataset", "other files"
"""The sections of findings (`Finding.section`), beside those of dynamics."""
REPLACED = "another command's config: delete it, or repeat the command with its overrides"
"""Why the config that another command has read is not repaired."""
RECORDS = (
    *(f"{name}.json" for name in ("origin", "plan", "answers", "published")),
    *(f"{FOLDER}/{name}.json" for name in ("sweep", "plan", "simulate", "finalise", "report")),
    *(f"{FOLDER}/{name}.*.json" for name in ("simulate", "analyse", "figure")),
)
"""The names of the JSON files that sweeplib writes, beside manifests."""


class OtherFiles:
    """The files in a sweep's `directory` beside the run store; `chunks` counts those that were read, by section."""

    def __init__(self, sweep: Design, directory: Path, stored: Sequence[StoredCases]) -> None:
        self.sweep, self.directory, self.stored = sweep, directory, stored
        self.chunks = {DATASET: 0, ANALYSES: 0}

    def findings(self) -> Iterator[Finding]:
        """Yield all that is damaged, lost or stale."""
        dataset, *others = artefacts(self.sweep, self.directory)
        yield from self._dataset(dataset)
        yield from self._old_versions()
        yield from self._published_objects()
        for artefact in others:
            yield from self._artefact(artefact)
        yield from self._damaged_json()
        for path in inventory_files(self.directory):
            if path.stem in {store.dynamics for store in self.stored} and not is_whole_file(path):
                yield Finding(path, DAMAGED, Remedy.delete, FILES)
        states = CheckpointFolder(str(self.directory))
        for path in states.files():
            if states.read(path.name) is None:
                yield Finding(path, DAMAGED, Remedy.delete, FILES, words="the state of a case, which begins anew")
        yield from self._changed_configs()
        yield from self._leftovers()

    def _artefact(self, artefact: Artefact) -> Iterator[Finding]:
        """Yield the damaged and lost files of what a stage has made, if its record or its folder is there."""
        stage, of, path = artefact.stage, artefact.name, artefact.path
        record = stage_record(self.directory, artefact.record_name)
        section = DATASET if stage == "finalise" else ANALYSES
        if path is None:
            yield from self._files(artefact)
            return
        is_lost = not path.exists()
        # it was never made, or its attempt failed, which removes what an earlier one made
        if (is_lost and not record.made_from) or (record.failures and not record.digest):
            return
        if is_lost:
            yield Finding(path, LOST, Remedy.again, section, stage, of)
            return
        version = present_folder(path)
        chunks, problems = examination(version)
        self.chunks[section] += chunks
        for name, problem in sorted(problems.items()):
            words = self._chunk_in_words(version, name)
            yield Finding(version / name, problem, Remedy.again, section, stage, of, words=words)
        # each file is whole, but the version is not the one that was recorded
        if not problems and record.digest not in ("", name_of(version)):
            yield Finding(path, DAMAGED, Remedy.again, section, stage, of)

    def _files(self, artefact: Artefact) -> Iterator[Finding]:
        """Yield the damaged and lost files of a figure or of the report, and a lost record of these."""
        manifest = artefact.manifest()
        for name, problem in sorted(manifest.problems()):
            yield Finding(self.directory / name, problem, Remedy.again, FILES, artefact.stage, artefact.name)
        if artefact.output.exists() and not manifest.files and not manifest.path.exists():
            yield Finding(manifest.path, LOST, Remedy.again, FILES, artefact.stage, artefact.name)

    def _dataset(self, artefact: Artefact) -> Iterator[Finding]:
        """Yield the findings about the dataset, also as the link that earlier versions wrote."""
        path = self.directory / DATASET_PATH
        if path.is_symlink() and linked_version(path) is None:
            why = "delete the link, if it is not yours"
            yield Finding(path, foreign(path), Remedy.refused, DATASET, why=why)
            return
        findings = list(self._artefact(artefact))
        if path.is_symlink() and not path.exists():
            findings = [Finding(path, LOST, Remedy.again, DATASET, "finalise")]
        yield from findings
        if path.exists() and not findings and is_of_config(self.sweep, self.directory):
            yield from self._missing_arrays(present_folder(path))

    def _missing_arrays(self, dataset: Path) -> Iterator[Finding]:
        """Yield the arrays that the config asks for and that were not written: an earlier sweeplib did not notice."""
        for name in planned_outline(self.sweep).variables:
            if not (dataset / name / "zarr.json").exists():
                words = f"{name} of all cases"
                yield Finding(dataset / name, LOST, Remedy.again, DATASET, "finalise", words=words)

    def _chunk_in_words(self, version: Path, name: str) -> str:
        """Return in words which cases the chunk `name` of a dataset has, or of which array of an analysis it is."""
        array, _, key = name.partition("/c/")
        # chunks of a group of shapes, p4_k1/overlap_M, count from the first value of the group
        if not key or "/" in array or self.directory / "analysis" in version.parents:
            return array if key else ""
        axes: dict[str, Sequence[Any]] = {axis.name: axis.values for axis in self.sweep.grid.axes}
        axes |= {"dynamics": list(self.sweep.laws), "seed": self.sweep.seeds}
        at = [f"{dim}={axes[dim][at]}" for dim, at in _position(version / array, key) if at < len(axes.get(dim, ()))]
        return f"{array} of {', '.join(at) if at else 'all cases'}"

    def _old_versions(self) -> Iterator[Finding]:
        """Yield a finding for each file that is damaged in a version of the dataset that is not the current one."""
        path = self.directory / DATASET_PATH
        for version in versions(path):
            if version.name != linked_version(path):
                chunks, problems = examination(version)
                self.chunks[DATASET] += chunks
                words = "in a version of the dataset that is not the current one"
                for name, problem in sorted(problems.items()):
                    if problem == UNLISTED:
                        continue
                    yield Finding(version / name, problem, Remedy.delete, DATASET, of=version.name, words=words)

    def _published_objects(self) -> Iterator[Finding]:
        """Yield the objects at the address of the sweep that are not as in its dataset."""
        dataset, address = self.directory / DATASET_PATH, self.sweep.publish
        if address is None or not dataset.exists():
            return
        try:
            place = PublishAddress(address, self.sweep.name, self.directory)
            self.chunks[PUBLISHED], problems = place.examined(stage_record(self.directory, "finalise").digest or None)
        except SweeplibError as error:
            yield Finding(Path(), str(error), Remedy.refused, PUBLISHED, why="nothing is sent there", address=address)
            return
        for name, problem in problems.items():
            yield Finding(Path(name), problem, Remedy.again, PUBLISHED, "publish", address=address)

    def _damaged_json(self) -> Iterator[Finding]:
        """Yield the damaged JSON files that have names of records of sweeplib, and damaged files beside these."""
        for path in sorted(path for pattern in RECORDS for path in self.directory.glob(pattern)):
            if not path.name.startswith(".") and _is_damaged(path):
                stage, of = self._stage_of_json(path)
                section = of if stage == "simulate" else ANALYSES if stage == "analyse" else FILES
                remedy = Remedy.cases if stage == "simulate" else Remedy.again if stage else Remedy.delete
                yield Finding(path, DAMAGED, remedy, section, stage, of if section != of else "")
        for path in sorted((self.directory / FOLDER).glob("*.done")):
            if record_path(self.directory, path.stem).exists() and not is_whole_done(path):
                yield Finding(path, DAMAGED, Remedy.delete, FILES)

    def _stage_of_json(self, path: Path) -> tuple[str, str]:
        """Return the stage that makes a JSON file again, and of which name; "" if nothing needs it."""
        if path.parent == self.directory:
            return "plan" if path.name == ORIGIN else "", ""
        stage, _, of = path.stem.partition(".")
        names = {"simulate": self.sweep.runs, "analyse": self.sweep.analyses, "figure": self.sweep.figures}
        is_known = of in names[stage] if stage in names else stage in ("finalise", "report")
        return (stage, of) if is_known else ("", "")

    def _changed_configs(self) -> Iterator[Finding]:
        """Yield the complete configs, of the dataset and of the last run, that are not as they were written."""
        for name, remedy in (("config.yaml", Remedy.again), (READ, Remedy.refused)):
            path = self.directory / name
            if path.exists() and not is_as_written(path):
                problem = "damaged, or edited: it holds something else than was written"
                yield Finding(path, problem, remedy, FILES, "plan", why=REPLACED)

    def _leftovers(self) -> Iterator[Finding]:
        """Yield temporary files of killed writers, and marks of blocks that were begun and are done."""
        for path in leftovers(self.directory):
            yield Finding(path, "stale, left by a writer that was killed", Remedy.delete, FILES)
        for stored in self.stored:
            complete = stored.cases is not None and not (stored.cases.wanted.status == Status.missing).any()
            for mark in sorted((self.directory / "locks" / stored.dynamics).glob("*/*.begun")):
                if complete and not stored.damaged:
                    problem = "stale, left by a worker that died; its block is done"
                    yield Finding(mark, problem, Remedy.delete, FILES)


def _is_damaged(path: Path) -> bool:
    """Return whether a JSON file has not the checksum that it says."""
    try:
        read_json(path)
    except DamageError:
        return True
    return False


def _position(array: Path, key: str) -> list[tuple[str, int]]:
    """Return the index of a chunk, such as "0/3/1", along each dimension whose chunks have one value.

    array : the folder of its array. [] if the metadata do not say it.
    """
    try:
        metadata = json.loads(file_bytes(array / "zarr.json"))
        dims, sizes = metadata["dimension_names"], metadata["shape"]
        chunks = metadata["chunk_grid"]["configuration"]["chunk_shape"]
        parts = zip(dims, sizes, chunks, map(int, key.split("/")), strict=True)
        return [(dim, at) for dim, size, chunk, at in parts if chunk == 1 < size]
    except (OSError, ValueError, TypeError, KeyError):
        return []
