"""Parameters: the names that a simulator gives a meaning, the values that each may have, and what else a grid asks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from sweeplib.engine.base.table import Table
    from sweeplib.errors import InputError


FIRST: list[str] = []
"""The names whose axes come first in datasets, in this order: those that simulators add when they are imported."""


class Parameters(ABC):
    """The parameters of a simulator.

    kind : what a parameter is called in messages, such as `field of a problem`.
    section : the section of a config with values that all points share.
    needed : the names that each point must have.
    """

    kind: str
    section: str
    needed: tuple[str, ...] = ()

    @abstractmethod
    def names(self) -> Collection[str]:
        """Return the names of all parameters."""

    @abstractmethod
    def type_of(self, name: str) -> Any:
        """Return the type, for pydantic, of the values of a parameter, or of an option of a run, such as `run.option`.

        None for a name that is neither; InputError for an option that the run does not have.
        """

    def is_reserved(self, name: str) -> bool:
        """Return whether a name has another meaning in this simulator's datasets, and cannot be one of a grid."""
        return False

    def texts(self) -> Collection[str]:
        """Return the names of the parameters whose values are texts."""
        return ()

    def of_code(self) -> Collection[str]:
        """Return the names of the parameters whose values decide which code runs a case."""
        return ()

    def canonical(self, name: str, value: Any, key: str) -> Any:
        """Return a value of the right type in its canonical spelling; InputError, with `key`, for an unknown one."""
        return value

    def expected(self, name: str) -> str | None:
        """Return what a value of a parameter is, in words; None where its type says it."""
        return None

    def synonyms(self) -> Mapping[str, str]:
        """Return the parameters that are meant by other words, such as those of papers, for suggestions."""
        return {}

    def check(self, points: Table, refuse: Callable[[InputError, int], None]) -> None:
        """Check that the values of each point fit together; for one where they do not, call `refuse`.

        refuse : raises the error that it is given, with the row of the point.
        """
        return
