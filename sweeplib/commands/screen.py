"""The view of a run: one live screen on a terminal; elsewhere a line at each stage's end and about one a minute.

A state (`RunState`) has the stages of the sweep and their jobs at a time; a step is what a job does at present.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from sweeplib.commands.state import RunState, Stage
from sweeplib.engine.process.terminal import clock_time, console, show, table

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

SECONDS_BETWEEN_LINES = 60.0
LONG_STEP = 2.0
"""Seconds after which a step, such as a compilation, has a line where there is no live screen."""
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""The signs of a spinner, four a second."""
STARTS = "between two stages"
"""What a line says when no job runs."""


@contextmanager
def view(name: str, beginning: str = "") -> Iterator["PlainLines | Screen"]:
    """Return a context with the view of the sweep `name` on standard error; its last state remains visible.

    Lines start with `beginning`, because the first stage may end only after a minute of compilation.
    """
    target = console(errors=True)
    if not target.is_terminal or target.is_dumb_terminal:
        lines = PlainLines(name, target)
        if beginning:
            lines.say(beginning)
        yield lines
        return
    from rich.live import Live

    screen = Screen(name, target)
    with Live(get_renderable=screen.render, console=target, refresh_per_second=4):
        yield screen


class PlainLines:
    """Plain lines: the plan, one at the end of each stage and at each step that takes long, and about one a minute.

    clock : a function that returns seconds. last_line : when the last line was written, by it.
    _once : the titles of what was written, which is not written again (`_is_new`).
    """

    def __init__(self, name: str, target: "Console", clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.target, self.clock = name, target, clock
        self.last_line = clock()
        self._once: set[str] = set()

    def update(self, state: RunState) -> None:
        """Write what is new, and every minute what is going on."""
        plan = state.plan
        if plan is not None and self._is_new("the plan"):
            show(table(**plan), self.target)
        for news in (*state.links(), state.news()):
            if news and self._is_new(news):
                self.say(news)
        step, since = state.step()
        if state.now - since >= LONG_STEP and self._is_new(step):
            self.say(f"{step} ...")
        for stage in state.stages:
            if state.ended(stage) and self._is_new(stage.title):
                self.say(_line(state, stage))
        if state.over == "ok" and not state.jobs:
            self.say("nothing to compute: all is up to date")
        if self.clock() - self.last_line >= SECONDS_BETWEEN_LINES:
            running = [_line(state, stage) for stage in state.stages if state.running(stage)]
            self.say("; ".join(filter(None, [*running, state.doing()])) or STARTS)

    def _is_new(self, title: str) -> bool:
        """Return whether a title was not asked for before, and remember it."""
        new = title not in self._once
        self._once.add(title)
        return new

    def say(self, line: str) -> None:
        """Write a line."""
        self.last_line = self.clock()
        self.target.print(f"{self.name}: {line}", soft_wrap=True)


def _line(state: RunState, stage: Stage) -> str:
    """Return a stage, its progress and its time in one line."""
    elapsed, running = clock_time(state.seconds(stage)), state.running(stage)
    parts = filter(None, [state.counts(stage), state.pace(stage), *state.problems(stage)])
    done = "running for" if running else "failed after" if state.problems(stage) else "done in"
    return f"{stage.title}: " + ", ".join([f"{done} {elapsed}", *parts])


class Screen:
    """One live screen: the stages with their progress, the dashboard's links, the present step. The plan is above."""

    def __init__(self, name: str, target: "Console") -> None:
        self.name, self.target = name, target
        self.state: RunState | None = None
        self.started = time.time()
        self._planned = False  # whether the plan was written

    def update(self, state: RunState) -> None:
        """Set the state, which another thread draws four times a second."""
        self.state = state
        if state.plan is not None and not self._planned:
            self._planned = True
            show(table(**state.plan), self.target)

    def render(self) -> "RenderableType":
        """Return the screen at present."""
        from rich.console import Group
        from rich.text import Text

        now = time.time()
        if self.state is None:
            return Text(f"{_frame(now)} {self.name}")
        state = replace(self.state, now=now)
        below = [*state.links(), state.news(), self._step(state)]
        return Group(self._stages(state), *(Text(text, overflow="fold") for text in below if text))

    def _step(self, state: RunState) -> str:
        """Return the present step in words; while no job runs, what Snakemake does, and since when."""
        if state.over:
            return ""
        if any(map(state.running, state.stages)):
            return state.doing()
        between = "Snakemake looks for what is left to do" if state.jobs else "Snakemake starts"
        since = max([self.started, *(job.ended or 0.0 for job in state.jobs.values())])
        return f"{_frame(state.now)} {between} ({clock_time(state.now - since)})"

    def _stages(self, state: RunState) -> "Table":
        """Return a line for each stage: its state, title, time and progress."""
        from rich.table import Table

        grid = Table.grid(padding=(0, 1))
        for column in ("left", "left", "right"):
            grid.add_column(justify=column, no_wrap=True)
        grid.add_column(overflow="fold")
        for stage in state.stages:
            mark, style = _mark(state, stage)
            started = bool(state.of(stage))
            elapsed = clock_time(state.seconds(stage)) if started else ""
            progress = [state.counts(stage), state.pace(stage), *state.problems(stage)]
            words = "up to date" if state.up_to_date(stage) else "; ".join(filter(None, progress))
            grid.add_row(mark, stage.title, elapsed, words, style=style)
        return grid


def _mark(state: RunState, stage: Stage) -> tuple[str, str]:
    """Return the sign of a stage (it runs, failed, ended, is up to date, or has not begun) and its rich style."""
    if state.running(stage):
        return _frame(state.now), "bold"
    if state.problems(stage):
        return "✗", "red"
    if state.ended(stage):
        return "✓", "green"
    if state.up_to_date(stage):
        return "✓", "dim"
    return "·", "dim"


def _frame(now: float) -> str:
    """Return the sign of a spinner at a time."""
    return FRAMES[int(4 * now) % len(FRAMES)]
