"""Files that do not hold what was written into them."""

from pathlib import Path

from sweeplib.errors import SweeplibError


class DamageError(SweeplibError):
    """A stored file that is lost, or holds something else than was written: which one, and what to do."""


def damaged(path: Path, remedy: str) -> DamageError:
    """The error for a file whose content is not what was written."""
    return DamageError(f"{path}: damaged, it holds something else than was written; {remedy}")


def lost(path: Path, remedy: str) -> DamageError:
    """The error for a file that is no longer there."""
    return DamageError(f"{path}: lost, the file is no longer there; {remedy}")
