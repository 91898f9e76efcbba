"""Verification of all files but the run store: datasets, markers, plans, figures, locks, leftovers."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.errors import SweeplibError
from sweeplib.storage.attempts import attempts_journal
from sweeplib.storage.complete_config import is_as_written
from sweeplib.storage.damage import DAMAGED, LOST, DamageError
from sweeplib.storage.examined_dataset import DatasetHarm, examined_dataset
from sweeplib.storage.files import damaged_lines, digest, read_json
from sweeplib.storage.markers import DATASET as DATASET_PATH
from sweeplib.storage.markers import is_of_config
from sweeplib.storage.origin import ORIGIN
from sweeplib.storage.outline import planned_outline
from sweeplib.storage.publish import Place
from sweeplib.storage.remembered import is_whole, remembered_files
from sweeplib.storage.versions import leftovers, linked_version, present, versions
from sweeplib.upkeep.finding import Finding, Remedy
from sweeplib.upkeep.stored_cases import StoredCases, json_problem

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

DATASET, ANALYSES, PUBLISHED, FILES = "dataset", "analyses", "published dataset", "other files"
REPLACED = "another command's config: delete it, or repeat the command with its overrides"
IN_REPORT = ("plot", "table", "optima", "report")
RECORDS = (
    *(f"{name}.json" for name in ("origin", "plan", "published", "*.done", "*.files")),
    *(
        f"{folder}/*.{kind}.json"
        for folder in ("analysis", "figures", "report")
        for kind in ("done", "files", "source")
    ),
    *(f"failures/{kind}.*.json" for kind in ("analysis", "figure", *IN_REPORT)),
    *(f"jobs/{name}.json" for name in ("sweep", "plan", "simulate", "finalise", "report", "analyse.*", "figure.*")),
)
"""The names of the JSON files that sweeplib writes."""


class OtherFiles:
    """The files in a sweep's `directory` beside the run store; `chunks` counts those that were read, by part."""

    def __init__(self, sweep: "Sweep", directory: Path, stored: Sequence[StoredCases]) -> None:
        self.sweep, self.directory, self.stored = sweep, directory, stored
        self.chunks = {DATASET: 0, ANALYSES: 0}

    def findings(self) -> Iterator[Finding]:
        """Yield all that is damaged, lost or stale."""
        yield from self._dataset()
        yield from self._versions()
        yield from self._published()
        for name in self.sweep.analyses:
            yield from self._analysis(name)
        yield from self._json()
        for path in remembered_files(self.directory):
            if path.stem in {each.dynamics for each in self.stored} and not is_whole(path):
                yield Finding(path, DAMAGED, Remedy.delete, FILES)
        yield from self._drawn()
        yield from self._configs()
        yield from self._attempts()
        yield from self._leftovers()

    def _dataset(self) -> Iterator[Finding]:
        path = self.directory / DATASET_PATH
        if path.is_symlink() and linked_version(path) is None:
            why = "delete the link, if it is not yours"
            problem = f"a link to {str(path.readlink())!a}, which sweeplib did not make"
            yield Finding(path, problem, Remedy.refused, DATASET, why=why)
            return
        if not path.exists():
            if path.is_symlink() or json_problem(path.with_suffix(".done.json")) is None:
                yield Finding(path, LOST, Remedy.dataset, DATASET)
            return
        chunks, harms = examined_dataset(path, self._digest)
        self.chunks[DATASET] += chunks
        for harm in harms:
            yield Finding(harm.file, harm.problem, Remedy.dataset, DATASET, words=self._words(harm))
        if not harms and is_of_config(self.sweep, self.directory):
            yield from self._unwritten(present(path))

    def _unwritten(self, dataset: Path) -> Iterator[Finding]:
        """Yield the arrays that the config asks for and that were not written: an earlier sweeplib did not notice."""
        for name in planned_outline(self.sweep).variables:
            if not (dataset / name / "zarr.json").exists():
                yield Finding(dataset / name, LOST, Remedy.dataset, DATASET, words=f"{name} of all cases")

    @cached_property
    def _digest(self) -> str | None:
        """The digest of the dataset as it was written; None if it is not known."""
        try:
            return (read_json(self.directory / "dataset.done.json") or {}).get("digest")
        except DamageError:
            return None

    def _words(self, harm: DatasetHarm) -> str:
        """Return which cases a chunk of the dataset has."""
        if not harm.array:
            return ""
        axes: dict[str, Sequence[Any]] = {axis.name: axis.values for axis in self.sweep.grid.axes}
        axes |= {"dynamics": list(self.sweep.runs), "seed": self.sweep.seeds}
        at = [f"{dim}={axes[dim][place]}" for dim, place in harm.places if place < len(axes.get(dim, ()))]
        return f"{harm.array} of {', '.join(at) if at else 'all cases'}"

    def _versions(self) -> Iterator[Finding]:
        """Yield a finding for each version of the dataset that is damaged and not the current one."""
        path = self.directory / DATASET_PATH
        for version in versions(path):
            if version.name != linked_version(path):
                chunks, harms = examined_dataset(version, None)
                self.chunks[DATASET] += chunks
                words = "in a version of the dataset that is not the current one"
                for harm in harms:
                    yield Finding(harm.file, harm.problem, Remedy.version, DATASET, version.name, words=words)

    def _published(self) -> Iterator[Finding]:
        """Yield the objects at the address of the sweep that are not as in its dataset."""
        dataset, address = self.directory / "dataset.zarr", self.sweep.publish
        if address is None or not dataset.exists():
            return
        try:
            place = Place(address, self.sweep.name, self.directory)
            self.chunks[PUBLISHED], problems = place.examined(self._digest)
        except SweeplibError as error:
            yield Finding(Path(), str(error), Remedy.refused, PUBLISHED, why="nothing is sent there", address=address)
            return
        for name, problem in problems.items():
            yield Finding(Path(name), problem, Remedy.publish, PUBLISHED, address=address)

    def _analysis(self, name: str) -> Iterator[Finding]:
        path = self.directory / "analysis" / f"{name}.zarr"
        try:
            done = read_json(path.with_suffix(".done.json"))
        except DamageError:
            done = {}
        if done is None or "failed" in done:
            return
        if not path.exists():
            yield Finding(path, LOST, Remedy.analysis, ANALYSES, name)
            return
        chunks, harms = examined_dataset(path, done.get("digest"))
        self.chunks[ANALYSES] += chunks
        for harm in harms:
            yield Finding(harm.file, harm.problem, Remedy.analysis, ANALYSES, name, words=harm.array)

    def _json(self) -> Iterator[Finding]:
        """Yield the damaged JSON files that have names of records of sweeplib."""
        for path in sorted(path for pattern in RECORDS for path in self.directory.glob(pattern)):
            if not path.name.startswith(".") and json_problem(path):
                remedy, part, of = self._json_remedy(path)
                yield Finding(path, DAMAGED, remedy, part, of)

    def _json_remedy(self, path: Path) -> tuple[Remedy, str, str]:
        """Return how a damaged JSON file is repaired, the part it belongs to, and of which name it is."""
        folder, name = path.parent.name, path.name.split(".")[0]
        if path.parent == self.directory:
            if name in self.sweep.runs and path.name == f"{name}.done.json":
                return Remedy.missing, name, ""
            known = {ORIGIN: Remedy.rewrite, "dataset.done.json": Remedy.dataset, "dataset.files.json": Remedy.dataset}
            return known.get(path.name, Remedy.delete), FILES, ""
        kind, _, of = path.name.removesuffix(".json").partition(".") if folder == "failures" else (folder, "", name)
        if kind == "analysis" and of in self.sweep.analyses:
            return Remedy.analysis, ANALYSES, of
        if kind in ("figure", "figures") and of in self.sweep.figures:
            return Remedy.figure, FILES, of
        return (Remedy.report if kind in IN_REPORT else Remedy.delete), FILES, of

    def _drawn(self) -> Iterator[Finding]:
        """Yield figures and reports that are not as they were written."""
        for record in sorted(self.directory.glob("figures/*.files.json")):
            of = record.name.removesuffix(".files.json")
            if of in self.sweep.figures:  # `prune` deletes others
                yield from self._unlike(record, Remedy.figure, of)
        yield from self._unlike(self.directory / "report" / "index.files.json", Remedy.report, "")

    def _unlike(self, record: Path, remedy: Remedy, of: str) -> Iterator[Finding]:
        try:
            digests = read_json(record) or {}
        except DamageError:
            return
        for name, written in digests.items():
            file = record.parent / Path(name).name
            if not file.exists():
                yield Finding(file, LOST, remedy, FILES, of)
            elif digest(file.read_bytes()) != written:
                yield Finding(file, DAMAGED, remedy, FILES, of)

    def _configs(self) -> Iterator[Finding]:
        for name, remedy in (("config.yaml", Remedy.rewrite), ("overridden.yaml", Remedy.refused)):
            path = self.directory / name
            if path.exists() and not is_as_written(path):
                problem = "damaged, or edited: it holds something else than was written"
                yield Finding(path, problem, remedy, FILES, why=REPLACED)

    def _attempts(self) -> Iterator[Finding]:
        path = attempts_journal(self.directory)
        if damaged := damaged_lines(path):
            yield Finding(path, f"{damaged} damaged lines", Remedy.journal, FILES)

    def _leftovers(self) -> Iterator[Finding]:
        """Yield temporary files of killed writers, and marks of blocks that were begun and are done."""
        for path in leftovers(self.directory):
            yield Finding(path, "stale, left by a writer that was killed", Remedy.delete, FILES)
        for each in self.stored:
            for mark in sorted((self.directory / "locks" / each.dynamics).glob("*/*.begun")):
                layout = each.store.layouts.get(mark.parent.name)
                number = int(mark.stem) if mark.stem.isdigit() else -1
                if layout is None or not 0 <= number < layout.n_blocks:
                    continue
                if number not in each.examined.blocks(layout.name) and layout.status(layout.block(number)).all():
                    problem = "stale, left by a worker that died; its block is done"
                    yield Finding(mark, problem, Remedy.delete, FILES)
