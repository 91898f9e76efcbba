"""Folders for the caches of other packages where the user's own cannot be written, as in containers and batch jobs."""

import os
import sys
import tempfile
from pathlib import Path

NAME = ".cache"


def caches_in(results: Path) -> None:
    """Let this process and its children keep caches in the folder of results if they cannot keep them in the user's.

    These are numba's, if sweeplib's folder cannot be written either, Snakemake's and matplotlib's, and temporary files.
    A line on standard error says so.
    """
    instead = results.absolute() / NAME
    try:
        own = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # no home, and a user that this system does not know
        own = None
        _set_cache_folder(instead, HOME=instead)
    if own is None or not _can_be_written(own):
        _set_cache_folder(instead, XDG_CACHE_HOME=instead, MPLCONFIGDIR=instead / "matplotlib")
        problem = f"{own} cannot be written" if own else "this user has no home"
        sys.stderr.write(f"caches are kept in {results / NAME}: {problem}\n")
    try:
        tempfile.gettempdir()
    except FileNotFoundError:
        _set_cache_folder(instead / "tmp", TMPDIR=instead / "tmp")
        sys.stderr.write(f"temporary files are kept in {results / NAME / 'tmp'}: no other folder can be written\n")


def _set_cache_folder(folder: Path, **variables: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update({name: str(path) for name, path in variables.items()})


def _can_be_written(folder: Path) -> bool:
    existing = next(each for each in (folder, *folder.parents) if each.exists())
    try:
        with tempfile.TemporaryFile(dir=existing):
            return existing.is_dir()
    except OSError:
        return False
