"""Names of a sweep that a file system which folds case would take for one: arrays and pictures are files.

macOS, Windows and their shares have such file systems. Elsewhere `t` and `T` are two names, as physicists have them.
"""

import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from sweeplib.engine.design.design import Design
from sweeplib.engine.storage.dataset.outline import planned_outline
from sweeplib.errors import InputError


def refuse_folded_names(sweep: Design, directory: Path) -> None:
    """Raise InputError if two names of a sweep differ in case alone, and the file system of `directory` folds case."""
    if not _folds_case(directory):
        return
    outline = planned_outline(sweep, groups=True)
    for names in ({*outline.axes, *outline.variables}, sweep.figures):
        if (pair := _one_name(names)) is not None:
            problem = f"the file system here does not tell this name from {pair[0]}"
            expected = "names that differ in more than the case of letters, or --results on another file system"
            raise InputError(problem, file=directory, value=pair[1], expected=expected)


def _one_name(names: Iterable[str]) -> tuple[str, str] | None:
    """Return the first two names that differ in case alone, None if all differ in more."""
    folded: dict[str, str] = {}
    for name in sorted(names):
        if (other := folded.setdefault(name.casefold(), name)) != name:
            return other, name
    return None


def _folds_case(directory: Path) -> bool:
    """Return whether a folder, or the one in which it would be made, has one file for names that differ in case."""
    existing = next(parent for parent in (directory, *directory.absolute().parents) if parent.exists())
    # where nothing can be written, what writes there says so
    with suppress(OSError), tempfile.NamedTemporaryFile(dir=existing, prefix=".case-") as file:
        return Path(file.name).with_name(Path(file.name).name.upper()).exists()
    return False
