"""Errors for stored files that are lost or whose content changed after they were written."""

from pathlib import Path

from sweeplib.errors import SweeplibError

DAMAGED = "damaged, it holds something else than was written"
LOST = "lost, the file is no longer there"


class DamageError(SweeplibError):
    """A stored file is lost, or its content is not what was written; the message names the file and a remedy."""


def damaged(path: Path, remedy: str) -> DamageError:
    """Return the error for a file whose content is not what was written."""
    return DamageError(f"{path}: {DAMAGED}; {remedy}")


def lost(path: Path, remedy: str) -> DamageError:
    """Return the error for a file that is lost."""
    return DamageError(f"{path}: {LOST}; {remedy}")
