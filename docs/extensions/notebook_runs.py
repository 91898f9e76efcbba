"""The notebooks: a run that is not ok ends a build of the site with an error, and two builds have the same pages."""

from pathlib import Path

import xarray as xr
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

RESULTS = Path(__file__).parents[2] / "build" / "notebooks"
MISSING, OK = 0, 1


def failed_runs(results: Path) -> list[str]:
    """Return the sweeps in a folder of results that have runs that are not ok, with their numbers."""
    lines = []
    for path in sorted(results.glob("*/dataset.zarr")):
        with xr.open_zarr(path) as ds:
            number = int((~ds["status"].isin([MISSING, OK])).sum())
        if number:
            lines.append(f"{path.parent.name}: {number} runs are not ok")
    return lines


def check(app: Sphinx, error: Exception | None) -> None:
    """Raise an error if a build that went well has such runs."""
    if error is None and app.builder.format == "html" and (lines := failed_runs(RESULTS)):
        raise ExtensionError("; ".join(lines))


def leave_out_empty_outputs(_app: Sphinx, doctree: nodes.document) -> None:
    """Leave out the place of an output of which only warnings were written: whether a port is taken is no result."""
    for output in [node for node in doctree.findall(nodes.container) if "cell_output" in node["classes"]]:
        if not output.children:
            output.parent.remove(output)


def leave_out_empty_headers(_app: Sphinx, doctree: nodes.document) -> None:
    """Make plain cells of the headers without a name that pandas writes above and beside an index."""
    for output in list(doctree.findall(nodes.raw)):
        if 'class="dataframe"' in (table := output.astext()):
            output.replace_self(nodes.raw("", table.replace("<th></th>", "<td></td>"), format=output["format"]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Look at the outputs when a page is read, and at the runs when the pages are written."""
    app.connect("doctree-read", leave_out_empty_outputs)
    app.connect("doctree-read", leave_out_empty_headers)
    app.connect("build-finished", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
