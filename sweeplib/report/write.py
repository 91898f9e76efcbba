"""The report stage of a sweep."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sweeplib.report.failures import failures
from sweeplib.report.optima import Table, optima_table

if TYPE_CHECKING:
    import xarray as xr

    from sweeplib.sweep.sweep import Sweep


def write_report(sweep: Sweep, directory: str | Path) -> Path:
    """The path of report/index.html in a sweep's directory, made of the files of the other stages alone."""
    from sweeplib.storage.dataset import open_dataset

    directory = Path(directory)
    dataset = open_dataset(directory / "dataset.zarr")
    html = page(
        name=sweep.name,
        config=sweep.source,
        dataset=dataset,
        counts=case_counts(sweep, directory),
        axes=axes(dataset),
        failures=failures(directory),
        figures=list(_figures(sweep.figures, directory)),
        optima=_optima(sweep, directory),
        analyses=list(sweep.analyses),
    )
    path = directory / "report" / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(html, encoding="utf-8")
    return path


def page(**contents: Any) -> str:
    """The HTML page; everything in `contents` is escaped."""
    import jinja2

    loader = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template("page.html.j2").render(**contents)


def case_counts(sweep: Sweep, directory: Path) -> list[tuple[str, dict[str, int]]]:
    """For each dynamics its label and the number of cases with each status that occurs in the sweep."""
    from sweeplib.figures.labels import dynamics_label
    from sweeplib.storage.files import read_json

    found = {name: (read_json(directory / f"{name}.done.json") or {}).get("cases", {}) for name in sweep.runs}
    statuses = sorted(
        {status for cases in found.values() for status in cases} | {"ok"}, key=lambda name: (name != "ok", name)
    )
    return [
        (dynamics_label(name), {status: cases.get(status, 0) for status in statuses}) for name, cases in found.items()
    ]


def axes(dataset: xr.Dataset) -> list[dict[str, str]]:
    """What each axis of the dataset is, and its values, shortened."""
    from sweeplib.figures.labels import number

    rows = []
    for name in dataset["status"].dims:
        values = [number(value) for value in dataset[name].values.tolist()]
        shown = values if len(values) <= 12 else [*values[:3], "…", *values[-1:]]
        rows.append(
            {
                "name": str(name),
                "what": dataset[name].attrs["long_name"],
                "size": str(len(values)),
                "values": ", ".join(shown),
            }
        )
    return rows


def _figures(wanted: Mapping[str, Any], directory: Path) -> Iterator[dict[str, str]]:
    from sweeplib.figures import FIGURES

    for name in wanted:
        png = directory / "figures" / f"{name}.png"
        encoded = base64.b64encode(png.read_bytes()).decode("ascii")
        title = name.replace("_", " ").capitalize()
        yield {
            "name": name,
            "title": title,
            "caption": FIGURES[name].caption,
            "source": f"data:image/png;base64,{encoded}",
        }


def _optima(sweep: Sweep, directory: Path) -> Table | None:
    from sweeplib.storage.dataset import open_dataset

    if "optimal_learning_rate" not in sweep.analyses:
        return None
    return optima_table(open_dataset(directory / "analysis" / "optimal_learning_rate.zarr").load())
