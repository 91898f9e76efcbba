"""What the artefacts of a sweep are made from, and which of them a workflow makes again.

Each stage leaves an output that the workflow tracks: `<name>.done.json` of the plan, a dynamics, the dataset or an
analysis, the picture of a figure, the page of the report. What it was made from (the config, the dataset, options,
code) is in its manifest, that of plans and cases in the output itself. A stage runs again where this differs from what
the output would be made from now, wherever the workflow is started.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.code.plugins import plugins_digest
from sweeplib.code.sources import library_digest
from sweeplib.errors import InputError
from sweeplib.registry import REGISTRIES, origin_of
from sweeplib.storage.attempts import IN_REPORT, failed_attempts
from sweeplib.storage.damage import DamageError
from sweeplib.storage.files import digest, read_json
from sweeplib.storage.jobs import at_work_elsewhere
from sweeplib.storage.manifest import Manifest, manifest_of, recorded
from sweeplib.strict_yaml import parsed

if TYPE_CHECKING:
    from sweeplib.design.sweep import Sweep

DATASET = "dataset.zarr"
PAGE = Path("report", "index")
"""The report, as an artefact."""
EXECUTION_KEYS = ("cluster", "publish", "timeout")
"""Keys of a config that only affect how it is run."""
UNREAD = (*EXECUTION_KEYS, "analyses", "figures", "plugins")
"""Keys of a config on which the numbers of its dataset do not depend, or only through the cases."""


def settings_digest(source: str, *others: str, unread: Iterable[str] = UNREAD) -> str:
    """Return a digest of what a config says about the numbers of its dataset, without some of its keys."""
    settings = {key: value for key, value in (parsed(source) or {}).items() if key not in (*unread, *others)}
    return digest(json.dumps(settings, sort_keys=True, default=str).encode())


def cases_made_from(sweep: "Sweep") -> dict[str, Any]:
    """Return what the plan and the cases of a sweep are made from."""
    numerics = {dynamics: sweep.numerics(dynamics) for dynamics in sweep.runs}
    return {"settings": settings_digest(sweep.source), "numerics": numerics}


def dataset_made_from(sweep: "Sweep") -> dict[str, Any]:
    """Return what the dataset of a sweep is made from."""
    return cases_made_from(sweep) | {"code": _code(sweep, "simulate", "sweeplib.storage.finalise")}


def analysis_made_from(sweep: "Sweep", name: str, directory: Path) -> dict[str, Any]:
    """Return what an analysis in a sweep's directory is made from now."""
    code = _code(sweep, "analyse", "sweeplib.analysis.write", origin_of("analysis", name))
    return _of_dataset(directory, sweep.analyses[name], code)


def figure_made_from(sweep: "Sweep", name: str, directory: Path) -> dict[str, Any]:
    """Return what a figure in a sweep's directory is made from now."""
    kind = sweep.figures[name].get("kind", name)
    code = _code(sweep, "figure", "sweeplib.figures.write", origin_of("figure", kind))
    return _of_dataset(directory, sweep.drawing(name), code)


def report_made_from(sweep: "Sweep", directory: Path) -> dict[str, Any]:
    """Return what the report in a sweep's directory is made from now."""
    kinds = {options.get("kind", name) for name, options in sweep.figures.items()}
    registered = next(registry for registry in REGISTRIES if registry.kind == "interactive plot")
    plots = [registered.origin(name) for name, plot in registered.items() if plot.figure in ("", *kinds)]
    figures = (origin_of("figure", kind) for kind in kinds)
    code = _code(sweep, "report", "sweeplib.report.write", *figures, *plots)
    return _of_dataset(directory, {"settings": settings_digest(sweep.source, unread=("cluster",))}, code)


def _code(sweep: "Sweep", stage: str, *modules: str) -> list[str]:
    """Return the digests of the code of the library that some modules import, and of the plugins that a stage calls."""
    return [library_digest(*sorted(set(modules))), plugins_digest(sweep.plugins, stage)]


def _of_dataset(directory: Path, options: Mapping[str, Any], code: list[str]) -> dict[str, Any]:
    return {**_dataset(directory), "options": dict(options), "code": code}


def _dataset(directory: Path) -> dict[str, str]:
    """Return the digest of the dataset in a sweep's directory, as an entry of what is made from it; {} if unknown."""
    manifest = recorded(directory / DATASET)
    return {"dataset": manifest.digest} if manifest.files else {}


