"""Registries of named objects; a file registers the objects that it defines in its last statement."""

import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType
from typing import Any, ClassVar, Generic, TypeVar, get_origin

from sweeplib.errors import SweeplibError, UnknownNameError

T = TypeVar("T")

REGISTRIES: "list[Registry[Any]]" = []
"""All registries."""


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to objects of one `kind`; an unknown name raises an error that lists the known ones.

    check : called with a name and an object, raises an exception for one that cannot be registered.
    contract : the base class of registered classes: each must have its abstract methods, and its class variables.
    """

    def __init__(self, kind: str, check: Callable[[str, T], None] | None = None, contract: type | None = None) -> None:
        self.kind = kind
        self._check = check
        self._contract: Any = contract
        self._things: dict[str, T] = {}
        self._origins: dict[str, str] = {}  # by name: the module that registered the object
        REGISTRIES.append(self)

    def register(self, name: str, thing: T) -> T:
        """Register `thing` as `name` and return it; SweeplibError for a taken name, or another kind of thing."""
        if name in self._things:
            raise SweeplibError(f"{self.kind} {name!r} is registered twice")
        if thing is None:
            raise SweeplibError(f"{self.kind} {name!r}: nothing to register, got None")
        if not (isinstance(name, str) and name):  # type: ignore[redundant-expr]
            raise SweeplibError(f"{self.kind} {name!r}: the name is no text")
        if (wanted := self._other_kind(thing)) is not None:
            raise SweeplibError(f"{self.kind} {name!r}: {thing!r} is no {wanted}")
        if self._check is not None:
            self._check(name, thing)
        if (problem := self._lacking(thing)) is not None:
            raise SweeplibError(f"{self.kind} {name!r}: {problem}")
        self._things[name] = thing
        self._origins[name] = _calling_module()
        return thing

    def add(self, thing: T) -> T:
        """Register `thing` under its own `name` and return it; SweeplibError for a taken name, or an unfit object."""
        return self.register(getattr(thing, "name", type(thing).__name__), thing)

    def _other_kind(self, thing: T) -> str | None:
        """Return what a thing should have been, "class", "function" or a base class, if it is unlike the first one.

        None if it is like it.
        """
        first = next(iter(self._things.values()), thing)
        if isinstance(first, type):
            return None if isinstance(thing, type) else "class"
        if inspect.isfunction(first):
            return None if callable(thing) else "function"
        # the class next to `object`, which all things of this kind derive from
        return None if isinstance(thing, type(first).__mro__[-2]) else type(first).__name__

    def _lacking(self, thing: Any) -> str | None:
        """Return in words what a class lacks: of the contract, or of what is abstract in its bases. None if nothing."""
        if self._contract is None or not isinstance(thing, type):
            return None
        hints: dict[str, Any] = inspect.get_annotations(self._contract)
        wanted = {name for name, hint in hints.items() if get_origin(hint) is ClassVar}
        wanted |= self._contract.__abstractmethods__
        abstract: frozenset[str] = getattr(thing, "__abstractmethods__", frozenset())
        lacking = {*abstract, *(name for name in wanted if not hasattr(thing, name))}
        words = ", ".join(f"`{name}`" for name in sorted(lacking))
        return f"the class {thing.__name__} lacks {words}" if lacking else None

    def origin(self, name: str) -> str:
        """Return the name of the module that was being imported when `name` was registered."""
        return self._origins[name]

    def __getitem__(self, name: str) -> T:
        try:
            return self._things[name]
        except (KeyError, TypeError):
            raise UnknownNameError(f"unknown {self.kind}", value=name, choices=self._things) from None

    def __contains__(self, name: object) -> bool:
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._things))

    def __len__(self) -> int:
        return len(self._things)

    def __repr__(self) -> str:
        return f"<{self.kind} registry: {', '.join(self)}>"


def origin_of(kind: str, name: str) -> str:
    """Return the name of the module that registered an object of some kind."""
    return next(registry.origin(name) for registry in REGISTRIES if registry.kind == kind and name in registry)


def _calling_module() -> str:
    """Return the name of the module whose import has led to the call of `register`; outside of one, of the caller."""
    frame = inspect.currentframe()
    calls: list[FrameType] = []
    while frame is not None and (not calls or calls[-1].f_code.co_name != "<module>"):
        calls.append(frame)
        frame = frame.f_back
    modules = [str(call.f_globals["__name__"]) for call in calls]
    caller, outermost = next(module for module in modules if module != __name__), modules[-1]
    # a script or the cell of a notebook is run, not imported: what it calls has registered the object
    return caller if outermost == "__main__" or outermost not in sys.modules else outermost


def import_modules(package: str, path: Iterable[str]) -> None:
    """Import the modules of a package, not its packages, so that each module registers its objects."""
    for module in sorted(info.name for info in pkgutil.iter_modules(path) if not info.ispkg):
        importlib.import_module(f"{package}.{module}")
