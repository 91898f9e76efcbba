"""Links in the folder of a sweep: nothing is written, and nothing deleted, through one that sweeplib did not make."""

import os
from collections.abc import Iterator
from pathlib import Path

from sweeplib.errors import InputError

PLACES = (
    *("analysis", "datasets", "figures", "inventory", "jobs", "journal", "locks", "outcomes", "report", "stages"),
    *("checkpoints", "runs", "config.yaml", "command.yaml", "origin.json", "plan.json"),
)
"""What commands write in the folder of a sweep; `dataset.zarr` is exchanged, and has a rule of its own."""


def links_on_the_way(folder: Path, path: Path) -> Iterator[Path]:
    """Yield the links among the steps from a folder to a path below it, the path itself included."""
    step = folder
    for name in path.relative_to(folder).parts:
        step = step / name
        if step.is_symlink():
            yield step


def links_below(folder: Path) -> Iterator[Path]:
    """Yield the links in a folder and in those below it, none of which is followed."""
    for path, folders, files in os.walk(folder):
        yield from (link for name in sorted([*folders, *files]) if (link := Path(path, name)).is_symlink())


def refuse_links(folder: Path, *paths: Path) -> None:
    """Raise InputError if a path below a folder is a link, or behind one."""
    for path in paths:
        for link in links_on_the_way(folder, path):
            raise linked(link)


def refuse_linked_places(directory: Path) -> None:
    """Raise InputError if what commands write in the folder of a sweep is a link: before anything is written."""
    refuse_links(directory, *(directory / name for name in PLACES))


def foreign(link: Path) -> str:
    """Return in words what a link is that sweeplib did not make: where it leads."""
    return f"a link to {str(link.readlink())!a}, which sweeplib did not make"


def linked(link: Path) -> InputError:
    """Return the error for a link in the place of something that sweeplib writes."""
    problem = f"{foreign(link)}: nothing is written through it"
    expected = "what it leads to in its place; a link in place of the whole folder of the sweep is followed"
    return InputError(problem, file=link, expected=expected)
