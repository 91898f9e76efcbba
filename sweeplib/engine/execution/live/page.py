"""The page `/sweep` of Dask's dashboard: a read-only document of Bokeh, which draws what drivers have told."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from sweeplib.engine.execution.live.graph import Graph
from sweeplib.engine.execution.live.picture import CaseMapPicture
from sweeplib.engine.execution.live.text import answers, failures, heading, legend, paces, plain

if TYPE_CHECKING:
    from bokeh.document import Document
    from distributed import Scheduler

    from sweeplib.engine.execution.live.news import KnownRun, SweepNews

PATH = "/sweep"
MILLISECONDS = 1000
"""The interval at which an open page looks for news."""
NOTHING = "No sweep has told this scheduler of itself yet. The page shows one as soon as its simulations begin."
SO_FAR = "These are the results so far; the analyses of the report take account of runs that were stopped, too."
"""Lines of the page: before the first sweep, and beside the curves of one that runs."""
TEMPLATE = """{% extends "simple.html" %}
{% block content %}
<style>
  .as-text { margin: 1rem; white-space: pre-line; }
  .as-text:has(~ [data-root-id] > *) { display: none; }
</style>
<div class="as-text">{{ as_text|e }}</div>
{{ super() }}
{% endblock %}"""
STYLE = """
:host { font-size: 15px; line-height: 1.45; max-width: 100%; }
h1 { font-size: 22px; margin: 0; } h2 { font-size: 17px; margin: 14px 0 4px; }
p { margin: 2px 0; } table { border-collapse: collapse; }
.bk-clearfix { width: 100%; max-width: 100%; }
.wide { overflow-x: auto; max-width: 100%; }
th, td { text-align: left; padding: 3px 14px 3px 0; vertical-align: top; white-space: nowrap; }
th { font-weight: 600; border-bottom: 1px solid #777; } td { border-bottom: 1px solid #ddd; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
td.message { font-family: monospace; font-size: 13px; white-space: normal; overflow-wrap: anywhere; min-width: 16em; }
.bar { height: 10px; background: #dfe3e8; margin: 6px 0; } .bar div { height: 10px; background: #2f6fb0; }
.key { display: inline-block; width: 12px; height: 12px; margin: 0 5px 0 0; vertical-align: -1px; }
.key-text { margin-right: 18px; white-space: nowrap; } .quiet { color: #555; }
"""


def add_page(scheduler: "Scheduler", news: "SweepNews") -> bool:
    """Add the page to a scheduler's dashboard, with its address and access, and to the bar of its pages.

    Return whether there is a dashboard: a scheduler may have been started without one.
    """
    from tornado.ioloop import IOLoop

    prefix = next((pages.prefix for pages in scheduler.http_application.applications if hasattr(pages, "prefix")), None)
    if prefix is None:
        return False
    from distributed.dashboard.core import BokehApplication
    from distributed.dashboard.scheduler import template_variables

    variables = template_variables(scheduler)
    variables["pages"].append(PATH.strip("/"))
    pages = BokehApplication({PATH: partial(document, news)}, scheduler, prefix=prefix, template_variables=variables)
    scheduler.http_application.add_application(pages)
    pages.initialize(IOLoop.current())
    pages.start()
    return True


def document(news: "SweepNews", scheduler: "Scheduler", extra: Mapping[str, Any], doc: "Document") -> None:
    """Fill the document of one reader: Bokeh calls this when somebody opens the page.

    extra : Dask's variables of the template, such as the bar of its pages.
    """
    from distributed.dashboard.components.scheduler import BOKEH_THEME, env

    page = _ReaderPage(news, scheduler)
    doc.title = "Dask: Sweep"
    doc.template = env.from_string(TEMPLATE)
    doc.template_variables.update(extra)
    doc.template_variables["as_text"] = plain(page.run) if page.run else NOTHING
    doc.theme = BOKEH_THEME
    doc.add_root(page.root)
    doc.add_periodic_callback(page.update, MILLISECONDS)


class _ReaderPage:
    """The parts of the page of one reader, who may choose a run, a dynamics, and the axes of the map.

    root : the element that holds all of them.
    """

    def __init__(self, news: "SweepNews", scheduler: "Scheduler") -> None:
        from bokeh.layouts import column, row
        from bokeh.models import Div, Select

        self._news, self._scheduler = news, scheduler
        self._picture_state: object = None  # what was drawn last
        # texts of HTML that `update` fills
        self._heading, self._paces, self._legend, self._failures, self._answers = (
            Div(stylesheets=[STYLE], sizing_mode="stretch_width") for _ in range(5)
        )
        self._run = Select(title="Sweep", sizing_mode="stretch_width", max_width=420, visible=False)
        self._choices = {name: Select(title=name, width=180) for name in ("Dynamics", "Across", "Up")}
        self._picture, self._curves = CaseMapPicture(), Graph(STYLE)
        controls = row(*self._choices.values(), styles={"flex-wrap": "wrap"}, sizing_mode="stretch_width")
        self._map = column(controls, self._legend, self._picture.figure, sizing_mode="stretch_width")
        parts = [self._run, self._heading, self._paces, self._answers, self._map, self._curves.root, self._failures]
        self.root = column(*parts, sizing_mode="stretch_width", styles={"max-width": "1100px", "margin": "0 10px"})
        self._run.on_change("value", lambda attr, old, new: self._chosen())
        for choice in self._choices.values():
            choice.on_change("value", lambda attr, old, new: self.update())
        self._chosen()

    @property
    def run(self) -> "KnownRun | None":
        """Return the run that is shown: the chosen one, or the last that began."""
        runs = self._news.runs
        return runs.get(self._run.value) or next(reversed(runs.values()), None)

    def update(self) -> None:
        """Offer the runs that the scheduler knows, and draw the chosen one if it has changed."""
        runs = self._news.runs
        names = Counter(run.begun.sweep for run in runs.values())
        self._run.options = [(key, _named(run, names)) for key, run in reversed(runs.items())]
        self._run.visible = len(runs) > 1
        if self.run is None:
            self._heading.text = f"<p>{NOTHING}</p>"
            return
        if self.run.begun.run != self._run.value:
            self._run.value = self.run.begun.run  # which calls this again
            return
        self._draw(self.run)

    def _chosen(self) -> None:
        """Offer the dynamics and axes of the chosen run, and draw it."""
        run = self.run
        self._map.visible = run is not None
        if run is not None:
            axes = sorted(run.begun.axes, key=lambda axis: -len(axis.labels))
            names = [axis.name for axis in axes if len(axis.labels) > 1] or [axis.name for axis in axes[:1]]
            # a single axis is not offered twice
            offers = {"Dynamics": list(run.begun.maps), "Across": names, "Up": names[1:] and names}
            # at first the longest axis is across, and the next one up
            for (name, options), first in zip(offers.items(), (0, 0, 1), strict=True):
                choice = self._choices[name]
                choice.options, choice.visible = options, len(options) > 1
                if choice.value not in options:
                    choice.value = options[min(first, len(options) - 1)] if options else ""
        self.update()

    def _draw(self, run: "KnownRun") -> None:
        """Draw a run: the heading, which has the time, and the rest if it has changed since it was drawn."""
        running = run.running(self._scheduler)
        dynamics, across, up = (choice.value for choice in self._choices.values())
        cells = running.get(dynamics)
        state = (run.begun.run, run.version, dynamics, across, up, None if cells is None else cells.tobytes())
        self._heading.text = heading(run)
        if state == self._picture_state:
            return
        self._picture_state = state
        for div, text in ((self._paces, paces(run)), (self._failures, failures(run)), (self._answers, answers(run))):
            div.text, div.visible = text, bool(text)
        self._legend.text = legend(run.maps[dynamics], running=cells is not None)
        self._picture.draw(run, dynamics, (across, up), cells)
        self._curves.draw(run.news.headline if run.news else None, SO_FAR)


def _named(run: "KnownRun", names: Counter[str]) -> str:
    """Return the name of a run's sweep, with the folder of its results if another sweep has that name too.

    names : how many runs have a sweep of each name.
    """
    return run.begun.sweep if names[run.begun.sweep] == 1 else f"{run.begun.sweep}: {run.begun.results}"
