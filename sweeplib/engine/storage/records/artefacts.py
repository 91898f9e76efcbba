"""What the results of a sweep's stages are made from, and which of them a workflow makes again.

Each stage leaves an output that the workflow tracks: `stages/NAME.done`, the picture of a figure, the page of the
report. The record of the stage (`stage_records`) says what it was made from: the config, the dataset, options, code. A
stage runs again where this differs from what its results would be made from now, wherever the workflow is started.

The stages after the plan and the simulation are "finalise" (the dataset), "analyse", "figure" and "report"; `name` is
that of an analysis or a figure, "" for the others.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.registry import origin_of
from sweeplib.engine.code.plugins import plugins_digest
from sweeplib.engine.code.sources import library_digest
from sweeplib.engine.design.axis import TableAxis
from sweeplib.engine.design.questions import RowCounts
from sweeplib.engine.files.regular_files import file_text
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.simulator import home_of
from sweeplib.engine.storage.records.config_files import complete_config
from sweeplib.engine.storage.records.files import REPAIR, damaged, digest
from sweeplib.engine.storage.records.manifest import Manifest, manifest_at, own_entries
from sweeplib.engine.storage.records.stage_records import done_path, record_path, stage_record
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

DATASET = "dataset.zarr"
PAGE = Path("report", "index.html")
EXECUTION_KEYS = ("checkpoint", "cluster", "publish", "timeout")
"""Keys of a config that only affect how it is run."""
SHOWN_KEYS = ("analyses", "figures")
"""Keys of a config that only say what is shown of its dataset."""
UNREAD = (*EXECUTION_KEYS, *SHOWN_KEYS, "authors", "license", "plugins")
"""Keys of a config on which the numbers of its dataset do not depend, or only through the cases."""


@lru_cache(16)  # it is asked for several times in each stage
def settings_digest(source: str, *others: str, unread: tuple[str, ...] = UNREAD) -> str:
    """Return a digest of what a config says about the numbers of its dataset.

    source : its text. unread, others : keys that are left out.
    """
    settings = {key: value for key, value in (parsed(source) or {}).items() if key not in (*unread, *others)}
    return digest(json.dumps(settings, sort_keys=True, default=str).encode())


@dataclass(frozen=True)
class Artefact:
    """What a stage makes in a sweep's `directory`.

    output : the file that a workflow tracks. path : the folder of zarr that is made; None if it is other files.
    """

    directory: Path
    stage: str
    name: str
    output: Path
    path: Path | None = None

    @property
    def record_name(self) -> str:
        """The name of the record of the stage."""
        return f"{self.stage}.{self.name}" if self.name else self.stage

    def manifest(self) -> Manifest:
        """Return the list of the artefact's files with their sizes and checksums, an empty one if it is not known."""
        if self.path is not None:
            return manifest_at(self.path)
        files = own_entries(stage_record(self.directory, self.record_name).files)
        return Manifest(self.directory, files, record_path(self.directory, self.record_name))


def artefacts(sweep: "Design", directory: Path) -> Iterator[Artefact]:
    """Yield the artefacts of a sweep in its directory, in the order in which they are made."""
    yield Artefact(directory, "finalise", "", done_path(directory, "finalise"), directory / DATASET)
    for name in sweep.analyses:
        path = directory / "analysis" / f"{name}.zarr"
        yield Artefact(directory, "analyse", name, done_path(directory, f"analyse.{name}"), path)
    for name in sweep.figures:
        yield Artefact(directory, "figure", name, directory / "figures" / f"{name}.png")
    yield Artefact(directory, "report", "", directory / PAGE)


def cases_made_from(sweep: "Design") -> dict[str, Any]:
    """Return what the plan and the cases of a sweep are made from: digests of settings, code and rows, by name."""
    numerics = {dynamics: sweep.numerics(dynamics) for dynamics in sweep.runs}
    rows = digest(sweep.replicas.text.encode()) if isinstance(sweep.replicas, RowCounts) else ""
    points = [axis.digest for axis in sweep.grid.axes if isinstance(axis, TableAxis)]
    return {"settings": settings_digest(sweep.source), "numerics": numerics, "points": points, "rows": rows}


def questions_made_from(sweep: "Design") -> dict[str, Any]:
    """Return what rounds decide by, beside the cases: digests of code and options, by name; {} without questions."""
    if not sweep.questions:
        return {}
    options = {name: question.options_in(sweep.analyses) for name, question in sweep.questions.items()}
    origins = (origin_of("analysis", question.of) for question in sweep.questions.values())
    return {"questions": {"options": options, "code": _code(sweep, "analyse", "sweeplib.analysis.answers", *origins)}}


def made_from(sweep: "Design", directory: Path, stage: str, name: str = "") -> dict[str, Any]:
    """Return what the artefact of a stage is made from now: digests, options and names that a record holds."""
    if stage == "finalise":
        code = _code(sweep, "simulate", "sweeplib.engine.storage.dataset.finalise", home_of(sweep.simulator))
        others = {"labels": dict(sweep.simulator.own_labels()), "credits": [*sweep.authors, sweep.licence]}
        return cases_made_from(sweep) | {"code": code} | others
    # a figure of a config has a name of its own if its options name its kind
    kinds = {entry: options.get("kind", entry) for entry, options in sweep.figures.items()}
    if stage == "analyse":
        options, modules = sweep.analyses[name], ["sweeplib.analysis.write", origin_of("analysis", name)]
    elif stage == "figure":
        options, modules = sweep.drawing(name), ["sweeplib.pictures.figures.write", origin_of("figure", kinds[name])]
    else:
        options = {"settings": settings_digest(sweep.source, unread=("cluster",))}
        figures = (origin_of("figure", kind) for kind in kinds.values())
        modules = ["sweeplib.pictures.report.write", *figures]
    return {**_dataset(directory), "options": dict(options), "code": _code(sweep, stage, *modules)}


