"""Libraries that take long to import, imported when one of their names is first used."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["scipy", "xarray"]


class LateModule(ModuleType):
    """A module that is imported when one of its names is first used."""

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self.__name__), name)


if TYPE_CHECKING:
    import scipy
    import xarray
else:
    scipy = LateModule("scipy")
    xarray = LateModule("xarray")
