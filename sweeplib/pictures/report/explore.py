"""The interactive plot of a dataset of any size: a page of Bokeh, whose numbers are aggregated here before it draws.

A reader chooses a quantity (`y`), what it is drawn over (`x`), an axis with a curve for each value (`hue`), and a value
of every other axis. Menus have these as texts.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import webbrowser
from concurrent.futures import Future
from contextlib import suppress
from html import escape
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Any

import numpy as np

from sweeplib.analysis.kit.labels import dynamics_label
from sweeplib.analysis.kit.passages import passages
from sweeplib.engine.base.arrays import DECADE, WIDE
from sweeplib.engine.base.late_modules import xarray as xr
from sweeplib.engine.execution.clusters.dashboard_access import own_names
from sweeplib.engine.execution.live.graph import Graph, ResultCurve, ResultCurves
from sweeplib.errors import InputError
from sweeplib.pictures.figures.kit.chart import along
from sweeplib.pictures.figures.kit.labels import digits_apart
from sweeplib.pictures.figures.kit.quantities import ROUND
from sweeplib.pictures.report.choices import logarithmic_places
from sweeplib.pictures.report.mathematics import plain_label
from sweeplib.pictures.report.tables import heading
from sweeplib.statistics.estimators import Mean
from sweeplib.statistics.lost_runs import has_run, sample_of, values_of

if TYPE_CHECKING:
    from bokeh.document import Document
    from bokeh.server.server import Server

THIS_MACHINE = "127.0.0.1"
PORT = 5006
"""The usual port of Bokeh."""
CONFIDENCE = 0.95
MOST_CURVES = 12
MOST_POINTS = 400
"""The largest numbers of curves and of points of one; of longer axes every nth value is drawn, and the page says so."""
LOST_EXITS = "fewer than half of the runs exited, or too many were lost"
LOST_MEANS = "a run had stopped or diverged, one was infinite, or too many were lost"
"""Why points have no median of exits, and no mean."""
NONE = "none"
"""The choice of the menu of curves that draws a single one."""
STYLE = """
:host { font-size: 15px; line-height: 1.45; max-width: 100%; } .bk-clearfix { width: 100%; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 17px; margin: 8px 0 2px; } p { margin: 2px 0; }
"""
TEMPLATE = """{% block inner_head %}{{ super() }}<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">{% endblock %}{% block contents %}<main>{{ super() }}</main>{% endblock %}"""


class Explored:
    """A page that explores a dataset: its `address` on this machine, until `close` is called or the process ends."""

    def __init__(self, ds: xr.Dataset, name: str, port: int | None = None) -> None:
        if not quantities(ds):
            expected = "a recorded quantity of runs, such as exit_steps or risk"
            raise InputError("nothing to draw in the dataset", key="dataset", value=name, expected=expected)
        # the server runs in a thread, and is ready, or says why not, before the page has an address
        self._ready: Future[Server] = Future()
        self._thread = threading.Thread(target=self._serve, args=(ds, name, port), daemon=True)
        self._thread.start()
        self._server = self._ready.result()
        self.address = f"http://{THIS_MACHINE}:{self._server.port}{self._path}"

    def __repr__(self) -> str:
        return f"exploring at {self.address}"

    def show(self) -> Explored:
        """Open the page in the browser."""
        webbrowser.open(self.address)
        return self

    def wait(self) -> None:
        """Wait until the page is closed, or an interrupt."""
        while self._thread.is_alive():
            self._thread.join(0.5)

    def close(self) -> None:
        """End the server."""
        self._server.io_loop.add_callback(self._server.io_loop.stop)
        self._thread.join()

    def _serve(self, ds: xr.Dataset, name: str, port: int | None) -> None:
        """Serve the page until the server is stopped; whoever waits for it gets the server, or why there is none."""
        asyncio.set_event_loop(asyncio.new_event_loop())
        logging.getLogger("tornado.access").setLevel(logging.ERROR)
        self._path = f"/{token_urlsafe(12)}"
        pages = {self._path: lambda doc: _fill(doc, ds, name)}
        try:
            from bokeh.server.server import Server

            at = _free_port() if port is None else port
            origins = own_names(THIS_MACHINE, at)
            server = Server(pages, port=at, address=THIS_MACHINE, allow_websocket_origin=origins, use_index=False)
        except OSError as error:
            expected = "a free port; without --port one is found"
            problem = f"the port cannot be used: {error.strerror}"
            self._ready.set_exception(InputError(problem, key="port", value=port, expected=expected))
            return
        except BaseException as error:
            self._ready.set_exception(error)
            return
        server.start()
        self._ready.set_result(server)
        server.io_loop.start()
        server.stop()


