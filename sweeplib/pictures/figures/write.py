"""The figure stage of a sweep: figures are drawn from its dataset and its analyses, written, and recorded.

`directory` is always the folder of the results of one sweep; `name` is an entry of `figures` of its config.
"""

import textwrap
from collections.abc import Iterable
from pathlib import Path

from sweeplib.analysis.write import analysis_failure
from sweeplib.engine.design.design import Design
from sweeplib.engine.storage.records.attempts import Attempt
from sweeplib.errors import InputError, SweeplibError
from sweeplib.pictures.figures.figure import requested
from sweeplib.pictures.figures.kit.late_matplotlib import mpl

REPRODUCE = """\
# in the folder of the sweep
from pathlib import Path

from sweeplib.config import load
from sweeplib.pictures.figures.kit.style import save
from sweeplib.pictures.figures.write import drawn

save(drawn(load("config.yaml"), {name!r}, "."), Path({name!r}))  # as PDF and as PNG
"""
"""The script that is stored beside a failure, which repeats it."""
MOST_LINES = 8
"""The most lines of the reason in the picture of a figure that could not be drawn."""


def write_figure(sweep: Design, name: str, directory: str | Path) -> Attempt:
    """Draw figures/<name>.pdf and .png from a sweep's dataset.zarr and analysis/*.zarr; return the attempt.

    If the figure raises, the failure is recorded and both files show the reason as text. InputError if
    there is no dataset, or an analysis that the figure needs has not been attempted.
    """
    from sweeplib.engine.code.plugins import load_plugins
    from sweeplib.engine.storage.dataset.folder import open_dataset
    from sweeplib.engine.storage.records.artefacts import made_from
    from sweeplib.engine.storage.records.attempts import attempt_of
    from sweeplib.engine.storage.records.locks import writer_lock
    from sweeplib.engine.storage.records.manifest import entries_of
    from sweeplib.engine.storage.records.stage_records import recorded_stage
    from sweeplib.pictures.figures.kit.style import save

    load_plugins(sweep.plugins)
    directory = Path(directory)
    figure, options = requested(name, sweep.figures[name])
    with writer_lock(directory, f"figures/{name}"), recorded_stage(directory, f"figure.{name}") as record:
        open_dataset(directory / "dataset.zarr")
        _refuse_without_analyses(name, figure.needed(options), directory)
        artefact, now = directory / "figures" / name, made_from(sweep, directory, "figure", name)
        with attempt_of(directory, "figure", name, REPRODUCE.format(name=name)) as attempt:
            contents = save(drawn(sweep, name, directory), artefact)
        if attempt.problem is not None:
            contents = save(_not_drawn(name, attempt.problem), artefact)
        attempt.paths = tuple(contents)
        record.write_result(now, files=entries_of(contents, directory))
    return attempt


def _refuse_without_analyses(name: str, needs: Iterable[str], directory: Path) -> None:
    """Raise InputError if an analysis that the figure `needs` was not attempted: it neither exists nor failed."""
    for need in needs:
        path = directory / "analysis" / f"{need}.zarr"
        if not path.exists() and analysis_failure(directory, need) is None:
            raise InputError(f"the figure {name!r} needs the analysis", value=need, expected=f"{path}")


def drawn(sweep: Design, name: str, directory: str | Path) -> "mpl.figure.Figure":
    """Return a figure of the sweep, from the files in its directory; all exceptions of the figure are passed on."""
    from sweeplib.engine.storage.dataset.folder import open_dataset

    directory = Path(directory)
    figure, options = requested(name, sweep.figures[name])
    needs = figure.needed(options)
    for need in needs:
        if problem := analysis_failure(directory, need):
            raise SweeplibError(f"it needs the analysis {need}, which failed: {problem}")
    analyses = {need: open_dataset(directory / "analysis" / f"{need}.zarr").load() for need in needs}
    return figure(open_dataset(directory / "dataset.zarr"), analyses, **options)


def _not_drawn(name: str, problem: str) -> "mpl.figure.Figure":
    """Return a picture with a text that says that the figure could not be drawn, and why."""
    from sweeplib.pictures.figures.kit.style import TEXT_WIDTH, styled

    lines = textwrap.wrap(problem, 80)[:MOST_LINES]
    with styled():
        drawing = mpl.figure.Figure(figsize=(TEXT_WIDTH, 0.6 + 0.2 * len(lines)))
        content = "\n".join([f"The figure {name} could not be drawn:", "", *lines])
        drawing.text(0.03, 0.9, content, va="top", fontsize=9, parse_math=False)
    return drawing