def outdated(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> list[str]:
    """Return which of the analyses and figures in a sweep's directory were made from another dataset than the present.

    Python and the commands for single stages write a dataset without all that is made from it.
    """
    every = [
        *((f"analysis {name}", directory / "analysis" / f"{name}.zarr") for name in analyses),
        *((f"figure {name}", directory / "figures" / name) for name in figures),
    ]
    now = _dataset(directory)
    return [what for what, artefact in every if (made := recorded(artefact)).made_from and made.differs(now)]


def refuse_outdated(directory: Path, analyses: Iterable[str], figures: Iterable[str]) -> None:
    """InputError if some analyses and figures in a sweep's directory were made from another dataset."""
    if found := outdated(directory, analyses, figures):
        problem = f"the dataset was written again, not what is made from it: {', '.join(found)}"
        raise InputError(problem, file=directory, expected="`sweeplib sweep` or, in Python, `report()` before")


def is_of_config(sweep: "Sweep", directory: Path) -> bool:
    """Return whether the dataset in a sweep's directory was made from the sweep's config, if there is one."""
    return not (directory / DATASET).exists() or not recorded(directory / DATASET).differs(cases_made_from(sweep))


def refuse_other_config(sweep: "Sweep", directory: Path) -> None:
    """Raise InputError unless the last run and the present dataset in a sweep's directory are of the sweep's config."""
    config, made = directory / "config.yaml", settings_digest(sweep.source)
    last = settings_digest(config.read_text(encoding="utf-8")) if config.exists() else made
    if last != made or not is_of_config(sweep, directory):
        expected = "`sweeplib sweep` with this config before, or the overrides of the last run"
        raise InputError("the present results are of another config", file=directory, expected=expected)


def stale_outputs(directory: Path, sweep: "Sweep", *, remember: bool, failed: bool = True) -> list[Path]:
    """Return the outputs of stages in a sweep's directory that a workflow makes again, although they exist.

    Those whose files are gone or were changed, which were made from something else than they would be now, or, if these
    count, whose last attempt `failed`. Nothing is stale while another process of this machine works in the directory.
    `remember` lets manifests have the present time, so that files of a copy are read once.
    """
    if at_work_elsewhere(directory):
        return []
    every = (
        output for output in _outputs(sweep, directory) if output.path.exists() and (failed or not output.failures)
    )
    return [output.path for output in every if not output.is_true(remember)]


@dataclass(frozen=True)
class _Output:
    """What a workflow tracks of a stage: its path, what it would be made from now, its artefact and its attempts."""

    path: Path
    now: Callable[[], Mapping[str, Any]]
    artefact: Path | None = None
    failures: Sequence[Any] = ()

    def is_true(self, remember: bool) -> bool:
        """Return whether the stage would make the same again."""
        try:
            told = read_json(self.path) or {} if self.path.suffix == ".json" else {}
            if self.artefact is None:
                return Manifest(self.path, {}, told.get("made_from", {})).differs(self.now()) is False
            manifest = manifest_of(self.artefact)
        except DamageError:
            return False
        if manifest is None or self.failures or told.get("digest", manifest.digest) != manifest.digest:
            return False
        return not manifest.differs(self.now()) and manifest.is_unchanged(remember=remember)


def _outputs(sweep: "Sweep", directory: Path) -> Iterator[_Output]:
    """Yield the outputs of all stages in a sweep's directory."""
    for name in ("plan", *sweep.runs):
        yield _Output(directory / f"{name}.done.json", partial(cases_made_from, sweep))
    yield _Output(directory / "dataset.done.json", partial(dataset_made_from, sweep), directory / DATASET)
    for name in sweep.analyses:
        artefact, failures = directory / "analysis" / f"{name}.zarr", failed_attempts(directory, "analysis", [name])
        made_from = partial(analysis_made_from, sweep, name, directory)
        yield _Output(artefact.with_suffix(".done.json"), made_from, artefact, failures)
    for name in sweep.figures:
        artefact, failures = directory / "figures" / name, failed_attempts(directory, "figure", [name])
        made_from = partial(figure_made_from, sweep, name, directory)
        yield _Output(artefact.with_name(f"{name}.png"), made_from, artefact, failures)
    page, failures = directory / PAGE, [each for kind in IN_REPORT for each in failed_attempts(directory, kind)]
    yield _Output(page.with_suffix(".html"), partial(report_made_from, sweep, directory), page, failures)
