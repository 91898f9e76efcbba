"""What the artefacts of a sweep are made from, and which of them a workflow makes again.

Each stage leaves an output that the workflow tracks: `<name>.done.json` of the plan, a dynamics, the dataset or an
analysis, the picture of a figure, the page of the report. What it was made from (the config, the dataset, options,
code) is in its manifest, that of plans and cases in the output itself. A stage runs again where this differs from what
the output would be made from now, wherever the workflow is started.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.registry import REGISTRIES, origin_of
from sweeplib.engine.code.plugins import plugins_digest
from sweeplib.engine.code.sources import library_digest
from sweeplib.engine.design.questions import RowCounts
from sweeplib.engine.files.regular_files import file_text
from sweeplib.engine.files.strict_yaml import parsed
from sweeplib.engine.simulator import home_of
from sweeplib.engine.storage.records.attempts import IN_REPORT
from sweeplib.engine.storage.records.config_files import complete_config
from sweeplib.engine.storage.records.files import REPAIR, DamageError, damaged, digest, intact_json, read_json
from sweeplib.engine.storage.records.manifest import Manifest, manifest_at, manifest_of
from sweeplib.errors import InputError

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design

DATASET = "dataset.zarr"
PAGE = Path("report", "index")
"""The report, as an artefact."""
EXECUTION_KEYS = ("checkpoint", "cluster", "publish", "timeout")
"""Keys of a config that only affect how it is run."""
UNREAD = (*EXECUTION_KEYS, "analyses", "authors", "figures", "license", "plugins")
"""Keys of a config on which the numbers of its dataset do not depend, or only through the cases."""


@lru_cache(16)  # it is asked for several times in each stage
def settings_digest(source: str, *others: str, unread: tuple[str, ...] = UNREAD) -> str:
    """Return a digest of what a config says about the numbers of its dataset, without some of its keys."""
    settings = {key: value for key, value in (parsed(source) or {}).items() if key not in (*unread, *others)}
    return digest(json.dumps(settings, sort_keys=True, default=str).encode())


@dataclass(frozen=True)
class Artefact:
    """What a stage makes: its `path` (a folder of zarr, or files without their suffix), and what a workflow tracks."""

    stage: str
    name: str
    path: Path
    output: Path


def artefacts(sweep: "Design", directory: Path) -> Iterator[Artefact]:
    """Yield the artefacts of a sweep in its directory."""
    yield Artefact("finalise", "", directory / DATASET, directory / "dataset.done.json")
    for name in sweep.analyses:
        path = directory / "analysis" / f"{name}.zarr"
        yield Artefact("analyse", name, path, path.with_suffix(".done.json"))
    for name in sweep.figures:
        path = directory / "figures" / name
        yield Artefact("figure", name, path, path.with_name(f"{name}.png"))
    page = directory / PAGE
    yield Artefact("report", "", page, page.with_suffix(".html"))


def cases_made_from(sweep: "Design") -> dict[str, Any]:
    """Return what the plan and the cases of a sweep are made from."""
    numerics = {dynamics: sweep.numerics(dynamics) for dynamics in sweep.runs}
    rows = {"rows": digest(sweep.replicas.text.encode())} if isinstance(sweep.replicas, RowCounts) else {}
    return {"settings": settings_digest(sweep.source), "numerics": numerics, **rows}


def made_from(sweep: "Design", directory: Path, stage: str, name: str = "") -> dict[str, Any]:
    """Return what the artefact of a stage, an analysis or a figure by its name, is made from now."""
    if stage == "finalise":
        code = _code(sweep, "simulate", "sweeplib.engine.storage.dataset.finalise", home_of(sweep.simulator))
        names = sweep.simulator.own_labels()
        labels = {"labels": dict(names)} if names else {}
        return cases_made_from(sweep) | labels | {"code": code, "credits": [*sweep.authors, sweep.licence]}
    kinds = {entry: options.get("kind", entry) for entry, options in sweep.figures.items()}
    if stage == "analyse":
        options, modules = sweep.analyses[name], ["sweeplib.analysis.write", origin_of("analysis", name)]
    elif stage == "figure":
        options, modules = sweep.drawing(name), ["sweeplib.pictures.figures.write", origin_of("figure", kinds[name])]
    else:
        options = {"settings": settings_digest(sweep.source, unread=("cluster",))}
        figures = (origin_of("figure", kind) for kind in kinds.values())
        modules = ["sweeplib.pictures.report.write", *figures, *_interactive(kinds.values())]
    return {**_dataset(directory), "options": dict(options), "code": _code(sweep, stage, *modules)}


def _interactive(kinds: Iterable[str]) -> list[str]:
    """Return the modules of the interactive plots that a report with these kinds of figures may show."""
    plots = next(registry for registry in REGISTRIES if registry.kind == "interactive plot")
    return [plots.origin(name) for name, plot in plots.items() if plot.figure in ("", *kinds)]


def _code(sweep: "Design", stage: str, *modules: str) -> list[str]:
    """Return the digests of the code of the library that some modules import, and of the plugins that a stage calls."""
    return [library_digest(*sorted(set(modules))), plugins_digest(sweep.plugins, stage)]


def _dataset(directory: Path) -> dict[str, str]:
    """Return the digest of the dataset in a sweep's directory, as an entry of what is made from it; {} if unknown."""
    manifest = manifest_at(directory / DATASET)
    return {"dataset": manifest.digest} if manifest.files else {}


