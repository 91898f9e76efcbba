"""The accessor `ds.sweep`: the analyses and figures of a dataset, or of a part of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import xarray as xr

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

    from sweeplib.pictures.report.explore import Explored


@xr.register_dataset_accessor("sweep")
class SweepAccessor:
    """Analyses and figures of the dataset of a sweep: `ds.sweep.exit_times()`, `ds.sweep.figure("line", x="d")`.

    Each analysis is a method. The dataset may be a selection, `ds.sel(d=300)`, a concatenation of sweeps, or changed in
    other ways, as long as it keeps the variable `status` and the attributes. Analyses that read overlap matrices read
    them from the files of the dataset, if it was opened by `sweeplib.open`.
    """

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = _with_axes(ds)

    def __repr__(self) -> str:
        from sweeplib.analysis import ANALYSES

        _check(self._ds)
        sizes = ", ".join(f"{dim} {size}" for dim, size in self._ds["status"].sizes.items())
        lines = [
            f"Sweep {self._ds.attrs.get('title', 'without a name')}: {self._ds['status'].size:,} runs ({sizes})",
            *(f"  {name}: {_counted(counts)}" for name, counts in self.status.items()),
            f"  analyses: {', '.join(ANALYSES)}",
            '  ds.sweep.NAME() is an analysis, ds.sweep.figure("NAME") a figure, ds.sweep.explore() a page',
        ]
        return "\n".join(lines)

    @property
    def status(self) -> dict[str, dict[str, int]]:
        """The number of runs with each status, by dynamics, as `Sweep.status` has it of the store."""
        from sweeplib.engine.status import Status

        _check(self._ds)
        statuses = {str(name): self._ds["status"].sel(dynamics=name) for name in self._ds["dynamics"].values}
        return {name: {kind.name: int((values == kind).sum()) for kind in Status} for name, values in statuses.items()}

    def analyse(self, name: str, **options: Any) -> xr.Dataset:
        """Return an analysis of the dataset; InputError for an unknown name or option, and if it does not apply."""
        from sweeplib.analysis import ANALYSES
        from sweeplib.analysis.kit.overlaps import with_overlaps

        analysis = ANALYSES[name]
        _check(self._ds)
        return analysis(with_overlaps(self._ds) if analysis.overlaps else self._ds, **options)

    def figure(self, name: str, **options: Any) -> Drawing:
        """Return a matplotlib figure of the dataset; InputError for an unknown name or option, or if it does not fit.

        Its analyses have default options.
        """
        from sweeplib.config.values import plain
        from sweeplib.pictures.figures import FIGURES
        from sweeplib.pictures.figures.notebook import shown_in_notebooks

        _check(self._ds)
        figure, options = FIGURES[name], {key: plain(value) for key, value in options.items()}
        analyses = {need: self.analyse(need) for need in figure.needed(options)}
        return shown_in_notebooks(figure(self._ds, analyses, **options))

    def explore(self, *, show: bool = True, port: int | None = None) -> Explored:
        """Return a page with an interactive plot of the dataset on this machine, and open it in the browser if `show`.

        The page has the axes, curves and values that a reader chooses, aggregated over the seeds before it draws, so
        that 10⁶ runs are no more than 10. It is there until its method `close` is called or this process ends. Without
        a number `port` is 5006, or a free one if that is taken.
        """
        from sweeplib.pictures.report.explore import Explored

        _check(self._ds)
        page = Explored(self._ds, str(self._ds.attrs.get("title", "dataset")), port)
        return page.show() if show else page

    def __getattr__(self, name: str) -> Callable[..., xr.Dataset]:
        """Return the analysis `name` as a method: `ds.sweep.exit_times()`."""
        from sweeplib.analysis import ANALYSES

        if name not in ANALYSES:
            raise AttributeError(f"no analysis {name!r}; known are {', '.join(ANALYSES)}")
        return partial(self.analyse, name)

    def __dir__(self) -> list[str]:
        from sweeplib.analysis import ANALYSES

        return sorted({*super().__dir__(), *ANALYSES})


def _counted(counts: dict[str, int]) -> str:
    """Return numbers of runs by status in words, without zeros."""
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count)


def _with_axes(ds: xr.Dataset) -> xr.Dataset:
    """Return the dataset with the axes `dynamics` and `seed`, of one value if one was selected by `sel` or `isel`."""
    selected = [name for name in ("seed", "dynamics") if name in ds.coords and not ds[name].ndim]
    whole = ds.expand_dims(selected)
    whole.encoding = ds.encoding
    return whole


def _check(ds: xr.Dataset) -> None:
    """Raise InputError unless a dataset is that of a sweep, with values along all axes."""
    from sweeplib.errors import InputError

    missing = [name for name in ("status", "dynamics", "seed") if name not in ds.variables]
    if missing:
        expected = "the variable `status` and the coordinates `dynamics` and `seed`"
        raise InputError("not the dataset of a sweep", key="dataset", value=f"without {missing[0]}", expected=expected)
    for dim, size in ds.sizes.items():
        if not size:
            raise InputError("no values along an axis", key="dataset", value=dim, expected="a selection with some")
