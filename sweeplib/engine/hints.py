"""Hints: what a simulator can say of its cases for advice, trials of horizons and live curves; nothing by default.

A passage is an event in a run, such as an exit, of which a variable records when it happened.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence


class Alternative(ABC):
    """Another way to get the numbers of cases, which may be cheaper."""

    kind: str
    """The kind of run that replaces the present one."""

    @abstractmethod
    def case(self, case: Any) -> Any | None:
        """Return the case that replaces a given one; None if the alternative does not apply or changes nothing."""

    @abstractmethod
    def description(self, case: Any) -> str:
        """Return the words before "3 times cheaper here" in advice about a case, such as "sgd_chain is"."""


class Headline(NamedTuple):
    """The variable whose last value stands for a run while a sweep is running, and its title.

    is_passage : whether the value is NaN for runs that ended before it happened; then medians are drawn, else means.
    """

    variable: str
    title: str
    is_passage: bool


class Hints:
    """What a simulator says of its cases beside their numbers; each method has a default that says nothing."""

    def alternatives(self, kind: str) -> Sequence[Alternative]:
        """Return the other ways to get the numbers of a kind of run, to be compared by their cost."""
        return ()

    def yardsticks(self, kind: str) -> Sequence[str]:
        """Return the kinds of runs with which the cost of a kind is compared, the first of a sweep's counts."""
        return ()

    def where(self, cases: Sequence[Any]) -> str:
        """Return where some cases are, in words such as `at d = 100 to 300`."""
        return "at some points"

    def values(self, case: Any) -> Mapping[str, Any]:
        """Return the parameters of a case by name."""
        return {}

    def passage(self, case: Any) -> str | None:
        """Return the name of the variable that is NaN where a passage did not happen in the run; None without one."""
        return None

    def to_passage(self, case: Any, factor: float) -> Any | None:
        """Return the case as one that ends at its passage, or else at `factor` times its horizon; None if it cannot."""
        return None

    def end_in_words(self, end: float, attributes: Mapping[str, Any]) -> str:
        """Return how far a run goes, in words; the `attributes` of recording times say their unit."""
        return f"{end:.6g}"

    def headline(self, recording: Any, variables: Mapping[str, Collection[str]]) -> Headline | None:
        """Return what the live page draws of runs as they end; None for nothing.

        variables : the names of what is recorded, with their dimensions.
        """
        return None