def _code(sweep: "Design", stage: str, *modules: str) -> list[str]:
    """Return the digests of the library's code that modules and their imports are, and of the plugins a stage calls."""
    return [library_digest(*sorted(set(modules))), plugins_digest(sweep.plugins, stage)]


def _dataset(directory: Path) -> dict[str, str]:
    """Return the digest of the dataset in a sweep's directory, as an entry of what is made from it; {} if unknown."""
    manifest = manifest_at(directory / DATASET)
    return {"dataset": manifest.digest} if manifest.files else {}


def outdated_names(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> list[str]:
    """Return which analyses and figures in a sweep's directory were made from another dataset than the present one.

    A name is "analysis NAME" or "figure NAME". They may be: Python, and commands for single stages, can write a dataset
    and leave them as they are.
    """
    names = [("analysis", "analyse", name) for name in analyses] + [("figure", "figure", name) for name in figures]
    records = [(f"{kind} {name}", stage_record(directory, f"{stage}.{name}")) for kind, stage, name in names]
    now = _dataset(directory)
    return [text for text, record in records if record.made_from and not record.is_of(now)]


def refuse_outdated(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> None:
    """InputError if some analyses and figures in a sweep's directory were made from another dataset."""
    if names := outdated_names(directory, analyses, figures):
        problem = f"the dataset was written again, not what is made from it: {', '.join(names)}"
        raise InputError(problem, file=directory, expected="`sweeplib sweep` or, in Python, `report()` before")


def has_other_dataset(sweep: "Design", directory: Path) -> bool:
    """Return whether the dataset in a sweep's directory has other cases than its config; that of other code may.

    Commands of single stages can change the config, and the runs, and leave the dataset.
    """
    record, now = stage_record(directory, "finalise"), cases_made_from(sweep)
    return bool(record.made_from) and not record.is_of({name: now[name] for name in ("settings", "points")})


def refuse_other_dataset(sweep: "Design", directory: Path) -> None:
    """Raise InputError if the dataset in a sweep's directory has other cases than its config."""
    if has_other_dataset(sweep, directory):
        problem, expected = "the dataset is of another config", "`sweeplib sweep`, or `finalise`, with this one before"
        raise InputError(problem, file=directory / DATASET, expected=expected)


def is_of_config(sweep: "Design", directory: Path) -> bool:
    """Return whether the dataset in a sweep's directory was made from the sweep's config, if there is one."""
    return not (directory / DATASET).exists() or stage_record(directory, "finalise").is_of(cases_made_from(sweep))


def refuse_other_config(sweep: "Design", directory: Path) -> None:
    """Raise InputError unless the last run and the present dataset in a sweep's directory are of the sweep's config."""
    # both texts as they are written there: the paths of files in a complete config are relative to its folder
    config, settings = directory / "config.yaml", settings_digest(complete_config(sweep, directory))
    try:
        last = settings_digest(file_text(config)) if config.exists() else settings
    except (ValueError, AttributeError):  # no text, no YAML, no mapping
        raise damaged(config, REPAIR) from None
    if last != settings or not is_of_config(sweep, directory):
        expected = "`sweeplib sweep` with this config before, or the overrides of the last run"
        raise InputError("the present results are of another config", file=directory, expected=expected)


def stale_outputs(directory: Path, sweep: "Design", *, remember: bool, count_failed: bool = True) -> list[Path]:
    """Return the outputs of stages that exist, but that the next run of the sweep makes again.

    Their files are gone or were changed, or they were made from something else than they would be now, or their last
    attempt failed.

    remember : whether an intact record gets the present time, so that the files of a copy are read once.
    count_failed : if false, the output of a failed attempt is left out, whatever else is wrong with it.
    """
    now, names = cases_made_from(sweep), ("plan", *(f"simulate.{dynamics}" for dynamics in sweep.runs))
    outputs = {name: path for name in names if (path := done_path(directory, name)).exists()}
    # the rounds of a simulation decide by analyses too
    parts = {name: now if name == "plan" else now | questions_made_from(sweep) for name in outputs}
    stale = [path for name, path in outputs.items() if not stage_record(directory, name).is_of(parts[name])]
    for artefact in artefacts(sweep, directory):
        if artefact.output.exists():
            has_failed = bool(stage_record(directory, artefact.record_name).failures)
            if count_failed if has_failed else not _is_up_to_date(sweep, artefact, remember=remember):
                stale.append(artefact.output)
    return stale


def _is_up_to_date(sweep: "Design", artefact: Artefact, *, remember: bool) -> bool:
    """Return whether the files of an artefact are as its stage wrote them, and would write them now."""
    record, manifest = stage_record(artefact.directory, artefact.record_name), artefact.manifest()
    if not manifest.files or (artefact.path is not None and record.digest != manifest.digest):
        return False
    now = made_from(sweep, artefact.directory, artefact.stage, artefact.name)
    return record.is_of(now) and manifest.is_unchanged(remember=remember)