def outdated_names(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> list[str]:
    """Return which of the analyses and figures in a sweep's directory were made from another dataset than the present.

    Python and the commands for single stages write a dataset without all that is made from it.
    """
    every = [
        *((f"analysis {name}", directory / "analysis" / f"{name}.zarr") for name in analyses),
        *((f"figure {name}", directory / "figures" / name) for name in figures),
    ]
    now = _dataset(directory)
    return [text for text, artefact in every if (entry := manifest_at(artefact)).made_from and entry.differs(now)]


def refuse_outdated(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> None:
    """InputError if some analyses and figures in a sweep's directory were made from another dataset."""
    if names := outdated_names(directory, analyses, figures):
        problem = f"the dataset was written again, not what is made from it: {', '.join(names)}"
        raise InputError(problem, file=directory, expected="`sweeplib sweep` or, in Python, `report()` before")


def is_of_config(sweep: "Design", directory: Path) -> bool:
    """Return whether the dataset in a sweep's directory was made from the sweep's config, if there is one."""
    return not (directory / DATASET).exists() or not manifest_at(directory / DATASET).differs(cases_made_from(sweep))


def refuse_other_config(sweep: "Design", directory: Path) -> None:
    """Raise InputError unless the last run and the present dataset in a sweep's directory are of the sweep's config."""
    # both texts as they are written there: the paths of files in a complete config are relative to its folder
    config, settings = directory / "config.yaml", settings_digest(complete_config(sweep, directory))
    last = _recorded_settings(config) if config.exists() else settings
    if last != settings or not is_of_config(sweep, directory):
        expected = "`sweeplib sweep` with this config before, or the overrides of the last run"
        raise InputError("the present results are of another config", file=directory, expected=expected)


def _recorded_settings(config: Path) -> str:
    """Return the digest of the settings in a complete config; DamageError if it is none."""
    try:
        return settings_digest(file_text(config))
    except (ValueError, AttributeError):  # no text, no YAML, no mapping
        raise damaged(config, REPAIR) from None


def stale_outputs(directory: Path, sweep: "Design", *, remember: bool, count_failed: bool = True) -> list[Path]:
    """Return the outputs of stages that exist, but that the next run of the sweep makes again.

    Their files are gone or were changed, or they were made from something else than they would be now, or their last
    attempt failed. Without `count_failed` the output of a failed attempt is left out, whatever else is wrong with it.
    With `remember` an intact manifest gets the present time, so that the files of a copy are read once.
    """
    records = [directory / f"{name}.done.json" for name in ("plan", *sweep.runs)]
    stale = [path for path in records if path.exists() and not is_of(path, cases_made_from(sweep))]
    for artefact in artefacts(sweep, directory):
        has_failed = _has_failed(artefact, directory)
        if artefact.output.exists() and (count_failed or not has_failed):
            now = partial(made_from, sweep, directory, artefact.stage, artefact.name)
            if has_failed or not _is_up_to_date(artefact, now, remember=remember):
                stale.append(artefact.output)
    return stale


def is_of(record: Path, now: Mapping[str, Any]) -> bool:
    """Return whether there is a record, and what it tells was made from this."""
    return not Manifest(record, {}, intact_json(record).get("made_from", {})).differs(now)


def _has_failed(artefact: Artefact, directory: Path) -> bool:
    kinds = {"analyse": ["analysis"], "figure": ["figure"], "report": IN_REPORT}.get(artefact.stage, ())
    return any(any((directory / "failures").glob(f"{kind}.{artefact.name or '*'}.json")) for kind in kinds)


def _is_up_to_date(artefact: Artefact, now: Callable[[], Mapping[str, Any]], *, remember: bool) -> bool:
    """Return whether the files of an artefact are those that its stage would make again."""
    try:
        record = (read_json(artefact.output) if artefact.output.suffix == ".json" else None) or {}
        manifest = manifest_of(artefact.path)
    except DamageError:
        return False
    if manifest is None or record.get("digest", manifest.digest) != manifest.digest:
        return False
    return not manifest.differs(now()) and manifest.is_unchanged(remember=remember)
