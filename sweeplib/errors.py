"""The errors a user meets: one line each, that says what to change."""

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_UNSET = object()


class SweeplibError(Exception):
    """Whatever sweeplib raises on purpose."""


class InputError(SweeplibError, ValueError):
    """Input refused before any work starts.

    Parameters are the parts of the message, each optional but the first: what is wrong, the dotted `key` where it
    stands, the offending `value`, what was `expected`, the `file`, and the valid `choices` among which the nearest to
    the value is suggested. Raised with the same parts filled in later by `within`.
    """

    def __init__(
        self,
        problem: str,
        *,
        key: str | None = None,
        value: Any = _UNSET,
        expected: str | None = None,
        file: str | Path | None = None,
        choices: Iterable[str] = (),
    ) -> None:
        self.problem = problem
        self.key = key
        self.value = value
        self.expected = expected
        self.file = file
        self.choices = tuple(choices)
        super().__init__(problem)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled with all its parts, as errors travel between processes."""
        return _restored, (type(self), self.problem, {n: v for n, v in self.__dict__.items() if v is not _UNSET})

    @property
    def suggestion(self) -> str | None:
        """The valid choice nearest to the value, or None when nothing is near."""
        if self.value is _UNSET:
            return None
        near = difflib.get_close_matches(str(self.value), self.choices, n=1, cutoff=0.6)
        return near[0] if near else None

    def within(self, *, file: str | Path | None = None, prefix: str | None = None) -> "InputError":
        """The same error, told where it happened: its file, and the keys above its own."""
        self.file = file if file is not None else self.file
        if prefix:
            self.key = f"{prefix}.{self.key}" if self.key else prefix
        return self

    def __str__(self) -> str:
        where = ": ".join(str(part) for part in (self.file, self.key) if part is not None)
        parts = [self.problem]
        if self.value is not _UNSET:
            parts.append(f"got {_shown(self.value)}")
        if self.expected:
            parts.append(f"expected {self.expected}")
        if self.choices and not self.expected:
            parts.append("expected one of " + ", ".join(sorted(self.choices)))
        if self.suggestion:
            parts.append(f"did you mean {self.suggestion!r}?")
        text = "; ".join(parts).replace("\n", " ")
        return f"{where}: {text}" if where else text


class UnknownNameError(InputError, KeyError):
    """A name that a registry does not know."""


def _restored(kind: type[InputError], problem: str, parts: dict[str, Any]) -> InputError:
    error = kind(problem)
    error.__dict__.update(parts)
    return error


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
