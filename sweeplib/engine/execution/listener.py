"""Listeners, who are told of a run while it goes on: the screen, the record of the stage, the page of the run.

A block is some cases, the task of a worker; its report says how they ended.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweeplib.engine.execution.blocks import Block, BlockReport


class Listener:
    """Somebody who is told what happens in a run: four events, and lines of news. This one does nothing about it."""

    def run_begins(self, place: str, dashboard: str | None = None, page: str | None = None) -> None:
        """Take note that blocks are computed from now on.

        place : where, as a line to show. dashboard, page : links to Dask's dashboard, and to the sweep's page in it.
        """

    def handed_out(self, blocks: "Mapping[str, Block]") -> None:
        """Take note of blocks that were handed out, by the keys of their tasks."""

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Take note of a block that is done."""

    def run_ended(self) -> None:
        """Take note that all blocks are done."""

    def say(self, news: str) -> None:
        """Take note of a line of news, such as that workers were lost."""


class Listeners(Listener):
    """Several listeners, each of whom is told, in their order."""

    def __init__(self, *listeners: Listener) -> None:
        self.listeners = list(listeners)

    def run_begins(self, place: str, dashboard: str | None = None, page: str | None = None) -> None:
        """Tell all that a run begins."""
        for listener in self.listeners:
            listener.run_begins(place, dashboard, page)

    def handed_out(self, blocks: "Mapping[str, Block]") -> None:
        """Tell all of blocks that were handed out."""
        for listener in self.listeners:
            listener.handed_out(blocks)

    def task_ended(self, block: "Block", report: "BlockReport") -> None:
        """Tell all of a block that is done."""
        for listener in self.listeners:
            listener.task_ended(block, report)

    def run_ended(self) -> None:
        """Tell all that the run has ended."""
        for listener in self.listeners:
            listener.run_ended()

    def say(self, news: str) -> None:
        """Tell all a line of news."""
        for listener in self.listeners:
            listener.say(news)
