"""Limit: a value of a problem that is refused, alone or beside a feature of the problem, and the clause that says why.

What goes with what is data: a dynamics has limits, and so has a part of a problem; `combinations.py` has those of all
dynamics. Messages, and the table of the documentation, are made of them. Two designs were sketched.

    limits = (Limit("batch_size repeats", "no overlap chain", beside=SPECTRUM),)    # in the class of a dynamics
    TABLE["sgd_chain", "spectrum", "batch_size repeats"] = "no overlap chain"       # in one file

The first is kept: a plugin says its limits where it says the rest, and a bound by numbers, as p + k ≤ d, is one too.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from sweeplib.errors import InputError
from sweeplib.networks.problem.parameters import DEFAULTS

if TYPE_CHECKING:
    from sweeplib.networks.problem.problem import Problem

Text = str | Callable[["Problem"], str]
"""A text, with `{problem.d}` for a field of the problem or what follows from fields; or a function that returns it."""


class Feature(NamedTuple):
    """Something that problems may have.

    words : what it is, in messages, a format as `Text` is one. is_of : whether a problem has it.
    name : what it is, in tables of the documentation; the `words` unless given.
    """

    words: str
    is_of: Callable[["Problem"], bool]
    name: str = ""


@dataclass(frozen=True)
class Limit:
    """A value that is refused of a field, if the problem has the feature `beside`.

    keys : the name of the field, or the names of several with the same limit, with spaces between.
    reason : the problem in a clause.
    expected : what is accepted; `{default}` is the default of the field, `{beside}` the words for the feature.
    where : whether the problem is beyond the limit; by default if the field has another value than its default.
    value : the value that is refused, if that is not the field's.
    choices : the valid names, where nothing is `expected`.
    """

    keys: str
    reason: Text
    expected: Text = "{default} with {beside}"
    beside: Feature | None = None
    where: Callable[["Problem"], bool] | None = None
    value: Callable[["Problem"], Any] | None = None
    choices: Callable[[], Iterable[str]] = tuple

    def refuse(self, problem: "Problem") -> None:
        """Raise InputError for a problem beyond the limit."""
        if self.beside is not None and not self.beside.is_of(problem):
            return
        for key in self.keys.split():
            is_beyond = self.where(problem) if self.where else key in problem.differing_names
            if is_beyond:
                value = self.value(problem) if self.value else getattr(problem, key)
                reason, expected = (self._filled(text, problem, key) for text in (self.reason, self.expected))
                raise InputError(reason, key=key, value=value, expected=expected, choices=self.choices())

    def _filled(self, text: Text, problem: "Problem", key: str) -> str:
        """A reason or expectation, with its placeholders filled for a problem and the field `key`."""
        if callable(text):
            return text(problem)
        beside = self.beside.words.format(problem=problem) if self.beside else ""
        return text.format(problem=problem, beside=beside, key=key, default=shown_default(key))


def shown_default(key: str) -> str:
    """Return the default of a field as a config has it: JSON, and text without quotes."""
    return json.dumps(DEFAULTS.get(key)).strip('"')
