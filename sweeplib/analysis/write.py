"""The analysis stage of a sweep: analyses are made from its dataset, written, and recorded.

`directory` is always the folder of the results of one sweep.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from sweeplib.analysis.analysis import ANALYSES
from sweeplib.engine.base.late_modules import xarray as xr

if TYPE_CHECKING:
    from sweeplib.engine.design.design import Design
    from sweeplib.engine.storage.records.attempts import Attempt

REPRODUCE = """\
# in the folder of the sweep
from sweeplib.analysis.write import analysed
from sweeplib.config import load

analysed(load("config.yaml"), {name!r}, ".")
"""
"""The script that is stored beside a failure, which repeats it."""


def write_analysis(sweep: "Design", name: str, directory: str | Path) -> "Attempt":
    """Write `analysis/<name>.zarr` from dataset.zarr in a sweep's directory, then its record; return the attempt.

    If the analysis raises, the failure is recorded and the result of an earlier attempt is removed.
    InputError if there is no dataset.
    """
    from sweeplib.engine.code.plugins import load_plugins
    from sweeplib.engine.storage.dataset.folder import open_dataset, write_dataset
    from sweeplib.engine.storage.records.artefacts import made_from
    from sweeplib.engine.storage.records.attempts import attempt_of
    from sweeplib.engine.storage.records.files import remove_own
    from sweeplib.engine.storage.records.locks import writer_lock
    from sweeplib.engine.storage.records.manifest import is_own, manifest_at
    from sweeplib.engine.storage.records.stage_records import recorded_stage

    load_plugins(sweep.plugins)
    directory = Path(directory)
    path = directory / "analysis" / f"{name}.zarr"
    with writer_lock(directory, f"analysis/{path.name}"), recorded_stage(directory, f"analyse.{name}") as record:
        # raises InputError if there is none: that is no failure of the analysis
        open_dataset(directory / "dataset.zarr")
        now = made_from(sweep, directory, "analyse", name)
        with attempt_of(directory, "analysis", name, REPRODUCE.format(name=name)) as attempt:
            ds = analysed(sweep, name, directory)
            attempt.paths = (write_dataset(ds, path),)
        if attempt.problem is not None:
            remove_own(path, is_own(path))
        record.write_result(now, digest=manifest_at(path).digest)
    return attempt


def analysed(sweep: "Design", name: str, directory: str | Path) -> "xr.Dataset":
    """Return one analysis of the dataset in a sweep's directory; all exceptions of the analysis are passed on."""
    from sweeplib.analysis.kit.overlaps import open_with_overlaps
    from sweeplib.engine.storage.dataset.folder import open_dataset

    analysis = ANALYSES[name]
    open_ = open_with_overlaps if analysis.overlaps else open_dataset
    return analysis(open_(Path(directory) / "dataset.zarr"), **sweep.analyses[name])


def analysis_failure(directory: str | Path, name: str) -> str | None:
    """Return why the analysis of this name failed in a sweep's directory; None if it did not."""
    from sweeplib.engine.storage.records.attempts import failed_attempts

    return next((failure["exception"] for failure in failed_attempts(Path(directory), "analysis", [name])), None)
