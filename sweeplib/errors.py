"""The errors that a user sees: one line each, with advice."""

import difflib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

_UNSET = object()
"""In place of a value that an error does not have: None is a value."""
LONGEST_LIST, FEW_LEFT = 250, 4
"""The characters of a list of choices, and the most choices beyond that are listed too."""
MOST_SEARCHED, LONGEST_CHOICE = 2000, 100
"""The most choices among which the nearest is looked for, and their longest length."""
MOST_OTHERS = 4
"""The most other errors that a message has, a line each."""
LONGEST_VALUE, LONGEST_PART, LONGEST_PATH = 80, 400, 1000
"""The characters of a value, of another part and of a path in a message."""


class SweeplibError(Exception):
    """Base class of the errors that sweeplib raises."""


class BusyError(SweeplibError):
    """A folder in which another command is at work, by its message: the same command may run later."""


class InputError(SweeplibError, ValueError):
    """Input refused before any work starts.

    Parameters are the parts of the message, all optional but the first: the problem, the dotted `key`, the refused
    `value`, what was `expected`, the `file`, and the valid `choices`, of which the nearest to the value is suggested.
    `synonyms` are other words, in small letters, for some of the choices. `within` fills in parts later. `others` were
    found beside it, each a line of the message, and as many `more`.
    """

    others: "tuple[InputError, ...]" = ()
    more = 0

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        value: Any = _UNSET,
        expected: str | None = None,
        file: str | Path | None = None,
        choices: Iterable[str] = (),
        synonyms: Mapping[str, str] | None = None,
    ) -> None:
        self.problem = problem
        self.key = key
        self.value = value
        self.expected = expected
        self.file = file
        self.choices = tuple(choices)
        self.synonyms = dict(synonyms or {})
        super().__init__(problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error with all its parts, to send it between processes."""
        return _restored, (type(self), self.problem, {n: v for n, v in self.__dict__.items() if v is not _UNSET})

    @property
    def suggestion(self) -> str | None:
        """Return the valid choice nearest to the value, as a number or in spelling; None if none is near."""
        text = self.value if isinstance(self.value, str) else _text(self.value)
        if self.value is _UNSET or len(text) > LONGEST_CHOICE:
            return None
        choices = [choice for choice in self.choices if len(choice) <= LONGEST_CHOICE][:MOST_SEARCHED]
        numbers = [number for number in map(_number, choices) if number is not None]
        if (wanted := _number(text)) is not None and len(numbers) == len(choices) > 0:
            distance, place = min((abs(number - wanted), place) for place, number in enumerate(numbers))
            return choices[place] if distance <= 0.5 * max(abs(wanted), abs(numbers[place])) else None
        words = {_words(choice): choice for choice in choices} | self.synonyms
        meant = self.synonyms.get(text) or self.synonyms.get(_words(text))
        return meant or _nearest(text, {choice: choice for choice in choices}) or _nearest(_words(text), words)

    def within(self, *, file: str | Path | None = None, prefix: str | None = None) -> "InputError":
        """Return the same error, changed: with its file, and with the keys above its own, `prefix`; None: as it was."""
        self.file = file if file is not None else self.file
        if prefix:
            self.key = f"{prefix}.{self.key}" if self.key else prefix
        return self

    def __str__(self) -> str:
        """Return the message: one line, and a line for each of `others`, and how many `more` there are."""
        file = None if self.file is None else _cut(str(self.file), LONGEST_PATH)
        where = ": ".join(place for place in (file, self.key and _cut(self.key)) if place is not None)
        parts = [_cut(self.problem)]
        if self.value is not _UNSET:
            parts.append(f"got {_text(self.value)}")
        if self.expected:
            parts.append(f"expected {_cut(self.expected)}")
        nearest = self.suggestion
        if self.choices and not self.expected and not (nearest and _mostly_left_out(self.choices)):
            parts.append(f"expected one of {_listed(self.choices)}")
        if nearest is not None:
            parts.append(f"did you mean {nearest if isinstance(self.value, int | float) else repr(nearest)}?")
        text = "; ".join(parts).replace("\n", " ")
        line = printable(f"{where}: {text}" if where else text)
        return "\n".join([line, *map(str, self.others), *[f"and {self.more:,} more"] * (self.more > 0)])


class UnknownNameError(InputError, KeyError):
    """A name that is not in a registry."""


class Refusals:
    """What is refused of things that do not depend on each other, to be told together."""

    def __init__(self) -> None:
        self._errors: list[InputError] = []

    @contextmanager
    def of_one(self) -> Iterator[None]:
        """Keep an InputError that is raised within, and go on."""
        try:
            yield
        except InputError as error:
            self._errors.append(error)

    def tell(self) -> None:
        """Raise the first error that was kept, if any, with the others."""
        if self._errors:
            raise together(iter(self._errors), len(self._errors))


def together(errors: Iterator[InputError], count: int) -> InputError:
    """Return the first of `count` errors, with MOST_OTHERS of the others; those beyond are not taken from `errors`."""
    first = next(errors)
    first.others = tuple(islice(errors, MOST_OTHERS))
    first.more = count - 1 - len(first.others)
    return first


@contextmanager
def errors_at(key: str) -> Iterator[None]:
    """Give InputErrors that are raised within this key, whatever key they have."""
    try:
        yield
    except InputError as error:
        error.key = key
        raise


@contextmanager
def errors_under(prefix: str) -> Iterator[None]:
    """Add the key `prefix` in front of the keys of InputErrors that are raised within."""
    try:
        yield
    except InputError as error:
        raise error.within(prefix=prefix) from None


def _restored(kind: type[InputError], problem: str, parts: dict[str, Any]) -> InputError:
    """Return a pickled error of a class, with its attributes."""
    error = kind(problem)
    error.__dict__.update(parts)
    return error


def _number(text: str) -> float | None:
    """Return the finite number that a text states, None if it states none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    """Return a value as Python writes it, cut to LONGEST_VALUE characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError) as error:  # an integer with too many digits for Python, or a very deep list
        text = f"a value that cannot be shown ({type(error).__name__})"
    return _cut(text, LONGEST_VALUE)


def _words(name: str) -> str:
    """Return a name as the words that it consists of, in small letters."""
    return re.sub("[-_ ]+", " ", name).lower()


def _nearest(text: str, choices: Mapping[str, str]) -> str | None:
    """Return the value, in `choices`, of the key that is spelt most like a text; None if none is near."""
    near = difflib.get_close_matches(text, choices, n=1, cutoff=0.6)
    return choices[near[0]] if near else None


def _listed(choices: Iterable[str]) -> str:
    """Return the choices in order, as text; only those that fit, if that leaves out more than FEW_LEFT."""
    ordered = [_cut(choice, LONGEST_CHOICE) for choice in sorted(choices)]
    count = _number_shown(ordered)
    more = len(ordered) - count
    if more <= FEW_LEFT:
        return ", ".join(ordered)
    return ", ".join(ordered[:count]) + (f" and {more} more" if more else "")


def _number_shown(ordered: Iterable[str]) -> int:
    """Return how many of the choices, with commas between them, fit into a list."""
    return sum(end <= LONGEST_LIST for end in accumulate(len(choice) + 2 for choice in ordered))


def _mostly_left_out(choices: Collection[str]) -> bool:
    """Return whether a list of the choices would leave out at least half of them."""
    return 2 * _number_shown(sorted(choices)) <= len(choices)


def _cut(text: str, longest: int = LONGEST_PART) -> str:
    """Return a text of at most `longest` characters; a longer one ends with "..."."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def printable(text: str) -> str:
    """Return the text in one printable line; other characters are written as Python escapes."""
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