def _free_port() -> int:
    """Return the usual port, or another one if that is taken."""
    for port in (PORT, 0):
        with socket.socket() as probe, suppress(OSError):
            probe.bind((THIS_MACHINE, port))
            return int(probe.getsockname()[1])
    return PORT


def quantities(ds: xr.Dataset) -> list[str]:
    """Return the recorded numbers of runs that can be drawn over an axis: observables, the risk first, exits, ends."""
    axes = {"dynamics", "seed", "time", "threshold", *ds["status"].dims}
    fits = [
        str(name)
        for name, array in ds.data_vars.items()
        if array.dtype.kind == "f" and {"seed", "dynamics"} <= set(array.dims) <= axes and horizontal(ds, str(name))
    ]

    def place(name: str) -> tuple[bool, ...]:
        """Return the key of the order: observables, the risk first, errors, exits, ends."""
        return name.startswith("end_"), name.startswith("exit_"), name.endswith("_error"), name != "risk"

    return sorted(fits, key=place)


def horizontal(ds: xr.Dataset, name: str) -> list[str]:
    """Return what a quantity can be drawn over: the time, then axes of numbers, the longest first, then what they give.

    The last are coordinates, such as the learning rate where it is derived; not the round that asked for a point.
    """
    dims = [str(dim) for dim in ds[name].dims if dim != "seed"]
    varied = [str(key) for key in ds.coords if key != ROUND and ds[key].ndim and set(ds[key].dims) <= set(dims)]
    fits = [key for key in varied if ds[key].dtype.kind in "fiu" and ds.sizes[along(ds, key)] > 1]
    return sorted(fits, key=lambda key: (key != "time", key not in dims, -ds.sizes[along(ds, key)]))


def coloured(array: xr.DataArray, x: str) -> list[str]:
    """Return the axes of a quantity that can have a curve for each value, the dynamics first; not the axis `x`."""
    fits = [str(dim) for dim in array.dims if dim not in ("seed", x) and 1 < array.sizes[dim] <= MOST_CURVES]
    return sorted(fits, key=lambda dim: (dim != "dynamics", array.sizes[dim]))


