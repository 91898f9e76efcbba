"""Findings of a verification: damaged, lost or stale files, what they hold, and how they are repaired."""

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from sweeplib.engine.storage.store.run_store import whole


class Remedy(Enum):
    """How a file is repaired, in words: what is damaged is deleted, and the stages that make it run again."""

    cases = "it is restored, or its cases are computed again"
    again = "it is made again"
    delete = "it is deleted"
    refused = "refused"


@dataclass(frozen=True)
class Finding:
    """A damaged, lost or stale file.

    path : the file; of an object of the published dataset, its name below the `address`.
    section : what it belongs to: a dynamics, "dataset", "analyses", "published dataset" or "other files".
    stage, of : the stage of the workflow that makes it again, and of which analysis or figure.
    cases : the identities of the cases whose results it holds; `words` describes these, or another content.
    why : why the repair is refused.
    """

    path: Path
    problem: str
    remedy: Remedy
    section: str
    stage: str = ""
    of: str = ""
    cases: tuple[bytes, ...] = ()
    words: str = ""
    why: str = ""
    address: str = ""

    def line(self, remedy: str) -> str:
        """Return the finding in one line, which ends with `remedy`: what is done about it, in words."""
        held = f" ({self.words})" if self.words else ""
        return f"{self.place}: {self.problem}{held}; {remedy}"

    @property
    def place(self) -> str:
        """Return the path, or the address of an object."""
        return f"{self.address}/{self.path.as_posix()}" if self.address else str(self.path)

    @property
    def advice(self) -> str:
        """Return what can be done about it."""
        return self.why if self.remedy is Remedy.refused else f"--repair: {self.remedy.value}"

    def record(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {
            "file": self.place,
            "problem": self.problem,
            "part": self.section,
            "content": self.words,
            "cases": [whole(identity).hex() for identity in self.cases],
            "repair": self.remedy.name,
        }
