"""Libraries that take long to import, imported when one of their names is first used."""

import importlib
import sys
import threading
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

__all__ = ["scipy", "xarray"]


IMPORTING = threading.RLock()
"""Held while a thread imports plugins or simulators: of two threads that import numba one fails."""


class LateModule(ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


def prepare_xarray() -> None:
    """Import xarray so that it does not import `dask.array`, which takes longer, to ask if an array is one of dask's.

    Until something else has imported `dask.array`, no array is. Called in processes of a workflow: a private function
    of xarray is replaced; in a version of xarray without this function nothing changes.
    """
    pycompat = importlib.import_module("xarray.namedarray.pycompat")
    if module_of := getattr(pycompat, "_get_cached_duck_array_module", None):
        unknown = SimpleNamespace(type=(), available=False)
        pycompat._get_cached_duck_array_module = (  # type: ignore[attr-defined]
            lambda name: unknown if name == "dask" and "dask.array" not in sys.modules else module_of(name)
        )


if TYPE_CHECKING:
    import scipy
    import xarray
else:
    scipy = LateModule("scipy")
    xarray = LateModule("xarray")