def curves(ds: xr.Dataset, name: str, x: str, hue: str | None, at: dict[str, int]) -> tuple[ResultCurves, str]:
    """Return the curves of the quantity `name` over `x`, one for each value of `hue`, and what is said below them.

    `at` are the places on all other axes. Exits have the Kaplan-Meier median, other quantities the mean over the seeds
    with its interval (`Mean`), both by the rules of the analyses for runs that were lost.
    """
    axis = along(ds, x)
    step = -(-ds.sizes[axis] // MOST_POINTS)
    places = {dim: [place] for dim, place in at.items()} | {axis: slice(None, None, step)}
    ends = [end for end in ("end_steps", "end_time") if end in ds]
    data = ds[[*dict.fromkeys([name, *ends, "status"])]]
    data = data.isel({dim: place for dim, place in places.items() if dim in data.dims}).load()
    exits = name.startswith("exit_")
    *statistics, count, statistic = _exits(data, name) if exits else _means(data, name)
    # axes but those of x and the hue have one place each
    order = [dim for dim in (hue, axis) if dim]
    over = data[x].broadcast_like(statistics[0])
    single = [dim for dim in statistics[0].dims if dim not in order]
    rows = [array.squeeze(single).transpose(*order).values for array in (over, *statistics, count)]
    names = [_level(data[hue], place) for place in range(data.sizes[hue])] if hue else [""]
    columns = zip(*(row.reshape(len(names), -1).tolist() for row in rows), strict=True)
    by_label = {label: ResultCurve(*column) for label, column in zip(names, columns, strict=True)}
    fixed = ", ".join(f"{dim} = {_level(ds[dim], place)}" for dim, place in at.items() if ds.sizes[dim] > 1)
    thinned = f" One of {step} values of {x} is drawn." if step > 1 else ""
    label = f"{statistic} {plain_label(heading(ds[name]))[:1].lower()}{plain_label(heading(ds[name]))[1:]}"
    decade = DECADE if "time" in data[x].dims else WIDE
    return ResultCurves(
        plain_label(heading(ds[x])), label, fixed, hue or "", by_label, logarithmic_places(ds[x]), decade
    ), f"{_lost(statistics[0], has_run(data), LOST_EXITS if exits else LOST_MEANS)}{thinned}"


def _exits(data: xr.Dataset, name: str) -> tuple[Any, ...]:
    """Return the median exit over the seeds, the ends of its interval, the number of runs, and "Median"."""
    sample = passages(data, name.removeprefix("exit_"))
    return *sample.median(CONFIDENCE), sample.used.sum("seed"), "Median"


def _means(data: xr.Dataset, name: str) -> tuple[Any, ...]:
    """Return the mean over the seeds, the ends of its interval, the number of runs, and "Mean"."""
    sample = sample_of(values_of(data, name), data)
    with np.errstate(over="ignore", invalid="ignore"):  # of values that grow without bound
        return *Mean()(sample, CONFIDENCE), sample.count("seed"), "Mean"


def _lost(value: xr.DataArray, run: xr.DataArray, why: str) -> str:
    """Return in words how many points of a plot have no `value` although there was a `run`; `why` is the reason."""
    missing = int((value.isnull() & run.any("seed")).sum())
    return f"{missing:,} of {value.size:,} points have no value: {why}." * (missing > 0)


def _level(coordinate: xr.DataArray, place: int) -> str:
    """Return a value of an axis as text, which no other one of its values has."""
    value = coordinate.values[place]
    if coordinate.name == "dynamics":
        return dynamics_label(str(value))
    return f"{value:.{digits_apart(coordinate, 6)}g}" if np.issubdtype(coordinate.dtype, np.floating) else str(value)


def _fill(doc: Document, ds: xr.Dataset, name: str) -> None:
    """Put the page of one reader into the document that Bokeh has made for it."""
    doc.title = f"{name}: explore"
    doc.template = TEMPLATE
    doc.add_root(_Page(ds, name).root)


class _Page:
    """The page of one reader: menus for both axes and the colours, and one for the value of every other axis.

    While menus are `busy`, being changed by the page itself, a change does not draw.
    """

    def __init__(self, ds: xr.Dataset, name: str) -> None:
        from bokeh.layouts import column, row
        from bokeh.models import Div, Select

        self._ds, self._busy = ds, False
        labels = [(quantity, plain_label(heading(ds[quantity]))) for quantity in quantities(ds)]
        self._y = Select(title="Quantity", options=labels, value=labels[0][0], width=260)
        self._x, self._hue = Select(title="Over", width=160), Select(title="A curve for each", width=160)
        # the menus of all other axes, and the row that shows them
        self._others: dict[str, Any] = {}
        self._filters = row(styles={"flex-wrap": "wrap"}, sizing_mode="stretch_width")
        self._graph = Graph(STYLE)
        title = Div(text=f"<h1>{escape(name)}</h1>", stylesheets=[STYLE])
        menus = row(self._y, self._x, self._hue, styles={"flex-wrap": "wrap"}, sizing_mode="stretch_width")
        styles = {
            "max-width": "1100px",
            "padding": "8px 12px",
            "box-sizing": "border-box",
            "font-family": "Helvetica, Arial, sans-serif",
        }
        parts = [title, menus, self._filters, self._graph.root]
        self.root = column(*parts, sizing_mode="stretch_width", styles=styles)
        for menu in (self._y, self._x, self._hue):
            menu.on_change("value", lambda attr, old, new: self._offer())
        self._offer()

    def _offer(self) -> None:
        """Offer the axes of the chosen quantity, and a menu for each that is not drawn; then draw."""
        if self._busy:
            return
        self._busy = True
        array = self._ds[self._y.value]
        _choose(self._x, horizontal(self._ds, self._y.value))
        axis = along(self._ds, self._x.value)
        _choose(self._hue, [*coloured(array, axis), NONE])
        free = [str(dim) for dim in array.dims if dim not in ("seed", axis, self._hue.value)]
        self._others = {dim: self._others.get(dim) or _menu(self._ds[dim], self._draw) for dim in free}
        self._filters.children = [menu for dim, menu in self._others.items() if array.sizes[dim] > 1]
        self._busy = False
        self._draw()

    def _draw(self) -> None:
        """Draw the curves of what is chosen."""
        if self._busy:
            return
        at = {dim: int(menu.value) for dim, menu in self._others.items()}
        hue = None if self._hue.value == NONE else self._hue.value
        self._graph.draw(*curves(self._ds, self._y.value, self._x.value, hue, at))


def _choose(menu: Any, options: list[str]) -> None:
    """Offer options in a menu; it keeps its choice if that is among them."""
    menu.options = options
    if menu.value not in options:
        menu.value = options[0]


def _menu(coordinate: xr.DataArray, changed: Any) -> Any:
    """Return a menu of the values of an axis, the middle one chosen, or the first of names; `changed` is called then.

    Its values are places on the axis, as text.
    """
    from bokeh.models import Select

    options = [(str(place), _level(coordinate, place)) for place in range(coordinate.size)]
    chosen = str(coordinate.size // 2) if coordinate.dtype.kind in "fiu" else "0"
    menu = Select(title=str(coordinate.name), options=options, value=chosen, width=160)
    menu.on_change("value", lambda attr, old, new: changed())
    return menu
