"""matplotlib, imported when one of its names is first used: at the first drawing."""

import importlib
from typing import TYPE_CHECKING, Any

from sweeplib.engine.base.late_modules import LateModule

__all__ = ["mpl"]

if TYPE_CHECKING:
    import matplotlib as mpl
else:

    class _Matplotlib(LateModule):
        """matplotlib, with the modules of which drawings are made."""

        def __getattr__(self, name: str) -> Any:
            importlib.import_module("matplotlib.backends.backend_agg")
            importlib.import_module("matplotlib.figure")
            return super().__getattr__(name)

    mpl = _Matplotlib("matplotlib")
